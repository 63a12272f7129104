"""Which rows belong together, and that nothing else gets in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlstate import results
from rlstate.paper import select
from rlstate.paper.select import Arm, Cell, arm_of, cell, contrast, deciding
from rlstate.plan import plan
from rlstate.results import Row, flat
from rlstate.train import compose

PPO = Arm()


def row(task: str = "mod_5", arm: Arm = PPO, seed: int = 0, identity: str = "h", config=(), **figures) -> Row:
    decides = {**deciding(arm), "task.name": task, **dict(config)}
    return Row("paper", identity, task, seed, "solved", decides, figures, {}, [], True, [], 1.0, None)


@pytest.mark.parametrize(
    ("experiment", "overrides", "arm"),
    [
        ("table2", [], Arm()),
        ("table1", ["encoder=window_mlp", "algorithm=a2c", "algorithm.credit=broadcast"],
         Arm("a2c", "broadcast", "window_mlp")),
        ("table1_transformer", [], Arm(encoder="transformer")),
        ("long_budget", [], Arm("a2c", "broadcast", iterations=30000)),
        ("shaping", ["shaping=oracle"], Arm(shaping="oracle")),
        ("beta", ["emission.beta=0.15", "auxiliary=emission"], Arm(auxiliary="emission", beta=0.15)),
        ("beta", ["emission.beta=1"], Arm(beta=1.0)),
        ("intervention", [], Arm(auxiliary="state")),
        ("heldout_lstm", [], Arm(encoder="lstm")),
        ("capacity", [], Arm(iterations=1)),
        ("mined_emission", [], Arm(auxiliary="emission", beta=1.0)),
    ],
)  # fmt: skip
def test_the_runs_of_every_experiment_find_their_arm(experiment, overrides, arm):
    """As a run's folder holds them: the configuration of a plan, flattened as `results.row` does."""
    run = plan(compose([f"+experiment={experiment}", *overrides]))[0]
    config = {key: value for key, value in flat(run.config).items() if key.split(".")[0] not in results.UNTOLD}
    assert arm_of(replace(row(), config=config)) == arm


def test_what_rows_leave_out_is_known_here():
    assert set(select.UNTOLD) == set(results.UNTOLD)


@pytest.mark.parametrize(
    ("key", "value"),
    [("task.horizon", 12), ("task.p_control", 0.25), ("algorithm.learning_rate", 1e-3), ("algorithm.entropy", 0.01),
     ("algorithm.gamma", 0.95), ("algorithm.minibatches", 1), ("algorithm.batch", 128), ("algorithm.clip", 0.1),
     ("probe.episodes", 128), ("evaluation.episodes", 1024), ("emission.colouring", "acceptance"), ("encoder.hidden", 32),
     ("auxiliary.weight", 0.5), ("algorithm.of_another_version", 1)],
)  # fmt: skip
def test_another_protocol_is_in_no_cell(key, value):
    strange = row(config={key: value})
    assert arm_of(strange) is None
    assert len(cell([strange, row(seed=1)], "mod_5", Arm())) == 1


def test_a_row_of_an_older_version_is_in_no_cell():
    old = row()
    del old.config["algorithm.adam_eps"]
    assert arm_of(old) is None
    assert arm_of(replace(old, config={})) is None
    assert arm_of(row(config={"encoder.name": "my_package.encoders.Elman"})) is None


def test_thresholds_and_the_tasks_own_keys_do_not_decide():
    assert arm_of(row(config={"probe.recovery": 0.9, "task.name": "mod_k", "task.k": 5, "task.path": None})) == Arm()
    assert arm_of(row(config={"emission.beta": 0, "iterations": 6000.0})) == Arm()  # one number, however typed


def test_a_cell_holds_its_task_and_arm_by_seed():
    rows = [
        row(seed=2, val_n=0.9), row(seed=0, val_n=0.5), row(seed=1, val_n=None), row("mod_3", val_n=0.1),
        row(arm=Arm(auxiliary="state"), val_n=0.2),
    ]  # fmt: skip
    found = cell(rows, "mod_5", Arm())
    assert [each.seed for each in found.rows] == [0, 1, 2]
    assert found.values("val_n") == {0: 0.5, 2: 0.9}
    assert found.mean("val_n") == pytest.approx(0.7)
    assert found.sd("val_n") == pytest.approx(0.4 / 2**0.5)
    half = 12.706205 * 0.2  # t(1, .975), and s/√2 = .2
    assert found.interval("val_n") == pytest.approx((0.7, 0.7 - half, 0.7 + half), abs=1e-5)
    assert found.mean("ood_n") is None
    assert found.sd("ood_n") is None
    assert np.isnan(found.interval("ood_n")).all()


def test_runs_of_two_hashes_are_not_averaged():
    """Two automata of one name, say."""
    found = cell([row(val_n=0.2), row(seed=1, identity="other", val_n=0.8)], "mod_5", Arm())
    assert found == Cell("mod_5", Arm(), (), ("h", "other"))
    assert found.mean("val_n") is None


def test_an_empty_cell():
    assert cell([], "mod_5", Arm()) == Cell("mod_5", Arm())


def test_arms_in_words():
    assert str(Arm()) == "GRU, PPO × discounted"
    leaking = Arm(auxiliary="emission", beta=0.1)
    assert str(leaking) == "GRU, PPO × discounted, emission auxiliary, β = 0.1"
    assert str(Arm("a2c", "broadcast", "window_mlp", iterations=30000)) == (
        "window-MLP, A2C × broadcast, 30000 iterations"
    )
    assert contrast(Arm(credit="broadcast"), Arm("a2c", "broadcast")) == "PPO − A2C (GRU, broadcast)"
    assert contrast(leaking, Arm(auxiliary="emission")) == "β = 0.1 − β = 0 (GRU, PPO × discounted, emission auxiliary)"
    assert contrast(Arm(shaping="oracle"), Arm(auxiliary="state")) == (
        "oracle shaping − state auxiliary (GRU, PPO × discounted)"
    )
    assert contrast(Arm(auxiliary="state"), Arm()) == "state auxiliary − no auxiliary (GRU, PPO × discounted)"


def test_an_arm_says_how_to_train_it():
    arm = Arm("a2c", "broadcast", iterations=7)
    composed = compose(["+experiment=protocol", *arm.overrides()])
    assert (composed["algorithm"]["name"], composed["iterations"]) == ("a2c", 7)
    usual = compose(["+experiment=protocol"])
    assert deciding(Arm())["iterations"] == usual["iterations"]
    assert deciding(Arm())["algorithm.credit"] == usual["algorithm"]["credit"]

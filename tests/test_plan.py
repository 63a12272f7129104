"""From a configuration to runs: what is refused, what the folder's name depends on."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from rlstate.automata import DFA, save, zoo
from rlstate.control import strata
from rlstate.learning.objectives import Algorithm
from rlstate.plan import ConfigurationError, plan, resolve_device
from rlstate.probes.verdict import Thresholds
from rlstate.train import compose, configuration_folder, register_tasks

EXPERIMENTS = sorted(path.stem for path in (configuration_folder() / "experiment").glob("*.yaml"))


def runs(*overrides: str):
    return plan(compose(["logger=files", *overrides]))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes_and_takes_another_task_on_top(experiment):
    for each in runs(f"+experiment={experiment}"):
        assert each.experiment in (experiment, "paper")
    assert {each.task.name for each in runs(f"+experiment={experiment}", "task=mod_5", "tasks=null")} == {"mod_5"}
    for group, choice in (("encoder", "lstm"), ("algorithm", "a2c"), ("auxiliary", "state"), ("shaping", "none")):
        runs(f"+experiment={experiment}", f"{group}={choice}")


def test_tasks_from_the_held_out_set_and_from_files(tmp_path):
    save(zoo.make("mod_13"), tmp_path / "thirteen.json")
    fleet = runs(f"tasks=[heldout_007,{tmp_path / 'thirteen.json'},mined_damm]", "seeds=1")
    assert [run.task.name for run in fleet] == ["heldout_007", "thirteen", "mined_damm"]
    assert fleet[0].task.dfa == strata.make("heldout_007")
    assert fleet[1].task.dfa == zoo.make("mod_13")
    register_tasks(["task=heldout_020", "task=heldout_153"])
    assert runs("task=heldout_020")[0].task.dfa == strata.make("heldout_020")
    with pytest.raises(ConfigurationError, match="heldout_153"):
        runs("task=heldout_153")


def test_tasks_by_name_by_parameter_and_as_a_fleet():
    assert runs("task=mod_13")[0].task.dfa == zoo.make("mod_13")
    assert runs("task=mod_k", "task.k=7")[0].task.name == "mod_7"
    assert runs("+experiment=quickstart", "task.k=7")[0].task.name == "mod_7"
    assert runs("task=ends_with_0110")[0].task.dfa == zoo.make("ends_with_0110")
    fleet = runs("tasks=[parity,mod_5,mined_ean]", "seeds=2", "task.horizon=6")
    assert [run.label for run in fleet] == [
        f"{name}/seed={seed}" for name in ("parity", "mod_5", "mined_ean") for seed in (0, 1)
    ]
    assert {run.task.horizon for run in fleet} == {6}
    assert [run.seed for run in runs("seeds=[4,2]")] == [4, 2]


def test_the_folder_depends_on_what_decides_the_numbers_and_on_nothing_else(tmp_path):
    base = runs("task=mod_5")[0]
    for same in (
        "probe.val_n=0.9",
        "kernels=plain",
        "seeds=[0,5]",
        "device=cpu",
        "threads=1",
        "checkpoint_every=7",
        "export=rollouts",
        "name=other",
    ):
        assert runs("task=mod_5", same)[0].hash == base.hash
    for other in (
        "iterations=17",
        "emission.beta=0.1",
        "encoder.hidden=32",
        "algorithm.entropy=0.02",
        "task.p_control=0.6",
        "task.p_control=1",
        "task.horizon=13",
        "probe.episodes=100",
        "auxiliary=state",
        "shaping=oracle",
        "task=mod_7",
    ):
        assert runs("task=mod_5", other)[0].hash != base.hash, other
    # The automaton's content, not where it comes from.
    path = tmp_path / "mine.json"
    dfa = zoo.make("mod_5")
    save(dfa, path)
    from_file = runs("task=file", f"task.path={path}")[0]
    assert (from_file.hash, from_file.task.name) == (base.hash, "mine")


def test_an_automaton_that_is_called_automaton_has_its_folders_name(tmp_path, monkeypatch):
    """Mining calls every file automaton.json, and so does training, under <task>/seed=<n>/."""
    monkeypatch.chdir(tmp_path)
    for folder, name in (("mined/div7", "div7"), ("mined/odd name", "odd_name"), ("runs/q/a0/mod_5/seed=3", "mod_5"),
                         ("seed=x", "seed_x")):  # fmt: skip
        (tmp_path / folder).mkdir(parents=True)
        save(zoo.make("mod_5"), tmp_path / folder / "automaton.json")
        save(zoo.make("mod_5"), tmp_path / folder / "machine.dot")
        for path in (f"{folder}/automaton.json", f"{folder}/../{Path(folder).name}/automaton.json"):
            assert runs("task=file", f"task.path='{path}'")[0].task.name == name
        assert runs("task=file", f"task.path='{folder}/machine.dot'")[0].task.name == "machine"
    monkeypatch.chdir("mined/div7")
    assert runs("task=file", "task.path=automaton.json")[0].task.name == "div7"
    first, second = runs("tasks=[../div7/automaton.json,'../odd name/automaton.json']")
    assert first.folder.path != second.folder.path


def three_symbols(k: int = 3) -> DFA:
    return zoo.make("mod_k_hold", k=k)


def test_an_automaton_by_regular_expression_and_by_dotted_path(monkeypatch, tmp_path):
    assert runs("task=file", "task.regex='(0|1)*101'")[0].task.dfa.equivalent(zoo.make("ends_with_101")) is None
    (tmp_path / "my_machines.py").write_text(
        "from rlstate.automata import zoo\nfixed = zoo.make('parity')\ndef make(k): return zoo.make('mod_k', k=k)\nnumber = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert runs("task=custom", "task.name=my_machines.fixed")[0].task.dfa == zoo.make("parity")
    assert runs("task=custom", "task.name=my_machines.make", "+task.parameters.k=5")[0].task.dfa == zoo.make("mod_5")
    with pytest.raises(ConfigurationError, match="it must be a DFA"):
        runs("task=custom", "task.name=my_machines.number")


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["task=mod_1"], "at least 2"),
        (["task=mod_k", "task.k=0"], "at least 2"),
        (["task.horizon=0"], "horizon=0"),
        (["task.p_control=1.5"], r"p_control=1.5.*0 to 1"),
        (["emission.beta=-0.1"], "beta=-0.1"),
        (["emission.colouring=rainbow"], "rainbow"),
        (["algorithm.batch=0"], "algorithm.batch is 0"),
        (["algorithm.batch=2.5"], "algorithm.batch is 2.5"),
        (["encoder.hidden=0"], "encoder.hidden=0"),
        (["tasks=[mod_k]"], "needs the parameter 'k'"),
        (["seeds=99999999999999999999"], "seeds=99999"),
        (["iterations=0"], "iterations=0"),
        (["seeds=0"], "seeds=0"),
        (["seeds=[]"], "seeds=\\[\\]"),
        (["seeds=-3"], "seeds=-3"),
        (["+algorithm.learning_rat=1"], "learning_rat is unknown"),
        (["shaping=oracle", "algorithm.credit=broadcast"], "broadcast changes nothing"),
        (["device=tpu"], "tpu"),
        (["encoder=custom", "encoder.name=nowhere.Encoder"], "cannot import the encoder"),
        (["encoder=transformer", "encoder.heads=5"], "multiple of encoder.heads"),
        (["+encoder.hiden=3"], "hiden"),
        (["task=file"], "task.path"),
        (["task=file", "task.path=/no/such.dot"], "no such file"),
        (["task=file", "task.regex='(01'"], "\\("),
        (["task=custom", "task.name=no.such.machine"], "cannot import the automaton"),
        (["tasks=[parity,mod_x]"], "Unknown task 'mod_x'"),
        (["tasks=parity"], "must be a list"),
        (["export=everything"], "export='everything'"),
        (["name='a/b'"], "names a folder"),
        (["probe.episodes=3"], "at least 10"),
        (["threads=0"], "threads=0"),
        (["logger.name=tensorboard"], "tensorboard"),
    ],
)
def test_bad_input_ends_at_once_in_one_sentence(overrides, says, tmp_path):
    with pytest.raises(ConfigurationError, match=says) as raised:
        runs(*overrides, f"paths.runs={tmp_path}")
    assert "\n\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_an_unknown_task_is_answered_with_those_that_are_close():
    with pytest.raises(ValueError, match="parity"):
        register_tasks(["task=parrity"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('digraph g { a [shape=doublecircle]; a -> a [label="0"]; }', "initial state|start"),
        (
            'digraph g { __start0 -> a; a [shape=doublecircle]; b; a -> a [label="0"]; a -> b [label="1"]; '
            'b -> b [label="0"]; }',
            "complete",
        ),
        ('digraph g { __start0 -> a; a; b [shape=doublecircle]; a -> a [label="0"]; b -> b [label="0"]; }', "cannot be reached"),
        ("digraph g { }", "state"),
    ],
)  # fmt: skip
def test_files_that_make_no_task(tmp_path, content, says):
    path = tmp_path / "machine.dot"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=says):
        runs("task=file", f"task.path={path}")


def test_numbers_and_paths_of_a_notebook(tmp_path):
    config = compose([*["logger=files", "task.p_control=1"]])
    config["paths"]["runs"] = tmp_path
    config["seeds"] = np.int64(2)
    config["task"]["p_control"] = np.float64(1.0)
    (first, _) = plan(config)
    assert first.hash == runs("task.p_control=1.0")[0].hash
    for nonsense in (None, 3, {}):
        with pytest.raises(ConfigurationError):
            plan(nonsense)


def test_composing_in_threads():
    with ThreadPoolExecutor(4) as pool:
        names = [config["task"]["k"] for config in pool.map(lambda k: compose([f"task=mod_{k}"]), range(3, 11))]
    assert names == list(range(3, 11))


def test_the_alphabet_of_an_expression_can_be_given():
    (run,) = runs("task=file", "task.regex='1*'", "task.alphabet=[0,1]")
    assert run.task.dfa.n_symbols == 2


def test_the_configuration_files_hold_the_documented_defaults():
    assert runs("algorithm=ppo")[0].algorithm == Algorithm()
    a2c = runs("algorithm=a2c")[0].algorithm
    assert dataclasses.replace(a2c, name="ppo") == Algorithm()
    assert runs()[0].thresholds == Thresholds()


def test_an_edited_encoder_of_ones_own_is_another_one(monkeypatch, tmp_path):
    source = "from rlstate.learning.encoders import GRU\nclass Mine(GRU):\n    pass\n"
    (tmp_path / "encoders_of_mine.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    overrides = ["encoder=custom", "encoder.name=encoders_of_mine.Mine"]
    (before,) = runs(*overrides)
    capacity_before = before.capacity_key()
    (tmp_path / "encoders_of_mine.py").write_text(source + "# another\n")
    (after,) = runs(*overrides)
    assert before.hash != after.hash
    assert capacity_before != after.capacity_key()


def test_documents_have_no_holes():
    root = configuration_folder().parent
    for path in [root / "README.md", *(root / "docs").glob("*.md")]:
        assert "@@" not in path.read_text(), path


def test_auto_takes_a_gpu_for_a_large_fleet_only(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto", 3) == "cpu"
    assert resolve_device("auto", 64) == "cuda"
    assert resolve_device("cuda", 1) == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto", 64) == "cpu"
    with pytest.raises(ConfigurationError, match="sees no GPU"):
        resolve_device("cuda", 64)


@pytest.mark.parametrize(
    "key",
    ["algorithm.learning_rate", "algorithm.gamma", "algorithm.entropy", "algorithm.value", "algorithm.clip",
     "algorithm.max_grad_norm", "algorithm.adam_eps", "algorithm.gae_lambda", "auxiliary.weight", "probe.recovery",
     "probe.val_n", "probe.saturated"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["abc", "nan", "true"])
def test_what_is_no_number_is_refused_by_its_key(key, value):
    with pytest.raises(ConfigurationError, match=rf"{key} is .*; it must be a finite number"):
        plan(compose(["+experiment=quickstart", "auxiliary=state", f"{key}={value}"]))

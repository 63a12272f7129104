"""A run: what an update does, what it must not depend on, and that it can be stopped and resumed anywhere."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from rlstate.automata import zoo
from rlstate.control import EmissionChannel, Stream, Task
from rlstate.fleet import run_jobs
from rlstate.learning.encoders import ENCODERS
from rlstate.learning.objectives import Algorithm, Auxiliary, auxiliary_loss, auxiliary_targets, ppo_surrogate
from rlstate.learning.rollout import rollout
from rlstate.learning.trainer import Diverged, Learner

SMALL = {"gru": {}, "lstm": {}, "window_mlp": {"window": 3}, "transformer": {"layers": 1, "heads": 2}}


def task(name: str = "mod_3", horizon: int = 6, beta: float = 0.0) -> Task:
    dfa = zoo.make(name)
    return Task(name, dfa, horizon, 0.5, EmissionChannel.identity(dfa, beta))


def learner(
    name="mod_3", seed=0, encoder="gru", beta=0.0, auxiliary="none", shaping="none", dtype=torch.float64, **algorithm
):
    algorithm = {"batch": 16, **algorithm}
    return Learner(
        task(name, beta=beta),
        seed,
        {"name": encoder, "hidden": 12, **SMALL[encoder]},
        Algorithm(**algorithm),
        Auxiliary(auxiliary),
        shaping,
        dtype=dtype,
    )


def weights(run: Learner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in run.policy.parameters()])


# --- one update -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_ratio_is_one_on_the_first_minibatch(encoder):
    """Rollout and update must agree on what was seen when (purejaxrl's off-by-one done flag)."""
    run = learner(encoder=encoder)
    played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16))
    _, (logits, values) = run.policy(played.observations)
    again = logits.log_softmax(-1).gather(-1, played.symbols[..., None])[..., 0]
    torch.testing.assert_close(again, played.log_probs, rtol=0, atol=1e-12)
    torch.testing.assert_close(values, played.values, rtol=0, atol=1e-12)


def test_log_probabilities_do_not_depend_on_the_minibatch():
    """sb3-contrib#284: what a step is worth must not change with the company it is trained in."""
    run = learner()
    batch = run.credit(rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16)))
    whole = run.policy(batch.observations)[1].logits
    for episodes in (torch.tensor([3]), torch.tensor([9, 3, 0]), torch.arange(15, -1, -1)):
        part = run.policy(batch.episodes(episodes).observations)[1].logits
        torch.testing.assert_close(part, whole[:, episodes], rtol=0, atol=1e-12)


def gradient(run: Learner, batch) -> torch.Tensor:
    """The gradient by the path that training takes: with a huge epsilon Adam's first step is it, times lr / ε."""
    scratch = copy.deepcopy(run)
    scratch.optimizer.param_groups[0].update(lr=1e8, eps=1e8)
    scratch.algorithm = dataclasses.replace(run.algorithm, max_grad_norm=1e9)
    scratch.update(batch, [None])
    return weights(run) - weights(scratch)


@pytest.mark.parametrize("name", ["ppo", "a2c"])
def test_what_the_environment_chose_does_not_train_the_policy_head(name):
    """sb3-contrib#75: garbage where nothing is masked in leaves loss and gradients as they were."""
    run = Learner(task(), 0, {"name": "gru", "hidden": 12}, Algorithm(name=name, batch=16))
    batch = run.credit(rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16)))
    before = gradient(run, batch)
    batch.advantages = torch.where(batch.controllable, batch.advantages, 7.0)
    batch.log_probs = torch.where(batch.controllable, batch.log_probs, -3.0)
    assert torch.equal(gradient(run, batch), before)
    batch.advantages = batch.advantages + 1.0
    assert not torch.equal(gradient(run, batch), before)


def test_the_surrogates_gradient_stops_beyond_the_clip_on_one_side_only():
    for advantage, log_ratio in itertools.product((1.0, -1.0), (-0.5, -0.1, 0.1, 0.5)):
        x = torch.tensor(log_ratio, requires_grad=True)
        ppo_surrogate(x, torch.tensor(advantage), 0.2).backward()
        moved_far_enough = (advantage > 0 and log_ratio > math.log(1.2)) or (
            advantage < 0 and log_ratio < math.log(0.8)
        )
        assert float(x.grad) == pytest.approx(0.0 if moved_far_enough else advantage * math.exp(log_ratio))


def test_the_last_step_has_a_gradient():
    """PufferLib#363: the last advantage of an episode is always 0."""
    run = learner()
    played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 64))
    batch = run.credit(played)
    assert float(batch.advantages[-1].abs().min()) > 0.0
    torch.testing.assert_close(batch.targets[-1], played.accepted)


@pytest.mark.parametrize(("credit", "gamma"), [("broadcast", 1.0), ("discounted", 0.99)])
def test_credit_schemes(credit, gamma):
    played = None
    for name in ("a2c", "ppo"):
        run = Learner(
            task(), 0, {"name": "gru", "hidden": 12}, Algorithm(name=name, credit=credit, batch=16, normalize=False)
        )
        played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16))
        batch = run.credit(played)
        steps_left = torch.arange(5, -1, -1)[:, None]
        if name == "a2c" or credit == "broadcast":
            torch.testing.assert_close(batch.targets, gamma**steps_left * played.accepted)
        torch.testing.assert_close(batch.advantages, batch.targets - played.values)


def test_extreme_logits_stay_finite():
    """trl#7251: 0 · −∞ in an entropy."""
    run = learner()
    batch = run.credit(rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16)))
    with torch.no_grad():
        run.policy.policy_head.bias += torch.tensor([1e4, -1e4], dtype=torch.float64)
    assert torch.isfinite(gradient(run, batch)).all()
    assert all(math.isfinite(figure) for figure in run.update(batch, [None]).values())


def test_shaping_changes_the_credit_and_not_the_success():
    plain, shaped = learner(), learner(shaping="oracle")
    figures = plain.iterate(), shaped.iterate()
    assert figures[0]["success"] == figures[1]["success"]
    assert not torch.equal(weights(plain), weights(shaped))
    with pytest.raises(ValueError, match="broadcast changes nothing"):
        learner(shaping="oracle", credit="broadcast")


# --- auxiliaries ------------------------------------------------------------------------------------------------------


def test_the_state_auxiliary_learns_the_state():
    run = learner(auxiliary="state", batch=64)
    before = run.iterate()["auxiliary_loss"]
    for _ in range(120):
        after = run.iterate()["auxiliary_loss"]
    assert after < 0.5 * before


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_the_emission_auxiliary_leaves_out_the_agents_own_symbols(beta):
    run = learner(auxiliary="emission", beta=beta)
    played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16))
    predicted = run.policy.auxiliary_head(run.policy.encoder(played.observations))
    assert predicted.shape[-1] == 2 + (4 if beta else 0)

    def loss() -> torch.Tensor:
        return auxiliary_loss(predicted, auxiliary_targets("emission", played, run.task))

    before = loss()
    played.symbols = torch.where(played.controllable, 1 - played.symbols, played.symbols)
    torch.testing.assert_close(loss(), before)
    played.symbols = 1 - played.symbols
    assert not torch.allclose(loss(), before)


def test_the_emission_auxiliary_predicts_the_next_colour_and_not_the_present_one():
    run = learner(auxiliary="emission", beta=1.0)
    played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16))
    # A head that is certain of the colour of t + 1 has no colour loss.
    certain = torch.zeros(6, 16, 2 + 4, dtype=torch.float64)
    certain[:-1, :, 2:].scatter_(-1, played.colours[1:, :, None], 1e3)
    targets = auxiliary_targets("emission", played, run.task)
    assert float(auxiliary_loss(certain, targets)) == pytest.approx(math.log(2))


def test_the_emission_auxiliary_of_a_single_step_has_nothing_to_predict():
    run = learner(auxiliary="emission", beta=1.0)
    played = rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 16, 1))
    targets = auxiliary_targets("emission", played, run.task)
    assert float(auxiliary_loss(torch.ones(1, 16, 2 + 4, dtype=torch.float64), targets)) == 0.0


# --- what a run depends on ----------------------------------------------------------------------------------------------

CASES = [(encoder, name) for encoder in ENCODERS for name in ("ppo", "a2c")]


class Updates:
    """A job of the fleet: five updates, one at a time."""

    def __init__(self, run: Learner, updates: int = 5):
        self.run, self.updates = run, updates

    @property
    def remaining(self) -> float:
        return self.updates - self.run.iteration

    def advance(self) -> bool:
        self.run.iterate()
        return self.remaining == 0


def fail(job, error):
    pytest.fail(f"a run failed: {error}")


@pytest.mark.parametrize(("encoder", "name"), CASES)
def test_fleet_is_solo_bit_for_bit(encoder, name):
    """A run's result does not depend on what it is batched with: other seeds, other tasks, other sizes, other threads."""

    def make(task_name: str, seed: int) -> Learner:
        return Learner(
            task(task_name),
            seed,
            {"name": encoder, "hidden": 12, **SMALL[encoder]},
            Algorithm(name=name, batch=16, minibatches=2),
        )

    alone = make("mod_3", 1)
    for _ in range(5):
        alone.iterate()
    for company in ([], [("mod_3", 0)], [("mined_ean", 1), ("mod_5_hold", 1), ("parity", 7)]):
        run = make("mod_3", 1)
        run_jobs([Updates(run), *(Updates(make(*other)) for other in company)], threads=2, on_error=fail)
        assert torch.equal(weights(run), weights(alone))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_n_and_n_are_2n_across_a_checkpoint(dtype, tmp_path):
    """rsl_rl#221: a resumed run goes on as if nothing had happened, optimizer and random streams included."""
    options = dict(auxiliary="state", minibatches=4, dtype=dtype, beta=0.3)
    straight = learner(**options)
    for _ in range(6):
        straight.iterate()
    first = learner(**options)
    for _ in range(3):
        first.iterate()
    torch.save(first.state_dict(), tmp_path / "checkpoint.pt")
    second = learner(**options)
    second.load_state_dict(torch.load(tmp_path / "checkpoint.pt", weights_only=True))
    for _ in range(3):
        second.iterate()
    assert second.iteration == 6
    assert torch.equal(weights(second), weights(straight))


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    runs = [learner(seed=seed) for seed in (0, 0, 1)]
    for run in runs:
        run.iterate()
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert not torch.allclose(weights(runs[0]), weights(runs[2]))


def test_nothing_global_is_seeded_or_drawn_from():
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    run = learner(minibatches=2)
    run.iterate()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


def test_weights_are_drawn_from_the_seed_also_when_threads_draw_at_once():
    expected = [weights(learner(seed=seed)) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            drawn = list(pool.map(lambda seed: weights(learner(seed=seed)), range(4)))
            assert all(torch.equal(a, b) for a, b in zip(expected, drawn))


def test_an_auxiliary_does_not_change_the_initial_policy():
    plain, privileged = learner().policy.state_dict(), learner(auxiliary="state").policy.state_dict()
    assert all(torch.equal(plain[name], privileged[name]) for name in plain)


def test_divergence_stops_before_the_weights():
    run = learner()
    run.iterate()
    with torch.no_grad():
        run.policy.value_head.bias.fill_(torch.nan)
    before = run.policy.encoder.cell.weight_hh_l0.detach().clone()
    with pytest.raises(Diverged, match="iteration 1"):
        run.iterate()
    assert torch.equal(run.policy.encoder.cell.weight_hh_l0, before)
    assert run.iteration == 1


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ppo", "a2c"])
def test_a_task_whose_state_is_the_last_symbol_is_learned(name):
    """mod_2: what is paid at T is what was chosen just before (PufferLib#478 for the terminal reward)."""
    run = Learner(task("mod_2"), 0, {"name": "gru", "hidden": 32}, Algorithm(name=name))
    success = [run.iterate()["success"] for _ in range(150)]
    # Uncontrolled last steps cap it at .75; random play has .5.
    assert np.mean(success[-20:]) > 0.7


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "dqn"}, "unknown algorithm 'dqn'"),
        ({"credit": "mc"}, "broadcast"),
        ({"batch": 0}, "algorithm.batch is 0"),
        ({"minibatches": 65}, "more than the 64 episodes"),
        ({"gamma": 1.2}, "gamma is 1.2"),
        ({"learning_rate": 0.0}, "above 0"),
    ],
)
def test_impossible_algorithms(options, says):
    with pytest.raises(ValueError, match=says):
        Algorithm(**options)

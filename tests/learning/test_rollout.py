"""Rollouts against the environment, and evaluation against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from rlstate.automata import zoo
from rlstate.control import EmissionChannel, PartialControlDFAVectorEnv, Stream, Task
from rlstate.learning.evaluation import evaluate
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import random_play, rollout
from rlstate.learning.trainer import Learner


def task(name="mod_5", horizon=7, p_control=0.5, beta=0.0, colouring="identity") -> Task:
    dfa = zoo.make(name)
    return Task(name, dfa, horizon, p_control, EmissionChannel.of(dfa, beta, colouring))


@pytest.mark.parametrize(
    ("name", "beta", "colouring"),
    [("mod_5", 0.0, "identity"), ("mod_5", 0.4, "identity"), ("mined_ean", 1.0, "acceptance")],
)
@pytest.mark.parametrize("longer", [1, 4])
def test_a_rollout_is_what_the_environment_does(name, beta, colouring, longer):
    """The same draws and the same actions give the same observations, symbols, states and rewards, also at 4T."""
    world = task(name, beta=beta, colouring=colouring)
    policy = Learner(world, 0, {"name": "gru", "hidden": 8}).policy
    steps, batch = world.horizon * longer, 33
    draws = world.draw(5, Stream.TRAIN, 2, batch, steps)
    played = rollout(policy, world, draws)
    env = PartialControlDFAVectorEnv(
        batch, task=world.dfa, horizon=steps, p_control=0.5, beta=beta, colouring=colouring,
        clock_horizon=world.horizon, reveal_state=True,
    )  # fmt: skip
    observation, _ = env.reset(options={"draws": draws})
    for t in range(steps):
        np.testing.assert_array_equal(observation, played.observations[t].numpy())
        np.testing.assert_array_equal(env.get_state(), played.states[t].numpy())
        # At uncontrollable steps the environment must not listen.
        action = np.where(draws.controllable[t], played.symbols[t].numpy(), 0)
        observation, reward, terminated, truncated, _ = env.step(action)
    np.testing.assert_array_equal(reward, played.accepted.numpy())
    assert terminated.all()
    assert not truncated.any()


def test_actions_are_sampled_from_the_policy():
    world = task("mined_ean", horizon=4)
    policy = Learner(world, 0, {"name": "gru", "hidden": 8}).policy
    with torch.no_grad():
        policy.policy_head.weight.zero_()
        policy.policy_head.bias.copy_(torch.log(torch.arange(1, 11) / 55.0))
    played = rollout(policy, world, world.draw(0, Stream.TRAIN, 0, 20_000))
    chosen = played.symbols[played.controllable].numpy()
    observed = np.bincount(chosen, minlength=10)
    expected = len(chosen) * np.arange(1, 11) / 55
    assert ((observed - expected) ** 2 / expected).sum() < 27.9  # chi-square, 9 degrees of freedom, p = .001
    forced = np.bincount(played.symbols[~played.controllable].numpy(), minlength=10)
    assert ((forced - forced.mean()) ** 2 / forced.mean()).sum() < 27.9
    greedy = rollout(policy, world, world.draw(0, Stream.TRAIN, 0, 50), greedy=True)
    assert (greedy.symbols[greedy.controllable] == 9).all()


def test_muting_blanks_the_channel_and_nothing_else():
    world = task(beta=1.0)
    policy = Learner(world, 0, {"name": "gru", "hidden": 8}).policy
    draws = world.draw(0, Stream.TRAIN, 0, 64)
    open_, muted = rollout(policy, world, draws), rollout(policy, world, draws, mute=True)
    assert (muted.observations[..., world.layout.colour] == 0).all()
    assert (muted.colours == -1).all()
    assert (open_.colours == open_.states[:-1]).all()
    assert torch.equal(open_.controllable, muted.controllable)


def test_random_play_is_uniform_and_shows_the_same_observations():
    world = task("mod_3", beta=0.5)
    draws = world.draw(0, Stream.CAPACITY, 0, 4096)
    played = random_play(world, draws, torch.zeros(()))
    assert torch.equal(played.symbols, torch.from_numpy(draws.random_symbol))
    assert float(played.accepted.mean()) == pytest.approx(world.oracle.random, abs=4 * 0.5 / 64)


class KnowsTheState(nn.Module):
    """Features are the one-hot of the true state and the steps remaining, recomputed from the symbols seen."""

    def __init__(self, world: Task, steps: int):
        super().__init__()
        self.world, self.steps = world, steps
        self.out_features = world.dfa.n_states * (steps + 1)
        self.anchor = nn.Parameter(torch.zeros(1))

    def forward(self, observations):
        layout = self.world.layout
        shown = observations[..., layout.symbol].argmax(-1).numpy()
        state = np.full(shown.shape[1], self.world.dfa.start)
        out = torch.zeros(*shown.shape, self.out_features)
        for t, symbols in enumerate(shown):
            if t:
                state = self.world.dfa.transitions[state, symbols]
            out[t, torch.arange(len(state)), torch.from_numpy(state * (self.steps + 1) + self.steps - t)] = 1.0
        return out


@pytest.mark.parametrize(("name", "p_control"), [("mod_5", 0.5), ("workflow_reconcile", 0.3), ("no_three_zeros", 0.7)])
def test_the_optimal_policy_has_val_n_one_and_a_constant_one_gains_little(name, p_control):
    world = task(name, p_control=p_control)
    steps = world.horizon
    policy = Policy(KnowsTheState(world, steps), world.dfa.n_symbols)
    with torch.no_grad():
        values = np.asarray(world.oracle.q_value)  # [T + 1, Q, A]
        policy.policy_head.weight.copy_(
            torch.from_numpy(np.nan_to_num(values).transpose(2, 1, 0).reshape(world.dfa.n_symbols, -1))
        )
        policy.policy_head.bias.zero_()
    best = evaluate(policy, world, 0)
    assert best.val_n == pytest.approx(1.0, abs=4 * best.val_n_se)
    assert best.gain == pytest.approx(1.0, abs=4 * best.gain_se)


def test_evaluation_does_not_depend_on_how_it_is_split(monkeypatch):
    world = task()
    policy = Learner(world, 0, {"name": "gru", "hidden": 8}, dtype=torch.float64).policy
    whole = evaluate(policy, world, 0, episodes=300)
    monkeypatch.setattr("rlstate.learning.evaluation._STEPS_AT_ONCE", 7 * 64)
    assert evaluate(policy, world, 0, episodes=300) == whole
    assert evaluate(policy, world, 0, episodes=300, ood=True).optimal == world.ood_oracle.optimal


def test_random_play_has_no_gain():
    world = task("parity")
    policy = Learner(world, 0, {"name": "gru", "hidden": 8}).policy
    with torch.no_grad():
        policy.policy_head.weight.zero_()
        policy.policy_head.bias.zero_()
    played = evaluate(policy, world, 0, greedy=False)
    assert abs(played.gain) < 4 * played.gain_se
    assert played.val_n == pytest.approx(2 / 3, abs=4 * played.val_n_se)


def test_a_task_that_means_nothing_is_refused():
    dfa = zoo.make("parity")
    for options, says in (({"horizon": 0}, "horizon"), ({"p_control": 1.5}, "p_control")):
        with pytest.raises(ValueError, match=says):
            Task("parity", dfa, **{"horizon": 4, **options})
    from rlstate.automata import DFA

    with pytest.raises(ValueError, match="cannot be reached"):
        Task("never", DFA([[0, 0], [1, 1]], [False, True]), 4)

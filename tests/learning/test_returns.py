"""Credit against brute force and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from rlstate.automata import zoo
from rlstate.control import Oracle, Stream, Task, generator
from rlstate.learning.returns import (
    broadcast,
    gae,
    normalized,
    reward_to_go,
    shaping_potential,
    shaping_rewards,
    terminal_rewards,
)

T, B = 7, 5
GRID = list(itertools.product([0.0, 0.5, 0.9, 0.99, 1.0], [0.0, 0.3, 0.95, 1.0]))


def values(seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(generator(seed, Stream.CONTROL).normal(size=(T, B)))


def accepted() -> torch.Tensor:
    return torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0], dtype=torch.float64)


def brute_gae(rewards: torch.Tensor, value: torch.Tensor, gamma: float, lam: float) -> torch.Tensor:
    """The definition: the (1 − λ)-weighted mixture of n-step advantages, written as Σ (γλ)^k δ_{t+k}."""
    extended = torch.cat([value, torch.zeros(1, value.shape[1], dtype=value.dtype)])
    out = torch.zeros_like(value)
    for t in range(len(value)):
        for k in range(len(value) - t):
            delta = rewards[t + k] + gamma * extended[t + k + 1] - extended[t + k]
            out[t] += (gamma * lam) ** k * delta
    return out


@pytest.mark.parametrize(("gamma", "lam"), GRID)
def test_gae_is_its_definition_on_terminal_only_reward(gamma, lam):
    rewards, value = terminal_rewards(accepted(), T), values()
    torch.testing.assert_close(gae(rewards, value, gamma, lam), brute_gae(rewards, value, gamma, lam))
    # The last target is the reward, whatever λ is.
    torch.testing.assert_close(gae(rewards, value, gamma, lam)[-1] + value[-1], accepted())


def test_gae_at_lambda_one_is_the_return_minus_the_value():
    rewards, value = terminal_rewards(accepted(), T), values()
    expected = 0.9 ** torch.arange(T - 1, -1, -1, dtype=torch.float64)[:, None] * accepted() - value
    torch.testing.assert_close(gae(rewards, value, 0.9, 1.0), expected)


def test_gae_at_lambda_zero_keeps_the_terminal_reward():
    """ray#57683: a one-step advantage that loses the reward of the last step."""
    rewards, value = terminal_rewards(accepted(), T), values()
    torch.testing.assert_close(gae(rewards, value, 0.9, 0.0)[-1], accepted() - value[-1])


def test_advantages_do_not_leak_between_episodes():
    """skrl#449: changing one episode leaves the others' advantages as they are."""
    rewards, value = terminal_rewards(accepted(), T), values()
    before = gae(rewards, value, 0.99, 0.95)
    value[:, 2] += 3.0
    rewards[:, 2] -= 1.0
    after = gae(rewards, value, 0.99, 0.95)
    others = [0, 1, 3, 4]
    assert torch.equal(before[:, others], after[:, others])
    assert not torch.allclose(before[:, 2], after[:, 2])


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.99, 1.0])
def test_reward_to_go_by_brute_force(gamma):
    rewards = values(3)
    expected = torch.stack([sum(gamma**k * rewards[t + k] for k in range(T - t)) for t in range(T)])
    torch.testing.assert_close(reward_to_go(rewards, gamma), expected)


def test_broadcast_is_reward_to_go_for_terminal_reward_without_discount():
    rewards = terminal_rewards(accepted(), T)
    torch.testing.assert_close(broadcast(rewards).contiguous(), reward_to_go(rewards, 1.0))
    mixed = values(4)
    torch.testing.assert_close(broadcast(mixed)[0], reward_to_go(mixed, 1.0)[0])
    assert not torch.allclose(broadcast(mixed)[3], reward_to_go(mixed, 1.0)[3])


# --- shaping ----------------------------------------------------------------------------------------------------------


def played_states(task: Task) -> torch.Tensor:
    draws = task.draw(0, Stream.TRAIN, 0, B)
    states = np.zeros((task.horizon + 1, B), np.int64)
    for t in range(task.horizon):
        states[t + 1] = task.dfa.transitions[states[t], draws.random_symbol[t]]
    return torch.from_numpy(states)


@pytest.mark.parametrize(("gamma", "lam"), GRID)
@pytest.mark.parametrize("name", ["mod_3", "workflow_api"])
def test_shaping_leaves_gae_as_it_is(name, gamma, lam):
    """GAE(r + F, V − Φ) ≡ GAE(r, V): a critic that knows the potential sees nothing new."""
    task = Task(name, zoo.make(name), T)
    states = played_states(task)
    shaping = shaping_rewards(shaping_potential("oracle", task.oracle), states, gamma)
    potential = torch.from_numpy(np.asarray(task.oracle.value)[np.arange(T, 0, -1)[:, None], states[:-1].numpy()])
    rewards, value = terminal_rewards(accepted(), T), values()
    torch.testing.assert_close(gae(rewards + shaping, value - potential, gamma, lam), gae(rewards, value, gamma, lam))
    torch.testing.assert_close(reward_to_go(rewards + shaping, gamma), reward_to_go(rewards, gamma) - potential)


def test_shaping_telescopes_to_the_start_potential():
    """Σ γᵗ F_t = −Φ(s₀): under broadcast it is a constant, so it cannot help there; and Φ(terminal) = 0 whatever q_T is."""
    task = Task("mod_5", zoo.make("mod_5"), T)
    shaping = shaping_rewards(shaping_potential("oracle", task.oracle), played_states(task), 0.9)
    total = (0.9 ** torch.arange(T, dtype=torch.float64)[:, None] * shaping).sum(0)
    torch.testing.assert_close(total, torch.full((B,), -float(Oracle(task.dfa, T, 0.5).optimal), dtype=torch.float64))


def test_on_parity_the_oracles_value_says_nothing_before_the_last_step():
    """Both states are worth .75 until then: the paper's potential (§5.2) adds a constant, the acceptance potential the state."""
    task = Task("parity", zoo.make("parity"), T)
    states, gamma = played_states(task), 0.9
    oracle = shaping_rewards(shaping_potential("oracle", task.oracle), states, gamma)
    torch.testing.assert_close(oracle[:-1], torch.full((T - 1, B), (gamma - 1) * 0.75, dtype=torch.float64))
    torch.testing.assert_close(oracle[-1], torch.full((B,), -0.75, dtype=torch.float64))
    even = (states == 0).double()
    acceptance = shaping_rewards(shaping_potential("acceptance", task.oracle), states, gamma)
    torch.testing.assert_close(acceptance[:-1], gamma * even[1:-1] - even[:-2])
    torch.testing.assert_close(acceptance[-1], -even[-2])
    assert shaping_potential("none", task.oracle) is None
    with pytest.raises(ValueError, match="'value' is unknown"):
        shaping_potential("value", task.oracle)


# --- normalization ----------------------------------------------------------------------------------------------------


def test_normalization_is_over_the_chosen_steps():
    where = torch.rand(T, B, generator=torch.Generator().manual_seed(0)) < 0.5
    advantages = values(5)
    chosen = normalized(advantages, where)[where]
    assert abs(float(chosen.mean())) < 1e-9
    assert float(chosen.std(unbiased=False)) == pytest.approx(1.0, abs=1e-4)
    garbage = torch.where(where, advantages, 1e6)
    torch.testing.assert_close(normalized(garbage, where)[where], chosen)


@pytest.mark.parametrize("level", [0.1, 0.7, 1 / 3, 12.3])
def test_equal_advantages_give_no_push(level):
    """In float32 the mean of equal numbers rounds; dividing by a deviation of 1e-8 would push every action (SB3#325)."""
    advantages = torch.full((12, 64), level, dtype=torch.float32)
    where = torch.rand(12, 64, generator=torch.Generator().manual_seed(1)) < 0.5
    assert float(normalized(advantages, where).abs().max()) < 1e-6


def test_no_or_one_controllable_step_is_finite():
    """SB3#325: the deviation of one number is not NaN."""
    one = torch.zeros(T, B, dtype=torch.bool)
    assert torch.isfinite(normalized(values(), one)).all()
    one[2, 2] = True
    assert torch.isfinite(normalized(values(), one)).all()

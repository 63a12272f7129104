"""Credit: from the rewards of whole episodes to the number each step is trained on.

All of it assumes that step T − 1 terminates (V(s_T) := 0): episodes always last exactly T steps.
Rewards and values are float[T, B]; so are the results.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlstate.control import Oracle


def terminal_rewards(accepted: Tensor, steps: int) -> Tensor:
    """The task's own reward: `accepted` float[B] at the last step, 0 before."""
    rewards = accepted.new_zeros(steps, len(accepted))
    rewards[-1] = accepted
    return rewards


def reward_to_go(rewards: Tensor, gamma: float) -> Tensor:
    """G_t = Σ_{k ≥ t} γ^{k−t} r_k."""
    return _discounting(len(rewards), gamma, rewards) @ rewards


def broadcast(rewards: Tensor) -> Tensor:
    """G₀ with γ = 1, the same number at every step (the paper's broadcast scheme, Appendix B)."""
    return rewards.sum(0).expand_as(rewards)


def gae(rewards: Tensor, values: Tensor, gamma: float, lam: float) -> Tensor:
    """Generalized advantage estimation (Schulman et al., 2016, eq. 16): A_t = Σ_{k ≥ t} (γλ)^{k−t} δ_k."""
    next_values = torch.cat([values[1:], torch.zeros_like(values[:1])])
    return _discounting(len(rewards), gamma * lam, rewards) @ (rewards + gamma * next_values - values)


def _discounting(steps: int, gamma: float, like: Tensor) -> Tensor:
    """float[T, T] with γ^{k−t} at (t, k ≥ t): one product instead of a loop over steps."""
    t = torch.arange(steps, device=like.device)
    return torch.where(t >= t[:, None], gamma ** (t - t[:, None]).clamp(min=0).to(like.dtype), 0.0).to(like.dtype)


def shaping_potential(oracle: Oracle) -> Tensor:
    """float64[T + 1, Q]: Φ at step t = 0…T, the oracle's value at the T − t steps remaining, and 0 at the last.

    The terminal potential is 0 whatever the state is (Grześ, 2017): keeping Φ(q_T) would be a second terminal reward.
    """
    potential = np.array(oracle.value[np.arange(oracle.horizon, -1, -1)])
    potential[-1] = 0.0
    return torch.from_numpy(potential)


def shaping_rewards(potential: Tensor, states: Tensor, gamma: float) -> Tensor:
    """float[T, B]: oracle-potential shaping F_t = γΦ(q_{t+1}) − Φ(q_t) for states int[T + 1, B] (paper §5.2; Ng et al., 1999).

    `gamma` must be the return's own.
    """
    phi = potential.gather(1, states)
    return gamma * phi[1:] - phi[:-1]


def normalized(advantages: Tensor, where: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Zero mean and unit (population) deviation over the steps in `where` bool[T, B], the only ones that push a policy.

    A batch whose advantages are all equal must give no push. In float32 their mean rounds, and mean and deviation are then
    of the size of that error, whose ratio is of order one: hence double precision and an epsilon far above it.
    """
    x, weights = advantages.double(), where.double()
    weights = weights / weights.sum().clamp(min=1.0)
    mean = (weights * x).sum()
    deviation = (weights * (x - mean).square()).sum().sqrt()
    return ((x - mean) / (deviation + epsilon)).to(advantages.dtype)

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


SHAPING = ("none", "oracle", "acceptance")


def shaping_potential(name: str, oracle: Oracle) -> Tensor | None:
    """float64[T + 1, Q]: Φ at step t = 0…T; None for `none`.

    `oracle`: the oracle's value at the T − t steps remaining (paper §5.2). `acceptance`: 1 where the state accepts, whatever
    remains; a control, which tells the state where the oracle's value does not (on parity both states are worth the same until
    the last step). The terminal potential is 0 whatever the state is (Grześ, 2017): keeping Φ(q_T) would be a second terminal
    reward.

    Raises:
        ValueError: another name.
    """
    if name not in SHAPING:
        raise ValueError(f"shaping.name={name!r} is unknown; it can be {', '.join(SHAPING)}")
    if name == "none":
        return None
    remaining = np.arange(oracle.horizon, -1, -1)
    potential = np.array(oracle.value[remaining if name == "oracle" else np.zeros_like(remaining)])
    potential[-1] = 0.0
    return torch.from_numpy(potential)


def shaping_rewards(potential: Tensor, states: Tensor, gamma: float) -> Tensor:
    """float[T, B]: potential-based shaping F_t = γΦ(q_{t+1}) − Φ(q_t) for states int[T + 1, B] (paper §5.2; Ng et al., 1999).

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

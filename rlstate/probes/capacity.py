"""Supervised capacity: could this encoder track the state at all? (paper §4; docs/definitions.md)

The same encoder with a linear head, trained to predict q_t at every step of uniform random play. It is an upper bound, so it
should fail only where the encoder does; four things make the optimization easy without ever showing more than T steps:

* lengths grow from 3 steps to T, each time the last steps are mostly right (a sum modulo 10 is not found at once);
* half of the episodes show the clock of a longer episode, up to 4T. Otherwise a clock that stands still for many steps is
  never seen in training, and a network that tracks the state perfectly at T fails at 4T for that reason alone;
* recurrent encoders see noise on their observations, so their states become attractors instead of drifting with length;
* a large learning rate for them, with cosine decay.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlstate.control import Stream, generator
from rlstate.control.task import Task
from rlstate.learning.objectives import Auxiliary
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import random_play
from rlstate.learning.trainer import new_policy

ENOUGH = 0.99  # accuracy at T and at 4T, at which training stops early
EVALUATE_EVERY = 50  # iterations
PATIENCE = 1000  # iterations without an improvement of both accuracies together by .005
START = 3  # steps
LONGER = 0.9  # accuracy on the last two steps, from which episodes grow by one step
NOISE = 0.4  # root-mean-square length of the noise on one observation, in which a one-hot has length 1
_CHECK_EPISODES = 256
_CHECK, _HELD_OUT = 0, 2**31  # iterations of Stream.CAPACITY; training takes 1, 2, …


@dataclass(frozen=True)
class Capacity:
    """Accuracy of predicting q_t on held-out random play, over all steps at T and over steps t ≥ T at 4T."""

    accuracy: float
    accuracy_se: float
    ood_accuracy: float
    ood_accuracy_se: float
    saturated: bool
    threshold: float
    iterations: int  # that were done
    episodes: int  # held out, each

    def summary(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def supervised_capacity(
    task: Task,
    encoder: dict[str, Any],
    seed: int,
    *,
    iterations: int = 3000,
    batch: int = 128,
    learning_rate: float | None = None,
    threshold: float = 0.95,
    episodes: int = 1024,
    on_iteration: Callable[[int], None] | None = None,
    device: str | torch.device = "cpu",
) -> Capacity:
    """The capacity of `encoder` (name and parameters, as for a learner) on `task`, observed through its emission channel.

    Deterministic in its arguments. Stops early when both accuracies are at least .99, or nothing improves any more; the
    weights that did best on a check set are then scored on other episodes. `learning_rate`: by default 1e-2 for recurrent
    encoders and 1e-3 for others. `on_iteration(i)` is called before each iteration; what it raises ends the training.

    Raises:
        ValueError: fewer than 1 iteration, episode of a batch, or fewer than 2 held-out episodes; an unknown encoder.
    """
    if iterations < 1 or batch < 1 or episodes < 2:
        raise ValueError(
            f"capacity with iterations={iterations}, batch={batch}, episodes={episodes} cannot be measured: give at least "
            "1, 1 and 2."
        )
    model = new_policy(task, seed, encoder, Auxiliary("state")).to(device)
    recurrent = any(isinstance(module, nn.RNNBase) for module in model.encoder.modules())
    peak = learning_rate or (1e-2 if recurrent else 1e-3)
    noise = NOISE / math.sqrt(task.layout.width) if recurrent else 0.0
    optimizer = torch.optim.Adam(model.parameters(), peak, fused=True)

    length = min(START, task.horizon)
    best, best_at, best_weights = -1.0, 0, copy.deepcopy(model.state_dict())
    for i in range(1, iterations + 1):
        if on_iteration is not None:
            on_iteration(i)
        for group in optimizer.param_groups:
            group["lr"] = peak * (0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * i / iterations)))
        observations, states = _batch(task, seed, i, batch, length, noise, next(model.parameters()))
        scores = _scores(model, observations)
        loss = F.cross_entropy(scores.flatten(0, 1), states.flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not torch.isfinite(norm):
            break  # the weights are still those before this update, and the best ones are kept
        optimizer.step()

        if length < task.horizon:
            if i % 5 == 0 and float((scores.argmax(-1) == states)[-2:].float().mean()) > LONGER:
                length += 1
            # An encoder that cannot get past a length must still see all of T: in the third quarter lengths grow anyway.
            due = min(1.0, max(0.0, 4.0 * i / iterations - 2.0))
            length = max(length, math.floor(due * task.horizon))
        elif i % EVALUATE_EVERY == 0:
            at_T, at_4T = (float(c.mean()) for c in _correct(model, task, seed, _CHECK, _CHECK_EPISODES))
            if at_T + at_4T > best + 0.005:
                best, best_at, best_weights = at_T + at_4T, i, copy.deepcopy(model.state_dict())
            if min(at_T, at_4T) >= ENOUGH or i - best_at >= PATIENCE:
                break
    if best_at:  # otherwise nothing was checked: the last weights are all there is
        model.load_state_dict(best_weights)

    (accuracy, accuracy_se), (ood, ood_se) = map(_mean_se, _correct(model, task, seed, _HELD_OUT, episodes))
    return Capacity(accuracy, accuracy_se, ood, ood_se, min(accuracy, ood) >= threshold, threshold, i, episodes)


def _batch(
    task: Task, seed: int, iteration: int, batch: int, steps: int, noise: float, like: Tensor
) -> tuple[Tensor, Tensor]:
    """Observations float[steps, B, I] and states int[steps, B] of the first `steps` steps of random play."""
    played = random_play(task, task.draw(seed, Stream.CAPACITY, iteration, batch, steps), like)
    rng = generator(seed, Stream.CAPACITY, iteration)
    horizon = task.horizon
    horizons = rng.integers(horizon, 4 * horizon, batch, endpoint=True)
    horizons[: batch // 2] = horizon
    clock = task.layout.clock_value(horizons - np.arange(steps)[:, None])
    played.observations[..., task.layout.clock] = torch.from_numpy(clock).to(like)
    if noise:
        disturbance = rng.standard_normal(tuple(played.observations.shape), dtype=np.float32)
        played.observations += noise * torch.from_numpy(disturbance).to(like)
    return played.observations, played.states[:-1]


def _scores(model: Policy, observations: Tensor) -> Tensor:
    assert model.auxiliary_head is not None
    return model.auxiliary_head(model.encoder(observations))


@torch.no_grad()
def _correct(model: Policy, task: Task, seed: int, key: int, episodes: int) -> tuple[Tensor, Tensor]:
    """bool[T, B] at T and bool[3T, B] at 4T, steps t ≥ T: where q_t is predicted."""
    found = []
    for horizon in (task.horizon, 4 * task.horizon):
        draws = task.draw(seed, Stream.CAPACITY, key, episodes, horizon)
        played = random_play(task, draws, next(model.parameters()))
        found.append(_scores(model, played.observations).argmax(-1) == played.states[:-1])
    return found[0].double(), found[1][task.horizon :].double()


def _mean_se(correct: Tensor) -> tuple[float, float]:
    """The mean, and its standard error with episodes independent."""
    by_episode = correct.mean(0)
    return float(by_episode.mean()), float(by_episode.std() / math.sqrt(len(by_episode)))

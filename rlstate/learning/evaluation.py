"""How well a policy plays, against the oracle: what `val_n` and `gain` are, with their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlstate.control import Oracle, Stream
from rlstate.control.task import Task
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import rollout

# Rollouts keep features and logits of every step: play in parts that stay small however long the episodes are.
_STEPS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Evaluation:
    """Acceptance over `episodes` episodes and the oracle's values for the same horizon and `p_control`.

    `val_n` = acceptance / optimal, not clipped; `gain` = (acceptance − random) / (optimal − random). Standard errors are
    binomial. Where random play is already optimal `gain` is undefined (None).
    """

    acceptance: float
    episodes: int
    optimal: float
    random: float

    @property
    def acceptance_se(self) -> float:
        return math.sqrt(max(self.acceptance * (1.0 - self.acceptance), 0.0) / self.episodes)

    @property
    def val_n(self) -> float | None:
        return self.acceptance / self.optimal if self.optimal > 0.0 else None

    @property
    def val_n_se(self) -> float | None:
        return self.acceptance_se / self.optimal if self.optimal > 0.0 else None

    @property
    def gain(self) -> float | None:
        spread = self.optimal - self.random
        return (self.acceptance - self.random) / spread if spread > 1e-9 else None

    @property
    def gain_se(self) -> float | None:
        spread = self.optimal - self.random
        return self.acceptance_se / spread if spread > 1e-9 else None

    def summary(self) -> dict[str, float | int | None]:
        names = ("acceptance", "acceptance_se", "episodes", "val_n", "val_n_se", "gain", "gain_se")
        return {name: getattr(self, name) for name in names}


def evaluate(
    policy: Policy,
    task: Task,
    seed: int,
    *,
    episodes: int = 4096,
    ood: bool = False,
    greedy: bool = True,
    mute: bool = False,
) -> Evaluation:
    """Play `episodes` fresh episodes, greedily, on a stream of their own; with `ood` at 4T, against the oracle at 4T."""
    horizon = 4 * task.horizon if ood else task.horizon
    oracle: Oracle = task.ood_oracle if ood else task.oracle
    draws = task.draw(seed, Stream.OOD if ood else Stream.EVALUATION, 0, episodes, horizon)
    part = max(1, _STEPS_AT_ONCE // horizon)
    accepted = 0.0
    for start in range(0, episodes, part):
        index = np.arange(start, min(start + part, episodes))
        accepted += float(rollout(policy, task, draws.episodes(index), greedy=greedy, mute=mute).accepted.sum())
    return Evaluation(accepted / episodes, episodes, float(oracle.optimal), float(oracle.random))

"""From figures to a label: perception gap, planning gap or solved (paper Appendix D; docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Thresholds:
    recovery: float = 0.5  # below: the state is not recovered
    val_n: float = 0.85  # below: reward is not near-optimal
    capacity: float = 0.95  # supervised accuracy, at T and at 4T, from which capacity counts as saturated


@dataclass(frozen=True)
class Verdict:
    """`label` is perception_gap, planning_gap, solved or undefined; what qualifies it stands beside it."""

    label: str
    not_learned: bool = False  # all of the runs
    untrained_too: bool = False  # the state is recovered, and from an untrained network as well
    capacity_limited: bool = False
    not_diagnostic: bool = False
    notes: tuple[str, ...] = ()
    idle: tuple[int, int] = (0, 0)  # how many of how many runs have learned nothing

    def __str__(self) -> str:
        """For example ``perception_gap (not_learned, capacity_limited)`` or ``perception_gap (not_learned in 3 of 5)``."""
        beside = [
            name
            for name in ("not_learned", "untrained_too", "capacity_limited", "not_diagnostic")
            if getattr(self, name)
        ]
        if self.idle[0] and not self.not_learned:
            beside.insert(0, "not_learned in {} of {}".format(*self.idle))
        return f"{self.label} ({', '.join(beside)})" if beside else self.label

    def summary(self) -> dict[str, Any]:
        """JSON-able; `text` is the printed form."""
        return {
            "label": self.label,
            "not_learned": self.not_learned,
            "untrained_too": self.untrained_too,
            "capacity_limited": self.capacity_limited,
            "not_diagnostic": self.not_diagnostic,
            "text": str(self),
            "notes": list(self.notes),
        }


def verdict(
    recovery: float | None,
    val_n: float | None,
    not_learned: bool | None = None,
    capacity_saturated: bool | None = None,
    thresholds: Thresholds | None = None,
    diagnostic: bool | None = None,
    untrained: float | None = None,
) -> Verdict:
    """The verdict on one run or on seed-averaged figures; None stands for a figure that is undefined or was not measured.

    A perception gap needs `recovery` alone; planning gap and solved need `val_n` too. `not_learned`: see
    `learned_nothing`. `capacity_limited`: the encoder's capacity does not saturate. `not_diagnostic`: random play is
    (nearly) optimal, so that success says nothing. `untrained_too`: `untrained`, the recovery of the same probe on an
    untrained network's features of the same episodes, reaches the threshold as `recovery` does, so that it is no
    sign of learning.
    """
    thresholds = thresholds or Thresholds()
    notes = []
    if recovery is None:
        label = "undefined"
        notes.append("recovery is undefined: there is next to no state to recover on these rollouts")
    elif recovery < thresholds.recovery:
        label = "perception_gap"
    elif val_n is None:
        label = "undefined"
        notes.append("the state is recovered, but val_n is undefined")
    else:
        label = "planning_gap" if val_n < thresholds.val_n else "solved"
    if not_learned is None:
        notes.append("gain is undefined or was not measured: whether anything was learned is unknown")
    if capacity_saturated is None:
        notes.append("capacity was not measured")
    return Verdict(
        label,
        not_learned=bool(not_learned),
        untrained_too=_recovered(recovery, thresholds) and _recovered(untrained, thresholds),
        capacity_limited=capacity_saturated is False,
        not_diagnostic=diagnostic is False,
        notes=tuple(notes),
    )


def _recovered(recovery: float | None, thresholds: Thresholds) -> bool:
    return recovery is not None and recovery >= thresholds.recovery


def learned_nothing(gain: float | None, gain_se: float | None) -> bool | None:
    """Whether the 95 % interval of a run's gain contains 0, or lies below it, which is no better; None where undefined."""
    return None if gain is None else gain - 1.96 * (gain_se or 0.0) <= 0.0


def seed_averaged(results: Sequence[Mapping[str, Any]], thresholds: Thresholds | None = None) -> Verdict:
    """The verdict on the seeds of one task, from the means of their `recovery` and `val_n` (docs/definitions.md).

    Each result has `recovery`, `val_n`, `gain` and `gain_se`; `capacity_saturated`, `diagnostic` and `untrained_recovery` are
    optional. Seeds in which a figure is None are left out of its mean, with a note where it is `recovery`. Whether something was
    learned is a matter of single runs and is counted: a mean over runs that learned and runs that did not says neither.

    Raises:
        ValueError: no results.
    """
    if not results:
        raise ValueError("there are no results to average: give those of at least one seed.")
    recovery, val_n = _mean(results, "recovery"), _mean(results, "val_n")
    saturated = [r["capacity_saturated"] for r in results if r.get("capacity_saturated") is not None]
    judged = [idle for r in results if (idle := learned_nothing(r.get("gain"), r.get("gain_se"))) is not None]
    found = verdict(
        recovery,
        val_n,
        all(judged) if judged else None,
        all(saturated) if saturated else None,
        thresholds,
        results[0].get("diagnostic"),
        _mean(results, "untrained_recovery"),
    )
    found = replace(found, idle=(sum(judged), len(judged)))
    missing = sum(r.get("recovery") is None for r in results)
    if recovery is None or not missing:
        return found
    note = f"recovery is undefined in {missing} of {len(results)} seeds, which its mean leaves out"
    return replace(found, notes=(*found.notes, note))


def _mean(results: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [r[name] for r in results if r.get(name) is not None]
    return float(np.mean(values)) if values else None

"""From figures to a label: perception gap, planning gap or solved (paper Appendix D; DESIGN §1, §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlstate.statistics import mean_interval


@dataclass(frozen=True)
class Thresholds:
    recovery: float = 0.5  # below: the state is not recovered
    val_n: float = 0.85  # below: reward is not near-optimal
    capacity: float = 0.95  # supervised accuracy, at T and at 4T, from which capacity counts as saturated


@dataclass(frozen=True)
class Verdict:
    """`label` is perception_gap, planning_gap, solved or undefined; what qualifies it stands beside it."""

    label: str
    not_learned: bool = False
    capacity_limited: bool = False
    not_diagnostic: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """For example ``perception_gap (not_learned, capacity_limited)``."""
        beside = [name for name in ("not_learned", "capacity_limited", "not_diagnostic") if getattr(self, name)]
        return f"{self.label} ({', '.join(beside)})" if beside else self.label

    def summary(self) -> dict[str, Any]:
        """JSON-able; `text` is the printed form."""
        return {
            "label": self.label,
            "not_learned": self.not_learned,
            "capacity_limited": self.capacity_limited,
            "not_diagnostic": self.not_diagnostic,
            "text": str(self),
            "notes": list(self.notes),
        }


def verdict(
    recovery: float | None,
    val_n: float | None,
    gain_interval: tuple[float, float] | None = None,
    capacity_saturated: bool | None = None,
    thresholds: Thresholds | None = None,
    diagnostic: bool | None = None,
) -> Verdict:
    """The verdict on one run or on seed-averaged figures; None stands for a figure that is undefined or was not measured.

    A perception gap needs `recovery` alone; planning gap and solved need `val_n` too. `not_learned`: the gain interval
    contains 0, or lies below it, which is no better. `capacity_limited`: the encoder's capacity does not saturate.
    `not_diagnostic`: random play is (nearly) optimal, so that success says nothing.
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
    if gain_interval is None:
        notes.append("gain is undefined or was not measured: whether anything was learned is unknown")
    if capacity_saturated is None:
        notes.append("capacity was not measured")
    return Verdict(
        label,
        not_learned=gain_interval is not None and gain_interval[0] <= 0.0,
        capacity_limited=capacity_saturated is False,
        not_diagnostic=diagnostic is False,
        notes=tuple(notes),
    )


def seed_averaged(
    results: Sequence[Mapping[str, Any]],
    gain_interval: tuple[float, float] | None = None,
    thresholds: Thresholds | None = None,
) -> Verdict:
    """The verdict on the seeds of one task, from the means of their `recovery` and `val_n` (DESIGN §4).

    Each result has `recovery`, `val_n`, `gain` and, for a single seed's interval, `gain_se`; `capacity_saturated` is
    optional. Seeds in which a figure is None are left out of its mean, with a note. `gain_interval`: 95 % over seeds;
    by default bootstrap, for one seed its own ±1.96 standard errors. Raises ValueError for no results.
    """
    if not results:
        raise ValueError("there are no results to average: give those of at least one seed.")
    recovery, val_n = _mean(results, "recovery"), _mean(results, "val_n")
    saturated = [r["capacity_saturated"] for r in results if r.get("capacity_saturated") is not None]
    found = verdict(
        recovery,
        val_n,
        gain_interval or _gain_interval(results),
        all(saturated) if saturated else None,
        thresholds,
        results[0].get("diagnostic"),
    )
    missing = sum(r.get("recovery") is None for r in results)
    if recovery is None or not missing:
        return found
    note = f"recovery is undefined in {missing} of {len(results)} seeds, which its mean leaves out"
    return replace(found, notes=(*found.notes, note))


def _mean(results: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [r[name] for r in results if r.get(name) is not None]
    return float(np.mean(values)) if values else None


def _gain_interval(results: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    gains = [r["gain"] for r in results if r.get("gain") is not None]
    if not gains:
        return None
    if len(gains) == 1:
        (error,) = [r.get("gain_se") or 0.0 for r in results if r.get("gain") is not None]
        return gains[0] - 1.96 * error, gains[0] + 1.96 * error
    _, low, high = mean_interval(gains)
    return low, high

"""Finished runs as a table of text: what `rlstate.train` ends with and `rlstate.report` begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlstate.probes.causal import NO_EXAMPLES
from rlstate.probes.verdict import Thresholds, seed_averaged
from rlstate.statistics import Interval, t_interval

# heading, key in the result, format
COLUMNS = (
    ("val_n", "val_n", "{:.3f}"),
    ("OOD 4T", "ood_n", "{:.3f}"),
    ("probe gap", "probe_gap", "{:+.3f}"),
    ("balanced", "probe_balanced", "{:.3f}"),
    ("recovery", "recovery", "{:.2f}"),
    ("untrained", "untrained_recovery", "{:.2f}"),
    ("selectivity", "selectivity", "{:+.3f}"),
    ("capacity", "capacity_accuracy", "{:.2f}"),
    ("intervention", "intervention_success", "{:.2f}"),
    ("its control", "intervention_control", "{:.2f}"),
)
UNTRAINED_TOO = "the state is recovered from an untrained network as well, so that recovery is no sign of learning"


def table(results: Sequence[Mapping[str, Any]], hashes: bool = False) -> str:
    """The runs' figures, a row a seed; below each group its mean over seeds, the 95 % t interval and the verdict.

    With `hashes`, a group's configuration hash stands with its means (or its only row). Below the table: what is to be known of
    some of the runs, and why a figure is missing.
    """
    lines = [["task", "seed", *(heading for heading, _, _ in COLUMNS), "verdict"]]
    notes: dict[str, list[str]] = {}
    for group in _groups(results):
        for result in group:
            lines.append([
                result["task"], str(result["seed"]),
                *(_cell(result.get(key), form) for _, key, form in COLUMNS), result["verdict"],
            ])  # fmt: skip
            for note in [*result.get("notes", []), *_absent(result)]:
                notes.setdefault(note, []).append(f"{result['task']} {result['seed']}")
        if len(group) > 1:
            intervals = [_interval(group, key) for _, key, _ in COLUMNS]
            lines.append([
                group[0]["task"], "mean",
                *(_cell(mean, form) for (mean, _, _), (_, _, form) in zip(intervals, COLUMNS)), _verdict(group),
            ])  # fmt: skip
            lines.append(
                ["", "95% t", *(_span(low, high, form) for (_, low, high), (_, _, form) in zip(intervals, COLUMNS)), ""]
            )
        if hashes:
            lines[-1][-1] = f"{lines[-1][-1]}  {group[0]['hash']}".strip()
        lines.append([])
    if any("untrained_too" in line[-1] for line in lines if line):
        notes[f"untrained_too: {UNTRAINED_TOO}"] = []
    widths = [max(len(line[column]) for line in lines if line) for column in range(len(lines[0]))]
    text = "\n".join(
        "  ".join(cell.ljust(width) if column in (0, len(widths) - 1) else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )  # fmt: skip
    return text.rstrip() + "\n" + "".join(f"note: {note}{_of(who, len(results))}\n" for note, who in notes.items())


def _of(who: Sequence[str], runs: int) -> str:
    return f" ({'all runs' if 1 < len(who) == runs else ', '.join(who)})" if who else ""


def paths(results: Sequence[Mapping[str, Any]]) -> str:
    """Where the runs lie, and their figures."""
    return "\n".join(
        f"{result['task']} seed {result['seed']}: {result['folder']}/  (curves.png, result.json)" for result in results
    )


def _groups(results: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Results that differ in nothing but the seed."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["hash"], result["task"]), []).append(result)
    return list(groups.values())


def _verdict(group: Sequence[Mapping[str, Any]]) -> str:
    """The verdict on the means, and the seeds' own where they disagree."""
    averaged = str(seed_averaged(group, thresholds=Thresholds(**group[0]["thresholds"])))
    counts = Counter(result["verdict"].partition(" ")[0] for result in group)
    if len(counts) == 1:
        return averaged
    return f"{averaged}; of the seeds {', '.join(f'{count} {label}' for label, count in counts.most_common())}"


def _absent(result: Mapping[str, Any]) -> list[str]:
    """Why a figure of the run is –, where that is not said elsewhere."""
    told = []
    if result.get("recovery") is not None and result.get("untrained_recovery") is None:
        told.append("untrained is –: the version that measured the run did not keep this control")
    if result.get("intervention_success") is None:
        detail = result.get("intervention")  # of result.json; a row has only how many examples there were
        if isinstance(detail, Mapping):
            why = "; ".join(detail["notes"])
        else:
            why = "not measured" if result.get("intervention_examples") is None else NO_EXAMPLES
        told.append(f"intervention is –: {why}")
    return told


def _interval(group: Sequence[Mapping[str, Any]], key: str) -> Interval:
    return t_interval([result[key] for result in group if result.get(key) is not None])


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None or np.isnan(value) else form.format(value)


def _span(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{form.format(low)}…{form.format(high)}"

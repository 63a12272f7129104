"""Finished runs as a table of text: what `rlstate.train` ends with and `rlstate.report` begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlstate.probes.verdict import Thresholds, seed_averaged
from rlstate.statistics import mean_interval

# heading, key in the result, format
COLUMNS = (
    ("val_n", "val_n", "{:.3f}"),
    ("OOD 4T", "ood_n", "{:.3f}"),
    ("probe gap", "probe_gap", "{:+.3f}"),
    ("balanced", "probe_balanced", "{:.3f}"),
    ("recovery", "recovery", "{:.2f}"),
    ("selectivity", "selectivity", "{:+.3f}"),
    ("capacity", "capacity_accuracy", "{:.2f}"),
    ("intervention", "intervention_success", "{:.2f}"),
    ("its control", "intervention_control", "{:.2f}"),
)


def table(results: Sequence[Mapping[str, Any]], hashes: bool = False) -> str:
    """The runs' figures, a row a seed; below each group its mean over seeds, the bootstrap interval and the verdict.

    With `hashes`, a group's configuration hash stands with its means (or its only row).
    """
    lines = [["task", "seed", *(heading for heading, _, _ in COLUMNS), "verdict"]]
    notes: dict[str, list[str]] = {}
    for group in _groups(results):
        for result in group:
            lines.append([
                result["task"], str(result["seed"]),
                *(_cell(result.get(key), form) for _, key, form in COLUMNS), result["verdict"],
            ])  # fmt: skip
            for note in result.get("notes", []):
                notes.setdefault(note, []).append(f"{result['task']} {result['seed']}")
        if len(group) > 1:
            intervals = [_interval(group, key) for _, key, _ in COLUMNS]
            lines.append([
                group[0]["task"], "mean",
                *(_cell(mean, form) for (mean, _, _), (_, _, form) in zip(intervals, COLUMNS)), _verdict(group),
            ])  # fmt: skip
            lines.append(
                ["", "95%", *(_span(low, high, form) for (_, low, high), (_, _, form) in zip(intervals, COLUMNS)), ""]
            )
        if hashes:
            lines[-1][-1] = f"{lines[-1][-1]}  {group[0]['hash']}".strip()
        lines.append([])
    widths = [max(len(line[column]) for line in lines if line) for column in range(len(lines[0]))]
    text = "\n".join(
        "  ".join(cell.ljust(width) if column in (0, len(widths) - 1) else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )  # fmt: skip
    return text.rstrip() + "\n" + "".join(f"note: {note} ({', '.join(who)})\n" for note, who in notes.items())


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


def _interval(group: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float, float]:
    return mean_interval([result[key] for result in group if result.get(key) is not None])


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None or np.isnan(value) else form.format(value)


def _span(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{form.format(low)}…{form.format(high)}"

"""Pictures of a run."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlstate.drawing import BLUE, GREEN, GREY, ORANGE
from rlstate.output import write_atomically
from rlstate.runlog import RunFolder


def run_figure(folder: RunFolder) -> Path:
    """`curves.png`: success against the oracle's optimal and random lines; the probe gap over training (dashed: untrained)."""
    result = folder.read_result()
    if result is None:
        raise FileNotFoundError(f"{folder.path} has no result yet: a figure is drawn of a finished run")
    figure = draw_run(folder.read_metrics(), result)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    path = folder.path / "curves.png"
    write_atomically(path, buffer.getvalue())
    return path


def draw_run(rows: Sequence[Mapping[str, Any]], result: Mapping[str, Any]) -> Any:
    """The figure of a run as a matplotlib `Figure`, made without pyplot so that threads and notebooks are left alone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5.2), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    trained = [row for row in rows if row.get("success") is not None]
    points = [row for row in rows if row.get("greedy_success") is not None]
    oracle = result["oracle"]

    top.axhline(oracle["optimal"], color=GREEN, linewidth=1.2)
    top.axhline(oracle["random"], color=GREY, linewidth=1.2)
    for height, text, colour in ((oracle["optimal"], "optimal", GREEN), (oracle["random"], "random play", GREY)):
        top.text(1.01, height, text, color=colour, fontsize=8, va="center", transform=top.get_yaxis_transform())
    top.plot([row["iteration"] for row in trained], [row["success"] for row in trained], color=BLUE, alpha=0.35, linewidth=1,
             label="sampled (training)")  # fmt: skip
    top.plot([row["iteration"] for row in points], [row["greedy_success"] for row in points], color=BLUE, marker="o",
             markersize=4, label="greedy")  # fmt: skip
    top.set_ylabel("acceptance")
    top.legend(fontsize=8, loc="best", frameon=False)
    top.set_title(f"{result['task']}, seed {result['seed']}: {result['verdict']}", fontsize=11, loc="left")

    drawn = [row for row in points if row.get("probe_gap") is not None]
    bottom.axhline(0.0, color=GREY, linewidth=0.8)
    bottom.plot(
        [row["iteration"] for row in drawn], [row["probe_gap"] for row in drawn], color=ORANGE, marker="o", markersize=4
    )
    untrained = result.get("controls", {}).get("untrained", {}).get("gap")
    if untrained is not None:
        bottom.axhline(untrained, color=GREY, linewidth=1.2, linestyle="--")
        bottom.text(1.01, untrained, "untrained", color=GREY, fontsize=8, va="center",
                    transform=bottom.get_yaxis_transform())  # fmt: skip
    bottom.set_ylabel("probe gap")
    bottom.set_xlabel("iteration")
    for axis in (top, bottom):
        axis.spines[["top", "right"]].set_visible(False)
    return figure

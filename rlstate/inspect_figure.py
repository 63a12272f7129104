"""The figure of `python -m rlstate.inspect`: an automaton, how its state's influence decays, and what play achieves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlstate.automata import DFA
from rlstate.drawing import BLUE, DARK, GREEN, GREY, ORANGE, draw_on, printable

FLOOR = 1e-290
"""What is smaller is beyond the axis: no logarithmic one goes down to the smallest floats."""


def draw_report(dfa: DFA, report: dict[str, Any]) -> Any:
    """One matplotlib `Figure`: the automaton, Δ against its bounds (logarithmic), the oracle's values by r."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    machine = figure.add_subplot()
    width, height = draw_on(machine, dfa)  # tells the size it needs
    figure.clear()
    height = min(max(height, 1.4), 7.0)
    machine, curve, values = figure.subplot_mosaic("AA;BC", height_ratios=[height, 3.0]).values()
    draw_on(machine, dfa)
    figure.set_size_inches(min(max(width, 8.5), 12.0), height + 3.8)
    _draw_influence(curve, report)
    _draw_values(values, report)
    verdict = report["predictor"][0].split(". ")[0] if report["warning"] else report["predictor"][0].split(":")[0]
    figure.suptitle(f"{printable(report['name'], 60) or 'automaton'}: {verdict}", fontsize=12, parse_math=False)
    return figure


def _draw_influence(axes: Any, report: dict[str, Any]) -> None:
    from matplotlib.ticker import NullFormatter

    steps = np.arange(1, len(report["influence"]) + 1)
    curves = [("Δ, random play", report["influence"], BLUE, "o-")]
    if bound := report["proposition_2"]:
        curves.append(("λ(Pʳ)·Δ₀", bound["exact"], GREY, "-"))
        if 0 < bound["rate"] < 1:
            curves.append(("C·λʳ", bound["geometric"], GREY, ":"))
    if report["replaying_influence"]:
        curves.append(("Δ, replaying policy", report["replaying_influence"], ORANGE, "s-"))
    positive = [value for _, ys, _, _ in curves for value in ys if value > FLOOR]
    floor = min(1e-2, 10.0 ** math.floor(math.log10(min(positive)) - 0.5)) if positive else 1e-2
    axes.set_yscale("log")
    for label, ys, colour, style in curves:
        shown = np.array(ys)
        axes.plot(
            steps, np.where(shown > FLOOR, shown, np.nan), style, color=colour, markersize=4, linewidth=1.2, label=label
        )
        if (zeros := shown == 0).any():
            axes.plot(steps[zeros], np.full(zeros.sum(), floor), "v", color=colour, markersize=5, clip_on=False)
    if any(0 in ys for _, ys, _, _ in curves):
        axes.text(steps[0], floor * 1.2, "▼ exactly 0", color=DARK, fontsize=8, va="bottom")
    axes.set_ylim(floor, 3.0)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("r, random steps to go")
    axes.set_title("influence of the state", fontsize=10, loc="left")
    _finish(axes, "best")


def _draw_values(axes: Any, report: dict[str, Any]) -> None:
    steps = np.arange(report["horizon"] + 1)
    for key, label, colour in (
        ("full_control", "full control", GREY),
        ("optimal", "optimal", GREEN),
        ("random", "random", ORANGE),
    ):
        axes.plot(steps, report["values"][key], "o-", color=colour, markersize=3.5, linewidth=1.2, label=label)
    axes.set_ylim(-0.03, 1.25)
    axes.set_yticks(np.arange(6) / 5)
    axes.set_xlabel("r, steps to go from the start state")
    axes.set_title("acceptance", fontsize=10, loc="left")
    _finish(axes, "upper center")


def _finish(axes: Any, loc: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=8, frameon=False, loc=loc, ncols=3 if loc == "upper center" else 1)

"""Learning curves: a panel a task (or a setting), a colour an arm, every seed thin and their mean thick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlstate.control.strata import held_out
from rlstate.figures import GREEN, GREY
from rlstate.paper import axes as draw
from rlstate.paper import targets
from rlstate.paper.pictures import Finished, Picture
from rlstate.paper.rules import A2C, A2C_BROADCAST, EMISSION, PPO, PPO_BROADCAST, STATE
from rlstate.results import Row, cells

MAX_PANELS = 48
_READING = (
    "Greedy val_n during training, every seed thin, their mean thick; 1 is optimal (green), dashed is random play."
)

Panels = Sequence[tuple[str, Mapping[str, Sequence[Row]]]]
"""(title, {arm: its rows by seed}) of each panel."""


def learning_curves(runs: Finished) -> list[Picture]:
    """The paper's experiments, of as many runs as there are."""
    optimizers = {"A2C × broadcast": A2C_BROADCAST, "A2C × discounted": A2C, "PPO × broadcast": PPO_BROADCAST,
                  "PPO × discounted": PPO}  # fmt: skip
    auxiliaries = {"PPO": PPO, "+ state auxiliary": STATE}
    hinted = {f"{name}{beside}": replace(arm, auxiliary=auxiliary) for name, arm in (("A2C", A2C), ("PPO", PPO))
              for auxiliary, beside in (("none", ""), ("state", " + state"), ("emission", " + emission"))}  # fmt: skip
    low = ("parity", "mod_3")
    rest = [task for task in targets.SUITE if task not in (*low, *(f"mod_{k}" for k in targets.COUNTERS))]
    plans = [
        ("table_1", "Table 1, GRU", low, optimizers),
        ("table_1_window", "Table 1, window-MLP", low, {n: replace(a, encoder="window_mlp") for n, a in optimizers.items()}),
        ("long_budget", "A2C for 30 000 iterations", low, {"A2C × broadcast": replace(A2C_BROADCAST, iterations=30_000)}),
        ("shaping", "Shaping", low, {"PPO": PPO, "+ shaping": replace(PPO, shaping="oracle"), "+ state auxiliary": STATE}),
        ("auxiliary", "Auxiliaries at β = 0", (*low, "mod_5"), hinted),
        ("table_2", "Table 2", [f"mod_{k}" for k in targets.COUNTERS], auxiliaries),
        ("suite", "The suite", rest, auxiliaries),
        ("heldout", "The first 33 held-out automata", [entry.name for entry in held_out() if entry.set == "original"],
         {"GRU": PPO, "LSTM": replace(PPO, encoder="lstm")}),
    ]  # fmt: skip
    found = [
        picture(f"curves_{key}", f"Learning curves: {title}",
                [(task, {name: runs.cell(task, arm).rows for name, arm in arms.items()}) for task in tasks])
        for key, title, tasks, arms in plans
    ]  # fmt: skip
    betas = [
        (f"mod_5, β = {beta:g}", {name: runs.cell("mod_5", replace(arm, beta=beta)).rows
                                  for name, arm in (("without auxiliary", PPO), ("emission auxiliary", EMISSION))})
        for beta in targets.BETAS
    ]  # fmt: skip
    found.insert(5, picture("curves_beta", "Learning curves: informative observations", betas))
    return [each for each in found if each is not None]


def any_curves(rows: Sequence[Row], names: Mapping[str, str]) -> Picture | None:
    """The curves of any runs: a panel a task, or, of many configurations, a panel each.

    Args:
        names: what tells the configurations apart, by hash.
    """
    panels: dict[str, dict[str, Sequence[Row]]] = {}
    crowded = len(set(names.values())) > len(draw.SERIES) or max(map(len, names.values()), default=0) > 90
    for group in cells(rows):
        task, name = group[0].task, names[group[0].hash]
        panels.setdefault(f"{task}\n{group[0].hash}" if crowded else task, {})["" if crowded else name] = group
    return picture("curves", "Learning curves", list(panels.items()))


def picture(key: str, title: str, panels: Panels) -> Picture | None:
    """One picture of all panels that have a run with a curve; None where none has."""
    drawn = [
        (name, {arm: [row for row in rows if _points(row)] for arm, rows in arms.items()}) for name, arms in panels
    ]
    drawn = [(name, arms) for name, arms in drawn if any(arms.values())]
    if not drawn:
        return None
    omitted, drawn = len(drawn) - MAX_PANELS, drawn[:MAX_PANELS]
    present = dict.fromkeys(
        arm for _, arms in panels for arm in arms if any(arms[arm] for _, arms in drawn if arm in arms)
    )
    colours = dict(zip(present, draw.SERIES * (len(present) // len(draw.SERIES) + 1)))
    columns = len(drawn) if len(drawn) <= 4 else 3 if len(drawn) in (5, 6, 9) else 4 if len(drawn) <= 12 else 6
    lines = -(-len(drawn) // columns)
    with draw.drawing(7.2, 0.75 + lines * {1: 2.6, 2: 2.0, 3: 1.75, 4: 1.5}.get(columns, 1.25)) as figure:
        grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        small = columns > 4
        for panel, (name, arms) in zip(grid.flat, drawn):
            for arm, rows in arms.items():
                _arm(panel, rows, colours.get(arm, GREY))
            first = next(rows[0] for rows in arms.values() if rows)
            panel.axhline(1, color=GREEN, linewidth=1, zorder=1)
            optimal, random = first.oracle.get("optimal"), first.oracle.get("random")
            if optimal and random is not None:
                panel.axhline(random / optimal, color=GREY, linewidth=1, linestyle="--", zorder=1)
            panel.set_title(name, fontsize=7.5 if small else 8.5, pad=3)
            panel.tick_params(labelsize=7 if small else 8)
            panel.xaxis.set_major_formatter(_thousands)
            panel.locator_params(axis="x", nbins=3)
        for panel in grid.flat[len(drawn) :]:
            panel.set_axis_off()
        for column in range(columns):  # above an empty place, the axis is the panel's own
            lowest = max(line for line in range(lines) if line * columns + column < len(drawn))
            grid[lowest, column].tick_params(labelbottom=True)
            grid[lowest, column].set_xlabel("iterations", fontsize=7.5 if columns > 4 else 8.5)
        figure.supylabel("val_n", fontsize=9, color=draw.INK)
        if any(present):
            draw.key(figure, list(colours.items()), seeds_are="", bars=False, with_paper=False)
    caption = _READING + (f" {omitted} further panels are left out." if omitted > 0 else "")
    return Picture(key, title, caption, figure)


def _arm(panel: Any, rows: Sequence[Row], colour: str) -> None:
    curves = [_points(row) for row in rows]
    for curve in curves:
        panel.plot(*zip(*sorted(curve.items())), color=colour, linewidth=0.7, alpha=0.4, zorder=2)
    shared = sorted(set.intersection(*map(set, curves))) if curves else []
    if len(curves) > 1 and shared:
        mean = [np.mean([curve[iteration] for curve in curves]) for iteration in shared]
        panel.plot(shared, mean, color=colour, linewidth=1.9, zorder=3)


def _points(row: Row) -> dict[float, float]:
    """{iteration: val_n}."""
    return {point[0]: point[1] for point in row.curve if len(point) > 1 and None not in point[:2]}  # type: ignore[misc]


def _thousands(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"

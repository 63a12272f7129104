"""The paper's figures, drawn from rows, with every seed and the paper's values where it gives them.

What has no finished run is not drawn, nor is a cell of two configurations: the captions say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlstate.automata import zoo
from rlstate.control.credit import proposition_2_bound, state_influence
from rlstate.control.strata import STRATA
from rlstate.drawing import BLUE, GREEN, GREY, ORANGE
from rlstate.paper import axes as draw
from rlstate.paper import targets
from rlstate.paper.heldout import score
from rlstate.paper.notation import number
from rlstate.paper.rules import A2C_BROADCAST, EMISSION, PPO, STATE
from rlstate.paper.select import Arm, Cell, cell
from rlstate.probes.verdict import Thresholds, seed_averaged
from rlstate.results import Row
from rlstate.statistics import Correlation, paired_difference, spearman

INFLUENCE_STEPS = 24


@dataclass(frozen=True)
class Picture:
    """`key` names its file; the caption says what is drawn and what is seen; `figure` is a matplotlib `Figure`."""

    key: str
    title: str
    caption: str
    figure: Any


def figures(rows: Sequence[Row]) -> list[Picture]:
    """The paper's figures, of as many runs as there are; the exact Δ curves need none."""
    runs = Finished.of(rows)
    drawn = [competence(runs), counters(runs), observations(runs), behaviour(runs), influence(), held_out(rows)]
    return [picture for picture in drawn if picture is not None]


@dataclass(frozen=True)
class Finished:
    """Rows by task: cells are looked up often."""

    by_task: dict[str, list[Row]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Finished:
        by_task: dict[str, list[Row]] = {}
        for row in rows:
            by_task.setdefault(row.task, []).append(row)
        return cls(by_task)

    def cell(self, task: str, arm: Arm) -> Cell:
        return cell(self.by_task.get(task, []), task, arm)


def competence(runs: Finished) -> Picture | None:
    """Figure 1a: the probe gap against the competence of what trains the agent."""
    steps = (
        ("A2C", A2C_BROADCAST, lambda task: targets.TABLE1_GAP[task, "a2c", "broadcast"].value),
        ("PPO", PPO, lambda task: targets.TABLE1_GAP[task, "ppo", "discounted"].value),
        ("PPO +\nshaping", replace(PPO, shaping="oracle"), lambda task: targets.SHAPING_GAP[task]),
        ("PPO + state\nauxiliary", STATE, lambda task: targets.STATE_AUXILIARY_GAP[task]),
    )
    tasks = ("parity", "mod_3")
    cells = {task: [runs.cell(task, arm) for _, arm, _ in steps] for task in tasks}
    if not any(len(each) for found in cells.values() for each in found):
        return None
    with draw.drawing(7.2, 3.1) as figure:
        for panel, task in zip(figure.subplots(1, 2, sharey=True), tasks):
            means = [each.mean("probe_gap") for each in cells[task]]
            known = [(x, mean) for x, mean in enumerate(means) if mean is not None]
            panel.plot(*zip(*known), color=BLUE, linewidth=1, alpha=0.35, zorder=2)
            for x, (each, (_, _, printed)) in enumerate(zip(cells[task], steps)):
                draw.seeds(panel, x, list(each.values("probe_gap").values()), BLUE)
                draw.paper(panel, x + 0.42, printed(task))
            panel.set_title(task)
            panel.set_xticks(range(4), [name for name, _, _ in steps])
            panel.set_xlim(-0.5, 3.7)
            panel.axhline(0, color=GREY, linewidth=0.8)
        figure.axes[0].set_ylabel("probe gap")
        draw.key(figure)
    caption = (
        "How far the state can be read from the agent, by what trains it: A2C × broadcast, PPO × discounted, PPO with "
        "oracle-potential shaping, and PPO with the privileged state auxiliary, the ceiling. "
        + " ".join(_ladder(task, cells[task]) for task in tasks)
    )
    return Picture("figure_1a", "Figure 1a: optimizer competence", caption + _left_out(cells.values()), figure)


def _ladder(task: str, found: Sequence[Cell]) -> str:
    means = [each.mean("probe_gap") for each in found]
    told = " → ".join(number(mean, signed=True) for mean in means)
    climbs = None not in means and means[0] < means[1] < means[2]  # type: ignore[operator]
    return f"Means on {task}: {told}{', climbing up to shaping' if climbs else ''}."


def counters(runs: Finished) -> Picture | None:
    """Figure 1b: what sparse reward recovers of the counter mod_k, and what the state auxiliary adds to reward."""
    ks = targets.COUNTERS
    plain, helped = ([runs.cell(f"mod_{k}", arm) for k in ks] for arm in (PPO, STATE))
    if not any(map(len, plain)):
        return None
    with draw.drawing(7.2, 3.1) as figure:
        left, right = figure.subplots(1, 2)
        for x, (k, ppo, auxiliary) in enumerate(zip(ks, plain, helped)):
            ceiling = auxiliary.mean("probe_gap")
            if ceiling:
                draw.seeds(left, x, [gap / ceiling for gap in ppo.values("probe_gap").values()], BLUE)
            gains, base = auxiliary.values("val_n"), ppo.values("val_n")
            draw.seeds(right, x, [gains[seed] - base[seed] for seed in sorted(gains.keys() & base.keys())], GREEN)
            draw.paper(left, x + 0.42, targets.TABLE2_RATIO[k])
            draw.paper(right, x + 0.42, targets.TABLE2_BENEFIT[k])
        left.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
        right.axhline(0, color=GREY, linewidth=0.8)
        left.set_ylim(bottom=min(0, left.get_ylim()[0]))
        left.set_title("probe gap of PPO / of the ceiling")
        right.set_title("val_n with the auxiliary − without")
        for panel in (left, right):
            panel.set_xticks(range(len(ks)), [str(k) for k in ks])
            panel.set_xlabel("k of mod_k")
        draw.key(figure)
    caption = (
        "The counter mod_k under PPO. Left: each seed's probe gap, divided by the mean gap with the privileged state "
        "auxiliary. Right: what that auxiliary adds to val_n, seed by seed."
    )
    known = [(k, each.mean("probe_gap"), more.mean("probe_gap")) for k, each, more in zip(ks, plain, helped)]
    shares = [(k, gap / ceiling) for k, gap, ceiling in known if gap is not None and ceiling]
    if len(shares) > 1:
        (first, high), (last, low) = shares[0], shares[-1]
        caption += f" The recovered share is {number(high)} at k = {first} and {number(low)} at k = {last}."
    benefits = [(k, paired_difference(b.values("val_n"), a.values("val_n"))) for k, a, b in zip(ks, plain, helped)]
    told = [(k, found.value) for k, found in benefits if found.n]
    if told:
        k, most = max(told, key=lambda each: each[1])
        caption += f" The auxiliary adds most at k = {k} ({number(most, signed=True)})."
    return Picture("figure_1b", "Figure 1b: a larger state", caption + _left_out([plain, helped]), figure)


def observations(runs: Finished) -> Picture | None:
    """Figure 1c: how much observations must say of the state, on mod_5."""
    arms = {"without auxiliary": (PPO, BLUE, -0.2), "emission auxiliary": (EMISSION, ORANGE, 0.2)}
    cells = {
        name: [runs.cell("mod_5", replace(arm, beta=beta)) for beta in targets.BETAS]
        for name, (arm, _, _) in arms.items()
    }
    if not any(len(each) for found in cells.values() for each in found[1:]):
        return None  # β = 0 without the auxiliary is Table 2's
    shown = (
        ("val_n", "muted_val_n", "val_n", targets.BETA_VAL_N),
        ("probe_gap", "muted_gap", "probe gap", targets.BETA_GAP),
    )
    with draw.drawing(7.2, 5.0) as figure:
        for panel, (name, muted, label, printed) in zip(figure.subplots(2, 1, sharex=True), shown):
            for arm, (_, colour, shift) in arms.items():
                for x, each in enumerate(cells[arm]):
                    draw.seeds(panel, x + shift, list(each.values(name).values()), colour, width=0.15)
                    silent = each.mean(muted)
                    if silent is not None:
                        panel.plot([x + shift - 0.15, x + shift + 0.15], [silent] * 2, color=colour, linewidth=1.6,
                                   linestyle=(0, (1, 1)), zorder=4)  # fmt: skip
            for beta, value in printed.items():
                draw.paper(panel, targets.BETAS.index(beta) + 0.45, value)
            panel.set_ylabel(label)
            panel.set_xlim(-0.5, len(targets.BETAS) - 0.3)
        figure.axes[0].axhline(1, color=GREEN, linewidth=1)
        oracle = next(row.oracle for found in cells.values() for each in found for row in each.rows)
        optimal, random = oracle.get("optimal"), oracle.get("random")
        if optimal and random is not None:
            figure.axes[0].axhline(random / optimal, color=GREY, linewidth=1, linestyle="--", zorder=1)
        figure.axes[1].axhline(0, color=GREY, linewidth=0.8)
        figure.axes[1].set_xticks(range(len(targets.BETAS)), [f"{beta:g}" for beta in targets.BETAS])
        figure.axes[1].set_xlabel("β: how often an observation shows the state")
        draw.key(figure, [(name, colour) for name, (_, colour, _) in arms.items()], dotted="mean, channel muted")
    caption = (
        "mod_5 under PPO with an emission channel of informativeness β, with and without the label-free auxiliary. Dotted: the "
        "same policies, evaluated and probed with the channel muted; at β = 1 the input alone gives the state away. Above: 1 is "
        "optimal, dashed is random play."
    )
    for name, found in cells.items():
        told = [
            f"{number(mean, signed=True)} at β = {each.arm.beta:g}"
            for each in found[:2]
            if (mean := each.mean("probe_gap"))
        ]
        if told:
            caption += f" Mean probe gap, {name}: {', '.join(told)}."
    return Picture("figure_1c", "Figure 1c: informative observations", caption + _left_out(cells.values()), figure)


def behaviour(runs: Finished) -> Picture | None:
    """Figure 2: every task of the suite by what behaviour shows and what the probe shows."""
    cells = [runs.cell(task, PPO) for task in targets.SUITE]
    points = [
        (each, 1 - val_n, gap)
        for each in cells
        if (val_n := each.mean("val_n")) is not None and (gap := each.mean("probe_gap")) is not None
    ]
    if not points:
        return None
    labels = {each.task: seed_averaged([row.to_judge for row in each.rows]).label for each, _, _ in points}
    printed = {
        "mined_ean": (1 - targets.MINED_EAN_VAL_N, targets.MINED_EAN_GAP),
        "ends_with_1000": (1 - targets.ENDS_WITH_1000_VAL_N, targets.ENDS_WITH_1000_GAP),
    }
    with draw.drawing(7.2, 5.2) as figure:
        axes = figure.subplots()
        axes.axvline(1 - Thresholds().val_n, color=draw.PALE, linewidth=1, zorder=0)
        for each, x, y in points:
            colour, marker, _ = draw.VERDICTS[labels[each.task]]
            for row in each.rows:
                if row["val_n"] is not None and row["probe_gap"] is not None:
                    axes.plot(
                        [x, 1 - row["val_n"]], [y, row["probe_gap"]], color=colour, linewidth=0.7, alpha=0.2, zorder=1
                    )
                    axes.plot(1 - row["val_n"], row["probe_gap"], ".", color=colour, markersize=3, alpha=0.45, zorder=2)
            axes.plot(x, y, marker, color=colour, markersize=7, markeredgecolor="white", markeredgewidth=0.8, zorder=4)
        for x, y in printed.values():
            draw.paper(axes, x, y)
        axes.set_xlabel("reward gap, 1 − val_n: what behaviour shows")
        axes.set_ylabel("probe gap: what of the state can be read")
        present = [draw.VERDICTS[label] for label in draw.VERDICTS if label in labels.values()]
        draw.key(figure, markers=present, seeds_are="a seed, joined to the mean", bars=False)
        places = [(x, y) for _, x, y in points] + list(printed.values())
        draw.place_labels(
            figure, axes, places, [each.task for each, _, _ in points] + [f"{task}, the paper" for task in printed]
        )
    telling = [point for point in points if point[0].rows[0].diagnostic is not False]
    correlation = spearman([x for _, x, _ in telling], [y for _, _, y in telling])
    caption = (
        f"Each point is a task under PPO, the mean over its seeds; right of the grey line reward is not near-optimal. "
        f"Over the diagnostic tasks reward gap and probe gap correlate with Spearman's {_correlation(correlation)} (the paper: "
        f"{number(targets.BEHAVIOUR_REWARD_RHO, signed=True)})."
    )
    failing = sorted((gap, each.task) for each, x, gap in telling if x >= targets.VISIBLY_SUBOPTIMAL)
    if len(failing) > 1:
        (low, lowest), (high, highest) = failing[0], failing[-1]
        caption += (
            f" Of the {len(failing)} tasks with a reward gap of at least {targets.VISIBLY_SUBOPTIMAL}, the probe gaps go from "
            f"{number(low, signed=True)} ({lowest}) to {number(high, signed=True)} ({highest})."
        )
    return Picture("figure_2", "Figure 2: behaviour against the probe", caption + _left_out([cells]), figure)


def influence() -> Picture:
    """Appendix B: Δ against the random steps between, exact. Needs no run."""
    steps = np.arange(1, INFLUENCE_STEPS + 1)
    names = ("workflow_api", "no_three_zeros", "workflow_reconcile", "mod_3", "mod_5", "mod_11")
    curves: dict[str, Any] = {}
    for task in names:
        curve = state_influence(zoo.make(task), INFLUENCE_STEPS)
        same = next((shown for shown, other in curves.items() if np.allclose(other, curve, rtol=0.02)), None)
        curves[f"{same}, {task}" if same else task] = curves.pop(same) if same else curve
    bound = proposition_2_bound(zoo.make("mod_11"), INFLUENCE_STEPS)
    colours = (GREEN, draw.SKY, ORANGE, BLUE, draw.PINK, draw.INK)[: len(curves)]
    with draw.drawing(7.2, 4.2) as figure:
        axes = figure.subplots()
        axes.plot(steps, bound.geometric, color=GREY, linewidth=1, linestyle="--", zorder=1)
        for curve, colour in zip(curves.values(), colours):
            axes.plot(steps, curve, color=colour, linewidth=1.6, marker=".", markersize=5)
        draw.paper(axes, list(targets.DELTA_COUNTER), list(targets.DELTA_COUNTER.values()))
        draw.paper(axes, 16, targets.DELTA_NO_THREE_ZEROS)
        floor = 10 ** np.floor(np.log10(min(curve[-1] for curve in curves.values())))
        axes.set_yscale("log")
        axes.set_ylim(floor, 2)
        axes.plot([1, 1], [1, floor], color=GREY, linewidth=1.2, linestyle=":", zorder=1)
        axes.annotate("parity: 0 after one step", (1, floor), (1.5, floor * 1.6), fontsize=8.5, color=GREY)
        axes.set_xticks([1, *range(4, INFLUENCE_STEPS + 1, 4)])
        axes.set_xlabel("uniformly random steps still to come")
        axes.set_ylabel("state-influence Δ")
        figure.get_layout_engine().set(rect=(0, 0, 0.79, 1))
        ends = [curve[-1] for curve in (*curves.values(), bound.geometric)]
        draw.name_lines(figure, axes, steps[-1], ends, [*curves, "bound for mod_11"], [*colours, GREY])
    left = {task: number(curves[task][15]) for task in ("workflow_api", "no_three_zeros")}
    caption = (
        "How much the present state still changes the probability of acceptance, after so many uniformly random steps; exact, "
        "no training. Counters lose a constant factor a step, absorbing ends keep the influence: after 16 steps "
        f"{left['workflow_api']} of it is left in workflow_api and {left['no_three_zeros']} in no_three_zeros. Dashed: the "
        f"geometric bound of Proposition 2 for mod_11, a factor {number(bound.rate)} a step. Diamonds: the values that the "
        "paper prints."
    )
    return Picture("influence", "Appendix B: state-influence", caption, figure)


def held_out(rows: Sequence[Row]) -> Picture | None:
    """Table 3 as a picture: recovery of each fresh automaton, by stratum, against its leverage."""
    scores = score(rows)
    if not scores.automata:
        return None
    with draw.drawing(7.2, 3.7) as figure:
        present = set()
        for panel, name in zip(figure.subplots(1, 3, sharey=True), STRATA):
            these = [each for each in scores.automata if each.entry.stratum == name]
            places = draw.dodged([each.leverage for each in these])
            for verdict, (colour, marker, _) in draw.VERDICTS.items():
                labelled = [(x, each) for x, each in zip(places, these) if (each.label() or "undefined") == verdict]
                dots = [
                    (x, row["recovery"]) for x, each in labelled for row in each.rows if row["recovery"] is not None
                ]
                means = [(x, mean) for x, each in labelled if (mean := each.mean("recovery")) is not None]
                if means:
                    present.add(verdict)
                    panel.plot(*zip(*dots), ".", color=colour, markersize=3, alpha=0.3, zorder=2)
                    panel.plot(*zip(*means), marker, color=colour, markersize=5.5, markeredgecolor="white",
                               markeredgewidth=0.6, alpha=0.9, linestyle="none", zorder=4)  # fmt: skip
            panel.axhline(Thresholds().recovery, color=GREY, linewidth=0.9, linestyle="--", zorder=1)
            gaps, printed = sum(each.label() == "perception_gap" for each in these), targets.TABLE3[name]
            panel.set_title(f"{name}\n{gaps} of {len(these)} are gaps\nthe paper: {printed.perception} of {printed.n}")
            panel.set_xlabel("leverage L")
            panel.locator_params(axis="x", nbins=4)
            panel.xaxis.set_major_formatter("{x:.2f}")
        figure.axes[0].set_ylabel("recovery")
        draw.key(figure, markers=[draw.VERDICTS[label] for label in draw.VERDICTS if label in present], bars=False,
                 with_paper=False)  # fmt: skip
    hits = scores.permutation.precision
    caption = (
        f"Each mark is a fresh automaton under PPO, the mean over its seeds; below the dashed line the state is not recovered. "
        f"{len(scores.automata)} of {scores.total} automata have finished runs. Of {hits.of} permutation automata (the first "
        f"two panels) {hits.hits} are perception gaps; the paper has {targets.HELDOUT_PRECISION[0]} of "
        f"{targets.HELDOUT_PRECISION[1]}. Automata of one leverage stand side by side."
    )
    if scores.mixed:
        caption += f" Not drawn, since their runs are of several configurations: {', '.join(scores.mixed)}."
    return Picture("held_out", "Held-out automata", caption, figure)


def _correlation(found: Correlation) -> str:
    if np.isnan(found.rho):
        return f"ρ undefined (n = {found.n})"
    return f"ρ = {number(found.rho, signed=True)} (n = {found.n}, p = {number(found.p, digits=3)})"


def _left_out(groups: Iterable[Sequence[Cell]]) -> str:
    """Which cells are of two configurations and so are not drawn."""
    mixed = [f"{each} ({', '.join(each.mixed)})" for found in groups for each in found if each.mixed]
    return f" Not drawn, since its runs are of several configurations: {'; '.join(mixed)}." if mixed else ""

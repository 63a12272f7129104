"""The figures: what is drawn are the rows' numbers and the paper's, and nothing that is not there."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rlstate.automata import zoo
from rlstate.control import state_influence
from rlstate.control.strata import held_out
from rlstate.paper import axes, curves, pictures
from rlstate.paper.rules import A2C_BROADCAST, EMISSION, PPO, STATE
from rlstate.paper.select import Arm, deciding
from rlstate.results import Row

SHAPED = replace(PPO, shaping="oracle")


def row(task: str, seed: int, arm: Arm = PPO, other: str = "", curve=(), **figures: float | None) -> Row:
    config = {**(deciding(arm) or {}), "task.name": task}
    return Row("paper", f"{other}{zlib.crc32(repr((task, arm)).encode()):08x}", task, seed, "solved", config, dict(figures),
               {"optimal": 0.8, "random": 0.4}, list(curve), True, [], 60.0, "abc")  # fmt: skip


def runs(*rows: Row) -> pictures.Finished:
    return pictures.Finished.of(rows)


def marks(panel, marker: str) -> list[tuple[float, float]]:
    """The points that are drawn with a marker, from left to right, to five digits."""
    points = [tuple(point) for line in panel.lines if line.get_marker() == marker for point in line.get_xydata()]
    return sorted((round(float(x), 5), round(float(y), 5)) for x, y in points)


def bars(panel, style: str = "-") -> list[tuple[float, float]]:
    """(middle, height) of the short bars."""
    found = [line.get_xydata() for line in panel.lines if line.get_linestyle() == style and line.get_linewidth() > 1.5
             and len(line.get_xydata()) == 2]  # fmt: skip
    return sorted((round(float(ends[:, 0].mean()), 5), round(float(ends[0, 1]), 5)) for ends in found)


def heights(points) -> list[float]:
    return [y for _, y in points]


# --- Figure 1 -----------------------------------------------------------------------------------------------------


def test_competence_shows_every_seed_the_means_and_the_papers_values():
    drawn = pictures.competence(
        runs(
            row("parity", 0, A2C_BROADCAST, probe_gap=0.02), row("parity", 1, A2C_BROADCAST, probe_gap=0.04),
            row("parity", 0, PPO, probe_gap=0.1), row("parity", 1, PPO, probe_gap=0.3),
            row("parity", 0, SHAPED, probe_gap=0.35), row("parity", 0, STATE, probe_gap=0.3),
            row("mod_3", 4, PPO, probe_gap=0.5),
        )
    )  # fmt: skip
    parity, mod_3 = drawn.figure.axes
    assert sorted(heights(marks(parity, "o"))) == [0.02, 0.04, 0.1, 0.3, 0.3, 0.35]
    assert bars(parity) == [(0, 0.03), (1, 0.2), (2, 0.35), (3, 0.3)]
    assert heights(marks(parity, "D")) == [0.01, 0.20, 0.30, 0.28]
    assert heights(marks(mod_3, "D")) == [0.02, 0.21, 0.35, 0.36]
    assert bars(mod_3) == [(1, 0.5)]
    assert "Means on parity: +.03 → +.20 → +.35 → +.30, climbing up to shaping." in drawn.caption
    assert "Means on mod_3: – → +.50 → – → –." in drawn.caption


def test_ppo_below_a2c_is_no_climb():
    gaps = ((A2C_BROADCAST, 0.3), (PPO, 0.2), (SHAPED, 0.35), (STATE, 0.4))
    drawn = pictures.competence(runs(*(row("parity", 0, arm, probe_gap=gap) for arm, gap in gaps)))
    assert "climbing" not in drawn.caption


def test_counters_divide_by_the_ceiling_and_pair_the_seeds():
    drawn = pictures.counters(
        runs(
            row("mod_3", 0, PPO, probe_gap=0.1, val_n=0.5), row("mod_3", 1, PPO, probe_gap=0.3, val_n=0.9),
            row("mod_3", 0, STATE, probe_gap=0.4, val_n=0.8), row("mod_3", 7, STATE, probe_gap=0.6, val_n=1.0),
            row("mod_5", 0, PPO, probe_gap=0.1, val_n=0.4), row("mod_5", 0, STATE, probe_gap=0.5, val_n=0.9),
        )
    )  # fmt: skip
    left, right = drawn.figure.axes
    assert sorted(heights(marks(left, "o"))) == [0.2, 0.2, 0.6]  # .1/.5 and .3/.5; .1/.5
    assert bars(left) == [(1, 0.4), (2, 0.2)]
    assert marks(right, "o") == [(1, 0.3), (2, 0.5)]  # seed 1 has no partner, nor has seed 7
    assert heights(marks(left, "D")) == [0.83, 0.99, 0.52, 0.61, 0.55, 0.31]
    assert heights(marks(right, "D")) == [-0.01, 0.03, 0.26, 0.36, 0.25, 0.43]
    assert "The recovered share is .40 at k = 3 and .20 at k = 5." in drawn.caption
    assert "adds most at k = 5 (+.50)" in drawn.caption


def test_observations_show_the_muted_means():
    half = [row("mod_5", seed, replace(EMISSION, beta=0.5), val_n=val_n, probe_gap=0.4, muted_val_n=muted, muted_gap=0.1)
            for seed, val_n, muted in ((0, 0.9, 0.3), (1, 0.7, 0.6))]  # fmt: skip
    drawn = pictures.observations(runs(*half, row("mod_5", 0, val_n=0.5, probe_gap=0.2)))
    top, bottom = drawn.figure.axes
    assert sorted(heights(marks(top, "o"))) == [0.5, 0.7, 0.9]
    assert bars(top)[-1] == (5.2, 0.8)  # β = .5 is the sixth, the auxiliary to the right
    assert bars(top)[0] == (-0.2, 0.5)
    dotted = [line for line in top.lines if line.is_dashed() and line.get_linewidth() == 1.6]
    assert [line.get_ydata().tolist() for line in dotted] == [[pytest.approx(0.45)] * 2]
    assert heights(marks(top, "D")) == [0.50, 0.93]
    assert heights(marks(bottom, "D")) == [0.14, 0.47]
    assert [label.get_text() for label in bottom.get_xticklabels()] == ["0", "0.1", "0.15", "0.2", "0.25", "0.5", "1"]


def test_without_a_channel_there_is_no_figure_of_it():
    assert pictures.observations(runs(row("mod_5", 0, val_n=0.5, probe_gap=0.2))) is None


# --- Figure 2 and the held-out set --------------------------------------------------------------------------------


def test_behaviour_places_tasks_by_their_means_and_colours_them_by_their_verdict():
    points = {"mined_ean": (0.2, 0.03, 0.1), "ends_with_1000": (0.4, 0.6, 0.9), "workflow_api": (0.95, 0.5, 0.8)}
    rows = [
        row(task, seed, val_n=val_n + shift, probe_gap=gap, recovery=recovery, gain=0.5, gain_se=0.01)
        for task, (val_n, gap, recovery) in points.items()
        for seed, shift in enumerate((-0.05, 0.05))
    ]
    trivial = row("contains_0010", 0, val_n=0.7, probe_gap=0.7, recovery=0.9, gain=0.5, gain_se=0.01)
    drawn = pictures.behaviour(runs(*rows, replace(trivial, diagnostic=False)))
    (panel,) = drawn.figure.axes
    assert marks(panel, "o") == [(0.8, 0.03)]  # a perception gap
    assert marks(panel, "s") == [(0.3, 0.7), (0.6, 0.6)]  # planning gaps
    assert marks(panel, "^") == [(0.05, 0.5)]
    assert marks(panel, "D") == [(0.59, 0.62), (0.82, 0.03)]
    assert len(marks(panel, ".")) == 7
    named = {text.get_text() for text in panel.texts}
    assert named == {*points, "contains_0010", "mined_ean, the paper", "ends_with_1000, the paper"}
    # Of the diagnostic ones. Ranks of the reward gap 3 2 1, of the probe gap 1 3 2: ρ = 1 − 6 · 6 / 24 = −.5, and all six
    # pairings have a ρ at least as far from 0.
    assert "ρ = −.50 (n = 3, p = 1.000)" in drawn.caption
    assert (
        "Of the 2 tasks with a reward gap of at least 0.25, the probe gaps go from +.03 (mined_ean) to +.60"
        in drawn.caption
    )


def test_the_held_out_set_by_stratum():
    entries = {name: next(each for each in held_out() if each.stratum == name) for name in ("hard", "easy_synch")}
    rows = [row(entries["hard"].name, seed, recovery=recovery, val_n=0.5) for seed, recovery in enumerate((0.1, 0.3))]
    rows.append(row(entries["easy_synch"].name, 0, recovery=0.9, val_n=0.9))
    drawn = pictures.held_out(rows)
    hard, easy_perm, easy_synch = drawn.figure.axes
    assert heights(marks(hard, "o")) == [0.2]
    assert sorted(heights(marks(hard, "."))) == [0.1, 0.3]
    assert heights(marks(easy_synch, "^")) == [0.9]
    assert not marks(easy_perm, "o")
    assert hard.get_title("left") == "hard\n1 of 1 are gaps\nthe paper: 57 of 65"
    assert easy_synch.get_title("left") == "easy_synch\n0 of 1 are gaps\nthe paper: 20 of 50"
    assert (
        "2 of 153 automata have finished runs. Of 1 permutation automata (the first two panels) 1 are" in drawn.caption
    )


def test_influence_is_exact():
    (panel,) = pictures.influence().figure.axes
    drawn = [line.get_ydata() for line in panel.lines if line.get_marker() == "."]
    for task in ("workflow_api", "no_three_zeros", "mod_11", "workflow_reconcile"):
        expected = state_influence(zoo.make(task), pictures.INFLUENCE_STEPS)
        assert any(np.allclose(curve, expected, rtol=1e-12) for curve in drawn), task
    assert marks(panel, "D") == [(1, 0.5), (2, 0.25), (3, 0.125), (5, 0.031), (16, 0.3)]
    assert "mod_3, mod_5, mod_11" in [text.get_text() for text in panel.texts]


# --- what is not there, and what is mixed -------------------------------------------------------------------------


def test_of_no_run_there_is_only_what_needs_none():
    assert [each.key for each in pictures.figures([])] == ["influence"]
    other = replace(row("parity", 0, probe_gap=0.3), config={**deciding(PPO), "task.horizon": 12})
    assert [each.key for each in pictures.figures([other])] == ["influence"]  # another protocol
    assert curves.learning_curves(runs(other)) == []


def test_two_configurations_of_a_cell_are_not_drawn_and_named():
    drawn = pictures.competence(
        runs(
            row("parity", 0, probe_gap=0.1), row("parity", 1, other="f", probe_gap=0.9),
            row("parity", 0, STATE, probe_gap=0.4),
        )
    )  # fmt: skip
    assert heights(marks(drawn.figure.axes[0], "o")) == [0.4]
    assert "Not drawn, since its runs are of several configurations: parity, GRU, PPO × discounted (" in drawn.caption


# --- learning curves ----------------------------------------------------------------------------------------------


def test_learning_curves_have_a_thick_mean_over_what_all_seeds_have():
    one = row("parity", 0, A2C_BROADCAST, curve=[[0, 0.5, None], [1000, 0.7, 0.1], [2000, 0.9, 0.1]])
    two = row("parity", 1, A2C_BROADCAST, curve=[[0, 0.7, None], [1000, 0.5, 0.1]])
    (drawn,) = curves.learning_curves(runs(one, two, row("mod_3", 0, A2C_BROADCAST)))  # the last has no curve
    assert drawn.key == "curves_table_1"
    (panel,) = drawn.figure.axes
    assert panel.get_title("left") == "parity"
    (mean,) = [line for line in panel.lines if line.get_linewidth() > 1.5]
    assert mean.get_xydata().tolist() == [[0, 0.6], [1000, 0.6]]
    thin = [line.get_xydata().tolist() for line in panel.lines if line.get_linewidth() < 0.9]
    assert thin == [[[0, 0.5], [1000, 0.7], [2000, 0.9]], [[0, 0.7], [1000, 0.5]]]
    levels = [line.get_ydata()[0] for line in panel.lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 1]
    assert levels == [1, 0.5]  # optimal; random play, .4 / .8


def test_curves_of_any_runs_have_a_panel_a_task():
    made = [replace(row(task, 0, curve=[[0, 0.4, None], [10, 0.6, None]]), hash=f"{task}{name}")
            for task in ("a", "b") for name in ("x", "y")]  # fmt: skip
    names = {each.hash: each.hash[-1] for each in made}
    few = curves.any_curves(made, names)
    assert [panel.get_title("left") for panel in few.figure.axes] == ["a", "b"]
    assert [text.get_text() for text in few.figure.legends[0].texts] == ["x", "y"]
    many = curves.any_curves(made, {each.hash: "long " * 20 + each.hash for each in made})
    assert [panel.get_title("left") for panel in many.figure.axes] == ["a\nax", "a\nay", "b\nbx", "b\nby"]
    assert curves.any_curves([row("a", 0)], {row("a", 0).hash: ""}) is None


def test_more_panels_than_can_be_read_are_left_out_and_counted():
    made = [replace(row(f"t{i:03}", 0, curve=[[0, 0.4, None], [10, 0.6, None]]), hash=f"{i}") for i in range(50)]
    drawn = curves.any_curves(made, {each.hash: "" for each in made})
    assert sum(bool(panel.get_title("left")) for panel in drawn.figure.axes) == curves.MAX_PANELS == 48
    assert drawn.caption.endswith("2 further panels are left out.")


# --- marks, labels, files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_labels_cover_neither_each_other_nor_points(seed):
    random = np.random.default_rng(seed)
    points = np.concatenate([random.uniform(0, 1, (8, 2)), random.normal(0.5, 0.03, (7, 2))])
    with axes.drawing(7.2, 5.2) as figure:
        panel = figure.subplots()
        panel.plot(*points.T, "o")
        axes.place_labels(figure, panel, [tuple(point) for point in points], [f"a_label_{i}" for i in range(15)])
        boxes = [text.get_window_extent() for text in panel.texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        assert not any(box.contains(*place) for place in panel.transData.transform(points))


def test_equal_values_are_moved_apart_and_others_stay():
    moved = axes.dodged([0.1, 0.5, 0.5, 0.9])
    assert (moved[0], moved[3]) == (0.1, 0.9)
    assert moved[1] != moved[2]
    assert all(abs(each - 0.5) < 0.05 for each in moved[1:3])
    assert axes.dodged([]) == []
    assert axes.dodged([0.3]) == [0.3]


def test_svgs_can_stand_in_one_page_and_fetch_nothing():
    rows = runs(row("parity", 0, probe_gap=0.1, val_n=0.5))
    one, two = (axes.svg(pictures.competence(rows).figure, name) for name in ("one", "two"))
    ids = Counter(element.get("id") for text in (one, two) for element in ElementTree.fromstring(text).iter())
    del ids[None]
    assert ids
    assert max(ids.values()) == 1
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', one))
    assert used
    assert {a or b for a, b in used} <= set(ids)
    assert not re.search(r'(?:href|src)="(?!#)|@import|<metadata', one)
    assert ">probe gap<" in one  # text is text
    assert one == axes.svg(pictures.competence(rows).figure, "one")

"""The table of verdicts."""

from __future__ import annotations

import json

import pytest

from rlstate.probes.verdict import Thresholds, seed_averaged, verdict

LEARNED = (0.2, 0.9)


@pytest.mark.parametrize(
    ("recovery", "val_n", "interval", "saturated", "printed"),
    [
        (0.2, 0.5, LEARNED, True, "perception_gap"),
        (0.2, 0.99, LEARNED, True, "perception_gap"),  # reward without the state
        (0.499, None, LEARNED, True, "perception_gap"),
        (0.5, 0.84, LEARNED, True, "planning_gap"),  # the thresholds belong to the better side
        (0.5, 0.85, LEARNED, True, "solved"),
        (0.9, 0.6, LEARNED, True, "planning_gap"),
        (1.0, 1.0, LEARNED, True, "solved"),
        (0.1, 0.67, (-0.02, 0.03), True, "perception_gap (not_learned)"),
        (0.1, 0.6, (-0.2, -0.1), True, "perception_gap (not_learned)"),
        (0.1, 0.7, LEARNED, False, "perception_gap (capacity_limited)"),
        (0.1, 0.67, (0.0, 0.1), False, "perception_gap (not_learned, capacity_limited)"),
        (None, 0.9, LEARNED, True, "undefined"),
        (0.8, None, LEARNED, True, "undefined"),
        (0.9, 0.9, None, None, "solved"),
    ],
)
def test_the_table(recovery, val_n, interval, saturated, printed):
    found = verdict(recovery, val_n, interval, saturated)
    assert str(found) == printed
    assert json.loads(json.dumps(found.summary()))["text"] == printed
    assert bool(found.notes) == (found.label == "undefined" or interval is None or saturated is None)


def test_thresholds_are_configurable():
    strict = Thresholds(recovery=0.95, val_n=0.99)
    assert verdict(0.9, 0.9, LEARNED, True).label == "solved"
    assert verdict(0.9, 0.9, LEARNED, True, strict).label == "perception_gap"
    assert verdict(0.96, 0.9, LEARNED, True, strict).label == "planning_gap"


def seeds(recoveries, val_ns, gains, saturated=True):
    return [
        {"recovery": r, "val_n": v, "gain": g, "gain_se": 0.01, "capacity_saturated": saturated}
        for r, v, g in zip(recoveries, val_ns, gains)
    ]


def test_labels_come_from_averages_not_from_a_vote():
    # Two of three seeds are perception gaps, but the mean recovery is .6.
    results = seeds([0.4, 0.4, 1.0], [0.9, 0.9, 0.9], [0.7, 0.8, 0.9])
    assert [verdict(r["recovery"], r["val_n"]).label for r in results].count("perception_gap") == 2
    assert str(seed_averaged(results)) == "solved"


def test_not_learned_is_about_the_spread_of_gain_over_seeds():
    same = seeds([0.1] * 3, [0.67] * 3, [0.30, 0.31, 0.32])
    assert not seed_averaged(same).not_learned
    spread = seeds([0.1] * 3, [0.67] * 3, [-0.2, 0.01, 0.2])
    assert seed_averaged(spread).not_learned
    assert not seed_averaged(spread, gain_interval=(0.01, 0.02)).not_learned
    assert seed_averaged(seeds([0.1], [0.67], [0.015])).not_learned  # ± 1.96 × .01
    assert not seed_averaged(seeds([0.1], [0.67], [0.025])).not_learned


def test_undefined_seeds_are_left_out_and_said_so():
    found = seed_averaged(seeds([0.9, None, 0.9], [0.9] * 3, [0.8, 0.8, 0.9]))
    assert found.label == "solved"
    assert any("1 of 3" in note for note in found.notes)
    assert seed_averaged(seeds([None, None], [0.9] * 2, [0.8, 0.9])).label == "undefined"
    assert seed_averaged(seeds([0.9], [0.9], [0.8], saturated=False)).capacity_limited
    with pytest.raises(ValueError, match="at least one"):
        seed_averaged([])

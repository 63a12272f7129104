"""The table of verdicts."""

from __future__ import annotations

import json

import pytest

from rlstate.probes.verdict import Thresholds, learned_nothing, seed_averaged, verdict


@pytest.mark.parametrize(
    ("recovery", "val_n", "idle", "saturated", "printed"),
    [
        (0.2, 0.5, False, True, "perception_gap"),
        (0.2, 0.99, False, True, "perception_gap"),  # reward without the state
        (0.499, None, False, True, "perception_gap"),
        (0.5, 0.84, False, True, "planning_gap"),  # the thresholds belong to the better side
        (0.5, 0.85, False, True, "solved"),
        (0.9, 0.6, False, True, "planning_gap"),
        (1.0, 1.0, False, True, "solved"),
        (0.1, 0.67, True, True, "perception_gap (not_learned)"),
        (0.1, 0.7, False, False, "perception_gap (capacity_limited)"),
        (0.1, 0.67, True, False, "perception_gap (not_learned, capacity_limited)"),
        (None, 0.9, False, True, "undefined"),
        (0.8, None, False, True, "undefined"),
        (0.9, 0.9, None, None, "solved"),
    ],
)
def test_the_table(recovery, val_n, idle, saturated, printed):
    found = verdict(recovery, val_n, idle, saturated)
    assert str(found) == printed
    assert json.loads(json.dumps(found.summary()))["text"] == printed
    assert bool(found.notes) == (found.label == "undefined" or idle is None or saturated is None)


@pytest.mark.parametrize(
    ("recovery", "untrained", "val_n", "printed"),
    [
        (0.9, 0.49, 0.9, "solved"),
        (0.9, 0.5, 0.9, "solved (untrained_too)"),  # the threshold is the state's own, and counts as reached
        (0.9, 1.0, 0.6, "planning_gap (untrained_too)"),
        (0.5, 0.5, None, "undefined (untrained_too)"),
        (0.4, 0.9, 0.9, "perception_gap"),  # training has lost what was there: the label says so
        (0.9, None, 0.9, "solved"),
        (None, 0.9, 0.9, "undefined"),
    ],
)
def test_an_untrained_network_that_shows_the_state_is_told_beside_the_label(recovery, untrained, val_n, printed):
    found = verdict(recovery, val_n, False, True, diagnostic=True, untrained=untrained)
    assert str(found) == printed
    assert found.label == verdict(recovery, val_n, False, True).label
    assert found.summary()["untrained_too"] is found.untrained_too is ("untrained_too" in printed)
    strict = verdict(recovery, val_n, False, True, Thresholds(recovery=1.1), untrained=untrained)
    assert not strict.untrained_too


def test_of_several_seeds_the_untrained_networks_mean_counts():
    results = [
        each | {"untrained_recovery": u} for each, u in zip(seeds([0.9] * 3, [0.9] * 3, [0.8] * 3), (0.3, 0.3, 0.8))
    ]
    assert str(seed_averaged(results)) == "solved"
    results[0]["untrained_recovery"] = None  # (.3 + .8)/2
    assert str(seed_averaged(results)) == "solved (untrained_too)"
    assert str(seed_averaged([each | {"capacity_saturated": False} for each in results])) == (
        "solved (untrained_too, capacity_limited)"
    )


def test_thresholds_are_configurable():
    strict = Thresholds(recovery=0.95, val_n=0.99)
    assert verdict(0.9, 0.9, False, True).label == "solved"
    assert verdict(0.9, 0.9, False, True, strict).label == "perception_gap"
    assert verdict(0.96, 0.9, False, True, strict).label == "planning_gap"


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


def test_not_learned_is_counted_over_seeds():
    assert not seed_averaged(seeds([0.1] * 3, [0.67] * 3, [0.30, 0.31, 0.32])).not_learned
    mixed = seed_averaged(seeds([0.1] * 3, [0.67] * 3, [-0.2, 0.01, 0.9]))
    assert not mixed.not_learned
    assert str(mixed) == "perception_gap (not_learned in 2 of 3)"
    assert str(seed_averaged(seeds([0.1] * 3, [0.67] * 3, [-0.2, 0.01, 0.0]))) == "perception_gap (not_learned)"
    assert learned_nothing(0.015, 0.01)
    assert not learned_nothing(0.025, 0.01)
    assert learned_nothing(None, None) is None


def test_undefined_seeds_are_left_out_and_said_so():
    found = seed_averaged(seeds([0.9, None, 0.9], [0.9] * 3, [0.8, 0.8, 0.9]))
    assert found.label == "solved"
    assert any("1 of 3" in note for note in found.notes)
    assert seed_averaged(seeds([None, None], [0.9] * 2, [0.8, 0.9])).label == "undefined"
    assert seed_averaged(seeds([0.9], [0.9], [0.8], saturated=False)).capacity_limited
    with pytest.raises(ValueError, match="at least one"):
        seed_averaged([])

"""The held-out scores, of nine automata whose labels are counted by hand."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlstate.automata import structure
from rlstate.control import strata
from rlstate.paper import heldout
from rlstate.paper.heldout import Share, overlap, score
from rlstate.paper.select import Arm, deciding
from rlstate.paper.tables_heldout import held_out
from rlstate.results import Row, write_rows

ROOT = Path(__file__).resolve().parents[2]
GRU, LSTM = Arm(), Arm(encoder="lstm")
USUAL = {
    "gain": 0.5,
    "gain_se": 0.01,
    "probe_gap": 0.2,
    "capacity": 1.0,
    "capacity_ood": 0.99,
    "untrained_recovery": 0.1,
}


def made(task: str, recoveries, arm: Arm = GRU, **figures) -> list[Row]:
    """A row a seed, with these recoveries; other figures are the same in all."""
    config = {**deciding(arm), "task.name": task}
    return [
        Row("paper", f"{task}-{arm.encoder}", task, seed, "", config,
            {**USUAL, "recovery": recovery, "quotient_recovery": recovery, "row_split_recovery": recovery, **figures},
            {}, [], True, [], 60.0, "c0ffee")
        for seed, recovery in enumerate(recoveries)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """hard: 000, 001, 002 and 033; easy_perm: 013, 014; easy_synch: 023, 024, 025."""
    return [
        # a perception gap that has learned nothing; its quotient would be recovered, and val_n is too low to be solved
        *made("heldout_000", [0.1, 0.2, 0.3, 0.2, 0.2], val_n=0.5, gain=-0.1, probe_gap=0.1, quotient_recovery=0.6),
        # the mean is .5 and no gap, though four of five seeds are
        *made("heldout_001", [0.4, 0.4, 0.4, 0.4, 0.9], val_n=0.9, probe_gap=0.3),
        # two configurations: never averaged
        *made("heldout_002", [0.9, 0.9, 0.9], val_n=0.9),
        *(replace(row, hash="another") for row in made("heldout_002", [0.1, 0.1], val_n=0.9)),
        # recovered and not used; its capacity is not saturated at 4T
        *made("heldout_013", [0.8] * 5, val_n=0.5, capacity_ood=0.9, untrained_recovery=0.7),
        # undefined in every seed
        *made("heldout_014", [None] * 5, val_n=0.9, probe_gap=None),
        *made("heldout_023", [0.1] * 5, val_n=0.6),
        # undefined in one seed, and in no mean; no split by row was measured
        *made("heldout_024", [1.0, None, 0.8, 0.9, 0.9], val_n=0.95, row_split_recovery=None),
        *made("heldout_025", [0.3, 0.3], val_n=0.86),  # two of five seeds
        # three seeds, all that the extension has; the split by row gives another label
        *made("heldout_033", [0.45] * 3, val_n=0.9, row_split_recovery=0.55),
        # another protocol
        *(replace(row, config={**row.config, "task.horizon": 12}) for row in made("heldout_003", [0.1] * 5, val_n=0.9)),
    ]


@pytest.fixture(scope="module")
def scores(rows):
    return score(rows)


def test_what_is_there(scores):
    assert [each.name for each in scores.automata] == [
        f"heldout_{i:03d}" for i in (0, 1, 13, 14, 23, 24, 25, 33)
    ]  # 002 is mixed, 003 of another protocol
    assert scores.mixed == ("heldout_002",)
    assert scores.incomplete == ("heldout_025",)
    assert scores.undefined == ("heldout_014",)
    assert (scores.total, scores.runs, scores.runs_expected) == (153, 35, 33 * 5 + 120 * 3)


def test_labels_are_of_the_means(scores):
    labels = {each.name[-3:]: each.label() for each in scores.automata}
    assert labels == {
        "000": "perception_gap", "001": "solved", "013": "planning_gap", "014": None, "023": "perception_gap",
        "024": "solved", "025": "perception_gap", "033": "perception_gap",
    }  # fmt: skip
    verdicts = {each.name[-3:]: str(each.verdict) for each in scores.automata}
    assert verdicts["000"] == "perception_gap (not_learned)"
    assert verdicts["013"] == "planning_gap (untrained_too, capacity_limited)"
    assert scores.automata[5].mean("recovery") == pytest.approx(0.9)  # of four seeds, not .72 of five


def test_table_3(scores):
    found = {line.name: (line.total, line.n, line.perception, line.planning, line.solved, line.undefined)
             for line in scores.strata}  # fmt: skip
    assert found == {
        "hard": (65, 3, 2, 0, 1, 0), "easy_perm": (38, 2, 0, 1, 0, 1), "easy_synch": (50, 3, 2, 0, 1, 0),
        "permutation": (103, 5, 2, 1, 1, 1), "non-permutation": (50, 3, 2, 0, 1, 0),
    }  # fmt: skip
    gaps = {line.name: line.mean_gap for line in scores.strata}
    assert gaps["hard"] == pytest.approx((0.1 + 0.3 + 0.2) / 3)
    assert gaps["easy_perm"] == pytest.approx(0.2)  # 014's is undefined, and not 0
    taught = {line.name: (line.mean_recovery, line.mean_untrained) for line in scores.strata}
    assert taught["hard"] == pytest.approx(((0.2 + 0.5 + 0.45) / 3, 0.1))
    assert taught["easy_perm"] == pytest.approx((0.8, (0.7 + 0.1) / 2))


def test_precision_and_recall(scores):
    assert scores.permutation.precision == Share(2, 4)  # 000 and 033 of 000, 001, 013, 033
    assert scores.permutation.recall == Share(2, 4)  # of 000, 033, 023, 025
    assert scores.permutation.precision.value == 0.5
    # Wilson with z² = 3.8415 at 2 of 4: ½ ± z/(1 + z²/4) · √(1/16 + z²/64) = ½ ± .35
    assert scores.permutation.precision.interval == pytest.approx((0.15, 0.85), abs=1e-3)
    assert scores.original.precision == Share(1, 3)  # without 033
    assert scores.original.recall == Share(1, 3)


def test_the_interval_is_the_papers():
    assert np.round(Share(89, 103).interval, 2).tolist() == [0.78, 0.92]
    assert Share(0, 0).value is None
    assert Share(0, 0).interval is None


def test_thresholds(scores):
    found = dict(scores.thresholds)
    assert list(found) == [0.4, 0.5, 0.6]
    assert (found[0.4].precision, found[0.4].recall) == (Share(1, 4), Share(1, 3))  # 033 has .45
    assert found[0.5] == scores.permutation
    assert (found[0.6].precision, found[0.6].recall) == (Share(3, 4), Share(3, 5))  # 001 has .5


def test_other_recoveries(scores):
    assert scores.quotient.n == 7
    assert scores.quotient.changed == ("heldout_000",)
    assert scores.quotient.prediction.precision == Share(1, 4)
    assert scores.quotient.nontrivial == 0
    assert scores.row_split.n == 6  # 024's was not measured
    assert scores.row_split.changed == ("heldout_033",)
    assert scores.row_split.prediction.recall == Share(1, 3)
    # an untrained network tells the state of 013 alone, which is then the one that is no gap
    assert scores.untrained.n == 7
    assert scores.untrained.changed == ("heldout_001", "heldout_024")
    assert scores.untrained.prediction.precision == Share(3, 4)  # 000, 001, 033 of these and 013


def test_the_quotient_joins_states_in_two_automata_of_the_set():
    rows = [row for name in ("heldout_011", "heldout_012", "heldout_047") for row in made(name, [0.2] * 5, val_n=0.5)]
    assert score(rows).quotient.nontrivial == 2  # 011 and 047


def test_leverage(scores):
    assert scores.conjunction.precision == Share(2, 3)  # 000 and 033 of 000, 001, 033
    assert scores.conjunction.recall == Share(2, 4)
    # L: .5 of 000, 001 and 033, .84 of 013; ∞ of 023, 024 and 025. Gaps against 001, 013, 024:
    # 000 and 033 ½ + 1 + 1 each, 023 and 025 0 + 0 + ½ each
    assert scores.auc_scalar == pytest.approx(6 / 12)
    assert scores.auc_leverage == pytest.approx(3 / 4)  # 000 and 033 against 001 and 013


def test_rewards_and_capacity_of_the_gaps(scores):
    assert scores.rewards.n == 4
    assert scores.rewards.median_val_n == pytest.approx((0.6 + 0.86) / 2)  # of .5, .6, .86, .9
    assert scores.rewards.near_optimal == Share(2, 4)
    assert scores.rewards.not_learned == Share(1, 4)
    assert scores.capacity.saturated == Share(7, 8)
    assert scores.capacity.limited == ("heldout_013",)
    assert (scores.capacity.least, scores.capacity.least_ood) == (1.0, 0.9)
    assert scores.capacity.prediction.precision == Share(2, 3)


def test_features_of_the_gaps_that_are_no_group_languages(scores):
    found = {each.feature: each for each in scores.separators}
    gaps, other = (strata.make(f"heldout_{i:03d}") for i in (23, 25)), strata.make("heldout_024")
    diameter = found["diameter"]
    assert diameter.gaps == np.median([structure.diameter(dfa) for dfa in gaps]) == 3
    assert diameter.others == structure.diameter(other) == 2
    assert diameter.auc == 1.0
    assert (diameter.n_gaps, diameter.n_others) == (2, 1)
    assert found["persistence"].auc == 0.0  # .52 and .37 against .83
    assert found["min_image_size"].auc == 0.5


def test_one_class_has_no_auc():
    found = score(made("heldout_000", [0.1] * 5, val_n=0.5) + made("heldout_023", [0.1] * 5, val_n=0.5))
    assert found.auc_scalar is None
    assert found.auc_leverage is None
    assert all(each.auc is None and each.others is None for each in found.separators)


def test_nothing():
    found = score([])
    assert found.automata == ()
    assert found.permutation.precision.value is None
    assert found.rewards.median_val_n is None
    assert found.capacity.least is None
    assert found.auc_scalar is None
    assert held_out([]) == []


def test_the_lstm(rows):
    more = [
        *made("heldout_000", [0.1] * 3, LSTM, val_n=0.5),
        *made("heldout_001", [0.2] * 3, LSTM, val_n=0.5),
        *made("heldout_023", [0.9] * 3, LSTM, val_n=0.95),
        *made("heldout_024", [0.9] * 2, LSTM, val_n=0.95),
        *made("heldout_004", [0.1] * 3, LSTM, val_n=0.5),  # not run with the GRU
        *made("heldout_033", [0.1] * 3, LSTM, val_n=0.5),  # of the extension, which the LSTM has not
    ]
    gru, lstm = score([*rows, *more]), score([*rows, *more], "lstm")
    assert gru == score(rows)  # other encoders are none of its business
    assert [each.name[-3:] for each in lstm.automata] == ["000", "001", "004", "023", "024"]
    assert (lstm.total, lstm.runs, lstm.runs_expected) == (33, 14, 99)
    assert lstm.incomplete == ("heldout_024",)
    assert lstm.permutation.precision == Share(3, 3)
    found = overlap(gru, lstm)
    assert (found.n, found.first, found.second, found.both, found.same_label) == (4, 2, 2, 1, 2)


def test_an_encoder_that_was_not_run():
    with pytest.raises(ValueError, match=r"transformer.*gru and lstm"):
        score([], "transformer")


# --- its tables and its script ------------------------------------------------------------------------------------


def test_the_tables_say_what_is_missing(rows):
    table3, scored, gaps = held_out(rows)
    assert dict(zip(table3.columns, table3.rows[0]))["automata"] == "3 of 65"
    assert table3.rows[3][:6] == ("permutation", "5 of 103", "2", "1", "1", "1")
    assert table3.rows[5][:6] == ("all", "8 of 153", "4", "1", "2", "1")
    notes = "\n".join(table3.notes)
    assert "there are 35 of 525 runs, of 8 of 153 automata" in notes
    assert "+experiment=heldout`" in notes
    assert "+experiment=heldout_extension`" in notes
    assert "heldout_025 (2 of 5)" in notes
    assert "no label: heldout_014" in notes
    assert "mixed, left out (runs of more than one configuration): heldout_002" in notes
    line = scored.rows[0]
    assert line[1] == line[3] == "2/4 = .50 [.15, .85]"
    assert line[2] == "89/103 = .86 [.78, .92]"
    assert ("their median val_n", ".73", "", "", ".45") in gaps.rows


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("analyze_randval", ROOT / "scripts" / "analyze_randval.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["analyze_randval"] = module
    spec.loader.exec_module(module)
    return module


def test_the_script(script, rows, tmp_path, capsys):
    write_rows(rows, tmp_path / "results.jsonl")
    assert script.main([str(tmp_path)]) == 0  # a folder
    text = capsys.readouterr().out
    assert re.search(r"permutation → perception +2/4 = .50 \[.15, .85\]", text)
    assert "heldout_024  easy_synch" in text
    assert script.main([str(tmp_path / "results.jsonl"), "--json"]) == 0  # the file itself
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"gru"}
    assert told["gru"]["permutation"]["precision"]["value"] == 0.5
    assert told["gru"]["thresholds"][2][1]["recall"] == {"hits": 3, "of": 5, "value": 0.6,
                                                        "interval": pytest.approx([0.231, 0.882], abs=1e-3)}  # fmt: skip
    assert told["gru"]["incomplete"] == ["heldout_025"]
    record = told["gru"]["automata"][5]
    assert record["name"] == "heldout_024"
    assert record["recovery"] == pytest.approx(0.9)
    assert record["label"] == "solved"


def test_the_script_without_runs(script, tmp_path, capsys):
    assert script.main([str(tmp_path / "nowhere")]) == 2
    assert "there is no" in capsys.readouterr().err
    assert script.main([str(tmp_path)]) == 1
    assert "+experiment=heldout" in capsys.readouterr().err


def test_the_first_33_are_those_of_five_seeds():
    assert [entry.name for entry in strata.held_out() if heldout.SEEDS["gru"][entry.set] == 5] == strata.names()[:33]

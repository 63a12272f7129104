"""The predictor's evaluation: the paper's figures, the statistics by other means, labels of one's own."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rlstate.automata import save, zoo

PATH = Path(__file__).resolve().parents[1] / "scripts" / "predictor_eval.py"
SPEC = importlib.util.spec_from_file_location("predictor_eval", PATH)
predictor = importlib.util.module_from_spec(SPEC)
sys.modules["predictor_eval"] = predictor  # where its dataclasses look for their annotations
SPEC.loader.exec_module(predictor)
Labelled = predictor.Labelled


@pytest.fixture(scope="module")
def paper():
    return predictor.labelled(predictor.paper_labels(), 24, 0.5)


def made(scores, hard):
    return [Labelled(f"t{i}", bool(h), None, s < math.inf, s) for i, (s, h) in enumerate(zip(scores, hard))]


# --- the paper's figures ------------------------------------------------------------------------------------------


def test_the_designed_tasks_are_the_papers_fifteen(paper):
    assert len(paper) == 15
    assert not {"mined_div7", "mined_ean", "mod_5_hold"} & {t.task for t in paper}
    assert sorted(t.task for t in paper if t.hard) == ["mod_11", "mod_5", "mod_7", "mod_9", "parity"]
    for t in paper:  # labels and benefits agree where both are known
        assert t.benefit is None or (t.benefit >= 0.20) == t.hard


def test_the_score_ranks_the_designed_tasks_perfectly(paper):
    found = predictor.evaluate(paper, True)
    assert found["auc"] == 1
    assert found["highest_hard_score"] == 0.5
    assert round(found["lowest_easy_score"], 3) == 0.519


def test_leave_one_out_has_the_papers_one_error_with_a_threshold_at_the_least_easy_score(paper):
    assert predictor.leave_one_out(paper, predictor.least_easy) == ["workflow_reconcile"]
    assert predictor.leave_one_out(paper, predictor.midpoint) == ["parity", "workflow_reconcile"]


def test_spearman_needs_a_benefit_that_the_paper_does_not_print(paper):
    assert predictor.spearman(paper) == pytest.approx(-0.7)  # of the five in its Table 2
    by_reconcile = predictor.spearman_with_one_more(paper, "workflow_reconcile")
    by_parity = predictor.spearman_with_one_more(paper, "parity")
    assert [(low, high) for low, high, _ in by_reconcile] == [(-math.inf, 0.03), (0.03, 0.20)]
    assert by_parity[0][:2] == (0.20, 0.25)
    assert round(by_reconcile[1][2], 2) == round(by_parity[0][2], 2) == -0.83
    assert sum(round(value, 2) == -0.83 for _, _, value in by_parity + by_reconcile) == 2


# --- the statistics -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, 30) / 5.0  # with ties
    hard = rng.random(30) < 0.4
    assert predictor.roc_auc(made(scores, hard)) == pytest.approx(roc_auc_score(~hard, scores))
    infinite = np.where(scores > 0.8, math.inf, scores)
    assert predictor.roc_auc(made(infinite, hard)) == pytest.approx(roc_auc_score(~hard, np.minimum(infinite, 9)))


def test_leave_one_out_does_not_see_the_one():
    tasks = made([0.1, 0.15, 0.35, 0.4], [True, True, False, False])
    assert predictor.leave_one_out(tasks, predictor.midpoint) == []
    assert predictor.leave_one_out(tasks, predictor.least_easy) == ["t2"]
    # Alone of its class, a task is called what all others are.
    assert predictor.leave_one_out(made([0.1, 0.6, 0.7], [True, False, False]), predictor.midpoint) == ["t0"]
    assert math.isnan(predictor.roc_auc(made([0.1, 0.2], [True, True])))


def test_the_midpoint_of_an_infinite_hard_score():
    assert predictor.midpoint([0.2, 0.4], [0.6, math.inf]) == 0.5
    assert predictor.midpoint([0.2, math.inf], [0.6]) == 0.6


# --- labels -------------------------------------------------------------------------------------------------------


def test_labels_of_ones_own(tmp_path):
    (tmp_path / "a.csv").write_text("task,benefit,seeds\nmod_5,0.26,5\nmod_3,.03,5\n")
    (tmp_path / "a.json").write_text('{"mod_5": 0.26, "mod_3": 0.03}')
    (tmp_path / "b.json").write_text('[{"task": "mod_5", "benefit": 0.26}, {"task": "mod_3", "benefit": 0.03}]')
    for name in ("a.csv", "a.json", "b.json"):
        assert predictor.read_labels(tmp_path / name) == {"mod_5": (True, 0.26), "mod_3": (False, 0.03)}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "", "ends in .txt"),
        ("a.csv", "task,reward\nmod_5,1\n", "has task and benefit"),
        ("a.csv", "task,benefit\nmod_5,high\n", "'high', but must be a number"),
        ("a.csv", "task,benefit\nmod_5\n", "None, but must be a number"),
        ("a.csv", "task,benefit\nmod_5,nan\n", "must be a number"),
        ("a.csv", "task,benefit\nmod_5,1\nmod_5,2\n", "'mod_5' twice"),
        ("a.json", "{", "no JSON"),
        ("a.json", "3", "has task and benefit"),
        ("a.csv", "task,benefit\nmod_five,1\n", "Unknown task"),
    ],
)
def test_bad_labels_are_named(name, content, said, tmp_path, capsys):
    (tmp_path / name).write_text(content)
    assert predictor.main(["--labels", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error
    assert predictor.main(["--labels", str(tmp_path / "absent.csv")]) == 2


# --- the whole ----------------------------------------------------------------------------------------------------


def test_the_random_family_is_diagnostic_and_reproducible():
    first = predictor.random_family(12, 8, 0.5)
    assert first == predictor.random_family(12, 8, 0.5)
    assert first["n"] == first["diagnostic"] == 12
    assert first["drawn"] >= 12
    assert first["predicted_hard"] <= first["permutation"] <= 12
    assert 0 < first["median_leverage"] <= 1


def test_the_held_out_strata_are_what_their_names_say():
    strata = predictor.held_out(16, 0.5)
    assert {name: each["n"] for name, each in strata.items()} == {"hard": 65, "easy_perm": 38, "easy_synch": 50}
    assert strata["hard"]["predicted_hard"] == 65
    assert strata["easy_perm"]["predicted_hard"] == strata["easy_synch"]["permutation"] == 0


def test_the_script(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(predictor, "held_out", lambda *_: {})  # tested above
    assert predictor.main(["--random", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ROC-AUC 1.000 (paper: 1.00)" in lines
    header = next(line for line in lines if line.startswith("task "))
    table = lines[lines.index(header) + 1 :][: len(zoo.names())]
    assert [row.split()[0] for row in table] == zoo.names()
    assert {len(row) for row in table} == {len(header)}
    assert predictor.main(["--random", "0"]) == 2
    assert "--random is 0" in capsys.readouterr().err

    save(zoo.make("mod_13"), tmp_path / "own.json")
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps({"mod_3": 0.0, "mod_5": 0.3, str(tmp_path / "own.json"): 0.5, "mod_2": 0.1}))
    assert predictor.main(["--random", "5", "--json", "--labels", str(labels)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [t["hard"] for t in report["evaluation"]["tasks"]] == [False, True, True, False]
    assert report["evaluation"]["auc"] == 1
    assert report["evaluation"]["spearman"]["rho"] == pytest.approx(-1)
    assert "paper" not in report["evaluation"]
    assert report["features"]["mod_2"]["score"] is None  # +∞

"""From a log to an automaton and a report: what kinds of automata there are, what is held out, what is written."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rlstate import mine_log
from rlstate.automata import DFA, load, zoo
from rlstate.automata.eventlog import LabelledWords, parse_outcome
from rlstate.mine_log import LEARNERS, definiteness, mine_words, structure

REACH = DFA([[0, 1], [1, 1]], [False, True])
LAST = DFA([[0, 1], [0, 1]], [False, True])


def cases(labelled: list[tuple[tuple[int, ...], bool]], alphabet: tuple[str, ...] = ("a", "b")) -> LabelledWords:
    return LabelledWords(
        tuple(f"case {i}" for i in range(len(labelled))), tuple(word for word, _ in labelled),
        tuple(label for _, label in labelled), alphabet, "given",
    )  # fmt: skip


def sampled(dfa: DFA, number: int = 300, length: int = 8, seed: int = 0) -> LabelledWords:
    draw = random.Random(seed)
    words = [tuple(draw.randrange(dfa.n_symbols) for _ in range(draw.randrange(length + 1))) for _ in range(number)]
    return cases([(word, dfa.accepts(word)) for word in words], dfa.alphabet)


def csv_log(folder: Path, words: list[str]) -> Path:
    path = folder / "log.csv"
    rows = [f"{i},{activity}" for i, word in enumerate(words) for activity in word]
    path.write_text("case,activity\n" + "\n".join(rows) + "\n")
    return path


def arguments(*given: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    mine_log.add_arguments(parser)
    return parser.parse_args([str(value) for value in given])


# --- structure ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dfa", "shape", "degree"),
    [
        (REACH, "reach-commit", None),
        (REACH.complement(), "reach-commit", None),
        (DFA([[0, 1, 2], [1, 1, 1], [1, 1, 1]], [False, True, True]), "reach-commit", None),  # minimal: two states
        (LAST, "decide-late", 1),
        (DFA([[0, 1, 0], [0, 1, 1]], [False, True]), "decide-late", 1),  # the last 0 or 1 decides, 2 is idle
        (DFA([[0, 1, 0], [0, 1, 1], [0, 1, 2]], [False, True, False], start=2), "decide-late", 1),  # three states: two
        (zoo.make("ends_with_101"), "decide-late", 3),
        (zoo.make("contains_101"), "other", None),  # it commits, but with four states
        (zoo.make("mod_3"), "other", None),
        (zoo.make("parity"), "other", None),
        (DFA([[1, 1], [1, 1]], [True, True]), "constant", None),
        (DFA([[1, 1], [2, 2], [2, 2]], [False, True, False]), "other", None),  # words of length one: decided after two
        (DFA([[0, 1, 1], [1, 0, 1]], [False, True]), "other", None),  # a swap
    ],
)
def test_shapes(dfa, shape, degree):
    got = structure(dfa)
    assert (got["shape"], got["degree"]) == (shape, degree)
    json.dumps(got)


def test_structure_of_known_automata():
    parity, reach = structure(zoo.make("parity")), structure(REACH)
    assert (parity["permutation"], parity["star_free"], parity["synchronizing"], parity["absorbing"]) == (
        True, False, False, [],
    )  # fmt: skip
    assert (reach["permutation"], reach["star_free"], reach["synchronizing"], reach["absorbing"], reach["accepting"]) == (
        False, True, True, [1], [1],
    )  # fmt: skip


def test_two_states_commit_or_decide_late_unless_a_symbol_swaps_them():
    """All two-state automata over three symbols: each is idle, leads to one state, or swaps."""
    shapes = Counter()
    for columns in itertools.product([(0, 1), (0, 0), (1, 1), (1, 0)], repeat=3):
        got = structure(DFA(np.array(columns).T, [False, True]))
        assert (got["shape"] == "other") == ((1, 0) in columns)
        if got["states"] == 2:
            assert got["permutation"] == (not {(0, 0), (1, 1)} & set(columns))
        assert len(got["idle"]) == (3 if got["states"] == 1 else columns.count((0, 1)))
        shapes[got["shape"]] += 1
    # Without (1, 1) and swaps the start is never left; without (0, 0) the other state is not.
    assert shapes == {"constant": 8, "reach-commit": 7, "decide-late": 12, "other": 37}


def test_definiteness_is_what_it_says():
    """Brute force over all words: the label of longer words is that of their last k symbols, and of no fewer."""
    definite = 0
    rng = np.random.default_rng(5)
    for _ in range(400):
        n = int(rng.integers(1, 5))
        dfa = DFA(rng.integers(0, n, (n, 2)), rng.random(n) < 0.5)
        words = [word for length in range(8) for word in itertools.product(range(2), repeat=length)]
        label = {word: dfa.accepts(word) for word in words}

        def depends_on_last(k, label=label):
            kept = [word for word in label if len(word) >= k]
            return all(label[word] == label[word[len(word) - k :]] for word in kept)

        # Four states: two are together after at most three symbols, or never (at most three classes are left to join).
        least = next((k for k in range(4) if depends_on_last(k)), None)
        assert definiteness(dfa) == least
        definite += least is not None and least > 0
    assert definite > 15


# --- learning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    "target", [REACH, LAST, zoo.make("parity"), zoo.make("contains_101")], ids=["reach", "last", "parity", "contains"]
)
def test_learners_find_the_automaton_and_are_right_on_held_out_cases(learner, target):
    mined = mine_words(sampled(target), learner)
    assert mined.dfa.equivalent(target) is None
    assert mined.dfa.n_states == target.minimize().n_states == mined.report["automaton"]["states"]
    for part in ("training", "held_out", "held_out_unseen_words"):
        score = mined.report[part]
        assert score["accuracy"] == score["bayes_ceiling"] == 1.0
        assert score["majority"] < 0.99
    assert mined.report["training"]["covered"] == 1.0
    assert mined.report["automaton"]["permutation"] == (target == zoo.make("parity"))
    json.dumps(mined.report)


def test_scores_add_up():
    """Contradictions: no accuracy above its ceiling, and all counts by hand."""
    draw = random.Random(1)
    labelled = sampled(LAST, 400, 3)
    noisy = cases([(word, label ^ (draw.random() < 0.2)) for word, label in zip(labelled.words, labelled.labels)])
    mined = mine_words(noisy, test=0.4, seed=2)
    training, held_out = noisy.split(0.4, 2)
    report, dfa = mined.report, mined.dfa
    assert report["cases"] == 400 == report["training"]["cases"] + report["held_out"]["cases"]
    assert report["held_out"]["accuracy"] == pytest.approx(
        np.mean([dfa.accepts(word) == label for word, label in zip(held_out.words, held_out.labels)])
    )
    majority = sum(training.labels) > len(training) / 2
    assert report["held_out"]["majority"] == pytest.approx(np.mean([label == majority for label in held_out.labels]))
    seen = set(training.words)
    unseen = [(word, label) for word, label in zip(held_out.words, held_out.labels) if word not in seen]
    assert report["held_out_unseen_words"]["cases"] == len(unseen)
    assert report["split"]["words_in_both"] == len(seen & set(held_out.words)) > 5
    assert report["conflicts"]["words"] > 3
    assert report["conflicts"]["bayes_ceiling"] == 1 - report["conflicts"]["cases"] / 400
    for part in ("training", "held_out"):
        assert report[part]["accuracy"] <= report[part]["bayes_ceiling"] < 1.0
    # Every training word keeps its majority's label: without tolerance the automaton is the best map on them.
    assert report["training"]["accuracy"] == pytest.approx(report["training"]["bayes_ceiling"])


def test_transitions_that_nothing_takes_leave_the_state():
    """Where a and b alternate, b in the first state and a in the second are never seen."""
    words = [(0, 1) * (n // 2) + (0,) * (n % 2) for n in range(12)] * 8
    mined = mine_words(cases([(word, len(word) % 2 == 0) for word in words]), "rpni")
    assert mined.dfa == DFA([[1, 0], [1, 0]], [True, False], alphabet=("a", "b"))
    got = mined.report["automaton"]
    assert (got["states"], got["undefined_transitions"]) == (2, 2)
    assert (got["permutation"], got["permutation_possible"]) == (False, True)
    assert mined.report["held_out"]["covered"] == mined.report["held_out"]["accuracy"] == 1.0


def test_words_off_the_training_words_are_not_covered():
    known = cases([((0, 1) * (n // 2) + (0,) * (n % 2), n % 2 == 0) for n in range(5)] * 40)
    odd = LabelledWords((*known.names, "x"), (*known.words, (1, 1)), (*known.labels, False), ("a", "b"), "given")
    seed = next(seed for seed in range(99) if "x" in odd.split(0.3, seed)[1].names)
    report = mine_words(odd, "rpni", seed=seed).report
    # b in the first state is seen nowhere: the state, which accepts, stays; the learner's own sink rejects.
    assert report["held_out_unseen_words"] == {
        "cases": 1, "words": 1, "accuracy": 0.0, "standard_error": 0.0, "majority": 0.0, "bayes_ceiling": 1.0,
        "covered": 0.0, "accuracy_if_unseen_is_rejected": 1.0,
    }  # fmt: skip
    rest = report["held_out"]["cases"] - 1
    assert report["held_out"]["covered"] == report["held_out"]["accuracy"] == rest / (rest + 1)


def test_arguments_that_will_not_do():
    with pytest.raises(ValueError, match="learner is 'lstar'"):
        mine_words(sampled(LAST), "lstar")
    with pytest.raises(ValueError, match="change the seed"):
        mine_words(sampled(LAST, 1))
    with pytest.raises(ValueError, match="change the seed"):
        mine_words(sampled(LAST), test=0.0)


# --- the command --------------------------------------------------------------------------------------------------


def test_command_writes_a_report_and_never_over_one(tmp_path, capsys):
    draw = random.Random(0)
    log = csv_log(tmp_path, ["".join(draw.choice("abcd") for _ in range(1 + draw.randrange(6))) for _ in range(200)])
    out = tmp_path / "new" / "report"
    given = (log, "--outcome", "contains:c", "--top", 2, "--output", out)
    assert mine_log.main(arguments(*given)) == 0
    printed = capsys.readouterr().out
    assert "2 states (minimal), shape: reach-commit" in printed
    assert sorted(path.name for path in out.iterdir()) == sorted(mine_log.FILES)
    assert [path.name for path in out.parent.iterdir()] == ["report"]  # nothing temporary is left
    shown, _, after = printed.partition("\nin ")
    assert (out / "report.md").read_text() == shown
    assert f"rlstate.inspect {out}/automaton.json\n" in after
    assert f"task=file task.path={out}/automaton.json task.horizon=16\n" in after
    report = json.loads((out / "report.json").read_text())
    dfa = load(out / "automaton.json")
    assert list(dfa.alphabet) == report["alphabet"]
    assert report["alphabet"][-1] == "other"
    assert set(report["alphabet"]) > {"c"}
    assert report["log"]["cases"] == 200 == report["cases"]
    assert report["held_out"]["accuracy"] == 1.0
    c = dfa.alphabet.index("c")
    assert dfa.accepts((c, 0, 1)) and not dfa.accepts(())  # noqa: PT018
    assert (out / "automaton.svg").read_text().lstrip().startswith("<?xml")

    before = {path: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ValueError, match=r"already holds .*--force"):
        mine_log.main(arguments(*given, "--learner", "rpni"))
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert mine_log.main(arguments(*given, "--learner", "rpni", "--force")) == 0
    assert json.loads((out / "report.json").read_text())["learner"] == "rpni"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--outcome", "contains:z"), "no activity"),
        (("--outcome", "contains:a"), "every case"),
        (("--outcome", "last:a", "--lifecycle", "start"), "drops"),
        (("--outcome", "attribute:x=1", "--before-outcome"), "No event decides"),
        (("--outcome", "last:a", "--case", "id"), "'case', 'activity'"),
    ],
)
def test_a_failure_writes_nothing(tmp_path, given, message):
    log = csv_log(tmp_path, ["ab", "a", "ba"] * 10)
    out = tmp_path / "report"
    with pytest.raises(ValueError, match=message):
        mine_log.main(arguments(log, *given, "--output", out))
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_cut_words_leave_only_what_comes_before(tmp_path, capsys):
    """b follows a, and c follows nothing in particular: the cut case still tells b from its a, by which it ends."""
    log = csv_log(tmp_path, ["ab", "cab", "c", "cc", "ccab", "ccc"] * 20)
    out = tmp_path / "report"
    mine_log.main(arguments(log, "--outcome", "contains:b", "--before-outcome", "--output", out))
    assert "up to the event that decides" in capsys.readouterr().out
    report = json.loads((out / "report.json").read_text())
    assert report["before_outcome"] is True
    assert report["alphabet"] == ["c", "a", "b"]
    assert report["held_out"]["accuracy"] == 1.0


def test_lifecycle_may_be_a_list(tmp_path, capsys):
    path = tmp_path / "log.csv"
    rows = [f"{i},{a},{t}" for i in range(30) for a in ("ab" if i % 2 else "a") for t in ("start", "done", "noise")]
    path.write_text("case,activity,lifecycle\n" + "\n".join(rows))
    mine_log.main(arguments(path, "--outcome", "contains:b", "--lifecycle", "start, done"))
    assert "90 events kept, 45 dropped" in capsys.readouterr().out


def test_what_there_is_none_of_is_not_counted(tmp_path, capsys):
    """Cases whose order by time is the file's, all timed, none dropped, no word with both labels, all transitions taken."""
    path = tmp_path / "log.csv"
    words = ["".join(word) for length in range(1, 4) for word in itertools.product("ab", repeat=length)] * 5

    def mined(outcome: str, times: bool = True, *options: str) -> str:
        rows = [f"{i},{a},{t if times else ''}" for i, word in enumerate(words) for t, a in enumerate(word)]
        path.write_text("nr,what,when\n" + "\n".join(rows))
        columns = ("--case", "nr", "--activity", "what", "--timestamp", "when")
        assert mine_log.main(arguments(path, "--outcome", outcome, *columns, *options)) == 0
        return capsys.readouterr().out

    text = mined("contains:b")
    for alarm in ("dropped", "order of time", "timestamp", "lack the attribute", "against", "no training word", " 0 "):
        assert not [line for line in text.splitlines() if line.startswith("- ") and alarm in line]
    assert "14 distinct words; none with both labels: Bayes ceiling 1.000" in text
    assert "70 cases left in the file's order, since a timestamp is missing (see --timestamp)" in mined(
        "contains:b", False
    )
    # Whatever the last activity is, what comes before it is the same.
    assert "with both labels" in (text := mined("last:b", True, "--before-outcome", "--tolerance", "0.49"))
    assert "none with both labels" not in text
    assert "- 1 state (minimal), shape: constant\n- no task: every case gets the same answer" in text
    assert "permutation: yes, as every automaton of one state" in text


def test_real_log(data, tmp_path, capsys):
    out = tmp_path / "report"
    log = data / "logs" / "pm4py__08_receipt.xes.gz"
    rule = "last:T10 Determine necessity to stop indication"
    mine_log.main(arguments(log, "--outcome", rule, "--output", out, "--learner", "rpni"))
    report = json.loads((out / "report.json").read_text())
    assert report["cases"] == 1434
    assert report["cases_true"] == 828
    assert report["log"]["events_kept"] == 8577
    assert report["automaton"]["permutation"] is False
    assert report["held_out"]["accuracy"] > report["held_out"]["majority"] + 0.3


def script_of(name: str):
    path = Path(__file__).resolve().parents[1] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_script_says_which_logs_are_here_and_what_holds(data, tmp_path, capsys):
    script = script_of("mine_logs")
    log = next(log for log in script.LOGS if "roadtraffic50" in log.file)
    rows = script.mine(data / "logs", log, seed=0)
    assert len(rows) == len(script.VIEWS) * len(script.LEARNERS)
    text = script.tables(rows, ["absent.xes"])
    assert "these are here: fines; these are not: procurement" in text
    assert "of the paper's processes: 2 automata, 2 of two states; 2 reach-commit; permutation: 2 possible." in text
    assert "skipped: absent.xes" in text
    for log in script.LOGS:  # a rule that a log does not have would only be found by the whole run
        parse_outcome(log.outcome)


@pytest.fixture
def two_logs(tmp_path, monkeypatch):
    """The script with two logs of its own, in a folder."""
    script = script_of("mine_logs")
    monkeypatch.setattr(script, "OUT", None)  # no test writes where the real result is
    monkeypatch.setattr(script, "LOGS", tuple(script.Log(f"{n}.csv", "fines", "contains:b", "so") for n in "xy"))
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in "xy":
        csv_log(folder, ["ab", "a", "ba", "aa|b"] * 20).rename(folder / f"{name}.csv")
    return script, folder


def test_script_replaces_no_result_by_a_lesser_one(two_logs, tmp_path, capsys):
    script, folder = two_logs
    out = tmp_path / "deep" / "out"
    given = [str(folder), "--output", str(out)]
    assert script.main(given) == 0
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(whole) == ["mined_logs.json", "mined_logs.md"]
    assert capsys.readouterr().out.rstrip() == whole["mined_logs.md"].decode().rstrip()
    assert script.main(given) == 0  # the same logs

    (folder / "y.csv").rename(tmp_path / "y.csv")
    with pytest.raises(
        ValueError, match=r"has 1 logs that this result would lack \(y.csv\): .*--output FOLDER, or --force"
    ):
        script.main(given)
    assert "y.csv: not in" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == whole
    assert script.main([str(folder), "--output", str(tmp_path / "other")]) == 0
    assert "skipped: y.csv" in (tmp_path / "other" / "mined_logs.md").read_text()
    assert script.main([*given, "--only", "x"]) == 0  # writes nothing
    assert {path.name: path.read_bytes() for path in out.iterdir()} == whole
    assert script.main([*given, "--force"]) == 0
    assert {row["log"]["file"] for row in json.loads((out / "mined_logs.json").read_text())} == {"x.csv"}
    (out / "mined_logs.json").write_text("[1]")
    with pytest.raises(ValueError, match="no result of this script"):
        script.main(given)


def test_script_skips_a_damaged_log_and_says_so(two_logs, tmp_path, capsys):
    script, folder = two_logs
    out = tmp_path / "out"
    assert script.main([str(folder), "--output", str(out)]) == 0
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    (folder / "x.csv").write_text("case,activity\n1,a,b\n")
    capsys.readouterr()
    with pytest.raises(ValueError, match=r"would lack \(x.csv\)"):
        script.main([str(folder), "--output", str(out)])
    shown, said = capsys.readouterr()
    sentence = "x.csv: line 2 has 3 cells, but the header names 2 columns."
    assert f"{sentence} Skipped.\n" in said
    assert "written as mined_logs_partial" in said
    assert f"skipped:\n\n- {sentence}\n" in shown
    assert {name: (out / name).read_bytes() for name in whole} == whole
    assert (out / "mined_logs_partial.md").read_text().rstrip() == shown.rstrip()
    assert len(json.loads((out / "mined_logs_partial.json").read_text())) == 6
    assert script.main([str(folder), "--output", str(tmp_path / "new")]) == 0
    assert sentence in (tmp_path / "new" / "mined_logs.md").read_text()
    assert not [path for path in tmp_path.rglob(".*")]
    (folder / "y.csv").write_text("")
    with pytest.raises(ValueError, match="None of the logs"):
        script.main([str(folder), "--output", str(tmp_path / "new")])
    with pytest.raises(ValueError, match="has none of the logs"):
        script.main([str(tmp_path)])


def test_names_are_on_one_line_of_the_report(tmp_path, capsys):
    path = tmp_path / "log.csv"
    rows = [f'{i},"{activity}"' for i in range(40) for activity in (["a\nb", "c|d"] if i % 2 else ["a\nb"])]
    path.write_text("case,activity\n" + "\n".join(rows) + "\n")
    assert mine_log.main(arguments(path, "--outcome", r"contains:c\|d", "--output", tmp_path / "out")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == r"# log.csv: contains:c\\|d"
    assert r"- alphabet (2): a\nb, c\|d" in lines
    assert json.loads((tmp_path / "out" / "report.json").read_text())["alphabet"] == ["a\nb", "c|d"]


def test_what_was_mined_is_shown_even_if_it_cannot_be_written(tmp_path, capsys, monkeypatch):
    log = csv_log(tmp_path, ["ab", "a", "ba"] * 10)
    monkeypatch.setattr("rlstate.drawing.save_drawing", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        mine_log.main(arguments(log, "--outcome", "contains:b", "--output", tmp_path / "out"))
    assert "reach-commit" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--samples", "0"], "--samples is 0"),
        (["--horizon", "-1"], "--horizon is -1"),
        (["--seed", "-1"], "--seed is -1"),
        (["--p-control", "1.5"], "--p-control is 1.5"),
        (["--p-control", "nan"], "--p-control is nan"),
    ],
)
def test_base_rate_refuses_what_makes_no_sense(options, said, capsys):
    with pytest.raises(SystemExit) as stop:
        script_of("base_rate").main(options)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the logs of ../shared/data are not on this machine")
    return folder

"""What is said of one automaton: the numbers, the warning and its limits, and errors of one line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rlstate.automata import DFA, save, zoo
from rlstate.automata.sampling import random_dfa
from rlstate.inspect import as_text, find, inspect, main, sparkline
from rlstate.inspect_figure import draw_report
from rlstate.train import compose

ROOT = Path(__file__).resolve().parents[1]


def told(capsys, *arguments: str) -> str:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


# --- the report ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "optimal", "random", "leverage"),
    [("parity", 0.75, 0.5, 0.5), ("mod_3", 0.692, 0.333, 0.538), ("mod_5", 0.547, 0.2, 0.433),
     ("mod_5_hold", 0.618, 0.2, 0.523), ("workflow_reconcile", 0.615, 0.2, 0.519)],
)  # fmt: skip
def test_the_oracle_table_has_the_known_values(name, optimal, random, leverage):
    report = inspect(zoo.make(name), 24, 0.5, name)
    assert [row["horizon"] for row in report["oracle"]] == [24, 96]
    for row in report["oracle"]:
        assert (round(row["optimal"], 3), round(row["random"], 3), row["full_control"]) == (optimal, random, 1)
        assert round(row["leverage"], 3) == leverage
    assert report["structure"]["diagnostic"]
    assert f"{leverage:.3f}" in as_text(report)


def test_values_by_steps_to_go_end_in_the_oracle_row():
    report = inspect(zoo.make("contains_0010"), 12, 0.25)
    for key, values in report["values"].items():
        assert len(values) == 13
        assert values[-1] == pytest.approx(report["oracle"][0][key])
        assert values[:4] == [0, 0, 0, 0]  # four symbols are needed
    assert report["values"]["full_control"][4:] == [1] * 9


def test_influence_against_its_bounds():
    report = inspect(zoo.make("mod_5"), 16, 0.5, "mod_5")
    assert report["influence"] == pytest.approx([0.5**r for r in range(1, 17)])
    assert report["proposition_2"]["geometric"] == pytest.approx([2 * 0.5**r for r in range(1, 17)])
    assert (np.array(report["influence"]) <= report["proposition_2"]["exact"]).all()
    assert report["replaying_influence"] is None
    text = as_text(report)
    assert [line.split() for line in text.splitlines() if line.split()[:1] == ["5"]] == [
        ["5", "0.0312", "0.0625", "0.0625"]
    ]
    assert "λ(P^2)^(1/2) = 0.5, C = 2." in text


def test_the_replaying_policy_is_told_of_parity_only():
    odd = DFA([[1, 0], [0, 1]], [False, True], alphabet=("swap", "stay"))
    padded = DFA([[2, 1], [1, 2], [0, 1]], [True, False, True])  # 0 and 2 are one state
    for dfa in (zoo.make("parity"), odd, padded):
        report = inspect(dfa, 5, 0.3)
        assert report["replaying_influence"] == pytest.approx([0.3] * 5)
        assert "A policy that replays" in as_text(report)
    for dfa in (zoo.make("mod_2"), zoo.make("mod_3"), DFA([[0, 1, 1], [1, 0, 0]], [True, False])):
        assert inspect(dfa, 5, 0.3)["replaying_influence"] is None


def test_what_the_predictor_says():
    def said(dfa):
        report = inspect(dfa, 16, 0.5)
        return report["warning"], " ".join(report["predictor"])

    warned, text = said(zoo.make("mod_5"))
    assert warned
    assert text.startswith("warning: perception gap likely.")
    for part in ("103", "89", "L = 0.433 is below 0.51", "does not transfer", "32", "none here"):
        assert part in text
    warned, text = said(zoo.make("mod_5_hold"))
    assert warned
    for part in ("is not below 0.51", "hold leaves every state", "parity has one and is hard"):
        assert part in text
    warned, text = said(zoo.make("no_three_zeros"))
    assert not warned
    assert text.startswith("no warning, which is not a promise")
    for part in ("50", "20 were perception gaps, 14 planning gaps and 16 solved"):
        assert part in text
    assert "outside" not in text
    assert "Not diagnostic" in said(zoo.make("contains_0010"))[1]
    assert "outside" in said(zoo.make("mod_11"))[1]
    # A permutation automaton in which nothing can be gained: accept by the number of symbols read.
    assert said(DFA([[1, 1], [0, 0]], [True, False])) == (False, said(DFA([[1, 1], [0, 0]], [True, False]))[1])
    assert said(DFA([[1], [0]], [True, True])) == (False, "no task: every word gets the same answer.")


def test_text_is_of_readable_width_and_json_is_json():
    for name in zoo.names():
        report = inspect(zoo.make(name), 40, 0.5, name)
        assert max(map(len, as_text(report).splitlines())) <= 110
        assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_what_is_too_large_or_undefined_is_none():
    line = DFA(np.minimum(np.arange(1, 1202), 1200)[:, None], np.arange(1201) == 1200)
    report = inspect(line, 5, 0.5)
    assert report["proposition_2"] is report["structure"]["diameter"] is report["oracle"][0]["leverage"] is None
    assert "Too many states for the bound" in " ".join(as_text(report).split())
    middle = inspect(random_dfa(300, 2, 0), 4, 0.5)
    assert middle["proposition_2"] is None
    assert middle["structure"]["contraction"] > 0


def test_sparkline():
    assert sparkline([1.0, 0.5, 0.12, 1e-9, 0.0]) == "█▅▁▁·"


# --- what is inspected --------------------------------------------------------------------------------------------


def test_files_names_and_regular_expressions(tmp_path, monkeypatch):
    dfa = zoo.make("ends_with_101")
    for suffix in (".dot", ".json", ".dfa"):
        save(dfa, tmp_path / f"machine{suffix}")
        assert find(str(tmp_path / f"machine{suffix}")).equivalent(dfa) is None
    assert find("ends_with_101") == dfa
    assert find("(0|1)*101").equivalent(dfa) is None
    assert find("101", regex=True).accepts((1, 0, 1))
    (tmp_path / "partial.json").write_text('{"alphabet": ["a"], "start": 0, "accepting": [0], "transitions": [[-1]]}')
    assert find(str(tmp_path / "partial.json"), complete=True).n_states == 2
    moore = (
        'digraph { s [shape=none]; s -> a; a [label="a|off"]; b [label="b|on"]; a -> b [label=x]; b -> b [label=x]; }'
    )
    (tmp_path / "moore.dot").write_text(moore)
    assert find(str(tmp_path / "moore.dot"), accept=["on"]).accepting.tolist() == [False, True]
    # A file is preferred to a task of the same name.
    save(dfa, tmp_path / "machine.json")
    (tmp_path / "machine.json").rename(tmp_path / "mod_3.json")
    monkeypatch.chdir(tmp_path)
    assert find("mod_3.json").equivalent(dfa) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mod5"], "Unknown task 'mod5'. Did you mean 'mod_5'"),
        (["mod_k"], "needs the parameter 'k'"),
        (["absent.dot"], "There is no file absent.dot."),
        (["some/where"], "There is no file some/where."),
        (["(0|1"], "not closed"),
        (["."], "is a folder"),
        (["mod_5", "--horizon", "0"], "horizon=0"),
        (["mod_5", "--p-control", "1.5"], "p_control=1.5"),
        (["mod_5", "--figure", "out.pdf"], "ends in .pdf"),
        ([""], "The automaton is an empty text"),
        ([" "], "The automaton is an empty text"),
        (["--regex", ""], "contains no symbol"),
        (["0" * 6000], "'… (6000 characters) is neither a file nor a task of the zoo; --regex reads it"),
        (["(" * 6000], "too many operators"),
        (["(0|1" + "0" * 5000], "not closed"),
        (["a\0b"], "Unknown task"),
    ],
)
def test_errors_are_one_line(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert said in captured.err
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_machine_says_what_to_do(capsys, tmp_path):
    path = tmp_path / "partial.json"
    path.write_text('{"alphabet": ["a"], "start": 0, "accepting": [0], "transitions": [[-1]]}')
    assert main([str(path)]) == 2
    assert "complete the automaton with a rejecting sink with --complete" in capsys.readouterr().err
    assert "2 states" in told(capsys, str(path), "--complete")
    mealy = tmp_path / "mealy.dot"
    mealy.write_text('digraph { s [shape=none]; s -> a; a -> a [label="x/ok"]; a -> a [label="y/no"]; }')
    assert main([str(mealy)]) == 2
    assert "--accept '" in capsys.readouterr().err
    assert "symbols: x, y" in told(capsys, str(mealy), "--accept", "ok")


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command(capsys, tmp_path):
    text = told(capsys, "parity", "--horizon", "8", "--p-control", "0.25")
    assert text.startswith("parity, T = 8, p_control = 0.25\n")
    assert "warning: perception gap likely" in text
    protocol, quickstart = (compose([f"+experiment={name}"])["task"]["horizon"] for name in ("protocol", "quickstart"))
    said = f"(T as in the paper; --horizon gives another, and the quickstart has T = {quickstart})\n"
    assert told(capsys, "parity").startswith(f"parity, T = {protocol}, p_control = 0.5\n{said}")
    assert said not in text
    with pytest.raises(SystemExit):
        main(["--help"])
    helped = " ".join(capsys.readouterr().out.split())
    assert f"(default {protocol}, the paper's; the quickstart trains at {quickstart})" in helped
    report = json.loads(told(capsys, "mod_3", "--json", "--figure", str(tmp_path / "mod_3.svg")))
    assert report["structure"]["permutation"]
    assert report == inspect(zoo.make("mod_3"), 16, 0.5, "mod_3")
    first = (tmp_path / "mod_3.svg").read_bytes()
    told(capsys, "mod_3", "--figure", str(tmp_path / "mod_3.svg"))
    assert (tmp_path / "mod_3.svg").read_bytes() == first


@pytest.mark.parametrize("name", ["parity", "mod_5", "workflow_api", "mined_ean", "ends_with_101"])
def test_the_figure_shows_the_report(name):
    dfa = zoo.make(name)
    report = inspect(dfa, 10, 0.5, name)
    figure = draw_report(dfa, report)
    figure.canvas.draw()
    _, influence, values = figure.axes
    curves = {line.get_label(): line.get_ydata() for line in influence.lines}
    shown = np.array(report["influence"])
    np.testing.assert_array_equal(curves["Δ, random play"], np.where(shown > 0, shown, np.nan))
    assert ("Δ, replaying policy" in curves) == (name == "parity")
    assert ("C·λʳ" in curves) == (name == "mod_5")
    assert ("▼ exactly 0" in [text.get_text() for text in influence.texts]) == (0 in report["influence"])
    for line in values.lines:
        assert line.get_ydata().tolist() == report["values"][line.get_label().replace(" ", "_")]
    assert name in figure.get_suptitle()


def test_a_long_expression_is_one_however_long(capsys):
    text = told(capsys, "(0|1)*" + "0" * 400)
    assert text.splitlines()[0].startswith("(0|1)*000")
    assert max(map(len, text.splitlines())) <= 110
    assert json.loads(told(capsys, "(0|1)*" + "0" * 400, "--json"))["name"] == "(0|1)*" + "0" * 400


def test_influence_below_the_smallest_floats_is_drawn_too(capsys, tmp_path):
    """Δ of mod_5 at r is 2^−r: denormal from 1023, 0 from 1075."""
    text = told(capsys, "mod_5", "--horizon", "1060", "--figure", str(tmp_path / "long.svg"))
    assert text.startswith("mod_5, T = 1060")
    ElementTree.parse(tmp_path / "long.svg")


def test_a_figure_is_well_formed_whatever_the_name(capsys, tmp_path):
    told(capsys, "(a|b\x01)*\udcff", "--figure", str(tmp_path / "odd.svg"))
    ElementTree.parse(tmp_path / "odd.svg")


def test_a_figure_that_cannot_be_written_does_not_cost_the_report(capsys, tmp_path):
    (tmp_path / "taken").touch()
    assert main(["parity", "--figure", str(tmp_path / "taken" / "a.svg")]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("parity, T = 16")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [["inspect", "mod_5"], ["mine", "list"], ["mine", "code", "div3"]])
def test_any_output_will_do(command):
    """One that cannot show Δ, one that is full, one that nobody reads."""
    run = [sys.executable, "-m", "rlstate." + command[0], *command[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ascii_only = subprocess.run(run, env=environment, capture_output=True, check=True)
    assert ascii_only.stdout.isascii()
    assert ascii_only.stderr == b""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(run, env=environment, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: [Errno 28] No space left on device\n")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(run, env=environment, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_starts_without_torch_or_plots():
    code = (
        "import sys; from rlstate.inspect import main; main(['mod_5', '--json']); "
        "assert not {'torch', 'matplotlib', 'scipy'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL)

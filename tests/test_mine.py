import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlstate.automata import DFA, load, mining, zoo
from rlstate.mine import main
from rlstate.mine_code import split_alphabet, split_names
from rlstate.mine_output import FILES, as_options, next_steps, write_files
from rlstate.plan import plan
from rlstate.train import compose

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def door(tmp_path, monkeypatch):
    """A user's module in the working directory."""
    (tmp_path / "door.py").write_text(
        '"""Doors."""\n\n'
        "def is_safe(names):\n"
        '    """Locked at the end, and opened at most once."""\n'
        '    return names.count("open") <= 1 and names[-1:] == ("lock",)\n\n'
        'def rare(text):\n    return text == "abcabc"\n\n'
        "def even(text):\n    return len(text) % 2 == 0\n\n"
        "def count(text):\n    return len(text)\n\n"
        "limit = 3\n"
    )
    (tmp_path / "broken.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def everything_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_div7_is_mined_shown_and_written(tmp_path, capsys):
    folder = tmp_path / "deep" / "div7"
    assert main(["code", "div7", "--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    for part in ("7 states, 1 of them accepting, 2 symbols", "100.0% of the transitions", "permutation    yes",
                 "21 elements", "leverage       0.4061", "6 control-relevant classes", "not proven",
                 "tested         no difference found on 500 words"):  # fmt: skip
        assert part in shown
    assert sorted(os.listdir(folder)) == ["automaton.json", "automaton.svg", "report.json", "report.md"]
    assert os.listdir(folder.parent) == ["div7"]
    assert load(folder / "automaton.json").equivalent(zoo.make("mined_div7")) is None
    report = json.loads((folder / "report.json").read_text())
    assert report["passed"]
    assert report["automaton"] == {
        "states": 7, "symbols": 2, "accepting": 1, "digest": zoo.make("mined_div7").digest(),
    }  # fmt: skip
    assert report["features"]["leverage"] == pytest.approx(0.4061, abs=1e-4)
    assert report["features"]["monoid_size"] == 21
    assert report["held_out"]["overall"] == report["coverage"] == 1.0
    assert report["task"] == {"horizon": 16, "p_control": 0.5}
    assert (folder / "report.md").read_text().startswith("# div7")
    assert "<svg" in (folder / "automaton.svg").read_text()


def test_nothing_is_written_over_without_force(tmp_path, capsys):
    folder = tmp_path / "mined"
    folder.mkdir()
    (folder / "automaton.json").write_text("mine")
    (folder / "notes.txt").write_text("keep")
    assert main(["code", "div7", "--output", str(folder)]) == 2
    assert "already holds automaton.json" in capsys.readouterr().err
    assert everything_in(folder) == {"automaton.json": b"mine", "notes.txt": b"keep"}
    assert main(["code", "div7", "--output", str(folder), "--force"]) == 0
    assert len(everything_in(folder)) == 5
    assert (folder / "notes.txt").read_text() == "keep"
    before = everything_in(folder)
    assert main(["code", "div5", "--output", str(folder)]) == 2
    assert main(["code", "div5", "--output", str(folder), "--force", "--budget", "1", "--learner", "lstar"]) == 2
    assert everything_in(folder) == before
    assert main(["code", "div7", "--output", str(folder / "notes.txt")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_an_output_that_will_not_do_is_found_before_mining(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(mining, "mine", lambda *_, **__: pytest.fail("mined"))
    (tmp_path / "file").touch()
    (tmp_path / "mined" / "report.md").mkdir(parents=True)
    for folder, *options, said in (
        ("file", "is a file"), ("file/deep", "cannot be made"), ("mined", "already holds report.md"),
        ("mined", "--force", "report.md is a folder"), ("x" * 300, "File name too long"),
    ):  # fmt: skip
        assert main(["code", "div3", "--output", str(tmp_path / folder), *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err
        assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "mined", "report.md"]


def test_what_was_mined_is_shown_even_if_it_cannot_be_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rlstate.drawing.save_drawing", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    assert main(["code", "div3", "--output", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert "3 states" in out
    assert err == "error: disk full\n"
    assert list(tmp_path.iterdir()) == []


def test_all_files_or_none(tmp_path, monkeypatch):
    """A move that fails half-way puts back what was there."""
    folder = tmp_path / "mined"
    folder.mkdir()
    (folder / "automaton.svg").write_text("old")
    (folder / "notes.txt").write_text("keep")
    make = {name: lambda path: path.write_text("new") for name in FILES}
    replace = os.replace

    def failing(source, target):
        if Path(target) == folder / "report.json":
            raise OSError("no")
        replace(source, target)

    monkeypatch.setattr("os.replace", failing)
    with pytest.raises(OSError, match="no"):
        write_files(folder, make, force=True)
    assert everything_in(folder) == {"automaton.svg": b"old", "notes.txt": b"keep"}
    monkeypatch.undo()
    write_files(folder, make, force=True)
    assert everything_in(folder) == {**{name: b"new" for name in FILES}, "notes.txt": b"keep"}
    write_files(tmp_path / "a" / "b", make, force=False)
    assert everything_in(tmp_path / "a" / "b") == {name: b"new" for name in FILES}
    assert (tmp_path / "a" / "b").stat().st_mode == folder.stat().st_mode  # the usual permissions
    assert sorted(os.listdir(tmp_path)) == ["a", "mined"]


@pytest.mark.parametrize(("sent", "code", "said"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")])
def test_an_interruption_is_one_line_and_leaves_nothing(door, sent, code, said):
    (door / "slow.py").write_text(
        "import sys, time\ndef f(text):\n    print('asked', flush=True)\n    time.sleep(30)\n"
    )
    run = [sys.executable, "-m", "rlstate.mine", "code", "slow:f", "--alphabet", "ab", "--output", "out"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "asked\n"
        process.send_signal(sent)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (code, said)
    assert sorted(path.name for path in door.iterdir() if path.name != "__pycache__") == [
        "broken.py",
        "door.py",
        "slow.py",
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("01", ("0", "1")),
        ("open,close", ("open", "close")),
        ("open close", ("open", "close")),
        ('[",", " ", "a"]', (",", " ", "a")),
        ('["a, b", "c|d"]', ("a, b", "c|d")),
        ("[ab]", ("[", "a", "b", "]")),
        ("[]", ("[", "]")),
        ("[1]", ("[", "1", "]")),
    ],
)
def test_alphabets(text, names):
    assert split_alphabet(text) == names


def test_examples_are_written_as_the_alphabet_is():
    assert split_names("a,b", ("a", ",", "b")) == "a,b"
    assert split_names("a, b", ("a", "b")) == split_names("ab", ("a", "b")) == "ab"
    assert split_names("a;b", ("a", "b")) == "a;b"  # to be refused
    assert (
        split_names("open,lock", ("open", "lock"))
        == split_names('["open", "lock"]', ("open", "lock"))
        == ("open", "lock")
    )
    assert split_names("open", ("open", "lock")) == ("open",)
    assert split_names("", ("open", "lock")) == ()


def test_a_rare_language_is_trivial_until_it_is_shown_or_searched(door, capsys):
    asked = ["code", "door:rare", "--alphabet", "abc"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "1 state, 0 of them accepting" in shown
    assert "trivial        it rejects every word. If the code does not, test more" in shown
    assert "task           none: every word gets the same answer" in shown
    assert "group language" not in shown
    for remedy in (["--example", "abcabc"], ["--tester", "w", "--extra-states", "6"], ["--max-length", "6", "--tests", "9999"],
                   ["--example", "abcabc", "--learner", "rpni"]):  # fmt: skip
        assert main([*asked, *remedy, "--output", "out", "--force"]) == 0
        assert "trivial" not in capsys.readouterr().out
        dfa = load(door / "out" / "automaton.json")
        assert dfa.accepts(dfa.encode("abcabc"))
        assert not dfa.accepts(dfa.encode("abcabb"))
    assert json.loads((door / "out" / "report.json").read_text())["settings"]["examples"] == ["abcabc"]
    assert main([*asked, "--example", "abcabd"]) == 2
    assert "'abcabd' has 'd', which is none of the symbols" in capsys.readouterr().err


def test_what_is_printed_next_names_this_automaton_to_a_shell_and_to_hydra(door, capsys):
    folder = "it's \\here (a, {b}=1)"
    asked = ["code", "door:even", "--alphabet", "ab", "--output", folder, "--horizon", "8", "--p-control", "0.25"]
    assert main(asked) == 0
    look, train = (shlex.split(line) for line in capsys.readouterr().out.splitlines()[-2:])
    assert look == ["python", "-m", "rlstate.inspect", f"{folder}/automaton.json", *asked[-4:]]
    assert train[:3] == ["python", "-m", "rlstate.train"]
    (run,) = plan(compose([*train[3:], "seeds=1", "logger=files"]))
    assert run.task.dfa == load(door / folder / "automaton.json")
    assert (run.task.horizon, run.task.p_control, run.experiment) == (8, 0.25, "quickstart")
    assert main(["code", "door:even", "--alphabet", "ab"]) == 0
    assert capsys.readouterr().out.endswith("\n--output FOLDER would keep it, and say how to train on it\n")


def test_what_is_no_task_is_not_to_be_trained_on():
    for dfa in (zoo.make("parity"), DFA([[0, 0]], [True]), DFA([[1, 1], [2, 2], [2, 2]], [False, True, False])):
        said = next_steps(Path("out"), dfa)
        assert said.startswith("next:\n  python -m rlstate.inspect out/automaton.json")
        assert ("rlstate.train" in said) == (dfa == zoo.make("parity"))
    assert "cannot be reached from the start within" in said or "accepts no word of length exactly" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name the case's column (case=…) among 'a'", "name the case's column (--case …) among 'a'"),
        ("raise it (max_length=…), or tests=…", "raise it (--max-length …), or --tests …"),
        ("extra_states is -1, but must be", "--extra-states is -1, but must be"),
        ("p_control=2.0 is not a probability", "--p-control 2.0 is not a probability"),
        # What is not an argument's name stays.
        ("case.csv: attribute:case=3 is true of no case", "case.csv: attribute:case=3 is true of no case"),
        ("log is empty: give an event log", "log is empty: give an event log"),
        ("--output out is a file, but must be a folder.", "--output out is a file, but must be a folder."),
    ],
)
def test_errors_speak_of_options(text, said):
    assert as_options(text) == said


def test_logs_that_will_not_do_are_refused_in_the_words_of_the_command_line(tmp_path, capsys):
    log = tmp_path / "log.csv"
    for header, options, said in (
        ("id,activity", ["--outcome", "contains:b"], "name the case's column (--case …) among 'id', 'activity'"),
        ("case,what", ["--outcome", "contains:b"], "name the activity's column (--activity …) among 'case', 'what'"),
        ("case,activity", ["--outcome", "contains:b", "--top", "0"], "--top is 0, but"),
        ("case,activity", ["--outcome", "contains:b", "--top", "1", "--other", "a"], "another name (--other …)"),
        ("case,activity", ["--outcome", "contains:b", "--test", "0"], "at a share of 0.0 (--test …)"),
        ("case,activity", ["--outcome", "contains:b", "--lifecycle", "start"], "a set of them (--lifecycle …)"),
        ("case,activity", ["--outcome", "attribute:x=1", "--before-outcome"], "leave out --before-outcome"),
    ):
        log.write_text(f"{header}\n" + "".join(f"{i},a\n{i},{'b' if i % 2 else 'c'}\n" for i in range(9)))
        assert main(["log", str(log), *options]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err
        assert err.count("\n") == 1


def test_odd_names_are_told_apart_in_the_report(door, capsys):
    alphabet = json.dumps([",", " ", "a|b", "c\nd"])
    assert main(["code", "door:even", "--alphabet", alphabet, "--output", "out"]) == 0
    assert "4: ',' ' ' a|b 'c\\nd'" in capsys.readouterr().out
    rows = [line for line in (door / "out" / "report.md").read_text().splitlines() if line.startswith("| symbols")]
    assert rows == ["| symbols | 4: ',' ' ' a\\|b 'c\\nd'; a text is read from the left |"]


def test_without_output_nothing_is_written(door, capsys):
    before = sorted(os.listdir(door))
    assert main(["code", "div3"]) == 0
    assert sorted(os.listdir(door)) == before


def test_a_function_of_ones_own(door, capsys):
    assert main(["code", "door:is_safe", "--alphabet", "open,close,lock", "--output", "out", "--tester", "w"]) == 0
    shown = capsys.readouterr().out
    assert "Locked at the end, and opened at most once." in shown
    assert "exact if the code's minimal automaton has at most 6 states" in shown
    dfa = load(door / "out" / "automaton.json")
    assert dfa.alphabet == ("open", "close", "lock")
    assert dfa.accepts(dfa.encode(["close", "open", "lock"]))
    assert not dfa.accepts(dfa.encode(["open", "open", "lock"]))
    assert main(["code", "door:even", "--alphabet", "ab"]) == 0
    assert "2 states" in capsys.readouterr().out


def test_a_partial_result_says_so(tmp_path, capsys):
    pytest.importorskip("stdnum")
    assert main(["code", "verhoeff", "--budget", "200", "--output", str(tmp_path / "v")]) == 0
    shown = capsys.readouterr().out
    assert "PARTIAL        the budget of 200 queries ran out" in shown
    assert "raise it (--budget …)" in " ".join(shown.split())
    assert "tested " not in shown
    assert "verhoeff (partial)" in (tmp_path / "v" / "automaton.svg").read_text()
    report = json.loads((tmp_path / "v" / "report.json").read_text())
    assert not report["passed"]
    assert "budget" in report["partial"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope"], "Unknown predicate 'nope'"),
        (["even"], "A function is written package.module:function"),
        (["door.even"], "a function is written package.module:function: door:even?"),
        (["door.even", "--alphabet", "ab"], "door:even?"),
        (["even", "--alphabet", "ab"], "Unknown predicate 'even'"),
        (["div7", "--alphabet", "01"], "brings its own alphabet"),
        (["div7", "--reads", "left"], "brings its own alphabet"),
        (["door:even"], "give its symbols: --alphabet 01"),
        (["door:even", "--alphabet", "aa"], "distinct"),
        (["door:odd", "--alphabet", "ab"], "has no function 'odd'"),
        (["door:limit", "--alphabet", "ab"], "door:limit is a int, but must be a function"),
        (["door:count", "--alphabet", "ab"], "door:count answered 0 (int) on the word ''"),
        (["nowhere:even", "--alphabet", "ab"], "Module 'nowhere' could not be imported: ModuleNotFoundError"),
        (["broken:even", "--alphabet", "ab"], "RuntimeError: not today"),
        (["div7", "--horizon", "0"], "--horizon 0 is"),
        (["div7", "--p-control", "2"], "--p-control 2.0 is"),
        (["div7", "--budget", "0"], "--budget is 0"),
    ],
)
def test_errors_are_one_line_and_exit_with_2(door, capsys, arguments, sentence):
    assert main(["code", *arguments, "--output", "out"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sentence in err
    assert not (door / "out").exists()


def test_a_missing_library_is_named(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["code", "luhn"]) == 2
    assert "pip install python-stdnum" in capsys.readouterr().err


def test_bad_options_are_refused(capsys):
    for arguments in (["code", "div7", "--learner", "x"], ["code", "div7", "--held-out-lengths", "1,x"], ["code"], []):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    assert "not a list of lengths such as 10,20,40" in capsys.readouterr().err


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True, text=True, cwd=REPOSITORY, env={**os.environ, **environment}, timeout=60, check=True,
    ).stdout  # fmt: skip


def test_list_has_a_line_for_each_predicate():
    lines = run("-m", "rlstate.mine", "list").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [known.name for known in mining.predicates()]
    assert lines[-1].startswith("div<m>")


def test_as_a_command_the_hash_seed_does_not_matter(tmp_path):
    written = []
    for seed in ("0", "1"):
        folder = tmp_path / seed
        run("-m", "rlstate.mine", "code", "div7", "--learner", "edsm", "--output", str(folder), PYTHONHASHSEED=seed)
        written.append(everything_in(folder))
    assert written[0] == written[1]


def test_mining_code_and_help_go_without_torch_and_the_other_half():
    script = (
        "import sys; from rlstate.mine import main; main(['list']); main(['code', 'div7'])\n"
        "assert not {'torch', 'wandb', 'hydra', 'rlstate.mine_log'} & set(sys.modules), sys.modules\n"
        "assert 'matplotlib' not in sys.modules"
    )
    assert "7 states" in run("-c", script)
    assert "{code,log,list}" in run("-m", "rlstate.mine", "--help")


def test_log_is_there():
    assert "--outcome" in run("-m", "rlstate.mine", "log", "--help")

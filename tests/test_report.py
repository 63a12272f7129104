"""The report on a run tree: the table on the screen, the page, the rows that are kept, and what is said of what is not there."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rlstate import report
from rlstate.figures import draw_run
from rlstate.probes.causal import NO_EXAMPLES
from rlstate.results import collect, read_rows
from rlstate.runlog import RunFolder
from rlstate.summary import COLUMNS, table
from rlstate.train import compose


def result(seed: int, **figures) -> dict:
    return {
        "experiment": "e", "hash": "h", "task": "mod_3", "seed": seed, "folder": f"runs/{seed}", "verdict": "solved",
        "val_n": 0.9, "gain": 0.8, "gain_se": 0.01, "recovery": 0.9, "ood_n": None, "oracle": {}, "diagnostic": True,
        "thresholds": {"recovery": 0.5, "val_n": 0.85, "capacity": 0.95}, **figures,
    }  # fmt: skip


def test_means_intervals_and_verdicts_of_groups():
    text = table(
        [result(0, val_n=0.8), result(1, val_n=1.0), result(0, hash="other", recovery=0.2, verdict="perception_gap")]
    )
    lines = [line.split() for line in text.splitlines()]
    (mean,) = [line for line in lines if line[1:2] == ["mean"]]
    assert mean[2] == "0.900"
    assert mean[-1] == "solved"
    # The t interval of two values is ± 12.706 times half their difference.
    assert next(line for line in lines if line[:1] == ["95%"])[:3] == ["95%", "t", "-0.371…2.171"]
    assert "–" in text  # what was not measured


def test_the_group_is_judged_by_its_means():
    """One seed without and one with the state: below .5 on average."""
    text = table([result(0, recovery=0.1, verdict="perception_gap"), result(1, recovery=0.8)])
    (mean,) = [line for line in text.splitlines() if " mean " in line]
    assert mean.endswith("perception_gap; of the seeds 1 perception_gap, 1 solved")
    text = table([result(0, gain=-0.1), result(1, gain=0.1)])
    assert "solved (not_learned in 1 of 2)" in text


def test_the_untrained_network_stands_beside_recovery_and_is_told_where_it_recovers_the_state_too():
    control = {"untrained_recovery": 0.6, "verdict": "solved (untrained_too)"}
    text = table([result(0, **control), result(1, untrained_recovery=0.3)])
    head, first, second, mean, *_ = (line.split() for line in text.splitlines())
    assert head[head.index("recovery") + 1] == "untrained"
    at = [heading for heading, _, _ in COLUMNS].index("untrained") + 2
    assert [line[at] for line in (first, second, mean)] == ["0.60", "0.30", "0.45"]
    assert mean[-1] == "solved"
    assert "note: untrained_too: the state is recovered from an untrained network as well" in text
    (mean,) = [line for line in table([result(0, **control), result(1, **control)]).splitlines() if " mean " in line]
    assert mean.endswith("solved (untrained_too)")
    assert "untrained_too:" not in table([result(0, untrained_recovery=0.3)])


def test_what_is_not_there_says_why():
    text = table([result(0), result(1, untrained_recovery=0.2)])
    assert "note: untrained is –: the version that measured the run did not keep this control (mod_3 0)" in text
    assert "note: intervention is –: not measured (all runs)" in text
    text = table([result(0, intervention_examples=0), result(1, intervention={"examples": 0, "notes": ["the reason"]}),
                  result(2, intervention_success=0.5)])  # fmt: skip
    assert f"note: intervention is –: {NO_EXAMPLES} (mod_3 0)" in text
    assert "note: intervention is –: the reason (mod_3 1)" in text
    assert "mod_3 2)" not in text.partition("intervention is")[2]


def test_thresholds_are_those_of_the_runs():
    strict = {"recovery": 0.95, "val_n": 0.85, "capacity": 0.95}
    (mean,) = [line for line in table([result(s, thresholds=strict) for s in (0, 1)]).splitlines() if " mean " in line]
    assert mean.endswith("perception_gap")


def test_the_command(tmp_path):
    command = [sys.executable, "-m", "rlstate.report", str(tmp_path)]
    empty = subprocess.run(command, capture_output=True, text=True)
    assert empty.returncode == 1
    assert "no finished run" in empty.stderr
    for name, identity in (("ppo", "h1"), ("a2c", "h2")):
        folder = RunFolder(tmp_path / identity / "mod_3" / "seed=3")
        folder.write_config({"algorithm": {"name": name, "batch": 64}, "seeds": [3]})
        folder.write_result(result(3, hash=identity))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "mod_3" in done.stdout
    assert "h1: algorithm.name=ppo\n" in done.stdout
    assert "h2: algorithm.name=a2c\n" in done.stdout


# --- a run tree ---------------------------------------------------------------------------------------------------

HASHES = {"ppo": "aaaaaaaaaaaa", "state": "bbbbbbbbbbbb", "short": "cccccccccccc"}


@pytest.fixture(scope="module")
def configs() -> dict:
    """PPO, PPO + state auxiliary, and PPO of another horizon, on parity."""
    beside = {"ppo": [], "state": ["auxiliary=state"], "short": ["task.horizon=12"]}
    return {name: compose(["+experiment=protocol", "task=parity", *more]) for name, more in beside.items()}


def begin(root: Path, configs: dict, name: str, seed: int) -> RunFolder:
    folder = RunFolder(root / "paper" / HASHES[name] / "parity" / f"seed={seed}")
    folder.write_config({**configs[name], "seeds": [seed]})
    return folder


def run(root: Path, configs: dict, name: str, seed: int, val_n: float, gap: float, **changed) -> RunFolder:
    """A finished run of parity: V_opt = .75, V_rand = .5, majority .5."""
    folder = begin(root, configs, name, seed)
    for iteration, success in ((0, 0.5), (6000, 0.75 * val_n)):
        folder.append_metrics({"iteration": iteration, "greedy_success": success, "probe_gap": gap})
    gain = (0.75 * val_n - 0.5) / 0.25
    recovery = gap / 0.5
    folder.write_result({
        "experiment": "paper", "hash": HASHES[name], "task": "parity", "seed": seed, "folder": str(folder.path),
        "verdict": "solved" if recovery >= 0.5 else "perception_gap", "val_n": val_n, "gain": gain, "gain_se": 0.01,
        "ood_n": val_n - 0.1, "probe_gap": gap, "probe_balanced": 0.5 + gap, "recovery": recovery, "selectivity": 0.05,
        "probe": {"majority": 0.5}, "controls": {"untrained": {"gap": 0.15, "recovery": 0.3}},
        "capacity": {"accuracy": 1.0, "ood_accuracy": 0.98},
        "intervention": {"success": 0.6, "random": 0.1, "shuffled": 0.2, "examples": 100},
        "oracle": {"optimal": 0.75, "random": 0.5, "leverage": 0.5}, "diagnostic": True, "notes": [],
        "thresholds": {"recovery": 0.5, "val_n": 0.85, "capacity": 0.95}, "training_seconds": 500.0,
        "measuring_seconds": 40.0, "commit": "1234567890", **changed,
    })  # fmt: skip
    return folder


def command(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["rlstate.report", *map(str, arguments)])
    report.main()


def cells_of(markdown: str, *first: str) -> list[str]:
    """The cells of the only table row that begins with these."""
    (line,) = [line for line in markdown.splitlines() if line.startswith("| " + " | ".join(first) + " |")]
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_every_number_of_a_report_is_the_trees(tmp_path, configs, monkeypatch, capsys):
    run(tmp_path, configs, "ppo", 0, val_n=0.7, gap=0.1)
    run(tmp_path, configs, "ppo", 1, val_n=0.9, gap=0.3)
    run(tmp_path, configs, "state", 1, val_n=1.0, gap=0.4)
    run(tmp_path, configs, "short", 0, val_n=0.8, gap=0.45)
    half = begin(tmp_path, configs, "ppo", 2)
    half.append_metrics({"iteration": 950})
    begin(tmp_path, configs, "state", 3).write_failure("no memory", 40)
    command(monkeypatch, tmp_path, "--csv", tmp_path / "runs.csv")

    printed = capsys.readouterr().out
    (mean,) = [line.split() for line in printed.splitlines() if " mean " in line]
    assert mean[2:12] == ["0.800", "0.700", "+0.200", "0.700", "0.40", "0.30", "+0.050", "0.98", "0.60", "0.10"]
    assert f"{HASHES['short']}: task.horizon=12, auxiliary.name=none" in printed

    told = (tmp_path / "report.md").read_text()
    assert "4 finished runs of 1 task and 3 configurations; computing time, training and measuring: 36.0 min." in told
    assert "Code: 1234567 (4 runs)." in told
    assert "1 of the runs do not follow the paper's protocol" in told
    # The t interval of two values is ± 12.706 times half their difference.
    assert cells_of(told, "PPO × discounted")[1:5] == [
        ".80 ±1.27 (.70 .90)",
        ".80 ±.11",
        "+.20 ±1.27 (+.10 +.30)",
        "+.20 ±.11",
    ]
    assert cells_of(told, "parity", "2", ".500")[4:8] == [
        ".80 ±1.27 (.70 .90)", "+.20 ±1.27 (+.10 +.30)", ".40 ±2.54 (.20 .60)", "+.10 (+.10)"]  # fmt: skip
    assert cells_of(told, "parity", "state")[2:] == [".80 (.80)", "yes", ".60 (.60)", ".10 (.10)", ".20 (.20)", "100"]
    assert cells_of(told, "parity", "GRU, PPO × discounted")[2:10] == [
        HASHES["ppo"], "2", "perception gap", ".80 ±1.27 (.70 .90)", ".70 ±1.27 (.60 .80)", "+.20 ±1.27 (+.10 +.30)",
        ".40 ±2.54 (.20 .60)", ".30 ±.00 (.30 .30)"]  # fmt: skip
    assert cells_of(told, "parity", "GRU, PPO × discounted")[10] == "18.0 min"
    assert cells_of(told, "parity", HASHES["state"], "1") == [
        "parity", HASHES["state"], "1", "solved", "1.000", "+1.000", ".900", "+.400", ".800", ".300", "–", "+.050", "1.000",
        ".980", ".600", ".100"]  # fmt: skip
    assert cells_of(told, "`table1`")[2] == "2 of 80"
    assert cells_of(told, "`shaping`")[2] == "2 of 30"
    assert "Means on parity: – → +.20 → – → +.40." in told
    assert f"* `paper/{HASHES['ppo']}/parity/seed=2`: not finished, at least 950 iterations done" in told
    assert f"* `paper/{HASHES['state']}/parity/seed=3`: failed at iteration 40: no memory" in told

    kept = read_rows(tmp_path / "results.jsonl")
    assert kept == collect(tmp_path)
    assert [(each.hash, each.seed, each["val_n"], each["recovery"], each["gain"]) for each in kept] == [
        (HASHES["ppo"], 0, 0.7, 0.2, 0.1), (HASHES["ppo"], 1, 0.9, 0.6, 0.7),
        (HASHES["state"], 1, 1.0, 0.8, 1.0), (HASHES["short"], 0, 0.8, 0.9, 0.4)]  # fmt: skip
    assert kept[0].curve == [[0, 0.66667, 0.1], [6000, 0.7, 0.1]]
    with open(tmp_path / "runs.csv") as handle:
        lines = list(csv.DictReader(handle))
    assert [(line["seed"], line["val_n"], line["oracle.leverage"], line["config.task.horizon"]) for line in lines] == [
        ("0", "0.7", "0.5", "16"), ("1", "0.9", "0.5", "16"), ("1", "1.0", "0.5", "16"), ("0", "0.8", "0.5", "12")]  # fmt: skip
    links = {line.split("](")[1].rstrip(")") for line in told.splitlines() if line.startswith("![")}
    assert links == {f"figures/{path.name}" for path in (tmp_path / "figures").iterdir()}
    assert "figures/figure_1a.svg" in links


def test_the_rows_that_are_left_are_enough_for_the_same_report(tmp_path, configs, monkeypatch, capsys):
    """A tree, and its results.jsonl in another folder."""
    tree, rows = tmp_path / "tree" / "it", tmp_path / "rows" / "it"
    run(tree, configs, "short", 0, val_n=0.8, gap=0.45)
    run(tree, configs, "short", 1, val_n=0.9, gap=0.35)
    command(monkeypatch, tree, "--output", rows)
    assert not (tree / "report.md").exists()
    assert "report.md with 1 figure, results.jsonl with 2 runs\n" in capsys.readouterr().out
    first = {path.name: path.read_bytes() for path in rows.iterdir() if path.is_file()}
    assert set(first) == {"report.md", "report.html", "results.jsonl"}
    command(monkeypatch, rows)
    assert {path.name: path.read_bytes() for path in rows.iterdir() if path.is_file()} == first


def test_kept_rows_are_extended_or_updated_by_the_trees_own_runs_and_never_lost(tmp_path, configs, monkeypatch):
    first, second, kept = tmp_path / "first", tmp_path / "second", tmp_path / "kept"
    run(first, configs, "short", 0, val_n=0.5, gap=0.1)
    run(first, configs, "short", 1, val_n=0.6, gap=0.1)
    command(monkeypatch, first, "--output", kept)
    run(second, configs, "short", 1, val_n=0.9, gap=0.4)
    run(second, configs, "ppo", 7, val_n=0.8, gap=0.2)
    report.keep(
        collect(first), second / "results.jsonl"
    )  # an older copy of the same rows: of seed 1 the tree's own counts
    command(monkeypatch, second, "--output", kept)
    found = {(each.hash, each.seed): each["val_n"] for each in read_rows(kept / "results.jsonl")}
    assert found == {(HASHES["short"], 0): 0.5, (HASHES["short"], 1): 0.9, (HASHES["ppo"], 7): 0.8}
    assert "3 finished runs" in (kept / "report.md").read_text()
    # A copy of rows does not undo what is kept, and a line that nobody can read is not thrown away.
    copies = tmp_path / "copies"
    report.keep(collect(first), copies / "results.jsonl")
    with open(kept / "results.jsonl", "a") as handle:
        handle.write('{"torn')
    command(monkeypatch, copies, "--output", kept)
    assert (kept / "results.jsonl.damaged").read_text().endswith('{"torn')
    assert {(each.hash, each.seed): each["val_n"] for each in read_rows(kept / "results.jsonl")} == found


def test_lines_that_are_no_rows_of_this_version_are_kept_beside(tmp_path, configs):
    run(tmp_path, configs, "short", 0, val_n=0.5, gap=0.1)
    path = tmp_path / "results.jsonl"
    report.keep(collect(tmp_path), path)
    good = path.read_text()
    report.keep(collect(tmp_path), path)
    assert [each.name for each in tmp_path.glob("results*")] == ["results.jsonl"]  # nothing to set aside
    newer = json.dumps({**json.loads(good), "seed": 5, "invented_later": 1})
    for foreign in (good + "{half a li", good + newer + "\n"):
        path.write_text(foreign)
        report.keep(collect(tmp_path), path)
        aside = sorted(tmp_path.glob("results.jsonl.damaged*"))[-1]
        assert aside.read_text() == foreign
    assert {each.seed for each in read_rows(path)} == {0, 5}


def test_results_of_an_older_version_say_so(tmp_path, configs, monkeypatch):
    folder = run(tmp_path, configs, "short", 0, val_n=0.5, gap=0.1)
    result = folder.read_result()
    for newer in ("recovery", "selectivity", "intervention", "capacity", "training_seconds", "notes", "gain_se"):
        del result[newer]
    folder.write_result(result)
    command(monkeypatch, tmp_path)
    told = (tmp_path / "report.md").read_text()
    assert cells_of(told, "parity", HASHES["short"], "0")[4:] == [
        ".500", "−.500", ".400", "+.100", "–", ".300", "–", "–", "–", "–", "–", "–"]  # fmt: skip
    assert "–: undefined, not measured, or of a version that did not have the figure." in told
    assert "computing time, training and measuring: unknown" in told
    (row,) = collect(tmp_path)
    assert row.verdict == "perception_gap"  # as it was written: there is no recovery to judge it by again


def test_what_older_versions_measured_is_judged_by_the_rule_of_now(tmp_path, configs, monkeypatch, capsys):
    """The tree's results and the rows that are kept: both have the untrained network's figures, and old verdicts."""
    for seed in (0, 1):
        run(tmp_path / "tree", configs, "short", seed, val_n=1.0, gap=0.4, verdict="solved",
            controls={"untrained": {"gap": 0.3, "recovery": 0.6}}, probe={"majority": 0.5})  # fmt: skip
    own = collect(tmp_path / "tree")
    assert [each.verdict for each in own] == ["solved (untrained_too)"] * 2
    older = [
        replace(each, verdict="solved", figures={k: v for k, v in each.figures.items() if k != "untrained_recovery"})
        for each in own
    ]
    rows = tmp_path / "rows" / "results.jsonl"
    report.keep(older, rows)
    assert '"verdict":"solved"' in rows.read_text()
    assert read_rows(rows) == own  # (.5 + .3 − .5)/(1 − .5) = .6
    command(monkeypatch, rows.parent)
    printed = capsys.readouterr().out
    assert printed.count("solved (untrained_too)") == 3  # the seeds and their mean
    told = (rows.parent / "report.md").read_text()
    assert cells_of(told, "parity", HASHES["short"], "0")[9] == ".600"
    assert cells_of(told, "parity", HASHES["short"], "0")[3] == "solved (untrained too)"
    assert "| 2 | solved (untrained too) |" in next(
        line for line in told.splitlines() if "1.00 ±.00 (1.00 1.00)" in line
    )
    nothing = [replace(each, figures={k: v for k, v in each.figures.items() if k != "untrained_gap"}) for each in older]
    rows.unlink()
    report.keep(nothing, rows)
    assert {each.verdict for each in read_rows(rows)} == {"solved"}
    command(monkeypatch, rows.parent)
    assert "note: untrained is –: the version that measured the run did not" in capsys.readouterr().out
    assert "– stands for: untrained_recovery (2 runs)" in (rows.parent / "report.md").read_text()


def test_rows_have_the_thresholds_that_their_verdicts_have(tmp_path, configs):
    """The configuration is from when the run was trained; it may have been judged by others since."""
    strict = {"recovery": 0.9, "val_n": 0.85, "capacity": 0.95}
    run(tmp_path, configs, "short", 0, val_n=1.0, gap=0.4, verdict="perception_gap", thresholds=strict)
    (row,) = collect(tmp_path)
    assert (row.verdict, row.thresholds.recovery) == ("perception_gap", 0.9)
    assert report.as_result(row)["thresholds"] == strict


def test_a_runs_picture_has_the_untrained_network_and_the_verdict():
    points = [{"iteration": 0, "success": 0.3, "greedy_success": 0.3, "probe_gap": 0.2}]
    drawn = result(0, verdict="solved (untrained_too)", oracle={"optimal": 0.7, "random": 0.3},
                   controls={"untrained": {"gap": 0.25}})  # fmt: skip
    top, bottom = draw_run(points, drawn).axes
    assert top.get_title("left") == "mod_3, seed 0: solved (untrained_too)"
    assert [0.25, 0.25] in [list(line.get_ydata()) for line in bottom.lines]
    assert "untrained" in [text.get_text() for text in bottom.texts]
    _, bottom = draw_run(points, {**drawn, "controls": {"untrained": {"gap": None}}}).axes
    assert not bottom.texts


@pytest.mark.parametrize("begun", [0, 1])
def test_without_a_finished_run_there_is_one_line_and_nothing_is_written(tmp_path, configs, monkeypatch, begun):
    for seed in range(begun):
        begin(tmp_path, configs, "ppo", seed)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, tmp_path, "--output", tmp_path / "out", "--csv", tmp_path / "x.csv")
    assert ended.value.code == f"error: there is no finished run below '{tmp_path}'" + " (1 begun)" * begun
    assert sorted(tmp_path.rglob("*")) == before


def test_only_the_table(tmp_path, configs, monkeypatch, capsys):
    run(tmp_path, configs, "ppo", 0, val_n=0.5, gap=0.1)
    before = sorted(tmp_path.rglob("*"))
    command(monkeypatch, tmp_path, "--no-page")
    assert sorted(tmp_path.rglob("*")) == before
    assert "parity     0  0.500" in capsys.readouterr().out


def test_a_damaged_run_is_left_out_and_the_others_are_shown(tmp_path, configs, monkeypatch):
    run(tmp_path, configs, "short", 0, val_n=0.5, gap=0.1)
    run(tmp_path, configs, "short", 1, val_n=0.6, gap=0.1).result_path.write_text('{"val_n": 0.')
    command(monkeypatch, tmp_path)
    told = (tmp_path / "report.md").read_text()
    assert "1 finished run of" in told
    assert f"`paper/{HASHES['short']}/parity/seed=1`: not finished, at least 6000 iterations done" in told


def test_what_cannot_be_written_is_one_sentence(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "h1" / "mod_3" / "seed=3")
    folder.write_config({"algorithm": {"name": "ppo"}, "seeds": [3]})
    folder.write_result(result(3, hash="h1"))
    (tmp_path / "file").write_text("taken")
    command = [sys.executable, "-m", "rlstate.report", str(tmp_path / "runs")]
    for more in (["--output", str(tmp_path / "file")], ["--no-page", "--csv", str(tmp_path / "file" / "rows.csv")]):
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        assert done.returncode == 2
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith("error: ")
        assert "file" in line
    assert (tmp_path / "file").read_text() == "taken"

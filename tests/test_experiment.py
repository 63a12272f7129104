"""From a configuration to results, on tasks shrunk until they take seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from rlstate import experiment
from rlstate.automata import zoo
from rlstate.experiment import RunBusy, RunsFailed, load
from rlstate.learning.trainer import Learner
from rlstate.measure import judged
from rlstate.plan import plan
from rlstate.probes.verdict import Thresholds
from rlstate.runlog import RunFolder
from rlstate.runner import CapacityCache, Run
from rlstate.summary import paths, table
from rlstate.train import compose, configuration_folder

EXPERIMENTS = sorted(path.stem for path in (configuration_folder() / "experiment").glob("*.yaml"))
SMALL = [
    "iterations=2", "seeds=2", "task.horizon=4", "encoder.hidden=8", "algorithm.batch=8", "evaluation.episodes=64",
    "evaluation.curve_episodes=32", "evaluation.every=1", "probe=none", "log_every=1", "checkpoint_every=1", "logger=files",
]  # fmt: skip


def run(root: Path, *overrides: str) -> list[dict]:
    return experiment.run(compose([*SMALL, f"paths.runs={root}", *overrides]))


def folders(root: Path, *overrides: str) -> list[RunFolder]:
    return [each.folder for each in plan(compose([*SMALL, f"paths.runs={root}", *overrides]))]


def weights(folder: RunFolder) -> torch.Tensor:
    state = folder.restore(lambda state: state["learner"]["policy"])
    return torch.cat([tensor.flatten() for tensor in state.values()])


def curves(folder: RunFolder) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in folder.read_metrics()]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_on_another_task(name, tmp_path):
    results = run(tmp_path, f"+experiment={name}", "task=mod_5", "tasks=null", *SMALL)
    assert {result["task"] for result in results} == {"mod_5"}
    assert len(results) == 2


@pytest.mark.parametrize("encoder", ["gru", "lstm", "window_mlp", "transformer"])
@pytest.mark.parametrize("algorithm", ["ppo", "a2c"])
def test_a_run_leaves_its_folder_and_a_verdict(encoder, algorithm, tmp_path):
    results = run(
        tmp_path, f"encoder={encoder}", f"algorithm={algorithm}", "seeds=1", "auxiliary=emission", "emission.beta=0.5"
    )
    (folder,) = folders(
        tmp_path, f"encoder={encoder}", f"algorithm={algorithm}", "seeds=1", "auxiliary=emission", "emission.beta=0.5"
    )
    assert {"config.yaml", "metrics.jsonl", "checkpoint.pt", "result.json", "curves.png", "automaton.json"} <= {
        path.name for path in folder.path.iterdir()
    }
    (result,) = results
    assert result == json.loads(folder.result_path.read_text())
    for key in ("val_n", "ood_n", "probe_gap", "probe_balanced", "recovery", "selectivity", "controls", "capacity",
                "intervention", "verdict", "oracle", "versions", "commit"):  # fmt: skip
        assert key in result
    assert result["evaluation"]["muted"] is not None
    assert result["oracle"]["optimal"] == pytest.approx(plan(compose(SMALL))[0].task.oracle.optimal)
    assert [row["iteration"] for row in folder.read_metrics()] == [0, 1, 2]
    assert "${" not in folder.config_path.read_text()


def test_intervention_and_capacity_are_part_of_it_and_capacity_is_computed_once(tmp_path, monkeypatch):
    overrides = [
        "probe=default",
        "probe.episodes=64",
        "probe.curve_episodes=32",
        "probe.capacity_iterations=20",
        "tasks=[mod_3,parity]",
    ]
    calls = []
    from rlstate import runner

    original = runner.supervised_capacity
    monkeypatch.setattr(
        runner,
        "supervised_capacity",
        lambda task, *args, **kw: (calls.append(task.name), original(task, *args, **kw))[1],
    )
    results = run(tmp_path, *overrides)
    assert sorted(calls) == ["mod_3", "parity"]
    for result in results:
        assert 0.0 <= result["capacity_accuracy"] <= 1.0
        assert set(result["intervention"]) >= {"success", "baseline", "random", "shuffled"}
    run(tmp_path, *overrides, "algorithm.entropy=0.02")
    assert len(calls) == 2


def test_the_bar_counts_the_capacities_that_come_before_the_first_iteration(tmp_path, monkeypatch, capsys):
    def ticking(jobs, threads, failed, tick, *others):
        tick()
        jobs[0].advance()
        tick()
        run_jobs(jobs[1:], threads, failed, tick, *others)

    run_jobs = experiment.run_jobs
    monkeypatch.setattr(experiment, "run_jobs", ticking)
    run(tmp_path, "probe=default", "probe.episodes=64", "probe.curve_episodes=32", "probe.capacity_iterations=1",
        "probe.intervention=false", "tasks=[mod_3,parity]", "threads=1")  # fmt: skip
    drawn = [line for line in capsys.readouterr().err.split("\r") if "it/s" in line or "s/it" in line]
    before, after = (next(n for n, line in enumerate(drawn) if f"capacity={k}/2" in line) for k in (0, 1))
    assert before < after
    assert "capacity" not in drawn[-1]


def test_a_finished_run_is_read_and_not_done_again(tmp_path, monkeypatch):
    first = run(tmp_path)
    monkeypatch.setattr(Learner, "iterate", lambda self: pytest.fail("it was trained again"))
    assert run(tmp_path) == first


def test_one_automaton_under_two_names_is_trained_once(tmp_path, monkeypatch):
    """mined_div7 is mod_7: within a fleet, and where one of them was finished before."""
    trained = []
    iterate = Learner.iterate
    monkeypatch.setattr(Learner, "iterate", lambda self: trained.append(self.task.name) or iterate(self))
    both = run(tmp_path / "both", "tasks=[mined_div7,mod_7]", "seeds=1")
    assert trained == ["mined_div7"] * 2
    run(tmp_path / "later", "tasks=[mod_7]", "seeds=1")
    trained.clear()
    (later,) = run(tmp_path / "later", "tasks=[mined_div7]", "seeds=1", "export=rollouts")
    assert not trained
    (alone,) = run(tmp_path / "alone", "tasks=[mined_div7]", "seeds=1", "export=rollouts")
    told = {"folder", "training_seconds", "measuring_seconds"}
    for each in (*both, later):
        folder, of_alone = RunFolder(each["folder"]), RunFolder(alone["folder"])
        assert folder.path.parent.name == each["task"]
        assert folder.read_config()["task"]["name"] in (each["task"], "mod_k")
        assert torch.equal(weights(folder), weights(of_alone))
        assert curves(folder) == curves(of_alone)
    assert {key: value for key, value in later.items() if key not in told} == {
        key: value for key, value in alone.items() if key not in told
    }
    assert later["training_seconds"] == 0.0
    assert {path.name for path in Path(later["folder"]).iterdir()} >= {
        path.name for path in Path(alone["folder"]).iterdir()
    } - {"checkpoint.previous.pt"}


def test_what_ends_a_run_ends_its_twin(tmp_path):
    with pytest.raises(RunsFailed, match="the gradient's norm") as failed:
        run(tmp_path, "tasks=[mod_7,mined_div7]", "seeds=1", "iterations=20", "algorithm.learning_rate=1e30")
    assert len(failed.value.failures) == 2
    assert len(set(failed.value.failures.values())) == 1


def test_a_finished_run_is_judged_by_the_thresholds_of_now(tmp_path):
    (first,) = run(tmp_path, "seeds=1", "probe.recovery=-9", "probe.val_n=-9")
    assert first["verdict"].startswith("solved")
    for overrides, label in (
        (["probe.recovery=9"], "perception_gap"),
        (["probe.recovery=-9", "probe.val_n=9"], "planning_gap"),
    ):
        (again,) = run(tmp_path, "seeds=1", *overrides)
        assert again["folder"] == first["folder"]
        assert again["verdict"].startswith(label)
        assert json.loads((Path(again["folder"]) / "result.json").read_text()) == again
    (back,) = run(tmp_path, "seeds=1", "probe.recovery=-9", "probe.val_n=-9")
    assert back == first


def test_a_finished_run_is_judged_by_the_rule_of_now(tmp_path):
    """A result of a version that did not set the untrained network beside the verdict: the figures were kept, and are enough."""
    strict = ["seeds=1", "probe.recovery=-9", "probe.val_n=-9"]
    (first,) = run(tmp_path, *strict)
    assert first["untrained_recovery"] == first["controls"]["untrained"]["recovery"]
    assert "untrained_too" in first["verdict"]
    folder = RunFolder(first["folder"])
    older = {key: value for key, value in first.items() if key != "untrained_recovery"} | {"verdict": "solved"}
    folder.write_result(older)
    picture = folder.path / "curves.png"
    picture.write_bytes(b"an older one")
    (again,) = run(tmp_path, *strict)
    assert again == first == folder.read_result()
    assert picture.read_bytes() != b"an older one"  # its title is the verdict
    without = {key: value for key, value in older.items() if key not in ("recovery", "controls")}
    assert judged(without, Thresholds())["verdict"] == "solved"  # of figures that are not there nothing is made


def test_a_run_is_the_same_in_any_company(tmp_path):
    """Bit for bit: other seeds, other tasks, one thread or two."""
    (alone,) = run(tmp_path / "a", "task=mod_3", "seeds=[1]", "threads=1", "iterations=5")
    company = run(tmp_path / "b", "tasks=[parity,mod_3,mined_ean]", "seeds=[0,1]", "threads=2", "iterations=5")
    (same,) = (result for result in company if (result["task"], result["seed"]) == ("mod_3", 1))
    assert same["hash"] == alone["hash"]
    left, right = RunFolder(alone["folder"]), RunFolder(same["folder"])
    assert torch.equal(weights(left), weights(right))
    assert curves(left) == curves(right)
    differs = {"folder", "training_seconds", "measuring_seconds"}
    assert {k: v for k, v in alone.items() if k not in differs} == {k: v for k, v in same.items() if k not in differs}


# --- interruptions ----------------------------------------------------------------------------------------------------

LONG = [
    *SMALL,
    "iterations=120",
    "checkpoint_every=10",
    "log_every=5",
    "evaluation.every=20",
    "algorithm.batch=32",
    "encoder.hidden=32",
]


def start(root: Path, *overrides: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "rlstate.train", *LONG, f"paths.runs={root}", *overrides],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip


def wait_for(folder: RunFolder, iteration: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        rows = folder.read_metrics()
        if rows and rows[-1]["iteration"] >= iteration:
            return
        time.sleep(0.005)
    pytest.fail("the run did not get that far")


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_a_killed_run_resumes_and_ends_with_the_same_numbers(tmp_path, how, status):
    whole = experiment.run(compose([*LONG, f"paths.runs={tmp_path / 'whole'}"]))
    (tmp_path / "cut").mkdir()
    cut = [each.folder for each in plan(compose([*LONG, f"paths.runs={tmp_path / 'cut'}"]))]
    process = start(tmp_path / "cut")
    for folder in cut:
        wait_for(folder, 35)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == status
    assert not any(folder.result_path.exists() for folder in cut)
    assert all(folder.checkpoint_path.exists() or folder.previous_checkpoint_path.exists() for folder in cut)
    resumed = experiment.run(compose([*LONG, f"paths.runs={tmp_path / 'cut'}"]))
    for result, again in zip(whole, resumed):
        left, right = RunFolder(result["folder"]), RunFolder(again["folder"])
        assert curves(left) == curves(right)
        assert torch.equal(weights(left), weights(right))
        assert result["probe"] == again["probe"]


def test_stopping_between_rows_and_checkpoints_changes_nothing(tmp_path):
    """Periods that do not divide each other: rows, curve points and checkpoints come when they are due."""
    periods = ["iterations=23", "log_every=5", "checkpoint_every=7", "evaluation.every=4", "seeds=1"]
    (whole,) = run(tmp_path / "whole", *periods)
    rows = curves(RunFolder(whole["folder"]))
    assert [row["iteration"] for row in rows if "success" in row] == [5, 10, 15, 20, 23]
    assert [row["iteration"] for row in rows if "greedy_success" in row] == [0, 4, 8, 12, 16, 20, 23]
    (cut,) = plan(compose([*SMALL, f"paths.runs={tmp_path / 'cut'}", *periods]))
    stop = threading.Event()
    for until in (3, 9, 16, 17):
        stop.clear()
        job = Run(cut, CapacityCache(tmp_path / "capacity"), stop)
        iterate = Learner.iterate

        def stopping(self, iterate=iterate, until=until):
            figures = iterate(self)
            if self.iteration == until:
                stop.set()
            return figures

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Learner, "iterate", stopping)
            while not stop.is_set():
                job.advance()
        job.save()
        assert cut.folder.restore(lambda state: state["learner"]["iteration"]) == until
    (again,) = run(tmp_path / "cut", *periods)
    assert curves(RunFolder(again["folder"])) == rows
    assert torch.equal(weights(RunFolder(again["folder"])), weights(RunFolder(whole["folder"])))


def test_a_run_in_the_middle_of_a_piece_is_not_saved(tmp_path, monkeypatch):
    """A second Ctrl-C while an update is half done must not keep its half."""
    (each,) = plan(compose([*SMALL, f"paths.runs={tmp_path}", "seeds=1"]))
    job = Run(each, CapacityCache(tmp_path / "capacity"), threading.Event())
    job.advance()
    monkeypatch.setattr(Learner, "iterate", lambda self: job.save() or pytest.fail("stop here"))
    with pytest.raises(pytest.fail.Exception):
        job.advance()
    assert not each.folder.checkpoint_path.exists()


def test_a_disk_that_is_full_fails_the_runs_and_ends(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "write_config", full)
    monkeypatch.setattr(RunFolder, "write_failure", full)
    with pytest.raises(RunsFailed, match="No space left"):
        run(tmp_path)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(experiment.ConfigurationError, match=r"cannot be written.*paths\.runs"):
        run(tmp_path / "file")


@pytest.mark.parametrize("name", ["config.yaml", "automaton.json"])
def test_files_that_are_lost_are_written_again(name, tmp_path):
    (first,) = run(tmp_path, "seeds=1")
    folder = RunFolder(first["folder"])
    folder.result_path.unlink()
    (folder.path / name).unlink()
    run(tmp_path, "seeds=1")
    assert (folder.path / name).exists()
    assert load(folder.path).result is not None


def test_an_export_that_cannot_be_made_does_not_stop_the_others(tmp_path):
    results = run(tmp_path)
    for path in Path(results[0]["folder"]).glob("checkpoint*"):
        path.unlink()
    with pytest.raises(RunsFailed, match="needs a checkpoint") as raised:
        run(tmp_path, "export=rollouts")
    assert [result["seed"] for result in raised.value.results] == [1]
    assert (Path(results[1]["folder"]) / "rollouts.npz").exists()


def test_a_damaged_checkpoint_costs_one_interval_and_no_result(tmp_path):
    whole = run(tmp_path / "whole", "iterations=6")
    run(tmp_path / "cut", "iterations=6")
    for folder in folders(tmp_path / "cut", "iterations=6"):
        folder.result_path.write_text("{ torn")
        folder.checkpoint_path.write_bytes(b"torn")
    again = run(tmp_path / "cut", "iterations=6")
    for result, other in zip(whole, again):
        assert result["probe"] == other["probe"]
        names = {path.name for path in Path(other["folder"]).iterdir()}
        assert {"checkpoint.pt.damaged", "result.json.damaged"} <= names


def test_two_commands_cannot_train_the_same_run(tmp_path):
    with folders(tmp_path)[0].locked(), pytest.raises(RunBusy, match="another process"):
        run(tmp_path)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_run_that_diverges_stops_alone(tmp_path, monkeypatch):
    iterate = Learner.iterate

    def poisoned(self):
        if self.seed == 1 and self.iteration == 3:
            with torch.no_grad():
                self.policy.value_head.bias.fill_(torch.nan)
        return iterate(self)

    monkeypatch.setattr(Learner, "iterate", poisoned)
    with pytest.raises(RunsFailed, match="1 of 3 runs failed") as raised:
        run(tmp_path, "iterations=6", "seeds=3")
    assert [result["seed"] for result in raised.value.results] == [0, 2]
    failed = folders(tmp_path, "iterations=6", "seeds=3")[1]
    assert list(raised.value.failures) == [str(failed.path)]
    assert json.loads(failed.failure_path.read_text())["iteration"] == 3
    state = failed.restore(lambda state: state["learner"])
    assert state["iteration"] == 3
    assert all(torch.isfinite(tensor).all() for tensor in state["policy"].values())
    # Once the cause is gone, the same command finishes it from there.
    monkeypatch.setattr(Learner, "iterate", iterate)
    assert len(run(tmp_path, "iterations=6", "seeds=3")) == 3
    assert not failed.failure_path.exists()


def test_a_non_diagnostic_task_is_trained_and_flagged(tmp_path):
    (result,) = run(tmp_path, "task=contains_0010", "task.horizon=12", "seeds=1")
    assert result["diagnostic"] is False
    assert any("not diagnostic" in note for note in result["notes"])
    assert "not_diagnostic" in result["verdict"]
    assert "not diagnostic" in table([result])


# --- further work -----------------------------------------------------------------------------------------------------


def test_load_gives_back_the_policy_the_task_and_the_configuration(tmp_path):
    (result,) = run(tmp_path, "task=ends_with_101", "seeds=[3]", "emission.beta=0.2", "auxiliary=state")
    loaded = load(result["folder"])
    assert loaded.task.name == "ends_with_101"
    assert loaded.task.dfa == zoo.make("ends_with_101")
    assert loaded.task.channel.beta == 0.2
    assert loaded.config["seeds"] == [3]
    assert loaded.result == result
    parameters = torch.cat([p.detach().flatten() for p in loaded.policy.parameters()])
    assert torch.equal(parameters, weights(RunFolder(result["folder"])))
    with pytest.raises(FileNotFoundError, match="not a run's folder"):
        load(tmp_path)


def test_exported_rollouts_are_consistent_with_the_automaton(tmp_path):
    run(tmp_path, "seeds=1")
    (result,) = run(tmp_path, "seeds=1", "export=rollouts")  # also of a run that was finished before it was asked for
    arrays = np.load(Path(result["folder"]) / "rollouts.npz")
    dfa = zoo.make("mod_3")
    assert arrays["features"].shape == (4, 128, 8)
    assert (dfa.transitions[arrays["states"][:-1], arrays["symbols"]] == arrays["states"][1:]).all()
    assert (arrays["rewards"][-1] == dfa.accepting[arrays["states"][-1]]).all()
    assert (arrays["rewards"][:-1] == 0).all()
    assert ((arrays["actions"] == -1) == ~arrays["controllable"]).all()


def test_an_automaton_of_ones_own_outlives_its_file(tmp_path):
    path = tmp_path / "mine.dot"
    path.write_text(
        'digraph g { __start0 -> a; a [shape=doublecircle]; a -> b [label="x"]; b -> a [label="x"]; '
        'a -> a [label="y"]; b -> b [label="y"]; }'
    )
    (result,) = run(tmp_path, "task=file", f"task.path={path}", "seeds=1")
    path.unlink()
    loaded = load(result["folder"])
    assert loaded.task.dfa.alphabet == ("x", "y")
    assert result["task"] == "mine"


def test_tables_have_a_row_a_seed_and_a_mean(tmp_path):
    results = run(tmp_path, "tasks=[mod_3,parity]")
    lines = table(results).splitlines()
    assert (
        sum(line.split()[:2] in (["mod_3", "0"], ["mod_3", "1"], ["parity", "0"], ["parity", "1"]) for line in lines)
        == 4
    )
    assert sum(line.split()[:2] in (["mod_3", "mean"], ["parity", "mean"]) for line in lines) == 2
    assert all(result["folder"] in paths(results) for result in results)


# --- the command line -------------------------------------------------------------------------------------------------


def command(cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlstate.train", *arguments],
        capture_output=True, text=True, cwd=cwd, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_command_line_from_any_directory(tmp_path):
    done = command(tmp_path, "+experiment=quickstart", "task=mod_5", "algorithm=a2c", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "mod_5" in done.stdout
    assert "result.json" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2


def test_a_dry_run_writes_nothing(tmp_path):
    done = command(tmp_path, "+experiment=quickstart", *SMALL, "dry_run=true")
    assert done.returncode == 0, done.stderr
    assert "2 runs" in done.stdout
    assert "of training" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_sweeps_dry_run_ends_with_a_line_for_all_jobs(tmp_path):
    arguments = [
        "-m",
        *SMALL,
        "emission.beta=0,0.5",
        "algorithm.entropy=0.01,0.02",
        "probe.capacity=true",
        "dry_run=true",
    ]
    done = command(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("4 jobs: 8 runs; about ")
    assert "up to" in last  # of the two betas' capacities
    assert done.stdout.count("2 runs; about") == 4
    assert not list(tmp_path.rglob("*.json"))
    # A job that is a mistake leaves the others' line, and the status tells.
    done = command(
        tmp_path, "-m", *SMALL, "algorithm.entropy=0.01,0.02", "task=mod_3,parity", "seeds=1,0", "dry_run=true"
    )
    assert done.returncode == 1
    assert "4 jobs: 4 runs" in done.stdout
    assert "4 failed:" in done.stderr


def test_a_mistake_is_one_sentence_and_status_2(tmp_path):
    for arguments, says in (
        (["task=modd_5"], "Unknown task 'modd_5'"),
        (["task.p_control=2"], "p_control=2"),
        (["+experiment=credit"], "python -m rlstate.inspect parity"),
        (["task=mod_k", "task.k=1"], "at least 2"),
    ):
        done = command(tmp_path, *arguments, *SMALL)
        assert done.returncode == 2, (arguments, done.stderr)
        (line,) = [line for line in done.stderr.splitlines() if line]
        assert says in line
        assert not list(tmp_path.iterdir())


def test_a_sweep_finishes_the_other_jobs_and_then_names_what_failed(tmp_path):
    done = command(tmp_path, "-m", "+experiment=quickstart", *SMALL, "seeds=1", "task.k=3,1,5", "emission.beta=0,1")
    assert done.returncode != 0
    assert done.stderr.count("at least 2") == 2
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 4


def test_a_sweep_on_the_cores_has_the_same_result(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    arguments = ["-m", "+experiment=quickstart", *SMALL, "seeds=1", "task=mod_3,parity"]
    for name, extra in (("one", []), ("two", ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"])):
        done = command(tmp_path, *arguments, *extra, f"paths.runs={name}")
        assert done.returncode == 0, done.stderr
    found = [sorted((tmp_path / name).rglob("result.json")) for name in ("one", "two")]
    assert len(found[0]) == len(found[1]) == 2
    for left, right in zip(*found):
        assert json.loads(left.read_text())["probe"] == json.loads(right.read_text())["probe"]


def test_one_wandb_run_for_each_training_run(tmp_path):
    done = command(tmp_path, *SMALL, "logger=wandb", "iterations=3", HOME=str(tmp_path), NETRC=str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    runs = [path for path in (tmp_path / "runs" / "wandb").iterdir() if path.name.startswith("offline-run")]
    assert len(runs) == 2
    assert len({path.name.split("-")[-1] for path in runs}) == 2


def test_divergence_on_the_command_line_is_status_1(tmp_path):
    done = command(tmp_path, *SMALL, "algorithm.learning_rate=1e30", "iterations=30", "encoder=window_mlp")
    assert done.returncode == 1, done.stderr
    assert "2 failed:" in done.stderr
    assert "learning_rate" in done.stderr

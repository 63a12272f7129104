"""Fleets that train as stacks: the same files and figures as runs that train by themselves, and the same manners."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from rlstate import experiment
from rlstate.experiment import RunsFailed
from rlstate.learning.stack import Stack
from rlstate.plan import ConfigurationError, plan
from rlstate.runlog import RunFolder
from rlstate.runner import CapacityCache, Run
from rlstate.stacked import StackedRuns, stackable
from rlstate.train import compose

SMALL = [
    "tasks=[mod_3,parity,mod_5_hold]", "seeds=2", "iterations=4", "task.horizon=4", "encoder.hidden=8", "algorithm.batch=8",
    "evaluation.episodes=256", "evaluation.curve_episodes=32", "evaluation.every=2", "probe=none", "log_every=1",
    "checkpoint_every=2", "logger=files", "kernels=plain", "threads=2",
]  # fmt: skip


def config(root: Path, *overrides: str) -> dict:
    return compose([*SMALL, f"paths.runs={root}", *overrides])


def weights(folder: RunFolder) -> torch.Tensor:
    state = folder.restore(lambda state: state["learner"]["policy"])
    return torch.cat([tensor.flatten() for tensor in state.values()])


def curves(folder: RunFolder) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in folder.read_metrics()]


def test_a_stacked_fleet_leaves_what_single_runs_leave(tmp_path):
    alone = experiment.run(config(tmp_path / "alone", "stack=false"))
    stacked = experiment.run(config(tmp_path / "stacked", "stack=true"))
    assert [(each["task"], each["seed"], each["hash"]) for each in stacked] == [
        (each["task"], each["seed"], each["hash"]) for each in alone
    ]
    for one, other in zip(alone, stacked):
        left, right = RunFolder(one["folder"]), RunFolder(other["folder"])
        assert {path.name for path in left.path.iterdir()} == {path.name for path in right.path.iterdir()}
        torch.testing.assert_close(weights(left), weights(right), rtol=0.0, atol=1e-4)
        for row, twin in zip(curves(left), curves(right), strict=True):
            assert row["iteration"] == twin["iteration"]
            assert set(row) == set(twin)
            if "success" in row:
                assert twin["success"] == row["success"]
        assert other["val_n"] == pytest.approx(one["val_n"], abs=0.05)
        assert (one["kernels"], other["kernels"]) == ("plain", "stacked")


def test_runs_are_grouped_by_their_shapes_and_only_where_asked(tmp_path, monkeypatch):
    plans = plan(config(tmp_path, "stack=true"))
    assert [[plans[index].task.name for index in group] for group in stackable(plans)] == [
        ["mod_3", "mod_3", "parity", "parity"],
        ["mod_5_hold", "mod_5_hold"],
    ]
    assert stackable(plan(config(tmp_path))) == []  # auto, on a CPU
    monkeypatch.setattr("rlstate.plan.resolve_device", lambda device, runs: "cuda")
    assert len(stackable(plan(config(tmp_path)))) == 2
    assert stackable(plan(config(tmp_path, "stack=false"))) == []
    with pytest.raises(ConfigurationError, match="stack='perhaps' is unknown"):
        plan(config(tmp_path, "stack=perhaps"))


class Elman(nn.Module):
    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.cell, self.out_features = nn.RNN(inputs, hidden), hidden

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.cell(observations)[0]


def test_an_encoder_that_cannot_be_stacked_trains_by_itself_and_says_why(tmp_path, caplog):
    mine = ["encoder=custom", f"encoder.name={__name__}.Elman"]
    with caplog.at_level("WARNING", logger="rlstate"):
        results = experiment.run(config(tmp_path, "stack=true", "tasks=null", "task=mod_3", *mine))
    assert "cannot be stacked" in caplog.text
    assert "no run axis" in caplog.text
    assert [each["kernels"] for each in results] == ["plain", "plain"]


def test_an_interrupted_stack_resumes_and_ends_with_the_same_numbers(tmp_path, monkeypatch):
    """Bit for bit, also from between two checkpoints."""
    periods = ["iterations=11", "stack=true", "log_every=5", "checkpoint_every=4", "evaluation.every=3"]
    whole = experiment.run(config(tmp_path / "whole", *periods, "tasks=[mod_3,parity]"))
    cut = plan(config(tmp_path / "cut", *periods, "tasks=[mod_3,parity]"))
    iterate = Stack.iterate
    for until in (2, 4, 7):
        stop = threading.Event()

        def stopping(self, until=until, stop=stop):
            iterate(self)
            if self.iteration == until:
                stop.set()

        monkeypatch.setattr(Stack, "iterate", stopping)
        runs = [Run(each, CapacityCache(tmp_path / "capacity"), stop) for each in cut]
        job = StackedRuns(runs, "cpu", 2, stop, lambda run, error: pytest.fail(str(error)))
        while not stop.is_set():
            assert not job.advance()
        for run in runs:
            run.save()
            assert run.plan.folder.restore(lambda state: state["learner"]["iteration"]) == until
    monkeypatch.setattr(Stack, "iterate", iterate)
    again = experiment.run(config(tmp_path / "cut", *periods, "tasks=[mod_3,parity]"))
    for result, other in zip(whole, again, strict=True):
        left, right = RunFolder(result["folder"]), RunFolder(other["folder"])
        assert torch.equal(weights(left), weights(right))
        assert curves(left) == curves(right)


def test_runs_that_were_left_at_different_iterations_are_all_finished(tmp_path):
    settings = ["stack=true", "tasks=[mod_3,parity]"]
    for iterations, tasks in (("2", "[mod_3]"), ("4", "[mod_3,parity]")):
        for each in plan(config(tmp_path, *settings, f"iterations={iterations}", f"tasks={tasks}")):
            if iterations == "2":
                continue
            if each.task.name == "mod_3":  # half done: two of its four iterations
                learner = each.learner()
                learner.iterate()
                learner.iterate()
                each.folder.path.mkdir(parents=True)
                each.folder.write_checkpoint({"learner": learner.state_dict(), "sums": {}, "since": 2, "seconds": 0.0})
    results = experiment.run(config(tmp_path, *settings))
    whole = experiment.run(config(tmp_path / "whole", *settings))
    assert [each["iterations"] for each in results] == [4] * 4
    for result, other in zip(results, whole, strict=True):
        left, right = RunFolder(result["folder"]), RunFolder(other["folder"])
        torch.testing.assert_close(weights(left), weights(right), rtol=0.0, atol=1e-4)


def test_a_run_that_diverges_or_cannot_be_written_stops_alone(tmp_path, monkeypatch):
    def poisoned(self):
        if self.iteration == 2:
            self._state.weights[0] = torch.nan
        iterate(self)

    def written(self, row):
        if "mod_3/seed=1" in str(self.path) and row["iteration"] == 1:
            raise OSError("no space left")
        append(self, row)

    iterate, append = Stack.iterate, RunFolder.append_metrics
    monkeypatch.setattr(Stack, "iterate", poisoned)
    monkeypatch.setattr(RunFolder, "append_metrics", written)
    with pytest.raises(RunsFailed, match="2 of 4 runs failed") as raised:
        experiment.run(config(tmp_path, "stack=true", "tasks=[mod_3,parity]"))
    assert [(each["task"], each["seed"]) for each in raised.value.results] == [("parity", 0), ("parity", 1)]
    diverged, full = (each.folder for each in plan(config(tmp_path, "tasks=[mod_3]")))
    assert "at iteration 2" in json.loads(diverged.failure_path.read_text())["reason"]
    assert "no space left" in json.loads(full.failure_path.read_text())["reason"]
    # Once the cause is gone, the same command finishes them from where they were saved.
    monkeypatch.setattr(Stack, "iterate", iterate)
    monkeypatch.setattr(RunFolder, "append_metrics", append)
    assert len(experiment.run(config(tmp_path, "stack=true", "tasks=[mod_3,parity]"))) == 4


def test_a_stack_that_breaks_fails_its_runs_and_names_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Stack, "iterate", lambda self: 1 / 0)
    with pytest.raises(RunsFailed, match="stack=false"):
        experiment.run(config(tmp_path, "stack=true"))

"""Fleets that train in other processes: the same files and figures, bit for bit, and the same manners."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch
from torch import nn

from rlstate import experiment, processes
from rlstate.experiment import RunsFailed
from rlstate.plan import plan
from rlstate.processes import Processes, useful
from rlstate.runlog import RunFolder
from rlstate.runner import CapacityCache, Run
from rlstate.train import compose

SMALL = [
    "encoder=window_mlp", "encoder.hidden=8", "tasks=[mod_3,parity]", "seeds=2", "iterations=7", "task.horizon=4",
    "algorithm.batch=8", "evaluation.episodes=256", "evaluation.curve_episodes=32", "evaluation.every=3", "log_every=2",
    "checkpoint_every=4", "probe.episodes=60", "probe.curve_episodes=30", "probe.capacity_iterations=3", "logger=files",
    "threads=2",
]  # fmt: skip


def config(root: Path, *overrides: str) -> dict:
    return compose([*SMALL, f"paths.runs={root}", *overrides])


def made(folder: str) -> tuple:
    """What a run left, times aside."""
    run = RunFolder(folder)
    state = run.restore(lambda state: state["learner"])
    weights = torch.cat([tensor.flatten() for tensor in state["policy"].values()])
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in run.read_metrics()]
    result = {key: value for key, value in run.read_result().items() if not key.endswith("seconds") and key != "folder"}
    result["capacity"].pop("seconds")
    return weights.tolist(), rows, json.dumps(result, sort_keys=True), sorted(path.name for path in run.path.iterdir())


def test_where_a_run_trains_leaves_no_trace(tmp_path, monkeypatch):
    elsewhere = []
    train = Processes.train
    monkeypatch.setattr(Processes, "train", lambda *each: elsewhere.append(each[2].seed) or train(*each))
    here = experiment.run(config(tmp_path / "here", "processes=false"))
    assert not elsewhere
    there = experiment.run(config(tmp_path / "there", "processes=true"))
    assert sorted(elsewhere) == sorted(2 * [0, 1] * len(RunFolder(there[0]["folder"]).read_metrics()[1:]))
    for one, other in zip(here, there, strict=True):
        assert one["hash"] == other["hash"]
        assert one["kernels"] == "plain"  # whatever a GRU could use here
        assert made(one["folder"]) == made(other["folder"])


def test_an_interrupted_fleet_resumes_and_ends_with_the_same_numbers(tmp_path):
    """Also from between two rows and two checkpoints."""
    whole = experiment.run(config(tmp_path / "whole", "processes=false"))
    cut = plan(config(tmp_path / "cut", "processes=true"))
    apart = processes.started(cut, 2)
    stop = threading.Event()
    runs = [Run(each, CapacityCache(tmp_path / "capacity"), stop) for each in cut]
    for run in runs:
        run.processes = apart
        for _ in range(3):
            run.advance()
        run.save()
        assert 0 < run.iteration < 7
    apart.close()
    again = experiment.run(config(tmp_path / "cut", "processes=true"))
    for one, other in zip(whole, again, strict=True):
        assert made(one["folder"])[:3] == made(other["folder"])[:3]


def test_processes_are_for_long_fleets_that_no_fused_kernel_trains(tmp_path):
    plans = plan(config(tmp_path))
    long = processes.SHORT
    assert useful(plans, 2, long)
    assert not useful(plans, 1, long)
    assert not useful(plans[:1], 2, long)
    assert not useful(plans, 2, long - 1)
    assert not useful(plan(config(tmp_path, "processes=false")), 2, long)
    assert useful(plan(config(tmp_path, "processes=true")), 1, 1)
    gru = plan(config(tmp_path, "encoder=gru"))
    with experiment.kernels.using("plain"):
        assert useful(gru, 2, long)
    if experiment.kernels.available():
        with experiment.kernels.using("fused"):
            assert not useful(gru, 2, long)


def test_a_run_that_diverges_ends_alone(tmp_path):
    with pytest.raises(RunsFailed, match="the gradient's norm is") as failed:
        experiment.run(config(tmp_path, "processes=true", "algorithm.learning_rate=1e30", "seeds=1", "tasks=[parity]"))
    (reason,) = failed.value.failures.values()
    assert "at iteration" in reason


class Own(nn.Module):
    out_features = 4

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.layer = nn.Linear(inputs, 4)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layer(observations)


def test_an_encoder_that_only_this_process_knows_trains_here_and_says_so(tmp_path, caplog, monkeypatch):
    notebook = types.ModuleType("a_notebook")
    notebook.Own = Own
    monkeypatch.setitem(sys.modules, "a_notebook", notebook)
    mine = ["encoder=custom", "encoder.name=a_notebook.Own", "encoder.hidden=4", "probe=none"]
    with caplog.at_level("WARNING", logger="rlstate"):
        results = experiment.run(config(tmp_path, "processes=true", *mine))
    assert "another cannot build them" in caplog.text
    assert len(results) == 4


def test_a_terminal_interrupt_leaves_checkpoints_and_no_process(tmp_path):
    """Ctrl-C reaches every process of the terminal's group; the pieces end, the parent saves."""
    overrides = [*SMALL, f"paths.runs={tmp_path}", "processes=true", "iterations=100000", "checkpoint_every=100000",
                 "probe=none"]  # fmt: skip
    command = subprocess.Popen(
        [sys.executable, "-m", "rlstate.train", *overrides], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True, cwd=Path(experiment.__file__).parent.parent,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while not any(len(path.read_text().splitlines()) > 3 for path in tmp_path.rglob("metrics.jsonl")):
        assert time.monotonic() < deadline
        assert command.poll() is None
        time.sleep(0.2)
    os.killpg(command.pid, signal.SIGINT)
    output, _ = command.communicate(timeout=60)
    assert command.returncode == 130, output
    assert "the same command goes on" in output
    assert len([*tmp_path.rglob("checkpoint.pt")]) == 4
    deadline = time.monotonic() + 60
    while _alive(command.pid):  # until whoever adopted them has looked after them
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True

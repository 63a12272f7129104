"""Tables over runs, and the interval they show."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rlstate.report import table
from rlstate.runlog import RunFolder
from rlstate.statistics import mean_interval


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
    assert next(line for line in lines if line[:1] == ["95%"])[:2] == ["95%", "0.800…1.000"]
    assert "–" in text  # what was not measured


def test_the_group_is_judged_by_its_means():
    """One seed without and one with the state: below .5 on average."""
    text = table([result(0, recovery=0.1, verdict="perception_gap"), result(1, recovery=0.8)])
    (mean,) = [line for line in text.splitlines() if " mean " in line]
    assert mean.endswith("perception_gap; of the seeds 1 perception_gap, 1 solved")
    text = table([result(0, gain=-0.1), result(1, gain=0.1)])
    assert "solved (not_learned in 1 of 2)" in text


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


def test_the_bootstrap_interval_covers():
    """Of intervals over 20 normal values about nine in ten or more contain the mean; over one value there is none."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        _, low, high = mean_interval(rng.normal(1.0, 2.0, 20), resamples=500)
        inside += low <= 1.0 <= high
    assert 0.88 * 200 <= inside <= 0.98 * 200
    mean, low, high = mean_interval([0.4])
    assert mean == 0.4
    assert np.isnan([low, high]).all()
    assert np.isnan(mean_interval([])[0])
    assert mean_interval([0.5, 0.5, 0.5]) == pytest.approx((0.5, 0.5, 0.5))

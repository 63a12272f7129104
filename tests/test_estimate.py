"""How long it would take: by a clock of the test's own, and what is counted once, or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rlstate import estimate as module
from rlstate import experiment
from rlstate.estimate import Estimate, duration, estimate, total
from rlstate.learning.stack import WARM_UP, Stack
from rlstate.learning.trainer import Learner
from rlstate.probes import capacity
from rlstate.train import compose

SMALL = [
    "iterations=7", "seeds=2", "task.horizon=4", "encoder.hidden=8", "algorithm.batch=8", "evaluation.episodes=64",
    "evaluation.curve_episodes=32", "probe=none", "probe.capacity_iterations=20", "logger=files", "threads=2", "kernels=plain",
]  # fmt: skip


def config(root: Path, *overrides: str) -> dict:
    return compose([*SMALL, f"paths.runs={root}", *overrides])


class Clock:
    """Seconds that pass only where the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now, self._patch = 0.0, monkeypatch
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)

    def takes(self, where: object, name: str, seconds) -> list:
        """Let a function take `seconds(number of the call, its arguments)`; its calls are listed."""
        real, calls = getattr(where, name), []

        def timed(*arguments, **options):
            calls.append(arguments)
            self.now += seconds(len(calls), arguments)
            return real(*arguments, **options)

        self._patch.setattr(where, name, timed)
        return calls


@pytest.fixture
def clock(monkeypatch) -> Clock:
    return Clock(monkeypatch)


def expected(training: dict, capacity: dict, threads: int) -> Estimate:
    return Estimate("", [], list(training), training, capacity, threads)


@pytest.mark.parametrize(
    ("training", "capacity", "threads", "seconds"),
    [
        ([10.0] * 4, [], 2, 20.0),
        ([10.0] * 4, [10.0, 10.0], 2, 30.0),
        ([10.0], [], 8, 10.0),  # a run is not split
        ([30.0, 1.0, 1.0], [2.0], 8, 30.0),
        ([], [], 2, 0.0),
    ],
)
def test_threads_share_the_jobs_and_the_longest_is_waited_for(training, capacity, threads, seconds):
    labelled = expected(dict(enumerate(training)), {f"c{i}": each for i, each in enumerate(capacity)}, threads)
    assert labelled.seconds == seconds


def test_a_sweep_counts_once_what_its_jobs_share():
    first = Estimate("", ["a"], ["b", "c"], {"b": 60.0, "c": 60.0}, {"gru": 120.0}, 1)
    second = Estimate("", ["a"], ["c", "d"], {"c": 60.0, "d": 60.0}, {"gru": 120.0, "lstm": 120.0}, 1)
    assert total([first, second]) == (
        "2 jobs: 4 runs, 1 of them finished already; about 7 minutes one after another, and the measurements after it (in sum "
        "3 minutes of training, up to 4 minutes of supervised capacity)"
    )
    again = Estimate(**json.loads(json.dumps(asdict(second))))  # as it comes from another process
    assert total([first, again]) == total([first, second])
    assert total([Estimate("", ["a"], [], {}, {}, 1)] * 2) == "2 jobs: 1 run, finished already"


def test_a_run_takes_as_long_as_its_iterations_do_once_they_are_warm(tmp_path, clock):
    """An iteration of mod_3 takes 2 s, of mod_5 5 s, the first one of each 100 s more."""
    seen: set[str] = set()

    def seconds(_, arguments):
        task = arguments[0].task.name
        first = task not in seen
        seen.add(task)
        return {"mod_3": 2.0, "mod_5": 5.0}[task] + 100.0 * first

    clock.takes(Learner, "iterate", seconds)
    got = estimate(config(tmp_path, "tasks=[mod_3,mod_5]"))
    assert list(got.training.values()) == [14.0, 14.0, 35.0, 35.0]
    assert (got.capacity, got.seconds, len(got.pending)) == ({}, 49.0, 4)
    assert str(got).splitlines()[-1] == (
        "4 runs; about 49 seconds on 2 threads, and the measurements after it (in sum 2 minutes of training)"
    )
    assert not list(tmp_path.iterdir())


def test_tasks_of_one_name_are_timed_one_by_one(tmp_path, clock):
    for folder, table in (("a", [[0, 1], [1, 0]]), ("b", [[0, 1, 1], [1, 0, 0]])):
        (tmp_path / folder).mkdir()
        machine = {
            "alphabet": list("012")[: len(table[0])],
            "start": 0,
            "accepting": [True, False],
            "transitions": table,
        }
        (tmp_path / folder / "same.json").write_text(json.dumps(machine))
    clock.takes(Learner, "iterate", lambda _, arguments: float(arguments[0].task.dfa.n_symbols))
    got = estimate(config(tmp_path / "runs", f"tasks=[{tmp_path}/a/same.json,{tmp_path}/b/same.json]", "seeds=1"))
    assert list(got.training.values()) == [14.0, 21.0]


def test_stacks_take_turns_and_an_iteration_is_of_all_their_runs(tmp_path, clock):
    """A warm iteration takes a second a run of the stack."""
    begun: dict[int, int] = {}

    def seconds(_, arguments):
        stack = arguments[0]
        begun[id(stack)] = begun.get(id(stack), 0) + 1
        return len(stack.learners) + (1000.0 if begun[id(stack)] <= WARM_UP + 1 else 0.0)

    clock.takes(Stack, "iterate", seconds)
    got = estimate(config(tmp_path, "stack=true", "tasks=[mod_3,parity,mod_5_hold]"))
    assert list(got.training.values()) == [7 * (4.0 + 2.0)]  # two stacks, by the number of symbols
    assert (got.seconds, len(got.pending)) == (42.0, 6)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("encoder", ["gru", "transformer"])
def test_capacity_takes_all_its_iterations_on_all_steps(tmp_path, clock, encoder):
    """A batch takes a second a step, and lengths grow from 3 to T = 9."""
    clock.takes(Learner, "iterate", lambda *_: 1.0)
    calls = clock.takes(capacity, "_batch", lambda _, arguments: float(arguments[4]))
    got = estimate(
        config(tmp_path, "probe.capacity=true", "probe.capacity_iterations=500", "task.horizon=9", f"encoder={encoder}")
    )
    assert list(got.capacity.values()) == [9 * 500.0]
    assert calls[0][4] < 9
    assert got.seconds == 9 * 500.0
    assert "up to 75 minutes of supervised capacity" in str(got)
    assert not list(tmp_path.iterdir())


def test_what_is_there_already_takes_no_time(tmp_path, monkeypatch):
    settings = ("probe.capacity=true", "tasks=[parity,mod_3]")
    experiment.run(config(tmp_path, *settings, "iterations=1"))
    assert str(estimate(config(tmp_path, *settings, "iterations=1"))).endswith("\n4 runs, finished already")
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    got = estimate(config(tmp_path, *settings, "seeds=[0,1,2]", "iterations=1"))
    assert (len(got.finished), len(got.pending), len(got.training)) == (4, 2, 2)
    assert got.capacity == {}  # another seed's is the same
    assert (
        len(estimate(config(tmp_path, *settings, "encoder=lstm")).capacity) == 2
    )  # one for each automaton, not for each run
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files


def test_durations():
    assert [duration(seconds) for seconds in (0.2, 1, 89, 91, 5399, 5400, 9000)] == [
        "0 seconds", "1 second", "89 seconds", "2 minutes", "90 minutes", "1.5 hours", "2.5 hours",
    ]  # fmt: skip

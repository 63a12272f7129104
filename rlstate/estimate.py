"""How long a configuration would take: a few iterations of each thing in it, timed. Nothing is written."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from rlstate.experiment import one_thread_each
from rlstate.learning import kernels
from rlstate.learning.stack import WARM_UP, Stack
from rlstate.plan import RunPlan, describe, plan
from rlstate.probes.capacity import supervised_capacity
from rlstate.runlog import twin
from rlstate.runner import CapacityCache
from rlstate.stacked import preparing, stackable

_ITERATIONS = 5  # timed
_CAPACITY_ITERATIONS = (
    20  # the last quarter of a capacity's training is on episodes of all T steps, whatever is learned
)


@dataclass(frozen=True)
class Estimate:
    """What a configuration would run, and how long.

    Attributes:
        listing: a line for each run.
        finished, pending: the folders of its runs.
        training, capacity: seconds of one thread for each job that is left, by what it makes. A stack's runs are one job, and so
            are all stacks, which take turns. Supervised capacity mostly stops early: these are its seconds if it does not.
        threads: that the jobs share.
    """

    listing: str
    finished: Sequence[str]
    pending: Sequence[str]
    training: Mapping[str, float]
    capacity: Mapping[str, float]
    threads: int

    def without(self, known: set[str]) -> Estimate:
        """Leave out the jobs whose labels are known."""
        training, capacity = (
            {label: seconds for label, seconds in jobs.items() if label not in known}
            for jobs in (self.training, self.capacity)
        )
        return replace(self, training=training, capacity=capacity)

    @property
    def workers(self) -> int:
        """Threads that have something to do."""
        return max(1, min(self.threads, len(self.training) + len(self.capacity)))

    @property
    def seconds(self) -> float:
        """From the beginning to the end: all threads share the work, and nothing ends before its longest job."""
        jobs = [*self.training.values(), *self.capacity.values()]
        return max(sum(jobs) / self.workers, max(jobs, default=0.0))

    def __str__(self) -> str:
        threads = f" on {self.workers} thread{'s' * (self.workers > 1)}"
        return f"{self.listing}\n{_runs(self.finished, self.pending)}{_work([self], threads)}"


def total(estimates: Sequence[Estimate]) -> str:
    """A line for all jobs of a sweep, one after another: what two of them share is done once."""
    finished = {folder for each in estimates for folder in each.finished}
    pending = {folder for each in estimates for folder in each.pending}
    known: set[str] = set()
    left = []
    for each in estimates:
        left.append(each.without(known))
        known |= {*each.training, *each.capacity}
    return f"{len(estimates)} jobs: {_runs(finished, pending)}{_work(left, ' one after another')}"


def estimate(config: Mapping[str, Any]) -> Estimate:
    """What `config` would run, and a measured guess of how long that takes. Writes nothing.

    Raises:
        ConfigurationError: as `experiment.run`.
    """
    plans = plan(config)
    finished: list[str] = []
    pending: list[RunPlan] = []
    for each in plans:
        if each.folder.read_result() is None:
            pending.append(each)
        else:
            finished.append(str(each.folder.path))
    threads = plans[0].config["threads"] or os.cpu_count() or 1
    capacity: dict[str, float] = {}
    # Of automata with the same tables under two names one is trained.
    trained = {(each.hash, each.seed): each for each in reversed(pending) if twin(each.folder) is None}
    with one_thread_each(), kernels.using(plans[0].config["kernels"]):
        training = _training([*reversed(trained.values())], threads)
        if plans[0].config["probe"]["capacity"]:
            cache = CapacityCache(Path(plans[0].config["paths"]["runs"]) / "capacity")
            by_file = {cache.file(each): each for each in pending}
            capacity = {str(file): _capacity(each) for file, each in by_file.items() if not file.exists()}
    left = [str(each.folder.path) for each in pending]
    return Estimate(describe(plans), finished, left, training, capacity, threads)


def _training(plans: Sequence[RunPlan], threads: int) -> dict[str, float]:
    if not plans:
        return {}
    groups = stackable(plans)
    if groups:
        seconds = sum(
            _stack([plans[index] for index in group], threads) * plans[group[0]].iterations for group in groups
        )
        return {" ".join(str(each.folder.path) for each in plans): seconds}
    per_iteration: dict[str, float] = {}  # by configuration and task: what else differs is only the seed
    for each in plans:
        if each.hash not in per_iteration:
            learner = each.learner()
            learner.iterate()
            began = time.perf_counter()
            for _ in range(_ITERATIONS):
                learner.iterate()
            per_iteration[each.hash] = (time.perf_counter() - began) / _ITERATIONS
    return {str(each.folder.path): per_iteration[each.hash] * each.iterations for each in plans}


def _stack(plans: Sequence[RunPlan], threads: int) -> float:
    """Seconds of an iteration of all these runs as one, once it goes at its pace."""
    device = plans[0].device
    workers = preparing(device, threads)
    # Until a graph is captured, and until what the workers had prepared ahead is used up.
    warm_up = WARM_UP + 1 + 2 * workers
    learners = [replace(each, device="cpu").learner() for each in plans]
    stack = Stack(learners, warm_up + _ITERATIONS, device, workers)

    def iterated(number: int) -> float:
        began = time.perf_counter()
        for _ in range(number):
            stack.iterate()
        if stack.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    iterated(warm_up)
    return iterated(_ITERATIONS) / _ITERATIONS


class _Timed(Exception):
    pass


def _capacity(plan: RunPlan) -> float:
    """Seconds of a supervised capacity, if it uses all of its iterations and each is on T steps."""
    times: list[float] = []

    def on_iteration(i: int) -> None:
        if 4 * i > 3 * _CAPACITY_ITERATIONS:
            times.append(time.perf_counter())
        if i == _CAPACITY_ITERATIONS:
            raise _Timed

    with contextlib.suppress(_Timed):
        supervised_capacity(
            plan.task, plan.encoder, 0, iterations=_CAPACITY_ITERATIONS, device=plan.device, on_iteration=on_iteration
        )
    return (times[-1] - times[0]) / (len(times) - 1) * plan.config["probe"]["capacity_iterations"]


# --- in words -----------------------------------------------------------------------------------------------------


def _runs(finished: Collection[str], pending: Collection[str]) -> str:
    number = len(finished) + len(pending)
    runs = f"{number} run{'s' * (number != 1)}"
    if not finished:
        return runs
    return f"{runs}, {len(finished)} of them finished already" if pending else f"{runs}, finished already"


def _work(estimates: Sequence[Estimate], how: str) -> str:
    training = sum(sum(each.training.values()) for each in estimates)
    capacity = sum(sum(each.capacity.values()) for each in estimates)
    if not training and not capacity:
        return ""
    also = f", up to {duration(capacity)} of supervised capacity" if capacity else ""
    return (
        f"; about {duration(sum(each.seconds for each in estimates))}{how}, and the measurements after it (in sum "
        f"{duration(training)} of training{also})"
    )


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} second{'s' * (round(seconds) != 1)}"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"

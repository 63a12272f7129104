"""Which runs of a fleet train as one, and the job that trains them: on a GPU, a run axis instead of a thread a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby

from rlstate.fleet import Stopped
from rlstate.learning.encoders import ENCODERS
from rlstate.learning.stack import Stack, obstacle, shape
from rlstate.learning.trainer import Diverged
from rlstate.plan import RunPlan
from rlstate.runlog import log
from rlstate.runner import Run


def stackable(plans: Sequence[RunPlan]) -> list[list[int]]:
    """Which of the runs train as one, by their indices; empty where each trains by itself."""
    first = plans[0]
    stack = first.config["stack"]
    if stack is False or (stack == "auto" and first.device != "cuda"):
        return []
    reason = None if first.encoder["name"] in ENCODERS else obstacle(replace(first, device="cpu").learner())
    if reason is not None:
        log.warning("encoder.name=%s cannot be stacked (%s); each run trains by itself", first.encoder["name"], reason)
        return []
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, each in enumerate(plans):
        groups.setdefault(shape(each.task, each.auxiliary), []).append(index)
    return list(groups.values())


def preparing(device: str, threads: int) -> int:
    """How many processes prepare a stack's random numbers; 0: the one that trains it."""
    return 0 if device == "cpu" else min(8, threads)


class StackedRuns:
    """A job of the fleet: runs of one shape, trained as one (`rlstate.learning.stack`), measured one by one on `threads`.

    A run that fails, or diverges, leaves the others as they are.
    """

    _device = threading.Lock()  # stacks take turns: one fills the device

    def __init__(
        self,
        runs: Sequence[Run],
        device: str,
        threads: int,
        stop: threading.Event,
        on_error: Callable[[Run, BaseException], None],
    ):
        self.runs = runs
        self._on, self._threads, self._stop, self._on_error = device, threads, stop, on_error
        self._stacks: list[tuple[Stack, list[Run]]] | None = None
        for run in runs:
            run.stacked()

    @property
    def remaining(self) -> float:
        return max(each.remaining for each in self.runs)

    def advance(self) -> bool:
        for run in self.runs:
            run.working = True
        finished = self._advance()
        for run in self.runs:
            run.working = False
        return finished

    def _advance(self) -> bool:
        if self._stacks is None:
            self._each(self.runs, Run.start)
            self._stacks = self._stack()
            return not self._stacks
        stack, runs = self._stacks[-1]
        live = [each for each in runs if each.failure is None]
        if live and stack.iteration < live[0].plan.iterations:
            if self._train(stack, runs, live[0].due()):
                self._each([each for each in runs if each.failure is None], Run.mark)
        else:
            self._each(live, Run.finish)
            if not self._stop.is_set():
                self._stacks.pop()
        return not self._stacks

    def _stack(self) -> list[tuple[Stack, list[Run]]]:
        """A stack for each iteration that runs are at: an interruption may have left some behind."""
        live = sorted((each for each in self.runs if each.failure is None), key=lambda run: run.iteration)
        stacks = []
        for _, group in groupby(live, key=lambda run: run.iteration):
            runs = list(group)
            workers = preparing(self._on, self._threads)
            stacks.append((Stack([each.learner for each in runs], runs[0].plan.iterations, self._on, workers), runs))
        return stacks

    def _train(self, stack: Stack, runs: Sequence[Run], until: int) -> bool:
        """Iterate up to `until`, and bring every run there; false when the fleet is stopping."""
        with self._device:
            began = time.monotonic()
            while stack.iteration < until and not self._stop.is_set():
                stack.iterate()
            stored = stack.store()
            seconds = (time.monotonic() - began) / len(runs)
        for run, (figures, diverged) in zip(runs, stored):
            if run.failure is None:
                run.count(figures, seconds)
                if diverged:
                    self._on_error(run, Diverged("not finite", run.iteration))
        return stack.iteration == until

    def _each(self, runs: Sequence[Run], do: Callable[[Run], None]) -> None:
        def one(run: Run) -> None:
            try:
                do(run)
            except Stopped:
                pass
            except BaseException as error:
                self._on_error(run, error)

        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(one, runs))

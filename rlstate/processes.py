"""Training in other processes, for runs that would wait for each other as threads.

The fused kernels train without the interpreter's lock, so runs of a GRU or an LSTM share a process. Any other encoder is
thousands of calls from Python an iteration, of which one thread makes one at a time: two threads are slower than one
(docs/PERFORMANCE.md). Such a run keeps its thread here, which writes its rows and measures it; only its pieces of training, from
one row to the next, are done elsewhere. Where makes no difference to its numbers.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any

import torch
from loky import ProcessPoolExecutor

from rlstate.fleet import Stopped
from rlstate.learning import kernels
from rlstate.learning.encoders import trains_fused
from rlstate.learning.trainer import Diverged, Learner
from rlstate.plan import RunPlan
from rlstate.probes.capacity import supervised_capacity
from rlstate.runlog import log

SHORT = 1000  # iterations, of all runs together: below it processes take longer to start than they save
_PIECE = 2.0  # seconds, so that progress is seen and an interrupt is soon obeyed
_IDLE = 60  # seconds until a process ends that is asked nothing: of a parent that was killed none is left over


def useful(plans: Sequence[RunPlan], threads: int, iterations: int) -> bool:
    """Whether runs with so many iterations left between them should train in processes (`processes=auto|true|false`)."""
    first, asked = plans[0], plans[0].config["processes"]
    if asked is False or first.device != "cpu":
        return False
    return asked is True or (threads > 1 and len(plans) > 1 and iterations >= SHORT and not _fused(first))


def _fused(plan: RunPlan) -> bool:
    return trains_fused(plan.learner().policy.encoder, "cpu")


@dataclass(frozen=True)
class Piece:
    """What a piece of training made: the learner's state, the figures of each iteration, and why it ended early, if it did."""

    learner: dict[str, Any]
    figures: list[dict[str, float]]
    seconds: float
    diverged: float | str | None = None  # the norm of a gradient that was not finite


class Processes:
    """As many processes as threads; each call waits for its answer. Close it to end them.

    Raises:
        ImportError, AttributeError: `like`, one of the runs, cannot be built in another process (an encoder of a notebook's own).
    """

    def __init__(self, threads: int, like: RunPlan):
        self._executor = ProcessPoolExecutor(
            max_workers=threads,
            timeout=_IDLE,
            initializer=_begin,
            initargs=(like.config["kernels"],),
            env={"OMP_NUM_THREADS": "1"},
        )
        try:
            self._executor.submit(_build, _light(like)).result()
        except BaseException:
            self.close()
            raise

    def train(self, plan: RunPlan, learner: Learner, until: int) -> Piece:
        """Train a copy of `learner` up to `until`, or for some seconds, and bring `learner` to where that ended."""
        piece: Piece = self._executor.submit(_train, _light(plan), learner.state_dict(), until).result()
        learner.load_state_dict(piece.learner)
        return piece

    def capacity(self, plan: RunPlan, iterations: int, stop: threading.Event) -> dict[str, Any]:
        """The summary of a supervised capacity.

        Raises:
            Stopped: `stop` was set before it was done.
        """
        future: Future[dict[str, Any]] = self._executor.submit(_capacity, _light(plan), iterations)
        while not future.done():
            if stop.is_set():
                raise Stopped
            wait([future], timeout=0.2)
        return future.result()

    def close(self) -> None:
        self._executor.shutdown(wait=True, kill_workers=True)


def started(plans: Sequence[RunPlan], threads: int) -> Processes | None:
    """Processes for these runs; None, and a word of it, where they cannot be had."""
    try:
        return Processes(min(threads, len(plans)), plans[0])
    except Exception as error:  # a user's encoder may do anything when it is imported
        log.warning("runs train as threads of one process, slower: another cannot build them (%s)", error)
        return None


# --- in the other process -----------------------------------------------------------------------------------------


def _begin(mode: str) -> None:
    # A terminal's Ctrl-C and a cluster's SIGTERM reach every process: the parent decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
    kernels.using(mode).__enter__()  # for as long as the process lives


def _light(plan: RunPlan) -> RunPlan:
    """The plan without what its task has computed, for the way there."""
    return replace(plan, task=replace(plan.task))


def _build(plan: RunPlan) -> None:
    plan.learner()


def _train(plan: RunPlan, state: dict[str, Any], until: int) -> Piece:
    learner = plan.learner()
    learner.load_state_dict(state)
    figures: list[dict[str, float]] = []
    diverged = None
    began = time.monotonic()
    try:
        while learner.iteration < until and time.monotonic() < began + _PIECE:
            figures.append(learner.iterate())
    except Diverged as error:
        diverged = error.norm
    return Piece(learner.state_dict(), figures, time.monotonic() - began, diverged)


def _capacity(plan: RunPlan, iterations: int) -> dict[str, Any]:
    return supervised_capacity(plan.task, plan.encoder, 0, iterations=iterations, device=plan.device).summary()

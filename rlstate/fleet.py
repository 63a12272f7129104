"""Many runs in one process: worker threads that always push the run which is furthest behind.

Runs share nothing, so a fleet needs no padding, no stacked weights and no common random stream: each run's numbers are
those it has alone, bit for bit. PyTorch releases the interpreter lock inside its operators, so threads do use the cores.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol


class Stopped(Exception):
    """A piece was given up because the fleet is stopping. Its job has not failed."""


class Job(Protocol):
    """Something that is done in pieces; an exception in `advance` is that job's own end, not the fleet's."""

    @property
    def remaining(self) -> float:
        """Work left; the job with the most is advanced first, so all end together."""

    def advance(self) -> bool:
        """Do one piece; true when nothing is left. May raise `Stopped` when the fleet's `stop` is set."""


def run_jobs(
    jobs: Sequence[Job],
    threads: int,
    on_error: Callable[[Job, BaseException], None],
    tick: Callable[[], None] = lambda: None,
    interval: float = 0.25,
    stop: threading.Event | None = None,
) -> None:
    """Advance all `jobs` to their end on `threads` threads; `tick` is called from the calling thread meanwhile.

    A KeyboardInterrupt sets `stop`, lets every running piece end, and is then raised: what is done is done, and whoever
    keeps checkpoints can write them.

    Raises:
        BaseException: what `on_error` raised, once the other workers have ended.
    """
    stop = stop or threading.Event()
    queue = [(-job.remaining, index) for index, job in enumerate(jobs)]
    heapq.heapify(queue)
    condition = threading.Condition()
    busy, working = 0, max(1, min(threads, len(jobs)))
    fatal: list[BaseException] = []

    def next_job() -> int | None:
        """The index of the job that is furthest behind; None when there will be none."""
        nonlocal busy
        while not queue and busy and not stop.is_set():
            condition.wait()  # a busy one may come back
        if stop.is_set() or not queue:
            return None
        busy += 1
        return heapq.heappop(queue)[1]

    def advance(job: Job) -> bool:
        try:
            return job.advance()
        except Stopped:
            return False
        except BaseException as error:  # a worker's exception must reach the caller, whatever it is
            on_error(job, error)
            return True

    def work() -> None:
        nonlocal busy, working
        while True:
            with condition:
                index = next_job()
                if index is None:
                    working -= 1
                    condition.notify_all()
                    return
            finished = True
            try:
                finished = advance(jobs[index])
            except BaseException as error:
                fatal.append(error)
                stop.set()
            with condition:
                busy -= 1
                if not finished:
                    heapq.heappush(queue, (-jobs[index].remaining, index))
                condition.notify_all()

    workers = [threading.Thread(target=work, name=f"rlstate-{i}", daemon=True) for i in range(working)]
    for worker in workers:
        worker.start()
    try:
        last = time.monotonic()
        while True:
            with condition:
                if not working:
                    break
                condition.wait(timeout=interval)
            if time.monotonic() - last >= interval:
                tick()
                last = time.monotonic()
        for worker in workers:
            worker.join()
        tick()
    except BaseException:
        with condition:
            stop.set()
            condition.notify_all()
        for worker in workers:
            worker.join()
        raise
    if fatal:
        raise fatal[0]

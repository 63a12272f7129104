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


class Job(Protocol):
    """Something that is done in pieces; an exception in `advance` is that job's own end, not the fleet's."""

    @property
    def remaining(self) -> float:
        """Work left; the job with the most is advanced first, so all end together."""

    def advance(self) -> bool:
        """Do one piece; true when nothing is left."""


def run_jobs(
    jobs: Sequence[Job],
    threads: int,
    on_error: Callable[[Job, BaseException], None],
    tick: Callable[[], None] = lambda: None,
    interval: float = 0.25,
) -> None:
    """Advance all `jobs` to their end on `threads` threads; `tick` is called from the calling thread meanwhile.

    A KeyboardInterrupt lets every running piece finish and is then raised: what is done is done, and whoever keeps
    checkpoints can write them between pieces.
    """
    queue = [(-job.remaining, index) for index, job in enumerate(jobs)]
    heapq.heapify(queue)
    condition = threading.Condition()
    busy, working, stopping = 0, max(1, min(threads, len(jobs))), False

    def next_job() -> int | None:
        """The index of the job that is furthest behind; None when there will be none."""
        nonlocal busy
        while not queue and busy and not stopping:
            condition.wait()  # a busy one may come back
        if stopping or not queue:
            return None
        busy += 1
        return heapq.heappop(queue)[1]

    def work() -> None:
        nonlocal busy, working
        while True:
            with condition:
                index = next_job()
                if index is None:
                    working -= 1
                    condition.notify_all()
                    return
            job, finished = jobs[index], True
            try:
                finished = job.advance()
            except BaseException as error:  # a worker's exception must reach the caller, whatever it is
                on_error(job, error)
            with condition:
                busy -= 1
                if not finished:
                    heapq.heappush(queue, (-job.remaining, index))
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
        tick()
    except KeyboardInterrupt:
        with condition:
            stopping = True
            condition.notify_all()
        for worker in workers:
            worker.join()
        raise

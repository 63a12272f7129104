"""Worker threads that push whoever is furthest behind, and end in every case."""

from __future__ import annotations

import _thread
import threading
import time

import pytest

from rlstate.fleet import Stopped, run_jobs


class Count:
    def __init__(self, pieces: int, log: list[str], name: str, error: Exception | None = None):
        self.pieces, self.log, self.name, self.error, self.done = pieces, log, name, error, 0

    @property
    def remaining(self) -> float:
        return self.pieces - self.done

    def advance(self) -> bool:
        if self.error is not None and self.done == 2:
            raise self.error
        self.done += 1
        self.log.append(self.name)
        return self.remaining == 0


def never(job, error):
    raise error


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_job_is_finished_once(threads):
    log: list[str] = []
    jobs = [Count(n, log, str(n)) for n in (1, 4, 9)]
    run_jobs(jobs, threads, never)
    assert [job.done for job in jobs] == [1, 4, 9]
    assert len(log) == 14


def test_the_one_furthest_behind_goes_first():
    log: list[str] = []
    run_jobs([Count(2, log, "short"), Count(5, log, "long")], 1, never)
    assert log[:3] == ["long"] * 3
    assert {*log[3:5]} <= {"long", "short"}


def test_no_jobs_is_no_work():
    run_jobs([], 3, never)


def test_an_error_ends_its_own_job():
    log: list[str] = []
    jobs = [Count(5, log, "fine"), Count(5, log, "broken", ValueError("no"))]
    errors = []
    run_jobs(jobs, 2, lambda job, error: errors.append((job.name, str(error))))
    assert errors == [("broken", "no")]
    assert jobs[0].done == 5


def test_an_error_in_reporting_an_error_reaches_the_caller():
    jobs = [Count(3, [], "broken", ValueError("no")), Count(10**6, [], "endless")]
    with pytest.raises(ValueError, match="no"):
        run_jobs(jobs, 2, never)


def test_an_interrupt_lets_the_piece_end_and_stops_the_rest():
    class Slow(Count):
        def advance(self) -> bool:
            time.sleep(0.05)
            return super().advance()

    jobs = [Slow(1000, [], str(i)) for i in range(2)]
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, 2, never)
    assert time.monotonic() - began < 5.0
    done = [job.done for job in jobs]
    time.sleep(0.15)
    assert [job.done for job in jobs] == done  # nothing goes on behind the caller's back


def test_a_piece_that_was_given_up_is_no_failure():
    stop = threading.Event()

    class Gives(Count):
        def advance(self) -> bool:
            stop.set()
            raise Stopped

    run_jobs([Gives(5, [], "a")], 1, never, stop=stop)

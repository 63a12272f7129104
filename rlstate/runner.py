"""One run from its plan to its result: resume, train in pieces, evaluate and probe along the way, measure, write."""

from __future__ import annotations

import importlib.metadata
import io
import json
import platform
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rlstate.automata import save as save_automaton
from rlstate.control import Stream
from rlstate.figures import run_figure
from rlstate.fleet import Stopped
from rlstate.learning.encoders import trains_fused
from rlstate.learning.evaluation import evaluate
from rlstate.learning.rollout import rollout
from rlstate.learning.trainer import Diverged, Learner
from rlstate.measure import judged, measure, probe_rollout, rollout_arrays
from rlstate.output import jsonable, write_atomically
from rlstate.plan import RunPlan
from rlstate.probes.capacity import supervised_capacity
from rlstate.probes.linear import quick_probe
from rlstate.processes import Processes
from rlstate.runlog import RunFolder, log


class Run:
    """A job of the fleet. A piece ends where a row or a checkpoint is due, or, when the fleet stops, after any iteration."""

    def __init__(self, plan: RunPlan, capacity: CapacityCache, stop: threading.Event):
        self.plan = plan
        self._trained_on, self._path = plan.device, ""
        self.result: dict[str, Any] | None = None
        self.failure: str | None = None
        self.latest: dict[str, Any] = {}  # the newest figures, for the progress bar
        self.iteration = 0
        self._capacity, self._stop = capacity, stop
        self.processes: Processes | None = None  # where it trains; None: here
        self._learner: Learner | None = None
        self._sums: dict[str, float] = {}  # of the figures since the last row of training
        self._since = 0  # the iteration of that row
        self._seconds = 0.0  # of training, over all resumptions
        self._measuring = 0.0  # of evaluation and probes, in this process
        self.working = False  # between two states, of which neither may be saved

    @property
    def remaining(self) -> float:
        return self.plan.iterations - self.iteration

    def advance(self) -> bool:
        self.working = True
        if self._learner is None:
            self.start()
        elif self._learner.iteration < self.plan.iterations:
            self._train(self._learner)
        else:
            self.finish()
        self.working = False
        return self.result is not None

    @property
    def learner(self) -> Learner:
        assert self._learner is not None, "the run has not started"
        return self._learner

    def stacked(self) -> None:
        """Leave training to a stack on the plan's device: everything else of this run happens on the CPU."""
        self.plan, self._path = replace(self.plan, device="cpu"), "stacked"

    def save(self) -> None:
        """Write a checkpoint of where the run is now; nothing in the middle of a piece, where it is between two states."""
        learner = self._learner
        if learner is not None and not self.working and self.result is None and self.failure is None:
            self.plan.folder.write_checkpoint(
                {"learner": learner.state_dict(), "sums": self._sums, "since": self._since, "seconds": self._seconds}
            )

    def fail(self, reason: str) -> None:
        self.failure = reason
        log.error("%s failed at iteration %d: %s", self.plan.folder.path, self.iteration, reason)
        try:
            self.plan.folder.write_failure(reason, self.iteration)
        except OSError as error:
            log.error("and that could not be written down: %s", error)

    def adopt(self, other: RunFolder) -> None:
        """Take over what a run of the same hash and seed left (`runlog.twin`), under this run's name. It took no time."""
        folder, result = self.plan.folder, other.read_result()
        assert result is not None, "only a finished run is taken over"
        folder.write_config(self.plan.config)
        save_automaton(self.plan.task.dfa, folder.path / "automaton.json")
        for name in ("metrics.jsonl", "checkpoint.pt"):
            if (other.path / name).exists():
                write_atomically(folder.path / name, (other.path / name).read_bytes())
        took = {"training_seconds": 0.0, "measuring_seconds": 0.0, "capacity_seconds": None}
        result |= {"task": self.plan.task.name, "folder": str(folder.path), **took}
        self.result = judged(result, self.plan.thresholds)
        self.iteration = self.plan.iterations
        folder.write_result(self.result)
        run_figure(folder)

    def export(self) -> None:
        """`rollouts.npz`: the greedy policy's episodes, for a user's own probes."""
        learner = self._learner or self.plan.folder.restore(self._restored, self.plan.device)
        if learner is None:
            self.fail(
                "export=rollouts needs a checkpoint, and none can be read; delete the folder to train the run again"
            )
            return
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **rollout_arrays(probe_rollout(learner.policy, self.plan)))  # type: ignore[arg-type]
        write_atomically(self.plan.folder.path / "rollouts.npz", buffer.getvalue())

    # ---------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write what is run, and go to the last checkpoint, or to the beginning."""
        plan, folder = self.plan, self.plan.folder
        folder.write_config(plan.config)
        save_automaton(plan.task.dfa, folder.path / "automaton.json")
        learner = folder.restore(self._restored, plan.device)
        if learner is None:
            learner = plan.learner()
            folder.cut_metrics(-1)
            self._write_row(learner)
        else:
            folder.cut_metrics(learner.iteration)
            log.info("%s resumes at iteration %d", folder.path, learner.iteration)
        self._learner, self.iteration = learner, learner.iteration

    def _restored(self, state: dict[str, Any]) -> Learner:
        learner = self.plan.learner()
        learner.load_state_dict(state["learner"])
        self._sums, self._since, self._seconds = dict(state["sums"]), int(state["since"]), float(state["seconds"])
        return learner

    def _train(self, learner: Learner) -> None:
        until = self.due()
        if self.processes is not None:
            self._train_elsewhere(self.processes, learner, until)
        else:
            began = time.monotonic()
            while learner.iteration < until and not self._stop.is_set():
                self.count(learner.iterate())
            self._seconds += time.monotonic() - began
        if learner.iteration == until:
            self.mark()

    def _train_elsewhere(self, processes: Processes, learner: Learner, until: int) -> None:
        piece = processes.train(self.plan, learner, until)
        for figures in piece.figures:
            self.count(figures)
        self._seconds += piece.seconds
        if piece.diverged is not None:
            raise Diverged(piece.diverged, learner.iteration)

    def due(self) -> int:
        """The next iteration at which a row or a checkpoint is to be written."""
        config, now = self.plan.config, self.learner.iteration
        every = (config["log_every"], config["checkpoint_every"], config["evaluation"]["every"])
        return min(self.plan.iterations, *(now + each - now % each for each in every))

    def count(self, figures: Mapping[str, float], seconds: float = 0.0) -> None:
        """Add the figures of one iteration, or their sums over several, to those of the next row."""
        for name, figure in figures.items():
            self._sums[name] = self._sums.get(name, 0.0) + figure
        self._seconds += seconds
        self.iteration = self.learner.iteration

    def mark(self) -> None:
        """Write what is due now: a row, a checkpoint."""
        learner, config = self.learner, self.plan.config
        now, at_end = learner.iteration, learner.iteration == self.plan.iterations
        if at_end or now % config["log_every"] == 0 or now % config["evaluation"]["every"] == 0:
            self._write_row(learner)
        if at_end or now % config["checkpoint_every"] == 0:
            self.working = False
            self.save()

    def _write_row(self, learner: Learner) -> None:
        """A row: means of training since the last one, and, every `evaluation.every` iterations, the greedy policy's figures."""
        plan, config = self.plan, self.plan.config
        iteration, at_end = learner.iteration, learner.iteration == plan.iterations
        row: dict[str, Any] = {"iteration": iteration, "episodes": iteration * plan.algorithm.batch}
        if self._sums and (at_end or iteration % config["log_every"] == 0):
            row |= {name: total / (iteration - self._since) for name, total in self._sums.items()}
            row["val_n"] = row["success"] / plan.task.oracle.optimal
            self._sums, self._since = {}, iteration
        if at_end or iteration % config["evaluation"]["every"] == 0:
            began = time.monotonic()
            row |= self._curve_point(learner)
            self._measuring += time.monotonic() - began
        row["seconds"] = round(self._seconds, 3)
        plan.folder.append_metrics(row)
        self.latest = {**self.latest, **row}

    def _curve_point(self, learner: Learner) -> dict[str, Any]:
        plan, config = self.plan, self.plan.config
        greedy = evaluate(learner.policy, plan.task, plan.seed, episodes=config["evaluation"]["curve_episodes"])
        draws = plan.task.draw(plan.seed, Stream.PROBE, 0, config["probe"]["curve_episodes"])
        played = rollout(learner.policy, plan.task, draws, greedy=True)
        probe = quick_probe(played.features, played.states[:-1], plan.seed)
        return {
            "greedy_success": greedy.acceptance,
            "greedy_val_n": greedy.val_n,
            "probe_gap": probe.gap,
            "recovery": probe.recovery,
        }

    def finish(self) -> None:
        """Measure the trained policy and write the result."""
        plan, learner = self.plan, self.learner
        config = plan.config
        capacity = self._capacity.get(plan, self._stop, self.processes) if config["probe"]["capacity"] else None
        began = time.monotonic()
        result = measure(learner.policy, plan, capacity)
        self._measuring += time.monotonic() - began
        self.result = jsonable(
            {
                "experiment": plan.experiment,
                "hash": plan.hash,
                "task": plan.task.name,
                "seed": plan.seed,
                **result,
                "iterations": plan.iterations,
                "training_seconds": round(self._seconds, 2),
                "measuring_seconds": round(self._measuring, 2),
                "capacity_seconds": None if capacity is None else capacity["seconds"],
                "kernels": self._path or ("fused" if trains_fused(learner.policy.encoder, plan.device) else "plain"),
                "device": self._trained_on,
                "versions": versions(),
                "commit": commit(),
                "folder": str(plan.folder.path),
            }
        )
        plan.folder.write_result(self.result)
        run_figure(plan.folder)


class CapacityCache:
    """Supervised capacity by automaton and encoder, computed once and kept under `<paths.runs>/capacity/`."""

    def __init__(self, root: Path):
        self._root = root
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def file(self, plan: RunPlan) -> Path:
        """Where the capacity of a run's encoder on its automaton is, once it is computed."""
        return self._root / f"{plan.capacity_key()}.json"

    def get(self, plan: RunPlan, stop: threading.Event, processes: Processes | None = None) -> dict[str, Any]:
        """What is kept, or else computed now: in one of the processes, or here.

        Raises:
            Stopped: `stop` was set before it was done.
        """
        key = plan.capacity_key()
        with self._guard:
            lock = self._locks[key]
        with lock:
            path = self.file(plan)
            if path.exists():
                try:
                    return json.loads(path.read_text())
                except ValueError:
                    log.warning("%s is damaged; it is computed again", path)

            began, iterations = time.monotonic(), plan.config["probe"]["capacity_iterations"]
            compute = _capacity if processes is None else processes.capacity
            computed = compute(plan, iterations, stop)
            seconds = round(time.monotonic() - began, 2)
            summary = jsonable({"task": plan.task.name, "encoder": plan.encoder, **computed, "seconds": seconds})
            write_atomically(path, (json.dumps(summary, indent=2) + "\n").encode())
            return summary


def _capacity(plan: RunPlan, iterations: int, stop: threading.Event) -> dict[str, Any]:
    def stopped(iteration: int) -> None:
        if stop.is_set():
            raise Stopped

    return supervised_capacity(
        plan.task, plan.encoder, 0, iterations=iterations, device=plan.device, on_iteration=stopped
    ).summary()


class CapacityJob:
    """Computes a capacity ahead of the runs that will ask for it."""

    remaining = float("inf")

    def __init__(self, plan: RunPlan, cache: CapacityCache, stop: threading.Event, processes: Processes | None = None):
        self.plan, self._cache, self._stop, self._processes = plan, cache, stop, processes
        self.done = False

    def advance(self) -> bool:
        self._cache.get(self.plan, self._stop, self._processes)
        self.done = True
        return True


@lru_cache
def versions() -> dict[str, str]:
    packages = ("rlstate", "torch", "numpy", "scipy", "gymnasium", "hydra-core")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


@lru_cache
def commit() -> str | None:
    """The commit of the checkout this code runs from; None for an installed wheel."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--", "rlstate") else "")
    except (OSError, subprocess.CalledProcessError):
        return None

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
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rlstate.automata import save as save_automaton
from rlstate.control import Stream
from rlstate.figures import run_figure
from rlstate.fleet import Stopped
from rlstate.learning import kernels
from rlstate.learning.evaluation import evaluate
from rlstate.learning.rollout import rollout
from rlstate.learning.trainer import Learner
from rlstate.measure import measure, probe_rollout, rollout_arrays
from rlstate.output import jsonable, write_atomically
from rlstate.plan import RunPlan
from rlstate.probes.capacity import supervised_capacity
from rlstate.probes.linear import quick_probe
from rlstate.runlog import log


class Run:
    """A job of the fleet. A piece ends where a row or a checkpoint is due, or, when the fleet stops, after any iteration."""

    def __init__(self, plan: RunPlan, capacity: CapacityCache, stop: threading.Event):
        self.plan = plan
        self.result: dict[str, Any] | None = None
        self.failure: str | None = None
        self.latest: dict[str, Any] = {}  # the newest figures, for the progress bar
        self.iteration = 0
        self._capacity, self._stop = capacity, stop
        self._learner: Learner | None = None
        self._sums: dict[str, float] = {}  # of the figures since the last row of training
        self._since = 0  # the iteration of that row
        self._seconds = 0.0  # of training, over all resumptions
        self._measuring = 0.0  # of evaluation and probes, in this process
        self._working = False

    @property
    def remaining(self) -> float:
        return self.plan.iterations - self.iteration

    def advance(self) -> bool:
        self._working = True
        if self._learner is None:
            self._learner = self._start()
        elif self._learner.iteration < self.plan.iterations:
            self._train(self._learner)
        else:
            self._finish(self._learner)
        self._working = False
        return self.result is not None

    def save(self) -> None:
        """Write a checkpoint of where the run is now; nothing in the middle of a piece, where it is between two states."""
        learner = self._learner
        if learner is not None and not self._working and self.result is None and self.failure is None:
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

    def _start(self) -> Learner:
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
        self.iteration = learner.iteration
        return learner

    def _restored(self, state: dict[str, Any]) -> Learner:
        learner = self.plan.learner()
        learner.load_state_dict(state["learner"])
        self._sums, self._since, self._seconds = dict(state["sums"]), int(state["since"]), float(state["seconds"])
        return learner

    def _train(self, learner: Learner) -> None:
        config, total = self.plan.config, self.plan.iterations
        due = (config["log_every"], config["checkpoint_every"], config["evaluation"]["every"])
        until = min(total, *(learner.iteration + every - learner.iteration % every for every in due))
        began = time.monotonic()
        while learner.iteration < until and not self._stop.is_set():
            for name, figure in learner.iterate().items():
                self._sums[name] = self._sums.get(name, 0.0) + figure
            self.iteration = learner.iteration
        self._seconds += time.monotonic() - began
        if learner.iteration < until:
            return
        at_end = until == total
        if at_end or until % config["log_every"] == 0 or until % config["evaluation"]["every"] == 0:
            self._write_row(learner)
        if at_end or until % config["checkpoint_every"] == 0:
            self._working = False
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

    def _finish(self, learner: Learner) -> None:
        plan = self.plan
        config = plan.config
        capacity = self._capacity.get(plan, self._stop) if config["probe"]["capacity"] else None
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
                "kernels": "fused" if kernels.active(plan.device) else "plain",
                "device": plan.device,
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

    def get(self, plan: RunPlan, stop: threading.Event) -> dict[str, Any]:
        key = plan.capacity_key()
        with self._guard:
            lock = self._locks[key]
        with lock:
            path = self._root / f"{key}.json"
            if path.exists():
                try:
                    return json.loads(path.read_text())
                except ValueError:
                    log.warning("%s is damaged; it is computed again", path)

            def stopped(iteration: int) -> None:
                if stop.is_set():
                    raise Stopped

            began, iterations = time.monotonic(), plan.config["probe"]["capacity_iterations"]
            capacity = supervised_capacity(
                plan.task, plan.encoder, 0, iterations=iterations, device=plan.device, on_iteration=stopped
            )
            seconds = round(time.monotonic() - began, 2)
            summary = jsonable(
                {"task": plan.task.name, "encoder": plan.encoder, **capacity.summary(), "seconds": seconds}
            )
            write_atomically(path, (json.dumps(summary, indent=2) + "\n").encode())
            return summary


class CapacityJob:
    """Computes a capacity ahead of the runs that will ask for it."""

    remaining = float("inf")

    def __init__(self, plan: RunPlan, cache: CapacityCache, stop: threading.Event):
        self.plan, self._cache, self._stop = plan, cache, stop

    def advance(self) -> bool:
        self._cache.get(self.plan, self._stop)
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

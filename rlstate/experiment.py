"""One fleet from a configuration to its results: plan → train → evaluate → probe → verdict. `run(config)` is all of it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from rlstate.automata import load as load_automaton
from rlstate.control import EmissionChannel
from rlstate.control.task import Task
from rlstate.figures import run_figure
from rlstate.fleet import Job, run_jobs
from rlstate.learning import kernels
from rlstate.learning.objectives import Auxiliary
from rlstate.learning.policy import Policy
from rlstate.learning.trainer import Diverged, new_policy
from rlstate.measure import judged
from rlstate.plan import ConfigurationError, RunPlan, plan, resolve_device
from rlstate.processes import started, useful
from rlstate.runlog import RunBusy, RunFolder, log, twin
from rlstate.runner import CapacityCache, CapacityJob, Run, commit
from rlstate.stacked import StackedRuns, stackable
from rlstate.wandb_view import Logger, make_logger

__all__ = ["ConfigurationError", "Loaded", "RunBusy", "RunsFailed", "load", "plan", "run"]


class RunsFailed(RuntimeError):
    """Some runs of the fleet failed; the others finished. `failures` maps a run's folder to the reason."""

    def __init__(self, failures: dict[str, str], results: list[dict[str, Any]]):
        self.failures, self.results = failures, results
        listed = "\n".join(f"  {folder}: {reason}" for folder, reason in failures.items())
        super().__init__(f"{len(failures)} of {len(failures) + len(results)} runs failed:\n{listed}")


def run(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Train and measure every run of a configuration; what is finished already is read and not done again.

    The same configuration resumes where it was interrupted and ends with the same numbers. From a notebook:
    `run(rlstate.train.compose(["+experiment=quickstart", "task=mod_5", "logger=files"]))`.

    Returns:
        A result for each run (what its `result.json` holds), in the order of tasks, then seeds.

    Raises:
        ConfigurationError: before anything is written.
        RunsFailed: after every other run has finished.
        RunBusy: another process is training one of these runs.
        KeyboardInterrupt: after a checkpoint of every run has been written.
    """
    plans = plan(config)
    stop = threading.Event()
    capacity = CapacityCache(Path(plans[0].config["paths"]["runs"]) / "capacity")
    runs = [Run(each, capacity, stop) for each in plans]
    for each in runs:
        each.result = _finished(each.plan)
    pending = [each for each in runs if each.result is None]
    if len(pending) < len(runs):
        log.info("%d of %d runs are finished already", len(runs) - len(pending), len(runs))
        others = {each.result.get("commit") for each in runs if each.result is not None} - {commit()}
        if others:
            log.info("they were made by other code (%s); delete their folders, or give another name=, to run them again",
                     ", ".join(str(other)[:12] for other in others))  # fmt: skip
    if pending:
        with contextlib.ExitStack() as stack:
            for each in pending:
                _lock(each, stack)
            logger = stack.enter_context(make_logger(plans[0].config["logger"]))
            _train_once(pending, capacity, logger, stop)
    if plans[0].config["export"] == "rollouts":
        for each in runs:
            if each.result is not None:
                each.export()
    failures = {str(each.plan.folder.path): each.failure for each in runs if each.failure is not None}
    results = [each.result for each in runs if each.result is not None and each.failure is None]
    if failures:
        raise RunsFailed(failures, results)
    return results


def _finished(plan: RunPlan) -> dict[str, Any] | None:
    """The result of a run that is finished already, judged by the thresholds that are asked for now and today's rule."""
    written = plan.folder.read_result()
    if written is None:
        return None
    result = judged(written, plan.thresholds)
    if result != written:
        try:
            plan.folder.write_result(result)
            run_figure(plan.folder)  # its title is the verdict
        except OSError as error:
            log.warning("%s cannot be written (%s): it keeps the verdict it had", plan.folder.path, error.strerror)
    return result


def _lock(run: Run, stack: contextlib.ExitStack) -> None:
    try:
        stack.enter_context(run.plan.folder.locked())
        run.plan.folder.clear_failure()
    except OSError as error:
        raise ConfigurationError(
            f"the folder {run.plan.folder.path} cannot be written ({error.strerror}); set paths.runs to a folder that can"
        ) from error


def _train_once(runs: Sequence[Run], capacity: CapacityCache, logger: Logger, stop: threading.Event) -> None:
    """Train the runs: automata with the same tables under two names once, since their runs have the same numbers."""
    _adopt(runs, logger)
    left = [each for each in runs if each.result is None]
    first = {(each.plan.hash, each.plan.seed): each for each in reversed(left)}
    if left:
        _train([each for each in left if each in first.values()], capacity, logger, stop)
        _adopt(left, logger)
    for each in left:
        trained = first[each.plan.hash, each.plan.seed]
        if each is not trained and trained.failure is not None:
            each.fail(trained.failure)


def _adopt(runs: Sequence[Run], logger: Logger) -> None:
    """Give the runs without a result that of their twin, where there is one."""
    for run in runs:
        other = twin(run.plan.folder) if run.result is None and run.failure is None else None
        if other is not None:
            run.adopt(other)
            log.info("%s: the automaton and the configuration of %s, so its numbers", run.plan.folder.path, other.path)
            logger.update(run.plan, finished=run.result, failed=None)


def _train(runs: Sequence[Run], capacity: CapacityCache, logger: Logger, stop: threading.Event) -> None:
    config, device = runs[0].plan.config, runs[0].plan.device
    threads = config["threads"] or os.cpu_count() or 1
    iterations = runs[0].plan.iterations

    with (
        one_thread_each(),
        kernels.using(config["kernels"]),
        contextlib.ExitStack() as stack,
        tqdm(total=iterations, desc=config["name"], unit="it", dynamic_ncols=True) as bar,
    ):
        capacities: list[CapacityJob] = []

        def tick() -> None:
            bar.n = int(sum(each.iteration for each in runs) / len(runs))
            bar.set_postfix(_progress(runs, capacities), refresh=False)
            bar.refresh()
            for each in runs:
                logger.update(each.plan, finished=each.result, failed=each.failure)

        def failed(job: Job, error: BaseException) -> None:
            if isinstance(job, StackedRuns):
                for each in job.runs:
                    if each.result is None and each.failure is None:
                        each.fail(f"its stack: {type(error).__name__}: {error} (stack=false trains each run by itself)")
                log.error("what happened:", exc_info=error)
            elif isinstance(job, Run):
                job.fail(str(error) if isinstance(error, Diverged) else f"{type(error).__name__}: {error}")
                if not isinstance(error, Diverged):
                    log.error("what happened:", exc_info=error)
            else:  # the runs that need it compute it themselves, and then fail with the reason
                log.warning("supervised capacity ahead of time failed (%s)", error)

        # A resumed fleet's bar starts where it resumes; otherwise its rate would be wrong.
        for each in runs:
            each.iteration = _checkpointed(each)
        plans = [each.plan for each in runs]
        groups = [[runs[index] for index in group] for group in stackable(plans)]
        left = sum(each.plan.iterations - each.iteration for each in runs)
        processes = None if groups or not useful(plans, threads, left) else started(plans, threads)
        if processes is not None:
            stack.callback(processes.close)
            for each in runs:
                each.processes = processes
        if config["probe"]["capacity"]:
            by_key = {each.plan.capacity_key(): each.plan for each in runs}
            capacities += [CapacityJob(each, capacity, stop, processes) for each in by_key.values()]
        jobs: list[Job] = [*capacities]
        jobs += [StackedRuns(group, device, threads, stop, failed) for group in groups] or runs
        bar.initial = int(sum(each.iteration for each in runs) / len(runs))
        try:
            run_jobs(jobs, threads, failed, tick, 0.25 if sys.stderr.isatty() else 5.0, stop)
        except KeyboardInterrupt:
            for each in runs:
                each.save()
            log.warning("interrupted; the same command goes on from here")
            raise


def _checkpointed(run: Run) -> int:
    try:
        rows = run.plan.folder.read_metrics()
    except OSError:
        return 0
    return int(rows[-1]["iteration"]) if rows and run.plan.folder.checkpoint_path.exists() else 0


def _progress(runs: Sequence[Run], capacities: Sequence[CapacityJob]) -> dict[str, str]:
    """What the bar says beside its rate. Capacities come first and can take minutes each, in which no iteration is done."""
    shown = {}
    computed = sum(each.done for each in capacities)
    if computed < len(capacities):
        shown["capacity"] = f"{computed}/{len(capacities)}"
    for name in ("success", "val_n", "probe_gap"):
        values = [each.latest[name] for each in runs if each.latest.get(name) is not None]
        if values:
            shown[name] = f"{sum(values) / len(values):.3f}"
    measured = sum(each.result is not None for each in runs)
    if any(each.iteration >= each.plan.iterations for each in runs):
        shown["measured"] = f"{measured}/{len(runs)}"
    return shown


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """One thread a run: its sums are then added in the same order whatever else trains, and the cores are used by runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Loaded:
    """A run as it lies in its folder. `result` is None while it is unfinished."""

    policy: Policy
    task: Task
    config: dict[str, Any]
    result: dict[str, Any] | None


def load(folder: str | Path, device: str = "cpu") -> Loaded:
    """The policy, task and configuration of a run, for further work.

    Raises:
        FileNotFoundError: the folder is not a run's, or has no checkpoint that can be read.
    """
    run_folder = RunFolder(folder)
    config = run_folder.read_config()
    # The automaton as it was trained on: the file or the code it came from may have changed since.
    dfa = load_automaton(run_folder.path / "automaton.json")
    emission = config["emission"]
    channel = EmissionChannel.of(dfa, emission["beta"], emission["colouring"])
    name = run_folder.path.resolve().parent.name
    task = Task(name, dfa, config["task"]["horizon"], config["task"]["p_control"], channel)
    policy = new_policy(task, config["seeds"][0], config["encoder"], Auxiliary(**config["auxiliary"]))
    if run_folder.restore(lambda state: policy.load_state_dict(state["learner"]["policy"])) is None:
        raise FileNotFoundError(f"{run_folder.path} has no checkpoint that can be read")
    return Loaded(policy.to(resolve_device(device)), task, config, run_folder.read_result())

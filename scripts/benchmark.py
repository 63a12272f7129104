"""What an iteration costs, beside what it could cost.

    python scripts/benchmark.py                     # ratios against the peers and the floor (about five minutes)
    python scripts/benchmark.py --scale             # how the cost grows with runs, horizon, batch, width, symbols and states
    python scripts/benchmark.py --shares            # where the time of whole runs goes
    python scripts/benchmark.py --stack cuda        # fleets that train as one on a device, against one core of the CPU
    python scripts/benchmark.py --processes         # fleets on one thread, on a thread a core, in a process a core
    python scripts/benchmark.py --wandb             # what exporting a finished run to W&B costs, offline

Every figure is the median over rounds; in a round the compared programs run one after the other, each in a process of its own
that is pinned to one core (the fleet: two). Peers are run where their folder and packages are there (`--peers`): a JAX
implementation and Stable-Baselines3's RecurrentPPO on the same task, and the iteration's matrix products alone.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTING = dict(task="mod_5", horizon=20, batch=64, hidden=64, encoder="gru", algorithm="ppo", runs=1, threads=1)
OURS = {
    "PPO + GRU": {},
    "PPO + GRU, plain PyTorch": {"kernels": "plain"},
    "PPO + LSTM": {"encoder": "lstm"},
    "A2C + GRU": {"algorithm": "a2c"},
    "PPO + GRU, fleet of 10 on two threads": {"runs": 10, "threads": 2},
}
PEERS = {
    "JAX": (["jax_gru_ppo.py", "1", "100"], r"ms/iter/run ([\d.]+)"),
    "SB3 RecurrentPPO": (["sb3_recurrent_ppo.py"], r"ms/iter ([\d.]+)"),
    "matrix products alone": (["matmul_floor.py"], r"ms/iter ([\d.]+)"),
}
# figure, in terms of, at most
GOALS = (
    ("PPO + GRU", "JAX", 0.8),
    ("PPO + GRU", "SB3 RecurrentPPO", 1 / 12),
    ("PPO + GRU", "matrix products alone", 1.3),
    ("PPO + GRU, fleet of 10 on two threads", "PPO + GRU", 0.55),
    ("PPO + LSTM", "PPO + GRU", 1.5),
    ("A2C + GRU", "PPO + GRU", 0.4),
    ("PPO + GRU, plain PyTorch", "PPO + GRU", None),
)
SCALES = {
    "runs (two threads)": [{"runs": n, "threads": 2} for n in (1, 2, 4, 16, 64)],
    "horizon": [{"horizon": n} for n in (12, 20, 40, 80)],
    "batch": [{"batch": n} for n in (16, 64, 256, 1024)],
    "hidden": [{"hidden": n} for n in (32, 64, 128, 256)],
    "symbols, states": [{"task": name} for name in ("mod_5", "mod_5_hold", "mod_101", "mined_ean")],
}


def measure(task: str, horizon: int, batch: int, hidden: int, encoder: str, algorithm: str, runs: int, threads: int,
            kernels: str = "auto", stack: str | None = None, iterations: int = 100) -> tuple[float, float]:  # fmt: skip
    """Milliseconds an iteration of one run takes (wall time divided by runs and iterations), and peak memory in MiB.

    `stack` is the device of a stack of the runs; None: each trains by itself. Its memory is the device's.
    """
    import torch

    from rlstate.automata import zoo
    from rlstate.control import Task
    from rlstate.fleet import run_jobs
    from rlstate.learning import kernels as fast
    from rlstate.learning.objectives import Algorithm
    from rlstate.learning.trainer import Learner

    torch.set_num_threads(1)

    class Iterations:
        def __init__(self, seed: int):
            self.learner = Learner(Task(task, zoo.make(task), horizon), seed, {"name": encoder, "hidden": hidden},
                                   Algorithm(name=algorithm, batch=batch))  # fmt: skip
            self.end = 0

        @property
        def remaining(self) -> float:
            return self.end - self.learner.iteration

        def advance(self) -> bool:
            for _ in range(min(10, int(self.remaining))):
                self.learner.iterate()
            return self.remaining <= 0

    if stack is not None:
        learners = [Iterations(seed).learner for seed in range(runs)]
        return _stacked(learners, stack, iterations)

    def failed(job: object, error: BaseException) -> None:
        raise error

    with fast.using(kernels):
        jobs = [Iterations(seed) for seed in range(runs)]
        for warm_up in (10, iterations):
            for job in jobs:
                job.end += warm_up
            began = time.perf_counter()
            run_jobs(jobs, threads, failed)
            elapsed = time.perf_counter() - began
    return 1e3 * elapsed / iterations / runs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _stacked(learners: list, device: str, iterations: int) -> tuple[float, float]:
    """What `measure` says, of a stack."""
    import torch

    from rlstate.learning.stack import Stack
    from rlstate.stacked import preparing

    warm_up = 10
    together = Stack(learners, warm_up + iterations, device, preparing(device, len(os.sched_getaffinity(0))))
    for until in (warm_up, warm_up + iterations):
        began = time.perf_counter()
        while together.iteration < until:
            together.iterate()
        together.store()  # waits for the device
        elapsed = time.perf_counter() - began
    memory = (
        torch.cuda.max_memory_allocated()
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
    return 1e3 * elapsed / iterations / len(learners), memory / 2**20


def in_a_process(options: dict, cores: str) -> tuple[float, float]:
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import benchmark; print(*benchmark.measure(**{options!r}))"
    done = subprocess.run([*_pinned(cores), sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    milliseconds, memory = done.stdout.split()
    return float(milliseconds), float(memory)


def peer(folder: Path, name: str) -> float | None:
    """Milliseconds an iteration; None where the program or its packages are not there."""
    (script, *arguments), pattern = PEERS[name]
    if not (folder / script).exists():
        return None
    done = subprocess.run(
        [*_pinned("0"), sys.executable, str(folder / script), *arguments], capture_output=True, text=True
    )
    found = re.search(pattern, done.stdout)
    return float(found[1]) if found else None


def compare(folder: Path, rounds: int) -> None:
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for name, options in OURS.items():
            cores = "0,1" if options.get("threads") == 2 else "0"
            found.setdefault(name, []).append(in_a_process({**SETTING, **options}, cores)[0])
        for name in PEERS:
            milliseconds = peer(folder, name)
            if milliseconds is not None:
                found.setdefault(name, []).append(milliseconds)
            elif number == 0:
                print(
                    f"{name}: not measured (no program in {folder}, or its packages are not installed)", file=sys.stderr
                )
    medians = {name: statistics.median(values) for name, values in found.items()}
    print("| | ms an iteration: median | min–max |\n|---|---|---|")
    for name, values in found.items():
        print(f"| {name} | {medians[name]:.2f} | {min(values):.2f}–{max(values):.2f} |")
    print("\n| ratio | measured | at most |\n|---|---|---|")
    for name, base, goal in GOALS:
        if base in medians:
            print(
                f"| {name} / {base} | {medians[name] / medians[base]:.3f} | {'' if goal is None else f'{goal:.3f}'} |"
            )


def scale() -> None:
    for name, cases in SCALES.items():
        print(f"\n| {name} | ms an iteration of a run | to the first | peak MiB |\n|---|---|---|---|")
        first = None
        for options in cases:
            setting = {**SETTING, "iterations": 30, **options}
            milliseconds, memory = in_a_process(setting, "0,1" if options.get("threads") == 2 else "0")
            first = first or milliseconds
            shown = ", ".join(str(value) for key, value in options.items() if key != "threads")
            print(f"| {shown} | {milliseconds:.2f} | {milliseconds / first:.2f} | {memory:.0f} |", flush=True)


def shares() -> None:
    """Training, measuring and capacity of one whole run on one thread, at the paper's length and at T = 12."""
    from rlstate import experiment
    from rlstate.train import compose

    print(
        "| task | training s | curves and probes s | their share | capacity s | to training |\n|---|---|---|---|---|---|"
    )
    for task in ("mod_3", "mod_11", "mined_ean"):
        with tempfile.TemporaryDirectory() as folder:
            (result,) = experiment.run(compose([
                f"task={task}", "iterations=6000", "evaluation.every=500", "seeds=1", "threads=1", "logger=files",
                f"paths.runs={folder}",
            ]))  # fmt: skip
        training, measuring, capacity = (result[f"{key}_seconds"] for key in ("training", "measuring", "capacity"))
        print(f"| {task} | {training:.1f} | {measuring:.1f} | {measuring / (training + measuring):.3f} "
              f"| {capacity:.1f} | {capacity / training:.3f} |", flush=True)  # fmt: skip


def stack(device: str) -> None:
    """Iterations a second of all runs of a stack, at the setting of the other tables."""
    base, _ = in_a_process(SETTING, "0")
    print(f"one core, fused kernels: {1e3 / base:.0f} iterations a second")
    for horizon, minibatches in ((20, 1), (16, 4)):
        print(f"T = {horizon}, {minibatches} minibatches: {operations(horizon, minibatches)} operations an iteration")
    print()
    print(
        "| runs | ms an iteration of all | iterations of a run a second | to one core | peak MiB |\n|---|---|---|---|---|"
    )
    for runs in (1, 8, 64, 512) if device == "cuda" else (1, 8, 32):
        milliseconds, memory = in_a_process({**SETTING, "runs": runs, "stack": device, "iterations": 20}, "")
        print(f"| {runs} | {milliseconds * runs:.1f} | {1e3 / milliseconds:.0f} | {base / milliseconds:.2f} "
              f"| {memory:.0f} |", flush=True)  # fmt: skip


def operations(horizon: int, minibatches: int) -> int:
    """Operations of a stack's iteration that compute something, views aside, whatever the number of runs."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from rlstate.automata import zoo
    from rlstate.control import Task
    from rlstate.learning.objectives import Algorithm
    from rlstate.learning.stack import Stack
    from rlstate.learning.trainer import Learner

    class Counting(TorchDispatchMode):
        number = 0

        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            views = function.is_view or function is torch.ops.aten._unsafe_view.default
            self.number += not views
            return function(*arguments, **(keywords or {}))

    run = Learner(Task("mod_5", zoo.make("mod_5"), horizon), 0, algorithm=Algorithm(minibatches=minibatches))
    together = Stack([run], 2, "meta")
    together.iterate()
    with Counting() as counting:
        together.iterate()
    return counting.number


def processes(runs: int = 4) -> None:
    """Iterations a second of all runs of a fleet under the paper's protocol: on one thread, as threads, in processes."""
    cores = os.cpu_count() or 1
    print(
        f"| encoder | one thread | {cores} threads | {cores} processes | processes to one thread |\n|---|---|---|---|---|"
    )
    for encoder in ("gru", "window_mlp", "transformer"):
        rates = [_rate(encoder, runs, threads, apart) for threads, apart in ((1, False), (cores, False), (cores, True))]
        print(f"| {encoder} | {' | '.join(f'{each:.0f}' for each in rates)} | {rates[2] / rates[0]:.2f} |", flush=True)


def _rate(encoder: str, runs: int, threads: int, apart: bool, short: int = 40, long: int = 240) -> float:
    """Iterations a second, from the difference between two fleets: starting and measuring are in both."""
    from rlstate import experiment
    from rlstate.train import compose

    seconds = []
    for iterations in (short, long):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            experiment.run(compose([
                "+experiment=protocol", "task=mod_3", f"encoder={encoder}", f"seeds={runs}", f"iterations={iterations}",
                f"threads={threads}", f"processes={apart}", "probe=none", "evaluation.episodes=64", "logger=files",
                f"paths.runs={folder}",
            ]))  # fmt: skip
            seconds.append(time.perf_counter() - began)
    return runs * (long - short) / (seconds[1] - seconds[0])


def wandb_export(runs: int = 10) -> None:
    """Seconds that each finished run's export takes; the first also starts W&B."""
    from rlstate import experiment
    from rlstate.plan import plan
    from rlstate.train import compose
    from rlstate.wandb_view import WandbView

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WANDB_DIR": folder, "WANDB_SILENT": "true"}
        config = compose([f"seeds={runs}", "iterations=500", "probe=none", "logger=files", f"paths.runs={folder}"])
        results = experiment.run(config)
        view = WandbView("benchmark", "offline")
        for each, result in zip(plan(config), results):
            began = time.perf_counter()
            view.update(each, result, None)
            print(f"{time.perf_counter() - began:.2f}", end=" ", flush=True)
        view.close()
    print("seconds a run")


def _pinned(cores: str) -> list[str]:
    if not cores:  # all of them
        return []
    available = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    wanted = ",".join(
        available.split(",")[int(core)] for core in cores.split(",") if int(core) < len(available.split(","))
    )
    return ["taskset", "-c", wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "peers")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--stack", choices=("cuda", "cpu"))
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--wandb", action="store_true")
    arguments = parser.parse_args()
    if arguments.scale:
        scale()
    elif arguments.shares:
        shares()
    elif arguments.processes:
        processes()
    elif arguments.wandb:
        wandb_export()
    elif arguments.stack:
        stack(arguments.stack)
    else:
        compare(arguments.peers, arguments.rounds)


if __name__ == "__main__":
    main()

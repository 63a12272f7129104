"""Passive learning beside AALpy, in one process.

    python scripts/benchmark_passive.py problemA_train.a                            # a minute and a half
    python scripts/benchmark_passive.py problemA_train.a --stamina 8_training.dat --repeats 5

The samples are files of the Abbadingo and StaMinA competitions (any that `load_sample` reads). Every figure is the median
of processor seconds over repeats in which the programs take turns; a ratio is the median of the repeats' ratios. Ends with
1 if a goal is missed. Needs AALpy: pip install aalpy
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable

from rlstate.automata.passive import LearnedDFA, blue_fringe, edsm, rpni
from rlstate.automata.samples import Sample, load_sample
from rlstate.console import ended

GOALS = {"edsm": 0.1, "rpni": 1.0}  # of AALpy's time, at most


def peers() -> dict[str, Callable]:
    try:
        from aalpy.learning_algs import run_EDSM, run_RPNI
    except ImportError:
        sys.exit("The benchmark compares with AALpy, which is not installed: pip install aalpy")
    return {"edsm": run_EDSM, "rpni": run_RPNI}


def seconds(function: Callable, *arguments, **options) -> tuple[float, object]:
    gc.collect()
    begin = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - begin, result


def compare(sample: Sample, repeats: int) -> bool:
    """Print times, sizes and ratios on a sample; whether the goals are met."""
    ours = {"rpni": rpni, "edsm": edsm, "blue_fringe": blue_fringe}
    theirs = peers()
    data = list(zip(sample.words, sample.labels))
    times: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for _ in range(repeats):
        for name, learner in ours.items():
            spent, learned = seconds(learner, sample.words, sample.labels, alphabet=sample.alphabet)
            assert isinstance(learned, LearnedDFA)
            if any(learned.accepts(word) != label for word, label in data):
                sys.exit(f"{name} contradicts the sample.")
            times.setdefault(name, []).append(spent)
            sizes[name] = learned.n_learned
            if name in theirs:
                spent, model = seconds(theirs[name], data, "dfa", print_info=False)
                times.setdefault(f"AALpy's {name}", []).append(spent)
                sizes[f"AALpy's {name}"] = model.size
    for name, spent in times.items():
        print(f"  {name:<16}{statistics.median(spent):9.3f} s {sizes[name]:5d} states")
    met = True
    for name, goal in GOALS.items():
        ratio = statistics.median(a / b for a, b in zip(times[name], times[f"AALpy's {name}"]))
        met &= ratio <= goal
        print(f"  {name} / AALpy's {ratio:.3f} (goal: at most {goal}, {'met' if ratio <= goal else 'MISSED'})")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sample", help="Abbadingo problem A: problemA_train.a")
    parser.add_argument("--stamina", nargs="*", default=[], help="more samples, such as StaMinA's 8_training.dat")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    met = True
    for path in [arguments.sample, *arguments.stamina]:
        sample = load_sample(path)
        print(f"{path}: {len(sample.words)} words, {len(sample.alphabet)} symbols")
        met &= compare(sample, max(1, arguments.repeats))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(ended(main))

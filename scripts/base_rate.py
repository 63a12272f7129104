"""How rare is the stratum that the paper predicts to be hard? Among random diagnostic automata it says: about 1 %.

    python scripts/base_rate.py                        # about a minute of one core
    python scripts/base_rate.py --samples 100000 --models minimal

Hard is a permutation automaton with leverage below .51 (Appendix D). The paper does not say which automata were uniform, so
each reading is sampled, with the same number of automata for each of 3–7 states and 2–3 symbols:

    minimal      minimal automata, up to renaming states
    accessible   automata whose states are all reachable, up to renaming states
    table        tables with every entry uniform: what is unreachable stays in, and counts as a state

For minimal automata hard ones are too rare in the larger sizes to be met, so their rate is computed in another way as well:
the exact share of permutation automata, times the rate of hard ones among sampled permutation automata.
Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from rlstate.automata import DFA
from rlstate.automata.sampling import (
    count_minimal_permutation_dfas,
    count_structures,
    random_dfa,
    random_permutation_dfa,
)
from rlstate.console import ended
from rlstate.control import strata
from rlstate.statistics import wilson

MODELS = ("minimal", "accessible", "table")
# Minimal DFAs up to renaming states, by states and symbols (2 symbols: OEIS A129622).
MINIMAL = {
    (3, 2): 1028, (4, 2): 56014, (5, 2): 3705306, (6, 2): 286717796, (7, 2): 25493886852, (3, 3): 41928, (4, 3): 26617614,
}  # fmt: skip


def sample(model: str, n_states: int, n_symbols: int, seed: int) -> DFA:
    if model == "table":
        rng = np.random.default_rng([0x7AB1E, seed])
        return DFA(rng.integers(0, n_states, (n_states, n_symbols)), rng.integers(0, 2, n_states) == 1)
    return random_dfa(n_states, n_symbols, seed, minimal=model == "minimal")


def rate(hits: int, of: int) -> str:
    """The share as a percentage with its interval."""
    if of == 0:
        return "none to count among"
    share, low, high = wilson(hits, of)
    return f"{hits:5} / {of:<6} = {share:8.3%}  [{low:.3%}, {high:.3%}]"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000, help="automata for each model (default %(default)s)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--horizon", type=int, default=strata.HORIZON)
    parser.add_argument("--p-control", type=float, default=strata.P_CONTROL)
    parser.add_argument("--seed", type=int, default=0, help="of the first automaton; the others count on from it")
    arguments = parser.parse_args(argv)
    for name, least in (("samples", 1), ("horizon", 1), ("seed", 0)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name} is {getattr(arguments, name)}, but must be a whole number of at least {least}.")
    if not 0 <= arguments.p_control <= 1:
        parser.error(f"--p-control is {arguments.p_control}, but must be a probability, from 0 to 1.")
    setting = arguments.horizon, arguments.p_control
    each = -(-arguments.samples // len(strata.SIZES))

    diagnostic_rate = {}
    for model in arguments.models:
        print(f"\n{model}: {each} automata of each size, T = {setting[0]}, p_control = {setting[1]}")
        print("  n  k  diagnostic   permutation among all, diagnostic or not       hard among diagnostic")
        pooled: Counter[str | None] = Counter()
        with tqdm(total=each * len(strata.SIZES), desc=model, leave=False) as progress:
            for cell, (n, k) in enumerate(strata.SIZES):
                found: Counter[str | None] = Counter()
                for i in range(each):
                    dfa = sample(model, n, k, arguments.seed + cell * each + i)
                    found[strata.stratum(dfa, *setting)] += 1
                    found["permutation"] += dfa.is_permutation()
                    progress.update()
                pooled += found
                diagnostic = sum(found[name] for name in strata.STRATA)
                diagnostic_rate[model, n, k] = diagnostic / each
                progress.write(
                    f"  {n}  {k}   {diagnostic / each:8.1%}   {rate(found['permutation'], each)}   "
                    f"{rate(found['hard'], diagnostic)}"
                )
        diagnostic = sum(pooled[name] for name in strata.STRATA)
        drawn = each * len(strata.SIZES)
        print(
            f"  pooled {diagnostic / drawn:8.1%}   {rate(pooled['permutation'], drawn)}   {rate(pooled['hard'], diagnostic)}"
        )
        shares = ", ".join(f"{name} {pooled[name] / max(diagnostic, 1):.2%}" for name in strata.STRATA)
        print(f"  of the diagnostic ones: {shares}")

    if "minimal" not in arguments.models:
        return 0
    print(
        "\nminimal, by the exact share of permutation automata (≥: of accessible ones, at most a few percent too low)"
    )
    print("  n  k   permutation / minimal automata                     hard among permutation automata")
    hard_share = 0.0
    for cell, (n, k) in enumerate(tqdm(strata.SIZES, desc="permutation", leave=False)):
        number, all_minimal = count_minimal_permutation_dfas(n, k), MINIMAL.get((n, k))
        share = number / (all_minimal or 2**n * count_structures(n, k))
        hard = sum(
            strata.stratum(random_permutation_dfa(n, k, arguments.seed + cell * each + i), *setting) == "hard"
            for i in range(each)
        )
        hard_share += share * hard / each
        ratio = f"{number} / {all_minimal or f'{2**n} · {count_structures(n, k)}'}"
        tqdm.write(f"  {n}  {k}   {ratio:38} {'=' if all_minimal else '≥'} {share:9.5%}   {rate(hard, each)}")
    diagnostic_share = sum(diagnostic_rate["minimal", n, k] for n, k in strata.SIZES)
    pooled_share = f"{hard_share / diagnostic_share:.3%}" if diagnostic_share else "none diagnostic to count among"
    print(f"  pooled: hard among diagnostic = {pooled_share}")
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))

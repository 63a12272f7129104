"""The strata of random automata that the paper tests its predictor on, and a held-out set made in its likeness (Appendix D).

The paper reports 153 fresh random automata with 3–7 states over 2–3 symbols, diagnostic by the oracle: 65 hard, 38
easy_perm, 50 easy_synch. 33 of them, 23 permutation automata, came first; 120 were added from a separate seed. Its
automata are not public and the text leaves their making open, so this set is another sample of the same description.
The choices here:

* Sizes are drawn uniformly among the ten pairs of 3–7 states and 2–3 symbols, *before* the filters, which favour some.
* Given the size, permutation automata are uniform over the minimal permutation automata (`random_permutation_dfa`), the others
  over the minimal DFAs that are none (`random_dfa`), up to renaming states.
* T = 16, p_control = 0.5, low leverage L < .51 at T, diagnostic V_opt − V_rand ≥ .05 at T and at 4T. Which automata are
  hard depends on T: values in permutation automata may differ between even and odd horizons.
* Each set takes automata as they are drawn until every stratum has its number; a full stratum takes no more, and no automaton
  comes twice in the 153 (up to renaming states; renamed symbols or the complement count as another automaton).
* The first 33 have 13 hard and 10 easy_perm ones: the paper gives only their sum, 23.

easy_synch is the paper's word for all that are not permutation automata; not each of them is synchronizing.

The paper's set was made otherwise in one respect at least: the control-relevant quotient is nontrivial for 28 of its 153
automata and for 2 of these, so it seems to hold automata that are not minimal. Its base rate of the hard stratum, about
1 %, points the same way: by `scripts/base_rate.py` it is 0.8 % among tables with uniform entries, unreachable states and
all (nearly all hard ones come down to two states: parity in disguise), and 0.08 % among minimal automata.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Literal

from rlstate.automata import DFA
from rlstate.automata.sampling import below, random_dfa, random_permutation_dfa, raw_words
from rlstate.control.credit import LOW_LEVERAGE
from rlstate.control.oracle import Oracle, is_diagnostic

Stratum = Literal["hard", "easy_perm", "easy_synch"]
Set = Literal["original", "extension"]

STRATA: tuple[Stratum, ...] = ("hard", "easy_perm", "easy_synch")
SIZES = tuple((n_states, n_symbols) for n_states in range(3, 8) for n_symbols in (2, 3))
HORIZON = 16
P_CONTROL = 0.5

# Seeds of a set's automata count up from its number. The held-out set is what these make it: never change them.
_FIRST_SEED: dict[Set, int] = {"original": 1_000_000, "extension": 2_000_000}
_NUMBER: dict[Set, dict[Stratum, int]] = {
    "original": {"hard": 13, "easy_perm": 10, "easy_synch": 10},
    "extension": {"hard": 52, "easy_perm": 28, "easy_synch": 40},
}
_SIZE_STREAM = 0x512E


@dataclass(frozen=True)
class HeldOut:
    """An automaton of the held-out set.

    Attributes:
        name: "heldout_000" … "heldout_152"; by set, then stratum, then seed.
        dfa: minimal, states numbered breadth-first from the start, which is 0.
        stratum: at T = 16 and p_control = 0.5.
        set: "original", the first 33, or "extension".
        seed: what `random_permutation_dfa` (for the permutation strata) or `random_dfa` was given, with the size.
    """

    name: str
    dfa: DFA
    stratum: Stratum
    set: Set
    seed: int


def stratum(dfa: DFA, horizon: int = HORIZON, p_control: float = P_CONTROL) -> Stratum | None:
    """The paper's stratum of a task; None where it is not diagnostic (random play does about as well as the best).

    hard: a permutation automaton with leverage below .51, for which the paper predicts a perception gap. easy_perm: any
    other permutation automaton. easy_synch: not a permutation automaton.

    Raises:
        ValueError: a horizon below 1 or `p_control` outside [0, 1].
    """
    if not is_diagnostic(dfa, horizon, p_control):
        return None
    if not dfa.is_permutation():
        return "easy_synch"
    return "hard" if Oracle(dfa, horizon, p_control).leverage < LOW_LEVERAGE else "easy_perm"


@cache
def held_out() -> tuple[HeldOut, ...]:
    """The held-out set: 65 hard, 38 easy_perm and 50 easy_synch automata, no two of them with one language.

    Made when first asked for, in about a second, and kept in memory. easy_synch rests on `random_dfa` and so on NumPy's
    distributions; a test pins the whole set.
    """
    entries: list[HeldOut] = []
    seen: set[DFA] = set()
    for of, numbers in _NUMBER.items():
        found: dict[Stratum, list[tuple[DFA, int]]] = {name: [] for name in STRATA}
        for permutation in (True, False):
            open_strata = [name for name in STRATA if (name != "easy_synch") == permutation]
            for seed in count(_FIRST_SEED[of]):
                if all(len(found[name]) == numbers[name] for name in open_strata):
                    break
                dfa = candidate(seed, permutation)
                name = stratum(dfa)
                if name in open_strata and len(found[name]) < numbers[name] and dfa not in seen:
                    seen.add(dfa)
                    found[name].append((dfa, seed))
        for name in STRATA:
            first = len(entries)
            entries += [
                HeldOut(f"heldout_{first + i:03d}", dfa, name, of, seed) for i, (dfa, seed) in enumerate(found[name])
            ]
    return tuple(entries)


def candidate(seed: int, permutation: bool) -> DFA:
    """A minimal automaton of a size drawn uniformly from `SIZES`, uniform given its size, before any filter."""
    n_states, n_symbols = SIZES[below(raw_words(_SIZE_STREAM, int(permutation), seed), len(SIZES))]
    return (random_permutation_dfa if permutation else random_dfa)(n_states, n_symbols, seed)


def names() -> list[str]:
    """The names of the held-out set, in order."""
    return [entry.name for entry in held_out()]


def make(name: str) -> DFA:
    """The automaton of the held-out set with this name.

    Raises:
        ValueError: there is none.
    """
    by_name = {entry.name: entry.dfa for entry in held_out()}
    if name not in by_name:
        raise ValueError(
            f"Unknown automaton {name!r}: those of the held-out set are heldout_000 … heldout_{len(by_name) - 1:03d}."
        )
    return by_name[name]

"""The held-out set is what its description says, and never changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from rlstate.automata import DFA, zoo
from rlstate.automata.sampling import random_dfa, random_permutation_dfa
from rlstate.control import strata
from rlstate.control.strata import STRATA, candidate, held_out, make, names, stratum


def exact_values(dfa: DFA, horizon: int) -> tuple[Fraction, Fraction, bool]:
    """V_opt, V_rand and whether some word is accepted, at p_control = 1/2, in integers (values times (2k)^r and k^r)."""
    rows, k = dfa.transitions.tolist(), dfa.n_symbols
    best = uniform = [int(each) for each in dfa.accepting]
    possible = best
    for _ in range(horizon):
        best = [k * max(best[to] for to in row) + sum(best[to] for to in row) for row in rows]
        uniform = [sum(uniform[to] for to in row) for row in rows]
        possible = [max(possible[to] for to in row) for row in rows]
    start = dfa.start
    return Fraction(best[start], (2 * k) ** horizon), Fraction(uniform[start], k**horizon), bool(possible[start])


def exact_stratum(dfa: DFA, horizon: int) -> str | None:
    for steps in (horizon, 4 * horizon):
        optimal, random, _ = exact_values(dfa, steps)
        if optimal - random < Fraction(1, 20):
            return None
    table = dfa.reachable().transitions
    if any(len(set(column)) < len(table) for column in table.T.tolist()):
        return "easy_synch"
    optimal, random, full = exact_values(dfa, horizon)
    return "hard" if (optimal - random) / (int(full) - random) < Fraction(51, 100) else "easy_perm"


# --- strata -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("parity", "hard"),
        ("mod_5", "hard"),
        ("mod_11", "hard"),
        ("mined_ean", "hard"),
        ("mod_3", "easy_perm"),
        ("mod_5_hold", "easy_perm"),
        ("workflow_reconcile", "easy_perm"),
        ("mod_2", "easy_synch"),
        ("ends_with_101", "easy_synch"),
        ("workflow_api", "easy_synch"),
        ("contains_0010", None),  # random play reaches it too
    ],
)
def test_strata_of_known_tasks(task, expected):
    assert stratum(zoo.make(task), 16, 0.5) == expected


def test_strata_depend_on_the_setting():
    assert stratum(zoo.make("mod_5"), 16, 1.0) == "easy_perm"  # full control: leverage 1
    assert stratum(zoo.make("mod_5"), 16, 0.0) is None  # no control: the best play is random play
    with pytest.raises(ValueError, match="p_control"):
        stratum(zoo.parity(), 16, 1.5)


@pytest.mark.parametrize("permutation", [True, False])
def test_strata_against_exact_arithmetic(permutation):
    dfas = [candidate(seed, permutation) for seed in range(150)]
    found = [stratum(dfa) for dfa in dfas]
    assert found == [exact_stratum(dfa, 16) for dfa in dfas]
    assert len(set(found)) >= 3 if permutation else None in found


def test_candidates_have_every_size_equally_often():
    """150 each of ten sizes would be exact; chance leaves 3.5 standard deviations, 41."""
    sizes = Counter(candidate(seed, True).transitions.shape for seed in range(1500))
    assert set(sizes) == {(n, k) for n in (3, 4, 5, 6, 7) for k in (2, 3)}
    assert max(abs(number - 150) for number in sizes.values()) < 41


# --- the held-out set ---------------------------------------------------------------------------------------------


def test_how_many():
    entries = held_out()
    assert [entry.name for entry in entries] == [f"heldout_{i:03d}" for i in range(153)]
    assert Counter(entry.stratum for entry in entries) == {"hard": 65, "easy_perm": 38, "easy_synch": 50}
    first, rest = entries[:33], entries[33:]
    assert {entry.set for entry in first} == {"original"}
    assert {entry.set for entry in rest} == {"extension"}
    assert Counter(entry.stratum for entry in first) == {"hard": 13, "easy_perm": 10, "easy_synch": 10}
    assert Counter(entry.stratum for entry in rest) == {"hard": 52, "easy_perm": 28, "easy_synch": 40}


def test_strata_recomputed_exactly():
    for entry in held_out():
        assert exact_stratum(entry.dfa, strata.HORIZON) == entry.stratum == stratum(entry.dfa, 16, 0.5)


def test_no_rounding_decides():
    """Leverage and room for play stay clear of their thresholds, so another platform's last digit changes no stratum."""
    for entry in held_out():
        for steps in (16, 64):
            optimal, random, full = exact_values(entry.dfa, steps)
            assert optimal - random > Fraction(1, 20) + Fraction(1, 10**6)
            if steps == 16 and entry.stratum != "easy_synch":
                assert abs((optimal - random) / (int(full) - random) - Fraction(51, 100)) > Fraction(1, 10**6)


def test_minimal_of_the_right_sizes_and_distinct():
    entries = held_out()
    for entry in entries:
        n, k = entry.dfa.transitions.shape
        assert 3 <= n <= 7
        assert 2 <= k <= 3
        assert entry.dfa.minimize() == entry.dfa
        assert entry.dfa.is_permutation() == (entry.stratum != "easy_synch")
    assert len({entry.dfa.digest() for entry in entries}) == 153
    for other in entries[1:]:
        if other.dfa.n_symbols == entries[0].dfa.n_symbols:
            assert other.dfa.equivalent(entries[0].dfa) is not None


def test_each_comes_from_its_seed():
    for entry in held_out():
        sample = random_dfa if entry.stratum == "easy_synch" else random_permutation_dfa
        assert sample(*entry.dfa.transitions.shape, entry.seed) == entry.dfa
    for of in ("original", "extension"):
        for name in STRATA:
            seeds = [entry.seed for entry in held_out() if (entry.set, entry.stratum) == (of, name)]
            assert seeds == sorted(set(seeds))


def test_the_set_never_changes():
    """Runs are named after these automata. A failure here means another set under the same names: mend the sampler."""
    sha = hashlib.sha256()
    for entry in held_out():
        sha.update(f"{entry.name} {entry.set} {entry.stratum} {entry.dfa.transitions.shape} ".encode())
        sha.update(entry.dfa.transitions.astype(np.uint8).tobytes() + entry.dfa.accepting.tobytes())
    assert sha.hexdigest() == "87031077c735f103e33276f53820f665186488f463cc579484c2400d68dc8811"


def test_by_name():
    assert names() == [entry.name for entry in held_out()]
    assert all(make(entry.name) == entry.dfa for entry in held_out())
    assert held_out() is held_out()
    for name in ("heldout_15", "heldout_153", "mod_5"):
        with pytest.raises(ValueError, match=f"Unknown automaton '{name}': .* heldout_000 … heldout_152"):
            make(name)

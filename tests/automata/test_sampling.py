"""Uniform means uniform: every class occurs, equally often; and the classes are as many as are known to exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from scipy import stats

from rlstate.automata import DFA
from rlstate.automata.sampling import (
    below,
    count_minimal_permutation_dfas,
    count_permutation_structures,
    count_structures,
    random_dfa,
    random_permutation_dfa,
    random_structure,
    raw_words,
)
from rlstate.automata.structure import is_star_free


@cache
def structures(n: int, k: int) -> np.ndarray:
    """int[M, n, k]: every accessible table, states numbered breadth-first, by writing it cell by cell."""

    def extended(cells: list[int], discovered: int) -> Iterator[list[int]]:
        if len(cells) == n * k:
            yield cells
        elif len(cells) < discovered * k:  # otherwise the rows of all that was discovered are full
            for target in range(min(discovered + 1, n)):
                yield from extended([*cells, target], max(discovered, target + 1))

    return np.array(list(extended([], 1))).reshape(-1, n, k)


def acceptances(n: int) -> np.ndarray:
    """bool[2^n, n]"""
    return np.arange(2**n)[:, None] >> np.arange(n) & 1 == 1


@cache
def minimal_acceptances(n: int, k: int) -> np.ndarray:
    """bool[M, 2^n]: which acceptances leave no two states of a structure alike, by marking pairs (Moore)."""
    tables, accepting = structures(n, k), acceptances(n)
    differ = np.repeat((accepting[:, :, None] != accepting[:, None, :])[None], len(tables), 0)  # [M, 2^n, n, n]
    m = np.arange(len(tables))[:, None, None]
    for _ in range(n - 1):
        for column in tables.transpose(2, 0, 1):
            differ |= differ[m, :, column[:, :, None], column[:, None, :]].transpose(0, 3, 1, 2)
    return (differ | np.eye(n, dtype=bool)).all((2, 3))


def permutations(n: int, k: int) -> np.ndarray:
    """bool[M]: which structures are permutations in every symbol."""
    return (np.sort(structures(n, k), axis=1) == np.arange(n)[:, None]).all((1, 2))


def key(dfa: DFA) -> bytes:
    return dfa.transitions.tobytes() + dfa.accepting.tobytes()


def minimal_classes(n: int, k: int, only_permutations: bool = False) -> list[bytes]:
    chosen = minimal_acceptances(n, k) & (permutations(n, k)[:, None] if only_permutations else True)
    return [key(DFA(structures(n, k)[m], acceptances(n)[i])) for m, i in np.argwhere(chosen)]


def fits(drawn: list[bytes], classes: list[bytes], expected: np.ndarray | None = None) -> bool:
    seen = Counter(drawn)
    assert set(seen) <= set(classes)
    return stats.chisquare([seen[each] for each in classes], expected).pvalue > 1e-3


# --- how many there are -------------------------------------------------------------------------------------------

# (n, k): accessible structures, minimal DFAs (k = 2: OEIS A006689, A129622), minimal permutation DFAs, minimal star-free DFAs
COUNTS = {
    (1, 2): (1, 2, 2, 2),
    (2, 2): (12, 24, 6, 10),
    (3, 2): (216, 1028, 78, 162),
    (4, 2): (5248, 56014, 952, 3924),
    (1, 3): (1, 2, 2, 2),
    (2, 3): (56, 112, 14, 38),
    (3, 3): (7965, 41928, 582, 3526),
}


@pytest.mark.parametrize(("n", "k"), COUNTS)
def test_counts_by_enumeration(n, k):
    tables, minimal = structures(n, k), minimal_acceptances(n, k)
    numbers = minimal.sum(1)
    star_free = 0
    for table, number, first in zip(tables, numbers, minimal.argmax(1)):
        if number:  # the transition monoid of a minimal automaton does not depend on what it accepts
            star_free += number * is_star_free(DFA(table, acceptances(n)[first]))
    assert (len(tables), numbers.sum(), numbers[permutations(n, k)].sum(), star_free) == COUNTS[n, k]
    assert count_structures(n, k) == len(tables)
    assert count_permutation_structures(n, k) == permutations(n, k).sum()
    assert count_minimal_permutation_dfas(n, k) == COUNTS[n, k][2]


def test_larger_counts():
    assert [count_structures(n, 2) for n in range(5, 8)] == [160675, 5931540, 256182290]
    assert count_structures(4, 3) == 2128064
    assert [count_permutation_structures(n, 2) for n in range(1, 6)] == [1, 3, 13, 71, 461]
    assert count_minimal_permutation_dfas(5, 2) == 13830
    assert count_minimal_permutation_dfas(4, 3) == 29568
    # Over one symbol: binary words of length n that repeat no shorter one (OEIS A027375).
    assert [count_minimal_permutation_dfas(n, 1) for n in range(1, 8)] == [2, 2, 6, 12, 30, 54, 126]


def test_the_library_finds_the_same_automata_minimal():
    minimal = minimal_acceptances(3, 2)
    for m, i in np.ndindex(minimal.shape):
        assert (DFA(structures(3, 2)[m], acceptances(3)[i]).minimize().n_states == 3) == minimal[m, i]


# --- uniformity ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k", "count"), [(2, 2, 12), (3, 2, 216), (2, 3, 56), (4, 1, 4)])
def test_structures_are_uniform(n, k, count):
    classes = [table.tobytes() for table in structures(n, k)]
    assert len(classes) == count
    rng = np.random.default_rng(0)
    no = np.zeros(n, bool)
    drawn = [DFA(random_structure(n, k, rng), no).reachable().transitions.tobytes() for _ in range(20 * count)]
    assert fits(drawn, classes)


@pytest.mark.parametrize(("n", "k", "count", "each"), [(2, 2, 24, 60), (3, 2, 1028, 7)])
def test_minimal_automata_are_uniform(n, k, count, each):
    classes = minimal_classes(n, k)
    assert len(classes) == count
    assert fits([key(random_dfa(n, k, seed)) for seed in range(each * count)], classes)


@pytest.mark.parametrize(("n", "k", "count"), [(1, 2, 2), (4, 1, 12), (2, 3, 14), (3, 2, 78)])
def test_minimal_permutation_automata_are_uniform(n, k, count):
    classes = minimal_classes(n, k, only_permutations=True)
    assert len(classes) == count
    assert fits([key(random_permutation_dfa(n, k, seed)) for seed in range(40 * count)], classes)


def test_permutation_structures_count_as_often_as_they_are_minimal():
    """Of four states the structures have 8 to 14 minimal acceptances, unlike those of three, which all have 6."""
    is_permutation = permutations(4, 2)
    weights = minimal_acceptances(4, 2)[is_permutation].sum(1)
    assert weights.min() < weights.max()
    classes = [table.tobytes() for table in structures(4, 2)[is_permutation]]
    drawn = [random_permutation_dfa(4, 2, seed).transitions.tobytes() for seed in range(3000)]
    assert fits(drawn, classes, 3000 * weights / weights.sum())


def test_accessible_permutation_automata_are_uniform():
    tables = structures(3, 2)[permutations(3, 2)]
    classes = [key(DFA(table, accepting)) for table in tables for accepting in acceptances(3)]
    assert len(classes) == 13 * 8
    drawn = [key(random_permutation_dfa(3, 2, seed, minimal=False)) for seed in range(30 * len(classes))]
    assert fits(drawn, classes)


def test_about_as_many_are_minimal_as_are_known_to_be():
    """k = 2: .6671 of the accessible DFAs with 4 states."""
    minimal = sum(random_dfa(4, 2, seed, minimal=False).minimize().n_states == 4 for seed in range(2000))
    assert stats.binomtest(minimal, 2000, 0.6671).pvalue > 1e-3


# --- what comes out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [random_dfa, random_permutation_dfa])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (2, 1), (5, 3), (12, 2), (40, 1), (60, 2)])
def test_they_are_minimal_complete_and_reproducible(sample, n, k):
    for seed in range(5):
        dfa = sample(n, k, seed)
        assert dfa.transitions.shape == (n, k)
        assert dfa == dfa.minimize()
        assert dfa == sample(n, k, seed)
        if sample is random_permutation_dfa:
            assert dfa.is_permutation()
    if n > 2:
        assert len({sample(n, k, seed) for seed in range(5)}) > 1


def test_the_numbers_behind_a_seed_are_fixed():
    """Results elsewhere rest on these automata: random_dfa on NumPy's distributions, the others on PCG64's raw words."""
    words = raw_words(1, 2)
    bits = np.random.PCG64(np.random.SeedSequence([1, 2]))
    assert [next(words) for _ in range(200)] == [int(bits.random_raw()) for _ in range(200)]
    assert [random_dfa(5, 2, seed).digest()[:8] for seed in range(3)] == ["3577b763", "d1fac18d", "0ab0de86"]
    assert [random_permutation_dfa(5, 2, seed).digest()[:8] for seed in range(3)] == [
        "6b2f699d",
        "f0b7ab8a",
        "d9bfa784",
    ]


def test_integers_below_a_bound_are_exact():
    words = iter([2**64 - 1, 2**64 - 6, 2**64 - 7, 23])  # 2^64 = 6 mod 10: the last six words would favour 0 … 5
    assert [below(words, 10), below(words, 10)] == [(2**64 - 7) % 10, 3]
    assert below(iter([2**64 - 1]), 2**64) == 2**64 - 1
    assert below(iter([2**64 - 1]), 1) == 0


@pytest.mark.parametrize("sample", [random_dfa, random_permutation_dfa])
def test_impossible_requests(sample):
    for arguments in [(0, 2), (3, 0), (2.5, 2), (True, 2), (3, "2")]:
        with pytest.raises(ValueError, match="at least 1"):
            sample(*arguments, seed=0)
    for seed in (-1, 0.5, "0", None):
        with pytest.raises(ValueError, match=r"seed is .* at least 0"):
            sample(3, 2, seed)
    assert sample(np.int64(3), np.int64(2), np.int64(7)) == sample(3, 2, 7)

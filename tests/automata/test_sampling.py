"""Uniform means uniform: every class occurs, equally often."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from rlstate.automata import DFA
from rlstate.automata.sampling import random_dfa, random_structure


def accessible_structures(n: int, k: int) -> set[bytes]:
    """Every accessible table, breadth-first numbered, by exhaustion."""
    found = set()
    for targets in itertools.product(range(n), repeat=n * k):
        dfa = DFA(np.reshape(targets, (n, k)), np.zeros(n, bool))
        if len(dfa.reachable_states()) == n:
            found.add(dfa.reachable().transitions.tobytes())
    return found


@pytest.mark.parametrize(("n", "k", "count"), [(2, 2, 12), (3, 2, 216), (2, 3, 56), (4, 1, 4)])
def test_structures_are_uniform(n, k, count):
    classes = accessible_structures(n, k)
    assert len(classes) == count  # OEIS A006689 and its companions
    rng = np.random.default_rng(0)
    seen = Counter(
        DFA(random_structure(n, k, rng), np.zeros(n, bool)).reachable().transitions.tobytes() for _ in range(40 * count)
    )
    assert set(seen) == classes
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


def test_minimal_automata_are_uniform():
    """A129622: 24 minimal DFAs with 2 states over 2 symbols."""
    seen = Counter(random_dfa(2, 2, seed) for seed in range(24 * 60))
    assert len(seen) == 24
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.parametrize("n", [5, 12])
def test_they_are_minimal_complete_and_reproducible(n):
    for seed in range(10):
        dfa = random_dfa(n, 3, seed)
        assert dfa.minimize().n_states == n
        assert dfa == random_dfa(n, 3, seed)
    assert random_dfa(n, 3, 0) != random_dfa(n, 3, 1)


def test_about_as_many_are_minimal_as_are_known_to_be():
    """k = 2: .6671 of the accessible DFAs with 4 states."""
    minimal = sum(random_dfa(4, 2, seed, minimal=False).minimize().n_states == 4 for seed in range(3000))
    assert stats.binomtest(minimal, 3000, 0.6671).pvalue > 1e-3


@pytest.mark.parametrize("arguments", [(0, 2), (3, 0), (2.5, 2), (True, 2)])
def test_impossible_sizes(arguments):
    with pytest.raises(ValueError, match="at least 1"):
        random_dfa(*arguments, seed=0)

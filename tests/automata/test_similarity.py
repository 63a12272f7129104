"""Similarity against counting words one by one, and what it must be for languages that are known."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlstate.automata import DFA, zoo
from rlstate.automata.sampling import random_dfa
from rlstate.automata.similarity import count_words, similarity


@st.composite
def automata(draw, n_symbols: int, most_states: int = 5) -> DFA:
    """Any table: states may be unreachable or alike, and the start any of them."""
    n = draw(st.integers(1, most_states))
    state = st.integers(0, n - 1)
    table = draw(st.lists(st.lists(state, min_size=n_symbols, max_size=n_symbols), min_size=n, max_size=n))
    return DFA(table, draw(st.lists(st.booleans(), min_size=n, max_size=n)), draw(state))


pairs = st.integers(1, 3).flatmap(lambda k: st.tuples(automata(k), automata(k)))


@given(pairs, st.integers(0, 5))
def test_as_counted_word_by_word(pair, length):
    a, b = pair
    words = [word for r in range(length + 1) for word in product(range(a.n_symbols), repeat=r)]
    alike = sum(a.accepts(word) == b.accepts(word) for word in words)
    value = similarity(a, b, length)
    assert isinstance(value, Fraction)
    assert value == Fraction(alike, len(words))
    assert count_words(a, length) == sum(map(a.accepts, words))


@given(pairs, st.integers(0, 40))
def test_symmetric_and_indifferent_to_how_a_language_is_written(pair, length):
    a, b = pair
    value = similarity(a, b, length)
    assert 0 <= value <= 1
    assert (
        value == similarity(b, a, length) == similarity(a.minimize(), b, length) == similarity(a, b.reachable(), length)
    )
    assert value == similarity(a.complement(), b.complement(), length) == 1 - similarity(a, b.complement(), length)
    assert similarity(a, a, length) == 1
    assert similarity(a, a.complement(), length) == 0


@given(pairs)
def test_one_means_equal_as_soon_as_words_are_long_enough(pair):
    """Minimal DFAs with m and n states that agree on all words up to length m + n − 2 are equal (Moore 1956)."""
    a, b = (dfa.minimize() for dfa in pair)
    assert (similarity(a, b, a.n_states + b.n_states - 2) == 1) == (a == b)


def test_words_must_be_that_long():
    """Automata with 1 and 4 states can agree on the words of length 0 and 1, and differ on one of length 2."""
    never = DFA([[0]], [False])
    only_at_the_end = DFA([[1], [2], [3], [3]], [False, False, True, False])
    assert similarity(never, only_at_the_end, 1) == 1
    assert similarity(never, only_at_the_end, 2) == Fraction(2, 3)


def test_the_empty_word_alone():
    assert similarity(zoo.parity(), zoo.mod_k(5), 0) == 1
    assert similarity(zoo.parity(), zoo.ends_with("1"), 0) == 0


@pytest.mark.parametrize("length", [0, 1, 7, 200])
def test_closed_forms(length):
    everything, words = DFA([[0, 0]], [True]), 2 ** (length + 1) - 1
    # Words of positive length have an even number of 1s half the time; the empty word does.
    assert similarity(zoo.parity(), everything, length) == Fraction((words + 1) // 2, words)
    # Words with no 1 at all: one of each length.
    assert 1 - similarity(zoo.contains("1"), everything, length) == Fraction(length + 1, words)


def test_one_symbol():
    even, third = DFA([[1], [0]], [True, False]), DFA([[1], [2], [0]], [True, False, False])
    # Of lengths 0 … 5 they agree on 0, 1, 5; the pattern has period 6.
    assert similarity(even, third, 5) == Fraction(1, 2)
    assert similarity(even, third, 6 * 100 - 1) == Fraction(1, 2)


def test_a_difference_of_one_long_word_is_seen_exactly():
    """Where floating point would round to 1."""
    n = 60
    chain = DFA([[i + 1, n + 1] for i in range(n)] + [[n + 1, n + 1]] * 2, np.arange(n + 2) == n)
    value = similarity(chain, DFA([[0, 0]], [False]), 200)
    assert 1 - value == Fraction(1, 2**201 - 1)
    assert value < 1
    assert float(value) == 1.0


def test_twenty_states_and_words_of_two_hundred():
    """The size at which the measure is used: random languages agree on about half of all words."""
    values = [similarity(random_dfa(20, 2, seed), random_dfa(20, 2, seed + 100), 200) for seed in range(10)]
    assert 0.3 < np.mean([float(value) for value in values]) < 0.7
    assert all((2**201 - 1) % value.denominator == 0 for value in values)


def test_default_names_go_with_any_others():
    mine = zoo.workflow_quota()
    assert similarity(mine, DFA(mine.transitions, mine.accepting), 10) == 1


def test_bad_input():
    with pytest.raises(ValueError, match="alphabets differ"):
        similarity(zoo.parity(), zoo.workflow_reconcile(), 5)
    with pytest.raises(ValueError, match=r"alphabets differ.*with_alphabet"):
        similarity(zoo.workflow_quota(), zoo.workflow_quota().with_alphabet(("take", "add")), 5)
    for length in (-1, 2.0, True, None):
        with pytest.raises(ValueError, match=r"max_length is .* at least 0"):
            similarity(zoo.parity(), zoo.parity(), length)
    for a, b, name in (("a*", zoo.parity(), "a"), (zoo.parity(), [(0, 1)], "b"), (None, None, "a")):
        with pytest.raises(ValueError, match=f"^{name} is a .* must be a DFA"):
            similarity(a, b, 5)

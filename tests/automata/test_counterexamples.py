"""Counterexamples against enumeration of all words."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from rlstate.automata import DFA, counterexamples, zoo
from rlstate.automata.counterexamples import (
    _Difference,
    access_words,
    characterizing_set,
    counterexample_for,
    random_words,
    w_method,
)
from rlstate.automata.sampling import random_dfa


def words(n_symbols: int, shortest: int, longest: int) -> list[tuple[int, ...]]:
    return [w for n in range(shortest, longest + 1) for w in itertools.product(range(n_symbols), repeat=n)]


def differing(a: DFA, b: DFA, shortest: int, longest: int) -> list[tuple[int, ...]]:
    return [w for w in words(a.n_symbols, shortest, longest) if a.accepts(w) != b.accepts(w)]


def shuffled(dfa: DFA, seed: int) -> DFA:
    """The same language: states renumbered, and one of them doubled."""
    rng = np.random.default_rng(seed)
    double = int(rng.integers(dfa.n_states))
    table = np.vstack([dfa.transitions, dfa.transitions[double]])
    table[:, 0] = np.where(table[:, 0] == double, dfa.n_states, table[:, 0])
    accepting = np.append(dfa.accepting, dfa.accepting[double])
    order = rng.permutation(len(table))
    where = np.argsort(order)
    return DFA(where[table][order], accepting[order], where[dfa.start], dfa.alphabet)


PAIRS = [(random_dfa(2 + s % 4, 1 + s % 3, s), random_dfa(1 + s % 3, 1 + s % 3, s + 100)) for s in range(30)]
PAIRS = [(a, b) for a, b in PAIRS if a.equivalent(b) is not None]


def test_shortest_is_the_first_in_alphabet_order():
    choose = counterexample_for("shortest")
    for a, b in PAIRS:
        assert choose(a, b) == next(w for w in words(a.n_symbols, 0, 8) if a.accepts(w) != b.accepts(w))


@pytest.mark.parametrize("policy", ["shortest", "near_shortest", "random"])
def test_numbering_and_equivalent_states_have_no_say(policy):
    choose = counterexample_for(policy, seed=3, length=9 if policy == "random" else None)
    for i, (a, b) in enumerate(PAIRS):
        word = choose(a, b)
        assert a.accepts(word) != b.accepts(word)
        assert choose(shuffled(a, i), shuffled(b, i + 1)) == choose(a, b) == word
        assert choose(a, shuffled(a, i)) is None


def test_near_shortest_is_uniform_over_exactly_its_candidates():
    target, hypothesis = random_dfa(4, 2, 5), random_dfa(2, 2, 1)
    shortest = len(target.equivalent(hypothesis))
    candidates = differing(target, hypothesis, shortest, shortest + 3)
    drawn = Counter(
        counterexample_for("near_shortest", seed)(target, hypothesis) for seed in range(60 * len(candidates))
    )
    assert set(drawn) == set(candidates)
    assert {len(w) for w in candidates} == set(range(shortest, shortest + 4))  # so that lengths are weighted too
    assert stats.chisquare([drawn[w] for w in candidates]).pvalue > 1e-3


def test_near_shortest_is_uniform_where_words_must_be_counted():
    target, hypothesis = (
        zoo.make("contains_0010"),
        DFA([[0, 0]], [False]),
    )  # 1 word of 4 symbols, 4 of 5, 12 of 6, 31 of 7
    candidates = differing(target, hypothesis, 4, 7)
    assert Counter(map(len, candidates)) == {4: 1, 5: 4, 6: 12, 7: 31}
    counted, rng = _Difference(target, hypothesis, depth=7), random.Random(0)
    drawn = Counter(counted.draw(range(4, 8), rng) for _ in range(60 * len(candidates)))
    assert set(drawn) == set(candidates)
    assert stats.chisquare([drawn[w] for w in candidates]).pvalue > 1e-3


@pytest.mark.parametrize("policy", ["near_shortest", "random"])
def test_large_products_are_explored_alike(policy, monkeypatch):
    choose = counterexample_for(policy, 2, 9 if policy == "random" else None)
    monkeypatch.setattr(counterexamples, "_TRIES", 0)
    small = [choose(a, b) for a, b in PAIRS]
    monkeypatch.setattr(counterexamples, "_DENSE", 0)
    assert [choose(a, b) for a, b in PAIRS] == small


def test_near_shortest_never_leaves_its_range():
    for a, b in PAIRS:
        shortest = len(a.equivalent(b))
        candidates = differing(a, b, shortest, shortest + 3)
        assert all(counterexample_for("near_shortest", seed)(a, b) in candidates for seed in range(5))


def test_near_shortest_depends_on_both_languages_and_the_seed():
    target = zoo.make("mod_7")
    hypotheses = [random_dfa(3, 2, s) for s in range(8)]
    picks = [[counterexample_for("near_shortest", seed)(target, h) for h in hypotheses] for seed in range(8)]
    assert len({tuple(p) for p in picks}) == 8
    fixed = [counterexample_for("near_shortest", 0)(target, hypotheses[0]) for _ in range(3)]
    assert len(set(fixed)) == 1


def test_near_shortest_picks_are_the_same_on_every_platform():
    target = zoo.make("mod_5")
    picks = [counterexample_for("near_shortest", seed)(target, DFA([[0, 0]], [True])) for seed in range(4)]
    assert picks == [(1, 0, 0, 0), (1,), (1, 1, 0, 1), (1, 1, 0)]


@pytest.mark.parametrize("length", [0, 3, 6])
def test_random_has_the_length_or_the_nearest_there_is(length):
    for a, b in PAIRS:
        word = counterexample_for("random", 1, length)(a, b)
        lengths, pairs = set(), {(a.start, b.start)}
        for n in range(length + a.n_states * b.n_states + 1):  # beyond that there is nothing new
            if any(a.accepting[p] != b.accepting[q] for p, q in pairs):
                lengths.add(n)
            pairs = {(a.transitions[p, s], b.transitions[q, s]) for p, q in pairs for s in range(a.n_symbols)}
        longer, shorter = {n for n in lengths if n >= length}, {n for n in lengths if n < length}
        assert len(word) == (min(longer) if longer else max(shorter))


def test_random_is_uniform_by_rejection_and_by_counting():
    dense = (random_dfa(4, 2, 5), random_dfa(2, 2, 1))
    sparse = (zoo.make("contains_0010"), DFA([[0, 0]], [False]))
    for (a, b), length, tries in ((dense, 5, 1500), (sparse, 6, 1500)):
        candidates = differing(a, b, length, length)
        drawn = Counter(counterexample_for("random", seed, length)(a, b) for seed in range(tries))
        assert set(drawn) == set(candidates)
        assert stats.chisquare([drawn[w] for w in candidates]).pvalue > 1e-3
        counted = _Difference(a.minimize(), b.minimize())
        rng = random.Random(1)
        drawn = Counter(counted.draw(range(length, length + 1), rng) for _ in range(tries))
        assert set(drawn) == set(candidates)
        assert stats.chisquare([drawn[w] for w in candidates]).pvalue > 1e-3


def test_one_word_in_two_to_the_thousand_is_found():
    """Only 1…1 differs at length 1000: rejection cannot find it, counting must."""
    n = 1001
    table = [[n, min(q + 1, n)] for q in range(n)] + [[n, n]]
    target, empty = DFA(table, [q == n - 1 for q in range(n + 1)]), DFA([[0, 0]], [False])
    assert counterexample_for("random", 0, 1000)(target, empty) == (1,) * 1000
    assert counterexample_for("random", 0, 1500)(target, empty) == (1,) * 1000  # none that is longer
    assert counterexample_for("random", 0, 7)(target, empty) == (1,) * 1000


def test_counts_are_exact_where_64_bits_overflow():
    a, b = zoo.make("parity"), DFA([[0, 0]], [False])
    counts = _Difference(a, b)._counts(300)
    assert all(int(sum(counts(n))) == 2**n for n in (0, 1, 150, 299, 300))  # a word is even from one of the states


def test_ten_thousand_symbols():
    a = zoo.make("contains_0010")
    b = zoo.make("contains_00100")
    word = counterexample_for("random", 0, 10_000)(a, DFA([[0, 0]], [True]))  # about (7/8)^10000 of all words
    assert len(word) == 10_000
    assert not a.accepts(word)
    word = counterexample_for("random", 0, 10_000)(a, b)
    assert a.accepts(word) != b.accepts(word)


# --- testers ----------------------------------------------------------------------------------------------------


def test_access_words_and_characterizing_set():
    for seed in range(20):
        dfa = random_dfa(1 + seed % 9, 1 + seed % 3, seed)
        access = access_words(dfa)
        assert [dfa.run(w) for w in access] == dfa.reachable_states().tolist()
        rows = [tuple(dfa.accepts(w + end) for end in characterizing_set(dfa)) for w in access]
        assert len(set(rows)) == dfa.n_states
        assert len(characterizing_set(dfa)) <= max(1, dfa.n_states - 1) + 1
    with pytest.raises(ValueError, match="minimize"):
        characterizing_set(DFA([[1], [0]], [True, True]))


def planted(depth: int) -> DFA:
    """Accepts 0…0 of one length alone: a language of depth + 2 states."""
    return DFA(
        [[q + 1, depth + 1] for q in range(depth + 1)] + [[depth + 1] * 2], [q == depth for q in range(depth + 2)]
    )


def test_the_w_method_finds_what_few_random_words_miss():
    language, missing_end = planted(8), planted(8)
    # The hypothesis lacks one state: after 0^8 it returns to the start of the last stretch instead of the sink.
    table = missing_end.transitions.copy()
    table[8] = [7, 9]
    hypothesis = DFA(table, missing_end.accepting)
    few = random_words(number=20, seed=0)(hypothesis, language.accepts)
    found = w_method(0)(hypothesis, language.accepts)
    assert few is None
    assert language.accepts(found) != hypothesis.accepts(found)


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_the_w_method_is_complete_up_to_its_extra_states(extra):
    """Chow's theorem: every language of n + extra states that is not the hypothesis is told apart from it."""
    for seed in range(60):
        hypothesis = random_dfa(1 + seed % 3, 2, seed)
        language = random_dfa(hypothesis.n_states + extra, 2, 1000 + seed)
        word = w_method(extra)(hypothesis, language.accepts)
        if language.equivalent(hypothesis) is None:
            assert word is None
        else:
            assert language.accepts(word) != hypothesis.accepts(word)


def test_one_extra_state_needs_one_extra_symbol():
    """A language with one state more that the suite for none passes and the suite for one does not."""
    hypothesis = DFA([[0]], [True])  # every word
    language = DFA([[1], [2], [2]], [True, True, False])  # at most one symbol
    assert w_method(0)(hypothesis, language.accepts) is None
    assert w_method(1)(hypothesis, language.accepts) == (0, 0)


def test_random_words_cover_every_length_and_are_reproducible():
    seen: list[tuple[int, ...]] = []

    def remember(word: tuple[int, ...]) -> bool:
        seen.append(word)
        return False

    hypothesis = DFA([[0, 0]], [False])
    assert random_words(number=3000, max_length=5, seed=1)(hypothesis, remember) is None
    lengths = Counter(map(len, seen))
    assert set(lengths) == set(range(6))
    assert stats.chisquare([lengths[n] for n in range(6)]).pvalue > 1e-3
    first, seen = seen, []
    random_words(number=3000, max_length=5, seed=1)(DFA([[1, 0], [0, 1]], [False, False]), remember)
    assert seen == first  # the same language
    seen = []
    random_words(number=3000, max_length=5, seed=2)(hypothesis, remember)
    assert seen != first


@pytest.mark.parametrize("bad", [
    lambda: random_words(0), lambda: random_words(5, -1), lambda: w_method(-1), lambda: random_words("5"),
    lambda: random_words(2.0), lambda: random_words(True), lambda: random_words(5, "3"), lambda: random_words(5, seed=None),
    lambda: random_words(5, 1.5), lambda: w_method("1"), lambda: w_method(1.0), lambda: w_method(None),
])  # fmt: skip
def test_bad_testers(bad):
    with pytest.raises(ValueError, match="must be"):
        bad()

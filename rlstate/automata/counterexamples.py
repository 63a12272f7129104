"""Words that tell two languages apart: exact ones for two DFAs, searched ones for a DFA and a black box."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from rlstate.automata.dfa import DFA

Word = tuple[int, ...]
Policy = Callable[[DFA, DFA], Word | None]
Tester = Callable[[DFA, Callable[[Word], bool]], Word | None]

POLICIES = ("shortest", "near_shortest", "random")
_SLACK = 3  # how much longer than the shortest a near-shortest counterexample may be
_DENSE = 2**22  # products with at most so many pairs are marked in an array, which is faster than sorting
_TRIES = 32  # uniform words tried before all differing ones are counted


def counterexample_for(policy: str, seed: int = 0, length: int | None = None) -> Policy:
    """(target, hypothesis) → a word on which they differ, or None, by one of the POLICIES; see Teacher."""
    # Functions of the module and no closures, here and below: teachers and testers can be pickled.
    return DFA.equivalent if policy == "shortest" else partial(_choose, policy, seed, length)


def _choose(policy: str, seed: int, length: int | None, target: DFA, hypothesis: DFA) -> Word | None:
    shortest = target.equivalent(hypothesis)
    if shortest is None:
        return None
    target, hypothesis = target.minimize(), hypothesis.minimize()  # canonical: numbering has no say
    name = repr((seed, policy, length, target.digest(), hypothesis.digest()))
    rng = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big"))
    lengths = range(len(shortest), len(shortest) + _SLACK + 1) if length is None else range(length, length + 1)
    for _ in range(_TRIES):  # the first of a sequence of uniform words that differs is uniform among those
        word = _uniform_word(target.n_symbols, lengths, rng)
        if target.accepts(word) != hypothesis.accepts(word):
            return word
    if length is None:
        return _Difference(target, hypothesis, lengths[-1]).draw(lengths, rng)
    difference = _Difference(target, hypothesis)
    nearest = difference.nearest_length(length)
    return difference.draw(range(nearest, nearest + 1), rng)


def _uniform_word(n_symbols: int, lengths: range, rng: random.Random) -> Word:
    rank = rng.randrange(sum(n_symbols**n for n in lengths))
    for length in lengths:
        if rank < n_symbols**length:
            break
        rank -= n_symbols**length
    return tuple(rng.choices(range(n_symbols), k=length))


class _Difference:
    """The words on which two DFAs differ, counted on the product (at most `depth` steps from its start, if given)."""

    def __init__(self, a: DFA, b: DFA, depth: int | None = None) -> None:
        start = a.start * b.n_states + b.start
        pairs = frontier = np.array([start])
        while len(frontier) and (depth is None or depth > 0):
            frontier = np.setdiff1d(self._distinct(a, b, frontier), pairs, assume_unique=True)
            pairs = np.union1d(pairs, frontier)
            depth = None if depth is None else depth - 1
        successors = self._successors(a, b, pairs)
        # A pair at the rim has successors outside; whatever their index here, no word is long enough to read it.
        if a.n_states * b.n_states <= _DENSE:
            number = np.zeros(a.n_states * b.n_states, np.int64)
            number[pairs] = np.arange(len(pairs))
            self.table = number[successors]
        else:
            self.table = np.searchsorted(pairs, successors).clip(max=len(pairs) - 1)
        self.differs = a.accepting[pairs // b.n_states] != b.accepting[pairs % b.n_states]
        self.start = int(np.searchsorted(pairs, start))

    @classmethod
    def _distinct(cls, a: DFA, b: DFA, pairs: np.ndarray) -> np.ndarray:
        """The pairs one step from these, sorted."""
        successors = cls._successors(a, b, pairs)
        if a.n_states * b.n_states > _DENSE:
            return np.unique(successors)
        present = np.zeros(a.n_states * b.n_states, bool)
        present[successors] = True
        return np.flatnonzero(present)

    @staticmethod
    def _successors(a: DFA, b: DFA, pairs: np.ndarray) -> np.ndarray:
        return a.transitions[pairs // b.n_states] * b.n_states + b.transitions[pairs % b.n_states]

    def nearest_length(self, length: int) -> int:
        """`length` if some word of that length differs, else the next longer with one, else the longest shorter one."""
        now = np.zeros(len(self.table), bool)
        now[self.start] = True
        found = -1
        # A differing word beyond length + pairs visits some pair twice in its last steps: cutting the loop out leaves one
        # that is still longer than `length`.
        for steps in range(length + len(self.table) + 1):
            if (now & self.differs).any():
                found = steps
                if steps >= length:
                    break
            successors = self.table[now].ravel()
            now = np.zeros(len(self.table), bool)
            now[successors] = True
        return found

    def draw(self, lengths: range, rng: random.Random) -> Word:
        """Uniform among the differing words of these consecutive lengths."""
        counts = self._counts(lengths[-1])
        totals = {length: int(counts(length)[self.start]) for length in lengths}
        rank = rng.randrange(sum(totals.values()))
        for length in lengths:
            if rank < totals[length]:
                break
            rank -= totals[length]
        word: list[int] = []
        state = self.start
        for remaining in range(length - 1, -1, -1):
            ways = counts(remaining)[self.table[state]]
            for symbol in range(len(ways)):
                if rank < ways[symbol]:
                    break
                rank -= int(ways[symbol])
            word.append(symbol)
            state = self.table[state, symbol]
        return tuple(word)

    def _counts(self, longest: int) -> Callable[[int], np.ndarray]:
        """length → [pairs], how many words of that length lead from each pair to a difference."""
        # Every √longest-th layer is kept and the ones between are made again when asked for: words of 10⁴ symbols have
        # counts of 10⁴ bits, which for all lengths at once are gigabytes.
        block = isqrt(longest) + 1
        exact = object if self.table.shape[1] ** longest >= 2**62 else np.int64
        layer = self.differs.astype(np.int64).astype(exact)
        kept = [layer]
        for length in range(1, longest + 1):
            layer = layer[self.table].sum(axis=1)
            if length % block == 0:
                kept.append(layer)
        recent: dict[int, np.ndarray] = {}

        def counts(length: int) -> np.ndarray:
            if length not in recent:
                recent.clear()
                first = length - length % block
                recent[first] = kept[first // block]
                for n in range(first + 1, min(first + block, longest + 1)):
                    recent[n] = recent[n - 1][self.table].sum(axis=1)
            return recent[length]

        return counts


# --- testers: equivalence of a DFA and a black box ------------------------------------------------------------


def random_words(number: int = 1000, max_length: int | None = None, seed: int = 0) -> Tester:
    """Tests `number` random words: length uniform in 0 … max_length, then symbols uniform.

    Without max_length it is twice the hypothesis's states and 20 more. Each hypothesis gets words of its own, the same ones
    every time.
    """
    longest = None if max_length is None else whole("max_length", max_length)
    return partial(_test_random_words, whole("number", number, 1), longest, whole("seed", seed))


def _test_random_words(
    number: int, max_length: int | None, seed: int, hypothesis: DFA, member: Callable[[Word], bool]
) -> Word | None:
    hypothesis = hypothesis.minimize()
    longest = 2 * hypothesis.n_states + 20 if max_length is None else max_length
    name = repr((seed, number, longest, hypothesis.digest()))
    rng = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest(), "big"))
    for _ in range(number):
        word = tuple(rng.choices(range(hypothesis.n_symbols), k=rng.randint(0, longest)))
        if member(word) != hypothesis.accepts(word):
            return word
    return None


def w_method(extra_states: int = 1) -> Tester:
    """Tests a suite that no language with at most `extra_states` states more than the hypothesis passes, save its own.

    Each state's access word, any word of up to extra_states + 1 symbols, and each word of a characterizing set, shortest
    middle parts first: at most Q · A^(extra_states + 1) · |W| words and their shorter kin. Source: Chow (1978).
    """
    return partial(_test_suite, whole("extra_states", extra_states))


def _test_suite(extra_states: int, hypothesis: DFA, member: Callable[[Word], bool]) -> Word | None:
    hypothesis = hypothesis.minimize()
    access, endings = access_words(hypothesis), characterizing_set(hypothesis)
    tested: set[Word] = set()
    for middle in _words(hypothesis.n_symbols, extra_states + 1):
        for first, last in itertools.product(access, endings):
            word = first + middle + last
            if word in tested:
                continue
            tested.add(word)
            if member(word) != hypothesis.accepts(word):
                return word
    return None


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least` as an int, or a ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {least}.")
    return int(value)


def access_words(dfa: DFA) -> list[Word]:
    """A shortest word to each reachable state, in breadth-first order."""
    words: dict[int, Word] = {dfa.start: ()}
    queue = [dfa.start]
    for state in queue:
        for symbol, successor in enumerate(dfa.transitions[state].tolist()):
            if successor not in words:
                words[successor] = (*words[state], symbol)
                queue.append(successor)
    return list(words.values())


def characterizing_set(dfa: DFA) -> list[Word]:
    """Words that tell every two states of a minimal DFA apart, at most one a state, the empty word first."""
    words: list[Word] = [()]
    block = dfa.accepting.astype(np.int64)
    while len(np.unique(block)) < dfa.n_states:
        p, q = next((p, q) for p, q in itertools.combinations(range(dfa.n_states), 2) if block[p] == block[q])
        word = DFA(dfa.transitions, dfa.accepting, p).equivalent(DFA(dfa.transitions, dfa.accepting, q))
        if word is None:
            raise ValueError(f"States {p} and {q} accept the same words: minimize the DFA first.")
        states = np.arange(dfa.n_states)
        for symbol in word:
            states = dfa.transitions[states, symbol]
        block = np.unique(block * 2 + dfa.accepting[states], return_inverse=True)[1]
        words.append(word)
    return words


def _words(n_symbols: int, longest: int) -> Iterator[Word]:
    for length in range(longest + 1):
        yield from itertools.product(range(n_symbols), repeat=length)

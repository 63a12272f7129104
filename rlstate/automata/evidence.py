"""How far to trust an automaton that stands for code: equivalence tests, coverage, agreement on held-out words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rlstate.automata.counterexamples import Word, random_words, w_method
from rlstate.automata.dfa import DFA

SHORT = 20
"""Symbols of a random word that is to be short, at most."""


class EquivalenceTest:
    """A tester (see `BlackBoxTeacher`) of given words, of random ones and, if wanted, of the W-method, that says what it did.

    Without `max_length` half of the random words have at most `SHORT` symbols, the others at most `SHORT` and twice the
    number of states: long ones are needed to get everywhere in a large automaton, short ones where hardly any long word
    is in the language.

    Args:
        number: random words of one test.
        max_length: of the random words.
        extra_states: of the W-method; None leaves it out.
        seed: of the random words.
        examples: the words that every test begins with: of a rare language those that random words would not meet.
    """

    def __init__(
        self, number: int, max_length: int | None, extra_states: int | None, seed: int, examples: Sequence[Word] = ()
    ) -> None:
        self.examples = tuple(examples)
        self.number, self.max_length, self.extra_states, self.seed = number, max_length, extra_states, seed
        self._suite = 0  # words of the W-method in the latest test, in the end the one that found no difference

    def __call__(self, hypothesis: DFA, member: Callable[[Word], bool]) -> Word | None:
        """A word on which hypothesis and code differ, or None."""
        for word in self.examples:
            if member(word) != hypothesis.accepts(word):
                return word
        for number, longest in self._lengths(hypothesis):
            found = random_words(number, longest, self.seed)(hypothesis, member)
            if found is not None:
                return found
        if self.extra_states is None:
            return None
        self._suite = 0

        def counted(word: Word) -> bool:
            self._suite += 1
            return member(word)

        return w_method(self.extra_states)(hypothesis, counted)

    def describe(self, dfa: DFA) -> str:
        """What the latest test shows, if it found no difference to `dfa`."""
        dfa = dfa.minimize()
        words = " and ".join(f"{number} words of up to {longest}" for number, longest in self._lengths(dfa))
        if self.examples:
            words = f"{len(self.examples)} given and {words}"
        text = f"no difference found on {words} random symbols"
        if self.extra_states is None:
            return f"{text}: of such random words fewer than {min(3 / self.number, 1):.2%} differ (95 % confidence); not proven"
        return (
            f"{text}, nor on the {self._suite} words of the W-method: exact if the code's minimal automaton has at most "
            f"{dfa.n_states + self.extra_states} states"
        )

    def _lengths(self, dfa: DFA) -> list[tuple[int, int]]:
        """(number, greatest length) of the random words."""
        if self.max_length is not None:
            return [(self.number, self.max_length)]
        longest = SHORT + 2 * dfa.minimize().n_states
        half = self.number // 2
        return [(half, SHORT), (self.number - half, longest)] if half else [(self.number, longest)]


def exercised(dfa: DFA, words: Iterable[Word]) -> np.ndarray:
    """bool[Q, A]: the transitions that some word goes through."""
    rows, seen = dfa.transitions.tolist(), np.zeros(dfa.transitions.shape, dtype=bool).tolist()
    for word in words:
        state = dfa.start
        for symbol in word:
            seen[state][symbol] = True
            state = rows[state][symbol]
    return np.array(seen)


@dataclass(frozen=True)
class Accuracy:
    """How often automaton and code agree on held-out words: random ones that were not asked before.

    Attributes:
        overall: the share of agreement; None where there were no words.
        on_accepted: the same among the words that the code accepts, which may be few; None where there were none.
        on_rejected: the same among the others.
        accepted, rejected: how many words that were.
        by_length: (length, words, share of agreement) for each length that had fresh words.
        difference: the first word on which they differ, or None.
    """

    overall: float | None
    on_accepted: float | None
    on_rejected: float | None
    accepted: int
    rejected: int
    by_length: tuple[tuple[int, int, float], ...]
    difference: Word | None


def held_out(
    dfa: DFA,
    code: Callable[[Word], bool],
    asked: Collection[Word],
    number: int,
    lengths: Iterable[int],
    rng: np.random.Generator,
) -> Accuracy:
    """The agreement on up to `number` distinct random words of each length that are not in `asked`."""
    answers: dict[Word, tuple[bool, bool]] = {}
    by_length = []
    for length in lengths:
        words = dict.fromkeys(map(tuple, rng.integers(0, dfa.n_symbols, (number, length)).tolist()))
        fresh = {word: (code(word), dfa.accepts(word)) for word in words if word not in asked}
        answers |= fresh
        if fresh:
            by_length.append((length, len(fresh), float(np.mean([truth == guess for truth, guess in fresh.values()]))))
    right = {
        answer: [guess == truth for truth, guess in answers.values() if truth is answer] for answer in (True, False)
    }

    def share(agreements: list[bool]) -> float | None:
        return float(np.mean(agreements)) if agreements else None

    return Accuracy(
        overall=share(right[True] + right[False]),
        on_accepted=share(right[True]),
        on_rejected=share(right[False]),
        accepted=len(right[True]),
        rejected=len(right[False]),
        by_length=tuple(by_length),
        difference=next((word for word, (truth, guess) in answers.items() if truth != guess), None),
    )

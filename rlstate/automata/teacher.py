"""Teachers: what an active learner asks, counted and budgeted.

A teacher answers two questions about a hidden language (Angluin, 1987): is this word in it, and is this hypothesis it? The
learner need not be an algorithm of this package. An agent that plays the game by calling `member` and `equivalent` gets the
same answers, and a call that makes no sense is a ValueError that says why and costs nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from rlstate.automata.counterexamples import POLICIES, Tester, Word, counterexample_for, random_words, whole
from rlstate.automata.dfa import DFA
from rlstate.automata.predicates import as_predicate


@dataclass
class Counts:
    """What has been asked so far.

    Attributes:
        unique: distinct words asked for membership.
        raw: membership queries, repeats included.
        symbols: total length of the words of the raw queries.
        equivalence: equivalence queries, the final success included.
    """

    unique: int = 0
    raw: int = 0
    symbols: int = 0
    equivalence: int = 0

    @property
    def total(self) -> int:
        """Distinct membership words and equivalence queries: the cost of learning, where answers are remembered."""
        return self.unique + self.equivalence


class LearnsFrom(Protocol):
    """What a learner needs of a teacher."""

    alphabet: tuple[str, ...]
    counts: Counts

    def member(self, word: Iterable[int]) -> bool:
        """Whether a word of symbol indices is in the hidden language."""

    def equivalent(self, hypothesis: DFA) -> Word | None:
        """None if the teacher takes the hypothesis for the hidden language, otherwise a word on which they differ."""


class BudgetExhausted(Exception):
    """A query was refused because the budget is spent; what the learner knows so far is not lost.

    Attributes:
        hypothesis: the last one proposed, be it in the query that was refused, or None.
        counts: what had been asked; the refused query is not in it.
    """

    def __init__(self, budget: int, hypothesis: DFA | None, counts: Counts) -> None:
        self.budget, self.hypothesis, self.counts = budget, hypothesis, counts
        proposed = "no hypothesis was proposed" if hypothesis is None else "the last hypothesis is in .hypothesis"
        super().__init__(
            f"The budget of {budget} queries is spent ({counts.unique} distinct words, {counts.equivalence} equivalence "
            f"queries); {proposed}."
        )

    def __reduce__(self) -> tuple[type[BudgetExhausted], tuple[int, DFA | None, Counts]]:
        return BudgetExhausted, (self.budget, self.hypothesis, self.counts)


class _Ledger:
    """Remembers words, counts queries, and refuses the first one that the budget does not cover."""

    alphabet: tuple[str, ...]
    counts: Counts

    def __init__(self, alphabet: Sequence[str], budget: int | None, cache: bool) -> None:
        self.alphabet = tuple(alphabet)
        self.counts = Counts()
        self.budget = None if budget is None else whole("budget", budget)
        self.cache = cache
        self._hypothesis: DFA | None = None
        self._known: dict[Word | bytes, bool] = {}

    @property
    def spent(self) -> int:
        """Queries paid for: with a cache a repeated word is free, without one each ask is paid."""
        return self.counts.equivalence + (self.counts.unique if self.cache else self.counts.raw)

    @property
    def remaining(self) -> int | None:
        """Queries that can still be paid for, or None without a budget."""
        return None if self.budget is None else self.budget - self.spent

    def member(self, word: Iterable[int]) -> bool:
        """Whether a word of symbol indices is in the hidden language: one bit, one query.

        Raises:
            ValueError: not a word over the alphabet; the query does not count.
            BudgetExhausted: the budget does not cover the query.
        """
        word = as_word(word, len(self.alphabet))
        # A word of thousands of symbols is remembered a byte a symbol.
        key = self._key(word)
        answer = self._known.get(key)
        if answer is None or not self.cache:
            self._require_funds()
            fresh = self._answer(word)
            if answer is None:
                self.counts.unique += 1
            answer = self._known[key] = fresh
        self.counts.raw += 1
        self.counts.symbols += len(word)
        return answer

    def _answer(self, word: Word) -> bool:
        raise NotImplementedError

    def _key(self, word: Word) -> Word | bytes:
        return bytes(word) if len(self.alphabet) <= 256 else word

    def _require_funds(self) -> None:
        if self.budget is not None and self.spent >= self.budget:
            raise BudgetExhausted(self.budget, self._hypothesis, replace(self.counts))


class Teacher(_Ledger):
    """Knows the hidden DFA and answers exactly.

    Args:
        dfa: the hidden language.
        counterexample: which of the words on which hypothesis and target differ an equivalence query returns:
            "shortest" (the first in alphabet order among the shortest);
            "near_shortest" (uniform among those at most 3 symbols longer than the shortest: a shortest one would also tell
            that every shorter word agrees; "Agentic automata learning", 2026, appendix A.4);
            "random" (uniform among those of length `length`; where there is none of that length, of the next longer length
            that has some, otherwise of the longest shorter one).
            The choice depends on the two languages and the seed alone: not on state numbers, nor on earlier queries.
        seed: of the choice.
        budget: how many queries are answered, None for any number. Each distinct membership word and each equivalence
            query costs one. The first query beyond it raises BudgetExhausted, before anything is counted or told.
        cache: remember answers, so that a repeated word is free; without it each ask is paid and reaches the target.
        length: of a random counterexample.

    Raises:
        ValueError: an argument is not one of these.
    """

    def __init__(
        self,
        dfa: DFA,
        counterexample: str = "shortest",
        seed: int = 0,
        budget: int | None = None,
        cache: bool = True,
        length: int | None = None,
    ) -> None:
        if not isinstance(dfa, DFA):
            raise ValueError(f"dfa is a {type(dfa).__name__}, but a Teacher needs a DFA (BlackBoxTeacher a function).")
        if counterexample not in POLICIES:
            raise ValueError(f"counterexample is {counterexample!r}, but the policies are {', '.join(POLICIES)}.")
        if (counterexample == "random") != (length is not None):
            raise ValueError('A length belongs to random counterexamples: counterexample="random", length=100.')
        super().__init__(dfa.alphabet, budget, cache)
        self._target = dfa.minimize()
        self._rows, self._accepting = self._target.transitions.tolist(), self._target.accepting.tolist()
        self._choose = counterexample_for(
            counterexample, whole("seed", seed), None if length is None else whole("length", length)
        )

    def equivalent(self, hypothesis: DFA) -> Word | None:
        """None if the hypothesis has the hidden language, otherwise a word on which they differ (perhaps the empty one).

        Raises:
            ValueError: not a DFA over the teacher's alphabet; the query does not count.
            BudgetExhausted: the budget does not cover the query.
        """
        hypothesis = _over(self.alphabet, hypothesis)
        self._hypothesis = hypothesis
        self._require_funds()
        word = self._choose(self._target, hypothesis)
        if word is not None and self._answer(word) == hypothesis.accepts(word):
            raise AssertionError(f"The chosen counterexample {word} is none; please report the two automata.")
        self.counts.equivalence += 1
        return word

    def _answer(self, word: Word) -> bool:
        state = 0
        rows = self._rows
        for symbol in word:
            state = rows[state][symbol]
        return self._accepting[state]


class BlackBoxTeacher(_Ledger):
    """Learns what it teaches from a function: a predicate, a program, a trained policy, a language model.

    Membership is asked of the function; equivalence is tested, so that "no difference found" is evidence and no proof.
    The words that the tester asks are membership queries like any other: they are in `counts`, where nothing tells them
    from the learner's own, and they are paid for.

    Args:
        function: answers True or False. It takes a word as a tuple of symbol indices, such as (0, 1, 1), unless `reads`
            is given: then a text, as the functions that `mining.mine` learns from.
        alphabet: names of the symbols.
        tester: (hypothesis, member) → a word on which they differ, or None; see random_words and w_method.
        budget, cache: as for Teacher. A test that the budget cuts short raises BudgetExhausted, its equivalence query
            counted.
        reads: "left" or "right": the function takes a word as text, a string if every name in `alphabet` is one character,
            otherwise a tuple of names, and a word's first symbol is the text's leftmost or its rightmost (`Predicate`).

    Raises:
        ValueError: an argument is not one of these.
    """

    def __init__(
        self,
        function: Callable[[Any], bool],
        alphabet: Iterable[str],
        tester: Tester | None = None,
        budget: int | None = None,
        cache: bool = True,
        reads: Literal["left", "right"] | None = None,
    ) -> None:
        tester = random_words() if tester is None else tester
        for name, value in (("function", function), ("tester", tester)):
            if not callable(value):
                raise ValueError(f"{name} is {value!r}, but must be callable.")
        names = tuple(alphabet)
        # One state over these names: the DFA checks them, and its sentence is the one to read.
        super().__init__(DFA(np.zeros((1, len(names)), int), [False], 0, names).alphabet, budget, cache)
        self._function = function if reads is None else as_predicate(function, self.alphabet, reads)
        self._tester = tester

    def equivalent(self, hypothesis: DFA) -> Word | None:
        """None if the tester finds no difference, otherwise a word on which function and hypothesis differ.

        Raises:
            ValueError: not a DFA over the alphabet (the query does not count), or the tester returned no counterexample.
            BudgetExhausted: the budget covers the query, or the words that the tester asks, no longer.
        """
        hypothesis = _over(self.alphabet, hypothesis)
        self._hypothesis = hypothesis
        self._require_funds()
        self.counts.equivalence += 1  # before the test, so that its words cannot spend what pays for it
        try:
            word = self._tester(hypothesis, self.member)
            if word is None:
                return None
            word = as_word(word, len(self.alphabet))
            predicted = hypothesis.accepts(word)
            told = self._known.get(self._key(word))
            if self.member(word) == predicted:
                if told is not None and told != predicted:
                    raise ValueError(
                        f"The function answered {told} and then {predicted} to the word {word}: a learner needs a function "
                        f"that answers alike each time (cache=True asks it only once)."
                    )
                raise ValueError(f"The tester returned {word}, but function and hypothesis agree on it.")
        except BudgetExhausted:
            raise
        except Exception:
            self.counts.equivalence -= 1  # the query was not answered
            raise
        return word

    def _answer(self, word: Word) -> bool:
        answer = self._function(word)
        if not isinstance(answer, (bool, np.bool_)):
            raise ValueError(f"The function answered {answer!r} to the word {word}, but must answer True or False.")
        return bool(answer)


# --- what comes from outside ------------------------------------------------------------------------------------


def as_word(word: Any, n_symbols: int) -> Word:
    """A word as a tuple of ints, or a ValueError that says what is wrong with it."""
    if isinstance(word, str):
        raise ValueError(f"The word {word!r} is a string: words are symbol indices, for instance (0, 1, 1).")
    try:
        if isinstance(word, (Set, Mapping)):  # in no order
            raise TypeError
        symbols = tuple(word)
        if not _INT.issuperset(map(type, symbols)):
            if any(isinstance(symbol, (bool, np.bool_)) for symbol in symbols):
                raise TypeError
            symbols = tuple(map(operator.index, symbols))
    except TypeError:
        raise ValueError(f"The word {word!r} is not a flat sequence of symbol indices (integers).") from None
    if symbols and not (min(symbols) >= 0 and max(symbols) < n_symbols):
        at = next(i for i, symbol in enumerate(symbols) if not 0 <= symbol < n_symbols)
        raise ValueError(
            f"The word has symbol {symbols[at]} at position {at}, but the symbols are 0 … {n_symbols - 1}."
        )
    return symbols


_INT = frozenset({int})


class Checked:
    """What a learner sees of a teacher that may be anybody's: answers are bools, counterexamples tuples of ints.

    Raises ValueError where an answer is neither a truth value nor 0 or 1, or a counterexample is no word.
    """

    def __init__(self, teacher: LearnsFrom) -> None:
        self._member, self._equivalent = teacher.member, teacher.equivalent
        self.alphabet = tuple(teacher.alphabet)

    def member(self, word: Word) -> bool:
        answer: Any = self._member(word)
        if answer is True or answer is False:
            return answer
        if isinstance(answer, (bool, int, np.bool_, np.integer)) and answer in (0, 1):
            return bool(answer)
        raise ValueError(f"The teacher answered {answer!r} to the word {word}, but must answer True or False.")

    def equivalent(self, hypothesis: DFA) -> Word | None:
        word: Any = self._equivalent(hypothesis)
        if word is None:
            return None
        try:
            return as_word(word, len(self.alphabet))
        except ValueError as error:
            raise ValueError(f"The teacher's counterexample is no word. {error}") from None


def _over(alphabet: tuple[str, ...], hypothesis: DFA) -> DFA:
    """The hypothesis under the teacher's names, or a ValueError."""
    if not isinstance(hypothesis, DFA):
        raise ValueError(f"The hypothesis is a {type(hypothesis).__name__}, but must be a DFA.")
    if hypothesis.alphabet == alphabet:
        return hypothesis
    unnamed = hypothesis.alphabet == tuple(str(i) for i in range(len(alphabet)))
    if unnamed and set(hypothesis.alphabet) != set(alphabet):  # otherwise the same names in another order
        return DFA(hypothesis.transitions, hypothesis.accepting, hypothesis.start, alphabet)
    raise ValueError(
        f"The alphabets differ: the hypothesis is over {hypothesis.alphabet}, but the hidden language is over {alphabet}: same "
        f"names, same order (DFA.with_alphabet gives another one)."
    )

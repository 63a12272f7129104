"""Automata mined from code: ask a predicate about words, learn, test the automaton against the code, say how far to
trust it.

Nothing but asking is done with the code, so nothing is proved about it: every `Mined` says how it was verified.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlstate.automata import active, passive
from rlstate.automata.counterexamples import Word, whole
from rlstate.automata.dfa import DFA
from rlstate.automata.evidence import SHORT, Accuracy, EquivalenceTest, exercised, held_out
from rlstate.automata.predicates import Predicate, PredicateError, as_predicate, predicate, predicates
from rlstate.automata.teacher import BlackBoxTeacher, BudgetExhausted, Counts

__all__ = ["Accuracy", "Mined", "Predicate", "PredicateError", "mine", "predicate", "predicates"]

ACTIVE: dict[str, Callable[[Any], DFA]] = {
    "ttt": active.ttt,
    "lstar": active.lstar,
    "rivest_schapire": active.rivest_schapire,
    "kearns_vazirani": active.kearns_vazirani,
}
PASSIVE: dict[str, Callable[..., passive.LearnedDFA]] = {
    "rpni": passive.rpni,
    "edsm": passive.edsm,
    "blue_fringe": passive.blue_fringe,
}
LEARNERS = (*ACTIVE, *PASSIVE)
TESTERS = ("random", "w")

_TEST_MORE = "test by the W-method (tester=…) or by more random words (tests=…)"
_STREAM = 0x31E  # keeps this module's random numbers apart from others with the same seed
_ASKED_TWICE = 16  # words: a predicate that tosses a coin passes once in 65 000 times


@dataclass(frozen=True)
class Mined:
    """An automaton mined from code, and how far to trust it.

    Attributes:
        predicate: what was mined.
        dfa: the automaton, minimal, in canonical numbering.
        learner: by whom.
        partial: None where no difference between automaton and code is known, otherwise why it is not the end result: the
            budget ran out, or a passive learner's rounds did, or a held-out word shows a difference, or the predicate is
            known to have another number of states.
        verification: that test in words, with what it does and does not show.
        counts: membership queries of learner and tests (unique words, raw, symbols) and equivalence queries. The
            held-out words are not among them.
        words: how many different words were asked, held-out words apart.
        accepted: how many of them the code accepts.
        coverage: the share of the automaton's transitions that these words go through.
        uncovered: the (state, symbol) of the transitions that none goes through.
        held_out: agreement on fresh words.
        learned: for passive learners the share of transitions that the sample determined before completion by a
            rejecting sink; None for active ones.
        rounds: how many a passive learner needed; None for active ones and where it failed.
    """

    predicate: Predicate
    dfa: DFA
    learner: str
    partial: str | None
    verification: str
    counts: Counts
    words: int
    accepted: int
    coverage: float
    uncovered: tuple[tuple[int, int], ...]
    held_out: Accuracy
    learned: float | None = None
    rounds: int | None = None

    @property
    def passed(self) -> bool:
        """Whether no difference between automaton and code is known; what was tested `verification` says."""
        return self.partial is None

    @property
    def held_out_accuracy(self) -> float | None:
        """`held_out.overall`."""
        return self.held_out.overall


def mine(
    predicate: Predicate | Callable[[Any], Any],
    alphabet: Sequence[str] | None = None,
    learner: str = "ttt",
    *,
    reads: Literal["left", "right"] | None = None,
    tester: Literal["random", "w"] = "random",
    extra_states: int = 1,
    tests: int = 1000,
    max_length: int | None = None,
    budget: int | None = None,
    sample: int = 2000,
    rounds: int = 5,
    held_out_number: int = 500,
    held_out_lengths: int | Iterable[int] | None = None,
    seed: int = 0,
    examples: Iterable[str | Sequence[str]] = (),
) -> Mined:
    """The automaton of the words that some code accepts.

    Args:
        predicate: a `Predicate`, or a function that takes a word and answers True or False. The function gets the word
            as a string if all names of symbols are single characters, otherwise as a tuple of names.
        alphabet: names of the symbols (a string: its characters). A `Predicate` brings its own.
        learner: an active one (ttt, lstar, rivest_schapire, kearns_vazirani) or a passive one (rpni, edsm,
            blue_fringe).
        reads: whether a word's first symbol is the text's leftmost ("left", default) or rightmost one ("right"). A
            `Predicate` says so itself.
        tester: the equivalence test. "random": random words, uniform in length; "w": these and then the W-method (Chow
            1978), which finds every difference to code whose minimal automaton has at most `extra_states` more states.
        extra_states: of the W-method, whose words grow as A^extra_states.
        tests: random words of one equivalence test.
        max_length: of the random words. By default 20 for half of the tests and for the other half 20 and twice the
            number of states; in samples twice what all words reach.
        budget: the most queries (distinct words and equivalence queries) of learner and tests together; None: no limit.
            When it runs out the result is partial: the last automaton that was proposed.
        sample: words that a passive learner starts with: at most three quarters of them all words up to some length, the
            rest random and longer.
        rounds: A passive learner's automaton is tested as an active one's is. If it fails, the counterexample and a
            sample of twice the size are added and it learns anew; after so many rounds the result is partial.
        held_out_number, held_out_lengths: how many random words of each length measure the agreement, by default of 10,
            20 and 40 symbols (half `max_length`, it and its double); one number is one length. Words asked before are
            left out; the budget is untouched.
        seed: of all random words.
        examples: texts that every test begins with and that a passive learner's sample has. Where the code accepts hardly any
            random word, some that it accepts are what it takes to find more than one state.

    Raises:
        PredicateError: the code raised, did not answer True or False, or answered one of the first words, or a
            counterexample, in two ways; the sentence shows the word.
        ValueError: an unknown learner or tester, a setting out of range, an alphabet that is missing or superfluous, an
            example with other symbols, or a budget that ran out before there was any automaton.
    """
    _choice("learner", learner, LEARNERS)
    _choice("tester", tester, TESTERS)
    longest = SHORT if max_length is None else whole("max_length", max_length, 1)
    lengths = _lengths((longest // 2, longest, 2 * longest) if held_out_lengths is None else held_out_lengths)
    for name, value, least in (
        ("extra_states", extra_states, 0), ("tests", tests, 1), ("sample", sample, 1), ("rounds", rounds, 1),
        ("held_out_number", held_out_number, 0), ("seed", seed, 0), ("budget", 1 if budget is None else budget, 1),
    ):  # fmt: skip
        whole(name, value, least)
    code = as_predicate(predicate, alphabet, reads)
    given = list(dict.fromkeys(map(code.read, examples)))
    asked: dict[Word, bool] = {}
    known: dict[Word, bool] = {}  # a passive learner's sample

    def ask(word: Word) -> bool:
        asked[word] = code(word)
        if len(asked) <= _ASKED_TWICE:
            alike(word)
        return asked[word]

    def alike(word: Word) -> None:
        """No automaton has a language that changes, and learning it would not end."""
        if code(word) != asked[word]:
            raise PredicateError(
                f"{code.name} answered {asked[word]} and then {not asked[word]} on the word {code.spell(word)!r}, but a "
                f"predicate answers alike each time."
            )

    equivalence = EquivalenceTest(tests, max_length, extra_states if tester == "w" else None, seed, given)

    def tested(hypothesis: DFA, member: Callable[[Word], bool]) -> Word | None:
        word = equivalence(hypothesis, member)
        if word is not None:
            alike(word)
        return word

    teacher = BlackBoxTeacher(ask, code.alphabet, tester=tested, budget=budget)
    partial: str | None = None
    needed: int | None = None
    try:
        if learner in ACTIVE:
            found = ACTIVE[learner](teacher)
        else:
            found, needed = _learn_passively(learner, teacher, known, given, sample, max_length, rounds, seed)
            if needed is None:
                partial = (
                    f"after {rounds} rounds and a sample of {len(known)} words {learner} still differs from the code: "
                    f"raise the sample (sample=…) or the rounds (rounds=…)"
                )
    except BudgetExhausted as exhausted:
        partial = (
            f"the budget of {budget} queries ran out, and this is the last automaton proposed: raise it (budget=…)"
        )
        if exhausted.hypothesis is not None:
            found = exhausted.hypothesis
        elif learner in PASSIVE:
            found = _learn(learner, code.alphabet, known)
            partial = (
                f"the budget of {budget} queries ran out within the sample: raise it, or lower the sample (sample=…)"
            )
        else:
            raise ValueError(
                f"The budget of {budget} queries ran out before {learner} proposed an automaton: raise it (budget=…)."
            ) from exhausted
    dfa = DFA(found.transitions, found.accepting, found.start, code.alphabet).minimize()
    covered = exercised(dfa, asked)
    rng = np.random.default_rng([_STREAM, seed, 1])
    accuracy = held_out(dfa, code, asked, held_out_number, lengths, rng)
    if partial is None and accuracy.difference is not None:
        partial = (
            f"it passed its test, but differs from the code on the held-out word {code.spell(accuracy.difference)!r}: "
            f"{_TEST_MORE}, or by shorter ones (max_length=…)"
        )
    if partial is None and code.states not in (None, dfa.n_states):
        partial = (
            f"it passed its test ({equivalence.describe(dfa)}), but it has {dfa.n_states} states and the code's automaton "
            f"is known to have {code.states}: {_TEST_MORE}"
        )
    return Mined(
        predicate=code,
        dfa=dfa,
        learner=learner,
        partial=partial,
        verification=equivalence.describe(dfa) if partial is None else "not verified",
        counts=teacher.counts,
        words=len(asked),
        accepted=sum(asked.values()),
        coverage=float(covered.mean()),
        uncovered=tuple((int(state), int(symbol)) for state, symbol in np.argwhere(~covered)),
        held_out=accuracy,
        learned=float(found.defined[: found.n_learned].mean()) if isinstance(found, passive.LearnedDFA) else None,
        rounds=needed,
    )


# --- learning from a sample ----------------------------------------------------------------------------------------


def _learn_passively(
    learner: str,
    teacher: BlackBoxTeacher,
    known: dict[Word, bool],
    given: Sequence[Word],
    sample: int,
    longest: int | None,
    rounds: int,
    seed: int,
) -> tuple[DFA, int | None]:
    """The automaton of the last round, and the number of that round if it passed the test; fills `known`."""
    n_symbols = len(teacher.alphabet)
    rng = np.random.default_rng([_STREAM, seed, 0])
    dfa: DFA
    for number in range(1, rounds + 1):
        for word in (*given, *_sample(n_symbols, sample, longest, rng)):
            known[word] = teacher.member(word)
        dfa = _learn(learner, teacher.alphabet, known)
        difference = teacher.equivalent(dfa)
        if difference is None:
            return dfa, number
        known[difference] = teacher.member(difference)
        sample *= 2
    return dfa, None


def _learn(learner: str, alphabet: tuple[str, ...], known: dict[Word, bool]) -> passive.LearnedDFA:
    return PASSIVE[learner](list(known), list(known.values()), len(alphabet), alphabet=alphabet)


def _sample(n_symbols: int, number: int, longest: int | None, rng: np.random.Generator) -> list[Word]:
    """All words up to the greatest length for which they are at most ¾ of `number`, the rest random and longer."""
    words: list[Word] = [()]
    length = 0
    while 4 * (len(words) + n_symbols ** (length + 1)) <= 3 * number:
        length += 1
        words += itertools.product(range(n_symbols), repeat=length)
    # Twice as long: what tells two states apart comes after what leads to them. Longer ones make a prefix tree large
    # and are left to the test.
    most = 2 * length + 2 if longest is None else longest
    lengths = rng.integers(min(length + 1, most), most + 1, number - len(words))
    return words + [tuple(rng.integers(0, n_symbols, length).tolist()) for length in lengths]


def _lengths(given: Any) -> tuple[int, ...]:
    """One length or several, of any iterable (which is read once), as ints."""
    try:
        several = (given,) if isinstance(given, (int, np.integer, str)) else tuple(given)
    except TypeError:
        raise ValueError(f"held_out_lengths is {given!r}, but must be lengths, such as (10, 20, 40).") from None
    return tuple(whole("a held-out length", length) for length in several)


def _choice(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(known)}.")

"""Passive learning: a DFA from labelled words, by merging states of their prefix tree (RPNI, EDSM, Blue-Fringe).

The prefix tree of the words is the first hypothesis. Its root is *red*: part of the result. The successors of red states
that are not red are *blue*: each is the root of a tree, and is either *merged* with a red state, its tree folded onto what
is reachable from there, or *promoted* to red, until there is no blue state. The three algorithms differ in the order only:

* `rpni` takes the first blue state and the first red one that fits;
* `blue_fringe` takes the first blue state and the red one that fits best;
* `edsm` takes the pair that fits best of all blue and red states.

"First" is short-lex: a state of the hypothesis is a set of prefixes of the words, and is ordered by the shortest of them,
the first in the order of the symbols where several are shortest. No result depends on the order of the sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rlstate.automata.dfa import DFA
from rlstate.automata.merging import Hypothesis, Merge, Score, evidence
from rlstate.automata.samples import Sample

__all__ = ["LearnedDFA", "Merge", "Score", "blue_fringe", "edsm", "rpni"]

_SCORES: dict[str, Score] = {"evidence": evidence, "folded": lambda merge: merge.folded}


class LearnedDFA(DFA):
    """A complete DFA that tells which of its transitions were learned.

    Missing transitions were sent to a rejecting absorbing state, the last one (none is added where nothing is missing).
    Equality and hash are the automaton's: `defined` takes no part in them. Operations return a plain `DFA`.

    Args:
        transitions, accepting, start, alphabet: see `DFA`.
        defined: bool[Q, A], True where the transition was learned. All True by default. Copied.

    Raises:
        ValueError: no DFA, or an undefined transition that does not lead to a last state which is such a sink.
    """

    __slots__ = ("defined",)
    defined: np.ndarray

    def __init__(
        self,
        transitions: Any,
        accepting: Any,
        start: int = 0,
        alphabet: Iterable[str] | None = None,
        defined: Any = None,
    ) -> None:
        super().__init__(transitions, accepting, start, alphabet)
        shape, last = self.transitions.shape, self.n_states - 1
        mask = np.ones(shape, bool) if defined is None else np.array(defined)
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise ValueError(f"defined has type {mask.dtype} and shape {mask.shape}, but must be bool{list(shape)}.")
        if not mask.all() and (
            mask[last].any()
            or self.accepting[last]
            or (self.transitions[last] != last).any()
            or (self.transitions[~mask] != last).any()
        ):
            raise ValueError(
                f"Undefined transitions must lead to the last state, {last}, rejecting and absorbing with no defined "
                f"transition."
            )
        mask.flags.writeable = False
        object.__setattr__(self, "defined", mask)

    @property
    def sink(self) -> int | None:
        """The state that missing transitions were sent to, None where none was missing."""
        return None if self.defined.all() else self.n_states - 1

    @property
    def n_learned(self) -> int:
        """The number of states without the sink."""
        return self.n_states - (self.sink is not None)

    def __reduce__(self) -> tuple[type[DFA], tuple[Any, ...]]:
        return LearnedDFA, (self.transitions, self.accepting, self.start, self.alphabet, self.defined)


def rpni(
    words: Iterable[Iterable[int]],
    labels: Iterable[bool],
    n_symbols: int | None = None,
    *,
    alphabet: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    tolerance: float = 0.0,
) -> LearnedDFA:
    """Regular positive and negative inference: the first blue state is merged with the first red one that fits.

    The result agrees with every label. It is the target's minimal DFA if the sample includes a characteristic one of it.
    States are numbered breadth-first, symbols in order; a state in which no word of the sample ends rejects.

    Args:
        words: sequences of symbol indices.
        labels: for each word whether it is in the language.
        n_symbols: the number of symbols; by default what `alphabet` names, or else 0 … the largest symbol that occurs.
        alphabet: the symbols' names.
        weights: for each word a positive number; those of equal words add up, so weights of 1 count repetitions. Without
            it a word counts once however often it occurs (with both labels: once for each). They change the shares that
            `tolerance` is about, and in `edsm` and `blue_fringe` the score (see `Merge`); nothing else.
        tolerance: the noise to allow for, as a share of the words (by weight), at least 0 and below 1/2. Above 0 a state
            has the label of the majority of the words that end in it (of a tie: rejecting). A merge fits if it makes the
            minorities no larger, or leaves them at most that share of the words both in the states in which it joins
            labelled ones, taken together, and in the whole hypothesis. So the result contradicts at most that share of
            the sample, or, if that is more, what in the sample contradicts itself. Up to twice the share of wrong
            labels is a good value; far more merges states that differ.

    Raises:
        ValueError: a word with both labels (without `tolerance`), no words, a foreign symbol, or arguments of another
            type or length; weights whose sum is beyond a float.

    Source: Oncina and García (1992); de la Higuera, Grammatical Inference (2010), chapter 12.
    """
    return _learn(Sample.of(words, labels, n_symbols, alphabet), weights, tolerance, None, every_blue=False)


def edsm(
    words: Iterable[Iterable[int]],
    labels: Iterable[bool],
    n_symbols: int | None = None,
    *,
    alphabet: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    tolerance: float = 0.0,
    score: str | Score = "evidence",
) -> LearnedDFA:
    """Evidence-driven state merging in the red-blue framework: the merge that scores best of all blue and red states.

    A blue state that fits no red one is promoted before anything is merged, the first of them if there are several. Ties go
    to the first blue, then the first red state. This is the algorithm that Lang, Pearlmutter and Price recommend. AALpy's
    `run_EDSM` has the same score, but takes states in the order of the sample; the stamina toolbox's BlueFringe is it too.

    Args:
        words, labels, n_symbols, alphabet, weights, tolerance: see `rpni`.
        score: how well a merge fits: "evidence", "folded", or a function of a `Merge` that returns a number, the higher the
            better, or None to refuse. "evidence" is Lang's: the number of labelled states that are folded onto an equally
            labelled one (`accepting + rejecting − disagreeing`; with `weights` their weight). Public tools differ: LearnLib
            counts words instead of states, repetitions included. "folded" counts all states, labelled or not.

    Raises:
        ValueError: see `rpni`; an unknown score, or one that returns anything else.

    Source: Lang, Pearlmutter and Price, Results of the Abbadingo One DFA learning competition (1998).
    """
    return _learn(Sample.of(words, labels, n_symbols, alphabet), weights, tolerance, _score(score), every_blue=True)


def blue_fringe(
    words: Iterable[Iterable[int]],
    labels: Iterable[bool],
    n_symbols: int | None = None,
    *,
    alphabet: Iterable[str] | None = None,
    weights: Iterable[float] | None = None,
    tolerance: float = 0.0,
    score: str | Score = "evidence",
) -> LearnedDFA:
    """State merging along the blue fringe: the first blue state is merged with the red one that fits it best, or promoted.

    RPNI's order with EDSM's choice of the red state, as in LearnLib's blue-fringe EDSM. The literature often uses the name
    for what is `edsm` here, which compares the merges of all blue states: better on sparse samples, and slower.

    Args and what is raised: see `edsm`.
    """
    return _learn(Sample.of(words, labels, n_symbols, alphabet), weights, tolerance, _score(score), every_blue=False)


def _learn(
    sample: Sample, weights: Iterable[float] | None, tolerance: float, score: Score | None, every_blue: bool
) -> LearnedDFA:
    """Merge or promote until no state is blue. Without a score the first merge that fits is taken."""
    try:
        hypothesis = Hypothesis(sample, weights, tolerance)
    except OverflowError:
        raise ValueError("The weights add up to more than a float can hold: divide them all by one number.") from None
    known: dict[tuple[int, int], float | None] = {}  # until the next merge: a promotion changes no state
    while hypothesis.blue:
        best: tuple[float, int, int] | None = None
        for blue in hypothesis.blue_in_order() if every_blue else [hypothesis.next_blue()]:
            fits = False
            for red in hypothesis.red:
                pair = (red, blue)
                if pair in hypothesis.impossible:
                    continue
                value = known[pair] if pair in known else known.setdefault(pair, hypothesis.value(red, blue, score))
                if value is None:
                    continue
                fits = True
                if best is None or value > best[0]:
                    best = (value, red, blue)
                if score is None:
                    break
            if not fits:
                hypothesis.promote(blue)
                best = None
                break
        if best is not None:
            hypothesis.merge(*best[1:])
            known.clear()
    table, accepting = hypothesis.automaton()
    dfa = DFA.from_partial(table, accepting, 0, hypothesis.alphabet, complete="sink")
    defined = np.zeros(dfa.transitions.shape, bool)
    defined[: len(table)] = np.array(table) >= 0
    return LearnedDFA(dfa.transitions, dfa.accepting, 0, dfa.alphabet, defined)


def _score(score: str | Score) -> Score:
    if isinstance(score, str) and score in _SCORES:
        return _SCORES[score]
    if isinstance(score, str) or not callable(score):
        raise ValueError(f"score is {score!r}, but must be {', '.join(map(repr, _SCORES))} or a function of a Merge.")
    return score

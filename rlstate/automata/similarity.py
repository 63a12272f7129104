"""How alike two languages are: the share of words up to a length on which two automata agree, exactly."""

from __future__ import annotations

from fractions import Fraction

from rlstate.automata.counterexamples import whole
from rlstate.automata.dfa import DFA


def similarity(a: DFA, b: DFA, max_length: int) -> Fraction:
    """1 − |L(a) Δ L(b) ∩ Σ^≤k| / |Σ^≤k| with k = `max_length` (Agentic Automata Learning, A.3, where k = 200).

    1 where the automata agree on every word up to the length, 0 where they agree on none. Long words outnumber short
    ones, so with two symbols or more a difference on short words only hardly shows. An exact fraction; `float` makes it a
    number (to which a value within 10⁻¹⁶ of 1 is 1: compare the fraction).

    Raises:
        ValueError: the alphabets differ (a DFA with default names goes with any of its size), or `max_length` is
            not a whole number of at least 0, or `a` or `b` is no DFA.
    """
    max_length = whole("max_length", max_length)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, DFA):
            raise ValueError(f"{name} is a {type(value).__name__}, but must be a DFA.")
    # The smallest automaton of the difference: counts have hundreds of digits, one for each of its states.
    difference = a.minimize().product(b.minimize(), "xor").minimize()
    words = sum(difference.n_symbols**length for length in range(max_length + 1))
    return 1 - Fraction(count_words(difference, max_length), words)


def count_words(dfa: DFA, max_length: int) -> int:
    """How many words of length at most `max_length` a DFA accepts, exactly."""
    own = [int(accepts) for accepts in dfa.accepting]
    rows = dfa.transitions.tolist()
    counts = own  # by state: how many words of length at most r are accepted from it
    for _ in range(max_length):
        counts = [empty + sum([counts[successor] for successor in row]) for empty, row in zip(own, rows)]
    return counts[dfa.start]

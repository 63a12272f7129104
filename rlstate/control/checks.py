"""Checks of what people pass in: one sentence with what was given, what was expected and the remedy."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlstate.automata import DFA


def probability(name: str, value: Any) -> float:
    """`value` as a float in [0, 1]; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name}={value!r} is not a probability: give a number from 0 to 1.")
    return float(value)


def count(name: str, value: Any) -> int:
    """`value` as an int of at least 1; raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} is too small or not whole: give an integer of at least 1.")
    return int(value)


def accepted_horizon(dfa: DFA, horizon: int) -> None:
    """Raise ValueError where no word of length `horizon` is accepted: the optimal value is 0 and `val_n` is 0/0."""
    following = np.ascontiguousarray(dfa.transitions.T)  # int[A, Q]
    can_accept = np.asarray(dfa.accepting, bool)  # bool[Q]: some word of the length so far leads from q to acceptance
    reachable = can_accept.copy()
    for _ in range(horizon):
        can_accept = can_accept[following].any(0)
        reachable |= can_accept
        if not can_accept.any():
            break
    if can_accept[dfa.start]:
        return
    if reachable[dfa.start]:
        raise ValueError(
            f"The automaton accepts no word of length exactly horizon={horizon}, so its optimal value is 0 and val_n "
            "has no meaning; choose another horizon."
        )
    raise ValueError(
        f"The accepting states of the automaton cannot be reached from the start within horizon={horizon}, so its "
        "optimal value is 0 and val_n has no meaning; mark a reachable state as accepting or lengthen the horizon."
    )

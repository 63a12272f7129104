"""How much learning signal a task's structure leaves: state-influence, contraction, and the predictor built on them.

Paper §5.5 and Appendix B: in a permutation automaton under state-blind play the influence of the present state on
acceptance decays geometrically, so sparse reward says little about it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlstate.automata import DFA, structure
from rlstate.control import checks
from rlstate.control.oracle import Oracle, is_diagnostic

MAX_DENSE_STATES = 1000
"""More reachable states than this are too many for what needs dense matrices or all pairs of states."""

LOW_LEVERAGE = 0.51
"""Permutation automata below this leverage are the paper's predicted-hard class."""


def state_influence(
    dfa: DFA, steps: int, policy: ArrayLike | None = None, p_control: float = 0.5
) -> NDArray[np.float64]:
    """float64[steps]: Δ after r = 1..steps further steps (paper Appendix B).

    Δ_r is the spread over reachable states, max − min, of the probability that an episode with r steps to go is
    accepted. It bounds how much any decision just before those r steps can change the return.

    policy: None for uniformly random symbols at every step. Otherwise the probabilities with which the player of the
    controllable steps (probability `p_control` each) chooses its symbol, uniform at the others: float[Q, A], by state,
    or float[steps, Q, A], where ``policy[r - 1]`` is used with r steps to go (such as optimal actions made uniform).
    Raises ValueError for steps below 1, `p_control` outside [0, 1], or a policy of another shape or whose rows are not
    probabilities.
    """
    steps, p_control = checks.count("steps", steps), checks.probability("p_control", p_control)
    choices = None if policy is None else _policy(policy, steps, dfa)
    reachable = dfa.reachable_states()
    acceptance = dfa.accepting.astype(np.float64)
    influence = np.empty(steps)
    for i in range(steps):
        after = acceptance[dfa.transitions]  # [Q, A]
        acceptance = after.mean(1)
        if choices is not None:
            acceptance = p_control * (choices[i] * after).sum(1) + (1 - p_control) * acceptance
        influence[i] = np.ptp(acceptance[reachable])
    return influence


def _policy(policy: ArrayLike, steps: int, dfa: DFA) -> NDArray[np.float64]:
    """The policy as float64[steps, Q, A], checked."""
    choices = np.asarray(policy, np.float64)
    table = (dfa.n_states, dfa.n_symbols)
    if choices.shape not in (table, (steps, *table)):
        raise ValueError(
            f"The policy has shape {choices.shape}: give probabilities of shape {table} (states, symbols) or "
            f"{(steps, *table)} (steps, states, symbols)."
        )
    if not (choices >= 0).all() or not np.allclose(choices.sum(-1), 1.0, atol=1e-6):
        raise ValueError("The policy's rows are not probabilities: make them non-negative and sum to 1 over symbols.")
    return np.broadcast_to(choices, (steps, *table))


def transition_operator(dfa: DFA) -> NDArray[np.float64]:
    """float64[Q, Q]: P[q, q′], the probability that a uniformly random symbol leads from q to q′; rows sum to 1."""
    operator = np.zeros((dfa.n_states, dfa.n_states))
    np.add.at(operator, (np.arange(dfa.n_states)[:, None], dfa.transitions), 1.0 / dfa.n_symbols)
    return operator


class Contraction(NamedTuple):
    """How fast uniform random symbols make reachable states forget where they were: 0 at once, 1 never.

    one_step: the Dobrushin coefficient λ(P), the largest total variation distance between two rows of P.
    per_step: λ(Pᵐ)^{1/m}, the geometric mean over m steps, where one step alone may not contract (mod_5 … mod_11).
    second_eigenvalue: the second largest modulus of an eigenvalue of P, the limit as m grows of `per_step`. A zero
        that belongs to a Jordan block of size n (ends_with_w) comes out as about 1e-16^(1/n).
    """

    one_step: float
    per_step: float
    second_eigenvalue: float


def contraction(dfa: DFA, steps: int = 1) -> Contraction:
    """The `Contraction` of the random-symbol operator on the reachable states, with m = `steps` (paper Appendix B).

    Raises ValueError for steps below 1 or more than `MAX_DENSE_STATES` reachable states.
    """
    steps = checks.count("steps", steps)
    machine = dfa.reachable()
    if machine.n_states > MAX_DENSE_STATES:
        raise ValueError(
            f"{machine.n_states} reachable states are too many for dense matrices: minimize the automaton to at most "
            f"{MAX_DENSE_STATES}."
        )
    operator = transition_operator(machine)
    moduli = np.sort(np.abs(np.linalg.eigvals(operator)))
    return Contraction(
        one_step=_dobrushin(operator, 1),
        per_step=_dobrushin(operator, steps) ** (1 / steps),
        second_eigenvalue=float(moduli[-2]) if len(moduli) > 1 else 0.0,
    )


def _dobrushin(operator: NDArray[np.float64], steps: int) -> float:
    """λ(P^steps), to relative precision however small it is."""
    # Follow the differences of the rows from row 0 instead of the rows, which agree to all digits in the end. The sum
    # of a difference is 0; rounding makes it otherwise, and P would carry that along undiminished.
    difference = np.eye(len(operator)) - np.eye(len(operator))[0]
    for _ in range(steps):
        after = difference @ operator
        after -= after.mean(1, keepdims=True)
        if np.abs(after).max() < 1e-13 * np.abs(difference).max():
            return 0.0  # nothing but rounding is left: P forgets everything in finitely many steps
        difference = after
    return max(float(np.abs(difference[i:] - difference[i]).sum(1).max()) / 2 for i in range(len(operator)))


def score(dfa: DFA, horizon: int, p_control: float) -> float:
    """How easy the paper's predictor calls a task: leverage L for permutation automata, +∞ for others (paper §5.5).

    Low is hard: the designed hard tasks are at most .50, the easy ones at least .519. NaN where L is undefined.
    """
    leverage = Oracle(dfa, horizon, p_control).leverage  # also for the check of the arguments
    return leverage if dfa.is_permutation() else float("inf")


@dataclass(frozen=True)
class Features:
    """What can be said of a task before any training; all about the reachable part (paper §5.5, Appendices B and D).

    Values are plain numbers. None stands for what is too large to compute: more than `MAX_DENSE_STATES` states, or a
    monoid above the cap.
    """

    n_states: int
    n_reachable: int
    n_minimal: int
    n_symbols: int
    permutation: bool  # every symbol is a bijection: a group language
    star_free: bool | None
    monoid_size: int | None  # of the syntactic monoid
    synchronizing: bool | None
    min_image_size: int | None  # the least number of states that some word leaves
    diameter: int | None
    stabilizers: tuple[int, ...]  # symbols that are the identity on every reachable state
    optimal: float
    random: float
    leverage: float  # NaN where control changes nothing
    low_leverage: bool
    diagnostic: bool
    quotient_size: int  # control-relevant classes among the reachable states
    influence: float  # Δ after `horizon` uniformly random steps
    one_step_contraction: float | None
    contraction: float | None  # per step, over `horizon` steps
    second_eigenvalue: float | None
    score: float  # `score`: leverage of a permutation automaton, +∞ for others


def features(dfa: DFA, horizon: int, p_control: float, max_monoid: int = 10_000) -> Features:
    """The `Features` of a task; raises ValueError for a horizon below 1 or `p_control` outside [0, 1]."""
    oracle = Oracle(dfa, horizon, p_control)
    machine, minimal, permutation = dfa.reachable(), dfa.minimize(), dfa.is_permutation()
    small = machine.n_states <= MAX_DENSE_STATES
    star_free: bool | None = None
    monoid_size: int | None = None
    if minimal.n_states <= MAX_DENSE_STATES:
        # Two questions: a group shows itself early in a monoid that is too large to count.
        with suppress(structure.MonoidTooLarge):
            star_free = structure.is_star_free(minimal, max_monoid)
        with suppress(structure.MonoidTooLarge):
            monoid_size = len(structure.syntactic_monoid(minimal, max_monoid))
    rate = contraction(machine, oracle.horizon) if small else None
    return Features(
        n_states=dfa.n_states,
        n_reachable=machine.n_states,
        n_minimal=minimal.n_states,
        n_symbols=dfa.n_symbols,
        permutation=permutation,
        star_free=star_free,
        monoid_size=monoid_size,
        synchronizing=structure.is_synchronizing(machine) if small else None,
        min_image_size=structure.min_image_size(machine) if small else None,
        diameter=structure.diameter(machine) if small else None,
        stabilizers=tuple(structure.stabilizers(machine)),
        optimal=oracle.optimal,
        random=oracle.random,
        leverage=oracle.leverage,
        low_leverage=oracle.leverage < LOW_LEVERAGE,
        diagnostic=is_diagnostic(dfa, horizon, p_control),
        quotient_size=len(np.unique(oracle.quotient()[dfa.reachable_states()])),
        influence=float(state_influence(dfa, oracle.horizon)[-1]),
        one_step_contraction=rate.one_step if rate else None,
        contraction=rate.per_step if rate else None,
        second_eigenvalue=rate.second_eigenvalue if rate else None,
        score=oracle.leverage if permutation else float("inf"),
    )

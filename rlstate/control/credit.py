"""How much learning signal a task's structure leaves: state-influence, contraction, and the predictor built on them.

Paper §5.5 and Appendix B: in a permutation automaton under state-blind play the influence of the present state on
acceptance decays geometrically, so sparse reward says little about it.
"""

from __future__ import annotations

from collections.abc import Iterator
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

_ROUNDING = 1e-13  # a quantity that shrinks in one step by more than this is 0 but for rounding

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
    Without a policy Δ is precise relative to its own size, however small.
    Raises ValueError for steps below 1, `p_control` outside [0, 1], or a policy of another shape or whose rows are not
    probabilities.
    """
    steps, p_control = checks.count("steps", steps), checks.probability("p_control", p_control)
    choices = None if policy is None else _policy(policy, steps, dfa)
    reachable = dfa.reachable_states()
    acceptance = dfa.accepting.astype(np.float64)
    influence = np.zeros(steps)
    spread = 1.0
    for i in range(steps):
        after = acceptance[dfa.transitions]  # [Q, A]
        acceptance = after.mean(1)
        if choices is not None:
            acceptance = p_control * (choices[i] * after).sum(1) + (1 - p_control) * acceptance
        low, high = acceptance[reachable].min(), acceptance[reachable].max()
        if choices is None:
            if high - low < _ROUNDING * spread:
                break  # nothing but rounding is left, and random play keeps it at 0
            spread = high - low
            if low > high / 2:
                acceptance = acceptance - low  # changes no difference, and is exact (Sterbenz)
        influence[i] = high - low
    return influence


def influence_profile(dfa: DFA, horizon: int) -> tuple[tuple[int, float], ...]:
    """Pairs (r, Δ_r) under uniformly random play at r = 1, 2, 3, 5, 8, 16, 32, … and at the horizon (paper Appendix B).

    Raises ValueError for a horizon below 1.
    """
    influence = state_influence(dfa, horizon)
    rows = [r for r in (1, 2, 3, 5, *(1 << i for i in range(3, 63))) if r < len(influence)]
    return tuple((r, float(influence[r - 1])) for r in [*rows, len(influence)])


def persistence(dfa: DFA, horizon: int) -> float:
    """(Δ_T / Δ_0)^{1/T}: the mean factor per random step by which the state's influence shrinks over the horizon.

    Δ_0 is the spread of acceptance itself, 1 where both accepting and rejecting states are reachable. 0: forgotten
    altogether (parity), 1: never forgotten (absorbing acceptance and rejection). At most λ(P^T)^{1/T}, the
    `contraction`. NaN where Δ_0 = 0: every reachable state has the same answer.
    Raises ValueError for a horizon below 1.
    """
    influence = state_influence(dfa, horizon)
    return float(influence[-1]) ** (1 / len(influence)) if _accepting_span(dfa) else float("nan")


def _accepting_span(dfa: DFA) -> float:
    """Δ_0: 1 if accepting and rejecting states are reachable, otherwise 0."""
    return float(np.ptp(dfa.accepting[dfa.reachable_states()].astype(np.int8)))


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
    machine = _small(dfa)
    operator = transition_operator(machine)
    moduli = np.sort(np.abs(np.linalg.eigvals(operator)))
    return Contraction(
        one_step=_dobrushin(operator, 1),
        per_step=_dobrushin(operator, steps) ** (1 / steps),
        second_eigenvalue=float(moduli[-2]) if len(moduli) > 1 else 0.0,
    )


def _dobrushin(operator: NDArray[np.float64], steps: int) -> float:
    """λ(P^steps), to relative precision however small it is."""
    for power, difference in enumerate(_row_differences(operator), 1):
        if power == steps:
            return _widest(difference)
    return 0.0


def _row_differences(operator: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """For P, P², …: the rows less row 0, float[Q, Q]; ends where P forgets everything in finitely many steps."""
    # Follow the differences of the rows from row 0 instead of the rows, which agree to all digits in the end. The sum
    # of a difference is 0; rounding makes it otherwise, and P would carry that along undiminished.
    difference = np.eye(len(operator)) - np.eye(len(operator))[0]
    while True:
        after = difference @ operator
        after -= after.mean(1, keepdims=True)
        if np.abs(after).max() < _ROUNDING * np.abs(difference).max():
            return
        difference = after
        yield difference


def _widest(difference: NDArray[np.float64]) -> float:
    """The largest total variation distance between two rows."""
    return max(float(np.abs(difference[i:] - difference[i]).sum(1).max()) / 2 for i in range(len(difference)))


@dataclass(frozen=True)
class CreditBound:
    """What Proposition 2 of the paper says about Δ_r under uniformly random play, r = 1..steps (Appendix B).

    Let P be the random-symbol operator on the reachable states, f the acceptance, Δ_0 its spread, λ(M) the Dobrushin
    coefficient of a stochastic matrix. The acceptance probabilities are Pʳf, and the spread of Mf is at most λ(M)
    times that of f, so that for every automaton, permutation or not, and every r

        Δ_r ≤ λ(Pʳ) · Δ_0 = `exact[r - 1]`.

    λ is submultiplicative, so that for every m, λ = λ(Pᵐ)^{1/m} and C = Δ_0 · λ^{1−m},

        Δ_r ≤ Δ_0 · λ(Pᵐ)^⌊r/m⌋ ≤ C · λʳ = `geometric[r - 1]`,

    where m = `block` is the one whose bound is least at r = steps, the smallest of equals. The paper writes the case
    m = 1, where λ(P) counts every uncontrolled step, also between controlled ones; in mod_5 … mod_11 a single step does
    not contract (λ(P) = 1), and the bound needs m *successive* random steps. Where no number of steps up to `steps`
    contracts, `block` is None, λ = 1 and C = Δ_0: no decay is promised, though there may be one (in mined_ean P
    alternates between two halves, and Δ_1 = 0).
    """

    exact: NDArray[np.float64]
    geometric: NDArray[np.float64]
    rate: float  # λ per step
    constant: float  # C; Δ_0 where λ = 0, and then Δ_r = 0 from r = m on
    block: int | None


def proposition_2_bound(dfa: DFA, steps: int) -> CreditBound:
    """The `CreditBound` over `steps` uniformly random steps.

    Raises ValueError for steps below 1 or more than `MAX_DENSE_STATES` reachable states.
    """
    steps = checks.count("steps", steps)
    machine = _small(dfa)
    coefficients = np.zeros(steps)
    for i, difference in zip(range(steps), _row_differences(transition_operator(machine))):
        # Summing up may end a little above 1, and the next power above the one before.
        coefficients[i] = min(_widest(difference), coefficients[i - 1] if i else 1.0)
    span = _accepting_span(machine)
    powers = np.arange(1.0, steps + 1)
    if coefficients[-1] > 1 - 1e-12:
        return CreditBound(span * coefficients, np.full(steps, span), 1.0, span, None)
    with np.errstate(divide="ignore"):
        at_the_end = (steps - powers + 1) / powers * np.log(coefficients)  # of the logarithm of C · λ^steps
    block = int(np.argmin(at_the_end)) + 1
    if coefficients[block - 1] == 0:
        return CreditBound(span * coefficients, np.where(powers < block, span, 0.0), 0.0, span, block)
    rate = float(coefficients[block - 1] ** (1 / block))
    constant = span * rate ** (1 - block)
    return CreditBound(span * coefficients, constant * rate**powers, rate, constant, block)


def _small(dfa: DFA) -> DFA:
    """The reachable part, where it is small enough for dense matrices."""
    machine = dfa.reachable()
    if machine.n_states > MAX_DENSE_STATES:
        raise ValueError(
            f"{machine.n_states} reachable states are too many for dense matrices: minimize the automaton to at most "
            f"{MAX_DENSE_STATES}."
        )
    return machine


def replaying_influence(steps: int, p_control: float) -> NDArray[np.float64]:
    """float64[steps]: Δ_r on parity under the history-dependent policy that replays what chance has done.

    Proposition 2 needs a policy whose symbols do not depend on the random ones drawn since; on parity one random
    symbol then makes Δ = 0. This policy breaks that: from step t on it remembers the sum modulo 2, m, of the random
    symbols not yet undone, and at a controllable step it plays m, which undoes them (q ⊕ b ⊕ b = q) and sets m to 0.
    It knows nothing of q. With f_r(q, m) the probability of acceptance with r steps to go,

        f_0(q, m) = [q = 0],   f_r(q, m) = p · f_{r−1}(q ⊕ m, 0) + (1 − p) · mean_b f_{r−1}(q ⊕ b, m ⊕ b),

    and Δ_r = |f_r(0, 0) − f_r(1, 0)|, the memory empty just after step t. q ⊕ m, the state with the random symbols taken
    out, never changes. If the last step is controllable the episode ends in it, and the answer tells q_t for certain;
    if it is random the answer is a fair coin. Hence Δ_r = p_control for every r ≥ 1: Θ(1), where state-blind play has 0.

    Raises ValueError for steps below 1 or `p_control` outside [0, 1].
    """
    steps, p_control = checks.count("steps", steps), checks.probability("p_control", p_control)
    q, m = np.ogrid[:2, :2]
    acceptance = np.broadcast_to(q == 0, (2, 2)).astype(np.float64)  # [state, memory]
    influence = np.empty(steps)
    for i in range(steps):
        replayed = acceptance[q ^ m, 0]
        by_chance = (acceptance[q ^ 0, m ^ 0] + acceptance[q ^ 1, m ^ 1]) / 2
        acceptance = p_control * replayed + (1 - p_control) * by_chance
        influence[i] = abs(acceptance[0, 0] - acceptance[1, 0])
    return influence


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
    influence_profile: tuple[tuple[int, float], ...]  # (r, Δ_r) at r = 1, 2, 3, 5, 8, 16, … and the horizon
    persistence: float  # (Δ_T / Δ_0)^{1/T}, what is left of Δ per step; NaN where all reachable states agree
    one_step_contraction: float | None
    contraction: float | None  # per step, over `horizon` steps
    second_eigenvalue: float | None
    mixing_rate: float | None  # the spectral gap, 1 − second_eigenvalue: 0 never mixes, 1 at once
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
    profile = influence_profile(dfa, oracle.horizon)
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
        influence=profile[-1][1],
        influence_profile=profile,
        persistence=persistence(dfa, oracle.horizon),
        one_step_contraction=rate.one_step if rate else None,
        contraction=rate.per_step if rate else None,
        second_eigenvalue=rate.second_eigenvalue if rate else None,
        mixing_rate=max(0.0, 1.0 - rate.second_eigenvalue) if rate else None,
        score=oracle.leverage if permutation else float("inf"),
    )

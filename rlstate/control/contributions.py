"""What each step's choice adds to the policy gradient, and what bounds it: Proposition 1 of the paper (Appendix B), exactly.

Every history of an episode is enumerated, so that both sides of the inequality are exact for any policy that chooses by what
it has seen, a table or a network. Histories are many: this is for horizons of about six.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlstate.automata import DFA
from rlstate.control import checks

MAX_VALUES = 5_000_000
"""At most so many numbers: histories of the whole horizon times states."""


def histories(steps: int, n_symbols: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Every history of `steps` steps (0 or more): bool[N, steps] and int[N, steps] with N = (2A)^steps.

    Whether each step was the agent's, and the symbol that was emitted. The last step varies fastest, by symbol first.
    """
    moves = 2 * n_symbols
    codes = np.arange(moves**steps)[:, None] // moves ** np.arange(steps)[::-1] % moves
    return codes >= n_symbols, codes % n_symbols


@dataclass(frozen=True)
class Contributions:
    """Both sides of Proposition 1 at each step t = 0..T−1; all float64[T].

    Write h for what was seen before the agent chooses a at step t (symbols, and whose step it was), g(h, a) for the
    probability of acceptance after it, and G(h, a; q) for the same were the automaton then in state q. Attributes:

    gradient: ‖E[R ∇log π(a|h)]‖, R the terminal reward; only where the step is the agent's, in the `score` too.
    score: E‖∇log π(a|h)‖.
    symbol_influence: max over h of the spread of g(h, a) over a. With any baseline that reads h alone, and so with the
        middle of g(h, ·), the gradient is the same. Hence for every policy

            gradient ≤ ½ · symbol_influence · score,

        with equality for a single history and two symbols. Where it is 0 the gradient is.
    state_influence: Δ_t with what was seen held: max over (h, a) of the spread of G(h, a; q) over reachable q. Where no
        later choice depends on a, G(h, a; q) = G(h; q), and a only moves the automaton to one state or another, so that
        symbol_influence ≤ state_influence. In a permutation automaton the mean of G(h, a; ·) is the share of accepting
        states, whatever is played, so that symbol_influence ≤ 2(1 − 1/Q) · state_influence for *every* policy. Either
        way gradient ≤ state_influence · score. An agent that copies a later breaks it in other automata.
    mean_state_influence: Δ_t as the paper writes it: the spread of Pr[R = 1 | q_{t+1} = q] over the states that are
        possible just after the step. It averages over histories, and what a policy remembers averages out with them:
        the bound holds where no later choice depends on any symbol (then it is at most `state_influence`), and can
        fail by any factor otherwise.
    """

    gradient: NDArray[np.float64]
    score: NDArray[np.float64]
    symbol_influence: NDArray[np.float64]
    state_influence: NDArray[np.float64]
    mean_state_influence: NDArray[np.float64]


def contributions(
    dfa: DFA, choices: Sequence[ArrayLike], scores: Sequence[ArrayLike] | None = None, p_control: float = 0.5
) -> Contributions:
    """The `Contributions` of a policy that plays `len(choices)` steps.

    choices: for t = 0..T−1 float[(2A)^t, A], how the agent chooses at step t after each of `histories(t, A)`.
    scores: the gradients ∇log π(a|h) to the policy's parameters, float[(2A)^t, A, P_t], where the parameters that do not
        matter at step t may be left out. None: the parameters are the logits of `choices`, one for each history and symbol.
    Raises ValueError for no steps or too many, `p_control` outside [0, 1], other shapes, or rows that are not probabilities.
    """
    p_control, n_symbols, horizon = checks.probability("p_control", p_control), dfa.n_symbols, len(choices)
    moves = 2 * n_symbols
    if not horizon or moves**horizon * dfa.n_states > MAX_VALUES:
        raise ValueError(
            f"{horizon} steps of {n_symbols} symbols have {moves**horizon} histories, times {dfa.n_states} states: give at "
            f"least one step, and few enough for {MAX_VALUES} in all."
        )
    if scores is not None and len(scores) != horizon:
        raise ValueError(
            f"Scores of {len(scores)} steps were given for choices of {horizon}: give both for every step."
        )
    policy = [_choices(each, t, n_symbols) for t, each in enumerate(choices)]
    own = [_scores(None if scores is None else scores[t], policy[t]) for t in range(horizon)]

    # Forwards: how probable each history is, and where it has led. By [history, whose step, symbol], flat.
    weight, state = [np.ones(1)], [np.array([dfa.start])]
    for t in range(horizon):
        by = np.stack([np.full_like(policy[t], (1 - p_control) / n_symbols), p_control * policy[t]], 1)
        weight.append((weight[t][:, None, None] * by).ravel())
        state.append(np.broadcast_to(dfa.transitions[state[t]][:, None], by.shape).ravel())

    # Backwards: value[h, q], the probability of acceptance after h, were the automaton in q.
    reachable, found = dfa.reachable_states(), np.empty((horizon, 5))
    value = np.broadcast_to(dfa.accepting.astype(np.float64), (moves**horizon, dfa.n_states))
    for t in reversed(range(horizon)):
        actual = np.take_along_axis(value, state[t + 1][:, None], 1)[:, 0]
        after = value.reshape(-1, 2, n_symbols, dfa.n_states)
        possible, chosen = weight[t] > 0, weight[t + 1].reshape(-1, 2, n_symbols)[:, 1]
        by_symbol = actual.reshape(-1, 2, n_symbols)[:, 1]
        gradient = np.einsum("ha,hap->hp" if scores is None else "ha,hap->p", chosen * by_symbol, own[t])
        found[t] = (
            np.linalg.norm(gradient),
            (chosen * np.linalg.norm(own[t], axis=-1)).sum(),
            np.ptp(by_symbol[possible], axis=-1).max(),
            np.ptp(after[possible, 1][..., reachable], axis=-1).max(),
            np.ptp(_means(actual, state[t + 1], weight[t + 1])),
        )
        moved = np.take_along_axis(after, np.broadcast_to(dfa.transitions.T, after.shape), -1)
        value = (1 - p_control) * moved[:, 0].mean(1) + p_control * (policy[t][..., None] * moved[:, 1]).sum(1)
    return Contributions(*found.T.copy())


def _means(values: NDArray, groups: NDArray, weight: NDArray) -> NDArray[np.float64]:
    """The weighted means of the groups that have any weight."""
    total = np.bincount(groups, weight)
    return np.bincount(groups, weight * values)[total > 0] / total[total > 0]


def _choices(given: ArrayLike, t: int, n_symbols: int) -> NDArray[np.float64]:
    """The choices of step `t`, checked."""
    rows, expected = np.asarray(given, np.float64), ((2 * n_symbols) ** t, n_symbols)
    if rows.shape != expected:
        raise ValueError(
            f"The choices of step {t} have shape {rows.shape}: give a row for each history, {expected} (histories, symbols)."
        )
    if not (rows >= 0).all() or not np.allclose(rows.sum(-1), 1.0, atol=1e-6):
        raise ValueError(f"The choices of step {t} are not probabilities: make rows non-negative and sum to 1.")
    return rows


def _scores(given: ArrayLike | None, choices: NDArray[np.float64]) -> NDArray[np.float64]:
    """∇log π(a|h), checked; without any to the logits of the history: e_a − π(·|h)."""
    if given is None:
        return np.eye(choices.shape[1]) - choices[:, None]
    scores = np.asarray(given, np.float64)
    if scores.ndim != 3 or scores.shape[:2] != choices.shape:
        raise ValueError(
            f"Scores of shape {scores.shape} were given for choices of shape {choices.shape}: give one vector for each of "
            "them, (histories, symbols, parameters)."
        )
    if not np.allclose(
        (choices[..., None] * scores).sum(1), 0.0, atol=1e-6 * max(1.0, np.abs(scores).max(initial=0.0))
    ):
        raise ValueError("The scores are not those of the choices: their mean under a history's choices must be 0.")
    return scores

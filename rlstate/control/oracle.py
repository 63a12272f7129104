"""Exact values of a task by backward induction over (steps remaining, state) (paper §3).

With r steps to go and control probability p, V_0(q) = 1 where q accepts, and

    V_r(q) = p · max_a V_{r−1}(δ(q, a)) + (1 − p) · mean_a V_{r−1}(δ(q, a)).

Random play replaces the maximum by the mean, full control the mean by the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlstate.automata import DFA
from rlstate.control import checks

TIE = 1e-9
"""Values closer than this count as equal."""

DENSE_ENTRIES = 1 << 22
"""Value tables up to this many entries (32 MiB) are kept whole; larger ones as every ~√T-th row."""

Row = NDArray[np.float64]


class Oracle:
    """What the best, the random and the all-controlling player of a task achieve, exactly.

    ``optimal``, ``random``, ``full_control``: probability of acceptance from the start state over `horizon` steps.
    ``value[r, q]``, ``random_value[r, q]``: with r = 0..horizon steps to go, under optimal and random play.
    ``q_value[r, q, a]``: the optimal value after symbol a at r ≥ 1, with r − 1 steps left; NaN at r = 0.

    The tables index like numpy arrays of shapes [T+1, Q] and [T+1, Q, A] (``np.asarray`` makes them arrays), but only
    `value` and `random_value` of small automata are arrays in memory: `q_value` is looked up through δ, and for large
    automata (more than `DENSE_ENTRIES` values) rows are recomputed from checkpoints, so that 10⁵ states × 1000 steps
    take seconds and tens of megabytes. States are the DFA's own, reachable or not.

    Raises ValueError for a horizon below 1 or `p_control` outside [0, 1].
    """

    def __init__(self, dfa: DFA, horizon: int, p_control: float) -> None:
        self.dfa = dfa
        self.horizon = checks.count("horizon", horizon)
        self.p_control = checks.probability("p_control", p_control)
        self._next = np.ascontiguousarray(dfa.transitions.T, dtype=np.intp)  # [A, Q]: a row a symbol, gathered at once

    # --- values at the start state ----------------------------------------------------------------------------

    @property
    def optimal(self) -> float:
        """V_opt: the highest probability of acceptance that any player can reach."""
        return float(self._optimal_rows.row(self.horizon)[self.dfa.start])

    @property
    def random(self) -> float:
        """V_rand: the probability that a uniformly random word of length `horizon` is accepted."""
        return float(self._random_rows.row(self.horizon)[self.dfa.start])

    @cached_property
    def full_control(self) -> float:
        """V_full: 1 if some word of length `horizon` is accepted, otherwise 0."""
        can_accept: NDArray = self.dfa.accepting
        for _ in range(self.horizon):
            can_accept = np.any(can_accept[self._next], axis=0)
        return float(can_accept[self.dfa.start])

    @property
    def leverage(self) -> float:
        """L = (V_opt − V_rand) / (V_full − V_rand), in [0, 1]: what partial control buys of what full control would.

        NaN where V_full and V_rand coincide (within `TIE`): control changes nothing, and the ratio is 0/0.
        """
        room = self.full_control - self.random
        return (self.optimal - self.random) / room if room > TIE else math.nan

    # --- values by steps remaining ----------------------------------------------------------------------------

    @cached_property
    def value(self) -> Any:
        """float64[T+1, Q]: optimal value with r steps to go in state q."""
        return self._optimal_rows.table()

    @cached_property
    def random_value(self) -> Any:
        """float64[T+1, Q]: probability of acceptance under random play with r steps to go in state q."""
        return self._random_rows.table()

    @cached_property
    def q_value(self) -> _Table:
        """float64[T+1, Q, A]: optimal value of symbol a in state q with r steps to go, a included; NaN at r = 0."""

        def entries(r: NDArray, q: NDArray, a: NDArray) -> NDArray:
            after = self._optimal_rows.entries(np.maximum(r - 1, 0), self.dfa.transitions[q, a])
            return np.where(r > 0, after, np.nan)

        return _Table((self.horizon + 1, *self.dfa.transitions.shape), entries)

    def optimal_actions(self, r: ArrayLike, q: ArrayLike) -> NDArray[np.bool_]:
        """bool[..., A]: which symbols are optimal (ties within `TIE`) in states `q` with `r` steps to go.

        `r` and `q` are int[...] that broadcast against each other. At r = 0 nothing is chosen: all False.
        Raises IndexError for r outside 0..horizon or q outside 0..Q-1.
        """
        values = self._symbol_values(r, q)
        return values >= values.max(-1, keepdims=True) - TIE

    def action_gap(self, r: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
        """float64[...]: what the best symbol that is *not* optimal loses; 0 where all are optimal, NaN at r = 0.

        Tied optimal symbols count as one choice, so the gap is what a player pays for leaving the optimal set.
        Shapes and errors as for `optimal_actions`.
        """
        values = self._symbol_values(r, q)
        best = values.max(-1)
        others = np.where(values >= best[..., None] - TIE, -np.inf, values).max(-1)
        return np.where(np.isneginf(others), 0.0, best - others)

    def quotient(self) -> NDArray[np.int64]:
        """int64[Q]: one label for states that share value and optimal symbols at every r ≤ horizon (paper §5.5).

        Labels are numbered by first appearance. States still together are compared at each r: sorted by value, a new
        class begins where the value exceeds the *first* of its class by more than `TIE`, so that a chain of small
        differences cannot join distant values.
        """
        labels = np.zeros(self.dfa.n_states, np.int64)
        before: Row | None = None
        for r in range(self.horizon + 1):
            row = self._optimal_rows.row(r)
            labels = _split(labels, row, TIE)
            if before is not None:
                values = before[self._next]
                is_optimal = values >= values.max(0) - TIE  # bool[A, Q]
                for some in np.array_split(is_optimal, math.ceil(len(is_optimal) / 48)):
                    # The set as a binary number, which a float holds exactly up to 53 symbols.
                    labels = _split(labels, 2.0 ** np.arange(len(some)) @ some, 0.5)
            if labels.max() + 1 == len(labels):
                break
            before = row
        _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[labels]

    # --- inside -----------------------------------------------------------------------------------------------

    def _symbol_values(self, r: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
        r, q = np.broadcast_arrays(np.asarray(r), np.asarray(q))
        if r.size and (r.min() < 0 or r.max() > self.horizon):
            raise IndexError(f"r runs from {r.min()} to {r.max()}: steps remaining are 0 to horizon={self.horizon}.")
        if q.size and (q.min() < 0 or q.max() >= self.dfa.n_states):
            raise IndexError(f"q runs from {q.min()} to {q.max()}: the states are 0 to {self.dfa.n_states - 1}.")
        return self.q_value[r, q]

    @cached_property
    def _optimal_rows(self) -> _Rows:
        p = self.p_control

        def backup(value: Row) -> Row:
            after = value[self._next]
            return p * after.max(0) + (1 - p) * after.mean(0)

        return _Rows(self.dfa.accepting.astype(np.float64), backup, self.horizon)

    @cached_property
    def _random_rows(self) -> _Rows:
        return _Rows(self.dfa.accepting.astype(np.float64), lambda value: value[self._next].mean(0), self.horizon)


def is_diagnostic(dfa: DFA, horizon: int, p_control: float, threshold: float = 0.05) -> bool:
    """Whether play can matter: V_opt − V_rand ≥ `threshold` from the start state both at T = `horizon` and at 4T.

    On other tasks random play is (nearly) optimal, so success tells nothing about the state (paper §5.1).
    Raises ValueError as `Oracle` does.
    """
    oracle = Oracle(dfa, 4 * checks.count("horizon", horizon), p_control)
    r = np.array([horizon, 4 * horizon])
    room = oracle.value[r, dfa.start] - oracle.random_value[r, dfa.start]
    return bool((room >= threshold).all())


class _Rows:
    """The rows V_0..V_T of a backward induction: all of them if they are few, otherwise every `stride`-th.

    The rows between two kept ones are recomputed together and the last such block is remembered, so that reading the
    rows in either order computes each of them once more.
    """

    def __init__(self, terminal: Row, backup: Callable[[Row], Row], horizon: int) -> None:
        self.shape = (horizon + 1, len(terminal))
        self.stride = 1 if math.prod(self.shape) <= DENSE_ENTRIES else math.isqrt(horizon) + 1
        self._backup = backup
        self._kept = np.empty((horizon // self.stride + 1, len(terminal)))
        self._kept[0] = row = terminal
        for r in range(1, horizon + 1):
            row = backup(row)
            if r % self.stride == 0:
                self._kept[r // self.stride] = row
        self._kept.setflags(write=False)
        self._last = row
        self._block_index, self._block = -1, self._kept[:0]

    def row(self, r: int) -> Row:
        """float64[Q]: V_r."""
        if r == self.shape[0] - 1:
            return self._last
        if r % self.stride == 0:
            return self._kept[r // self.stride]
        return self._rows_of_block(r // self.stride)[r % self.stride]

    def entries(self, r: NDArray, q: NDArray) -> NDArray:
        """float64[...]: V_r(q) for integer arrays of one shape."""
        if self.stride == 1:
            return self._kept[r, q]
        r, q = np.asarray(r), np.asarray(q)
        out = np.empty(r.shape)
        block = r // self.stride
        for index in np.unique(block):
            here = block == index
            out[here] = self._rows_of_block(int(index))[r[here] % self.stride, q[here]]
        return out

    def table(self) -> NDArray | _Table:
        return self._kept if self.stride == 1 else _Table(self.shape, self.entries)

    def _rows_of_block(self, index: int) -> NDArray:
        if index != self._block_index:
            length = min(self.stride, self.shape[0] - index * self.stride)
            block = np.empty((length, self.shape[1]))
            block[0] = self._kept[index]
            for i in range(1, length):
                block[i] = self._backup(block[i - 1])
            self._block_index, self._block = index, block
        return self._block


class _Table:
    """A table of known shape whose entries are looked up when asked for; indexes like a numpy array."""

    def __init__(self, shape: tuple[int, ...], entries: Callable[..., NDArray]) -> None:
        self.shape, self.ndim = shape, len(shape)
        self._entries = entries

    def __getitem__(self, key: Any) -> Any:
        # Index each axis' coordinates, broadcast to the full shape without memory: numpy's own rules then say which
        # coordinates the result has, whatever mixture of integers, slices and arrays `key` is.
        coordinates = np.ogrid[tuple(slice(n) for n in self.shape)]
        chosen = [np.asarray(np.broadcast_to(axis, self.shape)[key]) for axis in coordinates]
        return self._entries(*chosen)[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self[...], dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]


def _split(labels: NDArray[np.int64], key: Row, tolerance: float) -> NDArray[np.int64]:
    """Refine classes by `key`, both over states: a new class where it exceeds the first of its class by `tolerance`."""
    order = np.lexsort((key, labels))
    same_label = np.diff(labels[order], prepend=-1) == 0
    ordered = key[order]
    starts = ~same_label | (np.diff(ordered, prepend=np.inf) > tolerance)
    begins = np.flatnonzero(starts)
    ends = np.append(begins[1:], len(order)) - 1
    for wide in np.flatnonzero(ordered[ends] - ordered[begins] > tolerance):  # small steps that add up: rare
        anchor = ordered[begins[wide]]
        for i in range(begins[wide], ends[wide] + 1):
            if ordered[i] - anchor > tolerance:
                starts[i], anchor = True, ordered[i]
    refined = np.empty_like(labels)
    refined[order] = np.cumsum(starts) - 1
    return refined

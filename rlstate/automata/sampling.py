"""Uniform random automata: every accessible (or minimal) DFA of a size is equally likely.

Accessible transition structures with n states over k symbols correspond one to one to pairs of a set partition of kn labels
into n blocks that satisfies a ballot condition, and one more number (Bassino & Nicaud, 2007). Partitions are drawn by a
Boltzmann sampler, those that violate the condition are rejected, and acceptance is a fair coin for each state.
"""

from __future__ import annotations

import numpy as np

from rlstate.automata.dfa import DFA

_STREAM = 0xDFA  # keeps this module's random numbers apart from others with the same seed


def random_dfa(n_states: int, n_symbols: int, seed: int, minimal: bool = True) -> DFA:
    """A DFA drawn uniformly among the minimal (or else all accessible) ones with these numbers of states and symbols.

    States are numbered breadth-first. The same arguments give the same automaton.

    Raises:
        ValueError: fewer than 1 state or symbol.
    """
    for name, value in (("n_states", n_states), ("n_symbols", n_symbols)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} is {value!r}, but must be a whole number of at least 1.")
    rng = np.random.default_rng([_STREAM, int(seed)])
    while True:
        table = random_structure(int(n_states), int(n_symbols), rng)
        dfa = DFA(table, rng.integers(0, 2, n_states).astype(bool)).reachable()
        if not minimal or dfa.minimize().n_states == n_states:
            return dfa


def random_structure(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """int[n, k]: a uniform accessible transition table with start state 0, states numbered depth-first."""
    if k == 1:  # a path whose last state goes anywhere
        return np.append(np.arange(1, n), rng.integers(n))[:, None]
    while True:
        blocks = _random_partition(n, k, rng)  # [kn], numbered from 1 by first occurrence
        height = np.maximum.accumulate(blocks)
        first = np.diff(height, prepend=0) > 0
        heights, boxes = height[~first], blocks[~first]
        if (heights * (k - 1) > np.arange(len(heights))).all():  # height_i ≥ ⌈i / (k − 1)⌉, i from 1
            break
    heights, boxes = np.append(heights, n), np.append(boxes, rng.integers(1, n + 1))

    table = np.zeros((n, k), np.int64)
    column, discovered = 0, 1
    stack = [(0, 0)]  # the next (state, symbol) to give a target, depth-first
    while stack:
        state, symbol = stack.pop()
        if symbol + 1 < k:
            stack.append((state, symbol + 1))
        if discovered < heights[column]:
            table[state, symbol] = discovered
            stack.append((discovered, 0))
            discovered += 1
        else:
            table[state, symbol] = boxes[column] - 1
            column += 1
    return table


def _random_partition(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """int[kn]: the block of each label in a uniform partition into n blocks, blocks numbered from 1 by first occurrence."""
    # Block sizes are zero-truncated Poisson with the mean k that makes their sum kn likely; their law given the sum does
    # not depend on that choice, only the number of tries does.
    rate = float(k)
    for _ in range(100):  # the fixed point of a contraction: the mean of a block's size is then k
        rate = k * (1.0 - np.exp(-rate))
    while True:
        # Zero-truncated by inversion: an exponential arrival that is known to fall within the unit of time comes first.
        first = -np.log1p(-rng.random((64, n)) * (1.0 - np.exp(-rate))) / rate
        sizes = 1 + rng.poisson(rate * (1.0 - first))
        fitting = np.flatnonzero(sizes.sum(1) == k * n)
        if len(fitting):
            break
    labels = rng.permutation(np.repeat(np.arange(n), sizes[fitting[0]]))
    _, first_seen, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_seen))[inverse] + 1

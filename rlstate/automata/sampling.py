"""Uniform random automata: every accessible, minimal or minimal permutation DFA of a size is equally likely.

Accessible transition structures with n states over k symbols correspond one to one to pairs of a set partition of kn labels
into n blocks that satisfies a ballot condition, and one more number (Bassino & Nicaud, 2007). Partitions are drawn by a
Boltzmann sampler, those that violate the condition are rejected, and acceptance is a fair coin for each state.

Permutation automata are too rare to wait for (one in 7000 minimal DFAs with 7 states over 2 symbols, one in 10⁷ over 3),
so they are drawn as permutations. How many there are is known exactly: see the counts below.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cache
from itertools import chain
from math import comb, factorial

import numpy as np

from rlstate.automata.dfa import DFA

_STREAM = 0xDFA  # keeps this module's random numbers apart from others with the same seed
_PERMUTATION_STREAM = 0x9E53


def random_dfa(n_states: int, n_symbols: int, seed: int, minimal: bool = True) -> DFA:
    """A DFA drawn uniformly among the minimal (or else all accessible) ones with these numbers of states and symbols.

    States are numbered breadth-first. The same arguments give the same automaton. This relies on NumPy's
    `default_rng([0xDFA, seed])` and its `random`, `poisson`, `permutation` and `integers`, which NumPy has kept as they are
    but does not promise to keep (NEP 19; a test pins some results). Floats decide the sizes of the partition's blocks only:
    a last digit that another platform's `exp` or `log1p` rounds otherwise matters with probability about 10⁻¹⁵ a block.

    Raises:
        ValueError: fewer than 1 state or symbol, or a negative seed.
    """
    n_states, n_symbols = _size("n_states", n_states), _size("n_symbols", n_symbols)
    rng = np.random.default_rng([_STREAM, _seed(seed)])
    while True:
        table = random_structure(n_states, n_symbols, rng)
        dfa = DFA(table, rng.integers(0, 2, n_states).astype(bool)).reachable()
        if not minimal or dfa.minimize().n_states == n_states:
            return dfa


def random_permutation_dfa(n_states: int, n_symbols: int, seed: int, minimal: bool = True) -> DFA:
    """A permutation automaton drawn uniformly among the minimal (or else all accessible) ones of this size.

    Each symbol is a uniform permutation of the states 0 … n − 1, independent of the others, and acceptance a fair coin for
    each state; the whole is drawn again until all states are reachable from 0 and (if asked) pairwise distinguishable.
    What comes out is uniform over the n-state automata on *numbered* states with start 0 that pass. That is uniform over
    automata up to renaming states as well, since each has exactly (n − 1)! numberings that keep 0: a renaming that
    changes nothing fixes 0, hence the state behind every word, hence every state. States are numbered breadth-first.

    The same arguments give the same automaton on any platform and with any version of NumPy: only the raw 64-bit words of
    PCG64 seeded with `SeedSequence([0x9E53, seed])` are read, which NumPy keeps fixed (NEP 19), and only with integers.

    Raises:
        ValueError: fewer than 1 state or symbol, or a negative seed.
    """
    n, k = _size("n_states", n_states), _size("n_symbols", n_symbols)
    words = raw_words(_PERMUTATION_STREAM, _seed(seed))
    while True:  # some automaton of every size passes: a cycle with one accepting state
        # Over one symbol the n-cycle is the only structure; trial and error would find it once in n tries.
        columns = [[*range(1, n), 0]] if k == 1 else [_random_permutation(words, n) for _ in range(k)]
        accepting = [below(words, 2) == 1 for _ in range(n)]
        # Structure and acceptance are redrawn together: structures with more minimal acceptances count for more.
        dfa = DFA(np.transpose(columns), accepting).reachable()
        if dfa.n_states == n and (not minimal or dfa.minimize().n_states == n):
            return dfa


def raw_words(*key: int) -> Iterator[int]:
    """Uniform 64-bit integers without end, those of NumPy's PCG64 seeded with `SeedSequence(key)`."""
    bits = np.random.PCG64(np.random.SeedSequence(key))
    return chain.from_iterable(iter(lambda: bits.random_raw(64).tolist(), None))


def below(words: Iterator[int], bound: int) -> int:
    """A uniform integer in 0 … bound − 1 (bound ≤ 2⁶⁴) from uniform 64-bit integers, exactly: by rejection."""
    limit = (1 << 64) - (1 << 64) % bound
    while True:
        word = next(words)
        if word < limit:
            return word % bound


def _random_permutation(words: Iterator[int], n: int) -> list[int]:
    order = list(range(n))
    for i in range(n - 1, 0, -1):  # Fisher and Yates
        j = below(words, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


# --- counts, up to renaming states --------------------------------------------------------------------------------


@cache
def count_structures(n_states: int, n_symbols: int) -> int:
    """How many accessible transition structures there are with a given start state (k = 2: OEIS A006689)."""
    return _numbered_accessible(n_states, n_symbols) // factorial(n_states - 1)


@cache
def count_permutation_structures(n_states: int, n_symbols: int) -> int:
    """How many of them are permutations in every symbol: the subgroups of index n in the free group of rank k (Hall 1949)."""
    n, k = n_states, n_symbols
    others = (factorial(n - i) ** (k - 1) * count_permutation_structures(i, k) for i in range(1, n))
    return n * factorial(n) ** (k - 1) - sum(others)


@cache
def count_minimal_permutation_dfas(n_states: int, n_symbols: int) -> int:
    """How many minimal permutation DFAs there are.

    Each of the 2ⁿ acceptances of a structure has a minimal quotient, with d states where d divides n. The structures over a
    given one of d states are the subgroups of index n / d in its own group, free of rank 1 + d (k − 1) (Schreier), so
    that their number does not depend on which it is.
    """
    n, k = n_states, n_symbols
    smaller = (
        count_minimal_permutation_dfas(d, k) * count_permutation_structures(n // d, 1 + d * (k - 1))
        for d in range(1, n)
        if n % d == 0
    )
    return 2**n * count_permutation_structures(n, k) - sum(smaller)


@cache
def _numbered_accessible(n: int, k: int) -> int:
    """Transition tables of n numbered states that the first of them reaches."""
    # The j states that the first one reaches form an accessible table; the others go anywhere.
    reached = (comb(n - 1, j - 1) * n ** (k * (n - j)) * _numbered_accessible(j, k) for j in range(1, n))
    return n ** (k * n) - sum(reached)


# --- the Boltzmann sampler ----------------------------------------------------------------------------------------


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


def _size(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least 1.")
    return int(value)


def _seed(seed: int) -> int:
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if value < 0:
        raise ValueError(f"seed is {seed!r}, but must be a whole number of at least 0.")
    return value

"""Structure of an automaton's transitions: permutations, monoids, star-freeness, synchronization, distances.

Everything is about the reachable part, in its canonical numbering (`DFA.reachable`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlstate.automata.dfa import DFA


class MonoidTooLarge(ValueError):
    """The transition monoid has more than `max_size` elements."""

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        super().__init__(f"The transition monoid has more than {max_size} elements; raise max_size to go on.")

    def __reduce__(self) -> tuple[type[MonoidTooLarge], tuple[int]]:
        return MonoidTooLarge, (self.max_size,)


class TooManySubsets(ValueError):
    """A breadth-first search over subsets of states went beyond its cap."""


@dataclass(frozen=True)
class Monoid:
    """A monoid of transformations of Q states, closed under composition.

    Attributes:
        elements: int[M, Q], the transformations in order of their shortest words; the identity is first.
        generators: int[A], the element of each symbol.
        words: a shortest word of symbol indices for each element.
    """

    elements: np.ndarray
    generators: np.ndarray
    words: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.elements)


def is_permutation(dfa: DFA) -> bool:
    """Whether every symbol is a bijection of the reachable states (paper section 5.5)."""
    return dfa.is_permutation()


def stabilizers(dfa: DFA) -> list[int]:
    """The symbols that are the identity on every reachable state (controllable stabilizers; paper Appendix B)."""
    table = dfa.reachable().transitions
    return np.flatnonzero((table == np.arange(len(table))[:, None]).all(axis=0)).tolist()


# --- monoids ------------------------------------------------------------------------------------------------------


def transition_monoid(dfa: DFA, max_size: int = 100_000) -> Monoid:
    """All transformations of the reachable states that words induce, the empty word's identity included.

    Raises:
        MonoidTooLarge: there are more than `max_size`.
    """
    layers, parents, symbols = [], [], []
    for elements, parent, symbol in _layers(dfa.reachable().transitions, max_size):
        layers.append(elements)
        parents.append(parent)
        symbols.append(symbol)
    elements = np.concatenate(layers)
    words: list[tuple[int, ...]] = [()]
    for parent, symbol in zip(np.concatenate(parents)[1:].tolist(), np.concatenate(symbols)[1:].tolist()):
        words.append((*words[parent], symbol))
    index = {row.tobytes(): i for i, row in enumerate(elements)}
    generators = np.ascontiguousarray(dfa.reachable().transitions.T)
    return Monoid(elements, np.array([index[row.tobytes()] for row in generators]), words)


def syntactic_monoid(dfa: DFA, max_size: int = 100_000) -> Monoid:
    """The transition monoid of the minimal DFA, an invariant of the language.

    Raises:
        MonoidTooLarge: it has more than `max_size` elements.
    """
    return transition_monoid(dfa.minimize(), max_size)


def is_star_free(dfa: DFA, max_size: int = 100_000) -> bool:
    """Whether the language is star-free: its syntactic monoid has no nontrivial subgroup (Schützenberger 1965).

    A nontrivial group is reported as soon as a word shows it, however large the monoid.

    Raises:
        MonoidTooLarge: none among the first `max_size` elements shows a group and there are more.
    """
    for elements, _, _ in _layers(dfa.minimize().transitions, max_size):
        # After Q steps a power sequence m, m², … is in its cycle; aperiodic means that the cycle has length 1.
        power = elements
        for _ in range(int(elements.shape[1]).bit_length()):
            power = np.take_along_axis(power, power, axis=1)
        if not np.array_equal(np.take_along_axis(elements, power, axis=1), power):
            return False
    return True


def _layers(table: np.ndarray, max_size: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """New elements int[m, Q] by word length, with the element and the symbol that each came from."""
    identity = np.arange(len(table))[None, :]
    seen = {identity.tobytes()}
    elements, first = identity, 0
    yield elements, np.array([-1]), np.array([-1])
    while len(elements):
        # products[i, a, q]: q by element i, then by symbol a.
        products = np.ascontiguousarray(table[elements].transpose(0, 2, 1))
        fresh = []
        for i, by_symbol in enumerate(products):
            for symbol, row in enumerate(by_symbol):
                key = row.tobytes()
                if key not in seen:
                    seen.add(key)
                    fresh.append((i, symbol))
            if len(seen) > max_size:
                break
        if fresh:
            parent, symbols = np.array(fresh).T
            first, elements = first + len(elements), products[parent, symbols]
            yield elements, parent + first - len(products), symbols
        if len(seen) > max_size:
            raise MonoidTooLarge(max_size)
        if not fresh:
            return


# --- synchronization ----------------------------------------------------------------------------------------------


def is_synchronizing(dfa: DFA) -> bool:
    """Whether some word (a reset word) leads all reachable states to one; O(R²·A) time and memory for R states."""
    return bool((_merging_symbols(dfa.reachable().transitions) >= -1).all())


def min_image_size(dfa: DFA) -> int:
    """The least number of states that some word leaves of the reachable ones (the automaton's rank).

    Merging any mergeable pair until none is left is exact: on a set without one every word is injective, so its
    size is at most that of every image.
    """
    table = dfa.reachable().transitions
    symbol = _merging_symbols(table)
    states = np.arange(len(table))
    while True:
        here = symbol[np.ix_(states, states)]
        pairs = np.argwhere(here >= 0)
        if not len(pairs):
            return len(states)
        p, q = states[pairs[0]]
        while p != q:
            a = symbol[p, q]
            p, q = table[p, a], table[q, a]
            states = table[states, a]
        states = np.unique(states)


def shortest_reset_word(dfa: DFA, max_subsets: int = 1_000_000) -> tuple[int, ...] | None:
    """A shortest word that leads all reachable states to one, or None where there is none.

    Exact breadth-first search over subsets, exponential in the worst case (the problem is NP-hard; Eppstein 1990).

    Raises:
        TooManySubsets: the search saw more than `max_subsets` subsets.
    """
    table = dfa.reachable().transitions
    if not (_merging_symbols(table) >= -1).all():
        return None
    n_states, n_symbols = table.shape
    # The image of a subset (a bit set) is put together from the images of its bytes.
    bits = [[1 << to for to in column] for column in table.T.tolist()]
    images: list[list[list[int]]] = []
    for column in bits:
        images.append([])
        for byte in range(0, n_states, 8):
            of_byte = [0] * 256
            for value in range(1, 256):
                low = (value & -value).bit_length() - 1
                image = column[byte + low] if byte + low < n_states else 0
                of_byte[value] = of_byte[value & (value - 1)] | image
            images[-1].append(of_byte)
    everything = (1 << n_states) - 1
    came_from: dict[int, tuple[int, int]] = {everything: (0, -1)}
    queue = [everything]
    for subset in queue:
        if subset & (subset - 1) == 0:
            word = []
            while subset != everything:
                subset, symbol = came_from[subset]
                word.append(symbol)
            return tuple(reversed(word))
        values = subset.to_bytes((n_states + 7) // 8, "little")
        for symbol in range(n_symbols):
            image = 0
            for of_byte, value in zip(images[symbol], values):
                image |= of_byte[value]
            if image not in came_from:
                came_from[image] = (subset, symbol)
                queue.append(image)
        if len(queue) > max_subsets:
            raise TooManySubsets(
                f"The search for a shortest reset word of {n_states} states saw more than max_subsets={max_subsets} "
                f"subsets; raise it, or ask is_synchronizing, which is polynomial."
            )
    raise AssertionError("a synchronizing automaton has a reset word")


def _merging_symbols(table: np.ndarray) -> np.ndarray:
    """int[R, R]: first symbol of a shortest word that merges a pair; −1 on the diagonal, −2 where none does."""
    n = len(table)
    symbol = np.full((n, n), -2, dtype=np.int32)
    np.fill_diagonal(symbol, -1)
    # Predecessors of pairs, pairs numbered p·n + q; both orders are kept, so the result is symmetric.
    targets = [(table[:, a][:, None] * n + table[:, a][None, :]).ravel() for a in range(table.shape[1])]
    order = [np.argsort(target, kind="stable") for target in targets]
    first = [np.searchsorted(target[o], np.arange(n * n + 1)) for target, o in zip(targets, order)]
    flat = symbol.ravel()
    frontier = np.arange(n) * (n + 1)
    while len(frontier):
        found = []
        for a in range(table.shape[1]):
            begin, count = first[a][frontier], first[a][frontier + 1] - first[a][frontier]
            # Concatenate the ranges begin … begin + count.
            within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            pairs = order[a][np.repeat(begin, count) + within]
            pairs = pairs[flat[pairs] == -2]
            flat[pairs] = a
            found.append(pairs)
        frontier = np.concatenate(found)
    return symbol


# --- distances ----------------------------------------------------------------------------------------------------


def diameter(dfa: DFA) -> int:
    """The greatest distance (length of a shortest word) from one reachable state to another that it can reach.

    O(R²·A) for R reachable states.
    """
    successors = [list(dict.fromkeys(row)) for row in dfa.reachable().transitions.tolist()]
    greatest = 0
    for source in range(len(successors)):
        seen = bytearray(len(successors))
        seen[source] = 1
        frontier, distance = [source], -1
        while frontier:
            distance += 1
            following = []
            for state in frontier:
                for successor in successors[state]:
                    if not seen[successor]:
                        seen[successor] = 1
                        following.append(successor)
            frontier = following
        greatest = max(greatest, distance)
    return greatest

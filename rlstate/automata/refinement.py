"""Partition refinement: the coarsest congruence of a transition table that refines a labelling of its states."""

from __future__ import annotations

import numpy as np

# Moore's rounds are vectorized, and a random automaton needs about log log Q of them; a long chain needs Q, so
# what is left after this many goes to Hopcroft's algorithm, O(A Q log Q) on every input.
_MOORE_ROUNDS = 16


def coarsest_congruence(transitions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """int[Q], a block number for each state; states share a block iff no word leads them to different labels.

    Args:
        transitions: int[Q, A], complete.
        labels: [Q], of any type that `np.unique` takes.

    Sources: Moore (1956); Hopcroft (1971), with the refinable partition of Valmari and Lehtinen (2008).
    """
    block = _renumber(labels)
    for _ in range(_MOORE_ROUNDS):
        refined = block
        for symbol in range(transitions.shape[1]):
            refined = _renumber(refined * len(block) + block[transitions[:, symbol]])
        if refined.max() == block.max():
            return block
        block = refined
    return _hopcroft(transitions, block)


def _renumber(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _hopcroft(transitions: np.ndarray, block: np.ndarray) -> np.ndarray:
    n_states, n_symbols = transitions.shape
    # Predecessors of state q under symbol a: by_target[a][first[a][q] : first[a][q + 1]].
    by_target = [np.argsort(transitions[:, a], kind="stable").tolist() for a in range(n_symbols)]
    first = [
        np.concatenate([[0], np.cumsum(np.bincount(transitions[:, a], minlength=n_states))]).tolist()
        for a in range(n_symbols)
    ]
    # A block is a segment begin:end of `order`; its marked states are moved to the front, begin:middle.
    order = np.argsort(block, kind="stable").tolist()
    sizes = np.bincount(block)
    end = np.cumsum(sizes).tolist()
    begin = [stop - size for stop, size in zip(end, sizes.tolist())]
    middle = list(begin)
    where = [0] * n_states
    for position, state in enumerate(order):
        where[state] = position
    of = block.tolist()
    waiting = [(b, a) for b in range(len(end)) for a in range(n_symbols)]
    while waiting:
        b, a = waiting.pop()
        sources, offsets = by_target[a], first[a]
        touched = []
        for target in order[begin[b] : end[b]]:
            for state in sources[offsets[target] : offsets[target + 1]]:
                home = of[state]
                if middle[home] == begin[home]:
                    touched.append(home)
                here, there = where[state], middle[home]
                other = order[there]
                order[there], order[here] = state, other
                where[state], where[other] = there, here
                middle[home] = there + 1
        for home in touched:
            left, cut, right = begin[home], middle[home], end[home]
            middle[home] = left
            if cut == right:
                continue
            # The smaller part becomes the new block: every state changes block at most log Q times.
            new = len(end)
            if cut - left <= right - cut:
                begin.append(left)
                end.append(cut)
                begin[home] = middle[home] = cut
            else:
                begin.append(cut)
                end.append(right)
                end[home] = cut
            middle.append(begin[new])
            for state in order[begin[new] : end[new]]:
                of[state] = new
            # Of a block that was not waiting one part is enough, the smaller; of one that was, both are needed, and
            # the larger kept its place in the queue together with its number.
            waiting.extend((new, symbol) for symbol in range(n_symbols))
    return np.array(of, dtype=np.int64)

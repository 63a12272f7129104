"""Complete deterministic finite automata as integer tables: the one data structure everything else stands on."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from rlstate.automata.refinement import coarsest_congruence

_OPERATIONS = {
    "and": lambda p, q: p and q,
    "or": lambda p, q: p or q,
    "xor": lambda p, q: p != q,
    "difference": lambda p, q: p and not q,
}


class DFA:
    """An immutable complete DFA. Words are sequences of symbol indices; `encode` translates names.

    Args:
        transitions: int[Q, A], the successor of each state under each symbol. Copied.
        accepting: bool[Q]. Copied.
        start: the initial state.
        alphabet: A distinct names, "0", "1", … by default (the indices themselves).

    Raises:
        ValueError: the table is not a complete DFA; the sentence says where and what to do.
    """

    __slots__ = ("_hash", "accepting", "alphabet", "start", "transitions")
    transitions: np.ndarray
    accepting: np.ndarray
    start: int
    alphabet: tuple[str, ...]
    _hash: int | None

    def __init__(self, transitions: Any, accepting: Any, start: int = 0, alphabet: Iterable[str] | None = None) -> None:
        table = _integer_table(transitions)
        if (table < 0).any() or (table >= len(table)).any():
            state, symbol = np.argwhere((table < 0) | (table >= len(table)))[0]
            hint = " (for missing transitions use DFA.from_partial)" if table[state, symbol] == -1 else ""
            raise ValueError(
                f"transitions[{state}, {symbol}] is {table[state, symbol]}, but the states are "
                f"0 … {len(table) - 1}{hint}."
            )
        table.flags.writeable = False
        put = object.__setattr__
        put(self, "transitions", table)
        put(self, "accepting", _accepting_vector(accepting, len(table)))
        put(self, "start", _start_state(start, len(table)))
        put(self, "alphabet", _alphabet(alphabet, table.shape[1]))
        put(self, "_hash", None)

    @classmethod
    def from_partial(
        cls,
        transitions: Any,
        accepting: Any,
        start: int = 0,
        alphabet: Iterable[str] | None = None,
        complete: Literal["sink"] | None = None,
    ) -> DFA:
        """A DFA from a table in which −1 marks a missing transition.

        With `complete="sink"` missing transitions lead to a new rejecting absorbing state (numbered Q, only
        added where needed); without it a missing transition is a ValueError that names the first one.
        """
        if complete not in (None, "sink"):
            raise ValueError(f'complete is {complete!r}, but only "sink" or None is known.')
        table = _integer_table(transitions)
        missing = table == -1
        if not missing.any():
            return cls(table, accepting, start, alphabet)
        names = _alphabet(alphabet, table.shape[1])
        if complete is None:
            state, symbol = np.argwhere(missing)[0]
            raise ValueError(
                f"State {state} has no transition on symbol {names[symbol]!r}: give one, or complete the automaton "
                f'with a rejecting sink by complete="sink".'
            )
        sink = len(table)
        accepting = np.append(_accepting_vector(accepting, sink), False)
        table[missing] = sink
        return cls(np.vstack([table, np.full(table.shape[1], sink)]), accepting, start, names)

    # --- words ------------------------------------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        return len(self.transitions)

    @property
    def n_symbols(self) -> int:
        return self.transitions.shape[1]

    def trace(self, word: Iterable[int]) -> np.ndarray:
        """int[len(word) + 1], the states visited by a word of symbol indices, the start state first."""
        if isinstance(word, str):
            raise ValueError(f"The word {word!r} is a string: words are symbol indices, see DFA.encode.")
        symbols = np.asarray(word if isinstance(word, np.ndarray) else list(word))
        if symbols.size == 0:
            symbols = symbols.astype(np.int64)
        if symbols.ndim != 1 or not np.issubdtype(symbols.dtype, np.integer):
            raise ValueError("A word is a flat sequence of symbol indices (integers); DFA.encode translates names.")
        outside = (symbols < 0) | (symbols >= self.n_symbols)
        if outside.any():
            at = int(np.argmax(outside))
            raise ValueError(
                f"The word has symbol {symbols[at]} at position {at}, but the symbols are 0 … {self.n_symbols - 1}."
            )
        states = np.empty(len(symbols) + 1, dtype=np.int64)
        states[0] = self.start
        for i, symbol in enumerate(symbols):
            states[i + 1] = self.transitions[states[i], symbol]
        return states

    def run(self, word: Iterable[int]) -> int:
        """The state after a word of symbol indices."""
        return int(self.trace(word)[-1])

    def accepts(self, word: Iterable[int]) -> bool:
        """Whether a word of symbol indices is in the language."""
        return bool(self.accepting[self.run(word)])

    def encode(self, word: str | Iterable[str]) -> tuple[int, ...]:
        """Symbol indices of a word given in alphabet names.

        A string is read character by character, or, if some name is longer, as names separated by white space.
        """
        if isinstance(word, str):
            word = list(word) if all(len(name) == 1 for name in self.alphabet) else word.split()
        index = {name: i for i, name in enumerate(self.alphabet)}
        symbols = []
        for at, name in enumerate(word):
            if name not in index:
                raise ValueError(
                    f"Unknown symbol {name!r} at position {at}: the alphabet is {_listing(self.alphabet)}."
                )
            symbols.append(index[name])
        return tuple(symbols)

    def decode(self, word: Iterable[int]) -> tuple[str, ...]:
        """Alphabet names of a word of symbol indices."""
        return tuple(self.alphabet[symbol] for symbol in word)

    # --- canonical forms --------------------------------------------------------------------------------------

    def reachable_states(self) -> np.ndarray:
        """int[R], the states that some word reaches, in breadth-first order (symbols in alphabet order)."""
        rows = self.transitions.tolist()
        seen = bytearray(self.n_states)
        seen[self.start] = 1
        order = [self.start]
        for state in order:  # grows while it is read: `order` is the queue
            for successor in rows[state]:
                if not seen[successor]:
                    seen[successor] = 1
                    order.append(successor)
        return np.array(order, dtype=np.int64)

    def reachable(self) -> DFA:
        """The reachable part, renumbered breadth-first from state 0; the same for every numbering of the states."""
        order = self.reachable_states()
        number = np.full(self.n_states, -1, dtype=np.int64)
        number[order] = np.arange(len(order))
        return DFA(number[self.transitions[order]], self.accepting[order], 0, self.alphabet)

    def minimize(self) -> DFA:
        """The minimal DFA in breadth-first numbering: equal languages over one alphabet give identical arrays."""
        trimmed = self.reachable()
        block = coarsest_congruence(trimmed.transitions, trimmed.accepting)
        _, representative = np.unique(block, return_index=True)
        return DFA(
            block[trimmed.transitions[representative]], trimmed.accepting[representative], block[0], self.alphabet
        ).reachable()

    def isomorphic(self, other: DFA, minimize: bool = False) -> bool:
        """Whether the reachable parts (with `minimize`, the minimal DFAs) are equal up to state numbering."""
        return self.minimize() == other.minimize() if minimize else self.reachable() == other.reachable()

    def digest(self) -> str:
        """SHA-256 (hex) of the reachable part in canonical numbering and the alphabet: the content's name."""
        canonical = self.reachable()
        sha = hashlib.sha256(repr((canonical.transitions.shape, self.alphabet)).encode("utf-8", "surrogatepass"))
        sha.update(canonical.transitions.astype("<i8").tobytes())
        sha.update(canonical.accepting.tobytes())
        return sha.hexdigest()

    # --- languages --------------------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether no word is accepted."""
        return not self.accepts_some()

    def accepts_some(self) -> bool:
        """Whether some word is accepted."""
        return bool(self.accepting[self.reachable_states()].any())

    def complement(self) -> DFA:
        """The DFA of the words that this one rejects."""
        return DFA(self.transitions, ~self.accepting, self.start, self.alphabet)

    def product(self, other: DFA, op: Literal["and", "or", "xor", "difference"]) -> DFA:
        """The reachable product, accepting a word iff `op` holds of the two answers, breadth-first numbered."""
        if op not in _OPERATIONS:
            raise ValueError(f"op is {op!r}, but the operations are {', '.join(_OPERATIONS)}.")
        alphabet = self._common_alphabet(other)
        holds, mine, theirs = _OPERATIONS[op], self.transitions.tolist(), other.transitions.tolist()
        number = {(self.start, other.start): 0}
        pairs = [(self.start, other.start)]
        rows = []
        for p, q in pairs:
            row = []
            for pair in zip(mine[p], theirs[q]):
                target = number.setdefault(pair, len(pairs))
                if target == len(pairs):
                    pairs.append(pair)
                row.append(target)
            rows.append(row)
        accepting = [bool(holds(self.accepting[p], other.accepting[q])) for p, q in pairs]
        return DFA(rows, accepting, 0, alphabet)

    def equivalent(self, other: DFA) -> tuple[int, ...] | None:
        """None if the languages are equal, otherwise a shortest word on which they differ.

        The empty word () is a valid counterexample, so test the result with `is None`. Which of several shortest
        words comes back does not depend on how the states are numbered.
        """
        self._common_alphabet(other)
        # Hopcroft and Karp (1971): merge the states that must be equal. Breadth-first order keeps the first
        # difference shortest: a pair implied by merged pairs can only differ on words that also split one of them.
        offset = self.n_states
        rows = self.transitions.tolist() + (other.transitions + offset).tolist()
        accepting = np.concatenate([self.accepting, other.accepting]).tolist()
        parent = list(range(len(rows)))

        def find(state: int) -> int:
            while parent[state] != state:
                parent[state] = parent[parent[state]]
                state = parent[state]
            return state

        first = (self.start, other.start + offset)
        parent[first[1]] = first[0]
        came_from: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {first: None}
        queue = deque([first])
        while queue:
            pair = queue.popleft()
            if accepting[pair[0]] != accepting[pair[1]]:
                word = []
                step = came_from[pair]
                while step is not None:
                    pair, symbol = step
                    word.append(symbol)
                    step = came_from[pair]
                return tuple(reversed(word))
            for symbol, successor in enumerate(zip(rows[pair[0]], rows[pair[1]])):
                p, q = find(successor[0]), find(successor[1])
                if p != q:
                    parent[q] = p
                    came_from[successor] = (pair, symbol)
                    queue.append(successor)
        return None

    def is_permutation(self) -> bool:
        """Whether every symbol is a bijection of the reachable states (a group language; paper section 5.5)."""
        table = self.reachable().transitions
        return bool((np.sort(table, axis=0) == np.arange(len(table))[:, None]).all())

    def with_alphabet(self, alphabet: Sequence[str]) -> DFA:
        """The same language with the symbols in another order; `alphabet` must hold the same names."""
        names = tuple(alphabet)
        if sorted(names) != sorted(self.alphabet):
            raise ValueError(
                f"The alphabet {_listing(names)} does not hold the same names as {_listing(self.alphabet)}."
            )
        return DFA(self.transitions[:, self.encode(names)], self.accepting, self.start, names)

    def _common_alphabet(self, other: DFA) -> tuple[str, ...]:
        """Names for both. Default names are bare indices, so a DFA without names of its own goes with any other."""
        mine, theirs = self.alphabet, other.alphabet
        if mine == theirs:
            return mine
        if len(mine) == len(theirs) and set(mine) != set(theirs):
            default = _alphabet(None, len(mine))
            if default in (mine, theirs):
                return theirs if mine == default else mine
        remedy = " (reorder one with with_alphabet)" if sorted(mine) == sorted(theirs) else ""
        raise ValueError(f"The alphabets differ: {_listing(mine)} and {_listing(theirs)}{remedy}.")

    # --- value semantics --------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A DFA is immutable: cannot set {name!r}.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A DFA is immutable: cannot delete {name!r}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DFA):
            return NotImplemented
        return (
            self.start == other.start
            and self.alphabet == other.alphabet
            and np.array_equal(self.transitions, other.transitions)
            and np.array_equal(self.accepting, other.accepting)
        )

    def __hash__(self) -> int:
        if self._hash is not None:
            return self._hash
        value = hash((self.transitions.tobytes(), self.accepting.tobytes(), self.start, self.alphabet))
        object.__setattr__(self, "_hash", value)
        return value

    def __reduce__(self) -> tuple[type[DFA], tuple[Any, ...]]:
        # Through the constructor: NumPy forgets `writeable=False` when it unpickles.
        return DFA, (self.transitions, self.accepting, self.start, self.alphabet)

    def __repr__(self) -> str:
        n_accepting = int(self.accepting.sum())
        return (
            f"DFA({self.n_states} states, {n_accepting} accepting, start {self.start}, over {_listing(self.alphabet)})"
        )


def _integer_table(transitions: Any) -> np.ndarray:
    """A fresh int64[Q, A] copy, with Q, A ≥ 1."""
    try:
        table = np.array(transitions)
    except ValueError as error:
        raise ValueError("transitions must be a rectangular table int[states, symbols]; its rows differ.") from error
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"transitions has shape {table.shape}, but must be int[states, symbols] with at least one of each."
        )
    if not np.issubdtype(table.dtype, np.integer):
        raise ValueError(f"transitions holds {table.dtype} values, but states are integers 0 … {len(table) - 1}.")
    return table.astype(np.int64)


def _accepting_vector(accepting: Any, n_states: int) -> np.ndarray:
    vector = np.array(accepting)
    if vector.dtype != np.bool_ or vector.shape != (n_states,):
        raise ValueError(
            f"accepting has type {vector.dtype} and shape {vector.shape}, but must be one bool for each of the "
            f"{n_states} states (for a set of states: [q in states for q in range({n_states})])."
        )
    vector.flags.writeable = False
    return vector


def _start_state(start: Any, n_states: int) -> int:
    if isinstance(start, (bool, np.bool_)) or not isinstance(start, (int, np.integer)) or not 0 <= start < n_states:
        raise ValueError(f"start is {start!r}, but the states are 0 … {n_states - 1}.")
    return int(start)


def _alphabet(alphabet: Iterable[str] | None, n_symbols: int) -> tuple[str, ...]:
    if alphabet is None:
        return tuple(str(i) for i in range(n_symbols))
    names = tuple(alphabet)
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"alphabet holds {name!r}, but symbol names are non-empty strings.")
    if len(names) != n_symbols:
        raise ValueError(f"alphabet has {len(names)} names, but transitions has {n_symbols} columns, one a symbol.")
    if len(set(names)) < n_symbols:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"alphabet names {twice!r} twice: every symbol needs a name of its own.")
    return names


def _listing(names: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{{{shown}}}" if len(names) <= limit else f"{{{shown}, … {len(names)} symbols}}"

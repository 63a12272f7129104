"""From named states and labelled edges, as files have them, to a DFA; with outputs, to the DFA of chosen outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rlstate.automata.dfa import DFA

DEFAULT_ACCEPT = ("1", "true", "True", "accept")


class Edge(NamedTuple):
    """A transition of a file: `output` is a Mealy machine's, `where` says where it stands ("line 7")."""

    source: str
    symbol: str
    target: str
    where: str
    output: str | None = None


def assemble(
    where: str,
    states: Sequence[str],
    start: str,
    accepting: Collection[str],
    edges: Iterable[Edge],
    alphabet: Iterable[str] | None = None,
    complete: bool = False,
) -> DFA:
    """The DFA of deterministic edges; states are numbered as listed, symbols as given or as they first appear.

    Raises:
        ValueError: beginning with `where`; non-deterministic or missing transitions name state and symbol.
    """
    table, symbols = _by_state(where, states, edges, alphabet)
    if not complete:
        _check_complete(where, states, table, symbols)
    number = {state: i for i, state in enumerate(states)}
    targets = [[number[row[s].target] if s in row else -1 for s in symbols] for row in map(table.__getitem__, states)]
    chosen = set(accepting)
    accepts = np.array([state in chosen for state in states], dtype=bool)
    return DFA.from_partial(targets, accepts, number[start], symbols, complete="sink" if complete else None)


def assemble_mealy(
    where: str,
    states: Sequence[str],
    start: str,
    accept: str | Collection[str] | None,
    edges: Sequence[Edge],
    alphabet: Iterable[str] | None = None,
    complete: bool = False,
) -> DFA:
    """The DFA that accepts a word iff the Mealy machine's last output is in `accept`; it rejects the empty word.

    A state is split by whether the output on the way in was accepted; only reachable halves are built.
    """
    outputs = list(dict.fromkeys(str(edge.output) for edge in edges))
    if accept is None:
        raise ValueError(
            f"{where}: this is a Mealy machine (edges labelled input/output). Say which outputs count as accepting, "
            f"as in accept={outputs[:1]!r}; a word is then accepted iff its last output is one of them. "
            f"The outputs are {_some(outputs)}."
        )
    chosen = accepted_outputs(where, accept, outputs)
    table, symbols = _by_state(where, states, edges, alphabet)
    halves = [(start, False)]
    seen = set(halves)
    split = []
    for state, bit in halves:
        if not complete:
            _check_complete(where, [state], table, symbols)
        for edge in table[state].values():
            target = (edge.target, edge.output in chosen)
            if target not in seen:
                seen.add(target)
                halves.append(target)
            split.append(Edge(_half(state, bit), edge.symbol, _half(*target), edge.where))
    names = [_half(*half) for half in halves]
    return assemble(where, names, names[0], [_half(*half) for half in halves if half[1]], split, symbols, complete)


def accepted_outputs(where: str, accept: str | Collection[str] | None, outputs: Sequence[str]) -> set[str]:
    """The outputs that count as accepting; without `accept`, the usual words for yes if one of them occurs."""
    if accept is None:
        chosen = {output for output in outputs if output in DEFAULT_ACCEPT}
        if not chosen:
            raise ValueError(
                f"{where}: this is a Moore machine (states carry outputs) and none of its outputs is one of "
                f"{', '.join(DEFAULT_ACCEPT)}. Say which outputs count as accepting, as in accept={outputs[:1]!r}; "
                f"the outputs are {_some(outputs)}."
            )
        return chosen
    chosen = {accept} if isinstance(accept, str) else {str(output) for output in accept}
    unknown = sorted(chosen - set(outputs))
    if unknown or not chosen:
        named = f"names the output {unknown[0]!r}, which does not occur" if unknown else "is empty"
        raise ValueError(f"{where}: accept {named}; the outputs are {_some(outputs)}.")
    return chosen


def _by_state(
    where: str, states: Sequence[str], edges: Iterable[Edge], alphabet: Iterable[str] | None
) -> tuple[dict[str, dict[str, Edge]], list[str]]:
    """Edges by state and symbol, and the symbols in order."""
    table: dict[str, dict[str, Edge]] = {state: {} for state in states}
    found: dict[str, None] = {}
    known = None if alphabet is None else list(alphabet)
    allowed = None if known is None else set(known)
    for edge in edges:
        if allowed is not None and edge.symbol not in allowed:
            raise ValueError(
                f"{where}: {edge.where}: the symbol {edge.symbol!r} is not in the alphabet {_some(known or [])}."
            )
        earlier = table[edge.source].setdefault(edge.symbol, edge)
        if (earlier.target, earlier.output) != (edge.target, edge.output):
            raise ValueError(
                f"{where}: {edge.where}: not deterministic: state {edge.source!r} has two transitions on "
                f"{edge.symbol!r}, to {_destination(earlier)} and to {_destination(edge)}; remove one or determinize."
            )
        found[edge.symbol] = None
    symbols = list(found) if known is None else known
    if not symbols:
        raise ValueError(f"{where}: there are no transitions, so there is no alphabet; give one by alphabet=[...].")
    return table, symbols


def _check_complete(
    where: str, states: Iterable[str], table: dict[str, dict[str, Edge]], symbols: Sequence[str]
) -> None:
    for state in states:
        for symbol in symbols:
            if symbol not in table[state]:
                raise ValueError(
                    f"{where}: state {state!r} has no transition on {symbol!r}; add it, or load with complete=True, "
                    f"which sends missing transitions to a rejecting sink."
                )


def _destination(edge: Edge) -> str:
    return repr(edge.target) if edge.output is None else f"{edge.target!r} with output {edge.output!r}"


def _half(state: str, accepted: bool) -> str:
    return f"{state}|{accepted:d}"


def _some(names: Sequence[str], limit: int = 12) -> str:
    more = f", … ({len(names)} in all)" if len(names) > limit else ""
    return ", ".join(repr(name) for name in names[:limit]) + more

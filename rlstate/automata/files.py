"""Automata in and out of files: JSON, Graphviz DOT, LearnLib's .dfa, stamina's .adl, regular expressions."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rlstate.automata.assembly import Edge, assemble
from rlstate.automata.dfa import DFA
from rlstate.automata.dot import read_dot, write_dot
from rlstate.automata.regex import from_regex

_BY_SUFFIX = {
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".dfa": "dfa",
    ".adl": "adl",
    ".regex": "regex",
}
_KNOWN = "json (.json), dot (.dot, .gv), dfa (.dfa), adl (.adl) and regex (.regex), each also with .gz"


def load(
    source: str | os.PathLike[str],
    format: str | None = None,
    accept: str | Collection[str] | None = None,
    complete: bool | Literal["sink"] = False,
    alphabet: Iterable[str] | None = None,
) -> DFA:
    """The DFA in a file, or in a text if `format` is given.

    Args:
        source: a path; with `format` also the text itself, where no such file exists.
        format: "json", "dot", "dfa", "adl" or "regex"; by default what the file's name ends in says. `.gz` is undone.
        accept: for Moore machines the outputs that count as accepting (by default "1", "true", "True" or "accept",
            if one occurs). For Mealy machines, where it is required, a word is accepted iff its last output is in
            `accept`; the empty word is rejected.
        complete: send missing transitions to a rejecting sink; otherwise they are an error.
        alphabet: the symbols in the order wanted, for formats that leave it open; by default as they first appear
            (in a regular expression: sorted; in .dfa: "0", "1", …).

    **JSON**: `{"alphabet": ["a", "b"], "start": 0, "accepting": [1], "transitions": [[1, 0], [1, 1]]}`; rows are
    states, `accepting` lists states or has one true/false for each, null or −1 is a missing transition. With named
    states: `{"start": "idle", "accepting": ["busy"], "transitions": {"idle": {"a": "busy"}, "busy": {"a": "idle"}}}`.

    **DOT**, as LearnLib and AALpy write it: a node without incoming edges whose own edges have no label marks the
    initial state (`__start0 -> s0`); `shape=doublecircle` accepts. If no state is a doublecircle and every edge's
    label has a "/", it is a Mealy machine ("input/output"); otherwise "/" is part of the symbol. If every state's
    label is "name|output" (or no state is a doublecircle and labels repeat: the label is the output) it is a Moore
    machine. A label may hold several symbols, one a line or with commas, unless `alphabet` has it as one symbol.

    **.dfa** (LearnLib): "N K", N accept bits, N·K successors; state 0 is initial.
    **.adl** (stamina toolbox): "N M", N lines "state initial accepting", M lines "from to symbol".

    Raises:
        ValueError: one sentence that names the file, the line or element, and the remedy.
    """
    if complete not in (False, True, "sink"):
        raise ValueError(f'complete is {complete!r}, but must be true or false ("sink" is the same as true).')
    where, text, format = _text_of(source, format)
    names = None if alphabet is None else list(alphabet)
    if accept is not None and format != "dot":
        raise ValueError(f"{where}: accept= is for Moore and Mealy machines in DOT; leave it out for {format}.")
    try:
        if format == "json":
            return _read_json(text, where, bool(complete), names)
        if format == "dot":
            return read_dot(text, where, accept, bool(complete), names)
        if format == "dfa":
            return _read_dfa(text, where, names)
        if format == "adl":
            return _read_adl(text, where, bool(complete), names)
        return from_regex(text if text is source else text.strip("\r\n"), names)  # a file ends with a newline
    except ValueError as error:
        if str(error).startswith(where):
            raise
        raise ValueError(f"{where}: {error}") from error


def save(dfa: DFA, path: str | os.PathLike[str]) -> None:
    """Write a DFA in the format of the path's ending: .json (exact), .dot/.gv, .dfa; each also with .gz.

    `load` gives back the same language over the same alphabet. `.dfa` can store neither names nor an initial state
    other than 0: states are renumbered, an alphabet with names is a ValueError.
    """
    path = Path(path)
    format = _format_of(path)
    if format == "json":
        text = _json_text(dfa)
    elif format == "dot":
        text = write_dot(dfa)
    elif format == "dfa":
        text = _dfa_text(dfa, path)
    else:
        raise ValueError(f"{path}: cannot write {format}; save as .json, .dot or .dfa.")
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _text_of(source: str | os.PathLike[str], format: str | None) -> tuple[str, str, str]:
    """(where, text, format) of what `load` was given."""
    if format is not None and format not in _BY_SUFFIX.values():
        raise ValueError(f"Unknown automaton format {format!r}; the formats are {_KNOWN}.")
    if isinstance(source, str) and format is not None and not _is_file(source):
        looks_like_path = format != "regex" and source.endswith((*_BY_SUFFIX, ".gz")) and "\n" not in source
        if not looks_like_path:
            return f"the given {format} text", source, format
    path = Path(source)
    if format is None:
        format = _format_of(path)
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return str(path), data.decode("utf-8"), format
    except FileNotFoundError:
        raise ValueError(f"There is no automaton file {path}.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text (byte {error.start}).") from error
    except (OSError, EOFError) as error:
        raise ValueError(f"{path}: cannot be read: {error}.") from error


def _is_file(source: str) -> bool:
    try:
        return os.path.isfile(source)
    except ValueError:  # a text with NUL characters is no path
        return False


def _format_of(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in _BY_SUFFIX:
        ending = f"ends in {suffix or path.suffix!r}" if path.suffix else "has no ending"
        raise ValueError(f"{path}: the name {ending}, which says no automaton format; the formats are {_KNOWN}.")
    return _BY_SUFFIX[suffix.lower()]


# --- JSON ---------------------------------------------------------------------------------------------------------


def _read_json(text: str, where: str, complete: bool, alphabet: list[str] | None) -> DFA:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise ValueError(f"{where}: the key {twice!r} occurs twice in one object: a DFA has one entry for each.")
        return result

    try:
        content = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: line {error.lineno}: not JSON: {error.msg}.") from error
    except RecursionError:
        raise ValueError(f"{where}: not an automaton: JSON nested too deep.") from None
    if not isinstance(content, dict):
        raise ValueError(f'{where}: expected an object with "transitions" and "accepting", found {_kind(content)}.')
    unknown = sorted(set(content) - {"alphabet", "transitions", "accepting", "start"})
    absent = [key for key in ("transitions", "accepting") if key not in content]
    if absent or unknown:
        problem = f"{absent[0]!r} is missing" if absent else f"{unknown[0]!r} is unknown"
        raise ValueError(f"{where}: the key {problem}; the keys are alphabet, transitions, accepting and start.")
    names = content.get("alphabet")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError(f'{where}: "alphabet" must be a list of strings, found {_kind(names)}.')
    transitions, accepting = content["transitions"], content["accepting"]
    if not isinstance(accepting, list):
        raise ValueError(f'{where}: "accepting" must be a list, found {_kind(accepting)}.')
    if isinstance(transitions, dict):
        machine = _named_states(where, transitions, accepting, content.get("start"), names or alphabet, complete)
    else:
        machine = _numbered_states(where, transitions, accepting, content.get("start", 0), names or alphabet, complete)
    return machine if alphabet is None else machine.with_alphabet(alphabet)


def _named_states(
    where: str, transitions: dict[str, Any], accepting: list[Any], start: Any, names: list[str] | None, complete: bool
) -> DFA:
    edges = []
    for state, row in transitions.items():
        if not isinstance(row, dict):
            raise ValueError(f"{where}: state {state!r}: expected an object {{symbol: state}}, found {_kind(row)}.")
        edges += [Edge(state, symbol, to, f"state {state!r}") for symbol, to in row.items() if to is not None]
    mentioned = [("start", start)] + [("accepting", state) for state in accepting]
    mentioned += [(f"the transition of {edge.source!r} on {edge.symbol!r}", edge.target) for edge in edges]
    for what, state in mentioned:
        if not isinstance(state, str) or state not in transitions:
            raise ValueError(f"{where}: {what} names the state {state!r}, which is not one of the keys of transitions.")
    return assemble(where, list(transitions), start, accepting, edges, names, complete)


def _numbered_states(
    where: str, rows: Any, accepting: list[Any], start: Any, names: list[str] | None, complete: bool
) -> DFA:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise ValueError(f'{where}: "transitions" must be a list of rows, one a state, found {_kind(rows)}.')
    for state, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{where}: state {state} has {len(row)} transitions, but state 0 has {len(rows[0])}.")
        for symbol, to in enumerate(row):
            if to is not None and (isinstance(to, bool) or not isinstance(to, int) or not -1 <= to < len(rows)):
                raise ValueError(
                    f"{where}: transitions[{state}][{symbol}] is {to!r}, but the states are 0 … {len(rows) - 1} (null "
                    f"where there is no transition)."
                )
    if all(isinstance(state, bool) for state in accepting) and len(accepting) == len(rows):
        accepts = np.array(accepting, dtype=bool)
    else:
        for state in accepting:
            if isinstance(state, bool) or not isinstance(state, int) or not 0 <= state < len(rows):
                raise ValueError(
                    f'{where}: "accepting" holds {json.dumps(state)}, but must list states 0 … {len(rows) - 1} or have '
                    f"one true/false for each of the {len(rows)} states."
                )
        accepts = np.isin(np.arange(len(rows)), accepting)
    table = [[-1 if to is None else to for to in row] for row in rows]
    return DFA.from_partial(table, accepts, start, names, complete="sink" if complete else None)


def _json_text(dfa: DFA) -> str:
    rows = ",\n".join(f"    {json.dumps(row)}" for row in dfa.transitions.tolist())
    return (
        f'{{\n  "alphabet": {json.dumps(dfa.alphabet)},\n  "start": {dfa.start},\n'
        f'  "accepting": {json.dumps(np.flatnonzero(dfa.accepting).tolist())},\n  "transitions": [\n{rows}\n  ]\n}}\n'
    )


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: f"the string {value!r:.40}", type(None): "null"}
    return kinds.get(type(value), repr(value))


# --- LearnLib's .dfa and the stamina toolbox's .adl ---------------------------------------------------------------


def _read_dfa(text: str, where: str, alphabet: list[str] | None) -> DFA:
    words = text.split()
    numbers = []
    for at, word in enumerate(words):
        if not word.isascii() or not word.removeprefix("-").isdigit():
            raise ValueError(f"{where}: number {at + 1} is {word!r}, but the format holds integers only.")
        numbers.append(int(word))
    n, k = (*numbers[:2], 0, 0)[:2]
    if n < 1 or k < 1 or len(numbers) != 2 + n + n * k:
        raise ValueError(
            f'{where}: expected "N K", N accept bits and N·K successors with N, K ≥ 1; N = {n} and K = {k} make '
            f"{2 + n + n * k} numbers, found {len(numbers)}."
        )
    bits, table = numbers[2 : 2 + n], numbers[2 + n :]
    for state, bit in enumerate(bits):
        if bit not in (0, 1):
            raise ValueError(f"{where}: the accept bit of state {state} is {bit}, but must be 0 or 1.")
    for at, to in enumerate(table):
        if not 0 <= to < n:
            raise ValueError(
                f"{where}: state {at // k}, symbol {at % k}: successor {to}, but the states are 0 … {n - 1}."
            )
    return DFA(np.array(table).reshape(n, k), np.array(bits) == 1, 0, alphabet)


def _dfa_text(dfa: DFA, path: Path) -> str:
    if dfa.alphabet != tuple(str(i) for i in range(dfa.n_symbols)):
        raise ValueError(
            f"{path}: LearnLib's .dfa stores no symbol names and this alphabet starts with {dfa.alphabet[0]!r}; save "
            f"as .json or .dot, or drop the names by DFA(d.transitions, d.accepting, d.start)."
        )
    # The initial state is 0 by convention: it and state 0 change places.
    swap = np.arange(dfa.n_states)
    swap[[0, dfa.start]] = [dfa.start, 0]
    rows = [" ".join(map(str, row)) for row in swap[dfa.transitions[swap]].tolist()]
    bits = " ".join(str(int(accepting)) for accepting in dfa.accepting[swap])
    return "\n".join([f"{dfa.n_states} {dfa.n_symbols}", bits, *rows]) + "\n"


def _read_adl(text: str, where: str, complete: bool, alphabet: list[str] | None) -> DFA:
    lines = [(number, line.split("#")[0].split()) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, fields) for number, fields in lines if fields]
    if not lines or len(lines[0][1]) != 2 or not all(field.isdecimal() for field in lines[0][1]):
        raise ValueError(
            f'{where}: expected "N M" first, the numbers of states and edges (is this a sample of words?).'
        )
    n, m = (int(field) for field in lines[0][1])
    if n < 1 or len(lines) != 1 + n + m:
        raise ValueError(f"{where}: expected {n} ≥ 1 states and {m} edges, a line each, found {len(lines) - 1} lines.")
    initial, accepting, states = [], [], []
    for number, fields in lines[1 : n + 1]:
        flags = [flag.lower() for flag in fields[1:]]
        if len(fields) not in (3, 4) or not set(flags) <= {"true", "false"}:
            raise ValueError(f'{where}: line {number}: expected "state initial accepting", such as "0 true false".')
        states.append(fields[0])
        if flags[0] == "true":
            initial.append(fields[0])
        if flags[1] == "true":
            accepting.append(fields[0])
    if len(set(states)) < n:
        raise ValueError(f"{where}: a state is listed twice; every state has one line.")
    if len(initial) != 1:
        raise ValueError(f"{where}: there are {len(initial)} initial states, but a DFA has exactly one.")
    edges = []
    for number, fields in lines[n + 1 :]:
        if len(fields) != 3 or fields[0] not in states or fields[1] not in states:
            raise ValueError(f'{where}: line {number}: expected "from to symbol" between the states listed above.')
        edges.append(Edge(fields[0], fields[2], fields[1], f"line {number}"))
    return assemble(where, states, initial[0], accepting, edges, alphabet, complete)

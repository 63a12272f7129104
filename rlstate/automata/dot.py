"""Graphviz DOT, as LearnLib and AALpy write automata in it: DFAs, Moore machines and Mealy machines."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rlstate.automata.assembly import Edge, accepted_outputs, assemble, assemble_mealy
from rlstate.automata.dfa import DFA

_NO_START = 'mark the initial state by a node without a shape: __start0 [label="", shape=none]; __start0 -> {};'


@dataclass
class Graph:
    """A parsed digraph: attributes of each node (defaults applied) and edges (source, target, attributes, line)."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str], int]] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)


# --- meaning ------------------------------------------------------------------------------------------------------


def read_dot(
    text: str,
    where: str,
    accept: str | Collection[str] | None = None,
    complete: bool = False,
    alphabet: Iterable[str] | None = None,
) -> DFA:
    """The DFA of a DOT digraph; see `rlstate.automata.load` for the conventions and what is raised."""
    graph = parse(text, where)
    start, markers = _initial_state(graph, where)
    states = [node for node in graph.nodes if node not in markers]
    labelled = [edge for edge in graph.edges if edge[0] not in markers]
    for source, target, attributes, line in labelled:
        if not _label(attributes):
            raise ValueError(
                f"{where}: line {line}: the edge {source!r} -> {target!r} has no label; a DFA has no empty transitions."
            )
    double = [state for state in states if _is_double(graph.nodes[state])]
    if "alphabet" in graph.attributes:  # written by write_dot: certainly a DFA, and labels are whole symbols
        names = _saved_alphabet(graph.attributes["alphabet"], where)
        _no_accept(accept, where)
        edges = [Edge(s, _label(a), t, f"line {line}") for s, t, a, line in labelled]
        machine = assemble(where, states, start, double, edges, names, complete)
        return machine if alphabet is None else machine.with_alphabet(tuple(alphabet))
    alphabet = None if alphabet is None else tuple(alphabet)
    if not double and labelled and all("/" in _label(attributes) for _, _, attributes, _ in labelled):
        edges = []
        for source, target, attributes, line in labelled:
            symbol, output = (part.strip() for part in _label(attributes).split("/", 1))
            edges.append(Edge(source, symbol, target, f"line {line}", output))
        return assemble_mealy(where, states, start, accept, edges, alphabet, complete)
    edges = [
        Edge(source, symbol, target, f"line {line}")
        for source, target, attributes, line in labelled
        for symbol in _symbols(_label(attributes), alphabet or ())
    ]
    outputs = _outputs(graph, states)
    if outputs and (accept is not None or not double):
        chosen = accepted_outputs(where, accept, list(dict.fromkeys(outputs.values())))
        double = [state for state in states if outputs[state] in chosen]
    elif not double and _labels_are_outputs(graph, states, accept):
        outputs = {state: _label(graph.nodes[state]).strip() for state in states}
        chosen = accepted_outputs(where, accept, list(dict.fromkeys(outputs.values())))
        double = [state for state in states if outputs[state] in chosen]
    else:
        _no_accept(accept, where)
    return assemble(where, states, start, double, edges, alphabet, complete)


def _initial_state(graph: Graph, where: str) -> tuple[str, set[str]]:
    """The initial state, and the nodes that only mark it: no edge leads to them, and theirs have no label.

    A name that begins with __start says it too: AALpy writes it so, and one of its models labels the arrow.
    """
    entered = {target for _, target, _, _ in graph.edges}
    labelled = {source for source, _, attributes, _ in graph.edges if _label(attributes)}
    arrows = [
        (s, t) for s, t, _, _ in graph.edges if s not in entered and (s not in labelled or s.startswith("__start"))
    ]
    targets = list(dict.fromkeys(target for _, target in arrows))
    if not targets:
        states = [node for node in graph.nodes if not node.startswith("__start")]
        if not states:
            raise ValueError(f"{where}: the graph has no states.")
        raise ValueError(f"{where}: there is no initial state; {_NO_START.format(_quoted(states[0]))}")
    if len(targets) > 1:
        raise ValueError(
            f"{where}: there are {len(targets)} initial states ({targets[0]!r} and {targets[1]!r}), but a DFA has "
            f"one; keep one start arrow."
        )
    return targets[0], {source for source, _ in arrows}


def _outputs(graph: Graph, states: list[str]) -> dict[str, str]:
    """A Moore machine's outputs where every state is labelled "name|output" or "name/output", otherwise empty."""
    for separator in "|/":
        parts = {state: _label(graph.nodes[state]).strip().strip("{}").split(separator) for state in states}
        if all(len(part) == 2 for part in parts.values()):
            return {state: part[1].strip() for state, part in parts.items()}
    return {}


def _labels_are_outputs(graph: Graph, states: list[str], accept: object) -> bool:
    """States' names tell them apart; labels that repeat, or that `accept` speaks of, are outputs."""
    labels = [_label(graph.nodes[state]) for state in states]
    return all(labels) and (accept is not None or len(set(labels)) < len(labels))


def _symbols(label: str, alphabet: Collection[str]) -> list[str]:
    """An edge's symbols: one a line, or separated by commas, unless `alphabet` or a bracket says they belong."""
    if label in alphabet:
        return [label]
    parts = label.split("\n")
    if not re.search(r"[][(){}<>]", label):
        parts = [part for line in parts for part in line.split(",")]
    parts = [part.strip() for part in parts]
    return parts if all(parts) else [label.strip() or label]


def _label(attributes: dict[str, str]) -> str:
    escapes = {"n": "\n", "l": "\n", "r": "\n", "\\": "\\"}
    return re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[0]), attributes.get("label", ""), flags=re.DOTALL)


def _is_double(attributes: dict[str, str]) -> bool:
    return attributes.get("shape") in ("doublecircle", "doubleoctagon") or attributes.get("peripheries") == "2"


def _no_accept(accept: object, where: str) -> None:
    if accept is not None:
        raise ValueError(
            f"{where}: accept= chooses among the outputs of Moore and Mealy machines, but this DFA marks its "
            f"accepting states by shape=doublecircle; leave accept out."
        )


def _saved_alphabet(text: str, where: str) -> list[str]:
    try:
        names = json.loads(_label({"label": text}))
    except json.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f'{where}: the graph attribute alphabet is {text!r}, but must be a JSON list: "[\\"a\\"]".')
    return names


def write_dot(dfa: DFA) -> str:
    """DOT text that `read_dot` reads back; one edge a line, states s0, s1, …, accepting ones doublecircle."""
    lines = ["digraph dfa {", f"  graph [alphabet={_quoted(json.dumps(dfa.alphabet, ensure_ascii=False))}];"]
    for state, accepting in enumerate(dfa.accepting):
        lines.append(f'  s{state} [label="s{state}", shape={"doublecircle" if accepting else "circle"}];')
    for state, row in enumerate(dfa.transitions.tolist()):
        lines += [f"  s{state} -> s{to} [label={_quoted(name)}];" for name, to in zip(dfa.alphabet, row)]
    lines += ['  __start0 [label="", shape=none];', f"  __start0 -> s{dfa.start};", "}"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# --- syntax -------------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    kind: str  # "id", "quoted" (an id that is no keyword), "punctuation" or "end"
    text: str
    line: int


_NAMES = ("id", "quoted")
_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)+", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*") | (?P<punctuation>->|--|[{}\[\];,=:+])
      | (?P<id>-?(?:\.\d+|\d+(?:\.\d*)?)(?![^\W\d])|[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def _tokens(text: str, where: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(text):
        skipped = _SKIP.match(text, at)
        if skipped:
            line += text.count("\n", at, skipped.end())
            at = skipped.end()
            continue
        match = _TOKEN.match(text, at)
        if match:
            if match["quoted"] is not None:
                body = match["quoted"][1:-1].replace("\\\n", "")
                # Only \" is undone here; a label's other escapes are undone where it is read.
                yield Token("quoted", re.sub(r'\\(["\\])', lambda m: '"' if m[1] == '"' else m[0], body), line)
            else:
                yield Token("punctuation" if match["punctuation"] else "id", match[0], line)
            line += match[0].count("\n")
            at = match.end()
        elif text[at] == "<":
            depth, end = 1, at + 1
            while depth and end < len(text):
                depth += {"<": 1, ">": -1}.get(text[end], 0)
                end += 1
            # HTML: some tools write a Mealy machine's "input/output" as two lines of it.
            plain = re.sub(r"<[^>]*>", "", re.sub(r"\s*<br\s*/?>\s*", " / ", text[at + 1 : end - 1], flags=re.I))
            yield Token("quoted", html.unescape(plain), line)
            line += text.count("\n", at, end)
            at = end
        else:
            problem = "a quoted string that does not end" if text[at] == '"' else f"the character {text[at]!r}"
            raise ValueError(f"{where}: line {line}: not DOT: {problem}.")
    yield Token("end", "", line)


def parse(text: str, where: str) -> Graph:
    """The digraph of a DOT text (the language's grammar, less edges between subgraphs)."""
    return _Parser(text, where).graph


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self.tokens = _tokens(text, where)
        self.token = next(self.tokens)
        self.graph = Graph()
        if self._is_word("strict"):
            self._next()
        if not self._is_word("digraph"):
            self._fail("expected `digraph`, since transitions have a direction")
        self._next()
        if self.token.kind in _NAMES:
            self._id()
        self._statements({}, {})
        if self.token.kind != "end":
            self._fail("expected the end of the file after the first graph")

    def _statements(self, node_defaults: dict[str, str], edge_defaults: dict[str, str]) -> None:
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._is_word("subgraph"):
                self._next()
                if self.token.kind in _NAMES:
                    self._id()
                self._statements(dict(node_defaults), dict(edge_defaults))
            elif self.token[:2] == ("punctuation", "{"):
                self._statements(dict(node_defaults), dict(edge_defaults))
            elif self._is_word("node"):
                self._next()
                node_defaults.update(self._attributes())
            elif self._is_word("edge"):
                self._next()
                edge_defaults.update(self._attributes())
            elif self._is_word("graph"):
                self._next()
                self.graph.attributes.update(self._attributes())
            else:
                self._node_or_edge(node_defaults, edge_defaults)

    def _node_or_edge(self, node_defaults: dict[str, str], edge_defaults: dict[str, str]) -> None:
        line = self.token.line
        path = [self._id()]
        if self._take("="):
            self.graph.attributes[path[0]] = self._id()
            return
        self._port()
        while self._take("->"):
            path.append(self._id())
            self._port()
        if self.token[:2] == ("punctuation", "--"):
            self._fail("expected ->, since transitions have a direction")
        attributes = self._attributes()
        for name in path:
            self.graph.nodes.setdefault(name, dict(node_defaults))
        if len(path) == 1:
            self.graph.nodes[path[0]].update(attributes)
        for source, target in pairwise(path):
            self.graph.edges.append((source, target, {**edge_defaults, **attributes}, line))

    def _attributes(self) -> dict[str, str]:
        attributes: dict[str, str] = {}
        while self._take("["):
            while not self._take("]"):
                name = self._id()
                attributes[name] = self._id() if self._take("=") else "true"
                if not self._take(","):
                    self._take(";")
        return attributes

    def _port(self) -> None:
        while self._take(":"):
            self._id()

    def _id(self) -> str:
        if self.token.kind not in _NAMES:
            self._fail("expected a name")
        text = self.token.text
        self._next()
        while self._take("+"):
            text += self._id()
        return text

    def _is_word(self, word: str) -> bool:
        return self.token.kind == "id" and self.token.text.lower() == word

    def _take(self, punctuation: str) -> bool:
        if self.token.kind == "punctuation" and self.token.text == punctuation:
            self._next()
            return True
        return False

    def _expect(self, punctuation: str) -> None:
        if not self._take(punctuation):
            self._fail(f"expected {punctuation}")

    def _next(self) -> None:
        self.token = next(self.tokens)

    def _fail(self, message: str) -> None:
        found = f"found {self.token.text!r}" if self.token.kind != "end" else "the file ends"
        raise ValueError(f"{self.where}: line {self.token.line}: not DOT: {message}, but {found}.")

"""Regular expressions to minimal DFAs by Brzozowski derivatives (Brzozowski 1964; Owens, Reppy and Turon 2009)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from rlstate.automata.dfa import DFA

_SPECIAL = set("|&~*+?{}()[].\\^$")


def from_regex(pattern: str, alphabet: Iterable[str] | None = None, max_states: int = 100_000) -> DFA:
    r"""The minimal DFA of a regular expression that must match the whole word.

    Every character is a symbol, but for: `|` union, `&` intersection, `~` complement (of what follows it), `*`, `+`,
    `?`, `{m}`, `{m,}`, `{m,n}`, `()` grouping and the empty word, `[abc]`, `[a-c]`, `[^a]`, `.` any symbol, and `\`
    before a character that stands for itself. From loose to tight: `|`, `&`, concatenation, `~`, repetition.

    Args:
        alphabet: single-character symbols; by default those that occur in the pattern, sorted.

    Raises:
        ValueError: a syntax error (with a caret under its position), a symbol outside the alphabet, an empty
            alphabet, or more than `max_states` derivatives.
    """
    try:
        return _compile(pattern, alphabet, max_states)
    except RecursionError:
        raise ValueError(f"The pattern {pattern!r:.60} has too many operators inside one another.") from None


def _compile(pattern: str, alphabet: Iterable[str] | None, max_states: int) -> DFA:
    terms = _Terms()
    occurring = _Parser(pattern, terms, None).symbols
    names = sorted(occurring) if alphabet is None else list(alphabet)
    if not names:
        raise ValueError(f"The pattern {pattern!r} contains no symbol; give the symbols by alphabet=.")
    for name in names:
        if len(name) != 1:
            raise ValueError(f"alphabet holds {name!r}, but in a regular expression symbols are single characters.")
    root = _Parser(pattern, terms, {name: i for i, name in enumerate(names)}).term
    number = {root: 0}
    queue = [root]
    table = []
    for term in queue:
        row = []
        for symbol in range(len(names)):
            successor = terms.derivative(term, symbol)
            if number.setdefault(successor, len(queue)) == len(queue):
                queue.append(successor)
            row.append(number[successor])
        table.append(row)
        if len(queue) > max_states:
            raise ValueError(f"The pattern {pattern!r:.60} needs more than max_states={max_states} states.")
    accepting = np.array([terms.nullable[term] for term in queue])
    return DFA(table, accepting, 0, names).minimize()


class _Terms:
    """Hash-consed expressions: equal ones (up to the laws applied in the constructors) are the same number.

    The laws, ACI of union and intersection among them, keep the number of derivatives finite.
    """

    def __init__(self) -> None:
        self.terms: list[tuple[Any, ...]] = []
        self.nullable: list[bool] = []
        self.number: dict[tuple[Any, ...], int] = {}
        self.known: dict[tuple[int, int], int] = {}
        self.nothing = self._intern(("any of", frozenset()), False)
        self.empty_word = self._intern(("empty word",), True)
        self.everything = self._intern(("not", self.nothing), True)

    def _intern(self, term: tuple[Any, ...], nullable: bool) -> int:
        number = self.number.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
            self.nullable.append(nullable)
        return number

    def any_of(self, symbols: Iterable[int]) -> int:
        return self._intern(("any of", frozenset(symbols)), False)

    def concatenation(self, left: int, right: int) -> int:
        # Associated to the right. A left operand's spine is walked in a loop: it can be as long as the pattern.
        spine = []
        while self.terms[left][0] == "concatenation":
            _, head, left = self.terms[left]
            spine.append(head)
        for part in reversed([*spine, left]):
            if self.nothing in (part, right):
                right = self.nothing
            elif part == self.empty_word:
                continue
            elif right == self.empty_word:
                right = part
            else:
                right = self._intern(("concatenation", part, right), self.nullable[part] and self.nullable[right])
        return right

    def union(self, parts: Iterable[int]) -> int:
        return self._lattice("union", parts, unit=self.nothing, zero=self.everything, nullable=any)

    def intersection(self, parts: Iterable[int]) -> int:
        return self._lattice("intersection", parts, unit=self.everything, zero=self.nothing, nullable=all)

    def _lattice(self, kind: str, parts: Iterable[int], unit: int, zero: int, nullable: Any) -> int:
        members: set[int] = set()
        for part in parts:
            members |= self.terms[part][1] if self.terms[part][0] == kind else {part}
        members.discard(unit)
        if zero in members:
            return zero
        if len(members) < 2:
            return members.pop() if members else unit
        return self._intern((kind, frozenset(members)), nullable(self.nullable[part] for part in members))

    def complement(self, part: int) -> int:
        kind, *rest = self.terms[part]
        return rest[0] if kind == "not" else self._intern(("not", part), not self.nullable[part])

    def repeat(self, part: int, least: int, most: int | None) -> int:
        if most == 0 or part == self.empty_word or (part == self.nothing and least == 0):
            return self.empty_word
        if part == self.nothing or (least, most) == (1, 1):
            return part
        return self._intern(("repeat", part, least, most), least == 0 or self.nullable[part])

    def derivative(self, term: int, symbol: int) -> int:
        """The expression of {w : symbol·w in the language of term}."""
        if (term, symbol) not in self.known:
            self.known[term, symbol] = self._derivative(term, symbol)
        return self.known[term, symbol]

    def _derivative(self, term: int, symbol: int) -> int:
        kind, *rest = self.terms[term]
        if kind == "any of":
            return self.empty_word if symbol in rest[0] else self.nothing
        if kind == "union":
            return self.union([self.derivative(part, symbol) for part in rest[0]])
        if kind == "intersection":
            return self.intersection([self.derivative(part, symbol) for part in rest[0]])
        if kind == "not":
            return self.complement(self.derivative(rest[0], symbol))
        if kind == "repeat":
            part, least, most = rest
            fewer = self.repeat(part, max(least - 1, 0), None if most is None else most - 1)
            return self.concatenation(self.derivative(part, symbol), fewer)
        if kind == "concatenation":
            # Again a loop: a run of nullable factors can be as long as the pattern.
            parts = []
            while self.terms[term][0] == "concatenation":
                _, head, tail = self.terms[term]
                parts.append(self.concatenation(self.derivative(head, symbol), tail))
                if not self.nullable[head]:
                    return self.union(parts)
                term = tail
            return self.union([*parts, self.derivative(term, symbol)])
        return self.nothing  # the empty word


class _Parser:
    """Recursive descent. Without symbol numbers it only checks the syntax and collects the symbols."""

    def __init__(self, pattern: str, terms: _Terms, number: dict[str, int] | None) -> None:
        if not isinstance(pattern, str):
            raise ValueError(f"The pattern is {pattern!r}, but a regular expression is a string.")
        self.pattern, self.terms, self.number = pattern, terms, number
        self.at = 0
        self.symbols: set[str] = set()
        self.term = self._union()
        if self.at < len(pattern):
            self._fail("this ) closes nothing")

    def _union(self) -> int:
        parts = [self._intersection()]
        while self._take("|"):
            parts.append(self._intersection())
        return self.terms.union(parts)

    def _intersection(self) -> int:
        parts = [self._concatenation()]
        while self._take("&"):
            parts.append(self._concatenation())
        return self.terms.intersection(parts)

    def _concatenation(self) -> int:
        parts = []
        while self._peek() not in ("", "|", "&", ")"):
            parts.append(self._complement())
        result = self.terms.empty_word
        for part in reversed(parts):
            result = self.terms.concatenation(part, result)
        return result

    def _complement(self) -> int:
        flips = 0
        while self._take("~"):
            flips += 1
        if flips and self._peek() in ("", "|", "&", ")"):
            self._fail("~ needs an expression after it")
        part = self._repetition()
        return self.terms.complement(part) if flips % 2 else part

    def _repetition(self) -> int:
        part = self._atom()
        while True:
            if self._take("*"):
                part = self.terms.repeat(part, 0, None)
            elif self._take("+"):
                part = self.terms.repeat(part, 1, None)
            elif self._take("?"):
                part = self.terms.repeat(part, 0, 1)
            elif self._peek() == "{":
                part = self.terms.repeat(part, *self._bounds())
            else:
                return part

    def _bounds(self) -> tuple[int, int | None]:
        opened = self.at
        self._take("{")
        least = self._integer()
        most: int | None = least
        if self._take(","):
            most = None if self._peek() == "}" else self._integer()
        if not self._take("}"):
            self._fail("expected }")
        if most is not None and most < least:
            self._fail(f"the bounds {least} and {most} are the wrong way round", opened)
        return least, most

    def _integer(self) -> int:
        first = self.at
        while "0" <= self._peek() <= "9":
            self.at += 1
        if self.at == first:
            self._fail("expected a number, as in {2} or {2,5}; write \\{ for the symbol")
        if self.at - first > 6:
            self._fail("this bound is too large", first)
        return int(self.pattern[first : self.at])

    def _atom(self) -> int:
        opened = self.at
        if self._take("("):
            part = self._union()
            if not self._take(")"):
                self._fail("this ( is not closed", opened)
            return part
        if self._take("["):
            return self._class(opened)
        if self._take("."):
            return self.terms.any_of(range(len(self.number or ())))
        character = self._peek()
        if character in "^$":
            self._fail(f"{character} is not needed: the whole word is matched; write \\{character} for the symbol")
        if character in _SPECIAL and character != "\\":
            self._fail(f"{character} stands after nothing; write \\{character} for the symbol")
        return self.terms.any_of([self._symbol()])

    def _class(self, opened: int) -> int:
        negated = self._take("^")
        members: set[int] = set()
        while not self._take("]"):
            if self._peek() == "":
                self._fail("this [ is not closed", opened)
            first = self.at
            low = self._symbol()
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
                begin = self.pattern[self.at - 1]
                self._take("-")
                end = self.pattern[self.at + 1 if self._peek() == "\\" else self.at : self.at + 2][:1]
                if not begin <= end:
                    self._fail("this range is empty", first)
                for code in range(ord(begin) + 1, ord(end)):
                    members.add(self._index(chr(code), first))
                members.add(self._symbol())
            members.add(low)
        if negated:
            members = set(range(len(self.number or ()))) - members
        return self.terms.any_of(members)

    def _symbol(self) -> int:
        first = self.at
        if self._take("\\") and self._peek() == "":
            self._fail("\\ needs a character after it", first)
        self.at += 1
        return self._index(self.pattern[self.at - 1], first)

    def _index(self, character: str, at: int) -> int:
        self.symbols.add(character)
        if self.number is None:
            return 0
        if character not in self.number:
            self._fail(f"the symbol {character!r} is not in the alphabet {''.join(self.number)!r}", at)
        return self.number[character]

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, character: str) -> bool:
        if self._peek() == character:
            self.at += 1
            return True
        return False

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        raise ValueError(f"Regular expression, position {at}: {message}.\n  {self.pattern}\n  {' ' * at}^")

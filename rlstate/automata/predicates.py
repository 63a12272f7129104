"""Code whose languages are regular: what `mining.mine` learns from, by name or any function that a user brings.

The checksums are those of python-stdnum (LGPL; optional, imported when a predicate is asked for), used at the level of
the sum so that words of any length have an answer; the validators built on them fix lengths or reject the empty word.

A checksum that is aligned on the right weighs a digit by its distance from the *end*. Read from the left, an automaton
would have to carry the sum for every alignment that may still come (EAN: 50 states instead of 20, Luhn 100 instead of
20, Verhoeff millions); read from the right, it carries one.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

_DIGITS = tuple("0123456789")
_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class PredicateError(ValueError):
    """The code raised, or answered something else than True or False; the sentence shows the word."""


@dataclass(frozen=True)
class Predicate:
    """A function from texts to truth values, and how an automaton's words are spelled for it.

    Called with a word of symbol indices it answers a bool.

    Attributes:
        name: what to call it.
        function: takes the word as a string if every name in `alphabet` is a single character, otherwise as a tuple of
            names; returns a bool.
        alphabet: the names of the symbols.
        description: its language, in words.
        reads: "left": a word's first symbol is the text's leftmost; "right": its rightmost.
        source: where the code comes from.
        states: how many states its minimal automaton is known to have; None: not known.
    """

    name: str
    function: Callable[[Any], Any]
    alphabet: tuple[str, ...]
    description: str = ""
    reads: Literal["left", "right"] = "left"
    source: str = ""
    states: int | None = None

    def __post_init__(self) -> None:
        if self.reads not in ("left", "right"):
            raise ValueError(f'reads is {self.reads!r}, but must be "left" or "right".')
        if isinstance(self.alphabet, str) or not isinstance(self.alphabet, tuple):
            object.__setattr__(self, "alphabet", tuple(self.alphabet))
        if not self.alphabet or len(set(self.alphabet)) < len(self.alphabet) or "" in self.alphabet:
            raise ValueError(f"The alphabet is {self.alphabet}, but must be one or more distinct non-empty names.")

    def spell(self, word: Iterable[int]) -> str | tuple[str, ...]:
        """The text of a word of symbol indices, as `function` takes it."""
        names = [self.alphabet[symbol] for symbol in word]
        if self.reads == "right":
            names.reverse()
        return "".join(names) if all(len(name) == 1 for name in self.alphabet) else tuple(names)

    def read(self, text: str | Sequence[str]) -> tuple[int, ...]:
        """The word of symbol indices of a text: the inverse of `spell`.

        Raises:
            ValueError: it has a symbol that is not in the alphabet.
        """
        index = {name: symbol for symbol, name in enumerate(self.alphabet)}
        for name in text:
            if name not in index:
                raise ValueError(f"The text {text!r} has {name!r}, which is none of the symbols {self.alphabet}.")
        word = tuple(index[name] for name in text)
        return word[::-1] if self.reads == "right" else word

    def __call__(self, word: Sequence[int]) -> bool:
        """Whether the code accepts a word of symbol indices.

        Raises:
            PredicateError: the code raised or did not answer True or False.
        """
        text = self.spell(word)
        try:
            answer = self.function(text)
        except Exception as error:
            raise PredicateError(
                f"{self.name} raised {type(error).__name__} ({error}) on the word {text!r}: a predicate answers True "
                f"or False for every word over its alphabet, so catch this in it or leave symbols out."
            ) from error
        if not isinstance(answer, (bool, np.bool_)):
            raise PredicateError(
                f"{self.name} answered {answer!r} ({type(answer).__name__}) on the word {text!r}, but a predicate "
                f"answers True or False."
            )
        return bool(answer)


def as_predicate(given: Any, alphabet: Sequence[str] | None = None, reads: Any = None) -> Predicate:
    """`given` if it is a `Predicate`, otherwise one of that function over that alphabet.

    Raises:
        ValueError: it is neither, or an alphabet or a direction is missing or superfluous.
    """
    if isinstance(given, Predicate):
        if alphabet is not None or reads is not None:
            raise ValueError(f"The predicate {given.name!r} brings its own alphabet and direction: leave them out.")
        return given
    if not callable(given):
        raise ValueError(
            f"The predicate is {given!r}, but must be a function of a word or a Predicate, such as predicate('ean')."
        )
    if alphabet is None:
        raise ValueError('A function needs an alphabet, such as alphabet="01" or alphabet=["open", "close"].')
    return Predicate(getattr(given, "__name__", repr(given)), given, tuple(alphabet), reads=reads or "left")


# --- by name ------------------------------------------------------------------------------------------------------


def predicates() -> tuple[Predicate, ...]:
    """The named predicates; `div<m>` and `div<m>_base<b>` work by name for other m and b as well."""
    return (*_STDNUM, *(_divisibility(m, base) for m, base in ((7, 2), (7, 10), (6, 2))))


def predicate(name: str) -> Predicate:
    """A predicate by its name.

    Raises:
        ValueError: an unknown name, or m or b out of range.
        ImportError: the predicate needs python-stdnum, which is not installed.
    """
    for known in _STDNUM:
        if known.name == name:
            if importlib.util.find_spec("stdnum") is None:
                raise ImportError(f"The predicate {name!r} is python-stdnum's: pip install python-stdnum")
            version = importlib.metadata.version("python-stdnum")
            return Predicate(**{**vars(known), "source": f"{known.source} of python-stdnum {version}"})
    match = re.fullmatch(r"div(\d+)(?:_base(\d+))?", str(name))
    if match:
        return _divisibility(int(match[1]), int(match[2] or 2))
    names = [known.name for known in predicates()]
    close = difflib.get_close_matches(str(name), names, n=3)
    hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    raise ValueError(f"Unknown predicate {name!r}. {hint}There are {', '.join(names)}, div<m> and div<m>_base<b>.")


def _stdnum(module: str) -> Any:
    return importlib.import_module(f"stdnum.{module}")


def _ean(text: str) -> bool:
    return text == "" or _stdnum("ean").calc_check_digit(text[:-1]) == text[-1]


def _luhn(text: str) -> bool:
    return _stdnum("luhn").checksum(text) == 0


def _isbn10(text: str) -> bool:
    # The weights have period 11, and zeros on the left weigh nothing: a length of 10, 21, 32, … aligns on the right.
    text = "0" * ((10 - len(text)) % 11) + text
    return "X" not in text[:-1] and _stdnum("isbn")._calc_isbn10_check_digit(text[:-1]) == text[-1]


def _mod_11_2(text: str) -> bool:
    return _stdnum("iso7064.mod_11_2").checksum(text) == 1


def _mod_97_10(text: str) -> bool:
    return text != "" and _stdnum("iso7064.mod_97_10").checksum(text) == 1


def _damm(text: str) -> bool:
    return _stdnum("damm").checksum(text) == 0


def _verhoeff(text: str) -> bool:
    return _stdnum("verhoeff").checksum(text) == 0


_STDNUM = (
    Predicate(
        "ean", _ean, _DIGITS,
        "Digits whose sum with weights 1, 3, 1, 3, … from the right is 0 mod 10, at any length, the empty word "
        "included. stdnum.ean.is_valid accepts exactly these of lengths 8, 12, 13 and 14 and no others. At odd "
        "lengths the weights are the same from the left (EAN-13 reads alike both ways), at even lengths they are "
        "swapped. 20 states: position mod 2, sum mod 10; a permutation automaton, its group of order 100.",
        "right", "stdnum.ean.calc_check_digit", 20),
    Predicate(
        "luhn", _luhn, _DIGITS,
        "Digits whose Luhn sum is 0 mod 10: every second digit from the right is doubled and its digits added. Any "
        "length; the empty word has sum 0 (the library's validator rejects it). 20 states: position mod 2, sum mod 10; "
        "a permutation automaton, since doubling permutes the digits, its group of order 200.",
        "right", "stdnum.luhn.checksum", 20),
    Predicate(
        "isbn10", _isbn10, (*_DIGITS, "X"),
        "ISBN-10's sum with weights 1, 2, 3, … from the right is 0 mod 11, where X counts 10 and is allowed as the "
        "check digit only. Any length, as if zeros stood on the left (so does the library, at length 9); the empty "
        "word has sum 0. At length 10 exactly what stdnum.isbn.is_valid accepts. 123 states: position and sum mod 11, "
        "a start where X is allowed and a sink where it came late; so not a permutation automaton.",
        "right", "stdnum.isbn._calc_isbn10_check_digit", 123),
    Predicate(
        "isbn10_digits", _isbn10, _DIGITS,
        "The words of isbn10 without an X: 121 states, position and sum mod 11; a permutation automaton, its group "
        "of order 1331.",
        "right", "stdnum.isbn._calc_isbn10_check_digit", 121),
    Predicate(
        "mod_11_2", _mod_11_2, (*_DIGITS, "X"),
        "ISO 7064 mod 11-2: from 0 a symbol d takes c to 2c + d mod 11, and 1 is valid. X counts 10, and the library "
        "takes it at any position, though the standard allows it as the check character only. Any length; the empty "
        "word is rejected. 11 states, a permutation automaton, its group affine of order 110.",
        "left", "stdnum.iso7064.mod_11_2.checksum", 11),
    Predicate(
        "mod_97_10", _mod_97_10, _DIGITS,
        "ISO 7064 mod 97-10: decimal numbers that leave 1 when divided by 97 (IBAN's check). The library also reads "
        "letters (A as 10 … Z as 35, two digits each), left out here. The empty word is rejected; words beyond 4300 "
        "digits are an error (Python's limit for int). 97 states, a permutation automaton, its group affine of order "
        "9312.",
        "left", "stdnum.iso7064.mod_97_10.checksum", 97),
    Predicate(
        "damm", _damm, _DIGITS,
        "Damm's check: from 0 a digit takes the state through a table that is a quasigroup of order 10, and 0 is "
        "valid. Any length; the empty word is accepted (the library's validator rejects it). 10 states, a permutation "
        "automaton, and its group is the symmetric group of all 10! permutations: not solvable.",
        "left", "stdnum.damm.checksum", 10),
    Predicate(
        "verhoeff", _verhoeff, _DIGITS,
        "Verhoeff's check: a product in the dihedral group of order 10, from the right, each digit first permuted by "
        "a table of period 8; the identity is valid. Any length; the empty word is accepted (the library's validator "
        "rejects it). 80 states: position mod 8, group element; a permutation automaton, its group solvable of order "
        "200 000 000.",
        "right", "stdnum.verhoeff.checksum", 80),
)  # fmt: skip


def _divisible(m: int, base: int, text: str) -> bool:
    return int("0" + text, base) % m == 0


def _divisibility(m: int, base: int) -> Predicate:
    if m < 1 or not 2 <= base <= 36:
        raise ValueError(f"div{m}_base{base} is unknown: m must be at least 1 and the base between 2 and 36.")
    return Predicate(
        name=f"div{m}" if base == 2 else f"div{m}_base{base}",
        function=partial(_divisible, m, base),
        alphabet=tuple(_CHARACTERS[:base]),
        description=f"Numbers in base {base}, most significant digit first, that {m} divides; the empty word is 0. "
        + (
            f"{m} states, a permutation automaton."
            if math.gcd(m, base) == 1
            else f"Not a permutation automaton, since {m} and {base} have a common factor."
        ),
        source=f'int("0" + word, {base}) % {m} == 0',
        states=m if math.gcd(m, base) == 1 else None,
    )

"""Labelled words, the data of passive learning, and the files they come in: Abbadingo, StaMinA, the stamina toolbox."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Word = tuple[int, ...]

MAX_SYMBOLS = 100_000
"""An alphabet announced to be larger than this is not believed: every symbol of it gets a name."""


@dataclass(frozen=True)
class Sample:
    """Words with labels, in the order and with the repetitions of their source.

    Any sequences (NumPy arrays too) are taken and stored as tuples of plain ints and bools.

    Args:
        words: sequences of symbol indices.
        labels: for each word whether it is in the language.
        alphabet: a name for each symbol.

    Raises:
        ValueError: no words, another number of labels than words, a label that is no bool, a word that is no flat
            sequence of integers, or a symbol that the alphabet does not have.
    """

    words: tuple[Word, ...]
    labels: tuple[bool, ...]
    alphabet: tuple[str, ...]

    def __post_init__(self) -> None:
        words, labels, alphabet = _words(self.words), _labels(self.labels), _names(self.alphabet)
        if len(labels) != len(words):
            raise ValueError(f"There are {len(words)} words but {len(labels)} labels: give one label for each word.")
        for at, word in enumerate(words):
            if word and not (min(word) >= 0 and max(word) < len(alphabet)):
                position, symbol = next((i, s) for i, s in enumerate(word) if not 0 <= s < len(alphabet))
                raise ValueError(
                    f"words[{at}] has symbol {symbol} at position {position}, but the symbols are "
                    f"0 … {len(alphabet) - 1}: give a larger n_symbols or alphabet, or leave the word out."
                )
        for name, value in (("words", words), ("labels", labels), ("alphabet", alphabet)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, words: Any, labels: Any, n_symbols: int | None = None, alphabet: Iterable[str] | None = None) -> Sample:
        """A sample whose symbols are counted by `n_symbols`, named by `alphabet`, or else 0 … the largest that occurs."""
        words = _words(words)
        if n_symbols is not None and (
            isinstance(n_symbols, bool) or not isinstance(n_symbols, (int, np.integer)) or n_symbols < 1
        ):
            raise ValueError(f"n_symbols is {n_symbols!r}, but must be a whole number of at least 1.")
        if alphabet is not None:
            names = _names(alphabet)
            if n_symbols is not None and n_symbols != len(names):
                raise ValueError(
                    f"n_symbols is {n_symbols}, but alphabet has {len(names)} names: give only one of them."
                )
            return cls(words, labels, names)
        if n_symbols is None:
            largest = max((max(word) for word in words if word), default=None)
            if largest is None:
                raise ValueError("No word has a symbol, so how many there are is unknown: give n_symbols or alphabet.")
            n_symbols = max(largest, 0) + 1
        return cls(words, labels, tuple(str(symbol) for symbol in range(n_symbols)))


def load_sample(path: str | os.PathLike[str], alphabet: Sequence[str] | None = None) -> Sample:
    """The labelled words in a file; gzip is undone.

    **Abbadingo, StaMinA** (`.a`, `.dat`): a line "N K" (words, symbols), then N lines "label length symbols…" with
    label 1 or 0 and symbols 0 … K − 1, which are also their names. The header "N K:attributes" and symbols
    "symbol:values" or "symbol/values" are read without what follows.
    **Stamina toolbox** (`.adl`): lines "+ a b" or "- a b" with named symbols, "#" before a comment line.

    Words without a label (label −1; "?") are left out: there is nothing to learn from them.

    Args:
        path: the file.
        alphabet: the names in the order wanted. By default sorted, numbers by value, so that the symbols' order does
            not depend on that of the words.

    Raises:
        ValueError: one sentence that names the file, the line and what was expected.
    """
    path = Path(path)
    lines = _lines(path)
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if start is None:
        raise ValueError(f"{path}: there is no word in the file.")
    if lines[start].split()[0][0] in "+-?":
        words, labels, names = _read_toolbox(path, lines, alphabet)
    else:
        words, labels, names = _read_abbadingo(path, lines, start, alphabet)
    if not words:
        raise ValueError(f"{path}: no word has a label, so there is nothing to learn from.")
    return Sample(tuple(words), tuple(labels), names)


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ValueError(f"There is no sample file {path}.") from None
    except EOFError:
        raise ValueError(f"{path}: the gzip file is cut off: get a complete copy.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text (byte {error.start}).") from error
    except (OSError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {error}.") from error


def _read_toolbox(
    path: Path, lines: list[str], alphabet: Sequence[str] | None
) -> tuple[list[Word], list[bool], tuple[str, ...]]:
    rows = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if fields[0] not in ("+", "-", "?"):
            raise ValueError(
                f'{path}: line {number}: expected "+ symbols…" or "- symbols…", found {line.strip()!r:.60}.'
            )
        if fields[0] != "?":
            rows.append((number, fields[1:], fields[0] == "+"))
    occurring = sorted({name for _, fields, _ in rows for name in fields})
    if all(name.isascii() and name.isdigit() for name in occurring):
        occurring.sort(key=lambda name: (int(name), name))
    names = tuple(occurring) if alphabet is None else _names(alphabet)
    if rows and not names:
        raise ValueError(f"{path}: no word has a symbol, so the alphabet is unknown: give alphabet.")
    index = {name: symbol for symbol, name in enumerate(names)}
    words = []
    for number, fields, _ in rows:
        foreign = next((name for name in fields if name not in index), None)
        if foreign is not None:
            raise ValueError(f"{path}: line {number}: the symbol {foreign!r} is not in the alphabet given.")
        words.append(tuple(index[name] for name in fields))
    return words, [label for _, _, label in rows], names


def _read_abbadingo(
    path: Path, lines: list[str], start: int, alphabet: Sequence[str] | None
) -> tuple[list[Word], list[bool], tuple[str, ...]]:
    header = [field.split(":")[0] for field in lines[start].split()]
    if len(header) != 2 or not all(_is_number(field) for field in header) or header[1] == "0":
        raise ValueError(
            f'{path}: line {start + 1}: expected "N K" (the numbers of words and symbols) or a word "+ symbols…", '
            f"found {lines[start].strip()!r:.60}."
        )
    n_words, n_symbols = int(header[0]), int(header[1])
    rows = [(i + 1, lines[i].split()) for i in range(start + 1, len(lines)) if lines[i].strip()]
    if n_symbols > MAX_SYMBOLS:
        raise ValueError(
            f"{path}: line {start + 1} announces {n_symbols} symbols, but at most {MAX_SYMBOLS} are read: is it a header?"
        )
    index = {str(symbol): symbol for symbol in range(n_symbols)}
    names = tuple(index)
    if alphabet is not None:
        names = _names(alphabet)
        if sorted(names) != sorted(index):
            raise ValueError(f"{path}: the file's symbols are 0 … {n_symbols - 1}: alphabet must order exactly these.")
        index = {name: symbol for symbol, name in enumerate(names)}
    words, labels = [], []
    for number, fields in rows:
        if len(fields) < 2 or fields[0] not in ("0", "1", "-1") or not _is_number(fields[1]):
            raise ValueError(
                f'{path}: line {number}: expected "label length symbols…" with label 1, 0 or −1, '
                f"found {' '.join(fields)!r:.60}."
            )
        if len(fields) - 2 != int(fields[1]):
            raise ValueError(
                f"{path}: line {number}: the length is {fields[1]}, but there are {len(fields) - 2} symbols."
            )
        word = []
        for field in fields[2:]:
            symbol = index.get(field)
            if symbol is None:
                symbol = index.get(field.split(":")[0].split("/")[0])
            if symbol is None:
                raise ValueError(
                    f"{path}: line {number}: the symbol {field!r}, but the symbols are 0 … {n_symbols - 1} "
                    f"(line {start + 1})."
                )
            word.append(symbol)
        if fields[0] != "-1":
            words.append(tuple(word))
            labels.append(fields[0] == "1")
    if len(rows) != n_words:
        raise ValueError(f"{path}: line {start + 1} announces {n_words} words, but {len(rows)} follow: is it complete?")
    return words, labels, names


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdigit() and len(field) < 19


# --- checks -------------------------------------------------------------------------------------------------------


def _words(words: Any) -> tuple[Word, ...]:
    """Words as tuples of plain ints; symbols may still be foreign."""
    if isinstance(words, (str, bytes)) or not isinstance(words, Iterable):
        raise ValueError(f"words is {words!r:.60}, but must be a sequence of words, each a sequence of symbol indices.")
    result = tuple(_word(word, at) for at, word in enumerate(words))
    if not result:
        raise ValueError("The sample has no words: at least one labelled word is needed.")
    return result


def _word(word: Any, at: int) -> Word:
    if isinstance(word, np.ndarray) and word.ndim == 1 and (np.issubdtype(word.dtype, np.integer) or not word.size):
        return tuple(word.tolist())
    if isinstance(word, (str, bytes, Set, Mapping)) or not isinstance(word, Iterable):
        raise ValueError(
            f"words[{at}] is {word!r:.60}, but a word is a sequence of symbol indices (DFA.encode makes it)."
        )
    symbols = tuple(word)
    if {int}.issuperset(map(type, symbols)):
        return symbols
    for position, symbol in enumerate(symbols):
        if isinstance(symbol, bool) or not isinstance(symbol, (int, np.integer)):
            raise ValueError(f"words[{at}] has {symbol!r} at position {position}, but symbols are integers 0, 1, ….")
    return tuple(int(symbol) for symbol in symbols)


def _labels(labels: Any) -> tuple[bool, ...]:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise ValueError(f"labels is {labels!r:.60}, but must hold one bool for each word.")
    values = tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    for at, label in enumerate(values):
        if not isinstance(label, (bool, np.bool_)):
            raise ValueError(
                f"labels[{at}] is {label!r:.60}, but labels are True or False (for 0/1: [y == 1 for y in …])."
            )
    return tuple(bool(label) for label in values)


def _names(alphabet: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(alphabet, Iterable):
        raise ValueError(f"alphabet is {alphabet!r:.60}, but must be a sequence of names.")
    names = tuple(alphabet)
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"alphabet holds {name!r}, but symbol names are non-empty strings.")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"alphabet names {twice!r} twice: every symbol needs a name of its own.")
    if not names:
        raise ValueError("alphabet is empty, but words need at least one symbol.")
    return names

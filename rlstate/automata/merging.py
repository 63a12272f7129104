"""The red-blue framework of state merging: a sample's prefix tree, folded onto itself. `passive` has the algorithms."""

from __future__ import annotations

import math
import numbers
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rlstate.automata.samples import Sample, Word

_NONE, _REJECT, _ACCEPT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Merge:
    """What a score sees of a merge that the labels allow.

    Merging a blue state with a red one joins states of the hypothesis, the two and what they lead to, into larger ones. A
    state is labelled if a word of the sample ends in it. Labelled states count 1 or, with `weights`, the weight of their
    words. In each larger state those labelled like it count but for the heaviest one (n equally labelled states are n − 1
    agreements), and those labelled unlike it.

    Attributes:
        accepting: the agreement in accepting states.
        rejecting: the agreement in rejecting states.
        disagreeing: the disagreement; 0 without `tolerance`.
        folded: how many states, labelled or not, the merge does away with.
        depth: the length of the blue state's shortest prefix.
    """

    accepting: float
    rejecting: float
    disagreeing: float
    folded: int
    depth: int


Score = Callable[[Merge], "float | None"]


def evidence(merge: Merge) -> float:
    """Lang's evidence: labelled states that meet equally labelled ones."""
    return merge.accepting + merge.rejecting - merge.disagreeing


@dataclass(slots=True)
class _Fold:
    """The states folded, what each was folded onto, and a log to undo it by."""

    folded: list[int]
    onto: list[int]
    edges: list[tuple[int, int]]  # set where there was none: (state, symbol)
    labelled: list[int]  # states that had no label
    agreements: int
    consistent: bool


class Hypothesis:
    """The prefix tree of a sample and what merging has made of it.

    A state is represented by one of its nodes, the one that the others were folded onto. A blue state is the root of a
    tree, so a merge folds each state at most once, and nothing onto a state that is itself folded: there is no need for a
    union-find, and a merge is undone from a log of the edges and labels that it set.
    """

    def __init__(self, sample: Sample, weights: Iterable[float] | None, tolerance: float) -> None:
        self.alphabet = sample.alphabet
        self.unit = weights is None
        self.tolerance = _tolerance(tolerance)
        # By state: successors, the length of the prefix, the weight of the words with each label that end in it.
        self.children: list[dict[int, int]] = [{}]
        self.depth = [0]
        self.accept: list[float] = []
        self.reject: list[float] = []
        self._grow(_distinct(sample, weights, contradictions=self.tolerance > 0))
        self.label = [_ACCEPT if a > r else _REJECT if r else _NONE for a, r in zip(self.accept, self.reject)]
        self.total = math.fsum(self.accept) + math.fsum(self.reject)
        self.minority = math.fsum(map(min, self.accept, self.reject))
        self.first = list(range(len(self.children)))  # the first prefix: nodes are numbered in short-lex order
        self.red = [0]  # in order
        self.blue = {child: (0, symbol) for symbol, child in self.children[0].items()}  # with the only edge to it
        # Without tolerance merges only add reasons against others: what the labels forbid once they always will.
        self.impossible: set[tuple[int, int]] = set()

    def _grow(self, rows: list[tuple[Word, float, float]]) -> None:
        level = [(0, 0, len(rows))]  # a node and the range of rows whose words begin with its prefix
        length = 0
        while level:
            below = []
            for node, row, end in level:
                accept = reject = 0.0
                if len(rows[row][0]) == length:  # a word comes before those that it begins
                    _, accept, reject = rows[row]
                    row += 1
                self.accept.append(accept)
                self.reject.append(reject)
                while row < end:
                    begin, symbol = row, rows[row][0][length]
                    while row < end and rows[row][0][length] == symbol:
                        row += 1
                    child = len(self.children)
                    self.children[node][symbol] = child
                    self.children.append({})
                    self.depth.append(length + 1)
                    below.append((child, begin, row))
            level = below
            length += 1

    def next_blue(self) -> int:
        """The first blue state in short-lex order."""
        return min(self.blue, key=self.first.__getitem__)

    def blue_in_order(self) -> list[int]:
        return sorted(self.blue, key=self.first.__getitem__)

    def promote(self, blue: int) -> None:
        """Make a blue state red, and its successors blue."""
        del self.blue[blue]
        self.blue.update({child: (blue, symbol) for symbol, child in self.children[blue].items()})
        self.red.append(blue)
        self.red.sort(key=self.first.__getitem__)

    def value(self, red: int, blue: int, score: Score | None) -> float | None:
        """The score of a merge (0 without one), None if it does not fit."""
        fold = self._fold(red, blue)
        self._undo(fold, blue)
        if not fold.consistent:
            self.impossible.add((red, blue))
            return None
        if not self.tolerance and score is None:
            return 0
        if not self.tolerance and self.unit and score is evidence:
            return fold.agreements  # what the tally would come to
        merge = self._tally(fold, blue)
        if merge is None or score is None:
            return None if merge is None else 0
        value = score(merge)
        if value is not None and (not isinstance(value, numbers.Real) or math.isnan(value)):
            raise ValueError(
                f"score returned {value!r} for {merge}, but must return a number, or None to refuse a merge."
            )
        return value

    def merge(self, red: int, blue: int) -> None:
        """Fold a blue state onto a red one for good."""
        fold = self._fold(red, blue)
        accept, reject, first = self.accept, self.reject, self.first
        for state, kept in zip(fold.folded, fold.onto):
            self.minority -= min(accept[state], reject[state]) + min(accept[kept], reject[kept])
            accept[kept] += accept[state]
            reject[kept] += reject[state]
            self.minority += min(accept[kept], reject[kept])
            first[kept] = min(first[kept], first[state])
        del self.blue[blue]
        is_red = set(self.red)
        self.blue.update({self.children[p][symbol]: (p, symbol) for p, symbol in fold.edges if p in is_red})
        self.red.sort(key=first.__getitem__)

    def _fold(self, red: int, blue: int) -> _Fold:
        """Fold the tree of a blue state onto a red one, breadth-first; without tolerance up to the first conflict."""
        children, label, strict = self.children, self.label, not self.tolerance
        fold = _Fold([blue], [red], [], [], 0, True)
        folded, onto = fold.folded, fold.onto
        parent, symbol = self.blue[blue]
        children[parent][symbol] = red
        for state, kept in zip(folded, onto):  # both grow while they are read: they are the queue
            own = label[state]
            if own:
                other = label[kept]
                if own == other:
                    fold.agreements += 1
                elif not other:
                    label[kept] = own
                    fold.labelled.append(kept)
                elif strict:
                    fold.consistent = False
                    break
            branches = children[kept]
            for symbol, child in children[state].items():
                target = branches.get(symbol)
                if target is None:
                    branches[symbol] = child
                    fold.edges.append((kept, symbol))
                else:
                    folded.append(child)
                    onto.append(target)
        return fold

    def _undo(self, fold: _Fold, blue: int) -> None:
        for state in fold.labelled:
            self.label[state] = _NONE
        for state, symbol in fold.edges:
            del self.children[state][symbol]
        parent, symbol = self.blue[blue]
        self.children[parent][symbol] = blue

    def _tally(self, fold: _Fold, blue: int) -> Merge | None:
        """The summary of a fold, undone or not; None if the minorities would exceed the tolerance (see `passive.rpni`)."""
        accept, reject = self.accept, self.reject
        joined: dict[int, list[int]] = {}
        for state, kept in zip(fold.folded, fold.onto):
            if accept[state] or reject[state]:
                joined.setdefault(kept, [kept] if accept[kept] or reject[kept] else []).append(state)
        agreeing = [0.0, 0.0]
        disagreeing = minority = added = total = 0.0
        for parts in joined.values():
            if len(parts) == 1:
                continue
            a, r = sum(accept[part] for part in parts), sum(reject[part] for part in parts)
            total += a + r
            minority += min(a, r)
            added += min(a, r) - sum(min(accept[part], reject[part]) for part in parts)
            same: list[float] = []
            other: list[float] = []
            for part in parts:
                weight = 1 if self.unit else accept[part] + reject[part]
                (same if (accept[part] > reject[part]) == (a > r) else other).append(weight)
            agreeing[a > r] += sum(same) - max(same)
            disagreeing += sum(other)
        if added > 0 and (minority / total > self.tolerance or (self.minority + added) / self.total > self.tolerance):
            return None
        return Merge(agreeing[True], agreeing[False], disagreeing, len(fold.folded), self.depth[self.first[blue]])

    def automaton(self) -> tuple[list[list[int]], list[bool]]:
        """Transitions of the red states, numbered breadth-first (−1: none), and which of them accept."""
        order, number = [0], {0: 0}
        table = []
        for state in order:  # grows while it is read
            row = [-1] * len(self.alphabet)
            for symbol in sorted(self.children[state]):
                target = self.children[state][symbol]
                row[symbol] = number.setdefault(target, len(order))
                if row[symbol] == len(order):
                    order.append(target)
            table.append(row)
        return table, [self.accept[state] > self.reject[state] for state in order]


def _distinct(sample: Sample, weights: Iterable[float] | None, contradictions: bool) -> list[tuple[Word, float, float]]:
    """The words in lexicographic order, each with the weights of accepting and of rejecting it."""
    counted: defaultdict[Word, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    if weights is None:
        for word, label in set(zip(sample.words, sample.labels)):
            counted[word][not label].append(1)
    else:
        for word, label, weight in zip(sample.words, sample.labels, _weights(weights, len(sample.words))):
            counted[word][not label].append(weight)
    rows = [(word, math.fsum(a), math.fsum(r)) for word, (a, r) in counted.items()]  # exact: no order of summation
    both = [word for word, accept, reject in rows if accept and reject]
    if both and not contradictions:
        word = min(both, key=lambda word: (len(word), word))
        more = f"; so are {len(both) - 1} more words" if len(both) > 1 else ""
        raise ValueError(
            f"The word {_shown(word, sample.alphabet)} is labelled both True and False{more}. Decide on one label, or allow "
            f"for noise with tolerance."
        )
    return sorted(rows)


def _shown(word: Word, alphabet: tuple[str, ...], limit: int = 20) -> str:
    cut = f" … ({len(word)} symbols)" if len(word) > limit else ""
    names = [alphabet[symbol] for symbol in word[:limit]]
    named = any(name != str(symbol) for name, symbol in zip(names, word))
    return f"{word[:limit]}{cut}" + (f", that is {' '.join(names)}{cut}," if named else "")


def _weights(weights: Iterable[float], n_words: int) -> list[float]:
    values = list(weights)
    if len(values) != n_words:
        raise ValueError(f"There are {n_words} words but {len(values)} weights: give one weight for each word.")
    for at, weight in enumerate(values):
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real) or not 0 < weight < math.inf:
            raise ValueError(
                f"weights[{at}] is {weight!r}, but weights are positive numbers (leave out what has none)."
            )
    return [float(weight) for weight in values]


def _tolerance(tolerance: float) -> float:
    if isinstance(tolerance, bool) or not isinstance(tolerance, numbers.Real) or not 0 <= tolerance < 0.5:
        raise ValueError(f"tolerance is {tolerance!r}, but must be a share of the words, at least 0 and below 0.5.")
    return float(tolerance)

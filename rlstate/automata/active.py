"""Active automata learning: the hidden DFA of a teacher, exactly, from membership and equivalence queries.

    from rlstate.automata.active import Teacher, kearns_vazirani, lstar, rivest_schapire, ttt

Every learner takes any teacher (a hidden DFA, a black box, an opponent in a game) and returns a minimal DFA over its alphabet
that the teacher has accepted: the hidden language if the teacher is a Teacher. When the budget runs out BudgetExhausted
leaves them, with the last hypothesis. They differ in what they ask:

    lstar              a table, one query a cell; the prefixes of each counterexample become rows     O(A Q² m)
    rivest_schapire    a table; of each counterexample one suffix becomes a column                    O(A Q² + Q log m)
    kearns_vazirani    a discrimination tree; each state is told apart by its own words               O(A Q² + Q log m)
    ttt                the same, with the suffixes of long counterexamples made short again

membership queries at most, for Q states, A symbols and counterexamples of up to m symbols.

What is asked, in which order and how often follows LearnLib (Isberner, Howar and Steffen, 2015), so that query counts can be
compared with the literature's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlstate.automata.counterexamples import Tester, Word, random_words, w_method
from rlstate.automata.dfa import DFA
from rlstate.automata.teacher import BlackBoxTeacher, BudgetExhausted, Checked, Counts, LearnsFrom, Teacher
from rlstate.automata.ttt import ttt

__all__ = [
    "BlackBoxTeacher",
    "BudgetExhausted",
    "Counts",
    "LearnsFrom",
    "Teacher",
    "Tester",
    "Word",
    "kearns_vazirani",
    "lstar",
    "random_words",
    "rivest_schapire",
    "ttt",
    "w_method",
]


# --- observation tables ---------------------------------------------------------------------------------------


class _Table:
    """Rows are prefixes, columns are suffixes, a cell is whether prefix + suffix is in the language; each is asked once.

    Short rows are the candidates for states; their extensions by one symbol show where those lead, and those of them that
    are not short themselves are the long rows. A row is a number: the prefixes form a tree.
    """

    def __init__(self, teacher: Checked) -> None:
        self.teacher = teacher
        self.symbols = range(len(teacher.alphabet))
        self.suffixes: list[Word] = [()]
        self.parent: list[tuple[int, int]] = [(-1, -1)]  # the row and the symbol that extends it
        self.extensions: list[dict[int, int]] = [{}]
        self.cells: list[tuple[bool, ...]] = [()]
        self.short: list[int] = []
        self.long: list[int] = []
        self.place: dict[int, int] = {}  # of a long row in `long`
        self.add_short([0])

    def word(self, row: int) -> Word:
        symbols = []
        while row:
            row, symbol = self.parent[row]
            symbols.append(symbol)
        return tuple(reversed(symbols))

    def prefixes(self, word: Word) -> list[int]:
        """The rows of a word's prefixes, the empty one first; those that are new have no cells yet."""
        rows = [0]
        for symbol in word:
            rows.append(self._extension(rows[-1], symbol))
        return rows

    def _extension(self, row: int, symbol: int) -> int:
        number = self.extensions[row].setdefault(symbol, len(self.parent))
        if number == len(self.parent):
            self.parent.append((row, symbol))
            self.extensions.append({})
            self.cells.append(())
        return number

    def add_short(self, rows: Iterable[int]) -> None:
        """Makes rows short and asks what is missing of them and their extensions."""
        # The order of the rows decides which counterpart an inconsistency is found with, and so the suffixes. This is
        # LearnLib's: rows never seen before go first; the last long row takes the place of one that becomes short.
        known = set(self.short)
        rows = [row for row in rows if row not in known]
        fresh = [row for row in rows if row not in self.place]
        promoted = [row for row in rows if row in self.place]
        self.short += fresh + promoted
        known.update(rows)
        for row in promoted:
            at, last = self.place.pop(row), self.long.pop()
            if last != row:
                self.long[at], self.place[last] = last, at
        for row in rows:
            for symbol in self.symbols:
                extension = self._extension(row, symbol)
                if extension not in known and extension not in self.place:
                    self.place[extension] = len(self.long)
                    self.long.append(extension)
                    fresh.append(extension)
        self._fill(fresh)

    def add_suffix(self, suffix: Word) -> None:
        self.suffixes.append(suffix)
        self._fill(self.short + self.long)

    def _fill(self, rows: Iterable[int]) -> None:
        for row in rows:
            prefix, missing = self.word(row), self.suffixes[len(self.cells[row]) :]
            self.cells[row] += tuple(self.teacher.member(prefix + suffix) for suffix in missing)

    def close(self) -> None:
        """Every long row looks like a short one: of each look that no short row has, the first row becomes short."""
        while True:
            looks = {self.cells[row] for row in self.short}
            unmatched: dict[tuple[bool, ...], int] = {}
            for row in self.long:
                if self.cells[row] not in looks:
                    unmatched.setdefault(self.cells[row], row)
            if not unmatched:
                return
            self.add_short(unmatched.values())

    def inconsistency(self) -> Word | None:
        """A new suffix that tells apart two short rows that look alike, because their extensions already do not."""
        first: dict[tuple[bool, ...], int] = {}
        for row in self.short:
            like = first.setdefault(self.cells[row], row)
            if like == row:
                continue
            for symbol in self.symbols:
                mine, theirs = (self.cells[self.extensions[r][symbol]] for r in (row, like))
                if mine != theirs:
                    return (symbol, *next(s for s, a, b in zip(self.suffixes, mine, theirs) if a != b))
        return None

    def states(self) -> list[int]:
        """The first short row of each look."""
        first: dict[tuple[bool, ...], int] = {}
        for row in self.short:
            first.setdefault(self.cells[row], row)
        return list(first.values())

    def hypothesis(self) -> DFA:
        """The states numbered as in states(); asks nothing."""
        states = self.states()
        number = {self.cells[row]: i for i, row in enumerate(states)}
        transitions = [[number[self.cells[self.extensions[row][symbol]]] for symbol in self.symbols] for row in states]
        return DFA(transitions, [self.cells[row][0] for row in states], 0, self.teacher.alphabet)


def lstar(teacher: LearnsFrom) -> DFA:
    """Learns with an observation table into which all prefixes of a counterexample go. Source: Angluin (1987).

    Raises:
        BudgetExhausted: with the last hypothesis.
        ValueError: the teacher contradicts itself, or gives what is no answer or no word.
    """
    table = _Table(Checked(teacher))
    while True:
        table.close()
        while (suffix := table.inconsistency()) is not None:
            table.add_suffix(suffix)
            table.close()
        hypothesis = table.hypothesis()
        word = table.teacher.equivalent(hypothesis)
        if word is None:
            return hypothesis.minimize()
        rows = table.prefixes(word)
        table.add_short(rows)
        if table.cells[rows[-1]][0] == hypothesis.accepts(word):
            raise _contradiction(word)


def rivest_schapire(teacher: LearnsFrom) -> DFA:
    """Learns with an observation table into which one suffix of a counterexample goes, found by binary search.

    All short rows look different, so the table is always consistent. Source: Rivest and Schapire (1993).

    Raises:
        BudgetExhausted: with the last hypothesis.
        ValueError: the teacher contradicts itself, or gives what is no answer or no word.
    """
    table = _Table(Checked(teacher))
    while True:
        table.close()
        hypothesis, states = table.hypothesis(), table.states()
        word = table.teacher.equivalent(hypothesis)
        if word is None:
            return hypothesis.minimize()
        table.add_suffix(_distinguishing_suffix(table, hypothesis, states, word))


def _distinguishing_suffix(table: _Table, hypothesis: DFA, states: list[int], word: Word) -> Word:
    """A suffix of a counterexample by which two prefixes differ that the hypothesis takes to one state."""
    visited = hypothesis.trace(word).tolist()
    predicted = bool(hypothesis.accepting[visited[-1]])

    def agrees(i: int) -> bool:
        """Does the rest, after the access word of the state that i symbols lead to, end as the hypothesis predicts?"""
        return table.teacher.member(table.word(states[visited[i]]) + word[i:]) == predicted

    row, low = 0, 0  # as long as the prefixes are access words themselves, nothing changes
    short = set(table.short)
    while low < len(word) and (row := table.extensions[row][word[low]]) in short:
        low += 1
    return word[_turning_point(agrees, low, len(word), word) + 1 :]


def _turning_point(holds: Callable[[int], bool], low: int, high: int, word: Word) -> int:
    """An i with holds(i) false and holds(i + 1) true, by binary search between low (false) and high (true).

    Both ends are known if the word is a counterexample. They are asked all the same, as LearnLib does: a teacher that
    contradicts itself (a black box, a language model) would otherwise keep the learner busy for ever.
    """
    # Nothing turns between a word and itself: only a teacher that answers it now so, now otherwise gets here.
    if holds(low) or not holds(high) or low >= high:
        raise _contradiction(word)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return low


def _contradiction(word: Word) -> ValueError:
    return ValueError(
        f"The teacher contradicts itself: it gave {word} as a counterexample, but its membership answers do not bear that "
        f"out. Is it deterministic?"
    )


# --- discrimination trees -------------------------------------------------------------------------------------


class _Node:
    """A leaf stands for a state (or for none yet); an inner node asks whether prefix + discriminator is in the language."""

    __slots__ = ("children", "discriminator", "outcome", "parent", "state")

    def __init__(self, parent: _Node | None, outcome: bool | None, state: int | None) -> None:
        self.parent, self.outcome, self.state = parent, outcome, state
        self.discriminator: Word = ()
        self.children: dict[bool, _Node] = {}

    def split(self, discriminator: Word, states: dict[bool, int | None]) -> None:
        self.discriminator, self.state = discriminator, None
        self.children = {outcome: _Node(self, outcome, state) for outcome, state in states.items()}


class _Tree:
    """States by access word, the tree that tells them apart, and the transitions by sifting."""

    def __init__(self, teacher: Checked) -> None:
        self.teacher = teacher
        self.symbols = range(len(teacher.alphabet))
        self.access: list[Word] = []
        self.leaf: list[_Node] = []
        self.accepting: list[bool] = []
        self.transitions: list[list[int]] = []
        self.incoming: list[list[tuple[int, int]]] = []
        self.root = _Node(None, None, None)
        accepts = teacher.member(())
        self.root.split((), {accepts: None, not accepts: None})
        self._expand(self._new_state((), self.root.children[accepts], accepts))

    def _new_state(self, access: Word, leaf: _Node, accepts: bool) -> int:
        leaf.state = len(self.access)
        self.access.append(access)
        self.leaf.append(leaf)
        self.accepting.append(accepts)
        self.transitions.append([-1] * len(self.symbols))
        self.incoming.append([])
        return leaf.state

    def _expand(self, state: int) -> None:
        """Finds a new state's transitions, and those of the one that they may discover."""
        for symbol in self.symbols:
            word = (*self.access[state], symbol)
            leaf = self._sift(self.root, word)
            if leaf.state is None:  # the first state whose acceptance is not the start's
                self._expand(self._new_state(word, leaf, bool(leaf.outcome)))
            self._point(state, symbol, leaf)

    def _sift(self, node: _Node, word: Word) -> _Node:
        while node.children:
            node = node.children[self.teacher.member(word + node.discriminator)]
        return node

    def _point(self, state: int, symbol: int, leaf: _Node) -> None:
        assert leaf.state is not None
        self.transitions[state][symbol] = leaf.state
        self.incoming[leaf.state].append((state, symbol))

    def hypothesis(self) -> DFA:
        """Asks nothing."""
        return DFA(self.transitions, self.accepting, 0, self.teacher.alphabet)

    def refine(self, word: Word, accepted: bool) -> bool:
        """One more state from a word whose answer is known, or False if the hypothesis gives that answer."""
        visited = [0]
        for symbol in word:
            visited.append(self.transitions[visited[-1]][symbol])
        if self.accepting[visited[-1]] == accepted:
            return False
        partings: dict[int, tuple[_Node, bool]] = {}

        def strays(i: int) -> bool:
            """Does the prefix of i symbols sift elsewhere than to the state that the hypothesis reaches?"""
            parting = self._parting(word[:i], self.leaf[visited[i]])
            if parting is not None:
                partings[i] = parting
            return parting is not None

        # One symbol's transition is where it sifts to, so it cannot stray.
        at = _turning_point(strays, min(1, len(word)), len(word), word)
        node, outcome = partings[at + 1]
        self._split(visited[at], word[:at], (word[at], *node.discriminator), outcome)
        return True

    def _parting(self, prefix: Word, leaf: _Node) -> tuple[_Node, bool] | None:
        """The first node on the way to a leaf at which the prefix goes the other way, and which way it goes."""
        path: list[tuple[_Node, bool]] = []
        node = leaf
        while node.parent is not None:
            assert node.outcome is not None
            path.append((node.parent, node.outcome))
            node = node.parent
        for node, expected in reversed(path):
            if self.teacher.member(prefix + node.discriminator) != expected:
                return node, not expected
        return None

    def _split(self, old: int, access: Word, discriminator: Word, outcome: bool) -> None:
        """Tells a new state with this access word, where the discriminator has this outcome, from an old one."""
        node = self.leaf[old]
        node.split(discriminator, {not outcome: old, outcome: None})
        self.leaf[old] = node.children[not outcome]
        new = self._new_state(access, node.children[outcome], self.accepting[old])
        waiting, self.incoming[old] = self.incoming[old], []
        self._expand(new)
        for state, symbol in waiting:
            self._point(state, symbol, self._sift(node, (*self.access[state], symbol)))


def kearns_vazirani(teacher: LearnsFrom) -> DFA:
    """Learns with a discrimination tree; each counterexample is used until the hypothesis agrees on it.

    Source: Kearns and Vazirani (1994), with a binary search through the counterexample instead of a linear one.

    Raises:
        BudgetExhausted: with the last hypothesis.
        ValueError: the teacher contradicts itself, or gives what is no answer or no word.
    """
    tree = _Tree(Checked(teacher))
    while True:
        hypothesis = tree.hypothesis()
        word = tree.teacher.equivalent(hypothesis)
        if word is None:
            return hypothesis.minimize()
        accepted = not hypothesis.accepts(word)
        while tree.refine(word, accepted):
            pass

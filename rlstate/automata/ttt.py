"""TTT: active learning with a redundancy-free discrimination tree (Isberner, Howar and Steffen, RV 2014).

Three trees. The *spanning tree* gives every state one access word. The *discrimination tree* tells states apart: its inner
nodes hold suffixes, the edge taken says whether the access word followed by the suffix is accepted, each leaf is a state.
The *discriminator trie* is what keeps words short: at rest every discriminator is one symbol before another discriminator.
A counterexample of any length first gives a *temporary* discriminator, a long suffix of it. A maximal subtree with
temporary inner nodes is a *block*, and a transition may point into the tree at a block as a whole. A block is *finalized*
once a symbol leads its states to different sides of a node that is final already: that node's suffix after the symbol
replaces the discriminator at the block's root, at the price of one query for each transition that comes in.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rlstate.automata.dfa import DFA
from rlstate.automata.teacher import Checked

if TYPE_CHECKING:
    from rlstate.automata.counterexamples import Word
    from rlstate.automata.teacher import LearnsFrom


def ttt(teacher: LearnsFrom) -> DFA:
    """The minimal DFA of the teacher's language, learned by TTT, in canonical numbering over the teacher's alphabet.

    For Q states, A symbols and counterexamples of length m it asks O(A Q² + Q log m) words, and fewer than Q hypotheses
    fail. In the end no suffix has Q symbols, however long the counterexamples were. The queries are those of LearnLib
    (Isberner, Howar and Steffen, CAV 2015), without the repeats that it makes where it finds a state while sifting.

    Raises:
        BudgetExhausted: the teacher's budget ran out (it holds the last hypothesis).
        ValueError: the teacher contradicts itself, or gives what is no answer or no word.
    """
    return TTTLearner(teacher).learn()


class _Node:
    """A node of the discrimination tree: a leaf has a state (or will have), an inner node a discriminator and children."""

    __slots__ = ("children", "depth", "incoming", "parent", "side", "state", "temporary", "word")

    def __init__(self, parent: _Node | None, side: bool) -> None:
        self.parent, self.side = parent, side
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.state: int | None = None
        self.word: Word = ()
        self.children: tuple[_Node, _Node] | None = None  # rejecting, accepting
        self.temporary = False
        self.incoming: dict[int, None] = {}  # the non-tree transitions that point here, in order of arrival

    def split(self, word: Word, temporary: bool) -> tuple[_Node, _Node]:
        self.word, self.temporary = word, temporary
        self.children = (_Node(self, False), _Node(self, True))
        return self.children

    def subtree(self) -> Iterator[_Node]:
        """The nodes from here down, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children or ())

    def states(self) -> list[int]:
        return [node.state for node in self.subtree() if node.state is not None]


class TTTLearner:
    """The learner behind `ttt`, for whoever wants to watch it: hypothesis, access words and discriminators.

    Transition `q * k + a` is symbol a's from state q. It points to a node of the discrimination tree, or, if it belongs to
    the spanning tree, to the one state whose access word it ends.
    """

    def __init__(self, teacher: LearnsFrom) -> None:
        self.teacher, self._checked = teacher, Checked(teacher)
        self.access_words: list[Word] = []
        self._k = len(self._checked.alphabet)
        self._accepting: list[bool] = []
        self._leaf: list[_Node] = []
        self._target: list[_Node | None] = []  # [Q k], None for the spanning tree's transitions
        self._successor = array("q")  # [Q k], the state, or any one state of the block, that a transition leads to
        self._open: list[int] = []  # transitions that may not have come to rest in the tree
        self._blocks: dict[_Node, None] = {}  # roots, oldest first
        self._root = _Node(None, False)
        # The root's suffix is empty, so that a state's acceptance is the edge from the root, known without a query.
        self._root.split((), temporary=False)
        self._new_state(None, self._sift((), self._root))
        self._close()

    def learn(self) -> DFA:
        """Ask for counterexamples until there are none; the minimal DFA."""
        while True:
            hypothesis = self.hypothesis()
            counterexample = self._checked.equivalent(hypothesis)
            if counterexample is None:
                return hypothesis.minimize()
            self.refine(counterexample, not hypothesis.accepts(counterexample))

    def hypothesis(self) -> DFA:
        """The automaton so far, states in order of discovery; costs no queries."""
        return DFA(self._table(), self._accepting, 0, self._checked.alphabet)

    def discriminators(self) -> list[Word]:
        """The suffixes that tell the states apart, each once, shortest first; closed under suffixes."""
        words = {node.word for node in self._root.subtree() if node.children}
        return sorted(words, key=lambda word: (len(word), word))

    def refine(self, counterexample: Word, answer: bool) -> None:
        """Refine until the hypothesis agrees that the language's answer to this word is `answer`."""
        word = tuple(counterexample)
        while self.hypothesis().accepts(word) != answer:
            found: tuple[int, Word, bool] | None = (0, word, answer)
            while found is not None:
                self._split_by(*found)
                self._close()
                while self._finalize_one():
                    self._close()
                found = self._inconsistency()
            assert not self._blocks  # see _inconsistency

    # --- words ----------------------------------------------------------------------------------------------------

    def _member(self, word: Word) -> bool:
        return self._checked.member(word)

    def _word(self, transition: int) -> Word:
        return (*self.access_words[transition // self._k], transition % self._k)

    def _table(self) -> np.ndarray:
        return np.array(self._successor).reshape(-1, self._k)

    # --- states and transitions ---------------------------------------------------------------------------------------

    def _new_state(self, transition: int | None, leaf: _Node) -> int:
        """A state at a leaf; the transition, which no list holds any more, becomes part of the spanning tree."""
        state = len(self.access_words)
        self.access_words.append(() if transition is None else self._word(transition))
        if transition is not None:
            self._target[transition], self._successor[transition] = None, state
        leaf.state = state
        self._leaf.append(leaf)
        self._accepting.append(_side(self._root, leaf))
        first = len(self._target)
        self._target += [self._root] * self._k
        self._successor.extend([state] * self._k)
        self._open += range(first, first + self._k)
        return state

    def _node(self, transition: int) -> _Node:
        return self._target[transition] or self._leaf[self._successor[transition]]

    def _sift(self, prefix: Word, node: _Node, hard: bool = False) -> _Node:
        """Down to a leaf; unless hard, no further than a block's root, whose discriminator is about to change."""
        while node.children and (hard or not node.temporary):
            node = node.children[self._member(prefix + node.word)]
        return node

    def _point(self, transition: int, node: _Node) -> None:
        node.incoming[transition] = None
        self._target[transition] = node
        while node.children:
            node = node.children[1]
        if node.state is not None:
            self._successor[transition] = node.state

    def _close(self) -> None:
        """Sift the open transitions; where one finds a leaf without a state, the shortest access word makes it one."""
        while self._open:
            vacant = None
            while self._open:
                transition = self._open.pop()
                node = self._sift(self._word(transition), self._node(transition))
                self._point(transition, node)
                if not node.children and node.state is None:
                    vacant = node
            if vacant is not None:  # only below the root: all other leaves are made with a state
                chosen = min(reversed(vacant.incoming), key=lambda t: len(self.access_words[t // self._k]))
                del vacant.incoming[chosen]
                state = self._new_state(chosen, vacant)
                for transition in vacant.incoming:
                    self._successor[transition] = state

    # --- counterexamples --------------------------------------------------------------------------------------------

    def _split_by(self, start: int, word: Word, answer: bool) -> None:
        """Split a state by a word that the hypothesis, from a state, answers other than the language (`answer`) does.

        Rivest and Schapire's (1993) binary search: replacing longer and longer prefixes by the access words of the states
        that they lead to must change the answer somewhere; there one transition leads to a state that is really two.
        """
        low, high = (
            0,
            len(word),
        )  # where the answers are known: `answer`, and what the hypothesis says (see _inconsistency)
        possible = [{start}]
        while high - low > 1:
            middle = (low + high) // 2
            prefix = self.access_words[self._determine(possible, word, middle)]
            if self._member(prefix + word[middle:]) == answer:
                low = middle
            else:
                high = middle
        old = self._determine(possible, word, high)
        transition = self._determine(possible, word, low) * self._k + word[low] if word else None
        leaf = None if transition is None else self._target[transition]
        if transition is None or leaf is None:  # then the two words that were answered differently are the same
            raise ValueError("The teacher's answers contradict each other: a learner needs one answer to each word.")
        del leaf.incoming[transition]
        leaf.state = None
        children = leaf.split(word[high:], temporary=True)
        self._leaf[old] = children[not answer]
        children[not answer].state = old
        self._new_state(transition, children[answer])
        if leaf.parent is None or not leaf.parent.temporary:
            self._blocks[leaf] = None

    def _determine(self, possible: list[set[int]], word: Word, length: int) -> int:
        """The state after so many symbols of a word. Where transitions point to blocks all their states are followed, and
        only from the last point at which one state was left are transitions sifted to a leaf.

        `possible` keeps the states after each symbol for the word's next call; to know some of them better since is no harm.
        """
        for symbol in word[len(possible) - 1 : length]:
            possible.append(self._successors(possible[-1], symbol))
        at = next(i for i in range(length, -1, -1) if len(possible[i]) == 1)
        (state,) = possible[at]
        for symbol in word[at:length]:
            transition = state * self._k + symbol
            node = self._target[transition]
            if node is not None and node.children:
                del node.incoming[transition]
                self._point(transition, self._sift(self._word(transition), node, hard=True))
            state = self._successor[transition]
        return state

    def _successors(self, states: set[int], symbol: int) -> set[int]:
        transitions = [state * self._k + symbol for state in states]
        blocks = {node for node in map(self._target.__getitem__, transitions) if node is not None and node.children}
        return {self._successor[t] for t in transitions}.union(*(block.states() for block in blocks))

    def _inconsistency(self) -> tuple[int, Word, bool] | None:
        """A state, a discriminator above it and the side it is on, where the hypothesis says otherwise; shortest first.

        Where no block can be finalized, a symbol leads the states of a block all to one block or all to one leaf. So the
        hypothesis answers alike from all of them, whichever is taken for the target of a transition to the block. But the
        discriminator at the block's root says that the language does not: no inconsistency means that no block is left.
        """
        table, accepting = self._table(), np.array(self._accepting)
        nodes = list(self._root.subtree())
        below: dict[_Node, np.ndarray] = {}  # states
        for node in reversed(nodes):
            parts = [below[child] for child in node.children or ()]
            below[node] = np.concatenate(parts) if parts else np.array(node.states(), np.int64)
        outputs: dict[Word, np.ndarray] = {(): accepting}  # bool[Q] by final discriminator
        best: tuple[int, Word, bool] | None = None
        for node in sorted((node for node in nodes if node.children), key=lambda node: len(node.word)):
            word = node.word
            if best is not None and len(word) > len(best[1]):
                break
            if node.temporary:
                after = np.arange(len(table))
                for symbol in word:
                    after = table[after, symbol]
                output = accepting[after]
            else:
                if word not in outputs:  # without its first symbol it is another final discriminator
                    outputs[word] = outputs[word[1:]][table[:, word[0]]]
                output = outputs[word]
            for side, child in zip((False, True), node.children or ()):
                answers = output[below[child]]
                if np.count_nonzero(answers) != side * len(answers):
                    state = int(below[child][answers != side].min())
                    if best is None or state <= best[0]:
                        best = (state, word, side)
        return best

    # --- finalization -----------------------------------------------------------------------------------------------

    def _finalize_one(self) -> bool:
        """Give one block's root a final discriminator, the shortest that any block can have; False if none can."""
        best: tuple[_Node, int, _Node] | None = None
        for block in reversed(self._blocks):
            found = self._splitter(block)
            if found is not None and (best is None or len(found[1].word) < len(best[2].word)):
                best = (block, *found)
        if best is None:
            return False
        block, symbol, separator = best
        word = (symbol, *separator.word)
        if block.word != word:
            self._replace(block, word, symbol, separator)
        block.temporary = False
        del self._blocks[block]
        for child in block.children or ():
            if child.children:
                self._blocks[child] = None
        self._open += block.incoming
        block.incoming = {}
        return True

    def _splitter(self, block: _Node) -> tuple[int, _Node] | None:
        """A symbol and the final inner node, with the shortest discriminator, that parts its successors of the block."""
        best: tuple[int, _Node] | None = None
        states = block.states()
        for symbol in range(self._k):
            node = self._node(states[0] * self._k + symbol)
            for state in states:
                node = _common(node, self._node(state * self._k + symbol))
                if node is self._root:
                    return symbol, node
            if node.children and not node.temporary and (best is None or len(node.word) < len(best[1].word)):
                best = (symbol, node)
        return best

    def _replace(self, block: _Node, word: Word, symbol: int, separator: _Node) -> None:
        """Divide a block by another discriminator at its root; each part keeps what it needs of the old subtree."""
        nodes = list(block.subtree())
        arrivals: dict[_Node, dict[bool, list[int]]] = {}
        label: dict[_Node, bool] = {}
        for node in nodes:
            arrivals[node] = {}
            for transition in reversed(node.incoming):
                arrivals[node].setdefault(self._member(self._word(transition) + word), []).append(transition)
            if node.state is not None:  # the separator knows where the successor lies: no query
                label[node] = _side(separator, self._node(node.state * self._k + symbol))
        wanted: dict[_Node, set[bool]] = {}  # the sides that something at or below the node goes to
        for node in reversed(nodes):
            own = {label[node]} if node in label else set()
            wanted[node] = own.union(arrivals[node], *(wanted[child] for child in node.children or ()))
        parts = (_Node(block, False), _Node(block, True))
        for side, part in zip((False, True), parts):
            stack = [(block, part)]
            while stack:
                old, new = stack.pop()
                new.incoming.update(dict.fromkeys(arrivals[old].get(side, ())))
                children = [child for child in old.children or () if side in wanted[child]]
                if len(children) == 2:
                    stack += zip(children, new.split(old.word, temporary=True))
                elif children:  # a node with one child tells nothing apart
                    stack.append((children[0], new))
                elif old.state is not None and label[old] == side:
                    new.state = old.state
                    self._leaf[old.state] = new
                else:  # transitions come here but no state does: one of them has found a new state
                    self._new_state(new.incoming.popitem()[0], new)
            for new in part.subtree():
                for transition in new.incoming:
                    self._point(transition, new)
        block.word, block.children, block.incoming = word, parts, {}


def _common(a: _Node, b: _Node) -> _Node:
    """The lowest common ancestor."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        assert a.parent is not None
        a = a.parent
    return a


def _side(ancestor: _Node, node: _Node) -> bool:
    """The side of an ancestor that a node below it is on."""
    while node.parent is not ancestor:
        assert node.parent is not None
        node = node.parent
    return node.side

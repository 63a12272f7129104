"""TTT: the queries of LearnLib's learner, exact results from any counterexamples, short suffixes in the end."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, load, zoo
from rlstate.automata.sampling import random_dfa
from rlstate.automata.teacher import BudgetExhausted, Counts, Teacher
from rlstate.automata.ttt import TTTLearner, _Node, ttt


def counts_of(teacher: Teacher) -> list[int]:
    counts = teacher.counts
    return [counts.unique, counts.raw, counts.symbols, counts.equivalence]


class Recording(Teacher):
    """Keeps everything it is asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked: list[object] = []

    def member(self, word):
        self.asked.append(word)
        return super().member(word)

    def equivalent(self, hypothesis):
        self.asked.append(hypothesis)
        return super().equivalent(hypothesis)


# --- what LearnLib asks ---------------------------------------------------------------------------------------


class AsLearnLib(TTTLearner):
    """LearnLib 0.18 initializes a state that it finds while closing transitions twice. The first set of its transitions is no
    part of the hypothesis any more but is sifted like the others: raw queries, of words that are asked anyway."""

    def _new_state(self, transition: int | None, leaf: _Node) -> int:
        if transition is not None and leaf.parent is self._root:  # only closing finds states there
            first = len(self._target)
            self.access_words.append(self._word(transition))
            self._accepting.append(leaf.side)
            self._leaf.append(leaf)
            self._target += [self._root] * self._k
            self._successor.extend([0] * self._k)
            self._open += range(first, first + self._k)
        return super()._new_state(transition, leaf)


def reference_automata(path: Path) -> list[DFA]:
    """Each: a line "states symbols", a line of acceptance, a line of successors for each state; state 0 starts."""
    numbers = list(map(int, path.read_text().split()))
    automata = []
    while numbers:
        n, k = numbers[:2]
        end = 2 + n + n * k
        automata.append(DFA(np.reshape(numbers[2 + n : end], (n, k)), np.array(numbers[2 : 2 + n], bool)))
        del numbers[:end]
    return automata


@pytest.fixture(scope="module")
def reference(data: Path) -> dict:
    return json.loads((data / "reference" / "learnlib_0.18_query_counts.json").read_text())


def test_peterson2(data, reference):
    """50 states, 18 symbols, shortest counterexamples: LearnLib's queries to the last one, and fewer repeats."""
    target = load(data / "models" / "learnlib" / "peterson2.dfa.gz")
    theirs = reference["peterson2.dfa (50 states, 18 symbols)"]["TTTLearnerDFA(BINARY_SEARCH_BWD)"]
    teacher = Teacher(target)
    assert AsLearnLib(teacher).learn() == target.minimize()
    assert counts_of(teacher) == theirs

    teacher = Teacher(target)
    assert ttt(teacher) == target.minimize()
    unique, raw, symbols, equivalence = counts_of(teacher)
    assert [unique, equivalence] == [theirs[0], theirs[3]]
    assert 0.98 * theirs[1] <= raw <= theirs[1]
    assert 0.98 * theirs[2] <= symbols <= theirs[2]


def test_sixty_automata_of_eight_states(data, reference):
    automata = reference_automata(data / "reference" / "dfa_k2_n8.txt")
    theirs = reference["dfa_k2_n8.txt (60 uniform minimal DFAs, means; shortest cex)"]["TTTLearnerDFA"]
    assert len(automata) == 60
    replayed, ours = [], []
    for target in automata:
        for learner, counts in ((AsLearnLib, replayed), (TTTLearner, ours)):
            teacher = Teacher(target)
            assert learner(teacher).learn() == target.minimize()
            counts.append(counts_of(teacher))
    means = np.mean(replayed, axis=0)
    assert [*np.round(means[[0, 1]], 1), round(means[2]), round(means[3], 1)] == theirs
    replayed, ours = np.array(replayed), np.array(ours)
    assert (ours[:, [0, 3]] == replayed[:, [0, 3]]).all()
    assert (ours[:, [1, 2]] <= replayed[:, [1, 2]]).all()


def test_long_counterexamples_cost_little():
    """60 uniform minimal DFAs, n = 16, k = 2, random counterexamples of length 100: LearnLib's means on other ones are
    145 / 209 / 7.5; learners that keep their temporary discriminators need 730 / 4284 / 8.3."""
    counts = []
    for seed in range(60):
        target = random_dfa(16, 2, seed)
        teacher = Teacher(target, "random", seed=seed, length=100)
        assert ttt(teacher) == target.minimize()
        counts.append(counts_of(teacher))
    unique, raw, _, equivalence = np.mean(counts, axis=0)
    assert unique == pytest.approx(145, rel=0.1)
    assert raw == pytest.approx(209, rel=0.1)
    assert equivalence == pytest.approx(7.5, rel=0.1)


# --- what comes out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["shortest", "near_shortest", "random"])
def test_a_thousand_targets(policy):
    for seed in range(1000):
        target = random_dfa(1 + seed % 12, 1 + seed % 4, seed, minimal=False)
        length = 1 + seed * 37 % 100 if policy == "random" else None
        teacher = Teacher(target, policy, seed=seed, length=length)
        learner = TTTLearner(teacher)
        learned = learner.learn()
        assert learned == target.minimize()  # canonical arrays, so equivalent and minimal
        assert learned.alphabet == target.alphabet
        check_words(learner, learned)


def check_words(learner: TTTLearner, learned: DFA) -> None:
    """Access words reach each state once, prefixes included; suffixes separate all pairs, their suffixes included."""
    access, suffixes = learner.access_words, learner.discriminators()
    assert all(word[:-1] in access for word in access if word)
    assert sorted(learned.run(word) for word in access) == list(range(learned.n_states))
    assert all(word[1:] in suffixes for word in suffixes if word)
    assert suffixes == sorted(set(suffixes), key=lambda word: (len(word), word))
    rows = {tuple(learned.accepts(word + suffix) for suffix in suffixes) for word in access}
    assert len(rows) == learned.n_states
    # A tree with Q leaves has Q − 1 inner nodes. As they are closed under suffixes the longest has at most Q − 2 symbols.
    assert len(suffixes) <= max(learned.n_states - 1, 1)


def test_at_rest_nothing_is_temporary():
    """One counterexample of length 400 yields all states, and only short suffixes remain of it."""
    for seed in range(20):
        target = random_dfa(20, 2, seed)
        learner = TTTLearner(Teacher(target, "random", seed=seed, length=400))
        hypothesis = learner.hypothesis()
        while (word := learner.teacher.equivalent(hypothesis)) is not None:
            assert len(word) >= 400
            learner.refine(word, not hypothesis.accepts(word))
            hypothesis = learner.hypothesis()
            assert not any(node.temporary for node in learner._root.subtree())
            assert all(node.children or node.state is not None for node in learner._root.subtree())
            assert target.accepts(word) == hypothesis.accepts(word)  # the counterexample is used up
        assert hypothesis.n_states == 20
        assert sum(map(len, learner.discriminators())) <= 60  # temporary ones: hundreds of symbols each


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_table_and_any_counterexample(data):
    """Also unreachable and equivalent states, and counterexamples that the learner's adversary draws."""
    n, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.lists(st.integers(0, n - 1), min_size=k, max_size=k), min_size=n, max_size=n))
    target = DFA(rows, data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))

    class Adversary:
        alphabet, counts = target.alphabet, Counts()

        def member(self, word):
            return target.accepts(word)

        def equivalent(self, hypothesis):
            word = data.draw(st.lists(st.integers(0, k - 1), max_size=60))
            return word if target.accepts(word) != hypothesis.accepts(word) else target.equivalent(hypothesis)

    learner = TTTLearner(Adversary())
    learned = learner.learn()
    assert learned == target.minimize()
    check_words(learner, learned)


def test_permutation_automata_with_long_counterexamples():
    """Groups mix: here blocks get large, refuse to be finalized, and reveal states while they are divided."""
    rng = np.random.default_rng(0)
    for seed in range(60):
        n = int(rng.integers(10, 25))
        target = DFA(np.stack([rng.permutation(n), rng.permutation(n)], axis=1), rng.random(n) < 0.15)
        teacher = Teacher(target, "random", seed=seed, length=150)
        learner = TTTLearner(teacher)
        assert learner.learn() == target.minimize()


@pytest.mark.parametrize(
    "target",
    [
        DFA([[0]], [False]),
        DFA([[0]], [True]),
        DFA([[0, 0, 0]], [False]),
        DFA([[0, 0, 0]], [True]),
        DFA([[1], [1]], [True, False]),  # the empty word alone
        DFA([[1], [1]], [False, True]),
        DFA([[1, 0], [0, 1]], [True, False], alphabet=["flip", "keep"]),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_degenerate_languages(target, cache):
    teacher = Teacher(target, cache=cache)
    assert ttt(teacher) == target
    assert teacher.counts.equivalence == 1
    if target.n_states == 1:  # the empty word, and where each symbol leads
        assert teacher.counts.raw == 1 + target.n_symbols


@pytest.mark.parametrize("name", ["parity", "mod_11", "mod_5_hold", "contains_0010", "workflow_api", "mined_ean"])
def test_the_zoo(name):
    target = zoo.make(name)
    assert ttt(Teacher(target)) == target.minimize()


def test_a_chain_of_states():
    """Trees as deep as the automaton, from one counterexample: nothing recurses."""
    n = 150
    target = DFA([[(i + 1) % n] for i in range(n)], [i == n - 1 for i in range(n)])
    teacher = Teacher(target)
    assert ttt(teacher) == target.minimize()
    assert teacher.counts.equivalence == 2


# --- the teacher's side ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["shortest", "near_shortest", "random"])
def test_cached_equals_uncached_and_reruns_are_identical(policy):
    for seed in range(30):
        target = random_dfa(8, 2, seed)
        length = 60 if policy == "random" else None
        teachers = [Recording(target, policy, seed=seed, length=length, cache=cache) for cache in (True, False, True)]
        results = [ttt(teacher) for teacher in teachers]
        assert results[0] == results[1] == results[2]
        assert teachers[0].asked == teachers[1].asked == teachers[2].asked
        assert counts_of(teachers[0]) == counts_of(teachers[1]) == counts_of(teachers[2])


def test_the_hash_seed_has_no_say():
    program = (
        "from rlstate.automata.sampling import random_dfa\n"
        "from rlstate.automata.teacher import Teacher\n"
        "from rlstate.automata.ttt import TTTLearner\n"
        "for seed in range(20):\n"
        "    learner = TTTLearner(Teacher(random_dfa(12, 3, seed), 'random', seed=seed, length=80))\n"
        "    print(learner.learn().digest(), learner.teacher.counts, learner.access_words, learner.discriminators())\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == 20


def test_numbering_of_the_target_has_no_say():
    target = random_dfa(10, 2, 3)
    order = np.random.default_rng(0).permutation(10)
    renumbered = DFA(np.argsort(order)[target.transitions[order]], target.accepting[order], int(np.argsort(order)[0]))
    assert renumbered != target
    teachers = [Recording(target), Recording(renumbered)]
    assert ttt(teachers[0]) == ttt(teachers[1])
    assert teachers[0].asked == teachers[1].asked


def test_a_budget_that_runs_out():
    target = random_dfa(8, 2, 5)
    enough = Recording(target)
    learned = ttt(enough)
    total = enough.counts.total
    assert ttt(Teacher(target, budget=total)) == learned
    proposals = set()
    for budget in range(total):
        teacher = Recording(target, budget=budget)
        with pytest.raises(BudgetExhausted) as caught:
            ttt(teacher)
        assert teacher.counts.total == budget
        proposed = [asked for asked in teacher.asked if isinstance(asked, DFA)]
        assert caught.value.hypothesis == (proposed[-1] if proposed else None)
        proposals.add(caught.value.hypothesis)
    assert len(proposals) == enough.counts.equivalence + 1  # none, then each in turn


def test_reading_a_hypothesis_costs_nothing():
    teacher = Teacher(random_dfa(9, 2, 1))
    learner = TTTLearner(teacher)
    before = counts_of(teacher)
    assert learner.hypothesis() == learner.hypothesis()
    assert learner.discriminators() == [()]
    assert counts_of(teacher) == before


def test_teachers_that_contradict_themselves():
    """One clear error; never an endless loop or an error from the depths."""
    rng = random.Random(0)

    class Liar:
        counts = Counts()

        def __init__(self, noise):
            self.noise, self.alphabet = noise, ("a", "b")
            self.hidden = random_dfa(5, 2, rng.randrange(1000))

        def member(self, word):
            return self.hidden.accepts(word) ^ (rng.random() < self.noise)

        def equivalent(self, hypothesis):
            return tuple(rng.choices((0, 1), k=rng.randrange(12)))

    for noise in (0.0, 0.02, 0.5):
        for _ in range(40):
            with pytest.raises(ValueError, match="contradict each other"):
                ttt(Liar(noise))


# --- size -----------------------------------------------------------------------------------------------------


def test_hundreds_of_states():
    target = random_dfa(200, 10, 0)
    teacher = Teacher(target)
    assert ttt(teacher) == target.minimize()
    # k n transitions, each sifted through a tree of depth about log₂ n
    assert teacher.counts.raw < 1.5 * 200 * 10 * np.log2(200)

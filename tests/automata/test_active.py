"""Active learners: they find the language, they ask what LearnLib asks, and they stop when told."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest

from rlstate.automata import DFA, load, zoo
from rlstate.automata.active import (
    BlackBoxTeacher,
    BudgetExhausted,
    Teacher,
    kearns_vazirani,
    lstar,
    rivest_schapire,
    ttt,
    w_method,
)
from rlstate.automata.sampling import random_dfa

LEARNERS = [lstar, rivest_schapire, kearns_vazirani, ttt]
POLICIES = {
    "shortest": {},
    "near_shortest": {"counterexample": "near_shortest"},
    "random": {"counterexample": "random", "length": 100},
}
every_learner = pytest.mark.parametrize("learn", LEARNERS)


def counts(teacher) -> tuple[int, int, int, int]:
    c = teacher.counts
    return c.unique, c.raw, c.symbols, c.equivalence


# --- LearnLib's counts (0.18, shortest counterexamples) --------------------------------------------------------------

CLASSICAL = {
    lstar: "ClassicLStarDFA",
    rivest_schapire: "RivestSchapireDFA",
    kearns_vazirani: "KearnsVaziraniDFA(repeated, BINARY_SEARCH_BWD)",
}


@pytest.mark.parametrize("learn", CLASSICAL)
def test_learnlibs_counts_on_peterson2(data, learn):
    reference = json.loads((data / "reference/learnlib_0.18_query_counts.json").read_text())
    expected = reference["peterson2.dfa (50 states, 18 symbols)"][CLASSICAL[learn]]
    target = load(data / "models/learnlib/peterson2.dfa.gz")
    teacher = Teacher(target)
    assert learn(teacher) == target.minimize()
    assert list(counts(teacher)) == expected  # to the query


@pytest.mark.parametrize("learn", CLASSICAL)
def test_learnlibs_mean_counts_on_sixty_random_automata(data, learn):
    reference = json.loads((data / "reference/learnlib_0.18_query_counts.json").read_text())
    expected = reference["dfa_k2_n8.txt (60 uniform minimal DFAs, means; shortest cex)"][CLASSICAL[learn].split("(")[0]]
    targets = read_automata(data / "reference/dfa_k2_n8.txt")
    means = np.mean([learned_counts(learn, target) for target in targets], axis=0)
    rounding = [0.05, 0.05, 0.5, 0.05]  # the reference is given to so many digits
    assert np.all(np.abs(means - expected) <= np.add(rounding, 1e-9)), (means, expected)


@pytest.mark.parametrize("learn", CLASSICAL)
def test_small_automata_are_learned_too(data, learn):
    for target in read_automata(data / "reference/dfa_k2_n4.txt"):
        teacher = Teacher(target)
        assert learn(teacher) == target.minimize()


def learned_counts(learn, target: DFA) -> tuple[int, int, int, int]:
    teacher = Teacher(target)
    assert learn(teacher) == target.minimize()
    return counts(teacher)


def read_automata(path) -> list[DFA]:
    """Records of "states symbols", a line of acceptance, and a line of successors for each state."""
    lines = [[int(number) for number in line.split()] for line in path.read_text().splitlines() if line.strip()]
    automata = []
    while lines:
        n_states, accepting = lines[0][0], [bool(bit) for bit in lines[1]]
        automata.append(DFA(lines[2 : 2 + n_states], accepting))
        lines = lines[2 + n_states :]
    assert len(automata) == 60
    return automata


# --- the language is found -------------------------------------------------------------------------------------------


@every_learner
@pytest.mark.parametrize("policy", POLICIES)
def test_every_learner_finds_random_languages(learn, policy):
    """12 runs of 84 targets: a thousand. Cached and uncached answers lead to the same questions."""
    for i in range(84):
        target = random_dfa(1 + i % 12, 1 + i // 12 % 4, seed=1000 + i)
        cached = Teacher(target, seed=i, **POLICIES[policy])
        uncached = Teacher(target, seed=i, cache=False, **POLICIES[policy])
        learned = learn(cached)
        assert learned == target.minimize()
        assert learned.alphabet == target.alphabet
        assert learn(uncached) == learned
        assert counts(uncached) == counts(cached)


@every_learner
def test_reruns_ask_the_same(learn):
    target = random_dfa(9, 3, seed=5)
    for options in POLICIES.values():
        teachers = [Teacher(target, **options) for _ in range(2)]
        for teacher in teachers:
            learn(teacher)
        assert counts(teachers[0]) == counts(teachers[1])


@every_learner
def test_the_number_of_a_state_has_no_say(learn):
    target = random_dfa(8, 2, seed=6)
    order = np.random.default_rng(0).permutation(8)
    where = np.argsort(order)
    renumbered = DFA(where[target.transitions][order], target.accepting[order], where[target.start])
    for options in POLICIES.values():
        teachers = Teacher(target, **options), Teacher(renumbered, **options)
        assert learn(teachers[0]) == learn(teachers[1])
        assert counts(teachers[0]) == counts(teachers[1])


@every_learner
def test_names_and_redundant_states(learn):
    redundant = DFA([[2, 1], [1, 0], [0, 3], [3, 2], [4, 4]], [True, False, True, False, True], 0, "xy")
    learned = learn(Teacher(redundant))
    assert learned == redundant.minimize()
    assert learned.n_states == 2
    assert learned.alphabet == ("x", "y")


@every_learner
@pytest.mark.parametrize("accepting", [True, False])
def test_one_state_takes_one_hypothesis(learn, accepting):
    teacher = Teacher(DFA([[0, 0, 0]], [accepting]))
    assert learn(teacher).n_states == 1
    assert teacher.counts.equivalence == 1


@every_learner
def test_the_zoo(learn):
    for name in ("parity", "mod_11", "ends_with_1000", "contains_0010", "no_three_zeros", "workflow_api", "mined_ean"):
        target = zoo.make(name)
        assert learn(Teacher(target)) == target.minimize()


@pytest.mark.parametrize("learn", [rivest_schapire, kearns_vazirani, ttt])
def test_words_of_ten_thousand_symbols(learn):
    target = random_dfa(12, 2, seed=2)
    assert learn(Teacher(target, counterexample="random", length=10_000)) == target


def test_lstar_takes_long_words_too():
    target = random_dfa(6, 2, seed=2)
    teacher = Teacher(target, counterexample="random", length=2000)
    assert lstar(teacher) == target
    assert teacher.counts.raw > 4000  # each prefix became a row


@pytest.mark.parametrize("learn", [rivest_schapire, kearns_vazirani, ttt])
def test_long_counterexamples_cost_their_logarithm(learn):
    """Of a counterexample of length m an efficient learner asks O(log m) prefixes, L* all of them."""
    target = zoo.make("mod_7")
    costs = []
    for length in (64, 4096):
        teacher = Teacher(target, counterexample="random", length=length)
        learn(teacher)
        costs.append(teacher.counts.raw)
    assert costs[1] < costs[0] + 20 * 7 * np.log2(4096)


# --- budgets ---------------------------------------------------------------------------------------------------------


@every_learner
@pytest.mark.parametrize("cache", [True, False])
def test_every_budget_is_kept(learn, cache):
    target = random_dfa(5, 2, seed=11)
    free = Teacher(target, cache=cache)
    learned = learn(free)
    for budget in range(free.spent):
        teacher = Teacher(target, budget=budget, cache=cache)
        with pytest.raises(BudgetExhausted) as caught:
            learn(teacher)
        assert teacher.spent == budget
        assert caught.value.counts == teacher.counts
        if cache:
            assert teacher.counts.total == budget
        hypothesis = caught.value.hypothesis
        if teacher.counts.equivalence:
            assert hypothesis.alphabet == target.alphabet
            assert hypothesis.n_states <= target.n_states
    assert learn(Teacher(target, budget=free.spent, cache=cache)) == learned


# --- black boxes -----------------------------------------------------------------------------------------------------


@every_learner
def test_learning_a_python_predicate(learn):
    def divisible_by_three(word: tuple[int, ...]) -> bool:
        return int("0" + "".join(map(str, word)), 2) % 3 == 0

    for tester in (None, w_method(2)):
        assert learn(BlackBoxTeacher(divisible_by_three, "01", tester)) == zoo.make("mod_3").minimize()
        assert learn(BlackBoxTeacher(lambda w: sum(w) % 2 == 0, "01", tester)) == zoo.make("parity").minimize()


@every_learner
def test_a_black_box_is_learned_as_far_as_it_was_tested(learn):
    """With a budget the learner ends in a hypothesis that fits every answer it was given."""
    answers: dict[tuple[int, ...], bool] = {}

    def palindrome(word: tuple[int, ...]) -> bool:  # no automaton accepts it
        return answers.setdefault(word, word == word[::-1])

    with pytest.raises(BudgetExhausted) as caught:
        learn(BlackBoxTeacher(palindrome, "ab", budget=300))
    assert caught.value.hypothesis.n_states > 3
    assert len(answers) == caught.value.counts.unique


class Liar:
    """Answers like parity, and takes no hypothesis for it."""

    def __init__(self, word: tuple[int, ...]) -> None:
        self._teacher = Teacher(zoo.make("parity"))
        self.alphabet, self.counts, self.word = self._teacher.alphabet, self._teacher.counts, word

    def member(self, word):
        return self._teacher.member(word)

    def equivalent(self, hypothesis):
        return self.word


@pytest.mark.parametrize("learn", CLASSICAL)
@pytest.mark.parametrize("word", [(), (1,), (0, 1, 1), (1, 0, 1, 1, 1, 0)])
def test_a_teacher_that_contradicts_itself_is_found_out(learn, word):
    """Instead of asking for ever."""
    with pytest.raises(ValueError, match="contradicts itself"):
        learn(Liar(word))


def test_answers_that_differ_from_one_time_to_the_next_are_found_out():
    """One symbol or none too, where nothing is left to search: never an error from the depths."""
    rng = random.Random(0)
    hidden = random_dfa(5, 2, 7)

    class Noisy(Liar):
        def member(self, word):
            return hidden.accepts(word) ^ (rng.random() < 0.3)

        def equivalent(self, hypothesis):
            return tuple(rng.choices((0, 1), k=rng.randrange(3)))

    for learn, _ in itertools.product(CLASSICAL, range(60)):
        with pytest.raises(ValueError, match="contradicts itself"):
            learn(Noisy(()))


# --- anybody's teachers ---------------------------------------------------------------------------------------


class Foreign:
    """Knows words that end with 101; only the types of what it says are others."""

    def __init__(self, answer, word) -> None:
        self._teacher = Teacher(zoo.make("ends_with_101"))
        self.alphabet, self.counts, self.answer, self.word = "01", self._teacher.counts, answer, word

    def member(self, word):
        assert type(word) is tuple
        assert all(type(symbol) is int for symbol in word)
        return self.answer(self._teacher.member(word))

    def equivalent(self, hypothesis):
        found = self._teacher.equivalent(hypothesis)
        return None if found is None else self.word(found)


@every_learner
@pytest.mark.parametrize("answer", [int, np.bool_, np.int64])
@pytest.mark.parametrize("word", [list, np.array, lambda word: iter(np.array(word, np.uint8))])
def test_answers_are_made_bools_and_counterexamples_tuples(learn, answer, word):
    assert learn(Foreign(answer, word)) == zoo.make("ends_with_101")


@every_learner
@pytest.mark.parametrize(
    ("answer", "word", "sentence"),
    [
        (lambda answer: None, tuple, r"The teacher answered None to the word \(\), but must answer True or False"),
        (str, tuple, "The teacher answered 'False' to the word"),
        (lambda answer: 2, tuple, "The teacher answered 2 to the word"),
        (bool, str, "The teacher's counterexample is no word. The word .* is a string"),
        (bool, lambda word: (0, 5), "The teacher's counterexample is no word. The word has symbol 5"),
        (bool, lambda word: {0, 1}, "The teacher's counterexample is no word. .* not a flat sequence"),
        (bool, lambda word: 3.5, "The teacher's counterexample is no word. .* not a flat sequence"),
    ],
)
def test_what_is_no_answer_and_no_word_is_one_sentence(learn, answer, word, sentence):
    with pytest.raises(ValueError, match=sentence):
        learn(Foreign(answer, word))

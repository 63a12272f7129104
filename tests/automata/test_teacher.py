"""What teachers answer, count, refuse and never count."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from rlstate.automata import DFA, zoo
from rlstate.automata.active import BlackBoxTeacher, BudgetExhausted, Counts, Teacher, random_words, ttt, w_method
from rlstate.automata.mining import PredicateError, mine
from rlstate.automata.sampling import random_dfa

EMPTY = DFA([[0, 0]], [False])


def teachers(**options):
    """The same language known exactly and as a black box."""
    target = zoo.make("parity")
    return [Teacher(target, **options), BlackBoxTeacher(target.accepts, target.alphabet, w_method(1), **options)]


def test_membership_is_the_language():
    for seed in range(20):
        dfa = random_dfa(1 + seed % 6, 1 + seed % 4, seed)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            word = rng.integers(dfa.n_symbols, size=rng.integers(0, 12))  # NumPy integers are symbols too
            assert Teacher(dfa).member(word) == dfa.accepts(word)


def test_alphabets_beyond_a_byte():
    dfa = DFA([[0] * 299 + [1], [1] * 300], [False, True])
    teacher = Teacher(dfa)
    assert [teacher.member(w) for w in ((299,), (0,), (299, 5), (0,))] == [True, False, True, False]
    assert (teacher.counts.unique, teacher.counts.raw) == (3, 4)


@pytest.mark.parametrize("which", [0, 1])
def test_counts(which):
    teacher = teachers()[which]
    for word in ((), (0, 1), [0, 1], (), np.array([1])):
        teacher.member(word)
    assert teacher.counts == Counts(unique=3, raw=5, symbols=5, equivalence=0)
    assert (teacher.counts.total, teacher.spent, teacher.remaining) == (3, 3, None)
    if which == 0:  # a tester asks besides
        assert teacher.equivalent(EMPTY) == ()
        assert teacher.equivalent(EMPTY) == ()  # paid for again
        assert teacher.counts == Counts(unique=3, raw=5, symbols=5, equivalence=2)
        assert teacher.counts.total == 5


@pytest.mark.parametrize("which", [0, 1])
def test_without_a_cache_every_ask_is_paid(which):
    teacher = teachers(cache=False, budget=4)[which]
    for word in ((), (1,), (), ()):
        teacher.member(word)
    assert teacher.counts == Counts(unique=2, raw=4, symbols=1, equivalence=0)
    assert (teacher.spent, teacher.remaining) == (4, 0)
    with pytest.raises(BudgetExhausted):
        teacher.member(())


def test_the_cache_spares_the_black_box():
    asked = []
    for cache, expected in ((True, [(), (1,)]), (False, [(), (), (1,), ()])):
        asked.clear()
        teacher = BlackBoxTeacher(lambda word: asked.append(word) or True, "ab", cache=cache)
        assert all(teacher.member(word) for word in ((), (), (1,), ()))
        assert asked == expected


@pytest.mark.parametrize("which", [0, 1])
def test_a_budget_refuses_before_anything_is_told(which):
    teacher = teachers(budget=2)[which]
    teacher.member(())
    teacher.member((1,))
    assert teacher.member(()) is True  # known, so free
    before = Counts(**vars(teacher.counts))
    for refused in (lambda: teacher.member((0, 0)), lambda: teacher.equivalent(EMPTY), lambda: teacher.member((0, 0))):
        with pytest.raises(BudgetExhausted, match="budget of 2"):
            refused()
    assert teacher.counts == before
    with pytest.raises(BudgetExhausted) as caught:
        teacher.equivalent(EMPTY)
    assert caught.value.hypothesis == EMPTY
    assert caught.value.counts == before
    teacher.member(())
    assert caught.value.counts == before  # a copy, not a view
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.hypothesis, again.counts, str(again)) == (EMPTY, before, str(caught.value))


def test_a_budget_of_nothing():
    with pytest.raises(BudgetExhausted, match="no hypothesis") as caught:
        Teacher(EMPTY, budget=0).member(())
    assert caught.value.hypothesis is None
    assert caught.value.counts.total == 0


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda t: t.member((0, 2)), "symbol 2 at position 1, but the symbols are 0 … 1"),
        (lambda t: t.member((0, -1)), "symbol -1 at position 1"),
        (lambda t: t.member("01"), "is a string"),
        (lambda t: t.member(7), "not a flat sequence"),
        (lambda t: t.member([0, [1]]), "not a flat sequence"),
        (lambda t: t.member([0, 1.0]), "not a flat sequence"),
        (lambda t: t.member([0, None]), "not a flat sequence"),
        (lambda t: t.equivalent("a*"), "is a str, but must be a DFA"),
        (lambda t: t.equivalent(None), "is a NoneType, but must be a DFA"),
        (lambda t: t.equivalent(DFA([[0, 0]], [True], 0, "ab")), "is over .'a', 'b'., but"),
        (lambda t: t.equivalent(DFA([[0, 0, 0]], [True])), "same names, same order"),
        (lambda t: t.equivalent(DFA([[0, 0]], [True], 0, "10")), "alphabets differ"),
        (lambda t: t.member([True, False]), "not a flat sequence"),
        (lambda t: t.member([0, np.True_]), "not a flat sequence"),
        (lambda t: t.member(np.array([True])), "not a flat sequence"),
        (lambda t: t.member({0, 1}), "not a flat sequence"),
        (lambda t: t.member({0: 1}), "not a flat sequence"),
    ],
)
def test_a_malformed_call_says_why_and_costs_nothing(which, call, sentence):
    teacher = teachers(budget=0)[which]  # even with nothing left it is the call that is wrong
    with pytest.raises(ValueError, match=sentence):
        call(teacher)
    assert teacher.counts == Counts()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"counterexample": "longest"}, "shortest, near_shortest, random"),
        ({"counterexample": "random"}, "length"),
        ({"length": 5}, "length belongs to random"),
        ({"counterexample": "random", "length": -1}, "length is -1"),
        ({"counterexample": "random", "length": 2.5}, "length is 2.5"),
        ({"budget": -1}, "budget is -1"),
        ({"budget": 1.5}, "budget is 1.5"),
        ({"budget": True}, "budget is True"),
        ({"seed": "x"}, "seed is 'x'"),
    ],
)
def test_bad_arguments(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Teacher(EMPTY, **options)


def test_a_teacher_is_not_made_of_a_function():
    with pytest.raises(ValueError, match="BlackBoxTeacher"):
        Teacher(len)
    with pytest.raises(ValueError, match="function is 3, but must be callable"):
        BlackBoxTeacher(3, "ab")
    with pytest.raises(ValueError, match="twice"):
        BlackBoxTeacher(len, "aa")


def test_a_hypothesis_without_names_is_read_in_the_teachers():
    named = Teacher(DFA([[0, 1], [1, 0]], [True, False], 0, "ab"))
    assert named.equivalent(zoo.make("parity")) is None


def test_names_that_are_indices_in_another_order_are_names():
    """As for DFA.equivalent, with which a default name goes with any other, but not with itself elsewhere."""
    swapped = DFA([[0, 1], [1, 0]], [True, False], 0, "10")
    plain = DFA([[0, 1], [1, 0]], [True, False])
    with pytest.raises(ValueError, match="The alphabets differ"):
        plain.equivalent(swapped)
    for hidden, hypothesis in ((swapped, plain), (plain, swapped)):
        for teacher in (Teacher(hidden), BlackBoxTeacher(hidden.accepts, hidden.alphabet)):
            with pytest.raises(ValueError, match="The alphabets differ"):
                teacher.equivalent(hypothesis)
            assert teacher.equivalent(hypothesis.with_alphabet(hidden.alphabet)) is not None


@pytest.mark.parametrize(
    "options", [{}, {"counterexample": "near_shortest"}, {"counterexample": "random", "length": 9}]
)
def test_teachers_can_be_pickled(options):
    target = random_dfa(5, 2, 1)
    for teacher in (
        Teacher(target, **options), BlackBoxTeacher(target.accepts, "01", random_words(100, seed=3)),
        BlackBoxTeacher(target.accepts, "01", w_method(2)),
    ):  # fmt: skip
        teacher.member((0, 1))
        again = pickle.loads(pickle.dumps(teacher))
        assert again.counts == teacher.counts
        assert again.equivalent(EMPTY) == teacher.equivalent(EMPTY)
        assert again.counts == teacher.counts


@pytest.mark.parametrize(
    "options", [{}, {"counterexample": "near_shortest"}, {"counterexample": "random", "length": 20}]
)
def test_counterexamples_differ_and_repeat(options):
    for seed in range(40):
        target, hypothesis = random_dfa(1 + seed % 5, 2, seed), random_dfa(1 + seed % 4, 2, seed + 500)
        word = Teacher(target, seed=seed, **options).equivalent(hypothesis)
        assert (word is None) == (target.equivalent(hypothesis) is None)
        if word is not None:
            assert target.accepts(word) != hypothesis.accepts(word)
            other = Teacher(target, seed=seed, **options)
            other.equivalent(EMPTY)  # earlier queries have no say
            assert other.equivalent(hypothesis) == word


# --- black boxes --------------------------------------------------------------------------------------------------


def test_the_tester_asks_at_the_black_boxes_expense():
    teacher = BlackBoxTeacher(lambda word: sum(word) % 2 == 0, "01", random_words(number=50, seed=1))
    assert teacher.equivalent(zoo.make("parity")) is None
    assert teacher.counts.equivalence == 1
    assert teacher.counts.raw == 50
    assert 1 < teacher.counts.unique <= 50


@pytest.mark.parametrize("reads", ["left", "right"])
@pytest.mark.parametrize("names", ["ab", ("in", "out")])
def test_a_function_of_texts_is_learned_as_mining_learns_it(names, reads):
    """The text begins with two of the second symbol: read from the right, the word ends with them."""

    def function(text):
        assert isinstance(text, str if names == "ab" else tuple)
        return tuple(text[:2]) == (names[1], names[1])

    teacher = BlackBoxTeacher(function, names, w_method(2), reads=reads)
    dfa = ttt(teacher)
    assert dfa == mine(function, names, reads=reads, tester="w").dfa
    assert [dfa.accepts(word) for word in ((1, 1, 0), (0, 1, 1))] == [reads == "left", reads == "right"]
    assert teacher.counts.unique > teacher.counts.equivalence > 0
    with pytest.raises(PredicateError, match="raised AssertionError"):
        BlackBoxTeacher(lambda text: function(0), names, reads=reads).member((0,))
    with pytest.raises(ValueError, match="reads is 'up'"):
        BlackBoxTeacher(function, names, reads="up")


def test_a_test_can_run_out_of_budget():
    for budget in range(1, 40):
        teacher = BlackBoxTeacher(lambda word: sum(word) % 2 == 0, "01", random_words(number=300), budget=budget)
        with pytest.raises(BudgetExhausted) as caught:
            teacher.equivalent(zoo.make("parity"))
        assert caught.value.hypothesis == zoo.make("parity")
        assert teacher.counts.total == caught.value.counts.total == budget


@pytest.mark.parametrize("answer", [1, 0, None, "yes", 0.5, np.int64(1)])
def test_an_answer_must_be_a_bool(answer):
    teacher = BlackBoxTeacher(lambda word: answer, "01")
    for call in (lambda: teacher.member((0, 1)), lambda: teacher.equivalent(EMPTY)):
        with pytest.raises(ValueError, match="must answer True or False"):
            call()
    assert teacher.counts == Counts()


def test_numpy_bools_are_bools():
    assert BlackBoxTeacher(lambda word: np.True_, "01").member(()) is True


def test_a_failing_function_costs_nothing():
    def fails(word):
        raise RuntimeError("the server is down")

    teacher = BlackBoxTeacher(fails, "01")
    for call in (lambda: teacher.member(()), lambda: teacher.equivalent(EMPTY)):
        with pytest.raises(RuntimeError, match="down"):
            call()
    assert teacher.counts == Counts()


def test_a_tester_that_returns_no_counterexample_is_found_out():
    teacher = BlackBoxTeacher(lambda word: False, "01", tester=lambda hypothesis, member: (0, 1))
    with pytest.raises(ValueError, match="agree on it"):
        teacher.equivalent(EMPTY)
    assert teacher.counts.equivalence == 0


def test_a_function_that_changes_its_mind_is_blamed_and_not_the_tester():
    answers = iter([True, False, True, False])
    teacher = BlackBoxTeacher(lambda word: next(answers), "01", random_words(1), cache=False)
    with pytest.raises(ValueError, match=r"The function answered True and then False to the word \("):
        teacher.equivalent(EMPTY)
    assert teacher.counts.equivalence == 0

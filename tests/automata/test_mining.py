import itertools
import math
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, mining, zoo
from rlstate.automata.evidence import exercised, held_out
from rlstate.automata.mining import LEARNERS, Predicate, PredicateError, mine, predicate, predicates
from rlstate.automata.sampling import random_dfa

pytest.importorskip("stdnum", reason="python-stdnum is optional")

DIGITS = "0123456789"


# --- the named automata from their formulas, without the library --------------------------------------------------


def machine(step, start, accepts, symbols):
    """The DFA that `step(state, symbol)` spans from `start`."""
    states, rows = [start], []
    number = {start: 0}
    for state in states:
        row = []
        for symbol in range(symbols):
            after = step(state, symbol)
            if after not in number:
                number[after] = len(states)
                states.append(after)
            row.append(number[after])
        rows.append(row)
    return DFA(rows, [bool(accepts(state)) for state in states])


def dihedral(a, b):
    """The product in D5, rotations 0 … 4 and reflections 5 … 9: a digit is 5·reflected + turns."""
    (s, i), (t, j) = divmod(a, 5), divmod(b, 5)
    return 5 * (s ^ t) + (i + (-j if s else j)) % 5


def verhoeff():
    once = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
    powers = [list(range(10))]
    for _ in range(7):
        powers.append([once[d] for d in powers[-1]])
    return machine(lambda q, d: ((q[0] + 1) % 8, dihedral(q[1], powers[q[0]][d])), (0, 0), lambda q: q[1] == 0, 10)


def luhn():
    return machine(
        lambda q, d: (1 - q[0], (q[1] + (d if q[0] == 0 else 2 * d // 10 + 2 * d % 10)) % 10),
        (0, 0), lambda q: q[1] == 0, 10,
    )  # fmt: skip


def isbn10(symbols):
    def step(q, d):
        if q == "sink" or (d == 10 and q != "start"):
            return "sink"
        weight, total = (1, 0) if q == "start" else q
        return (weight + 1) % 11, (total + weight * d) % 11

    start = "start" if symbols == 11 else (1, 0)
    return machine(step, start, lambda q: q == "start" or q[1] == 0, symbols)


DAMM = [
    "0317598642",
    "7092154863",
    "4206871359",
    "1750983426",
    "6123045978",
    "3674209581",
    "5869720134",
    "8945362017",
    "9438617205",
    "2581436790",
]  # fmt: skip  (Damm 2004)


def damm():
    return machine(lambda q, d: int(DAMM[q][d]), 0, lambda q: q == 0, 10)


def modular(m, base, symbols, accepted=0):
    return machine(lambda q, d: (base * q + d) % m, 0, lambda q: q == accepted, symbols)


FORMULAS = {
    "ean": (lambda: zoo.make("mined_ean"), 20),
    "luhn": (luhn, 20),
    "isbn10": (lambda: isbn10(11), 123),
    "isbn10_digits": (lambda: isbn10(10), 121),
    "mod_11_2": (lambda: modular(11, 2, 11, 1), 11),
    "mod_97_10": (lambda: modular(97, 10, 10, 1), 97),
    "damm": (damm, 10),
    "verhoeff": (verhoeff, 80),
    "div7": (lambda: zoo.make("mined_div7"), 7),
    "div7_base10": (lambda: modular(7, 10, 10), 7),
    "div6": (lambda: modular(6, 2, 2), 4),
}


def test_every_named_predicate_has_a_formula_here():
    assert [known.name for known in predicates()] == list(FORMULAS)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "isbn10"])
def test_named_predicates_are_mined_to_their_formulas(name):
    formula, states = FORMULAS[name]
    code = predicate(name)
    mined = mine(code, tests=500, held_out_number=100)
    expected = formula().minimize()
    assert np.array_equal(mined.dfa.transitions, expected.transitions)
    assert np.array_equal(mined.dfa.accepting, expected.accepting)
    assert mined.dfa.n_states == states
    assert mined.dfa.alphabet == code.alphabet
    assert mined.passed
    assert mined.coverage == 1.0
    assert mined.held_out_accuracy == 1.0
    assert mined.counts.unique == mined.words


def test_isbn10_is_the_language_of_its_formula():
    # Nothing but a word of 11 digits of sum 0 and an X tells its last state apart: a test needs luck or the W-method.
    expected, code = isbn10(11).minimize(), predicate("isbn10")
    assert expected.n_states == 123
    rng = random.Random(0)
    words = [word for length in range(4) for word in itertools.product(range(11), repeat=length)]
    words += [tuple(rng.randrange(10) for _ in range(rng.randrange(30))) for _ in range(3000)]
    words += [(*word[:at], 10, *word[at:]) for word in words[-3000:] for at in (0, rng.randrange(30))]
    assert sum(map(code, words)) > 500
    assert all(code(word) == expected.accepts(word) for word in words)
    zeros = (0,) * 11
    assert code(zeros)
    assert not code((*zeros, 10))
    assert code((10,)) == expected.accepts((10,)) is False
    mined = mine(code, tests=300, held_out_number=100)
    assert 100 <= mined.dfa.n_states <= 123


def test_named_automata_are_the_permutation_automata_that_they_are_called():
    for name, (formula, states) in FORMULAS.items():
        text = predicate(name).description
        dfa = formula().minimize()
        assert dfa.is_permutation() == (name not in ("isbn10", "div6"))
        assert dfa.is_permutation() == bool(re.search(r"(?<!not )\ba permutation automaton", text, re.I)), name
        said = re.search(r"(\d+) states", text)
        assert said is None or int(said[1]) == states
        order = re.search(r"order ([\d ]+)\.", text)
        if order:
            assert group_order(dfa) == int(order[1].replace(" ", "")), name
    assert group_order(damm()) == math.factorial(10)


def group_order(dfa):
    """Of the group that the symbols generate, by Schreier and Sims with random products."""
    identity = tuple(range(dfa.n_states))
    generators = [tuple(column) for column in dfa.transitions.T.tolist()]
    base, reach, strong = [], [], []

    def then(p, q):
        return tuple(q[i] for i in p)

    def inverse(p):
        return tuple(sorted(identity, key=p.__getitem__))

    def sift(p):
        for level, point in enumerate(base):
            if p[point] not in reach[level]:
                return p, level
            p = then(p, inverse(reach[level][p[point]]))
        return p, len(base)

    def include(p, level):
        if level == len(base):
            base.append(next(i for i in identity if p[i] != i))
            reach.append({})
            strong.append([])
        for at in range(level + 1):
            strong[at].append(p)
            orbit = {base[at]: identity}
            queue = [base[at]]
            for point in queue:
                for q in strong[at]:
                    if q[point] not in orbit:
                        orbit[q[point]] = then(orbit[point], q)
                        queue.append(q[point])
            reach[at] = orbit

    rng, pool, product, calm = random.Random(0), generators * 3, identity, 0
    for generator in generators:
        rest, level = sift(generator)
        if rest != identity:
            include(rest, level)
    while calm < 30:  # an incomplete chain is missed with probability 2^-30
        i, j = rng.sample(range(len(pool)), 2)
        pool[i] = then(pool[i], pool[j])
        product = then(product, pool[i])
        rest, level = sift(product)
        calm = calm + 1 if rest == identity else 0
        if rest != identity:
            include(rest, level)
    return math.prod(map(len, reach))


# --- what the predicates have to do with the library's validators ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "module"),
    [("luhn", "luhn"), ("damm", "damm"), ("verhoeff", "verhoeff"), ("mod_11_2", "iso7064.mod_11_2"),
     ("mod_97_10", "iso7064.mod_97_10")],
)  # fmt: skip
def test_checksums_are_the_validators_apart_from_the_empty_word(name, module):
    valid = __import__(f"stdnum.{module}", fromlist=["is_valid"]).is_valid
    code = predicate(name)
    rng = random.Random(1)
    for length in range(1, 40):
        for _ in range(20):
            word = tuple(rng.randrange(len(code.alphabet)) for _ in range(length))
            assert code(word) == valid(code.spell(word))
    assert not valid("")
    assert code(()) == ("accepted" in code.description or "has sum 0" in code.description)


def test_ean_is_the_validator_at_its_lengths_and_reads_alike_both_ways_at_odd_ones():
    from stdnum import ean

    code, dfa = predicate("ean"), zoo.make("mined_ean")
    rng = random.Random(2)
    swapped = 0
    for length in range(1, 20):
        for _ in range(40):
            body = "".join(rng.choices(DIGITS, k=length - 1))
            for text in (body + ean.calc_check_digit(body), body + rng.choice(DIGITS)):
                from_right = dfa.accepts([int(digit) for digit in reversed(text)])
                from_left = dfa.accepts([int(digit) for digit in text])
                assert code.function(text) == from_right
                assert ean.is_valid(text) == (from_right and length in (8, 12, 13, 14))
                weights = [1, 3] * length if length % 2 else [3, 1] * length
                assert from_right == (sum(w * int(d) for w, d in zip(weights, text)) % 10 == 0)
                if length % 2:
                    assert from_left == from_right
                swapped += from_left != from_right
    assert swapped > 100


def test_isbn10_is_the_validator_at_length_10_and_9():
    from stdnum import isbn

    function = predicate("isbn10").function
    rng = random.Random(3)
    for _ in range(3000):
        body = "".join(rng.choices(DIGITS, k=rng.choice([8, 9])))
        text = body + rng.choice(DIGITS + "X")
        assert function(text) == isbn.is_valid(text)
    assert function("1857982185")
    assert not function("X857982185")
    assert not isbn.is_valid("X857982185")


@pytest.mark.parametrize(("name", "states"), [("ean", 50), ("luhn", 100)])
def test_checksums_aligned_on_the_right_need_more_states_from_the_left(name, states):
    code = predicate(name)
    mined = mine(code.function, code.alphabet, tests=500, held_out_number=100)
    assert mined.dfa.n_states == states
    assert mined.passed
    right = mine(code.function, code.alphabet, reads="right", tests=500, held_out_number=100)
    assert right.dfa == mine(code, tests=500, held_out_number=100).dfa
    assert right.dfa.n_states == 20


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 12), base=st.integers(2, 5))
def test_divisibility(m, base):
    code = predicate(f"div{m}_base{base}")
    mined = mine(code, tests=200, held_out_number=20)
    assert mined.dfa.equivalent(DFA(modular(m, base, base).transitions, [q == 0 for q in states_of(m, base)])) is None
    assert mined.dfa.is_permutation() == (math.gcd(m, base) == 1)
    assert ("Not a permutation" in code.description) != mined.dfa.is_permutation()


def states_of(m, base):
    """The residue of each state of `modular`: states are numbered as they are found."""
    order = [0]
    for q in order:
        order += [r for r in dict.fromkeys((base * q + d) % m for d in range(base)) if r not in order]
    return order


def test_names_of_divisibility():
    assert predicate("div7_base2").name == "div7"
    assert predicate("div5_base16").alphabet == tuple("0123456789abcdef")
    assert predicate("div5_base16").function("f")
    with pytest.raises(ValueError, match="base between 2 and 36"):
        predicate("div5_base37")
    with pytest.raises(ValueError, match="at least 1"):
        predicate("div0")


def test_an_unknown_name_and_a_missing_library_are_clear(monkeypatch):
    with pytest.raises(ValueError, match="Did you mean 'verhoeff'"):
        predicate("verhoef")
    assert "python-stdnum" in predicate("luhn").source
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install python-stdnum"):
        predicate("luhn")
    assert predicate("div7").name == "div7"
    assert "luhn" in [known.name for known in predicates()]


# --- mining -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seed", range(8))
def test_every_learner_mines_random_targets(learner, seed):
    target = random_dfa(2 + seed % 4, 2, seed)
    mined = mine(lambda text: target.accepts(target.encode(text)), "01", learner, tests=300, held_out_number=100)
    assert mined.dfa == target.minimize()
    assert mined.passed
    assert mined.held_out_accuracy == 1.0
    assert (mined.rounds is None) == (mined.learned is None) == (learner in mining.ACTIVE)


@pytest.mark.parametrize("learner", ["ttt", "rpni"])
def test_longer_names_come_as_tuples_and_results_are_reproducible(learner):
    def safe(names):
        assert isinstance(names, tuple)
        return names.count("open") <= 1 and "slam" not in names

    first = mine(safe, ["open", "wait", "slam"], learner, seed=5)
    assert first.dfa.n_states == 3
    assert first == mine(safe, ["open", "wait", "slam"], learner, seed=5)
    assert first.predicate.name == "safe"


@pytest.mark.parametrize("reads", ["left", "right"])
@pytest.mark.parametrize("names", ["ab", ("in", "out")])
def test_a_text_is_read_as_it_is_spelled(names, reads):
    code = Predicate("code", bool, tuple(names), reads=reads)
    for word in itertools.product(range(2), repeat=4):
        assert code.read(code.spell(word)) == word
        assert code.spell(word)[0] == names[word[0 if reads == "left" else -1]]
    with pytest.raises(ValueError, match="has 'c', which is none of the symbols"):
        code.read((names[0], "c"))


@pytest.mark.parametrize("learner", LEARNERS)
def test_examples_show_what_random_words_do_not_meet(learner):
    """Two texts of twelve symbols among 3 ** 12, and the automaton that has them both."""
    texts = ("abcabcabcabc", "cccccccccccc")
    settings = {"learner": learner, "reads": "right", "tests": 100, "sample": 100, "held_out_number": 50}
    alone = mine(texts.__contains__, "abc", **settings)
    assert (alone.dfa.n_states, alone.passed, alone.accepted) == (1, True, 0)
    for shown in ((), texts[:1], texts, (*texts, "aaa")):
        mined = mine(texts.__contains__, "abc", **settings, examples=shown)
        assert [mined.dfa.accepts(mined.predicate.read(text)) for text in (*texts, "aaa")] == [
            text in shown for text in texts
        ] + [False]
        if mined.passed:  # of so little a passive learner has a large automaton, and a held-out word shows it
            assert (f"no difference found on {len(shown)} given and" in mined.verification) == bool(shown)
        assert mined.passed or learner in ("rpni", "edsm", "blue_fringe")


def test_a_predicate_reads_from_the_side_it_says():
    begins = mine(lambda text: text.startswith("10"), "01", reads="right")
    assert begins.dfa.isomorphic(mine(lambda text: text.endswith("01"), "01").dfa)


def test_numpys_truth_values_will_do():
    assert mine(lambda text: np.bool_(len(text) % 2), "ab").dfa.n_states == 2


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_budget_that_runs_out_gives_a_partial_result_that_says_so(learner):
    code = predicate("verhoeff")
    mined = mine(code, learner=learner, budget=400, sample=300)
    assert not mined.passed
    assert "budget of 400" in mined.partial
    assert mined.verification == "not verified"
    assert mined.counts.total <= 400
    assert mined.words <= 400
    assert mined.dfa.n_states > 0
    assert mined.held_out_accuracy < 1


def test_a_budget_within_the_sample_is_partial_too_and_one_before_any_automaton_an_error():
    mined = mine(predicate("div7"), learner="rpni", budget=100, sample=2000)
    assert "within the sample" in mined.partial
    assert mined.words == 100
    with pytest.raises(ValueError, match="budget of 1 queries ran out before lstar"):
        mine(predicate("div7"), learner="lstar", budget=1)


def test_a_passive_learner_that_runs_out_of_rounds_says_so():
    mined = mine(predicate("verhoeff"), learner="rpni", sample=50, rounds=2, tests=100, held_out_number=50)
    assert "after 2 rounds" in mined.partial
    assert mined.rounds is None
    assert 0 < mined.learned <= 1


def test_held_out_words_refute_a_test_that_was_too_weak():
    mined = mine(lambda text: len(text) == 30, "01", max_length=10, held_out_number=50, held_out_lengths=(5, 30))
    assert mined.dfa.n_states == 1
    assert not mined.passed
    assert "held-out word" in mined.partial
    accuracy = mined.held_out
    assert accuracy.on_accepted == 0.0
    assert accuracy.on_rejected in (None, 1.0)  # all short words may have been asked
    assert len(accuracy.difference) == 30
    assert accuracy.by_length[-1] == (30, 50, 0.0)
    assert accuracy.overall == accuracy.rejected / (accuracy.rejected + 50)


def test_the_w_method_finds_what_short_random_words_miss():
    def six_zeros(text):
        return text == "000000"

    weak = mine(six_zeros, "01", max_length=3, held_out_number=0)
    assert weak.dfa.n_states == 1
    assert weak.passed  # nothing known speaks against it, and the report says what was tested
    assert "up to 3 random symbols" in weak.verification
    strong = mine(six_zeros, "01", max_length=3, tester="w", extra_states=5, held_out_number=0)
    assert strong.dfa.n_states == 8
    assert "at most 13 states" in strong.verification


def test_coverage_counts_the_transitions_of_asked_words():
    dfa = zoo.make("mod_5")
    words = [(), (1, 0), (1, 1, 1)]
    walked = {(int(state), symbol) for word in words for state, symbol in zip(dfa.trace(word), word)}
    assert {tuple(pair) for pair in np.argwhere(exercised(dfa, words)).tolist()} == walked
    mined = mine(predicate("div7"), learner="rpni", budget=1, sample=1)  # the empty word, and a completing sink
    assert mined.uncovered == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert mined.coverage == mined.learned == 0.0


def test_held_out_words_are_fresh_and_counted():
    dfa = zoo.make("parity")
    asked = set(itertools.product((0, 1), repeat=3))
    accuracy = held_out(dfa, dfa.complement().accepts, asked, 1000, (3, 4), np.random.default_rng(0))
    assert accuracy.by_length == ((4, 16, 0.0),)
    assert (accuracy.accepted, accuracy.rejected) == (8, 8)
    assert accuracy.overall == accuracy.on_accepted == accuracy.on_rejected == 0.0
    assert held_out(dfa, dfa.accepts, asked, 10, (3,), np.random.default_rng(0)).overall is None


def test_a_passive_learner_mines_ean_as_an_active_one_does():
    mined = mine(predicate("ean"), learner="rpni", tests=500, held_out_number=100)
    assert mined.dfa.equivalent(zoo.make("mined_ean")) is None
    assert mined.rounds > 1
    assert mined.learned == 1.0


@pytest.mark.parametrize("given", [[3, 30], np.array([3, 30]), (length for length in (3, 30)), {3: 0, 30: 0}])
def test_held_out_lengths_may_be_any_iterable(given):
    mined = mine(lambda text: text.endswith("0"), "01", held_out_number=5, held_out_lengths=given)
    assert mined.held_out.by_length[-1][0] == 30


@pytest.mark.parametrize("given", [30, np.int64(30), np.array(30).reshape(1)])
def test_one_held_out_length_is_a_number(given):
    mined = mine(lambda text: text.endswith("0"), "01", held_out_number=5, held_out_lengths=given)
    assert [length for length, _, _ in mined.held_out.by_length] == [30]


def test_a_test_passed_is_no_proof():
    """By default no random word shows the last state of isbn10, whose number of states is known."""
    mined = mine(predicate("isbn10"))
    assert mined.dfa.n_states == 122
    assert not mined.passed
    for part in ("no difference found on", "not proven", "it has 122 states", "known to have 123", "W-method"):
        assert part in mined.partial
    for known in predicates():
        assert known.states is None or re.search(rf"\b{known.states} states", known.description), known.name


@pytest.mark.parametrize("tests", [1, 2, 3, 10])
def test_the_bound_on_differences_is_a_share(tests):
    text = mine(lambda text: True, "01", tests=tests, held_out_number=0).verification
    assert text.endswith("fewer than 30.00% differ (95 % confidence); not proven" if tests == 10 else
                         "fewer than 100.00% differ (95 % confidence); not proven")  # fmt: skip


# --- errors -------------------------------------------------------------------------------------------------------


def digits(text):
    return int("0" + text) % 3 == 0


@pytest.mark.parametrize("learner", ["ttt", "edsm"])
def test_code_that_raises_or_answers_something_else_is_shown_its_word(learner):
    with pytest.raises(PredicateError, match=r"digits raised ValueError .* on the word '.*x"):
        mine(digits, "01x", learner)
    with pytest.raises(PredicateError, match=r"answered 0 \(int\) on the word ''"):
        mine(lambda text: len(text) % 2, "01", learner)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"alphabet": None}, "needs an alphabet"),
        ({"alphabet": ""}, "one or more distinct"),
        ({"alphabet": "00"}, "distinct"),
        ({"learner": "angluin"}, "learner is 'angluin', but must be one of ttt"),
        ({"tester": "exact"}, "tester is 'exact'"),
        ({"reads": "up"}, 'must be "left" or "right"'),
        ({"budget": 0}, "budget is 0"),
        ({"tests": 0}, "tests is 0"),
        ({"rounds": 1.5}, "rounds is 1.5"),
        ({"held_out_lengths": (3, -1)}, "a held-out length is -1"),
        ({"held_out_lengths": -1}, "a held-out length is -1"),
        ({"held_out_lengths": True}, "a held-out length is True"),
        ({"held_out_lengths": "10"}, "a held-out length is '10'"),
        ({"held_out_lengths": 2.5}, "held_out_lengths is 2.5, but must be lengths"),
        ({"held_out_lengths": np.array([3.0])}, "a held-out length is "),
        ({"max_length": 0}, "max_length is 0"),
    ],
)
def test_arguments_that_make_no_sense(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        mine(**{"predicate": lambda text: True, "alphabet": "01", **arguments})


def test_a_predicate_brings_its_alphabet_and_must_be_a_function():
    with pytest.raises(ValueError, match="leave them out"):
        mine(predicate("div7"), "01")
    with pytest.raises(ValueError, match="must be a function"):
        mine("div7")
    assert Predicate("p", bool, "ab").alphabet == ("a", "b")


@pytest.mark.parametrize("learner", LEARNERS)
def test_code_that_answers_at_random_is_an_error_and_not_endless(learner):
    rng = random.Random(0)
    with pytest.raises(PredicateError, match="answers alike each time"):
        mine(lambda text: rng.random() < 0.5, alphabet="ab", learner=learner, tests=50, seed=0)

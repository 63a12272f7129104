import itertools
import math

import numpy as np
import pytest

from rlstate.automata import structure, zoo


def values(dfa, horizon, p_control=0.5):
    """(optimal, random, full control) acceptance from the start state, by backward induction."""
    optimal = uniform = full = dfa.accepting.astype(float)
    for _ in range(horizon):
        step = optimal[dfa.transitions]
        optimal = p_control * step.max(axis=1) + (1 - p_control) * step.mean(axis=1)
        uniform = uniform[dfa.transitions].mean(axis=1)
        full = full[dfa.transitions].max(axis=1)
    return optimal[dfa.start], uniform[dfa.start], full[dfa.start]


def leverage(dfa, horizon, p_control=0.5):
    optimal, uniform, full = values(dfa, horizon, p_control)
    return (optimal - uniform) / (full - uniform)


@pytest.mark.parametrize("horizon", [24, 48])
@pytest.mark.parametrize(
    ("name", "optimal", "uniform", "ratio"),
    [
        ("parity", 0.750, 0.500, 0.500),
        ("mod_3", 0.692, 0.333, 0.538),
        ("mod_5", 0.547, 0.200, 0.433),
        ("mod_5_hold", 0.618, 0.200, 0.523),
        ("workflow_reconcile", 0.615, 0.200, 0.519),
    ],
)
def test_the_paper_s_values(name, optimal, uniform, ratio, horizon):
    dfa = zoo.make(name)
    assert np.round(values(dfa, horizon)[:2], 3).tolist() == [optimal, uniform]
    assert round(leverage(dfa, horizon), 3) == ratio


def test_the_paper_s_ranking():
    """Hard tasks are permutation automata with L ≤ .50; easy ones have L ≥ .519 or are none (section 5.5)."""
    entries = [zoo.describe(name) for name in zoo.names()]
    assert sum(entry.label is not None for entry in entries) == 17  # 15 designed tasks and 2 mined ones
    for entry in entries:
        dfa = zoo.make(entry.name)
        score = round(leverage(dfa, 24), 12) if dfa.is_permutation() else math.inf
        assert score <= 0.50 if entry.label == "hard" else score >= 0.519, entry.name


@pytest.mark.parametrize("name", zoo.names())
def test_entries_tell_the_truth(name):
    entry, dfa = zoo.describe(name), zoo.make(name)
    assert entry.name == name
    assert entry.language
    assert entry.why
    assert round(leverage(dfa, 24), 3) == entry.leverage
    assert dfa.minimize().n_states == dfa.n_states
    assert dfa.start == 0
    # Diagnostic at both horizons of the quickstart, contains_0010 at the short one only (the reference, section 4).
    gaps = [np.subtract(*values(dfa, horizon)[:2]) for horizon in (12, 48)]
    assert [gap >= 0.05 for gap in gaps] == [True, name != "contains_0010"]


def test_closed_forms():
    for p in (0.2, 0.5, 0.9):
        for name in ("parity", "mod_2", "mined_ean"):
            assert leverage(zoo.make(name), 7, p) == pytest.approx(p)
        assert values(zoo.make("ends_with_101"), 9, p)[:2] == pytest.approx((((1 + p) / 2) ** 3, 1 / 8))
        assert values(zoo.make("ends_with_1000"), 9, p)[:2] == pytest.approx((((1 + p) / 2) ** 4, 1 / 16))
        assert values(zoo.make("workflow_api"), 400, p)[:2] == pytest.approx((((1 + p) / 2) ** 2, 1 / 4))
        assert leverage(zoo.make("workflow_latch"), 400, p) == pytest.approx(3 * p / (2 + p))
    for name, limit in [("mod_3", 7 / 13), ("workflow_quota", 13 / 14), ("workflow_reconcile", 27 / 52)]:
        assert leverage(zoo.make(name), 400) == pytest.approx(limit)


def binary_words(longest):
    for length in range(longest + 1):
        yield from itertools.product((0, 1), repeat=length)


LANGUAGES = {
    "parity": lambda w: w.count("1") % 2 == 0,
    "mod_2": lambda w: int("0" + w, 2) % 2 == 0,
    "mod_6": lambda w: int("0" + w, 2) % 6 == 0,
    "mod_11": lambda w: int("0" + w, 2) % 11 == 0,
    "mined_div7": lambda w: int("0" + w, 2) % 7 == 0,
    "ends_with_101": lambda w: w.endswith("101"),
    "ends_with_1000": lambda w: w.endswith("1000"),
    "ends_with_0": lambda w: w.endswith("0"),
    "contains_0010": lambda w: "0010" in w,
    "contains_11011": lambda w: "11011" in w,
    "no_three_zeros": lambda w: "000" not in w,
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_binary_languages_word_by_word(name):
    dfa = zoo.make(name)
    assert dfa.alphabet == ("0", "1")
    for word in binary_words(9):
        assert dfa.accepts(word) == LANGUAGES[name]("".join(map(str, word))), word


def test_other_languages_word_by_word():
    api, latch, quota, reconcile, hold = map(
        zoo.make, ("workflow_api", "workflow_latch", "workflow_quota", "workflow_reconcile", "mod_5_hold")
    )
    for length in range(7):
        for word in itertools.product(("step", "commit"), repeat=length):
            committed = "commit" in word and word.index("commit") >= 2
            assert api.accepts(api.encode(word)) == committed
        for word in itertools.product(("wait", "set", "clear"), repeat=length):
            decided = [symbol for symbol in word if symbol != "wait"]
            assert latch.accepts(latch.encode(word)) == (decided[:1] == ["set"])
        for word in itertools.product(("add", "take"), repeat=length):
            stock = 0
            for symbol in word:
                stock = min(max(stock + (1 if symbol == "add" else -1), 0), 5)
            assert quota.accepts(quota.encode(word)) == (stock >= 3)
        for word in itertools.product(("+1", "-1", "hold"), repeat=length):
            balance = word.count("+1") - word.count("-1")
            assert reconcile.accepts(reconcile.encode(word)) == (balance % 5 == 0)
        for word in itertools.product("01h", repeat=length):
            number = int("0" + "".join(word).replace("h", ""), 2)
            assert hold.accepts([("0", "1", "h").index(c) for c in word]) == (number % 5 == 0)


def test_ean_is_the_check_sum_from_the_left():
    ean = zoo.make("mined_ean")
    assert (ean.n_states, ean.n_symbols, int(ean.accepting.sum())) == (20, 10, 2)
    rng = np.random.default_rng(0)
    answers = set()
    for _ in range(400):
        word = rng.integers(0, 10, rng.integers(0, 15))
        expected = (word[::2].sum() + 3 * word[1::2].sum()) % 10 == 0
        assert ean.accepts(word) == expected
        answers.add(bool(expected))
    assert answers == {True, False}
    assert ean.accepts(ean.encode("4006381333931"))
    assert not ean.accepts(ean.encode("4006381333932"))


def test_state_influence_after_random_steps():
    """The spread of the acceptance probability over states (paper, Appendix B)."""

    def spread(name, steps):
        dfa = zoo.make(name)
        value = dfa.accepting.astype(float)
        for _ in range(steps):
            value = value[dfa.transitions].mean(axis=1)
        return value.max() - value.min()

    assert spread("parity", 1) == 0
    assert [spread("mod_11", r) for r in (1, 2, 3, 5)] == [1 / 2, 1 / 4, 1 / 8, 1 / 32]
    assert spread("no_three_zeros", 16) == 19513 / 65536
    assert spread("workflow_api", 16) == spread("workflow_latch", 16) == 1


def test_structure_of_the_suite():
    assert structure.stabilizers(zoo.make("workflow_reconcile")) == [2]
    assert structure.stabilizers(zoo.make("mod_5_hold")) == [2]
    assert structure.is_synchronizing(zoo.make("mod_2"))
    for k in range(2, 12):
        assert zoo.make("mod_k", k=k).is_permutation() == (k % 2 == 1)


def test_names_and_parameters_agree():
    assert zoo.make("mod_k", k=5) == zoo.make("mod_5")
    assert zoo.make("mod_k_hold", k=5) == zoo.make("mod_5_hold")
    assert zoo.make("ends_with", w="101") == zoo.make("ends_with_101")
    assert zoo.make("contains", w="000") == zoo.make("no_three_zeros").complement()
    assert zoo.make("mined_div7") == zoo.make("mod_7")
    assert zoo.make("workflow_api", stages=3).n_states == 6
    assert zoo.describe("mod_13").language.endswith("Here k = 13.")
    assert zoo.describe("mod_13").leverage is None


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("partiy", {}, "Unknown task 'partiy'. Did you mean 'parity'.*zoo.names.*mod_<k>"),
        ("zzz", {}, r"Unknown task 'zzz'. rlstate.automata.zoo.names\(\) lists"),
        ("mod_1", {}, "k is 1, but must be an integer of at least 2"),
        ("mod_k", {"k": 0}, "k is 0"),
        ("mod_-3", {}, "k is -3"),
        ("mod_k", {"k": 2.5}, "k is 2.5"),
        ("mod_k", {"k": "5"}, "k is '5'"),
        ("mod_k", {}, "needs the parameter 'k', as in make"),
        ("mod_5", {"k": 5}, "already fixes k=5"),
        ("mod_5", {"w": "1"}, "has no parameter 'w'; it takes no parameters"),
        ("parity", {"k": 2}, "has no parameter 'k'; it takes no parameters"),
        ("mod_k", {"n": 2}, "has no parameter 'n'; it takes k"),
        ("ends_with_12", {}, "w is '12', but must be a non-empty word over 0 and 1"),
        ("contains", {"w": ""}, "w is ''"),
        ("contains", {"w": 10}, "write the word as a string"),
        ("workflow_quota", {"quota": 0}, "quota is 0"),
        (None, {}, "Unknown task None"),
    ],
)
def test_bad_requests_are_explained(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        zoo.make(name, **parameters)


def test_what_was_mined_is_there_by_name():
    """Published examples: 572 has Damm's check digit 4, 236 Verhoeff's 3 (a word starts with the rightmost digit)."""
    damm, verhoeff = zoo.make("mined_damm"), zoo.make("mined_verhoeff")
    assert [digit for digit in range(10) if damm.accepts((5, 7, 2, digit))] == [4]
    assert [digit for digit in range(10) if verhoeff.accepts((digit, 6, 3, 2))] == [3]
    assert damm.is_permutation()
    assert verhoeff.minimize().n_states == 80
    assert zoo.make("mined", source="log_sepsis").n_states == 2
    with pytest.raises(ValueError, match="'nobody', but what was mined is"):
        zoo.make("mined_nobody")

"""The oracle against enumeration in exact fractions, the reference table, and its own tables against each other."""

import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, zoo
from rlstate.control import Oracle, is_diagnostic
from rlstate.control import oracle as oracle_module


def random_dfa(seed: int, n_states: int, n_symbols: int) -> DFA:
    rng = np.random.default_rng(seed)
    return DFA(rng.integers(0, n_states, (n_states, n_symbols)), rng.random(n_states) < 0.5)


def renumbered(dfa: DFA, permutation: np.ndarray) -> DFA:
    """The same automaton; state q is now ``permutation[q]``."""
    transitions, accepting = np.empty_like(dfa.transitions), np.empty_like(dfa.accepting)
    transitions[permutation] = permutation[dfa.transitions]
    accepting[permutation] = dfa.accepting
    return DFA(transitions, accepting, int(permutation[dfa.start]))


def best_over_histories(dfa: DFA, horizon: int, p: Fraction) -> Fraction:
    """Optimal acceptance by enumeration of all control patterns and words: the player sees the whole history.

    Independent of the oracle's recurrence: no state is ever looked up before the end, where the word is accepted or
    not; a history is the word so far and which of its symbols were the player's.
    """

    def play(word: tuple[int, ...]) -> Fraction:
        if len(word) == horizon:
            return Fraction(dfa.accepts(word))
        outcomes = [play((*word, a)) for a in range(dfa.n_symbols)]
        return p * max(outcomes) + (1 - p) * sum(outcomes) / dfa.n_symbols

    return play(())


def best_over_policies(dfa: DFA, horizon: int, p: Fraction) -> Fraction:
    """The same by brute force over every deterministic policy from observed words to symbols (tiny cases only)."""
    histories = [w for n in range(horizon) for w in product(range(dfa.n_symbols), repeat=n)]
    best = Fraction(0)
    for choices in product(range(dfa.n_symbols), repeat=len(histories)):
        policy = dict(zip(histories, choices))
        total = Fraction(0)
        for word in product(range(dfa.n_symbols), repeat=horizon):
            if dfa.accepts(word):
                chance = Fraction(1)
                for t, symbol in enumerate(word):
                    chance *= (1 - p) / dfa.n_symbols + (p if policy[word[:t]] == symbol else 0)
                total += chance
        best = max(best, total)
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
def test_against_enumeration_of_histories(seed, p):
    n_symbols = 2 + seed % 2
    dfa = random_dfa(seed, 2 + seed % 4, n_symbols)
    for horizon in (1, 3, 5):
        words = list(product(range(n_symbols), repeat=horizon))
        accepted = sum(map(dfa.accepts, words))
        oracle = Oracle(dfa, horizon, float(p))
        assert oracle.optimal == pytest.approx(float(best_over_histories(dfa, horizon, p)), abs=1e-12)
        assert oracle.random == pytest.approx(accepted / len(words), abs=1e-12)
        assert oracle.full_control == float(accepted > 0)


@pytest.mark.parametrize("seed", range(4))
def test_against_every_policy(seed):
    dfa = random_dfa(100 + seed, 4, 2)
    expected = best_over_policies(dfa, 3, Fraction(2, 5))
    assert Oracle(dfa, 3, 0.4).optimal == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("horizon", [24, 48])
@pytest.mark.parametrize(
    ("task", "optimal", "random", "leverage"),
    [
        ("parity", 0.750, 0.500, 0.500),
        ("mod_3", 0.692, 0.333, 0.538),
        ("mod_5", 0.547, 0.200, 0.433),
        ("mod_5_hold", 0.618, 0.200, 0.523),
        ("workflow_reconcile", 0.615, 0.200, 0.519),
    ],
)
def test_the_table_of_known_values(task, horizon, optimal, random, leverage):
    oracle = Oracle(zoo.make(task), horizon, 0.5)
    found = (round(oracle.optimal, 3), round(oracle.random, 3), round(oracle.leverage, 3))
    assert found == (optimal, random, leverage)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_states=st.integers(1, 7),
    n_symbols=st.integers(1, 4),
    p=st.floats(0, 1),
    r=st.integers(1, 9),
)
def test_value_and_q_value_agree(seed, n_states, n_symbols, p, r):
    oracle = Oracle(random_dfa(seed, n_states, n_symbols), 9, p)
    states = np.arange(n_states)
    q_value = oracle.q_value[r]
    assert q_value.shape == (n_states, n_symbols)
    np.testing.assert_allclose(oracle.value[r], p * q_value.max(1) + (1 - p) * q_value.mean(1), atol=1e-12)
    best = oracle.optimal_actions(r, states)
    assert best.any(1).all()
    assert (np.abs(q_value - q_value.max(1, keepdims=True))[best] <= 1e-9).all()
    assert (oracle.random_value[r] <= oracle.value[r] + 1e-12).all()
    assert 0 <= oracle.random <= oracle.optimal + 1e-12 <= oracle.full_control + 2e-12
    gap = oracle.action_gap(r, states)
    assert (gap[best.all(1)] == 0).all()
    assert (gap[~best.all(1)] > 1e-9).all()


def test_tables_index_like_arrays(monkeypatch):
    dfa = random_dfa(7, 5, 3)
    dense = Oracle(dfa, 30, 0.5)
    whole_value = np.asarray(dense.value)
    whole_q = np.asarray(dense.q_value)
    assert whole_q.shape == (31, 5, 3)
    assert np.isnan(whole_q[0]).all()
    assert not np.isnan(whole_q[1:]).any()
    np.testing.assert_array_equal(whole_q[1:], whole_value[:-1][:, dfa.transitions])

    monkeypatch.setattr(oracle_module, "DENSE_ENTRIES", 20)
    sparse = Oracle(dfa, 30, 0.5)
    assert not isinstance(sparse.value, np.ndarray)
    r, q, a = np.array([[3, 0], [30, 17]]), np.array([1, 4]), np.array([2, 0])
    for key in [3, -1, (4, 2), (slice(None), 1), (r, q), (slice(5, 30, 7), [0, 3]), (r, slice(None)), ..., (..., 2)]:
        np.testing.assert_array_equal(sparse.value[key], whole_value[key])
        np.testing.assert_array_equal(sparse.q_value[key], whole_q[key])
    np.testing.assert_array_equal(sparse.q_value[r, q, a], whole_q[r, q, a])
    np.testing.assert_array_equal(sparse.random_value[...], dense.random_value)
    assert sparse.value[30, dfa.start] == sparse.optimal == dense.optimal
    assert isinstance(sparse.value[2, 2], float)
    np.testing.assert_array_equal(sparse.quotient(), dense.quotient())
    np.testing.assert_array_equal(sparse.optimal_actions(r, q), dense.optimal_actions(r, q))


def test_a_tie_of_two_symbols_is_one_choice():
    # Symbols 0 and 1 both accept, 2 rejects.
    dfa = DFA([[1, 1, 2], [1, 1, 1], [2, 2, 2]], [False, True, False])
    oracle = Oracle(dfa, 2, 0.5)
    assert oracle.optimal_actions(1, 0).tolist() == [True, True, False]
    assert oracle.action_gap(1, 0) == pytest.approx(1.0)
    assert oracle.action_gap(1, 1) == 0.0  # nothing matters any more
    assert np.isnan(oracle.action_gap(0, 0))
    assert not oracle.optimal_actions(0, 0).any()


def test_parity_by_hand():
    # The player repairs the parity with the last symbol it controls; if that is not the last of all, chance decides.
    oracle = Oracle(zoo.make("parity"), 12, 0.5)
    assert oracle.value[1].tolist() == [0.75, 0.75]
    assert oracle.optimal_actions(1, [0, 1]).tolist() == [[True, False], [False, True]]
    assert oracle.optimal_actions(2, [0, 1]).all()  # before the last step nothing can be done


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), n_states=st.integers(1, 8), p=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_renumbering_states_changes_nothing(seed, n_states, p):
    dfa = random_dfa(seed, n_states, 2)
    permutation = np.random.default_rng(seed).permutation(n_states)
    first, second = Oracle(dfa, 7, p), Oracle(renumbered(dfa, permutation), 7, p)
    assert first.optimal == second.optimal
    np.testing.assert_equal(first.leverage, second.leverage)
    np.testing.assert_array_equal(first.value, second.value[:, permutation])
    labels, moved = first.quotient(), second.quotient()[permutation]
    np.testing.assert_array_equal(labels[:, None] == labels, moved[:, None] == moved)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), n_states=st.integers(1, 8), n_symbols=st.integers(1, 3))
def test_quotient_is_the_partition_by_definition(seed, n_states, n_symbols):
    oracle = Oracle(random_dfa(seed, n_states, n_symbols), 6, 0.5)
    states = np.arange(n_states)
    labels = oracle.quotient()
    for q, other in product(range(n_states), repeat=2):
        same_value = np.allclose(oracle.value[:, q], oracle.value[:, other], rtol=0, atol=1e-9)
        r = np.arange(1, 7)
        same_actions = (oracle.optimal_actions(r, q) == oracle.optimal_actions(r, other)).all()
        assert (labels[q] == labels[other]) == (same_value and same_actions)
    first_seen = [int(np.flatnonzero(labels == k)[0]) for k in range(labels.max() + 1)]
    assert first_seen == sorted(first_seen)
    assert len(states) == len(labels)


def test_quotient_of_the_checksum_automaton():
    oracle = Oracle(zoo.make("mined_ean"), 24, 0.5)
    assert oracle.dfa.n_states == 20
    assert np.bincount(oracle.quotient()).tolist() == [2] * 10


def test_quotient_does_not_chain_small_differences():
    key = np.arange(6) * 0.6e-9
    labels = oracle_module._split(np.zeros(6, int), key, 1e-9)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert oracle_module._split(np.array([0, 1, 0, 1]), np.array([0.5, 0.5, 0.5 + 1e-15, 0.7]), 1e-9).tolist() == [
        0,
        1,
        0,
        2,
    ]


def test_quotient_tells_small_differences_apart_once_they_matter():
    # Symbol 0 accepts for good. From state 0 one symbol more leads to a state with a chance: .00125 of value at r = 2,
    # with the same optimal symbol; at r = 1 states 0 and 1 are alike.
    accept, reject, chance = 2, 3, 4
    transitions = np.full((5, 200), reject)
    transitions[:2, 0] = transitions[accept] = transitions[chance, ::2] = accept
    transitions[0, 1] = chance
    dfa = DFA(transitions, np.arange(5) == accept)
    assert Oracle(dfa, 1, 0.5).quotient()[:2].tolist() == [0, 0]
    oracle = Oracle(dfa, 2, 0.5)
    assert (oracle.optimal_actions(2, 0) == oracle.optimal_actions(2, 1)).all()
    assert oracle.quotient()[:2].tolist() == [0, 1]


def test_more_symbols_than_a_float_has_bits():
    # State 0 accepts after symbol 59, state 1 after symbol 58: same value, other optimal symbol.
    transitions = np.full((4, 60), 2)
    transitions[0, 59] = transitions[1, 58] = 3
    oracle = Oracle(DFA(transitions, [False, False, False, True]), 1, 0.5)
    assert oracle.value[1, 0] == oracle.value[1, 1]
    assert oracle.quotient().tolist() == [0, 1, 2, 3]


def test_leverage_is_undefined_where_control_changes_nothing():
    always = DFA([[0, 0]], [True])
    never = DFA([[0, 0]], [False])
    for dfa in (always, never):
        assert np.isnan(Oracle(dfa, 5, 0.5).leverage)
    for p, expected in [(0.0, 0.0), (1.0, 1.0)]:
        assert Oracle(zoo.make("mod_5"), 24, p).leverage == pytest.approx(expected, abs=1e-12)


def test_full_control_depends_on_the_length():
    odd_length = DFA([[1, 1], [0, 0]], [False, True])
    assert [Oracle(odd_length, horizon, 0.5).full_control for horizon in (1, 2, 3)] == [1.0, 0.0, 1.0]


def test_diagnostic():
    assert all(is_diagnostic(zoo.make(task), 12, 0.5) for task in ("parity", "mod_5", "mined_ean", "ends_with_101"))
    assert is_diagnostic(zoo.make("parity"), 12, 0.5, threshold=0.25)
    assert not is_diagnostic(zoo.make("parity"), 12, 0.5, threshold=0.26)
    assert not is_diagnostic(zoo.make("parity"), 12, 0.0)
    # Long random play finds the pattern anyway: only the longer of the two horizons rules this task out.
    contains = zoo.make("contains_0010")
    assert Oracle(contains, 24, 0.5).optimal - Oracle(contains, 24, 0.5).random >= 0.05
    assert not is_diagnostic(contains, 24, 0.5)


def test_many_states_and_steps_fit_in_memory():
    n_states, horizon = 30_000, 1000
    dfa = random_dfa(1, n_states, 2)
    tracemalloc.start()
    oracle = Oracle(dfa, horizon, 0.5)
    values = (oracle.random, oracle.optimal, oracle.full_control)
    assert values == tuple(sorted(values))
    r = np.array([1, 500, 1000])
    expected = dfa.accepting[dfa.transitions[:5]]
    np.testing.assert_array_equal(oracle.q_value[1, :5], expected)
    assert oracle.optimal_actions(r, 3).shape == (3, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_states * horizon * 8 / 4  # a value table alone would take 240 MB, one of [T, Q, A] twice that


@pytest.mark.parametrize(
    ("horizon", "p", "named"), [(0, 0.5, "horizon=0"), (2.5, 0.5, "2.5"), (3, 1.5, "1.5"), (3, np.nan, "nan")]
)
def test_bad_settings_are_named(horizon, p, named):
    with pytest.raises(ValueError, match=named):
        Oracle(zoo.make("parity"), horizon, p)


def test_rows_outside_the_table():
    oracle = Oracle(zoo.make("parity"), 4, 0.5)
    with pytest.raises(IndexError, match="horizon=4"):
        oracle.optimal_actions(5, 0)
    with pytest.raises(IndexError, match="states are 0 to 1"):
        oracle.optimal_actions(1, -1)

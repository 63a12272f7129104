"""State-influence, contraction and the predictor: closed forms, enumeration and reference numbers."""

import dataclasses
import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, zoo
from rlstate.control import Oracle, contraction, features, score, state_influence, transition_operator
from rlstate.control.credit import influence_profile, persistence, proposition_2_bound, replaying_influence


def random_dfa(seed: int, n_states: int, n_symbols: int) -> DFA:
    rng = np.random.default_rng(seed)
    return DFA(rng.integers(0, n_states, (n_states, n_symbols)), rng.random(n_states) < 0.5)


def renumbered(dfa: DFA, permutation: np.ndarray) -> DFA:
    transitions, accepting = np.empty_like(dfa.transitions), np.empty_like(dfa.accepting)
    transitions[permutation] = permutation[dfa.transitions]
    accepting[permutation] = dfa.accepting
    return DFA(transitions, accepting, int(permutation[dfa.start]))


def influence_by_counting(dfa: DFA, steps: int) -> Fraction:
    """Δ after `steps` uniform steps by counting accepted words from every reachable state."""
    words = list(product(range(dfa.n_symbols), repeat=steps))
    counts = []
    for state in dfa.reachable_states().tolist():
        from_here = DFA(dfa.transitions, dfa.accepting, state)
        counts.append(sum(map(from_here.accepts, words)))
    return Fraction(max(counts) - min(counts), len(words))


# --- state-influence ----------------------------------------------------------------------------------------------


def test_influence_has_the_known_values_exactly():
    assert state_influence(zoo.make("parity"), 4).tolist() == [0, 0, 0, 0]
    mod_11 = state_influence(zoo.make("mod_11"), 5)
    assert [Fraction(mod_11[r - 1]) for r in (1, 2, 3, 5)] == [Fraction(1, 2**r) for r in (1, 2, 3, 5)]
    assert Fraction(state_influence(zoo.make("no_three_zeros"), 16)[-1]) == Fraction(19513, 65536)
    assert (state_influence(zoo.make("workflow_api"), 40) == 1).all()


@pytest.mark.parametrize("seed", range(8))
def test_influence_is_a_count_of_words(seed):
    dfa = random_dfa(seed, 2 + seed % 5, 2 + seed % 2)
    found = state_influence(dfa, 5)
    for r in range(1, 6):
        assert found[r - 1] == pytest.approx(float(influence_by_counting(dfa, r)), abs=1e-14)


def test_unreachable_states_have_no_influence():
    dfa = DFA([[0, 0], [1, 1]], [True, False])
    assert state_influence(dfa, 3).tolist() == [0, 0, 0]


def test_influence_under_the_optimal_policy_is_the_spread_of_the_value():
    dfa, steps, p = zoo.make("workflow_reconcile"), 10, 0.5
    oracle = Oracle(dfa, steps, p)
    best = oracle.optimal_actions(np.arange(1, steps + 1)[:, None], np.arange(5))
    found = state_influence(dfa, steps, best / best.sum(-1, keepdims=True), p)
    np.testing.assert_allclose(found, np.ptp(oracle.value[1:], axis=1), atol=1e-12)


def test_holding_keeps_the_influence_that_random_play_loses():
    dfa, p = zoo.make("workflow_reconcile"), 0.5
    (hold,) = features(dfa, 12, p).stabilizers
    policy = np.zeros((5, 3))
    policy[:, hold] = 1
    # Holding at controllable steps: the mixture of the identity and the random walk.
    assert state_influence(dfa, 12, policy, p)[-1] > 5 * state_influence(dfa, 12)[-1]
    assert (state_influence(dfa, 12, policy, 1.0) == 1).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), n_states=st.integers(1, 6), p=st.floats(0, 1))
def test_the_uniform_policy_is_no_policy(seed, n_states, p):
    dfa = random_dfa(seed, n_states, 3)
    uniform = np.full((n_states, 3), 1 / 3)
    expected = state_influence(dfa, 6)
    np.testing.assert_allclose(state_influence(dfa, 6, uniform, p), expected, atol=1e-12)
    np.testing.assert_allclose(state_influence(dfa, 6, np.tile(uniform, (6, 1, 1)), p), expected, atol=1e-12)
    permutation = np.random.default_rng(seed).permutation(n_states)
    np.testing.assert_array_equal(state_influence(renumbered(dfa, permutation), 6), expected)


def test_a_policy_by_steps_remaining_is_used_in_that_order():
    # The last symbol decides; only a policy for r = 1 matters.
    dfa = zoo.make("ends_with_1")
    always_one = np.tile([0.0, 1.0], (dfa.n_states, 1))
    state_blind = np.stack([always_one, always_one[:, ::-1]])
    assert (state_influence(dfa, 2, state_blind, 1.0) == 0).all()
    by_state = np.eye(2)[[0, 1]]  # repeat the last symbol
    assert state_influence(dfa, 2, np.stack([by_state, always_one]), 1.0).tolist() == [1, 0]
    assert state_influence(dfa, 2, np.stack([always_one, by_state]), 1.0).tolist() == [0, 0]


def test_influence_is_precise_however_small_it_is():
    """mod_k loses half of it at every step: far below the rounding of probabilities of 1/k."""
    for name in ("mod_3", "mod_11"):
        found = state_influence(zoo.make(name), 300)
        np.testing.assert_allclose(found, 0.5 ** np.arange(1, 301), rtol=1e-9)
    # Sums of three numbers may round; all that is left after the symbols that decide is rounding.
    last_two = DFA([[3 * (q % 3) + a for a in range(3)] for q in range(9)], np.arange(9) % 4 == 1)
    assert (state_influence(last_two, 10)[2:] == 0).all()


def test_the_profile_reads_the_influence_at_a_few_distances():
    dfa = zoo.make("no_three_zeros")
    influence = state_influence(dfa, 40)
    expected = [(r, influence[r - 1]) for r in (1, 2, 3, 5, 8, 16, 32, 40)]
    assert influence_profile(dfa, 40) == tuple(expected)
    assert [r for r, _ in influence_profile(dfa, 16)] == [1, 2, 3, 5, 8, 16]
    assert [r for r, _ in influence_profile(dfa, 4)] == [1, 2, 3, 4]
    assert influence_profile(dfa, 1) == ((1, 1.0),)
    assert features(dfa, 16, 0.5).influence_profile == influence_profile(dfa, 16)


def test_persistence_is_what_a_step_leaves_of_the_influence():
    for horizon in (1, 8, 200):
        assert persistence(zoo.make("parity"), horizon) == 0
        assert persistence(zoo.make("mod_3"), horizon) == pytest.approx(0.5)
        assert persistence(zoo.make("workflow_api"), horizon) == 1
    assert persistence(zoo.make("no_three_zeros"), 16) == pytest.approx((19513 / 65536) ** (1 / 16))
    assert math.isnan(persistence(DFA([[0, 0], [1, 1]], [True, False]), 5))  # state 1 is unreachable


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0,), "steps=0"),
        ((2, None, 1.5), "p_control=1.5"),
        ((2, np.ones((3, 2)) / 2), r"shape \(3, 2\).*\(2, 2\)"),
        ((2, np.ones((2, 2))), "not probabilities"),
        ((2, [[1.5, -0.5], [0.5, 0.5]]), "not probabilities"),
    ],
)
def test_bad_policies_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        state_influence(zoo.make("parity"), *arguments)


# --- contraction --------------------------------------------------------------------------------------------------


def test_transition_operator_counts_symbols():
    dfa = DFA([[0, 1, 1], [1, 1, 1]], [True, False])
    np.testing.assert_allclose(transition_operator(dfa), [[1 / 3, 2 / 3], [0, 1]])


@pytest.mark.parametrize("k", [5, 7, 9, 11])
def test_one_step_of_a_counter_does_not_contract_but_several_do(k):
    rate = contraction(zoo.make(f"mod_{k}"), 12)
    assert rate.one_step == pytest.approx(1, abs=1e-12)
    assert rate.per_step < 0.9
    assert rate.second_eigenvalue <= rate.per_step + 1e-9
    assert rate.second_eigenvalue == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("p", [0.0, 1 / 3])
def test_two_states_in_closed_form(p):
    # Symbol 0 swaps with weight 1 − p, holds with p (three symbols): the eigenvalues are 1 and 2p − 1.
    holds = round(3 * p)
    dfa = DFA([[0] * holds + [1] * (3 - holds), [1] * holds + [0] * (3 - holds)], [True, False])
    rate = contraction(dfa, 400)
    assert rate == pytest.approx((abs(2 * p - 1),) * 3, rel=1e-9)  # 3^-400 is far below rounding of the rows of P^400


def test_contraction_at_the_extremes():
    assert contraction(zoo.make("parity"), 3) == pytest.approx((0, 0, 0), abs=1e-12)
    assert contraction(DFA([[0, 0]], [True]), 3) == (0, 0, 0)
    absorbing = contraction(zoo.make("workflow_api"), 30)
    assert absorbing == pytest.approx((1, 1, 1))
    nilpotent = DFA(np.array([[(3 * q + a) % 9 for a in range(3)] for q in range(9)]), np.arange(9) == 0)
    assert contraction(nilpotent, 2).per_step == 0  # two symbols of three decide all nine states
    assert contraction(nilpotent, 1).one_step == pytest.approx(1)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), n_states=st.integers(1, 6), steps=st.integers(1, 6))
def test_contraction_bounds_influence_and_ignores_numbering(seed, n_states, steps):
    dfa = random_dfa(seed, n_states, 2)
    rate = contraction(dfa, steps)
    power = np.linalg.matrix_power(transition_operator(dfa.reachable()), steps)
    by_pairs = max(np.abs(p - q).sum() / 2 for p in power for q in power)
    assert rate.per_step**steps == pytest.approx(by_pairs, abs=1e-9)
    assert state_influence(dfa, steps)[-1] <= rate.per_step**steps + 1e-9  # Proposition 2's bound, with C = 1
    assert rate.per_step <= rate.one_step + 1e-9
    permutation = np.random.default_rng(seed).permutation(n_states)
    moved = contraction(renumbered(dfa, permutation), steps)
    assert moved[:2] == pytest.approx(rate[:2], abs=1e-9)
    assert moved.second_eigenvalue == pytest.approx(rate.second_eigenvalue, abs=1e-3)  # Jordan blocks at 0


def test_contraction_of_too_many_states_is_refused():
    line = DFA(np.minimum(np.arange(1, 1202), 1200)[:, None], np.arange(1201) == 1200)
    with pytest.raises(ValueError, match="1201 reachable states"):
        contraction(line)
    described = features(line, 5, 0.5)
    assert described.contraction is described.diameter is described.synchronizing is None
    assert described.n_reachable == 1201


# --- Proposition 2 ------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), n_states=st.integers(1, 5), steps=st.integers(1, 7))
def test_the_exact_bound_is_attained_by_the_worst_accepting_set_and_by_no_worse(seed, n_states, steps):
    dfa = random_dfa(seed, n_states, 2)
    bound = proposition_2_bound(dfa, steps)
    span = np.ptp(dfa.accepting[dfa.reachable_states()].astype(int))
    every_set = [DFA(dfa.transitions, accepting) for accepting in product([True, False], repeat=n_states)]
    worst = np.max([state_influence(other, steps) for other in every_set], axis=0)
    np.testing.assert_allclose(bound.exact, span * worst, atol=1e-12)
    influence = state_influence(dfa, steps)
    assert (influence <= bound.exact + 1e-12).all()
    assert (bound.exact <= bound.geometric + 1e-12).all()
    assert persistence(dfa, steps) <= contraction(dfa, steps).per_step + 1e-9 or not span


@pytest.mark.parametrize(("k", "block", "constant"), [(3, 1, 1), (5, 2, 2), (7, 3, 4), (9, 3, 4), (11, 5, 16)])
def test_counters_halve_the_influence_at_a_constant_cost(k, block, constant):
    """λ(P^m) = 2^−m first at m = `block`; one step of mod_5 … mod_11 does not contract."""
    bound = proposition_2_bound(zoo.make(f"mod_{k}"), 16)
    assert (bound.block, bound.rate, bound.constant) == (block, pytest.approx(0.5), pytest.approx(constant))
    np.testing.assert_allclose(bound.geometric, constant * 0.5 ** np.arange(1, 17))
    assert (bound.exact[0] == 1) == (k > 3)


def test_bounds_without_decay_and_with_nothing_left():
    for name in ("workflow_api", "workflow_latch", "mined_ean"):  # mined_ean alternates between two halves
        bound = proposition_2_bound(zoo.make(name), 6)
        assert (bound.block, bound.rate, bound.constant) == (None, 1, 1)
        assert bound.exact.tolist() == pytest.approx([1] * 6)
        assert bound.geometric.tolist() == [1] * 6
    parity = proposition_2_bound(zoo.make("parity"), 4)
    assert (parity.block, parity.rate, parity.geometric.tolist()) == (1, 0, [0] * 4)
    word = proposition_2_bound(zoo.make("ends_with_101"), 5)
    assert (word.block, word.rate, word.geometric.tolist()) == (3, 0, [1, 1, 0, 0, 0])
    same = proposition_2_bound(DFA([[0, 1], [1, 0]], [True, True]), 3)
    assert same.exact.tolist() == same.geometric.tolist() == [0] * 3
    with pytest.raises(ValueError, match="1201 reachable states"):
        proposition_2_bound(DFA(np.minimum(np.arange(1, 1202), 1200)[:, None], np.arange(1201) == 1200), 3)


def influence_of_the_replayer(steps: int, p: Fraction) -> Fraction:
    """Δ on parity by every course of an episode, the policy told only what was emitted and by whom."""

    def acceptance(start: int) -> Fraction:
        total = Fraction(0)
        for whose in product([True, False], repeat=steps):
            for random in product([0, 1], repeat=steps - sum(whose)):
                chance, history, state = iter(random), [], start
                for mine in whose:
                    # What chance has emitted since, less what was replayed already.
                    symbol = sum(emitted for _, emitted in history) % 2 if mine else next(chance)
                    history.append((mine, symbol))
                    state = (state + symbol) % 2
                weight = p ** sum(whose) * (1 - p) ** (steps - sum(whose)) * Fraction(1, 2 ** len(random))
                total += weight * (state == 0)
        return total

    return abs(acceptance(0) - acceptance(1))


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 5), Fraction(0), Fraction(1)])
def test_replaying_the_random_symbols_keeps_the_influence(p):
    found = replaying_influence(40, float(p))
    for steps in range(1, 7):
        assert influence_of_the_replayer(steps, p) == p
        assert found[steps - 1] == pytest.approx(float(p), abs=1e-15)
    np.testing.assert_allclose(found, float(p), atol=1e-12)  # Θ(1), where blind play has nothing
    assert (state_influence(zoo.make("parity"), 40) == 0).all()
    with pytest.raises(ValueError, match="p_control=2"):
        replaying_influence(3, 2)


# --- the predictor ------------------------------------------------------------------------------------------------


def test_score_separates_the_hard_tasks_of_the_paper_from_the_easy_ones():
    hard = {"parity": 0.500, "mod_5": 0.433}
    easy = {"mod_3": 0.538, "mod_5_hold": 0.523, "workflow_reconcile": 0.519}
    for task, leverage in (hard | easy).items():
        assert round(score(zoo.make(task), 24, 0.5), 3) == leverage
    assert max(score(zoo.make(f"mod_{k}"), 24, 0.5) for k in (5, 7, 9, 11)) <= 0.50
    for task in ("mod_2", "ends_with_101", "ends_with_1000", "contains_0010", "no_three_zeros", "workflow_api"):
        assert score(zoo.make(task), 24, 0.5) == math.inf
    with pytest.raises(ValueError, match="p_control=2"):
        score(zoo.make("ends_with_101"), 24, 2)


def test_features_of_known_tasks():
    parity = features(zoo.make("parity"), 24, 0.5)
    assert (parity.permutation, parity.star_free, parity.monoid_size, parity.synchronizing) == (True, False, 2, False)
    assert (parity.low_leverage, parity.diagnostic, parity.diameter, parity.quotient_size) == (True, True, 1, 2)
    assert parity.influence == parity.one_step_contraction == parity.contraction == 0
    assert parity.score == parity.leverage == 0.5
    assert (parity.persistence, parity.mixing_rate) == (0, pytest.approx(1))
    assert parity.stabilizers == (0,)  # a 0 leaves the parity as it is

    latch = features(zoo.make("no_three_zeros"), 16, 0.5)
    assert (latch.permutation, latch.star_free, latch.synchronizing, latch.min_image_size) == (False, True, True, 1)
    assert latch.influence == 19513 / 65536
    assert latch.influence_profile[-1] == (16, 19513 / 65536)
    assert latch.mixing_rate == pytest.approx(1 - latch.second_eigenvalue)
    assert latch.score == math.inf

    checksum = features(zoo.make("mined_ean"), 24, 0.5)
    assert (checksum.n_states, checksum.n_symbols, checksum.quotient_size, checksum.permutation) == (20, 10, 10, True)
    assert not features(zoo.make("contains_0010"), 24, 0.5).diagnostic


def test_features_ignore_unreachable_states_and_are_plain_numbers():
    small = zoo.make("mod_5")
    padded = DFA(np.vstack([small.transitions, [[0, 0], [5, 6]]]), [*small.accepting, True, False])
    first, second = dataclasses.asdict(features(small, 12, 0.5)), dataclasses.asdict(features(padded, 12, 0.5))
    assert (first.pop("n_states"), second.pop("n_states")) == (5, 7)
    assert first == second
    assert json.loads(json.dumps(first))["stabilizers"] == []


def test_a_monoid_above_the_cap_is_left_open():
    described = features(zoo.make("mod_11"), 12, 0.5, max_monoid=20)
    assert described.monoid_size is None
    assert described.star_free in (False, None)
    assert features(zoo.make("mod_11"), 12, 0.5).monoid_size == 110  # the affine maps q → 2^i·q + b

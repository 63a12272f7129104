"""Proposition 1: episodes one by one, the policy gradient by autograd, closed forms, and where the inequality fails."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, zoo
from rlstate.control import state_influence
from rlstate.control.contributions import Contributions, contributions, histories
from rlstate.control.credit import replaying_influence

ROUNDING = 1e-12


def random_dfa(rng: np.random.Generator, n_states: int, n_symbols: int, permutation: bool = False) -> DFA:
    columns = [
        rng.permutation(n_states) if permutation else rng.integers(0, n_states, n_states) for _ in range(n_symbols)
    ]
    return DFA(np.stack(columns, 1), rng.random(n_states) < 0.5)


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def table(rng: np.random.Generator, steps: int, n_symbols: int) -> list[np.ndarray]:
    """A distribution for each history."""
    return [softmax(2 * rng.standard_normal(((2 * n_symbols) ** t, n_symbols))) for t in range(steps)]


def blind(rows) -> list[np.ndarray]:
    """The distribution of each step, whatever was seen."""
    return [np.tile(row, ((2 * len(row)) ** t, 1)) for t, row in enumerate(rows)]


def of_the_step(choices: list[np.ndarray]) -> list[np.ndarray]:
    """Scores to logits that all histories of a step share."""
    return [np.eye(each.shape[1]) - each[:, None] for each in choices]


def lesser(found: Contributions, bound: np.ndarray) -> np.ndarray:
    """bool[T]: gradient ≤ bound · score."""
    return found.gradient <= bound * found.score + ROUNDING


# --- what is computed ---------------------------------------------------------------------------------------------


def one_by_one(dfa: DFA, choices, scores, p: float) -> list[np.ndarray]:
    """The figures of `Contributions` from a list of all episodes; every symbol has a positive probability."""
    n_symbols, horizon = dfa.n_symbols, len(choices)
    whole = list(product(product((False, True), range(n_symbols)), repeat=horizon))

    def place(history) -> int:
        code = 0
        for mine, symbol in history:
            code = code * 2 * n_symbols + mine * n_symbols + symbol
        return code

    def chance(episode, start: int) -> float:
        """Of the steps from `start` on, after those before."""
        total = 1.0
        for t in range(start, horizon):
            mine, symbol = episode[t]
            total *= p * choices[t][place(episode[:t])][symbol] if mine else (1 - p) / n_symbols
        return total

    def ends(start: int, steps) -> int:
        for _, symbol in steps:
            start = dfa.transitions[start, symbol]
        return start

    figures = [np.zeros(horizon) for _ in range(5)]
    for t in range(horizon):
        gradient, norm, after, held, reached = 0.0, 0.0, {}, {}, {}
        for episode in whole:
            probability, accepted = chance(episode, 0), dfa.accepting[ends(dfa.start, episode)]
            mine, symbol = episode[t]
            state = ends(dfa.start, episode[: t + 1])
            reached.setdefault(state, []).append((probability, accepted))
            if mine:
                own = scores[t][place(episode[:t]), symbol]
                gradient = gradient + probability * accepted * own
                norm += probability * np.linalg.norm(own)
                still = chance(episode, t + 1)
                history = after.setdefault(episode[:t], {})
                history[symbol] = history.get(symbol, 0.0) + still * accepted
                for other in dfa.reachable_states().tolist():
                    states = held.setdefault(episode[: t + 1], {})
                    states[other] = states.get(other, 0.0) + still * dfa.accepting[ends(other, episode[t + 1 :])]
        means = [sum(w * x for w, x in pairs) / sum(w for w, _ in pairs) for pairs in reached.values()]
        spreads = [max(max(each.values()) - min(each.values()) for each in of.values()) for of in (after, held)]
        for figure, value in zip(figures, (np.linalg.norm(gradient), norm, *spreads, max(means) - min(means))):
            figure[t] = value
    return figures


@pytest.mark.parametrize(("seed", "n_symbols", "horizon", "p"), [(0, 2, 3, 0.5), (1, 2, 4, 0.3), (2, 3, 3, 0.7)])
def test_every_figure_against_a_list_of_all_episodes(seed, n_symbols, horizon, p):
    rng = np.random.default_rng(seed)
    dfa = random_dfa(rng, 4, n_symbols)
    choices = table(rng, horizon, n_symbols)
    weights = [rng.standard_normal((len(rows), n_symbols, 5)) for rows in choices]
    scores = [raw - (rows[..., None] * raw).sum(1, keepdims=True) for raw, rows in zip(weights, choices)]
    found = contributions(dfa, choices, scores, p)
    for name, expected in zip(vars(found), one_by_one(dfa, choices, scores, p)):
        np.testing.assert_allclose(getattr(found, name), expected, atol=1e-12, err_msg=name)


def test_histories_are_in_the_order_of_the_choices():
    mine, symbols = histories(2, 3)
    assert mine.shape == symbols.shape == (36, 2)
    rows = list(zip(mine.tolist(), symbols.tolist()))
    assert rows[:4] == [
        ([False, False], [0, 0]),
        ([False, False], [0, 1]),
        ([False, False], [0, 2]),
        ([False, True], [0, 0]),
    ]
    assert len({str(row) for row in rows}) == 36
    assert histories(0, 3)[1].shape == (1, 0)


def test_the_gradient_is_that_of_the_expected_reward():
    """A table's parameters matter at one step each, so that what a step adds is the gradient to them (autograd)."""
    rng, p, horizon = np.random.default_rng(3), 0.4, 3
    dfa = random_dfa(rng, 3, 2)
    logits = [torch.tensor(rng.standard_normal((4**t, 2)), requires_grad=True) for t in range(horizon)]
    weight, states = torch.ones(1, dtype=torch.float64), np.array([dfa.start])
    for each in logits:
        chosen = p * each.softmax(-1)
        weight = (weight[:, None, None] * torch.stack([torch.full_like(chosen, (1 - p) / 2), chosen], 1)).ravel()
        states = np.repeat(dfa.transitions[states][:, None], 2, 1).ravel()
    (weight * torch.from_numpy(dfa.accepting[states].astype(float))).sum().backward()
    found = contributions(dfa, [each.detach().softmax(-1).numpy() for each in logits], None, p)
    np.testing.assert_allclose(found.gradient, [each.grad.norm().item() for each in logits], atol=1e-14)


# --- closed forms -------------------------------------------------------------------------------------------------


def test_parity_in_closed_form():
    """E[R] = (1 + ∏ m_u) / 2 with m_u = p (1 − 2 x_u), x_u the probability of a 1: differentiate to the logits of step t."""
    x, p = np.array([0.2, 0.9, 0.6, 0.35]), 0.7
    choices = blind(np.stack([1 - x, x], 1))
    found = contributions(zoo.make("parity"), choices, of_the_step(choices), p)
    m = p * (1 - 2 * x)
    others = [np.prod(np.delete(m, t)) for t in range(4)]
    np.testing.assert_allclose(found.gradient, np.sqrt(2) * p * x * (1 - x) * np.abs(others), atol=1e-15)
    np.testing.assert_allclose(found.score, p * 2 * np.sqrt(2) * x * (1 - x))
    still = [abs(np.prod(m[t + 1 :])) for t in range(4)]
    for figure in (found.symbol_influence, found.state_influence, found.mean_state_influence):
        np.testing.assert_allclose(figure, still, atol=1e-15)


def test_under_uniform_play_parity_gives_credit_to_the_last_step_alone():
    """Proposition 2: 0 before it. There each of 4^t histories has its own logits, which half of it moves."""
    for horizon in (1, 3, 5):
        found = contributions(zoo.make("parity"), blind([[0.5, 0.5]] * horizon))
        assert found.gradient[:-1].max(initial=0) < 1e-16
        assert found.gradient[-1] == pytest.approx(found.score[-1] / 2 / 2 ** (horizon - 1))
        assert found.mean_state_influence[-1] == 1


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), p=st.floats(0.05, 1))
def test_state_blind_policies_have_the_influence_of_credit(seed, p):
    rng = np.random.default_rng(seed)
    dfa = random_dfa(rng, 4, 2)
    rows = softmax(rng.standard_normal((4, 2)))
    found = contributions(dfa, blind(rows), None, p)
    by_remaining = np.repeat(rows[:0:-1, None], 4, 1)  # of the last step first
    influence = state_influence(dfa, 3, by_remaining, p)
    np.testing.assert_allclose(found.state_influence[2::-1], influence, atol=1e-12)
    assert (found.mean_state_influence <= found.state_influence + ROUNDING).all()


@pytest.mark.parametrize("t", [0, 1, 2])
def test_the_replaying_policy_keeps_its_influence(t):
    """From step t on it undoes what chance has done since: the closed form of `replaying_influence`, by enumeration."""
    p, horizon = 0.3, 5
    choices = []
    for step in range(horizon):
        mine, symbols = histories(step, 2)
        memory = np.zeros(len(mine), np.int64)
        for u in range(t + 1, step):
            memory = np.where(mine[:, u], 0, memory ^ symbols[:, u])
        choices.append(np.eye(2)[memory] if step > t else np.full((len(mine), 2), 0.5))
    found = contributions(zoo.make("parity"), choices, None, p)
    expected = replaying_influence(horizon - 1 - t, p)[-1]
    for figure in (found.symbol_influence, found.state_influence, found.mean_state_influence):
        assert figure[t] == pytest.approx(expected) == pytest.approx(p)
    assert found.gradient[t] > 0
    assert lesser(found, found.mean_state_influence).all()


def test_nobody_chooses_or_nothing_depends_on_it():
    rng = np.random.default_rng(4)
    nobody = contributions(zoo.make("mod_3"), table(rng, 3, 2), None, 0.0)
    assert nobody.gradient.tolist() == nobody.score.tolist() == [0, 0, 0]
    same = contributions(DFA([[0, 1], [1, 0]], [True, True]), table(rng, 3, 2))
    assert same.gradient == pytest.approx([0, 0, 0], abs=1e-15)
    assert same.symbol_influence == pytest.approx([0, 0, 0], abs=1e-15)
    assert (same.score > 0).all()


# --- the inequality -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), n_symbols=st.integers(2, 3), p=st.floats(0.05, 1), shared=st.booleans())
def test_where_the_inequality_holds(seed, n_symbols, p, shared):
    rng = np.random.default_rng(seed)
    any_dfa, group = (random_dfa(rng, 4, n_symbols, permutation) for permutation in (False, True))
    reading = table(rng, 3, n_symbols)
    for dfa in (any_dfa, group):
        found = contributions(dfa, reading, of_the_step(reading) if shared else None, p)
        assert lesser(found, found.symbol_influence / 2).all()
        if dfa is group:
            share = 1 - 1 / len(dfa.reachable_states())
            assert (found.symbol_influence <= 2 * share * found.state_influence + ROUNDING).all()
            assert lesser(found, share * found.state_influence).all()
        rows = blind(softmax(2 * rng.standard_normal((3, n_symbols))))
        found = contributions(dfa, rows, of_the_step(rows) if shared else None, p)
        assert lesser(found, found.mean_state_influence / 2).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), t=st.integers(0, 2))
def test_with_what_was_seen_held_it_holds_where_nobody_reads_the_symbol(seed, t):
    rng = np.random.default_rng(seed)
    dfa, choices = random_dfa(rng, 4, 2), table(rng, 4, 2)
    for u in range(t + 1, 4):  # [before t, whose step t was, its symbol, after t]
        rows = choices[u].reshape(4**t, 2, 2, -1, 2)
        choices[u] = np.repeat(rows[:, :, :1], 2, 2).reshape(4**u, 2)
    found = contributions(dfa, choices)
    assert found.symbol_influence[t] <= found.state_influence[t] + ROUNDING
    assert lesser(found, found.state_influence / 2)[t]


def test_one_choice_between_two_symbols_attains_the_half():
    found = contributions(zoo.make("ends_with_1"), [[[0.3, 0.7]]])
    assert found.gradient[0] == pytest.approx(found.score[0] / 2)
    assert found.symbol_influence[0] == found.state_influence[0] == found.mean_state_influence[0] == 1


# --- where it fails -----------------------------------------------------------------------------------------------


def uniform_and_then(last: np.ndarray) -> list[np.ndarray]:
    steps = round(np.log(len(last)) / np.log(4))
    return [*blind([[0.5, 0.5]] * steps), np.eye(2)[last]]


def test_a_symbol_seen_before_the_step_averages_out_of_the_influence():
    """Parity, T = 3: the last step repeats the first symbol, so that the second decides, whatever the state was.

    Given the state after it the second symbol is a fair coin: Δ = 0 as the paper writes it. The policy reads nothing that
    comes after the first step, and so is state-blind after the second in the paper's sense.
    """
    choices = uniform_and_then(histories(2, 2)[1][:, 0])
    found = contributions(zoo.make("parity"), choices, of_the_step(choices))
    assert found.mean_state_influence[1] == 0
    assert found.symbol_influence[1] == found.state_influence[1] == 0.5  # where the last step is the agent's
    assert found.gradient[1] == pytest.approx(found.score[1] / 4)


def test_an_agent_that_copies_itself_breaks_it_where_the_state_is_forgotten():
    """ends_with_1, T = 2: the second symbol alone decides, and repeats the first."""
    found = contributions(zoo.make("ends_with_1"), uniform_and_then(histories(1, 2)[1][:, 0]))
    assert found.state_influence[0] == 0
    assert found.mean_state_influence[0] == found.symbol_influence[0] == 0.5
    assert found.gradient[0] == pytest.approx(found.score[0] / 4)


def test_neither_state_influence_bounds_a_policy_that_adds_up_what_it_saw():
    """ends_with_1, T = 3: the last symbol is the sum of the two before. Over all histories no symbol makes a difference."""
    found = contributions(zoo.make("ends_with_1"), uniform_and_then(histories(2, 2)[1].sum(1) % 2))
    assert found.state_influence[1] == found.mean_state_influence[1] == 0
    assert found.symbol_influence[1] == 0.5
    assert found.gradient[1] == pytest.approx(found.score[1] / 8)  # each of 4 histories has its own logits: / 4 / √4
    choices = uniform_and_then(histories(2, 2)[1].sum(1) % 2)
    shared = contributions(zoo.make("ends_with_1"), choices, of_the_step(choices))
    assert shared.gradient[1] == pytest.approx(0, abs=1e-16)  # the histories cancel, though the symbol matters in each


def test_the_state_is_the_one_after_the_step():
    """Before the only step of an episode of parity the state matters not at all (Δ_1 = 0), and the step does."""
    found = contributions(zoo.make("parity"), blind([[0.5, 0.5]]))
    assert state_influence(zoo.make("parity"), 1).tolist() == [0]
    assert found.gradient[0] == pytest.approx(found.score[0] / 2)


# --- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "scores", "p", "sentence"),
    [
        ([], None, 0.5, "0 steps"),
        ([np.zeros((1, 2))] * 12, None, 0.5, "12 steps of 2 symbols have 16777216 histories"),
        ([[[0.5, 0.5]]], None, 2, "p_control=2"),
        ([[0.5, 0.5]], None, 0.5, r"step 0 have shape \(2,\)"),
        ([[[0.5, 0.5]], [[0.5, 0.5]]], None, 0.5, r"step 1 have shape \(1, 2\): .* \(4, 2\)"),
        ([[[0.5, 0.6]]], None, 0.5, "not probabilities"),
        ([[[0.5, 0.5]]], [], 0.5, "Scores of 0 steps"),
        ([[[0.5, 0.5]]], [[[1.0, -1.0]]], 0.5, r"shape \(1, 2\) were given"),
        ([[[0.5, 0.5]]], [[[[1.0], [1.0]]]], 0.5, "must be 0"),
    ],
)
def test_mistakes_are_named(choices, scores, p, sentence):
    with pytest.raises(ValueError, match=sentence):
        contributions(zoo.make("parity"), choices, scores, p)

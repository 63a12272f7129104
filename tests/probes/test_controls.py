"""The probe's controls: what they are by brute force, and what they say of planted features."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest
import torch

from rlstate.automata import DFA
from rlstate.control.task import Task
from rlstate.learning.objectives import Auxiliary
from rlstate.learning.trainer import new_policy
from rlstate.probes.controls import control_labels, encoded, last_symbols, probe_suite, unrelated_automaton
from rlstate.probes.linear import linear_probe


@pytest.mark.parametrize(("n_symbols", "width"), [(1, 1), (2, 6), (3, 3), (4, 3), (8, 2), (10, 1), (64, 1), (100, 1)])
def test_control_labels_are_a_function_of_time_and_the_last_symbols(n_symbols, width):
    rng = np.random.default_rng(0)
    symbols, states = rng.integers(0, n_symbols, (9, 400)), rng.integers(0, 3, (9, 400))
    labels = control_labels(symbols, states, n_symbols, 0)
    seen, shorter = {}, defaultdict(set)
    for t in range(9):
        for b in range(400):
            suffix = tuple(symbols[max(0, t - width) : t, b])
            assert seen.setdefault((t, suffix), labels[t, b]) == labels[t, b]
            shorter[t, suffix[1:]].add(labels[t, b])
    if width > 1:  # the whole width counts, not less of it
        assert any(len(several) > 1 for several in shorter.values())
    if len(seen) > 3:
        assert len(set(seen.values())) == 3


def test_control_labels_have_the_marginal_distribution_of_the_states():
    rng = np.random.default_rng(0)
    symbols = rng.integers(0, 2, (40, 2000))
    states = rng.choice([2, 5, 9], (40, 2000), p=[0.6, 0.3, 0.1])
    labels = control_labels(symbols, states, 2, 0)
    shares = [(labels == state).mean() for state in (2, 5, 9)]
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1], atol=0.04)
    assert (control_labels(symbols, states, 2, 1) != labels).any()


def test_last_symbols():
    symbols = np.array([[0], [2], [1]])  # one episode
    one_hots = last_symbols(symbols, 3, 2).reshape(3, 2, 4).argmax(-1)
    assert one_hots.tolist() == [[3, 3], [0, 3], [2, 0]]  # most recent first; 3 is "none yet"


def test_selectivity_is_high_for_the_state_and_none_for_memory(planted):
    task = planted.task_of("ends_with_101", horizon=7)
    symbols, states, _ = planted.play(task, episodes=500)
    control = control_labels(symbols, states, 2, 0)

    def selectivity(features):
        return linear_probe(features, states, 0).accuracy - linear_probe(features, control, 0).accuracy

    assert selectivity(planted.one_hot(states)) > 0.3
    suffix = np.zeros_like(symbols)
    for lag in range(1, 7):
        suffix[lag:] += 3 ** (lag - 1) * (1 + symbols[:-lag])
    _, memory = np.unique(np.arange(7)[:, None] * 3**6 + suffix, return_inverse=True)
    assert abs(selectivity(planted.one_hot(memory.reshape(symbols.shape)))) < 0.02


def test_the_unrelated_automaton(planted):
    for name in ("parity", "mod_5", "mined_ean"):
        task = planted.task_of(name)
        symbols, states, _ = planted.play(task, episodes=300)
        other, driven, note = unrelated_automaton(task.dfa, symbols, states, 0)
        assert other is not None
        assert note is None
        assert (other.n_states, other.n_symbols) == (task.dfa.n_states, task.dfa.n_symbols)
        for b in (0, 7):
            assert driven[:, b].tolist() == other.trace(symbols[:, b])[:-1].tolist()
        assert np.bincount(driven.ravel()).max() < 0.9 * driven.size
        # The task's state does not give the other's away.
        assert len({*zip(states.ravel().tolist(), driven.ravel().tolist())}) > len(np.unique(states))


def test_no_unrelated_automaton_is_said_so():
    always = DFA([[0, 0]], [True])
    symbols = np.random.default_rng(0).integers(0, 2, (5, 20))
    other, _, note = unrelated_automaton(always, symbols, np.zeros_like(symbols), 0)
    assert other is None
    assert note is not None
    assert "50" in note


def test_untrained_features_are_those_of_the_first_weights(planted):
    task = planted.task_of("mod_3")
    policy = new_policy(task, 4, {"name": "gru", "hidden": 8}, Auxiliary())
    played = planted.greedy(policy, task, episodes=20)
    torch.testing.assert_close(encoded(policy, played.observations), played.features, atol=1e-5, rtol=1e-4)


def test_the_suite(planted):
    task = planted.task_of("workflow_reconcile")
    policy = planted.reconciler(task)
    untrained = new_policy(task, 0, {"name": "gru", "hidden": 16}, Auxiliary())
    played = planted.greedy(policy, task)
    suite = probe_suite(played, planted.greedy(policy, task, seed=1), task, untrained, 0)
    assert json.loads(json.dumps(suite, allow_nan=False)) == suite
    assert suite["main"]["recovery"] == pytest.approx(1.0)
    assert suite["sampled"]["recovery"] == pytest.approx(1.0)
    assert suite["selectivity"] == suite["main"]["accuracy"] - suite["control_task"]["accuracy"]
    assert suite["selectivity"] > 0.1
    for control in ("untrained", "input", "input_last_k", "random_dfa", "control_task"):
        assert suite[control]["recovery"] < 0.9
    assert suite["input"]["accuracy"] < suite["input_last_k"]["accuracy"]
    assert suite["quotient_classes"] == 5
    assert suite["quotient"] == suite["main"]


def test_the_quotient_is_probed_where_it_merges_states(planted):
    """Features that know the class but not which of two twin states: the state is half lost, the quotient is not."""
    base = planted.task_of("mod_3").dfa
    copies = np.concatenate([base.transitions + 3, base.transitions])  # each step also changes the copy …
    copies[[2, 5]] = copies[[2, 5], :] % 3  # … except from state 2
    task = Task("twins", DFA(copies, np.tile(base.accepting, 2)))
    policy = new_policy(task, 0, {"name": "gru", "hidden": 8}, Auxiliary())
    played = planted.greedy(policy, task)
    played.features = torch.from_numpy(planted.one_hot(played.states[:-1].numpy() % 3))
    suite = probe_suite(played, None, task, policy, 0)
    assert suite["sampled"] is None
    assert suite["quotient_classes"] == 3
    assert suite["quotient"]["accuracy"] == 1.0
    assert suite["main"]["accuracy"] < 0.9

"""The policies that Proposition 1 is checked on: a network's tables against its rollouts, and what counts as exceeded."""

from __future__ import annotations

import numpy as np
import torch

from rlstate.automata import zoo
from rlstate.control import Stream
from rlstate.control.contributions import Contributions
from rlstate.control.task import Task
from rlstate.learning.rollout import rollout
from rlstate.paper import proposition_1
from rlstate.paper.proposition_1 import STEPS, Family, families, network, network_influence


def test_a_network_is_tabulated_as_it_plays():
    task = Task("parity", zoo.make("parity"), STEPS, 0.5)
    policy = proposition_1._network(1, STEPS, 16, 3.0)
    choices, scores = network(1, 16, 3.0)
    played = rollout(policy, task, task.draw(0, Stream.EVALUATION, 0, 32))
    log_probs = policy(played.observations)[1].logits.log_softmax(-1)
    weights = [*policy.encoder.parameters(), *policy.policy_head.parameters()]
    codes, checked = np.zeros(32, int), 0
    for t in range(STEPS):
        mine, symbols = played.controllable[t].numpy(), played.symbols[t].numpy()
        for b in np.flatnonzero(mine):
            np.testing.assert_allclose(choices[t][codes[b]], log_probs[t, b].exp().detach(), atol=1e-12)
            if b < 6:
                own = torch.autograd.grad(log_probs[t, b, symbols[b]], weights, retain_graph=True)
                expected = torch.cat([part.ravel() for part in own])
                np.testing.assert_allclose(scores[t][codes[b], symbols[b]], expected, atol=1e-10)
                checked += 1
        codes = codes * 4 + mine * 2 + symbols
    assert checked > 5
    assert np.ptp(choices[-1][:, 0]) > 0.1  # it does read its history


def test_an_untrained_network_is_nearly_state_blind():
    """On parity a policy that reads no symbol at all has Δ_r = ∏ p |1 − 2x|; this one does read, a little."""
    found = network_influence("parity", 5, 0)
    assert found.shape == (5,)
    assert (found > 0).all()
    assert (found < 0.1 ** np.arange(1, 6)).all()


def test_ratios_tell_rounding_from_what_is_exceeded():
    gradient = np.array([0.2, 1e-18, 0.1, 0.0])
    influence = np.array([0.5, 0.0, 1e-17, 1.0])
    made = Contributions(gradient, np.array([0.2, 0.2, 0.2, 0.0]), influence, influence, influence)
    family = Family("made", ("parity",), (made,))
    assert family.ratios("state_influence").tolist() == [2.0, 0.0, np.inf, 0.0]
    assert family.exceeded("state_influence") == 2
    assert family.steps == 4
    assert family.idle().tolist() == [1e-18, 0.1]


def test_the_larger_networks_and_the_tables_exceed_the_bound_as_written():
    """What the claim says, family by family; the blind ones do not."""
    exceeded = {(each.policies, each.automata): each.exceeded("mean_state_influence") for each in families()}
    for automata in (proposition_1.PERMUTATION, proposition_1.OTHERS):
        assert exceeded[proposition_1.BLIND, automata] == 0
        assert exceeded["a distribution for each history", automata] > 5
    assert all(each.exceeded("symbol_influence") == 0 for each in families())

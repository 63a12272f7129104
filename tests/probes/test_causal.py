"""The interventional probe: 1 where the policy acts on the state, the baseline where it ignores a readable copy of it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from rlstate.learning.objectives import Auxiliary
from rlstate.learning.policy import Policy
from rlstate.learning.trainer import new_policy
from rlstate.probes.causal import interventional_probe
from rlstate.probes.linear import linear_probe, row_split_probe


@pytest.fixture(scope="module")
def horizon():
    return 5  # short, so that symbols matter (the action gap exceeds .01) at most steps


def probed(policy, task, planted, episodes=512):
    played = planted.greedy(policy, task, episodes)
    return played, linear_probe(played.features, played.states[:-1], 0)


def test_a_state_that_is_used_is_moved(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task)
    for r in range(1, horizon + 1):  # it does act optimally
        assert task.oracle.optimal_actions(r, np.arange(5))[np.arange(5), planted.RECONCILE].all()
    played, probe = probed(policy, task, planted)
    assert float(played.accepted.mean()) == pytest.approx(task.oracle.optimal, abs=4 * 0.5 / 512**0.5)
    found = interventional_probe(policy, played, task, probe, 0)
    assert probe.recovery == pytest.approx(1.0)
    assert found.success > 0.99
    assert found.usual_success > 0.99
    assert found.baseline == 0.0  # its own action is optimal in q, so it cannot be in q′
    assert found.random < 0.6
    assert found.shuffled < 0.6
    assert found.by_alpha["0"] == 0.0
    assert found.examples > 500


def test_a_copy_that_is_ignored_is_read_and_not_consulted(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task, used=False)
    played, probe = probed(policy, task, planted)
    found = interventional_probe(policy, played, task, probe, 0)
    assert probe.recovery == pytest.approx(1.0)
    assert found.success == pytest.approx(found.baseline)
    # It always holds, also in q′: its own usual action is no evidence unless compared with the unedited one.
    assert found.usual_success == found.usual_baseline == 1.0


def test_a_head_that_reads_other_features_than_the_probe(planted, horizon):
    """Two copies of the state, one zeroed for the probe: the edit moves a copy that the head does not look at."""
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task, copies=2)
    played, _ = probed(policy, task, planted)
    only_first = played.features.clone()
    only_first[..., 5:10] = 0.0
    probe = linear_probe(only_first, played.states[:-1], 0)
    assert (probe.weights[:, 5:10] == 0.0).all()
    found = interventional_probe(policy, played, task, probe, 0)
    assert found.success == found.baseline == 0.0


class Recording(Policy):
    """Keeps the features that the heads are asked about."""

    def heads(self, features):
        self.__dict__.setdefault("asked", []).append(features.clone())
        return super().heads(features)


def test_controls_are_as_long_as_the_edit_example_by_example(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task)
    played, probe = probed(policy, task, planted)
    played = replace(played, features=played.features.double())

    def edited(alpha):
        recording = Recording(policy.encoder, task.dfa.n_symbols)
        recording.load_state_dict(policy.state_dict())
        recording.double()
        found = interventional_probe(recording, played, task, probe, 0, alphas=(alpha,), random_draws=3)
        return torch.stack([asked for asked in recording.asked if asked.shape[0] == found.examples])

    # Three random edits, the shuffled probe's and the probe's own, all of the same examples, less the features unedited.
    displacements = edited(1.0) - edited(1e-12)
    lengths = displacements.norm(dim=-1)
    assert lengths.shape[0] == 5
    assert lengths.std(dim=1).min() > 1e-3  # not simply all of one length
    torch.testing.assert_close(lengths, lengths[-1].expand_as(lengths), rtol=1e-6, atol=1e-6)
    directions = displacements / lengths[..., None]
    assert (directions[:-1] * directions[-1]).sum(-1).abs().mean() < 0.8  # and elsewhere they point


def test_the_verdict_of_an_edit_does_not_depend_on_the_features_unit(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task)
    played, probe = probed(policy, task, planted)
    found = interventional_probe(policy, played, task, probe, 0)
    with torch.no_grad():
        policy.policy_head.weight /= 1000.0
    scaled = replace(played, features=played.features * 1000.0)
    again = interventional_probe(policy, scaled, task, linear_probe(scaled.features, played.states[:-1], 0), 0)
    assert again.success == pytest.approx(found.success, abs=0.01)
    assert again.alpha == found.alpha
    assert again.random == pytest.approx(found.random, abs=0.02)


def test_nothing_to_test_is_said_so(planted):
    task = planted.task_of("parity")
    uncontrolled = planted.task_of("parity", p_control=0.0)
    policy = new_policy(task, 0, {"name": "gru", "hidden": 8}, Auxiliary())
    played = planted.greedy(policy, uncontrolled)
    probe = linear_probe(played.features, played.states[:-1], 0)
    found = interventional_probe(policy, played, uncontrolled, probe, 0)
    assert found.success is None
    assert found.examples == 0
    assert found.notes
    json.dumps(found.summary(), allow_nan=False)
    # One class alone has no direction to move in.
    probe = linear_probe(played.features, torch.zeros_like(played.states[:-1]), 0)
    assert interventional_probe(policy, played, task, probe, 0).success is None


def test_examples_are_those_where_the_oracle_tells_the_states_apart(planted):
    """On parity only the last step matters, and there the other state wants the other symbol."""
    task = planted.task_of("parity")
    policy = new_policy(task, 0, {"name": "gru", "hidden": 8}, Auxiliary())
    played = planted.greedy(policy, task)
    probe = linear_probe(played.features, played.states[:-1], 0)
    found = interventional_probe(policy, played, task, probe, 0)
    assert found.examples == int(played.controllable[-1, probe.split.test].sum())
    assert found.episodes == found.examples
    n, p = found.examples, found.success
    assert found.success_se == pytest.approx(np.sqrt(p * (1 - p) / (n - 1)))  # one example an episode: a plain mean's

    few = interventional_probe(policy, played, task, probe, 0, max_examples=20)
    assert few.examples == 20


def test_the_same_seed_gives_the_same_numbers_in_json(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task)
    played, probe = probed(policy, task, planted)
    a, b = (interventional_probe(policy, played, task, probe, 3) for _ in range(2))
    assert a == b
    assert json.loads(json.dumps(a.summary(), allow_nan=False)) == a.summary()
    assert interventional_probe(policy, played, task, probe, 4).random != a.random


def test_a_probe_of_other_rollouts_or_split_by_row_is_refused(planted, horizon):
    task = planted.task_of("workflow_reconcile", horizon)
    policy = planted.reconciler(task)
    played, probe = probed(policy, task, planted)
    with pytest.raises(ValueError, match="512"):
        interventional_probe(policy, planted.greedy(policy, task, 100), task, probe, 0)
    by_row = row_split_probe(played.features, played.states[:-1], 0)
    with pytest.raises(ValueError, match="row"):
        interventional_probe(policy, played, task, by_row, 0)

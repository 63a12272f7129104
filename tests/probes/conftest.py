"""Representations with known answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rlstate.automata import zoo
from rlstate.control import Stream
from rlstate.control.task import Task
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import random_play, rollout


def task_of(name, horizon=12, p_control=0.5):
    return Task(name, zoo.make(name), horizon, p_control)


def play(task, episodes=512, seed=0):
    """symbols int[T, B] and states int[T, B] of uniform random play, as numpy arrays, and the observations."""
    played = random_play(task, task.draw(seed, Stream.PROBE, 1, episodes), torch.zeros(()))
    return played.symbols.numpy(), played.states[:-1].numpy(), played.observations


def one_hot(labels, width=None):
    return np.eye(width or labels.max() + 1, dtype=np.float32)[labels]


class Tracker(nn.Module):
    """An encoder that tracks a DFA exactly: features are `copies` one-hots of q_t side by side, then the clock and a 1."""

    def __init__(self, task, copies=1):
        super().__init__()
        self.dfa, self.layout, self.copies = task.dfa, task.layout, copies
        self.register_buffer("transitions", torch.from_numpy(task.dfa.transitions.copy()))
        self.out_features = copies * task.dfa.n_states + 2

    def forward(self, observations: Tensor) -> Tensor:
        carry, features = None, []
        for observation in observations:
            feature, carry = self.step(observation, carry)
            features.append(feature)
        return torch.stack(features)

    def step(self, observation: Tensor, carry=None):
        if carry is None:
            states = torch.full(observation.shape[:1], self.dfa.start)
        else:
            states = self.transitions[carry, observation[:, self.layout.symbol].argmax(-1)]
        state = nn.functional.one_hot(states, self.dfa.n_states).to(observation)
        clock = observation[:, self.layout.clock, None]
        return torch.cat([state] * self.copies + [clock, torch.ones_like(clock)], dim=-1), states


RECONCILE = (2, 1, 1, 0, 0)
"""An optimal symbol of workflow_reconcile in each state at every r: hold at 0, otherwise the short way round."""


def reconciler(task, used=True, copies=1):
    """A policy for workflow_reconcile whose features hold the state and whose head reads its last copy, or only a bias."""
    policy = Policy(Tracker(task, copies), task.dfa.n_symbols)
    n_states = task.dfa.n_states
    with torch.no_grad():
        policy.policy_head.weight.zero_()
        policy.policy_head.bias.copy_(torch.tensor([0.0, 0.0, 0.5]))
        if used:
            policy.policy_head.bias.zero_()
            for state, symbol in enumerate(RECONCILE):
                policy.policy_head.weight[symbol, (copies - 1) * n_states + state] = 1.0
    return policy


def greedy(policy, task, episodes=512, seed=0):
    return rollout(policy, task, task.draw(seed, Stream.PROBE, 1, episodes), greedy=True)


@pytest.fixture
def planted() -> SimpleNamespace:
    """The helpers of this file; test modules cannot import one another under pytest's importlib mode."""
    return SimpleNamespace(
        task_of=task_of, play=play, one_hot=one_hot, reconciler=reconciler, greedy=greedy, RECONCILE=RECONCILE
    )

"""Supervised capacity: recurrent encoders track, bounded windows cannot, and training never sees more than T steps."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rlstate.control import EmissionChannel
from rlstate.control.task import Task
from rlstate.probes import capacity
from rlstate.probes.capacity import supervised_capacity

GRU = {"name": "gru", "hidden": 32}


@pytest.mark.parametrize("name", ["parity", "mod_5"])
def test_a_gru_saturates_at_T_and_at_4T(planted, name):
    found = supervised_capacity(planted.task_of(name), GRU, 0, iterations=600, episodes=256)
    assert found.saturated
    assert min(found.accuracy, found.ood_accuracy) >= 0.95
    assert found.iterations < 600  # it stops when that is enough
    assert json.loads(json.dumps(found.summary())) == found.summary()


def test_a_window_is_chance_beyond_its_reach(planted):
    encoder = {"name": "window_mlp", "hidden": 32, "window": 3}
    found = supervised_capacity(planted.task_of("parity"), encoder, 0, iterations=400, episodes=256)
    assert not found.saturated
    assert found.ood_accuracy == pytest.approx(0.5, abs=0.05)
    # Exact for the first three steps (none yet, one, two and three symbols), a coin after that.
    assert found.accuracy == pytest.approx((4 + 8 * 0.5) / 12, abs=0.06)


def test_a_window_is_enough_where_the_state_is_a_window(planted):
    encoder = {"name": "window_mlp", "hidden": 32, "window": 2}
    assert supervised_capacity(planted.task_of("mod_2"), encoder, 0, iterations=400, episodes=256).saturated


def test_training_sees_at_most_T_steps_and_checks_and_scores_use_other_episodes(planted, monkeypatch):
    task = planted.task_of("mod_3", horizon=6)
    original, trained, scored = capacity.random_play, [], []

    def spy(task, draws, like):
        (trained if torch.is_grad_enabled() else scored).append(draws)
        return original(task, draws, like)

    monkeypatch.setattr(capacity, "random_play", spy)
    supervised_capacity(task, GRU, 0, iterations=120, episodes=64)
    lengths = [draws.horizon for draws in trained]
    assert lengths == sorted(lengths)
    assert (lengths[0], max(lengths)) == (3, 6)
    assert {draws.horizon for draws in scored} == {6, 24}

    def words(draws):
        return {tuple(word) for word in draws.random_symbol[:, :64].T.tolist()}

    assert len(words(scored[-1]) & words(scored[0])) <= 2  # 64 of 2^24 words of 24 symbols: drawn afresh


def test_the_clock_in_training_is_that_of_an_episode_of_T_to_4T_steps(planted):
    task = planted.task_of("parity")
    observations, _ = capacity._batch(task, 0, 1, 400, 12, 0.0, torch.zeros(()))
    clock = observations[..., task.layout.clock].numpy()
    own = (12 - np.arange(12)) / 12
    np.testing.assert_allclose(clock[:, :200], np.broadcast_to(own[:, None], (12, 200)), atol=1e-6)
    assert (np.diff(clock, axis=0) <= 0).all()
    assert (clock[-1, 200:] == 1.0).mean() > 0.5  # mostly stands still, as at 4T
    assert (clock[:, 200:] >= own[:, None] - 1e-6).all()


def test_it_is_a_function_of_its_arguments(planted):
    task = planted.task_of("mod_3", horizon=6)
    a, b, c = (supervised_capacity(task, GRU, seed, iterations=60, episodes=64) for seed in (0, 0, 1))
    assert a == b
    assert a != c


def test_every_step_is_observed_through_the_channel(planted):
    """Where everything leaks, a window of one observation is enough; the channel is part of what is observed."""
    parity = planted.task_of("parity").dfa
    leaking = Task("parity", parity, 12, 0.5, EmissionChannel.identity(parity, 1.0))
    encoder = {"name": "window_mlp", "hidden": 16, "window": 1}
    assert supervised_capacity(leaking, encoder, 0, iterations=400, episodes=64).saturated


def test_bad_input(planted):
    with pytest.raises(ValueError, match="iterations=0"):
        supervised_capacity(planted.task_of("parity"), GRU, 0, iterations=0)
    with pytest.raises(ValueError, match="unknown encoder"):
        supervised_capacity(planted.task_of("parity"), {"name": "grue"}, 0)

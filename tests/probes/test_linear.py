"""The linear probe on features whose answers are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.probes.linear import clustered_se, linear_probe, quick_probe, row_split_probe, split_episodes


def test_a_one_hot_of_the_state_is_recovered_at_lag_0_only(planted):
    _, states, _ = planted.play(planted.task_of("mod_5"))
    features = planted.one_hot(states)
    now = linear_probe(features, states, 0)
    assert now.recovery == pytest.approx(1.0)
    assert now.recovery_balanced == pytest.approx(1.0)
    assert now.accuracy == 1.0
    assert now.converged

    late = linear_probe(np.roll(features, 1, axis=0)[1:], states[1:], 0)  # of q_{t−1}: the last symbol is missing
    assert late.recovery is not None
    assert 0.1 < late.recovery < 0.6
    # From the state before, the best guess is one of its two successors.
    assert late.accuracy == pytest.approx(0.5, abs=0.07)


def test_noise_recovers_nothing(planted):
    _, states, _ = planted.play(planted.task_of("mod_3"), episodes=800)
    features = np.random.default_rng(0).standard_normal((*states.shape, 16))
    found = linear_probe(features, states, 0)
    assert found.gap is not None
    assert found.gap_se is not None
    # No better than chance; the majority class itself is not beaten by fitting noise.
    assert found.gap < 3 * found.gap_se
    assert abs(found.gap) < 0.04


def test_an_episodes_fingerprint_is_chance_by_episode_and_inflated_by_row():
    rng = np.random.default_rng(0)
    steps, episodes, width = 12, 80, 64
    own = rng.integers(0, 3, episodes)
    labels = np.where(rng.random((steps, episodes)) < 0.9, own, rng.integers(0, 3, (steps, episodes)))
    features = np.broadcast_to(rng.standard_normal((episodes, width)), (steps, episodes, width))
    by_episode, by_row = linear_probe(features, labels, 0), row_split_probe(features, labels, 0)
    assert by_episode.gap_se is not None
    assert by_episode.gap < 2.5 * by_episode.gap_se
    assert by_row.gap > 0.3
    assert any("row" in note for note in by_row.notes)


def test_mod_2_is_its_last_input(planted):
    _, states, observations = planted.play(planted.task_of("mod_2"))
    assert linear_probe(observations, states, 0).accuracy == 1.0
    _, states, observations = planted.play(planted.task_of("parity"))
    assert abs(linear_probe(observations[1:], states[1:], 0).gap) < 0.08


@given(st.integers(4, 400), st.integers(0, 10))
def test_a_split_is_a_partition(n, seed):
    split = split_episodes(n, seed)
    assert sorted(np.concatenate(split)) == list(range(n))
    assert all(len(part) for part in split)
    if n >= 20:
        assert [len(part) / n for part in split] == pytest.approx([0.5, 0.2, 0.3], abs=1 / n)


def test_no_training_figure_depends_on_the_other_episodes(planted):
    """Changing the test episodes beyond recognition changes neither the standardization nor the fit."""
    _, states, _ = planted.play(planted.task_of("mod_3"), episodes=60)
    features = np.random.default_rng(0).standard_normal((*states.shape, 8)) + planted.one_hot(states, 8)
    changed = features.copy()
    changed[:, split_episodes(60, 3).test] = 1e3
    a, b = linear_probe(features, states, 3), linear_probe(changed, states, 3)
    for name in ("mean", "scale", "weights", "bias", "C"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.accuracy != b.accuracy


@settings(deadline=None, max_examples=8)
@given(st.permutations(range(4)), st.integers(0, 5))
def test_renumbering_the_states_changes_nothing(numbers, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (5, 60))
    features = np.eye(4)[labels] + rng.standard_normal((5, 60, 4))
    a, b = linear_probe(features, labels, seed), linear_probe(features, np.array(numbers)[labels] * 7, seed)
    assert a.C == b.C
    assert a.accuracy == pytest.approx(b.accuracy, abs=0.02)  # rows on a boundary may fall the other way
    assert a.balanced == pytest.approx(b.balanced, abs=0.03)


def test_scale_and_shift_of_the_features_change_nothing(planted):
    _, states, _ = planted.play(planted.task_of("mod_3"), episodes=100)
    rng = np.random.default_rng(0)
    features = planted.one_hot(states) + rng.standard_normal((*states.shape, 3))
    moved = features * np.array([1e-4, 1.0, 1e5]) + np.array([3.0, -1e3, 0.0])
    a, b = linear_probe(features, states, 0), linear_probe(moved, states, 0)
    assert a.accuracy == pytest.approx(b.accuracy, abs=1e-3)
    assert (a.predict(features) == b.predict(moved)).mean() > 0.999


def test_majority_is_of_the_training_episodes_scored_on_the_test_episodes():
    episodes, seed = 40, 0
    split = split_episodes(episodes, seed)
    labels = np.zeros((6, episodes), int)
    labels[:2] = 1  # a third of the training rows …
    labels[:, split.test] = 1  # … but the whole test set
    found = linear_probe(np.random.default_rng(0).standard_normal((6, episodes, 3)), labels, seed)
    assert found.majority == 0.0
    by_step = found.by_timestep
    assert by_step["majority"] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert by_step["rows"] == [len(split.test)] * 6


def test_balanced_accuracy_and_recovery_against_their_definitions():
    rng = np.random.default_rng(1)
    labels = rng.choice(3, (8, 200), p=[0.7, 0.2, 0.1])
    features = np.eye(3)[labels] + 0.7 * rng.standard_normal((8, 200, 3))
    found = linear_probe(features, labels, 0)
    test = split_episodes(200, 0).test
    truth, predicted = labels[:, test].ravel(), found.predict(features[:, test]).ravel()
    accuracy = (truth == predicted).mean()
    balanced = np.mean([(predicted[truth == k] == k).mean() for k in range(3)])
    majority = (truth == 0).mean()
    assert found.accuracy == pytest.approx(accuracy)
    assert found.majority == pytest.approx(majority)
    assert found.gap == pytest.approx(accuracy - majority)
    assert found.recovery == pytest.approx((accuracy - majority) / (1 - majority))
    assert found.balanced == pytest.approx(balanced)
    assert found.recovery_balanced == pytest.approx((balanced - 1 / 3) / (2 / 3))
    at_3 = (found.predict(features[3, test]) == labels[3, test]).mean()
    assert found.by_timestep["accuracy"][3] == pytest.approx(at_3)


def test_labels_not_seen_in_training_are_errors():
    episodes, seed = 40, 0
    labels = np.random.default_rng(0).integers(0, 2, (6, episodes))
    labels[:, split_episodes(episodes, seed).test[0]] = 2
    found = linear_probe(np.eye(3)[labels], labels, seed)
    assert found.n_classes == 2
    assert found.accuracy == pytest.approx(1 - 1 / len(split_episodes(episodes, seed).test))
    assert found.balanced == pytest.approx(2 / 3)


def test_undefined_where_there_is_next_to_nothing_to_recover():
    rng = np.random.default_rng(0)
    labels = (rng.random((10, 200)) < 0.02).astype(int)
    found = linear_probe(np.eye(2)[labels], labels, 0)
    assert found.gap is None
    assert found.recovery is None
    assert any("undefined" in note for note in found.notes)
    only = linear_probe(rng.standard_normal((10, 200, 3)), np.full((10, 200), 4), 0)
    assert (only.accuracy, only.gap, only.recovery_balanced, only.C) == (1.0, None, None, None)
    assert (only.predict(np.zeros((2, 3))) == 4).all()


def test_constant_features_carry_no_weight(planted):
    _, states, _ = planted.play(planted.task_of("mod_3"), episodes=60)
    constant = np.full((*states.shape, 1), 0.1, np.float32)
    features = np.concatenate([constant, planted.one_hot(states), np.zeros_like(constant)], -1)
    found = linear_probe(features, states, 0)
    assert found.accuracy == 1.0
    assert (found.weights[:, [0, -1]] == 0.0).all()
    assert (found.weights[:, 1:-1] != 0.0).all()


def test_the_standard_error_treats_an_episode_as_one_observation():
    rng = np.random.default_rng(0)
    by_episode = rng.standard_normal(50)
    values = np.broadcast_to(by_episode, (12, 50))
    assert clustered_se(values, np.ones((12, 50), bool)) == pytest.approx(by_episode.std(ddof=1) / np.sqrt(50))
    # Unequal episodes: against a bootstrap of whole episodes.
    where = rng.random((12, 50)) < np.linspace(0.2, 1.0, 50)
    values = by_episode + rng.standard_normal((12, 50))
    means = []
    for _ in range(2000):
        drawn = rng.integers(0, 50, 50)
        means.append(values[:, drawn][where[:, drawn]].mean())
    assert clustered_se(values, where) == pytest.approx(np.std(means), rel=0.1)


def test_quick_probe_and_tensors_and_a_cap_on_rows(planted):
    _, states, _ = planted.play(planted.task_of("mod_5"))
    features = planted.one_hot(states) + np.random.default_rng(0).standard_normal((*states.shape, 5))
    full = linear_probe(features, states, 0, grid=(1.0,))
    quick = quick_probe(torch.from_numpy(features), torch.from_numpy(states), 0)
    assert quick.gap == pytest.approx(full.gap, abs=0.01)
    assert quick.C == 1.0
    capped = linear_probe(features, states, 0, max_rows=600)
    assert capped.rows["train"] == 600
    assert capped.rows["test"] == full.rows["test"]
    assert capped.gap == pytest.approx(full.gap, abs=0.06)


def test_the_same_seed_gives_the_same_numbers_and_nothing_global_is_touched(planted):
    _, states, _ = planted.play(planted.task_of("mod_3"), episodes=80)
    features = planted.one_hot(states) + np.random.default_rng(0).standard_normal((*states.shape, 3))
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    a, b, c = (linear_probe(features, states, seed) for seed in (1, 1, 2))
    assert a.summary() == b.summary()
    assert a.summary() != c.summary()
    np.testing.assert_array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())
    assert json.loads(json.dumps(a.summary(), allow_nan=False)) == a.summary()


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        (np.zeros((12, 9, 3)), np.zeros((13, 9), int), "without q_T"),
        (np.zeros((12, 9)), np.zeros((12, 9), int), "features"),
        (np.full((2, 9, 3), np.nan), np.zeros((2, 9), int), "NaN"),
        (np.zeros((2, 9, 3)), np.zeros((2, 9)), "integers"),
        (np.zeros((2, 3, 3)), np.zeros((2, 3), int), "at least 4"),
    ],
)
def test_bad_input(features, labels, said):
    with pytest.raises(ValueError, match=said):
        linear_probe(features, labels, 0)

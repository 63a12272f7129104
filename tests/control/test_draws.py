"""Random numbers are a function of (seed, stream, iteration), and of nothing else."""

import itertools

import numpy as np
import pytest

from rlstate.control import Stream, draw, generator

FIELDS = ("controllable", "random_symbol", "choice", "leak")


def arrays(**changes):
    settings = {
        "seed": 3, "stream": Stream.TRAIN, "iteration": 7, "horizon": 12, "batch": 64,
        "n_symbols": 3, "p_control": 0.5, "beta": 0.25,
    }  # fmt: skip
    return draw(**(settings | changes))


def same(first, second) -> set[str]:
    return {name for name in FIELDS if np.array_equal(getattr(first, name), getattr(second, name))}


def test_shapes_types_and_ranges():
    draws = arrays()
    assert [getattr(draws, name).shape for name in FIELDS] == [(12, 64)] * 4
    assert [getattr(draws, name).dtype for name in FIELDS] == [np.bool_, np.int64, np.float32, np.bool_]
    assert (draws.horizon, draws.batch) == (12, 64)
    assert set(np.unique(draws.random_symbol)) == {0, 1, 2}
    assert draws.choice.min() >= 0
    assert draws.choice.max() < 1


def test_repeatable_whatever_was_drawn_between():
    first = arrays()
    arrays(iteration=8)
    assert same(first, arrays()) == set(FIELDS)
    assert generator(3, Stream.INIT).random(5).tolist() == generator(3, Stream.INIT, 0).random(5).tolist()


@pytest.mark.parametrize(
    ("changes", "governed"),
    [
        ({"p_control": 0.9}, "controllable"),
        ({"beta": 0.9}, "leak"),
        ({"beta": 0.0}, "leak"),
        ({"n_symbols": 2}, "random_symbol"),
    ],
)
def test_a_setting_changes_only_the_array_it_governs(changes, governed):
    assert same(arrays(), arrays(**changes)) == set(FIELDS) - {governed}


def test_more_control_only_adds_controllable_steps():
    less, more = arrays(p_control=0.3), arrays(p_control=0.6)
    assert (less.controllable <= more.controllable).all()
    assert not arrays(p_control=0.0).controllable.any()
    assert arrays(p_control=1.0).controllable.all()
    assert arrays(beta=1.0).leak.all()
    assert not arrays(beta=0.0).leak.any()


def test_a_longer_horizon_only_appends_steps():
    short, long = arrays(), arrays(horizon=48)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(short, name), getattr(long, name)[:12])


def test_keys_do_not_collide():
    keys = itertools.product((0, 1, 2, 2**32, 2**64 + 1), (*Stream, 77), (0, 1, 2, 10**6))
    words = [generator(*key).integers(2**63) for key in keys]
    children = [
        draw(seed, stream, iteration, 1, 8, 2, 0.5, 0.5).choice.tobytes()
        for seed, stream, iteration in itertools.product((0, 1, 2), Stream, (0, 1, 2))
    ]
    assert len(set(words)) == len(words)
    assert len(set(children)) == len(children)


def test_the_arrays_of_one_draw_are_independent():
    draws = draw(0, Stream.TRAIN, 0, 100, 400, 2, 0.5, 0.5)
    columns = np.stack([getattr(draws, name).ravel() for name in FIELDS]).astype(float)
    correlation = np.corrcoef(columns) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(columns.shape[1])


def test_frequencies():
    draws = draw(0, Stream.TRAIN, 0, 100, 1000, 4, 0.3, 0.1)
    n = draws.leak.size
    for mean, p in [
        (draws.controllable.mean(), 0.3),
        (draws.leak.mean(), 0.1),
        ((draws.random_symbol == 2).mean(), 0.25),
        ((draws.choice < 0.7).mean(), 0.7),
    ]:
        assert abs(mean - p) < 5 * np.sqrt(p * (1 - p) / n)


def test_nothing_global_is_seeded_or_used():
    before = np.random.get_state()  # noqa: NPY002 - the legacy global state is the subject
    first = arrays()
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert before[2:] == after[2:]
    np.testing.assert_array_equal(before[1], after[1])
    np.random.seed(before[1][0] % 1000)  # noqa: NPY002
    assert same(first, arrays()) == set(FIELDS)
    np.random.set_state(before)  # noqa: NPY002


def test_some_of_the_episodes():
    draws = arrays()
    chosen = draws.episodes([5, 2])
    assert chosen.batch == 2
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(chosen, name), getattr(draws, name)[:, [5, 2]])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"horizon": 0}, "horizon=0"),
        ({"batch": 0}, "batch=0"),
        ({"n_symbols": 0}, "n_symbols=0"),
        ({"p_control": -0.1}, "p_control=-0.1"),
        ({"beta": 2}, "beta=2"),
        ({"seed": -1}, "seed=-1"),
        ({"iteration": -1}, "iteration"),
        ({"iteration": 2**32}, "iteration"),
    ],
)
def test_bad_input_is_named(changes, named):
    with pytest.raises(ValueError, match=named):
        arrays(**changes)

"""What an observation shows, and what it cannot."""

import numpy as np
import pytest

from rlstate.automata import zoo
from rlstate.control import BLANK, EmissionChannel, ObservationLayout


def test_layout_partitions_the_observation():
    layout = ObservationLayout(n_symbols=3, n_colours=5, clock_horizon=12)
    places = [
        *range(layout.width)[layout.symbol],
        layout.controllable,
        layout.clock,
        *range(layout.width)[layout.colour],
    ]
    assert places == list(range((3 + 1) + 1 + 1 + 5))


def test_encode_by_hand():
    layout = ObservationLayout(n_symbols=2, n_colours=3, clock_horizon=4)
    assert layout.encode(layout.none_yet, True, 4, 2).tolist() == [0, 0, 1, 1, 1, 0, 0, 1]
    assert layout.encode(0, False, 1, BLANK).tolist() == [1, 0, 0, 0, 0.25, 0, 0, 0]
    batch = layout.encode(np.array([[0], [1]]), np.array([True, False, True]), 2, np.array([0, 1, BLANK]))
    assert batch.shape == (2, 3, 8)
    assert batch.dtype == np.float32
    for i, j in np.ndindex(2, 3):
        assert batch[i, j].tolist() == layout.encode(i, j != 1, 2, [0, 1, BLANK][j]).tolist()


def test_without_a_channel_there_is_no_room_for_colours():
    layout = ObservationLayout(n_symbols=2, n_colours=0, clock_horizon=4)
    assert layout.width == 5
    assert layout.encode(1, True, 2, 1).tolist() == [0, 1, 0, 1, 0.5]


def test_clock_at_four_times_the_horizon():
    training, longer = ObservationLayout(2, 0, 12), ObservationLayout(2, 0, 12)
    shown = longer.clock_value(np.arange(48, -1, -1))
    assert (shown[:37] == 1).all()
    np.testing.assert_array_equal(shown[36:], training.clock_value(np.arange(12, -1, -1)))
    assert shown[-1] == 0
    np.testing.assert_array_equal(shown[36:], np.arange(12, -1, -1, dtype=np.float32) / np.float32(12))


def test_colourings():
    dfa = zoo.make("mod_5")
    states = np.arange(5)
    assert EmissionChannel.identity(dfa, 0.3).colour(states, True).tolist() == [0, 1, 2, 3, 4]
    acceptance = EmissionChannel.of(dfa, 0.3, "acceptance")
    assert acceptance.colour(states, states != 0).tolist() == [BLANK, 0, 0, 0, 0]
    assert acceptance.colour(0, True) == 1
    assert acceptance.n_colours == 2
    assert EmissionChannel.of(dfa, 0.3, [0, 0, 1, 1, 2]).n_colours == 3
    assert EmissionChannel.of(dfa, 0.0, [0, 0, 1, 1, 2]).n_colours == 0
    assert EmissionChannel.of(dfa, 1.0).n_colours == 5


def test_a_channel_cannot_be_changed():
    channel = EmissionChannel.identity(zoo.make("mod_3"), 0.5)
    with pytest.raises(ValueError, match="read-only"):
        channel.colouring[0] = 1


@pytest.mark.parametrize(
    ("colouring", "beta", "sentence"),
    [
        ("identity", 1.1, r"beta=1.1 is not a probability"),
        ("identity", float("nan"), r"beta=nan is not a probability"),
        ("identity", "half", r"beta='half' is not a probability"),
        ("rainbow", 0.5, r'no colouring \'rainbow\'.*"identity", "acceptance"'),
        ([0, 1], 0.5, r"2 colours but the automaton has 3 states"),
        ([0, -1, 1], 0.5, r"from -1 to 1.*renumber"),
        ([0, 7, 1], 0.5, r"from 0 to 7.*0 to 2"),
        ([0.0, 1.0, 0.5], 0.5, r"one whole number for each state"),
    ],
)
def test_bad_channels_are_named(colouring, beta, sentence):
    with pytest.raises(ValueError, match=sentence):
        EmissionChannel.of(zoo.make("mod_3"), beta, colouring)


@pytest.mark.parametrize(
    ("arguments", "named"), [((0, 0, 4), "n_symbols=0"), ((2, -1, 4), "n_colours=-1"), ((2, 0, 0), "clock_horizon=0")]
)
def test_bad_layouts_are_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        ObservationLayout(*arguments)

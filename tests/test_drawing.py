"""Drawings: nothing left out, nothing in the way of anything else, the same file each time, and never a failure."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import Circle, FancyArrowPatch

from rlstate.automata import DFA, zoo
from rlstate.automata.sampling import random_dfa
from rlstate.drawing import ORANGE, PALE_GREY, PALE_ORANGE, arrows_of, draw, save_drawing, symbols_label
from rlstate.layout import RADIUS, best_picture, bezier, clipped, natural_cycle

DRAWN = [name for name in zoo.names() if name != "mined_ean"]


def picture_of(dfa):
    arrows = arrows_of(dfa)
    sizes = [(0.12 * len(arrow.label), 0.25) for arrow in arrows]
    return arrows, sizes, best_picture(dfa, [(arrow.source, arrow.target) for arrow in arrows], sizes)


def patches(figure, kind):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, kind)]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


# --- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alphabet", "symbols", "label"),
    [
        ("01", [0, 1], "0, 1"),
        ("0123456789", [0, 1, 2, 3, 4, 7], "0–4, 7"),
        ("0123456789", [8, 9], "8, 9"),
        ("0123456789", list(range(10)), "Σ"),
        ("012", [0, 1, 2], "0–2"),
        ("abcxyz", [0, 1, 2, 4], "a–c, y"),
        (["9", "10", "11", "12"], [0, 1, 2], "9–11"),
        (["step", "commit"], [0, 1], "step, commit"),
        ([f"s{i}" for i in range(12)], list(range(11)), "Σ without s11"),
        ([f"s{i}" for i in range(12)], [0, 1, 2, 3, 4, 5], "s0, s1, s2, … (6)"),
        (["x" * 50, "a\nb", "\ud800"], [0], "x" * 21 + "…"),
        (["x" * 50, "a\nb", "\ud800"], [1, 2], "a\\nb, \\ud800"),
        (["a long activity name", "another long activity"], [0, 1], "a long activity name,\nanother long activity"),
    ],
)
def test_symbols_share_a_label(alphabet, symbols, label):
    assert symbols_label(symbols, list(alphabet)) == label


@pytest.mark.parametrize("name", DRAWN)
def test_every_transition_is_on_one_arrow(name):
    dfa = zoo.make(name)
    table = np.full(dfa.transitions.shape, -1)
    for arrow in arrows_of(dfa):
        for symbol in arrow.label.replace("0–2", "0, 1, 2").split(", "):
            assert table[arrow.source, dfa.alphabet.index(symbol)] == -1
            table[arrow.source, dfa.alphabet.index(symbol)] = arrow.target
    np.testing.assert_array_equal(table, dfa.transitions)


# --- layout -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DRAWN, "mod_4", "contains_01011"])
def test_arrows_and_labels_keep_clear_of_states_and_labels(name):
    arrows, sizes, picture = picture_of(zoo.make(name))
    places = picture.places
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) + 9 * np.eye(len(places))
    assert apart.min() > 1.2
    for arrow, path in zip(arrows, picture.paths):
        others = np.delete(places, [arrow.source, arrow.target], axis=0)
        if len(others):
            assert np.hypot(*(bezier(path)[:, None] - others[None]).transpose(2, 0, 1)).min() > RADIUS + 0.05
    for i, (label, size) in enumerate(zip(picture.labels, sizes)):
        assert (np.hypot(*np.maximum(np.abs(places - label) - np.array(size) / 2, 0).T) > RADIUS - 0.06).all()
        for other, other_size in list(zip(picture.labels, sizes))[:i]:
            assert (np.abs(label - other) > (np.array(size) + other_size) / 2 - 0.02).any()


def test_arrows_run_from_state_to_state():
    arrows, _, picture = picture_of(zoo.make("mod_7"))
    for arrow, path in zip(arrows, picture.paths):
        source, target = picture.places[arrow.source], picture.places[arrow.target]
        if arrow.source != arrow.target:
            visible = clipped(path)
            assert np.hypot(*(visible[0] - source)) == pytest.approx(RADIUS, abs=0.02)
            assert np.hypot(*(visible[-1] - target)) == pytest.approx(RADIUS, abs=0.02)
            np.testing.assert_allclose(bezier(path)[[0, -1]], [source, target])
        else:
            assert np.hypot(*(path[[0, -1]] - source).T) == pytest.approx(RADIUS)
    tail, tip = picture.entry
    assert np.hypot(*(tip - picture.places[0])) == pytest.approx(RADIUS)
    assert np.hypot(*(tail - picture.places[0])) > RADIUS + 0.3


def test_the_arrows_of_a_pair_bend_apart():
    arrows, _, picture = picture_of(zoo.make("workflow_quota"))
    middles = {(a.source, a.target): bezier(path)[12] for a, path in zip(arrows, picture.paths)}
    assert np.hypot(*(middles[1, 2] - middles[2, 1])) > 0.3


def test_counters_lie_on_a_circle_in_their_order():
    for name, k in (("mod_7", 7), ("mod_11", 11), ("workflow_reconcile", 5), ("mod_5_hold", 5)):
        assert natural_cycle(zoo.make(name)).tolist() in (list(range(k)), [0, *range(k - 1, 0, -1)])
        places = picture_of(zoo.make(name))[2].places
        radii = np.hypot(*(places - places.mean(0)).T)
        np.testing.assert_allclose(radii, radii[0])
        steps = np.hypot(*(places - np.roll(places, 1, 0)).T)
        np.testing.assert_allclose(steps, steps[0])
    for name in ("mod_4", "ends_with_101", "no_three_zeros"):
        assert natural_cycle(zoo.make(name)) is None


def test_others_run_from_left_to_right():
    for name in ("ends_with_1000", "contains_0010", "no_three_zeros", "workflow_quota"):
        x = picture_of(zoo.make(name))[2].places[:, 0]
        assert (np.diff(x) > 1).all()


# --- the figure ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mod_5", "workflow_latch", "no_three_zeros"])
def test_states_are_circles_accepting_ones_double(name):
    dfa = zoo.make(name)
    figure = draw(dfa, title="a title with $ and ^")
    assert len(patches(figure, Circle)) == dfa.n_states + dfa.accepting.sum()
    assert len(patches(figure, FancyArrowPatch)) == len(arrows_of(dfa)) + 1
    labels = [arrow.label for arrow in arrows_of(dfa)]
    assert sorted(texts(figure)) == sorted([*labels, *map(str, range(dfa.n_states))])
    assert figure.axes[0].get_title("left") == "a title with $ and ^"


def test_everything_lies_within_the_axes():
    figure = draw(zoo.make("mod_11"))
    figure.canvas.draw()
    axes = figure.axes[0]
    for artist in [*axes.patches, *axes.texts]:
        box = artist.get_window_extent()
        assert axes.get_window_extent().padded(2).containsx(box.x0)
        assert axes.get_window_extent().padded(2).containsx(box.x1)
        assert axes.get_window_extent().padded(2).containsy(box.y0)
        assert axes.get_window_extent().padded(2).containsy(box.y1)


def test_highlighted_unreachable_and_completed():
    from matplotlib.colors import to_hex

    dfa = DFA([[0, 1], [1, 0], [2, 0]], [True, False, True])
    figure = draw(dfa, highlight=[1])
    filled = [to_hex(circle.get_facecolor()).upper() for circle in patches(figure, Circle)]
    assert filled.count(PALE_ORANGE) == 1
    pale = [to_hex(circle.get_edgecolor()).upper() for circle in patches(figure, Circle)]
    assert pale.count(PALE_GREY) == 2  # the unreachable state's double circle
    with pytest.raises(ValueError, match="highlight holds 3, but the states are 0 … 2"):
        draw(dfa, highlight=[0, 3])

    class Learned(DFA):
        __slots__ = ("defined",)

    learned = Learned([[0, 0], [1, 0]], [True, False])
    object.__setattr__(learned, "defined", np.array([[True, False], [True, True]]))
    styles = [patch.get_linestyle() for patch in patches(draw(learned), FancyArrowPatch)]
    assert len(styles) == 5  # the entry, three learned, one completed
    assert styles.count(":") == 1


def test_large_automata_become_tables():
    figure = draw(zoo.make("mined_ean"), title="EAN", highlight=[3])
    title = figure.axes[0].get_title("left")
    assert title == "EAN: transition table, 20 states × 10 symbols, coloured by target"
    dfa = zoo.make("mined_ean")
    order = dfa.reachable_states()
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(order[np.asarray(shown)], dfa.transitions[order].T)
    strip = np.asarray(figure.axes[0].images[1].get_array())[0]
    green = (strip == strip[0]).all(1)  # the start accepts
    np.testing.assert_array_equal(green, dfa.accepting[order])
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [order.tolist().index(3)]
    assert figure.axes[0].lines[0].get_color() == ORANGE

    many = draw(random_dfa(1000, 2, 0))
    assert "only the first 300 states and 2 symbols" in many.axes[0].get_title("left")
    wide = draw(DFA(np.zeros((30, 200), int), np.arange(30) == 0))
    assert "only the first 30 states and 60 symbols" in wide.axes[0].get_title("left")


def test_a_table_where_labels_would_cover_one_another():
    rng = np.random.default_rng(0)
    for _ in range(3):
        figure = draw(DFA(rng.integers(0, 3, (3, 200)), [True, False, False]), "many")
        assert figure.axes[0].get_title("left").startswith("many: transition table, 3 states × 200 symbols")
    for name in [*DRAWN, "mod_4", "contains_01011"]:
        assert not draw(zoo.make(name)).axes[0].images


@settings(max_examples=15, deadline=None)
@given(data=st.data(), n=st.integers(1, 12), k=st.integers(1, 4))
def test_no_automaton_is_too_odd_to_draw(data, n, k):
    table = data.draw(st.lists(st.lists(st.integers(0, n - 1), min_size=k, max_size=k), min_size=n, max_size=n))
    accepting = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    names = data.draw(st.lists(st.text(min_size=1, max_size=30), min_size=k, max_size=k, unique=True))
    start = data.draw(st.integers(0, n - 1))
    dfa = DFA(table, accepting, start, names)
    figure = draw(dfa, title=names[0])
    assert len(patches(figure, Circle)) == n + sum(accepting) or figure.axes[0].images
    assert np.isfinite(figure.get_size_inches()).all()


# --- files --------------------------------------------------------------------------------------------------------


def test_the_same_automaton_gives_the_same_file(tmp_path):
    dfa = random_dfa(6, 2, 4)
    for suffix, head in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        paths = [tmp_path / f"{i}{suffix}" for i in range(2)]
        for path in paths:
            save_drawing(dfa, path, title="again")
        first, second = (path.read_bytes() for path in paths)
        assert first == second
        assert first.startswith(head)
    assert b"dc:date" not in (tmp_path / "0.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.png", "0.svg", "1.png", "1.svg"]


def test_neither_the_hash_seed_nor_pyplot_nor_torch_matters(tmp_path):
    code = (
        "import sys; from rlstate.automata import zoo; from rlstate.drawing import save_drawing; "
        "save_drawing(zoo.make('workflow_api'), sys.argv[1]); "
        "assert not {'matplotlib.pyplot', 'torch'} & set(sys.modules)"
    )
    written = []
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.svg"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)}
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_names_that_no_file_can_hold_or_no_font_has(tmp_path):
    """Well-formed SVG, and nothing on standard error."""
    dfa = DFA([[0, 1, 1], [1, 0, 0]], [True, False], alphabet=["\x01", "\udcff", "あ"])
    code = (
        "import sys; from rlstate.automata import DFA; from rlstate.drawing import save_drawing; "
        "dfa = DFA([[0, 1, 1], [1, 0, 0]], [True, False], alphabet=['\\x01', '\\udcff', 'あ']); "
        "save_drawing(dfa, sys.argv[1], '日本\\x08\\ud800'); save_drawing(dfa, sys.argv[2], '日本')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    paths = [str(tmp_path / name) for name in ("a.svg", "a.png")]
    done = subprocess.run([sys.executable, "-c", code, *paths], check=True, env=environment, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    ElementTree.parse(paths[0])
    assert texts(draw(dfa))[0] == "\\x01"


def test_other_suffixes_are_refused_and_nothing_is_written(tmp_path):
    for name, said in (("a.pdf", "ends in .pdf"), ("plain", "ends in no suffix")):
        with pytest.raises(ValueError, match=said):
            save_drawing(zoo.make("parity"), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    save_drawing(zoo.make("parity"), tmp_path / "new" / "A.SVG")
    assert (tmp_path / "new" / "A.SVG").read_bytes().startswith(b"<?xml")

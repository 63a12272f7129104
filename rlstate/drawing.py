"""Pictures of automata: states and arrows where they can be read, the transition table as colours where they cannot."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlstate.automata import DFA
from rlstate.layout import RADIUS, Picture, best_picture, bezier, clipped
from rlstate.output import write_atomically

MAX_STATES = 24
"""With more states than this a table is drawn instead of arrows."""
MAX_ARROWS = 36
"""With more arrows than this, self-loops aside, a table is drawn."""
MAX_ROWS, MAX_COLUMNS = 60, 300
"""At most so many symbols and states are shown in a table."""

# Okabe–Ito, which colour-blind readers can tell apart; every picture takes its colours from here.
BLUE, ORANGE, GREEN, GREY, DARK = "#0072B2", "#D55E00", "#009E73", "#666666", "#222222"
PALE_GREEN, PALE_ORANGE, PALE_GREY = "#DDF1EA", "#F9DCC8", "#BBBBBB"
INCH = 0.66  # a unit of the layout on paper
LETTER, LINE = 0.115, 0.23  # width and height of a label's text, in units of the layout


class Arrow(NamedTuple):
    """All transitions from one state to another, drawn as one arrow; not `learned`: where they were only completed."""

    source: int
    target: int
    label: str
    learned: bool


def draw(dfa: DFA, title: str = "", highlight: Iterable[int] | None = None) -> Any:
    """The automaton as a matplotlib `Figure`, made without pyplot.

    States are circles with their numbers, accepting ones double, an arrow points into the start; `highlight` fills the
    given states. Symbols that lead from one state to the same other share an arrow. Unreachable states are pale;
    transitions of a learned automaton that were only completed (`.defined` is False) are dotted. With more than
    `MAX_STATES` states or `MAX_ARROWS` arrows, or where labels would cover one another, the transition table is drawn
    instead, and the title says so.

    Raises ValueError where `highlight` holds something that is not a state.
    """
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.add_subplot()
    width, height = draw_on(axes, dfa, title, highlight)
    longest = max(map(len, axes.get_title("left").split("\n")))
    figure.set_size_inches(max(width, min(0.095 * longest, 9.0)), height + (0.4 if longest else 0.0))
    return figure


def draw_on(axes: Any, dfa: DFA, title: str = "", highlight: Iterable[int] | None = None) -> tuple[float, float]:
    """Draw the automaton, as `draw` does, on matplotlib `Axes`; returns the width and height in inches that suit it."""
    marked = frozenset(int(state) for state in highlight or ())
    for state in sorted(marked):
        if not 0 <= state < dfa.n_states:
            raise ValueError(f"highlight holds {state}, but the states are 0 … {dfa.n_states - 1}.")
    axes.set_axis_off()
    arrows = arrows_of(dfa) if dfa.n_states <= MAX_STATES else []
    if dfa.n_states > MAX_STATES or sum(arrow.source != arrow.target for arrow in arrows) > MAX_ARROWS:
        return _draw_table(axes, dfa, title, marked)
    sizes = [_size(arrow.label) for arrow in arrows]
    picture = best_picture(dfa, [(arrow.source, arrow.target) for arrow in arrows], sizes)
    if _overlap(picture.labels, sizes):
        return _draw_table(axes, dfa, title, marked)
    if title:
        axes.set_title(printable(title, 300), loc="left", fontsize=11, parse_math=False)
    return _draw_picture(axes, dfa, arrows, picture, marked)


def save_drawing(dfa: DFA, path: str | os.PathLike[str], title: str = "") -> None:
    """Write the drawing to `path`; the same automaton gives the same bytes.

    Raises ValueError for a path that ends neither in .svg nor in .png.
    """
    check_suffix(path)
    write_figure(draw(dfa, title), path)


def check_suffix(path: str | os.PathLike[str]) -> str:
    """ "svg" or "png"; raises ValueError for a path that ends in neither."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".svg", ".png"):
        raise ValueError(
            f"{os.fspath(path)} ends in {suffix or 'no suffix'}, but drawings are written as .svg or .png."
        )
    return suffix[1:]


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as .svg or .png, the same each time, whole or not at all; errors as `save_drawing`."""
    import matplotlib

    path, kind = Path(path), check_suffix(path)
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "rlstate"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for it, which is seen
        figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    write_atomically(path, buffer.getvalue())


# --- labels -------------------------------------------------------------------------------------------------------


def arrows_of(dfa: DFA) -> list[Arrow]:
    """The arrows of the drawing, by source state and then by first symbol."""
    defined = getattr(dfa, "defined", None)
    learned = np.ones(dfa.transitions.shape, bool) if defined is None else np.asarray(defined, bool)
    groups: dict[tuple[int, int, bool], list[int]] = {}
    for state, row in enumerate(dfa.transitions.tolist()):
        for symbol, target in enumerate(row):
            groups.setdefault((state, target, bool(learned[state, symbol])), []).append(symbol)
    return [Arrow(p, q, symbols_label(symbols, dfa.alphabet), known) for (p, q, known), symbols in groups.items()]


def symbols_label(symbols: Sequence[int], alphabet: Sequence[str]) -> str:
    """One label for several symbols: "0, 1"; "0–4, 7" for runs of numbers or letters; "Σ" for all of four or more."""
    if len(symbols) == len(alphabet) > 3:
        return "Σ"
    pieces = _runs([alphabet[symbol] for symbol in symbols])
    if len(pieces) > 4:
        chosen = set(symbols)
        others = _runs([name for i, name in enumerate(alphabet) if i not in chosen])
        pieces = [f"Σ without {others[0]}", *others[1:]] if len(others) < 4 else [*pieces[:3], f"… ({len(symbols)})"]
    lines = [printable(pieces[0])]
    for piece in map(printable, pieces[1:]):
        if len(lines[-1]) + len(piece) > 22:
            lines[-1] += ","
            lines.append(piece)
        else:
            lines[-1] += f", {piece}"
    return "\n".join(lines)


def _runs(names: Sequence[str]) -> list[str]:
    """Names, three or more successive numbers or letters joined: 0, 1, 2, 7 → 0–2, 7."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [piece for run in runs for piece in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else run)]


def _follows(name: str, following: str) -> bool:
    if name.isdecimal() and following.isdecimal():
        return int(following) == int(name) + 1
    return len(name) == len(following) == 1 and name.isalpha() and ord(following) == ord(name) + 1


def printable(text: str, limit: int = 22) -> str:
    """Text that any file can hold: control characters and lone surrogates escaped, the long shortened."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _size(label: str) -> tuple[float, float]:
    lines = label.split("\n")
    return LETTER * max(map(len, lines)) + 0.06, LINE * len(lines) + 0.04


def _overlap(centres: Sequence[np.ndarray], sizes: Sequence[tuple[float, float]]) -> bool:
    """Whether two labels share an area."""
    boxes = combinations(zip(centres, sizes), 2)
    return any(bool((np.abs(a - b) < (np.array(own) + other) / 2).all()) for (a, own), (b, other) in boxes)


# --- states and arrows --------------------------------------------------------------------------------------------


def _draw_picture(
    axes: Any, dfa: DFA, arrows: Sequence[Arrow], picture: Picture, marked: frozenset[int]
) -> tuple[float, float]:
    from matplotlib.patches import Circle, FancyArrowPatch
    from matplotlib.path import Path as Curve

    reachable = set(dfa.reachable_states().tolist())
    head: dict[str, Any] = {
        "arrowstyle": "-|>,head_length=4,head_width=2",
        "shrinkA": 0,
        "shrinkB": 0,
        "mutation_scale": 1,
    }
    axes.add_patch(FancyArrowPatch(picture.entry[0], picture.entry[1], color=DARK, linewidth=1.3, zorder=2, **head))
    extent = [picture.entry, picture.places - RADIUS - 0.05, picture.places + RADIUS + 0.05]
    for arrow, control, spot in zip(arrows, picture.paths, picture.labels):
        loop = arrow.source == arrow.target
        codes = [Curve.MOVETO, *[Curve.CURVE4 if loop else Curve.CURVE3] * (len(control) - 1)]
        curve = Curve(control if loop else clipped(control), codes)
        colour = DARK if arrow.source in reachable else PALE_GREY
        style: dict[str, Any] = {"linestyle": "-" if arrow.learned else ":", "linewidth": 1.0, "color": colour}
        axes.add_patch(FancyArrowPatch(path=curve, zorder=2, **style, **head))
        axes.text(*spot, arrow.label, fontsize=9, color=BLUE if arrow.source in reachable else PALE_GREY, ha="center",
                  va="center", zorder=4, linespacing=1.05, parse_math=False,
                  bbox={"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"})  # fmt: skip
        half = np.array(_size(arrow.label)) / 2
        extent += [bezier(control), np.stack([spot - half, spot + half])]
    for state, place in enumerate(picture.places):
        pale, accepting = state not in reachable, bool(dfa.accepting[state])
        fill = PALE_ORANGE if state in marked else PALE_GREEN if accepting and not pale else "white"
        edge = PALE_GREY if pale else DARK
        axes.add_patch(Circle(place, RADIUS, facecolor=fill, edgecolor=edge, linewidth=1.2, zorder=3))
        if accepting:
            axes.add_patch(Circle(place, RADIUS - 0.06, facecolor="none", edgecolor=edge, linewidth=1.0, zorder=3))
        axes.text(*place, str(state), fontsize=10, color=edge, ha="center", va="center_baseline", zorder=5)
    low, high = np.concatenate(extent).min(0) - 0.1, np.concatenate(extent).max(0) + 0.1
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")
    width, height = INCH * (high - low)
    return float(width), float(height)


# --- table --------------------------------------------------------------------------------------------------------


def _draw_table(axes: Any, dfa: DFA, title: str, marked: frozenset[int]) -> tuple[float, float]:
    """The transition table: a column a state, breadth-first, a row a symbol, the colour the target's place in order."""
    from matplotlib.colors import to_rgb

    order = np.concatenate([reachable := dfa.reachable_states(), np.setdiff1d(np.arange(dfa.n_states), reachable)])
    place = np.empty(dfa.n_states, np.int64)
    place[order] = np.arange(dfa.n_states)
    n, k = min(dfa.n_states, MAX_COLUMNS), min(dfa.n_symbols, MAX_ROWS)
    states = order[:n]
    cells = np.minimum(place[dfa.transitions[states, :k].T], n - 1)  # [k, n]
    width = float(np.clip(0.3 * n, 4.5, 11.0))
    height = float(np.clip(0.3 * (k + 3), 1.6, 9.0))

    image = axes.imshow(cells, cmap="viridis", aspect="auto", vmin=0, vmax=max(n - 1, 1), interpolation="nearest",
                        extent=(-0.5, n - 0.5, k - 0.5, -0.5))  # fmt: skip
    strip = np.array([to_rgb(GREEN if accepting else "#EEEEEE") for accepting in dfa.accepting[states]])[None]
    axes.imshow(strip, aspect="auto", interpolation="nearest", extent=(-0.5, n - 0.5, k + 1.2, k + 0.2))
    for state in sorted(marked):
        if place[state] < n:
            axes.plot([place[state]], [-0.8], marker="v", color=ORANGE, markersize=5, clip_on=False)
    if n <= 40 and n * k <= 800:
        colours = image.cmap(image.norm(cells))[..., :3] @ [0.299, 0.587, 0.114]
        for (symbol, column), light in np.ndenumerate(colours):
            axes.text(column, symbol, str(dfa.transitions[states[column], symbol]), fontsize=7, ha="center",
                      va="center", color=DARK if light > 0.5 else "white")  # fmt: skip
    axes.set_axis_on()
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_ylim(k + 1.2, -1.2 if marked else -0.5)
    columns = np.arange(n) if n <= 40 else np.linspace(0, n - 1, 11).round().astype(int)
    axes.set_xticks(columns, [f"→{states[c]}" if states[c] == dfa.start else str(states[c]) for c in columns])
    rows = np.arange(k)
    axes.set_yticks([*rows, k + 0.7], [*(printable(dfa.alphabet[row], 16) for row in rows), "accepting"])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(labelsize=7, length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("state (breadth-first; → start)", fontsize=8)
    shown = f"transition table, {dfa.n_states} states × {dfa.n_symbols} symbols, coloured by target"
    if n < dfa.n_states or k < dfa.n_symbols:
        shown += f"\nonly the first {n} states and {k} symbols; targets beyond share the last colour"
    axes.set_title(f"{printable(title, 300)}: {shown}" if title else shown, loc="left", fontsize=10, parse_math=False)
    return width + 0.8, height + (0.9 if "\n" in shown else 0.7)

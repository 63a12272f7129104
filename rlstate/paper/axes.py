"""What the pictures of the report share: colours, marks for seeds, means and the paper's values, labels, files.

A dot is a seed, a bar the mean over seeds, a hollow diamond the paper's value; made without pyplot, the same each time.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rlstate.drawing import BLUE, GREEN, GREY, ORANGE

SKY, AMBER, PINK, INK, PALE = "#56B4E9", "#E69F00", "#CC79A7", "#222222", "#DDDDDD"
SERIES = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER, GREY)
"""Colours of the curves of one picture, in order."""
VERDICTS = {
    "perception_gap": (ORANGE, "o", "perception gap"),
    "planning_gap": (BLUE, "s", "planning gap"),
    "solved": (GREEN, "^", "solved"),
    "undefined": (GREY, "X", "undefined"),
}
"""Colour, marker and name of each verdict: told apart without colour too."""

_STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and files are small
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    """An empty matplotlib `Figure` of that size in inches, in the report's style."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def seeds(axes: Any, x: float, values: Sequence[float | None], colour: str, width: float = 0.3) -> None:
    """Every seed as a dot, spread a little so that equal ones are seen, and their mean as a bar."""
    known = np.sort([value for value in values if value is not None])
    if not len(known):
        return
    offsets = np.linspace(-1, 1, len(known)) * width * 0.55 if len(known) > 1 else np.zeros(1)
    # Low and high values alternate sides: a ramp would look like a trend.
    offsets = offsets[np.argsort(np.argsort(np.arange(len(known)) * 0.618 % 1))]
    axes.plot(x + offsets, known, "o", color=colour, markersize=4, alpha=0.55, markeredgewidth=0, zorder=3)
    axes.plot([x - width, x + width], [known.mean()] * 2, color=colour, linewidth=2.2, solid_capstyle="butt", zorder=4)


def dodged(values: Sequence[float]) -> list[float]:
    """The values, where several are (nearly) equal moved a little to both sides."""
    order, places = np.argsort(values, kind="stable"), list(values)
    close = (np.ptp(values) if len(values) else 0.0) / 40
    groups: list[list[int]] = []
    for index in order:
        if groups and values[index] - values[groups[-1][0]] < close / 4:
            groups[-1].append(int(index))
        else:
            groups.append([int(index)])
    for group in groups:
        for position, index in enumerate(group):
            if len(group) > 1:
                places[index] += close * min(3, 1 + len(group) / 12) * (2 * (position * 0.618 % 1) - 1)
    return places


def paper(axes: Any, x: float | Sequence[float], y: float | Sequence[float], colour: str = INK) -> None:
    """The paper's value, a hollow diamond."""
    axes.plot(x, y, "D", color=colour, markersize=6, markerfacecolor="white", markeredgewidth=1.3, linestyle="none",
              zorder=5)  # fmt: skip


def key(
    figure: Any,
    lines: Sequence[tuple[str, str]] = (),
    markers: Sequence[tuple[str, str, str]] = (),
    seeds_are: str = "a seed",
    bars: bool = True,
    dotted: str = "",
    with_paper: bool = True,
) -> None:
    """The legend below a picture: `lines` of (name, colour), `markers` of (colour, marker, name), then what the marks are."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=2.2, label=name) for name, colour in lines]
    handles += [Line2D([], [], color=colour, marker=marker, markersize=6.5, linestyle="none", label=name)
                for colour, marker, name in markers]  # fmt: skip
    if seeds_are:
        handles.append(Line2D([], [], color=GREY, marker="o", markersize=4, linestyle="none", label=seeds_are))
    if bars:
        handles.append(Line2D([], [], color=GREY, linewidth=2.2, label="mean"))
    if dotted:
        handles.append(Line2D([], [], color=GREY, linewidth=1.6, linestyle=(0, (1, 1)), label=dotted))
    if with_paper:
        handles.append(Line2D([], [], color=INK, marker="D", markersize=6, markerfacecolor="white", markeredgewidth=1.3,
                              linestyle="none", label="the paper"))  # fmt: skip
    letters = sum(len(str(handle.get_label())) + 6 for handle in handles)
    rows = -(-letters // int(figure.get_figwidth() * 13))
    figure.legend(handles=handles, loc="outside lower center", ncols=-(-len(handles) // rows), columnspacing=1.6,
                  handlelength=1.5)  # fmt: skip


def place_labels(figure: Any, axes: Any, points: Sequence[tuple[float, float]], texts: Sequence[str]) -> None:
    """Names beside points so that they cover neither points nor each other, with a thin line where one had to move away.

    Call it last: it ends the automatic layout.
    """
    figure.draw_without_rendering()  # positions are known only after the layout
    figure.set_layout_engine("none")
    renderer, scale = figure.canvas.get_renderer(), figure.dpi / 72
    places = axes.transData.transform(np.asarray(points, float).reshape(-1, 2))
    frame = axes.get_window_extent(renderer).extents
    taken = [np.array([x - 4, y - 4, x + 4, y + 4]) for x, y in places]
    crowd = [np.sum(np.hypot(*(places - place).T) < 40 * scale) for place in places]
    for index in sorted(range(len(texts)), key=lambda i: -crowd[i]):  # the crowded ones choose first
        place = places[index]
        label = axes.annotate(texts[index], points[index], xytext=(0, 0), textcoords="offset points", fontsize=8, zorder=6,
                              color=INK)  # fmt: skip
        size = label.get_window_extent(renderer).size
        distance, box = min(_boxes(place, size, scale), key=lambda each: each[0] + _covered(each[1], taken, frame))
        label.set_position(tuple((box[:2] - place) / scale))
        taken.append(box)
        if distance > 8 * scale:
            line = axes.transData.inverted().transform([place, np.clip(place, box[:2], box[2:])])
            axes.plot(*line.T, color="#AAAAAA", linewidth=0.6, zorder=1)


def name_lines(
    figure: Any, axes: Any, x: float, ends: Sequence[float], names: Sequence[str], colours: Sequence[str]
) -> None:
    """Names to the right of lines that end at (x, end), moved apart where they would cover each other. Call it last."""
    figure.draw_without_rendering()
    to_pixels, scale = axes.transData, figure.dpi / 72
    apart, frame = 11.5 * scale, axes.get_window_extent()
    wanted = np.array([to_pixels.transform((x, end))[1] for end in ends])
    order = np.argsort(wanted)
    placed = np.clip(wanted[order], frame.y0, frame.y1)
    for _ in range(200):  # neighbours push each other away until all fit
        close = np.minimum(0, np.diff(placed) - apart) / 2
        placed[:-1] += close
        placed[1:] -= close
    for index, height in zip(order, placed):
        at = to_pixels.inverted().transform((0, height))[1]
        axes.annotate(names[index], (x, ends[index]), (x * 1.04, at), fontsize=8.5, color=colours[index], va="center",
                      annotation_clip=False, arrowprops={"arrowstyle": "-", "color": "#BBBBBB", "linewidth": 0.6,
                                                         "shrinkA": 1, "shrinkB": 3})  # fmt: skip


def _boxes(place: Any, size: Any, scale: float) -> Iterator[tuple[float, Any]]:
    """Where a label of that size could stand: its distance from the point and its box, in pixels."""
    for distance in (5 * scale, 10 * scale, 18 * scale, 28 * scale, 40 * scale, 55 * scale):
        for angle in np.deg2rad([0, 180, 90, 270, 30, 330, 150, 210, 60, 300, 120, 240]):
            direction = np.array([np.cos(angle), np.sin(angle)])
            low = place + distance * direction - size * (1 - direction) / 2
            yield distance, np.concatenate([low, low + size])


def _covered(box: Any, taken: Sequence[Any], frame: Any) -> float:
    """How bad a place is: what it would cover, and what of it lies outside."""
    area = sum(float(np.prod(np.maximum(0, np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2]))))
               for other in taken)  # fmt: skip
    outside = float(np.maximum(0, frame[:2] - box[:2]).sum() + np.maximum(0, box[2:] - frame[2:]).sum())
    return 2 * area + 50 * outside


def svg(figure: Any, name: str) -> str:
    """The picture as one `<svg>` element. Its ids begin with `name`, so that several can stand in one page."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(?:d|x|y|transform)="[^"]*"', lambda found: re.sub(r"\d+\.\d{3,}", _shorter, found[0]), text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    return re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{name}-", text)


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()

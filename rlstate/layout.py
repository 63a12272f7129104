"""Where the states and arrows of a small automaton's picture go: plain geometry, no plotting library.

States are placed by layers, left to right by distance from the start state, or on a circle, in the order of a cycle of
the automaton where a permutation has one. Every arrow is then bent, in turn, to where it meets the fewest states and
arrows, and the placing whose arrows meet least is taken. Nothing is drawn at random: same automaton, same picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import NDArray

from rlstate.automata import DFA

RADIUS = 0.30
"""Of a state, in the picture's unit of length; neighbours are about 1.6 to 1.9 apart."""

Points = NDArray[np.float64]  # float[n, 2]

_SAMPLES = 25  # points that stand for a curve
_BENDS = np.array([0.0, 0.08, -0.08, 0.14, -0.14, 0.2, -0.2, 0.28, -0.28, 0.38, -0.38, 0.5, -0.5, 0.7, -0.7])
_PREFER_FIRST = 4.0  # how much more cost the preferred placing may have


@dataclass(frozen=True)
class Picture:
    """places: float[Q, 2]. paths: for each arrow the control points of a Bézier curve, float[3, 2] from state to state,
    float[4, 2] for a self-loop. labels: float[2] for each arrow, its label's centre. entry: float[2, 2], the arrow
    into the start state. cost: how much the arrows meet states, labels and each other."""

    places: Points
    paths: list[Points]
    labels: list[Points]
    entry: Points
    cost: float


def best_picture(dfa: DFA, ends: Sequence[tuple[int, int]], label_sizes: Sequence[tuple[float, float]]) -> Picture:
    """The picture of an automaton whose arrows run between `ends` and bear labels of these (width, height)."""
    widest = max((size[0] for size in label_sizes), default=0.0)
    first, *others = (route(places, dfa.start, ends, label_sizes) for places in placings(dfa, ends, widest))
    return min([first, *others], key=lambda picture: picture.cost + (_PREFER_FIRST if picture is not first else 0.0))


# --- states -------------------------------------------------------------------------------------------------------


def placings(dfa: DFA, ends: Sequence[tuple[int, int]], widest: float = 0.0) -> list[Points]:
    """Places of the states, float[Q, 2], to choose from: a circle along a cycle, or else layers and a circle.

    widest: of the labels, which must fit between neighbours.
    """
    pairs = np.array(sorted({(p, q) for p, q in ends if p != q}), np.int64).reshape(-1, 2)
    if dfa.n_states > 2 and (order := natural_cycle(dfa)) is not None:
        places = np.empty((dfa.n_states, 2))
        places[order] = _circle(dfa.n_states, max(1.6, widest + 1.0))
        return [places]
    layers = layers_by_distance(dfa)
    layered = np.empty((dfa.n_states, 2))
    for x, layer in enumerate(layers):
        for y, state in enumerate(layer):
            layered[state] = max(1.9, widest + 1.1) * x, 1.5 * ((len(layer) - 1) / 2 - y)
    found = [_untangle(layered, pairs, layers)]
    if dfa.n_states > 3:
        order = np.array([state for layer in layers for state in layer])
        places = np.empty_like(layered)
        places[order] = _circle(dfa.n_states, max(1.6, widest + 1.0))
        found.append(_untangle(places, pairs, [order.tolist()]))
    return found


def layers_by_distance(dfa: DFA) -> list[list[int]]:
    """The states by breadth-first distance from the start, unreachable ones last."""
    layers, seen = [[dfa.start]], {dfa.start}
    while True:
        fresh = dict.fromkeys(q for state in layers[-1] for q in dfa.transitions[state].tolist() if q not in seen)
        if not fresh:
            break
        seen.update(fresh)
        layers.append(list(fresh))
    others = [state for state in range(dfa.n_states) if state not in seen]
    return [*layers, others] if others else layers


def natural_cycle(dfa: DFA) -> NDArray[np.int64] | None:
    """int[Q]: all states in the order of one cycle, from the start; None where the symbols of a permutation show none.

    A symbol may be that cycle, or one symbol undone and another applied (in mod_k that adds 1).
    """
    table, n = dfa.transitions, dfa.n_states
    if not (np.sort(table, axis=0) == np.arange(n)[:, None]).all():
        return None
    undone = [(np.argsort(a), b) for a, b in product(table.T, table.T)]
    for move in [*table.T, *(b[back] for back, b in undone)]:
        order = [dfa.start]
        while (state := int(move[order[-1]])) != dfa.start:
            order.append(state)
        if len(order) == n:
            return np.array(order)
    return None


def _circle(n: int, apart: float) -> Points:
    """Clockwise, the first at the left, neighbours `apart` from each other."""
    angle = np.pi - 2 * np.pi * np.arange(n) / n
    radius = apart / (2 * np.sin(np.pi / n))
    return radius * np.stack([np.cos(angle), np.sin(angle)], 1)


def _untangle(places: Points, pairs: NDArray, groups: Sequence[Sequence[int]]) -> Points:
    """Exchange places within a group as long as that uncrosses or shortens the straight lines between pairs."""
    cost, before = _tangle(places, pairs), np.inf
    while cost < before:
        before = cost
        for p, q in (pair for group in groups for pair in combinations(group, 2)):
            moved = places.copy()
            moved[[p, q]] = places[[q, p]]
            if (cost_moved := _tangle(moved, pairs)) < cost - 1e-9:
                places, cost = moved, cost_moved
    return places


def _tangle(places: Points, pairs: NDArray) -> float:
    a, b = places[pairs[:, 0]], places[pairs[:, 1]]
    shared = (pairs[:, None, :, None] == pairs[None, :, None, :]).any((2, 3))
    return float((_cross(a, b, a, b) & ~shared).sum() / 2 + 0.15 * np.hypot(*(b - a).T).sum())


def _cross(a: Points, b: Points, c: Points, d: Points) -> NDArray[np.bool_]:
    """bool[n, m]: whether segment a–b crosses segment c–d."""
    a, b, c, d = a[:, None], b[:, None], c[None], d[None]
    return (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)


def _side(p: Points, q: Points, r: Points) -> NDArray[np.float64]:
    return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])


# --- arrows -------------------------------------------------------------------------------------------------------


def route(
    places: Points, start: int, ends: Sequence[tuple[int, int]], label_sizes: Sequence[tuple[float, float]]
) -> Picture:
    """The `Picture` of states at `places`: arrows bent, self-loops turned and labels moved to where there is room."""
    paths: list[Points] = [np.zeros((0, 2))] * len(ends)
    labels: list[Points] = [np.zeros(2)] * len(ends)
    drawn = np.zeros((0, _SAMPLES, 2))
    cost = 0.0
    both_ways = set(ends)
    straight = [i for i, (p, q) in enumerate(ends) if p != q]
    for i in sorted(straight, key=lambda i: (round(float(np.hypot(*(places[ends[i][0]] - places[ends[i][1]]))), 6), i)):
        p, q = ends[i]
        bends = _BENDS[np.abs(_BENDS) > 0.1] if (q, p) in both_ways else _BENDS
        curves = [_bent(places[p], places[q], bend) for bend in bends]
        detour = np.abs(bends) * (0.5 + 0.6 * np.hypot(*(places[p] - places[q])))
        costs = [_arrow_cost(bezier(curve), p, q, places, drawn) for curve in curves] + detour
        best = _least(costs)
        paths[i] = curves[best]
        cost += costs[best]
        drawn = np.concatenate([drawn, bezier(curves[best])[None]])

    taken = drawn.reshape(-1, 2)
    middle = places.mean(0)
    outward = np.arctan2(*(places[start] - middle)[::-1]) if np.hypot(*(places[start] - middle)) > 1e-9 else np.pi
    entries = [np.stack([d * (RADIUS + 0.55), d * RADIUS]) + places[start] for d in _directions()]
    costs = [
        _crowding(np.linspace(entry[0], entry[1], 6), start, places, taken)
        + 0.5 * _turn(angle, np.pi)
        + 0.2 * _turn(angle, outward)
        for entry, angle in zip(entries, _angles())
    ]
    entry = entries[_least(costs)]
    taken = np.concatenate([taken, np.linspace(entry[0], entry[1], 6)])

    for i in (i for i, (p, q) in enumerate(ends) if p == q):
        p = ends[i][0]
        outward = np.arctan2(*(places[p] - middle)[::-1])
        options = []
        for angle in _angles():
            loop, label = _loop(places[p], angle, label_sizes[i])
            box = _box(label, label_sizes[i])
            within = np.linspace(places[p], label, 8)[1:]
            crowd = _crowding(np.concatenate([bezier(loop), box, within]), p, places, taken)
            options.append((crowd + 0.3 * _turn(angle, np.pi / 2) + 0.15 * _turn(angle, outward), loop, label, box))
        best_cost, loop, label, box = options[_least([option[0] for option in options])]
        cost += best_cost
        paths[i], labels[i] = loop, label
        taken = np.concatenate([taken, bezier(loop), box])

    boxes: list[tuple[Points, tuple[float, float]]] = [
        (labels[i], label_sizes[i]) for i, (p, q) in enumerate(ends) if p == q
    ]
    for i in straight:
        curve = bezier(paths[i])
        others = taken[(np.abs(taken[:, None] - curve[None]).max(2) > 1e-9).all(1)]
        spots = [(t, curve[round(t * (_SAMPLES - 1))]) for t in (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73)]
        costs = [_label_cost(spot, label_sizes[i], places, others, boxes) + abs(t - 0.5) for t, spot in spots]
        best = _least(costs)
        cost += costs[best]
        labels[i] = spots[best][1]
        boxes.append((labels[i], label_sizes[i]))
    return Picture(places, paths, labels, entry, cost)


def _least(costs: Sequence[float] | NDArray[np.float64]) -> int:
    """The first of the least; rounded, so that symmetric choices are equal whatever the last bits are."""
    return int(np.argmin(np.round(costs, 6)))


def bezier(control: Points, n: int = _SAMPLES) -> Points:
    """float[n, 2]: points of the curve with 3 or 4 control points."""
    t = np.linspace(0, 1, n)[:, None]
    while len(control) > 1:
        control = [(1 - t) * a + t * b for a, b in pairwise(control)]  # type: ignore[assignment]
    return np.asarray(control[0])


def clipped(control: Points, radius: float = RADIUS) -> Points:
    """The part of a curve between states that lies outside both circles, again as control points."""
    inside = np.hypot(*(bezier(control, 401) - control[0]).T) < radius
    begin = np.argmin(inside) / 400
    inside = np.hypot(*(bezier(control, 401)[::-1] - control[-1]).T) < radius
    return _part(control, begin, 1 - np.argmin(inside) / 400)


def _part(control: Points, begin: float, end: float) -> Points:
    """Control points of the curve between two of its parameters (de Casteljau)."""

    def split(points: Points, t: float) -> tuple[Points, Points]:
        left, right = [points[0]], [points[-1]]
        while len(points) > 1:
            points = (1 - t) * points[:-1] + t * points[1:]
            left.append(points[0])
            right.append(points[-1])
        return np.array(left), np.array(right[::-1])

    return split(split(control, end)[0], begin / end)[1]


def _bent(a: Points, b: Points, bend: float) -> Points:
    """A quadratic curve whose middle lies `bend` times the distance to the left of the straight line from a to b."""
    normal = np.array([a[1] - b[1], b[0] - a[0]])
    return np.stack([a, (a + b) / 2 + 2 * bend * normal, b])


def _arrow_cost(curve: Points, p: int, q: int, places: Points, drawn: NDArray) -> float:
    """How much a curve from state p to q runs through other states, crosses arrows and runs along them."""
    others = np.delete(places, [p, q], axis=0)
    near = np.hypot(*(curve[:, None] - others[None]).transpose(2, 0, 1)) if len(others) else np.full((1, 1), np.inf)
    cost = 12.0 * float(np.maximum(0, 1 - near.min(0) / (RADIUS + 0.28)).sum())
    if len(drawn):
        flat_a, flat_b = drawn[:, :-1].reshape(-1, 2), drawn[:, 1:].reshape(-1, 2)
        crossing = _cross(curve[:-1], curve[1:], flat_a, flat_b)
        away = np.hypot(*(curve[:-1] - places[p]).T) > RADIUS
        away &= np.hypot(*(curve[:-1] - places[q]).T) > RADIUS
        cost += float(crossing[away].sum())
        inner = curve[5:-5]
        close = np.hypot(*(inner[:, None] - drawn.reshape(-1, 2)[None]).transpose(2, 0, 1)).min(1) < 0.13
        cost += 0.25 * float(close.sum())
    return cost


def _angles() -> NDArray[np.float64]:
    return np.pi / 2 + 2 * np.pi * np.arange(24) / 24  # upwards first


def _directions() -> Points:
    return np.stack([np.cos(_angles()), np.sin(_angles())], 1)


def _turn(angle: float, wanted: float) -> float:
    """How far one direction is from another: 0 the same, 1 opposite."""
    return float(1 - np.cos(angle - wanted)) / 2


def _loop(place: Points, angle: float, label_size: tuple[float, float]) -> tuple[Points, Points]:
    """A self-loop's control points in a direction, and its label's centre."""
    spread = 0.42
    sides = [np.array([np.cos(a), np.sin(a)]) for a in (angle + spread, angle - spread)]
    wide = [np.array([np.cos(a), np.sin(a)]) for a in (angle + 0.62, angle - 0.62)]
    loop = np.stack([RADIUS * sides[0], 1.15 * wide[0], 1.15 * wide[1], RADIUS * sides[1]]) + place
    direction = np.array([np.cos(angle), np.sin(angle)])
    return loop, place + direction * (0.84 + 0.5 * np.array(label_size))


def _box(centre: Points, size: tuple[float, float]) -> Points:
    """float[12, 2]: points along the outline and middle of a label."""
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 4) * size[0], np.linspace(-0.5, 0.5, 3) * size[1])
    return centre + np.stack([x.ravel(), y.ravel()], 1)


def _crowding(points: Points, state: int, places: Points, taken: Points) -> float:
    """How much points lie on other states and on what is already drawn."""
    others = np.delete(places, state, axis=0)
    cost = 0.0
    if len(others):
        near = np.hypot(*(points[:, None] - others[None]).transpose(2, 0, 1))
        cost += 0.5 * float((near < RADIUS + 0.1).sum())
    taken = taken[np.hypot(*(taken - places[state]).T) > RADIUS]
    if len(taken):
        near = np.hypot(*(points[:, None] - taken[None]).transpose(2, 0, 1)).min(1)
        cost += 0.25 * float((near < 0.14).sum())
    return cost


def _label_cost(
    spot: Points,
    size: tuple[float, float],
    places: Points,
    taken: Points,
    boxes: Sequence[tuple[Points, tuple[float, float]]],
) -> float:
    """How much a label covers states, other labels and arrows."""
    half = np.array(size) / 2
    gap = np.maximum(np.abs(places - spot) - half, 0)
    cost = 6.0 * float((np.hypot(*gap.T) < RADIUS + 0.02).sum())
    for other, (width, height) in boxes:
        apart = np.abs(other - spot) - half - np.array([width, height]) / 2
        cost += 4.0 * float((apart < 0.02).all())
    covered = (np.abs(taken - spot) < half).all(1)
    return cost + 0.3 * float(covered.sum())

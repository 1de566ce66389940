"""Graded panels for one point: the geometry of `uqprism.families.quadrature`, planned point by point.

Panels are short near every place that has features (each member, both surrogates, each corner where the leading member of the
mixture changes) and longer with the distance from it; each holds twelve Gauss-Legendre nodes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from uqprism.backends.numba.base import Floats, inlined, reduction
from uqprism.families.lattice import PER_PANEL
from uqprism.families.panels import KINK
from uqprism.families.quadrature import gauss_legendre

RULE = gauss_legendre(PER_PANEL)
THIRD = 1.0 / 3.0
REACH = 9.0  # scales beyond which a Gaussian no longer counts
MAX_PANELS, MAX_KINKS, ROUNDS, NEWTON = 511, 256, 4, 8
LEAD, LEVEL = MAX_PANELS + 1, 2 * (MAX_PANELS + 1)  # rows after the edges: the member that leads there, and its level


class Point(NamedTuple):
    """One point's members, contiguous, and room for the places and panels planned from them.

    `height` is a member's log weight less the log of its scale: its log density at its mean, but for a constant.
    """

    offset: Floats
    scale: Floats
    inverse: Floats
    height: Floats
    location: Floats
    width: Floats
    edges: Floats


@inlined
def new_point(count: int) -> Point:
    """Room for a point with so many members."""
    return Point(
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count + 2 + MAX_KINKS),
        np.empty(count + 2 + MAX_KINKS),
        np.empty(3 * (MAX_PANELS + 1)),
    )


@inlined
def plan(point: Point, matched: float, pooled: float) -> int:
    """Fill the edges and return the number of panels, or -1 if the point needs more than there is room for."""
    count = len(point.offset)
    low, high = -REACH * matched, REACH * matched
    for i in range(count):
        point.location[i], point.width[i] = point.offset[i], point.scale[i]
        low = min(low, point.offset[i] - REACH * point.scale[i])
        high = max(high, point.offset[i] + REACH * point.scale[i])
    point.location[count], point.width[count] = 0.0, matched
    point.location[count + 1], point.width[count + 1] = 0.0, pooled
    places = count + 2
    panels = _march(point, places, low, high)
    for _ in range(ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
        if panels < 0:
            break
        found = _add_kinks(point, panels, places)
        if found == places:
            break
        places = found
        panels = -1 if places < 0 else _march(point, places, low, high)
    return panels


@inlined
def _march(point: Point, places: int, low: float, high: float) -> int:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it."""
    y, panels = low, 0
    point.edges[0] = low
    while y < high:
        if panels == MAX_PANELS:
            return -1
        step = _step(point.location[:places], point.width[:places], y)
        y = max(min(y + step, high), np.nextafter(y, math.inf))
        panels += 1
        point.edges[panels] = y
    return panels


@reduction
def _step(location: Floats, width: Floats, y: float) -> float:
    """The longest panel that every place allows from y on."""
    step = math.inf
    for i in range(len(location)):
        gap = location[i] - y
        # As in `families.quadrature`: beyond two widths no panel is longer than half its distance from the place.
        step = min(step, max(2.0 * width[i], gap * THIRD, gap * -0.5))
    return step


@inlined
def _level(point: Point, i: int, y: float) -> float:
    """A member's log density, weighted, but for a constant that all share."""
    z = (y - point.offset[i]) * point.inverse[i]
    return point.height[i] - 0.5 * z * z


@inlined
def _slope(point: Point, i: int, y: float) -> float:
    """Minus the derivative of a member's level."""
    return (y - point.offset[i]) * point.inverse[i] ** 2


@inlined
def _find_leaders(point: Point, panels: int) -> None:
    """At every edge the member with the highest level."""
    edges = point.edges
    for k in range(panels + 1):
        edges[LEAD + k], edges[LEVEL + k] = 0.0, -math.inf
    for i in range(len(point.offset)):
        offset, inverse, height = point.offset[i], point.inverse[i], point.height[i]
        for k in range(panels + 1):
            z = (edges[k] - offset) * inverse
            level = height - 0.5 * z * z
            edges[LEAD + k] = i if level > edges[LEVEL + k] else edges[LEAD + k]
            edges[LEVEL + k] = max(level, edges[LEVEL + k])


@inlined
def _crossing(point: Point, first: int, second: int, low: float, high: float) -> float:
    """Where the second member overtakes the first: Newton's steps while they stay inside, halving where they do not."""
    y = 0.5 * (low + high)
    for _ in range(NEWTON):
        lead = _level(point, first, y) - _level(point, second, y)
        if lead > 0.0:
            low = y
        else:
            high = y
        following = y - lead / (_slope(point, second, y) - _slope(point, first, y))
        y = following if low < following < high else 0.5 * (low + high)
    return y


@inlined
def _add_kinks(point: Point, panels: int, places: int) -> int:
    """Add the corners of the mixture's log density that no panel resolves; returns the number of places, -1 if too many."""
    _find_leaders(point, panels)
    for k in range(panels):
        if point.edges[LEAD + k] == point.edges[LEAD + k + 1]:
            continue
        first, second = int(point.edges[LEAD + k]), int(point.edges[LEAD + k + 1])
        low, high = point.edges[k], point.edges[k + 1]
        lost = point.edges[LEVEL + k] - _level(point, second, low)
        won = point.edges[LEVEL + k + 1] - _level(point, first, high)
        if lost + won <= KINK / 2.0:  # slow enough for the panel as it is
            continue
        length = high - low
        high = _crossing(point, first, second, low, high)
        slope = _slope(point, second, high) - _slope(point, first, high)
        width = 1.0 / max(abs(slope), 1e-300)  # equal slopes: no corner
        if 2.0 * KINK * width < 0.99 * length:
            if places == len(point.location):
                return -1
            point.location[places], point.width[places] = high, KINK * width
            places += 1
    return places

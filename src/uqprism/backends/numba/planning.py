"""Graded panels for one point and members of any family: the geometry of `uqprism.families.panels`, planned point by point.

Panels are short near every place that has features, among them the corners where the leading member of the mixture changes, and
longer with the distance from it; each holds twelve Gauss-Legendre nodes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from uqprism.backends.numba.base import Floats, borrowing, reduction
from uqprism.backends.numba.forms import Addresses, values_at
from uqprism.families.panels import FAR, KINK

MAX_PANELS, MAX_KINKS, ROUNDS = 2047, 256, 4
CROSSING_STEPS, FLAT = 40, 0.02  # to find where two members cross, and the nats between them at which they do


class Plan(NamedTuple):
    """One point's places, corners, panels and, at every edge, the leading member and its level; with room for more."""

    location: Floats
    width: Floats
    corner: Floats
    edges: Floats
    lead: Floats
    level: Floats
    other: Floats


class Members(NamedTuple):
    """One point's members.

    Attributes:
        addresses: of their compiled functions.
        numbers: (members, numbers), of the log density.
        tails: (members, 3), the centre and the exponents of the tails below and above, infinite for lighter tails.
        weights: (members,).
        log_weights: (members,).
    """

    addresses: Addresses
    numbers: Floats
    tails: Floats
    weights: Floats
    log_weights: Floats


@reduction
def least(values: Floats) -> float:
    """The smallest of some numbers."""
    found = math.inf
    for i in range(len(values)):
        found = min(found, values[i])
    return found


@borrowing
def fill_edges(
    plan: Plan, members: Members, places: int, corners: int, low: float, high: float, heavy: bool, bends: bool, scratch: Floats
) -> int:
    """Fill the edges and return the number of panels, or -1 if the point needs more than there is room for."""
    panels = _march(plan, places, corners, low, high, heavy)
    if not bends:
        return panels
    for _ in range(ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
        if panels < 0:
            break
        found = _add_kinks(plan, members, panels, places, scratch)
        if found == places:
            break
        places = found
        panels = -1 if places < 0 else _march(plan, places, corners, low, high, heavy)
    return panels


@borrowing
def _march(plan: Plan, places: int, corners: int, low: float, high: float, heavy: bool) -> int:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it."""
    y, panels = low, 0
    plan.edges[0] = low
    while y < high:
        if panels == MAX_PANELS:
            return -1
        location, width = plan.location[:places], plan.width[:places]
        step = _heavy_step(location, width, y) if heavy else _step(location, width, y)
        stop = min(y + step, high, _next_corner(plan.corner[:corners], y))
        y = max(stop, np.nextafter(y, math.inf))
        panels += 1
        plan.edges[panels] = y
    return panels


@reduction
def _step(location: Floats, width: Floats, y: float) -> float:
    """The longest panel that every place allows from y on."""
    step = math.inf
    for i in range(len(location)):
        gap = location[i] - y
        step = min(step, max(2.0 * width[i], gap / 3.0, gap * -0.5))
    return step


@reduction
def _heavy_step(location: Floats, width: Floats, y: float) -> float:
    """The same where tails are power laws, so that panels may triple far from all places."""
    step = math.inf
    for i in range(len(location)):
        gap, wide = location[i] - y, 2.0 * width[i]
        far = abs(gap) > FAR * width[i]
        ahead, behind = gap * (1.0 / 1.5 if far else 1.0 / 3.0), gap * (-2.0 if far else -0.5)
        step = min(step, max(wide, ahead, behind))
    return step


@reduction
def _next_corner(corner: Floats, y: float) -> float:
    following = math.inf
    for i in range(len(corner)):
        following = min(following, corner[i] if corner[i] > y else math.inf)
    return following


@borrowing
def _add_kinks(plan: Plan, members: Members, panels: int, places: int, scratch: Floats) -> int:
    """Add the corners of the mixture's log density that no panel resolves; returns the number of places, -1 if too many."""
    edges = plan.edges
    for k in range(panels + 1):
        plan.lead[k], plan.level[k] = 0.0, -math.inf
    for i in range(len(members.weights)):
        values_at(members.addresses.log_density, plan.other, edges, panels + 1, members.numbers[i])
        for k in range(panels + 1):
            level = plan.other[k] + members.log_weights[i]
            plan.lead[k] = i if level > plan.level[k] else plan.lead[k]
            plan.level[k] = max(level, plan.level[k])
    for k in range(panels):
        if plan.lead[k] == plan.lead[k + 1]:
            continue
        first, second = int(plan.lead[k]), int(plan.lead[k + 1])
        low, high = edges[k], edges[k + 1]
        ahead, behind = _gap(members, first, second, low, scratch), _gap(members, first, second, high, scratch)
        # A member that is zero at an end begins or stops at a bound there, which is an edge, and bends nothing.
        if not (math.isfinite(ahead) and math.isfinite(behind)) or ahead - behind <= KINK / 2.0:
            continue  # or slow enough for the panel as it is
        at = _crossing(members, first, second, low, high, ahead, behind, scratch)
        near = 1e-3 * (high - low)
        slope = (_gap(members, first, second, at + near, scratch) - _gap(members, first, second, at - near, scratch)) / (
            2.0 * near
        )
        width = 1.0 / max(abs(slope), 1e-300)  # equal slopes: no corner
        if 2.0 * KINK * width < 0.99 * (high - low):
            if places == len(plan.location):
                return -1
            plan.location[places], plan.width[places] = at, KINK * width
            places += 1
    return places


@borrowing
def _gap(members: Members, first: int, second: int, y: float, scratch: Floats) -> float:
    """By how many nats the first member leads the second, both weighted."""
    scratch[0] = y
    values_at(members.addresses.log_density, scratch[1:], scratch, 1, members.numbers[first])
    values_at(members.addresses.log_density, scratch[2:], scratch, 1, members.numbers[second])
    return (scratch[1] + members.log_weights[first]) - (scratch[2] + members.log_weights[second])


@borrowing
def _crossing(
    members: Members, first: int, second: int, low: float, high: float, ahead: float, behind: float, scratch: Floats
) -> float:
    """Where the second member overtakes the first: false position, with the end that stays counted half (the Illinois rule)."""
    y = 0.5 * (low + high)
    for _ in range(CROSSING_STEPS):
        y = (low * behind - high * ahead) / (behind - ahead)
        if not low < y < high:
            y = 0.5 * (low + high)
        gap = _gap(members, first, second, y, scratch)
        if abs(gap) < FLAT:
            break
        if gap > 0.0:
            low, ahead, behind = y, gap, 0.5 * behind
        else:
            high, behind, ahead = y, gap, 0.5 * ahead
    return y

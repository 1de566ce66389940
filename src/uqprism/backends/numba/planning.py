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
from uqprism.backends.numba.sums import size_below
from uqprism.backends.sums import Sums
from uqprism.families.panels import FAR, KINK

MAX_PANELS, MAX_KINKS, ROUNDS = 2047, 256, 4
LONGEST, SMOOTH = 20.0, 2.6  # lengths of panels in logarithms: at most, and of a power of one
HALVINGS = 6  # of the range of lengths, to find one
STRETCHED = 1.51  # the ratio of its ends from which a panel is counted by logarithms
NOBODY = -1.0  # leads where all densities are zero
CROSSING_STEPS, FLAT = 40, 0.02  # to find where two members cross, and the nats between them at which they do


class Plan(NamedTuple):
    """One point's places, corners, panels and, at every edge, the leading component and its level; with room for more.

    `own_lead` and `own_level` are those within one member that is a mixture. Where densities are powers of the distance from a
    bound at zero, `power` marks the places that say so and `decay` holds the largest power and the distance up to which it lasts.
    """

    location: Floats
    width: Floats
    power: Floats
    decay: Floats
    corner: Floats
    edges: Floats
    lead: Floats
    level: Floats
    own_lead: Floats
    own_level: Floats
    other: Floats


class Members(NamedTuple):
    """One point's members.

    Attributes:
        addresses: of their compiled functions.
        numbers: (members, numbers), of the log density.
        tails: (components, 3), the centre and the exponents of the tails below and above, infinite for lighter tails.
        atoms: (members, 4), the bounds and the probabilities at them; with no members if there are none.
        weights: (members,).
        log_weights: (members,).
        parts: how many components each member has; one if members are no mixtures.
        windows: (members, 2), between which each member has all of its mass; with no members if all count everywhere.
    """

    addresses: Addresses
    numbers: Floats
    tails: Floats
    atoms: Floats
    weights: Floats
    log_weights: Floats
    parts: int
    windows: Floats


@borrowing
def values_of_part(members: Members, component: int, out: Floats, y: Floats, size: int) -> None:
    """Fill `out` with the log densities, at the first `size` of y, of one of the components of all members."""
    first = 0
    if members.parts > 1:
        width = (members.numbers.shape[1] - 1) // members.parts
        first = 2 + width * (component % members.parts)
    values_at(members.addresses.part, out, y, size, members.numbers[component // members.parts, first:])


@borrowing
def part_log_weight(members: Members, component: int) -> float:
    """The logarithm of the weight of one of the components of all members."""
    if members.parts == 1:
        return members.log_weights[component]
    width = (members.numbers.shape[1] - 1) // members.parts
    own = members.numbers[component // members.parts, 1 + width * (component % members.parts)]
    return members.log_weights[component // members.parts] + own


@reduction
def least(values: Floats) -> float:
    """The smallest of some numbers."""
    found = math.inf
    for i in range(len(values)):
        found = min(found, values[i])
    return found


@borrowing
def fill_edges(
    plan: Plan,
    members: Members,
    places: int,
    corners: int,
    low: float,
    high: float,
    heavy: bool,
    bends: bool,
    sums: Sums | None,
    scratch: Floats,
) -> int:
    """Fill the edges and return the number of panels, or -1 if the point needs more than there is room for."""
    panels = _march(plan, places, corners, low, high, heavy, sums)
    if not bends:
        return panels
    for _ in range(ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
        if panels < 0:
            break
        found = _add_kinks(plan, members, panels, places, scratch)
        if found == places:
            break
        places = found
        panels = -1 if places < 0 else _march(plan, places, corners, low, high, heavy, sums)
    return panels


@borrowing
def _march(plan: Plan, places: int, corners: int, low: float, high: float, heavy: bool, sums: Sums | None) -> int:
    """Panel edges from low to high: no panel longer than two widths near a place, nor half the distance from it.

    With `sums`, panels have one of its numbers of counts.
    """
    y, panels = low, 0
    plan.edges[0] = low
    while y < high:
        if panels == MAX_PANELS:
            return -1
        location, width = plan.location[:places], plan.width[:places]
        step = 0.0
        if plan.decay[0] > 0.0:
            step = _step_of_powers(location, width, plan.power, y, _stretch(y, plan.decay))
        else:
            step = _heavy_step(location, width, y) if heavy else _step(location, width, y)
        if sums is not None:
            y += sums.sizes[size_below(sums.sizes, step)]
        else:
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
def _step_of_powers(location: Floats, width: Floats, power: Floats, y: float, stretch: float) -> float:
    """The same where densities are powers of the distance from a bound at zero, so that places next to it allow a stretch."""
    step = math.inf
    for i in range(len(location)):
        gap, wide = location[i] - y, 2.0 * width[i]
        far = abs(gap) > FAR * width[i] and power[i] == 0.0
        ahead, behind = gap * (1.0 / 1.5 if far else 1.0 / 3.0), gap * (-2.0 if far else -0.5)
        step = min(step, max(wide, ahead, behind, stretch if power[i] > 0.0 else 0.0))
    return step


@borrowing
def find_powers(plan: Plan, power: Floats, counted: Floats) -> None:
    """Mark the places next to a bound at zero between which densities are powers; `counted` is finite for all but bounds."""
    plan.decay[0], plan.decay[1] = 0.0, math.inf
    for i in range(len(power)):
        if power[i] == 0.0 and math.isfinite(counted[i]) and plan.location[i] != 0.0:
            plan.decay[1] = min(plan.decay[1], abs(plan.location[i]))
    for i in range(len(plan.power)):
        plan.power[i] = 0.0
    for i in range(len(power)):
        distance = abs(plan.location[i])
        if distance < plan.decay[1] and plan.width[i] >= 0.4 * distance:  # not those next to another bound
            plan.power[i] = power[i]
            plan.decay[0] = max(plan.decay[0], power[i])


@borrowing
def _stretch(y: float, decay: Floats) -> float:
    """How far a panel may reach from y on for which the distance from zero, to the largest power, is smooth in its logarithm.

    The deeper, the less counts what is lost: each limit is the length, to which powers are added, at which twelve nodes lose
    1e-11 of the integral up to every node, or of that over the panel.
    """
    if y == 0.0:
        return 0.0
    power, depth = decay[0], max(0.0, math.log(decay[1] / abs(y)))
    length = _length_at(depth, power)
    if y < 0.0:
        return y * math.expm1(-length)
    # Away from zero what limits a panel is the depth at its end.
    low, high = _length_at(0.0, power), length
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _length_at(max(0.0, depth - middle), power) >= middle:
            low = middle
        else:
            high = middle
    return y * math.expm1(low)


@borrowing
def _length_at(depth: float, power: float) -> float:
    """How long a panel may be in the logarithm that ends so far, in the same, below the places where densities are no powers."""
    length = min(LONGEST, 13.0 / power, SMOOTH * math.exp((1.0 + power) * depth / 12.0) / power)
    return min(length, SMOOTH * math.exp((2.0 + power) * depth / 12.0) / (1.0 + power))


@borrowing
def log_length(low: float, high: float) -> float:
    """The length of a panel as its nodes count it by the logarithm of the distance from zero; zero if they do not."""
    if low * high <= 0.0:
        return 0.0
    ratio = high / low if low > 0.0 else low / high
    return math.log(ratio) if ratio > STRETCHED else 0.0


@reduction
def _next_corner(corner: Floats, y: float) -> float:
    following = math.inf
    for i in range(len(corner)):
        following = min(following, corner[i] if corner[i] > y else math.inf)
    return following


@borrowing
def _add_kinks(plan: Plan, members: Members, panels: int, places: int, scratch: Floats) -> int:
    """Add the corners of log densities that no panel resolves; returns the number of places, -1 if too many.

    The log density of the mixture bends where its leading component changes, and so does that of a member which is a mixture.
    """
    mixed = members.parts > 1
    _forget(plan.lead, plan.level, panels)
    for i in range(len(members.weights)):
        if mixed:
            _forget(plan.own_lead, plan.own_level, panels)
        for component in range(i * members.parts, (i + 1) * members.parts):
            first, size = 0, panels + 1
            if len(members.windows):
                first, size = _inside(plan.edges, panels, members.windows[i, 0], members.windows[i, 1])
            values_of_part(members, component, plan.other[first:], plan.edges[first:], size)
            log_weight = part_log_weight(members, component)
            _compare(plan.lead, plan.level, plan.other, component, log_weight, first, size)
            if mixed:
                _compare(plan.own_lead, plan.own_level, plan.other, component, log_weight, first, size)
        if mixed:
            places = _add_changes(plan, plan.own_lead, members, panels, places, False, scratch)
            if places < 0:
                return places
    return _add_changes(plan, plan.lead, members, panels, places, mixed, scratch)


@borrowing
def _forget(lead: Floats, level: Floats, panels: int) -> None:
    for k in range(panels + 1):
        lead[k], level[k] = NOBODY, -math.inf


@borrowing
def _inside(edges: Floats, panels: int, low: float, high: float) -> tuple[int, int]:
    """The first edge between two values, and how many there are."""
    first = int(np.searchsorted(edges[: panels + 1], low))
    return first, int(np.searchsorted(edges[: panels + 1], high)) - first


@borrowing
def _compare(lead: Floats, level: Floats, other: Floats, component: int, log_weight: float, first: int, size: int) -> None:
    """Let a component lead at the edges, of so many from the first on, where it is above all that were there before."""
    for k in range(first, first + size):
        found = other[k] + log_weight
        lead[k] = component if found > level[k] else lead[k]
        level[k] = max(found, level[k])


@borrowing
def _add_changes(plan: Plan, lead: Floats, members: Members, panels: int, places: int, between: bool, scratch: Floats) -> int:
    """Add the places where the lead changes, perhaps only those `between` members."""
    edges = plan.edges
    for k in range(panels):
        if lead[k] == lead[k + 1] or NOBODY in (lead[k], lead[k + 1]):
            continue
        first, second = int(lead[k]), int(lead[k + 1])
        if between and first // members.parts == second // members.parts:
            continue
        low, high = edges[k], edges[k + 1]
        if len(members.windows) and not _meet(members, first // members.parts, second // members.parts, low, high):
            continue
        ahead, behind = _gap(members, first, second, low, scratch), _gap(members, first, second, high, scratch)
        # A member that is zero at an end begins or stops at a bound there, which is an edge, and bends nothing.
        if not (math.isfinite(ahead) and math.isfinite(behind)) or ahead - behind <= KINK / 2.0:
            continue  # or slow enough for the panel as it is
        if plan.decay[0] > 0.0 and log_length(low, high) > 0.0:
            # In the logarithm of the distance the lead changes evenly, and over several widths of a kink is no corner.
            if ahead - behind > 2.0 * KINK:
                if places == len(plan.location):
                    return -1
                length = log_length(low, high)
                at = low * math.exp((length if low > 0.0 else -length) * ahead / (ahead - behind))
                plan.location[places], plan.width[places] = at, KINK * abs(at) * length / (ahead - behind)
                places += 1
            continue
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
def _meet(members: Members, first: int, second: int, low: float, high: float) -> bool:
    """Whether two members both have mass in a panel."""
    start = max(members.windows[first, 0], members.windows[second, 0])
    end = min(members.windows[first, 1], members.windows[second, 1])
    return start <= end and start <= high and end >= low


@borrowing
def _gap(members: Members, first: int, second: int, y: float, scratch: Floats) -> float:
    """By how many nats the first component leads the second, both weighted."""
    scratch[0] = y
    values_of_part(members, first, scratch[1:], scratch, 1)
    values_of_part(members, second, scratch[2:], scratch, 1)
    return (scratch[1] + part_log_weight(members, first)) - (scratch[2] + part_log_weight(members, second))


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

"""One pass over the nodes for members of any family: every row of `backends.rows`, point by point.

A point is planned as in `uqprism.families.panels`. Its panels are taken in blocks whose members' values stay in a cache: first
all below the centre from left to right, then the others from right to left, so that distribution functions are summed up from
the nearer end and keep their digits in both tails. No family's distribution function is evaluated: within a panel, the integral
of the polynomial through the density's nodes is a product with a matrix.

Vector instructions run along the nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import Floats, inlined, kernel, reduction, rows
from uqprism.backends.numba.forms import levels_at
from uqprism.backends.numba.special import exp, exp_parts, log, upper_tail_ratio
from uqprism.backends.rows import ROW, ROWS, cumulative_rule
from uqprism.families.base import STEEP
from uqprism.families.lattice import PER_PANEL
from uqprism.families.panels import FAR, KINK
from uqprism.families.quadrature import gauss_legendre

DONE, DECLINED = 0, 1
MAX_PANELS, MAX_KINKS, ROUNDS = 2047, 256, 4
CROSSING_STEPS, FLAT = 40, 0.02  # to find where two members cross, and the nats between them at which they do
LOWEST_LEVEL = -1e200  # stands for the logarithm of zero
NEVER = 1e20  # a relative entropy above this is infinite: one density is zero where the other is not
WIDE_APART = 40.0  # nats above which the smaller of two densities is nothing beside the larger
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
INVERSE_SQRT_4PI = 1.0 / math.sqrt(4.0 * math.pi)

BLOCK_PANELS = 20
P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11 = (node * BLOCK_PANELS for node in range(1, PER_PANEL))
NODES = BLOCK_PANELS * PER_PANEL  # at most, in one block
CACHED = 2**14  # values of one kind for all members in one block

(
    Y,
    WEIGHT,
    TOP,
    LEVEL,
    MEAN,
    MEAN_TAIL,
    TAIL_SQUARES,
    TAIL_OWN,
    SQUARES,
    OWN,
    ENTROPY,
    TO_MEMBERS,
    TO_MIXTURE,
    SCORE,
    SCORE_2,
) = (row * NODES for row in range(15))
NODE_ROWS = 15
LENGTH, HELD, INSIDE = (NODE_ROWS * NODES + row * BLOCK_PANELS for row in range(3))  # numbers of panels, after those of nodes
SPREAD = NODE_ROWS * NODES + 3 * BLOCK_PANELS  # one member's densities, the nodes of all panels at fixed distances
ROOM = SPREAD + NODES

CRPS_OWN, CRPS_BETWEEN = ROW["crps.bayes.members"], ROW["crps.excess.mixture.members"]
QUADRATIC_OWN, QUADRATIC_BETWEEN = ROW["quadratic.bayes.members"], ROW["quadratic.excess.mixture.members"]
LOG_OWN, LOG_BETWEEN, LOG_BACK = (
    ROW[f"log.{name}"] for name in ("bayes.members", "excess.mixture.members", "excess.members.mixture")
)
# Of matched; those of pooled follow each.
CRPS_SURROGATE, QUADRATIC_SURROGATE = ROW["crps.excess.matched.mixture"], ROW["quadratic.excess.matched.mixture"]
QUADRATIC_ALONE, QUADRATIC_OVERLAP = ROW["quadratic.bayes.matched"], ROW["quadratic.overlap.matched"]
LOG_FORWARD, LOG_BACKWARD = ROW["log.excess.matched.mixture"], ROW["log.excess.mixture.matched"]
LOG_OF_MEMBERS = ROW["log.excess.members.matched"]


class Rule(NamedTuple):
    """Nodes and weights on (0, 1), and for each node the weights of all nodes in the integrals to it from either end."""

    nodes: Floats
    weights: Floats
    from_left: Floats
    from_right: Floats

    @staticmethod
    def make() -> Rule:
        """The rule of the panels."""
        cumulative = cumulative_rule(PER_PANEL)
        return Rule(*gauss_legendre(PER_PANEL), cumulative, np.ascontiguousarray(cumulative[::-1, ::-1]))


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
        address: of their log density.
        numbers: (members, numbers), of the log density.
        tails: (members, 3), the centre and the exponents of the tails below and above, infinite for lighter tails.
        weights: (members,).
        log_weights: (members,).
    """

    address: int
    numbers: Floats
    tails: Floats
    weights: Floats
    log_weights: Floats


class Room(NamedTuple):
    """Working arrays: a row of numbers per node, and the members' levels, densities and probabilities at the nodes."""

    node: Floats
    levels: Floats
    densities: Floats
    probabilities: Floats
    below: Floats
    above: Floats


@kernel
def integrate(
    out: Floats,
    status: np.ndarray[Any, np.dtype[np.int8]],
    places: tuple[Floats, Floats, Floats, Floats],
    sharp: np.ndarray[Any, np.dtype[np.bool_]],
    address: int,
    numbers: Floats,
    tails: Floats,
    weights: Floats,
    scales: Floats,
    centres: Floats,
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    bends: bool,
    mass: float,
    rule: Rule,
    fits: Fits,
) -> None:
    """Fill the rows of every point that is not declined already.

    Args:
        out: (rows, points).
        status: in and out, (points,): points may become DECLINED.
        places: locations, widths, lows and highs, (points, places) each, as in `panels.Places`.
        sharp: (places,).
        address: of the members' log density.
        numbers: (points, members, numbers), of the log density.
        tails: (points, members, 3), as in `Members`; with no members if no tail is a power law.
        weights: (members,), positive.
        scales: (points, 2), of matched and pooled; (points, 0) if they are not wanted.
        centres: (points,), their mean, from which probabilities are counted to both sides.
        crps: True if rows of CRPS are wanted, else None, and then they are not compiled.
        quadratic: likewise.
        logs: likewise.
        bends: whether the mixture's log density may bend.
        mass: by which the mixture's may miss one.
        rule: see there.
        fits: coefficients.
    """
    count, n_places, heavy = numbers.shape[1], len(sharp), tails.shape[1] > 0
    log_weights = np.log(weights)
    plan = Plan(
        np.empty(n_places + MAX_KINKS), np.empty(n_places + MAX_KINKS), np.empty(n_places),
        np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1),
    )  # fmt: skip
    room = Room(
        np.empty(ROOM), np.empty(count * NODES), np.empty(count * NODES), np.empty(count * NODES),
        np.empty(count), np.empty(count),
    )  # fmt: skip
    step = max(1, min(BLOCK_PANELS, CACHED // (count * PER_PANEL)))
    total = np.empty(len(ROWS))
    for p in range(len(status)):
        if status[p] != DONE:
            continue
        members = Members(address, numbers[p], tails[p if heavy else 0], weights, log_weights)
        corners = 0
        for i in range(n_places):
            plan.location[i], plan.width[i] = places[0][p, i], places[1][p, i]
            if sharp[i]:
                plan.corner[corners] = places[0][p, i]
                corners += 1
        low, high = _least(places[2][p]), -_least(-places[3][p])
        panels = _plan(plan, members, n_places, corners, low, high, heavy, logs is not None and bends, room)
        if panels < 0:
            status[p] = DECLINED
            continue
        total[:] = 0.0
        found = _pass(
            plan.edges, panels, step, members, scales[p], centres[p], heavy, crps, quadratic, logs, total, room, rule, fits
        )
        if not abs(found - 1.0) <= mass:  # so that NaN is caught, too
            status[p] = DECLINED
        for row in range(len(ROWS)):
            out[row, p] = total[row]


@reduction
def _least(values: Floats) -> float:
    least = math.inf
    for i in range(len(values)):
        least = min(least, values[i])
    return least


@inlined
def _plan(
    plan: Plan, members: Members, places: int, corners: int, low: float, high: float, heavy: bool, bends: bool, room: Room
) -> int:
    """Fill the edges and return the number of panels, or -1 if the point needs more than there is room for."""
    panels = _march(plan, places, corners, low, high, heavy)
    if not bends:
        return panels
    for _ in range(ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
        if panels < 0:
            break
        found = _add_kinks(plan, members, panels, places, room)
        if found == places:
            break
        places = found
        panels = -1 if places < 0 else _march(plan, places, corners, low, high, heavy)
    return panels


@inlined
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


@inlined
def _add_kinks(plan: Plan, members: Members, panels: int, places: int, room: Room) -> int:
    """Add the corners of the mixture's log density that no panel resolves; returns the number of places, -1 if too many."""
    edges = plan.edges
    for k in range(panels + 1):
        plan.lead[k], plan.level[k] = 0.0, -math.inf
    for i in range(len(members.weights)):
        levels_at(members.address, plan.other, edges, panels + 1, members.numbers[i])
        for k in range(panels + 1):
            level = plan.other[k] + members.log_weights[i]
            plan.lead[k] = i if level > plan.level[k] else plan.lead[k]
            plan.level[k] = max(level, plan.level[k])
    for k in range(panels):
        if plan.lead[k] == plan.lead[k + 1]:
            continue
        first, second = int(plan.lead[k]), int(plan.lead[k + 1])
        low, high = edges[k], edges[k + 1]
        ahead, behind = _gap(members, first, second, low, room), _gap(members, first, second, high, room)
        # A member that is zero at an end begins or stops at a bound there, which is an edge, and bends nothing.
        if not (math.isfinite(ahead) and math.isfinite(behind)) or ahead - behind <= KINK / 2.0:
            continue  # or slow enough for the panel as it is
        at = _crossing(members, first, second, low, high, ahead, behind, room)
        near = 1e-3 * (high - low)
        slope = (_gap(members, first, second, at + near, room) - _gap(members, first, second, at - near, room)) / (2.0 * near)
        width = 1.0 / max(abs(slope), 1e-300)  # equal slopes: no corner
        if 2.0 * KINK * width < 0.99 * (high - low):
            if places == len(plan.location):
                return -1
            plan.location[places], plan.width[places] = at, KINK * width
            places += 1
    return places


@inlined
def _gap(members: Members, first: int, second: int, y: float, room: Room) -> float:
    """By how many nats the first member leads the second, both weighted."""
    room.node[0] = y
    levels_at(members.address, room.node[1:], room.node, 1, members.numbers[first])
    levels_at(members.address, room.node[2:], room.node, 1, members.numbers[second])
    return (room.node[1] + members.log_weights[first]) - (room.node[2] + members.log_weights[second])


@inlined
def _crossing(
    members: Members, first: int, second: int, low: float, high: float, ahead: float, behind: float, room: Room
) -> float:
    """Where the second member overtakes the first: false position, with the end that stays counted half (the Illinois rule)."""
    y = 0.5 * (low + high)
    for _ in range(CROSSING_STEPS):
        y = (low * behind - high * ahead) / (behind - ahead)
        if not low < y < high:
            y = 0.5 * (low + high)
        gap = _gap(members, first, second, y, room)
        if abs(gap) < FLAT:
            break
        if gap > 0.0:
            low, ahead, behind = y, gap, 0.5 * behind
        else:
            high, behind, ahead = y, gap, 0.5 * ahead
    return y


@inlined
def _pass(
    edges: Floats,
    panels: int,
    step: int,
    members: Members,
    scales: Floats,
    centre: float,
    heavy: bool,
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    total: Floats,
    room: Room,
    rule: Rule,
    fits: Fits,
) -> float:
    """Add up all rows of a point; returns the mass of the mixture."""
    count = len(members.weights)
    mass = 0.0
    for i in range(count):
        room.below[i] = room.above[i] = 0.0
    if heavy:
        mass = _beyond(edges[0], edges[panels], members, scales, centre, total, room, fits)
    middle = 0
    while middle < panels and edges[middle + 1] <= centre:
        middle += 1
    for first in range(0, middle, step):
        mass += _block(
            edges, first, min(first + step, middle), True, members, scales, centre, crps, quadratic, logs, total, room, rule, fits
        )
    for last in range(panels, middle, -step):
        mass += _block(
            edges, max(last - step, middle), last, False, members, scales, centre, crps, quadratic, logs, total, room, rule, fits
        )
    for s in range(len(scales)):
        total[QUADRATIC_ALONE + s] = -INVERSE_SQRT_4PI / scales[s]
    total[QUADRATIC_OWN], total[LOG_OWN] = -total[QUADRATIC_OWN], -total[LOG_OWN]
    for row in range(LOG_BETWEEN, len(total)):
        if total[row] > NEVER:
            total[row] = math.inf
    return mass


@inlined
def _beyond(
    low: float, high: float, members: Members, scales: Floats, centre: float, total: Floats, room: Room, fits: Fits
) -> float:
    """What power laws hold outside the panels, as in `Family.beyond`; returns its probability."""
    mass = 0.0
    for i in range(len(members.weights)):
        room.node[0], room.node[1] = low, high
        levels_at(members.address, room.node[2:], room.node, 2, members.numbers[i])
        for side in range(2):
            exponent, end = members.tails[i, 1 + side], room.node[side]
            if exponent >= STEEP:
                continue
            distance, sign = abs(end - members.tails[i, 0]), 2.0 * side - 1.0
            held = exp(room.node[2 + side], fits) * distance / exponent
            share = members.weights[i] * held
            first = distance / (exponent - 1.0) if exponent > 1.0 else math.inf
            second = distance * distance / (exponent - 2.0) if exponent > 2.0 else math.inf
            total[CRPS_OWN] += share * first
            for s in range(len(scales)):
                squares = (end - centre) ** 2 + 2.0 * second + 2.0 * sign * (members.tails[i, 0] - centre) * first
                total[LOG_FORWARD + s] += 0.5 * share * squares / (scales[s] * scales[s])
            mass += share
            (room.below if side == 0 else room.above)[i] = held
    return mass


@inlined
def _block(
    edges: Floats,
    first: int,
    last: int,
    upward: bool,
    members: Members,
    scales: Floats,
    centre: float,
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    total: Floats,
    room: Room,
    rule: Rule,
    fits: Fits,
) -> float:
    """Add what some neighbouring panels hold to all rows; returns the mass of the mixture there."""
    node, size = room.node, (last - first) * PER_PANEL
    # The first nodes of all panels, then the second ones: sums within panels then run along panels.
    width = last - first
    for k in range(width):
        node[LENGTH + k] = edges[first + k + 1] - edges[first + k]
    for q in range(PER_PANEL):
        for k in range(width):
            node[Y + q * width + k] = edges[first + k] + node[LENGTH + k] * rule.nodes[q]
            node[WEIGHT + q * width + k] = node[LENGTH + k] * rule.weights[q]
    for i in range(len(members.weights)):
        level = rows(room.levels, i, NODES)
        levels_at(members.address, level, node, size, members.numbers[i])  # Y is the first row
        for q in range(size):
            level[q] = level[q] if level[q] > LOWEST_LEVEL else LOWEST_LEVEL
    if logs is not None:
        _densities_by_level(size, members, room, fits)
    else:
        _densities(size, members, room, fits)
    mass = _dot(node, MEAN, size)
    if crps is not None:
        _accumulate(width, upward, members, room, rule)
        _tails(size, members, room)
        total[CRPS_OWN] += _dot(node, TAIL_OWN, size)
        total[CRPS_BETWEEN] += _dot(node, TAIL_SQUARES, size)
    if quadratic is not None:
        _squares(size, members, room)
        total[QUADRATIC_OWN] += _dot(node, OWN, size)
        total[QUADRATIC_BETWEEN] += _dot(node, SQUARES, size)
    if logs is not None:
        _entropies(size, members, room, fits)
        total[LOG_OWN] += _dot(node, ENTROPY, size)
        total[LOG_BETWEEN] += _dot(node, TO_MEMBERS, size)
        total[LOG_BACK] += _dot(node, TO_MIXTURE, size)
    for s in range(len(scales)):
        _surrogate(size, upward, scales[s], centre, s, members, crps, quadratic, logs, total, room, fits)
    return mass


@reduction
def _dot(node: Floats, row: int, size: int) -> float:
    """The integral of a row over the nodes."""
    values, weights, total = node[row : row + size], node[WEIGHT : WEIGHT + size], 0.0
    for q in range(size):
        total += weights[q] * values[q]
    return total


@inlined
def _densities(size: int, members: Members, room: Room, fits: Fits) -> None:
    """The members' densities and the mixture's."""
    node = room.node
    for q in range(size):
        node[MEAN + q] = 0.0
    for i in range(len(members.weights)):
        weight, level, density = members.weights[i], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
        for q in range(size):
            density[q] = exp(level[q], fits)
            node[MEAN + q] += weight * density[q]


@inlined
def _densities_by_level(size: int, members: Members, room: Room, fits: Fits) -> None:
    """The same, and the mixture's log density, relative to the highest level so that nothing underflows."""
    node = room.node
    for q in range(size):
        node[TOP + q], node[MEAN + q] = -math.inf, 0.0
    for i in range(len(members.weights)):
        log_weight, level = members.log_weights[i], rows(room.levels, i, NODES)
        for q in range(size):
            node[TOP + q] = max(node[TOP + q], level[q] + log_weight)
    for i in range(len(members.weights)):
        log_weight, level, density = members.log_weights[i], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
        for q in range(size):
            density[q] = exp(level[q] + log_weight - node[TOP + q], fits)
            node[MEAN + q] += density[q]
    for q in range(size):
        node[LEVEL + q] = node[TOP + q] + log(node[MEAN + q], fits)
        node[TOP + q] = exp(node[TOP + q], fits)
        node[MEAN + q] *= node[TOP + q]
    for i in range(len(members.weights)):
        inverse, density = 1.0 / members.weights[i], rows(room.densities, i, NODES)
        for q in range(size):
            density[q] *= node[TOP + q] * inverse


@inlined
def _accumulate(width: int, upward: bool, members: Members, room: Room, rule: Rule) -> None:
    """The members' probabilities on the outer side of each node of so many panels."""
    node, (matrix, reached) = room.node, (rule.from_left, room.below) if upward else (rule.from_right, room.above)
    for i in range(len(members.weights)):
        density, probability = rows(room.densities, i, NODES), rows(room.probabilities, i, NODES)
        values = node[SPREAD : SPREAD + NODES]
        for q in range(PER_PANEL):
            row, some = rows(values, q, BLOCK_PANELS), density[q * width : (q + 1) * width]
            for k in range(width):
                row[k] = some[k]
        _sum_over_nodes(values, rule.weights, node[INSIDE : INSIDE + width])
        held = reached[i]
        for j in range(width):
            k = j if upward else width - 1 - j
            node[HELD + k] = held
            held += node[LENGTH + k] * node[INSIDE + k]
        reached[i] = held
        for q in range(PER_PANEL):
            inside = probability[q * width : (q + 1) * width]
            _sum_over_nodes(values, matrix[q], inside)
            for k in range(width):
                inside[k] = node[HELD + k] + node[LENGTH + k] * inside[k]


@inlined
def _sum_over_nodes(values: Floats, weights: Floats, out: Floats) -> None:
    """The weighted sum over the nodes of each panel, written out so that it runs along the panels."""
    a, b, c, d, e, f = weights[0], weights[1], weights[2], weights[3], weights[4], weights[5]
    g, h, i, j, m, n = weights[6], weights[7], weights[8], weights[9], weights[10], weights[11]
    for k in range(len(out)):
        low = a * values[k] + b * values[P1 + k] + c * values[P2 + k] + d * values[P3 + k]
        middle = e * values[P4 + k] + f * values[P5 + k] + g * values[P6 + k] + h * values[P7 + k]
        high = i * values[P8 + k] + j * values[P9 + k] + m * values[P10 + k] + n * values[P11 + k]
        out[k] = low + middle + high


@inlined
def _tails(size: int, members: Members, room: Room) -> None:
    """F (1 - F) of the members, and the variance of F between them."""
    node = room.node
    for q in range(size):
        node[MEAN_TAIL + q] = node[TAIL_SQUARES + q] = node[TAIL_OWN + q] = 0.0
    for i in range(len(members.weights)):
        weight, probability = members.weights[i], rows(room.probabilities, i, NODES)
        for q in range(size):
            node[MEAN_TAIL + q] += weight * probability[q]
            node[TAIL_OWN + q] += weight * probability[q] * (1.0 - probability[q])
    for i in range(len(members.weights)):
        weight, probability = members.weights[i], rows(room.probabilities, i, NODES)
        for q in range(size):
            gap = probability[q] - node[MEAN_TAIL + q]
            node[TAIL_SQUARES + q] += weight * gap * gap


@inlined
def _squares(size: int, members: Members, room: Room) -> None:
    """Squared densities of the members, and the variance of the density between them."""
    node = room.node
    for q in range(size):
        node[SQUARES + q] = node[OWN + q] = 0.0
    for i in range(len(members.weights)):
        weight, density = members.weights[i], rows(room.densities, i, NODES)
        for q in range(size):
            gap = density[q] - node[MEAN + q]
            node[SQUARES + q] += weight * gap * gap
            node[OWN + q] += weight * density[q] * density[q]


@inlined
def _entropies(size: int, members: Members, room: Room, fits: Fits) -> None:
    """p log p of the members, and their relative entropies to and from the mixture."""
    node = room.node
    for q in range(size):
        node[ENTROPY + q] = node[TO_MEMBERS + q] = node[TO_MIXTURE + q] = 0.0
    for i in range(len(members.weights)):
        weight, level, density = members.weights[i], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
        for q in range(size):
            one, other = _entropy_densities(level[q], node[LEVEL + q], max(density[q], node[MEAN + q]), fits)
            node[ENTROPY + q] += weight * density[q] * level[q]
            node[TO_MEMBERS + q] += weight * one
            node[TO_MIXTURE + q] += weight * other


@inlined
def _entropy_densities(log_p: float, log_q: float, larger: float, fits: Fits) -> tuple[float, float]:
    """p log(p/q) - p + q and q log(q/p) - q + p, which are nowhere negative, from the larger of the densities."""
    ratio = log_p - log_q
    size = abs(ratio)
    power, rest = exp_parts(-size, fits)
    decay = power * rest + (power - 1.0)  # exp(-size) - 1
    of_larger = size + decay
    # 1 - (1 + size) exp(-size)
    of_smaller = -of_larger - size * decay if size < WIDE_APART else 1.0
    one, other = larger * of_larger, larger * of_smaller
    return (one, other) if ratio > 0.0 else (other, one)


@inlined
def _surrogate(
    size: int,
    upward: bool,
    scale: float,
    centre: float,
    which: int,
    members: Members,
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    total: Floats,
    room: Room,
    fits: Fits,
) -> None:
    """Add what a surrogate's Gaussian needs of these nodes."""
    node, inverse, height = room.node, 1.0 / scale, -LOG_SQRT_2PI - log(scale, fits)
    if crps is not None:
        for q in range(size):
            z = (node[Y + q] - centre) * inverse
            tail = exp(-0.5 * z * z, fits) * upper_tail_ratio(abs(z), fits)
            outside = (z > 0.0) == upward
            gap = (1.0 - tail if outside else tail) - node[MEAN_TAIL + q]
            node[SCORE + q] = gap * gap
        total[CRPS_SURROGATE + which] += _dot(node, SCORE, size)
    # From here on TOP holds the surrogate's log density and SQUARES its density: nothing needs what was there.
    for q in range(size):
        z = (node[Y + q] - centre) * inverse
        node[TOP + q] = height - 0.5 * z * z
        node[SQUARES + q] = exp(node[TOP + q], fits)
    if quadratic is not None:
        for q in range(size):
            gap = node[SQUARES + q] - node[MEAN + q]
            node[SCORE + q], node[SCORE_2 + q] = gap * gap, node[SQUARES + q] * node[MEAN + q]
        total[QUADRATIC_SURROGATE + which] += _dot(node, SCORE, size)
        total[QUADRATIC_OVERLAP + which] += _dot(node, SCORE_2, size)
    if logs is not None:
        for q in range(size):
            larger = max(node[SQUARES + q], node[MEAN + q])
            node[SCORE + q], node[SCORE_2 + q] = _entropy_densities(node[LEVEL + q], node[TOP + q], larger, fits)
        total[LOG_FORWARD + which] += _dot(node, SCORE, size)
        total[LOG_BACKWARD + which] += _dot(node, SCORE_2, size)
        for q in range(size):
            node[SCORE + q] = 0.0
        for i in range(len(members.weights)):
            weight, level, density = members.weights[i], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
            for q in range(size):
                larger = max(node[SQUARES + q], density[q])
                node[SCORE + q] += weight * _entropy_densities(node[TOP + q], level[q], larger, fits)[0]
        total[LOG_OF_MEMBERS + which] += _dot(node, SCORE, size)

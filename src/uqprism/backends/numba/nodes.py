"""One pass over the nodes for members of any family: every row of `backends.rows`, point by point.

A point is planned as in `uqprism.families.panels`. Its panels are taken in blocks whose members' values stay in a cache: first
all below the centre from left to right, then the others from right to left, so that distribution functions are summed up from
the nearer end and keep their digits in both tails. Where a form states no probability, it is summed up: within a panel, the
integral of the polynomial through the density's nodes is a product with a matrix.

Vector instructions run along the nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import Floats, borrowing, kernel, reduction, rows
from uqprism.backends.numba.forms import BLOCK_PANELS, NODES, Addresses, values_at
from uqprism.backends.numba.planning import (
    MAX_KINKS,
    MAX_PANELS,
    Members,
    Plan,
    fill_edges,
    find_powers,
    least,
    log_length,
    part_log_weight,
    values_of_part,
)
from uqprism.backends.numba.special import exp, exp_parts, expm1, log, upper_tail_ratio
from uqprism.backends.numba.sums import size_below
from uqprism.backends.rows import ROW, ROWS, cumulative_rule
from uqprism.backends.sums import SUM_ROWS, Sums
from uqprism.families.base import STEEP
from uqprism.families.lattice import PER_PANEL
from uqprism.families.quadrature import gauss_legendre

DONE, DECLINED = 0, 1
LOWEST_LEVEL = -1e200  # stands for the logarithm of zero
NEVER = 1e20  # a relative entropy above this is infinite: one density is zero where the other is not
WIDE_APART = 40.0  # nats above which the smaller of two densities is nothing beside the larger
NARROW_SURROGATE = 2.0  # steps
FEW_STEPS = (
    8.0,
    1000.0,
)  # from which 4 and 2 nodes within a step reach what 12 do: errors fall with its share's 8th and 4th power
SQRT_PI, INVERSE_SQRT_2PI = math.sqrt(math.pi), 1.0 / math.sqrt(2.0 * math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11 = (np.uint64(node * BLOCK_PANELS) for node in range(1, PER_PANEL))
PANELS, ONE = np.uint64(BLOCK_PANELS), np.uint64(1)
WINDOW_PANELS = 8  # in one block where members have windows
CACHED = 2**14  # values of one kind for all members in one block

(
    Y,
    SHARED,  # by all members: two rows, which `Addresses.log_density` expects here
    _,
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
    SLOPE,
) = (row * NODES for row in range(18))
NODE_ROWS = 18
LENGTH, HELD = (np.uint64(NODE_ROWS * NODES + row * BLOCK_PANELS) for row in range(2))  # numbers of panels, after those of nodes
ROOM = NODE_ROWS * NODES + 2 * BLOCK_PANELS

CRPS_OWN, CRPS_BETWEEN = ROW["crps.bayes.members"], ROW["crps.excess.mixture.members"]
QUADRATIC_OWN, QUADRATIC_BETWEEN = ROW["quadratic.bayes.members"], ROW["quadratic.excess.mixture.members"]
LOG_OWN, LOG_BETWEEN, LOG_BACK = (
    ROW[f"log.{name}"] for name in ("bayes.members", "excess.mixture.members", "excess.members.mixture")
)
# Of matched; those of pooled follow each.
CRPS_SURROGATE, QUADRATIC_SURROGATE = ROW["crps.excess.matched.mixture"], ROW["quadratic.excess.matched.mixture"]
QUADRATIC_OVERLAP = ROW["quadratic.overlap.matched"]
LOG_FORWARD, LOG_BACKWARD = ROW["log.excess.matched.mixture"], ROW["log.excess.mixture.matched"]
LOG_OF_MEMBERS = ROW["log.excess.members.matched"]


class Rule(NamedTuple):
    """Nodes and weights on (0, 1), and those of the integrals to both ends (row 0) and from either end to each node."""

    nodes: Floats
    weights: Floats
    from_left: Floats
    from_right: Floats

    @staticmethod
    def make() -> Rule:
        """The rule of the panels."""
        weights, cumulative = gauss_legendre(PER_PANEL)[1], cumulative_rule(PER_PANEL)
        whole = [np.concatenate([weights[None], to_nodes]) for to_nodes in (cumulative, cumulative[::-1, ::-1])]
        return Rule(*gauss_legendre(PER_PANEL), *whole)


class Room(NamedTuple):
    """Working arrays: a row of numbers per node, and the members' levels, densities and probabilities at the nodes.

    `spread` holds one member's densities, the nodes of all panels at fixed distances, and `sums` their integrals. Rows of levels,
    densities and probabilities are those of the `active` members, of which there are as many as `Here` says.
    """

    node: Floats
    spread: Floats
    sums: Floats
    levels: Floats
    densities: Floats
    probabilities: Floats
    below: Floats
    above: Floats
    active: np.ndarray[Any, np.dtype[np.int64]]


class Here(NamedTuple):
    """What the members are to one block of nodes.

    Attributes:
        active: how many have a density there, the first of `Room.active`.
        certain: the weight of all others whose probability on the outer side is one.
        absent: the weight of all others.
    """

    active: int
    certain: float
    absent: float


@kernel
def integrate(
    out: Floats,
    mass: Floats,
    status: np.ndarray[Any, np.dtype[np.int8]],
    places: tuple[Floats, Floats, Floats, Floats, Floats],
    sharp: np.ndarray[Any, np.dtype[np.bool_]],
    addresses: Addresses,
    numbers: Floats,
    parts: int,
    tails: Floats,
    atoms: Floats,
    windows: Floats,
    weights: Floats,
    scales: Floats,
    centres: Floats,
    ends: tuple[Floats, Floats],
    outside: tuple[Floats, Floats],
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    bends: bool,
    rule: Rule,
    sums: Sums | None,
    fits: Fits,
) -> None:
    """Add what lies between two ends to the rows of every point that is not declined already.

    Args:
        out: (rows, points).
        mass: (points,), to which the probability of the mixture is added.
        status: in and out, (points,): points may become DECLINED.
        places: locations, widths, lows, highs and powers, (points, places) each, as in `panels.Places`; (points, 0) for powers if
            there are none, or no bound at zero.
        sharp: (places,).
        addresses: of the members' compiled functions.
        numbers: (points, members, numbers), of the log density.
        parts: how many components each member has.
        tails: (points, components, 3), as in `Members`; with no components if no tail is a power law.
        atoms: (points, members, 4), as in `Members`; with no members if there are none.
        windows: (points, members, 2), as in `Members`; with no members if all count everywhere.
        weights: (members,), positive.
        scales: (points, 2), of matched and pooled; (points, 0) if they are not wanted.
        centres: (points,), their mean, from which probabilities are counted to both sides.
        ends: (points,) each, outside which nothing is taken.
        outside: (points, members) each, the probabilities below and above the ends; (points, 0) where both are nothing.
        crps: True if rows of CRPS are wanted, else None, and then they are not compiled.
        quadratic: likewise.
        logs: likewise.
        bends: whether the mixture's log density may bend.
        rule: see there.
        sums: what takes its place where members are counts 0, 1 ... and integrals are sums.
        fits: coefficients.
    """
    count, n_places, heavy, held = numbers.shape[1], len(sharp), tails.shape[1] > 0, atoms.shape[1] > 0
    room_for = n_places + MAX_KINKS + parts * count
    log_weights = np.log(weights)
    plan = Plan(
        np.empty(room_for), np.empty(room_for), np.zeros(room_for), np.zeros(2), np.empty(n_places),
        np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1),
        np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1), np.empty(MAX_PANELS + 1),
    )  # fmt: skip
    room = Room(
        np.empty(ROOM), np.zeros(NODES), np.empty(NODES + BLOCK_PANELS),
        np.empty(count * NODES), np.empty(count * NODES), np.empty(count * NODES),
        np.empty(count), np.empty(count), np.arange(count),
    )  # fmt: skip
    step = max(1, min(BLOCK_PANELS, CACHED // (count * PER_PANEL)))
    if windows.shape[1] > 0:
        step = min(step, WINDOW_PANELS)
    total = np.empty(len(ROWS))
    for p in range(len(status)):
        if status[p] != DONE:
            continue
        members = Members(
            addresses, numbers[p], tails[p if heavy else 0], atoms[p if held else 0], weights, log_weights, parts,
            windows[p if windows.shape[1] > 0 else 0],
        )  # fmt: skip
        corners = 0
        for i in range(n_places):
            plan.location[i], plan.width[i] = places[0][p, i], places[1][p, i]
            if sharp[i]:
                plan.corner[corners] = places[0][p, i]
                corners += 1
        if places[4].shape[1] > 0:
            find_powers(plan, places[4][p], places[2][p])
        low, high = max(least(places[2][p]), ends[0][p]), min(-least(-places[3][p]), ends[1][p])
        if sums is not None:
            low = 0.0
        if low >= high:
            continue
        panels = fill_edges(plan, members, n_places, corners, low, high, heavy, logs is not None and bends, sums, room.node)
        if panels < 0:
            status[p] = DECLINED
            continue
        total[:] = 0.0
        powers = plan.decay[0] > 0.0
        for i in range(count):
            room.below[i] = room.above[i] = 0.0
            if outside[0].shape[1] > 0:
                room.below[i], room.above[i] = outside[0][p, i], outside[1][p, i]
        mass[p] += _pass(
            plan.edges,
            panels,
            step,
            powers,
            members,
            scales[p],
            centres[p],
            heavy,
            crps,
            quadratic,
            logs,
            total,
            room,
            rule,
            sums,
            fits,
        )
        for row in range(len(ROWS)):
            out[row, p] += total[row]


@borrowing
def _pass(
    edges: Floats,
    panels: int,
    step: int,
    powers: bool,
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
    sums: Sums | None,
    fits: Fits,
) -> float:
    """Add up all rows of a point; returns the mass of the mixture."""
    mass = 0.0
    if heavy:
        mass = _beyond(edges[0], edges[panels], members, scales, centre, total, room, fits)
    middle = 0
    while middle < panels and edges[middle + 1] <= centre:
        middle += 1
    for first in range(0, middle, step):
        mass += _block(
            edges,
            first,
            min(first + step, middle),
            True,
            powers,
            members,
            scales,
            centre,
            crps,
            quadratic,
            logs,
            total,
            room,
            rule,
            sums,
            fits,
        )
    for last in range(panels, middle, -step):
        mass += _block(
            edges,
            max(last - step, middle),
            last,
            False,
            powers,
            members,
            scales,
            centre,
            crps,
            quadratic,
            logs,
            total,
            room,
            rule,
            sums,
            fits,
        )
    if _only_probabilities(members, quadratic, logs):
        mass += _held(edges, middle, panels, members, room)
    if sums is not None and crps is not None:
        for s in range(len(scales)):
            total[CRPS_SURROGATE + s] += _outside_counts(scales[s], centre, total, fits)
    total[QUADRATIC_OWN], total[LOG_OWN] = -total[QUADRATIC_OWN], -total[LOG_OWN]
    for row in range(LOG_BETWEEN, len(total)):
        if total[row] > NEVER:
            total[row] = math.inf
    return mass


@borrowing
def _beyond(
    low: float, high: float, members: Members, scales: Floats, centre: float, total: Floats, room: Room, fits: Fits
) -> float:
    """What power laws hold outside the panels, as in `Family.beyond`; returns its probability."""
    mass = 0.0
    for component in range(len(members.weights) * members.parts):
        i = component // members.parts
        room.node[0], room.node[1] = low, high
        values_of_part(members, component, room.node[2:], room.node, 2)
        own = exp(part_log_weight(members, component) - members.log_weights[i], fits)
        for side in range(2):
            exponent, end = members.tails[component, 1 + side], room.node[side]
            if exponent >= STEEP:
                continue
            distance, sign = abs(end - members.tails[component, 0]), 2.0 * side - 1.0
            held = own * exp(room.node[2 + side], fits) * distance / exponent
            share = members.weights[i] * held
            first = distance / (exponent - 1.0) if exponent > 1.0 else math.inf
            second = distance * distance / (exponent - 2.0) if exponent > 2.0 else math.inf
            total[CRPS_OWN] += share * first
            for s in range(len(scales)):
                squares = (end - centre) ** 2 + 2.0 * second + 2.0 * sign * (members.tails[component, 0] - centre) * first
                total[LOG_FORWARD + s] += 0.5 * share * squares / (scales[s] * scales[s])
            mass += share
            (room.below if side == 0 else room.above)[i] += held
    return mass


@borrowing
def _block(
    edges: Floats,
    first: int,
    last: int,
    upward: bool,
    powers: bool,
    members: Members,
    scales: Floats,
    centre: float,
    crps: bool | None,
    quadratic: bool | None,
    logs: bool | None,
    total: Floats,
    room: Room,
    rule: Rule,
    sums: Sums | None,
    fits: Fits,
) -> float:
    """Add what some neighbouring panels hold to all rows; returns the mass of the mixture there."""
    # The first nodes of all panels, then the second ones: sums within panels then run along panels.
    node, panels = room.node, last - first
    # An even number of panels fills vector registers: one that is there for this has no length, and its nodes in the middle of
    # its neighbour.
    width = panels + (panels & 1) if sums is None else panels
    size = width * PER_PANEL
    for k in range(width):
        low, high = edges[min(first + k, last - 1)], edges[min(first + k + 1, last)]
        if k == panels:
            low = high = 0.5 * (low + high)
        node[LENGTH + np.uint64(k)] = high - low
        if sums is not None:
            index = size_below(sums.sizes, high - low)
            node[HELD + np.uint64(k)] = index
            for q in range(PER_PANEL):
                node[Y + q * width + k] = low + sums.nodes[index, q]
                node[WEIGHT + q * width + k] = sums.weights[index, q]
        else:
            _place(k, width, low, high, powers, node, rule, fits)
    mass = 0.0
    here = _present(edges[first], edges[last], upward, members, room)
    if not _only_probabilities(members, quadratic, logs):
        _levels(size, here.active, members, room)
        if logs is not None:
            _densities_by_level(size, here.active, members, room, fits)
        else:
            _densities(size, here.active, members, room, fits)
        mass = _dot(node, MEAN, size)
    if crps is not None:
        if sums is not None:
            _add_up(width, upward, here.active, room, sums)
        else:
            _probabilities(size, width, upward, members, room, rule)
        _tails(size, here, members, room)
        total[CRPS_OWN] += _dot(node, TAIL_OWN, size)
        total[CRPS_BETWEEN] += _dot(node, TAIL_SQUARES, size)
    if quadratic is not None:
        _squares(size, here, members, room, sums, fits)
        total[QUADRATIC_OWN] += _dot(node, OWN, size)
        total[QUADRATIC_BETWEEN] += _dot(node, SQUARES, size)
    if logs is not None:
        _entropies(size, here, members, room, fits)
        total[LOG_OWN] += _dot(node, ENTROPY, size)
        total[LOG_BETWEEN] += _dot(node, TO_MEMBERS, size)
        total[LOG_BACK] += _dot(node, TO_MIXTURE, size)
    for s in range(len(scales)):
        if sums is not None:
            if crps is not None:
                _surrogate_of_counts(size, upward, scales[s], centre, s, total, room, sums, fits)
            continue
        _surrogate(size, upward, scales[s], centre, s, members, crps, quadratic, logs, total, room, fits)
    return mass


@borrowing
def _place(k: int, width: int, low: float, high: float, powers: bool, node: Floats, rule: Rule, fits: Fits) -> None:
    """The nodes of a panel: evenly, or by the logarithm of the distance from zero, of which `SLOPE` is the inverse derivative."""
    length = log_length(low, high) if powers else 0.0
    if length > 0.0:
        node[LENGTH + np.uint64(k)] = length
        for q in range(PER_PANEL):
            y = low * exp(length * (rule.nodes[q] if low > 0.0 else -rule.nodes[q]), fits)
            node[Y + q * width + k], node[SLOPE + q * width + k] = y, abs(y)
            node[WEIGHT + q * width + k] = abs(y) * length * rule.weights[q]
        return
    for q in range(PER_PANEL):
        node[Y + q * width + k], node[SLOPE + q * width + k] = low + (high - low) * rule.nodes[q], 1.0
        node[WEIGHT + q * width + k] = (high - low) * rule.weights[q]


@borrowing
def _only_probabilities(members: Members, quadratic: bool | None, logs: bool | None) -> bool:
    """Whether distribution functions are all that is wanted, and nothing must be integrated for them."""
    return members.addresses.below != 0 and quadratic is None and logs is None


@borrowing
def _held(edges: Floats, middle: int, panels: int, members: Members, room: Room) -> float:
    """The mass of the mixture within the panels, by distribution functions."""
    node, mass = room.node, 0.0
    for i in range(len(members.weights)):
        node[0], node[1], node[2] = edges[0], edges[middle], edges[panels]
        values_at(members.addresses.below, node[4:], node, 2, members.numbers[i])
        values_at(members.addresses.above, node[6:], node[1:], 2, members.numbers[i])
        mass += members.weights[i] * ((node[5] - node[4]) + (node[6] - node[7]))
    return mass


@borrowing
def _present(low: float, high: float, upward: bool, members: Members, room: Room) -> Here:
    """Find the members whose windows reach into a block."""
    total, count, certain, absent = len(members.weights), 0, 0.0, 0.0
    if len(members.windows) == 0:
        return Here(total, 0.0, 0.0)
    for i in range(total):
        if members.windows[i, 0] <= high and members.windows[i, 1] >= low:
            room.active[count] = i
            count += 1
        elif (members.windows[i, 1] < low) == upward:
            certain += members.weights[i]
        else:
            absent += members.weights[i]
    return Here(count, certain, absent)


@borrowing
def _levels(size: int, count: int, members: Members, room: Room) -> None:
    """The members' log densities, finite."""
    if members.addresses.shared != 0 and count > 0:
        values_at(members.addresses.shared, room.node[SHARED:], room.node, size, members.numbers[0])
    for i in range(count):
        level = rows(room.levels, i, NODES)
        values_at(members.addresses.log_density, level, room.node, size, members.numbers[room.active[i]])  # Y is the first row
        for q in range(size):
            level[q] = level[q] if level[q] > LOWEST_LEVEL else LOWEST_LEVEL


@reduction
def _dot(node: Floats, row: int, size: int) -> float:
    """The integral of a row over the nodes."""
    values, weights, total = node[row : row + size], node[WEIGHT : WEIGHT + size], 0.0
    for q in range(size):
        total += weights[q] * values[q]
    return total


@borrowing
def _densities(size: int, count: int, members: Members, room: Room, fits: Fits) -> None:
    """The members' densities and the mixture's."""
    node = room.node
    for q in range(size):
        node[MEAN + q] = 0.0
    for i in range(count):
        weight, level, density = members.weights[room.active[i]], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
        for q in range(size):
            density[q] = exp(level[q], fits)
            node[MEAN + q] += weight * density[q]


@borrowing
def _densities_by_level(size: int, count: int, members: Members, room: Room, fits: Fits) -> None:
    """The same, and the mixture's log density, relative to the highest level so that nothing underflows."""
    node = room.node
    for q in range(size):
        node[TOP + q], node[MEAN + q] = -math.inf, 0.0
    if count == 0:
        for q in range(size):
            node[LEVEL + q] = LOWEST_LEVEL
        return
    for i in range(count):
        log_weight, level = members.log_weights[room.active[i]], rows(room.levels, i, NODES)
        for q in range(size):
            node[TOP + q] = max(node[TOP + q], level[q] + log_weight)
    for i in range(count):
        log_weight, level, density = (
            members.log_weights[room.active[i]],
            rows(room.levels, i, NODES),
            rows(room.densities, i, NODES),
        )
        for q in range(size):
            density[q] = exp(level[q] + log_weight - node[TOP + q], fits)
            node[MEAN + q] += density[q]
    for q in range(size):
        node[LEVEL + q] = node[TOP + q] + log(node[MEAN + q], fits)
        node[TOP + q] = exp(node[TOP + q], fits)
        node[MEAN + q] *= node[TOP + q]
    for i in range(count):
        inverse, density = 1.0 / members.weights[room.active[i]], rows(room.densities, i, NODES)
        for q in range(size):
            density[q] *= node[TOP + q] * inverse


@borrowing
def _probabilities(size: int, width: int, upward: bool, members: Members, room: Room, rule: Rule) -> None:
    """The members' probabilities on the outer side of each node."""
    if members.addresses.below == 0:
        _accumulate(width, upward, members, room, rule)
        if len(members.atoms):
            _add_atoms(size, upward, members, room)
        return
    address = members.addresses.below if upward else members.addresses.above
    for i in range(len(members.weights)):
        values_at(address, rows(room.probabilities, i, NODES), room.node, size, members.numbers[i])


@borrowing
def _add_atoms(size: int, upward: bool, members: Members, room: Room) -> None:
    """Add the probabilities of the bounds on the outer side of each node."""
    node = room.node
    for i in range(len(members.weights)):
        probability = rows(room.probabilities, i, NODES)
        for side in range(2):
            bound, held = members.atoms[i, 2 * side], members.atoms[i, 2 * side + 1]
            for q in range(size):
                passed = node[Y + q] > bound if upward else node[Y + q] < bound
                probability[q] += held if passed else 0.0


@borrowing
def _accumulate(width: int, upward: bool, members: Members, room: Room, rule: Rule) -> None:
    """The same for so many panels, as running integrals of the densities."""
    node, (matrix, reached) = room.node, (rule.from_left, room.below) if upward else (rule.from_right, room.above)
    count = np.uint64(width)
    for i in range(len(members.weights)):
        # Positions that cannot be negative, instead of views, whose making would take longer than the sums.
        first = np.uint64(i * NODES)
        for node_of_panel in range(PER_PANEL):
            q = np.uint64(node_of_panel)
            for panel in range(width):
                k = np.uint64(panel)
                room.spread[q * PANELS + k] = room.densities[first + q * count + k] * node[np.uint64(SLOPE) + q * count + k]
        for row in range(1 + PER_PANEL):
            _sum_over_nodes(room.spread, matrix, row, room.sums)
        held = reached[i]
        for j in range(width):
            k = np.uint64(j if upward else width - 1 - j)
            node[HELD + k] = held
            held += node[LENGTH + k] * room.sums[k]
        reached[i] = held
        for node_of_panel in range(PER_PANEL):
            q = np.uint64(node_of_panel)
            for panel in range(width):
                k = np.uint64(panel)
                inside = node[LENGTH + k] * room.sums[(q + ONE) * PANELS + k]
                room.probabilities[first + q * count + k] = node[HELD + k] + inside


@borrowing
def _add_up(width: int, upward: bool, count: int, room: Room, sums: Sums) -> None:
    """The probabilities of counts up to each node, or of those beyond it, in so many panels of the sizes in HELD."""
    node, (matrices, reached) = room.node, (sums.from_left, room.below) if upward else (sums.from_right, room.above)
    for i in range(count):
        density, probability = rows(room.densities, i, NODES), rows(room.probabilities, i, NODES)
        held = reached[room.active[i]]
        for j in range(width):
            k = j if upward else width - 1 - j
            index = int(node[HELD + np.uint64(k)])
            if index == 0:  # one by one
                for step in range(PER_PANEL):
                    q = (step if upward else PER_PANEL - 1 - step) * width + k
                    before = held
                    held += density[q]
                    probability[q] = held if upward else before
                continue
            for row in range(SUM_ROWS):
                room.sums[row] = 0.0
            for q in range(PER_PANEL):
                value = density[q * width + k]
                for row in range(SUM_ROWS):
                    room.sums[row] += matrices[index, q, row] * value
            for q in range(PER_PANEL):
                probability[q * width + k] = held + room.sums[1 + q]
            held += room.sums[0]
        reached[room.active[i]] = held


@borrowing
def _surrogate_of_counts(
    size: int, upward: bool, scale: float, centre: float, which: int, total: Floats, room: Room, sums: Sums, fits: Fits
) -> None:
    """Add the squared distance of a surrogate's distribution function from the mixture's steps, each from its count to the next.

    For surrogates that are hardly wider than a step it is a mean distance less two others; see `_outside_counts` for these.
    """
    node, inverse = room.node, 1.0 / scale
    if scale < NARROW_SURROGATE:
        for q in range(size):
            z = abs(node[Y + q] - centre) * inverse
            decay = exp(-0.5 * z * z, fits)
            beyond = decay * (INVERSE_SQRT_2PI - z * upper_tail_ratio(z, fits))
            node[SCORE + q] = node[MEAN + q] * scale * (z + 2.0 * beyond)
        total[CRPS_SURROGATE + which] += _dot(node, SCORE, size)
        return
    for q in range(size):
        node[SCORE + q] = 0.0
    few = 0 if scale < FEW_STEPS[0] else 1 if scale < FEW_STEPS[1] else 2
    for part in range(sums.parts[few]):
        for q in range(size):
            z = (node[Y + q] + sums.places[few, part] - centre) * inverse
            tail = exp(-0.5 * z * z, fits) * upper_tail_ratio(abs(z), fits)
            outside = (z > 0.0) == upward
            gap = (1.0 - tail if outside else tail) - node[MEAN_TAIL + q]
            node[SCORE + q] += sums.shares[few, part] * gap * gap
    total[CRPS_SURROGATE + which] += _dot(node, SCORE, size)


@borrowing
def _outside_counts(scale: float, centre: float, total: Floats, fits: Fits) -> float:
    """What is left to add to a surrogate's distance from counts: what lies below zero, or the distances within each."""
    if scale < NARROW_SURROGATE:
        return -(total[CRPS_OWN] + total[CRPS_BETWEEN]) - scale / SQRT_PI
    z = centre / scale
    ratio = upper_tail_ratio(z, fits)
    rest = ratio * (2.0 * INVERSE_SQRT_2PI - z * ratio) - upper_tail_ratio(math.sqrt(2.0) * z, fits) / SQRT_PI
    return scale * exp(-z * z, fits) * rest


@borrowing
def _sum_over_nodes(values: Floats, matrix: Floats, row: int, sums: Floats) -> None:
    """The weighted sum over the nodes of each panel, with the weights of one row of the matrix.

    Written out, and for as many panels as there is room for: only loops of known length are fast here.
    """
    a, b, c, d, e, f = matrix[row, 0], matrix[row, 1], matrix[row, 2], matrix[row, 3], matrix[row, 4], matrix[row, 5]
    g, h, i, j, m, n = matrix[row, 6], matrix[row, 7], matrix[row, 8], matrix[row, 9], matrix[row, 10], matrix[row, 11]
    for panel in range(BLOCK_PANELS):
        k = np.uint64(panel)
        low = a * values[k] + b * values[P1 + k] + c * values[P2 + k] + d * values[P3 + k]
        middle = e * values[P4 + k] + f * values[P5 + k] + g * values[P6 + k] + h * values[P7 + k]
        high = i * values[P8 + k] + j * values[P9 + k] + m * values[P10 + k] + n * values[P11 + k]
        sums[np.uint64(row) * PANELS + k] = low + middle + high


@borrowing
def _tails(size: int, here: Here, members: Members, room: Room) -> None:
    """F (1 - F) of the members, and the variance of F between them."""
    node = room.node
    for q in range(size):
        node[MEAN_TAIL + q], node[TAIL_SQUARES + q], node[TAIL_OWN + q] = here.certain, 0.0, 0.0
    for i in range(here.active):
        weight, probability = members.weights[room.active[i]], rows(room.probabilities, i, NODES)
        for q in range(size):
            node[MEAN_TAIL + q] += weight * probability[q]
            node[TAIL_OWN + q] += weight * probability[q] * (1.0 - probability[q])
    for i in range(here.active):
        weight, probability = members.weights[room.active[i]], rows(room.probabilities, i, NODES)
        for q in range(size):
            gap = probability[q] - node[MEAN_TAIL + q]
            node[TAIL_SQUARES + q] += weight * gap * gap
    if here.certain + here.absent > 0.0:
        for q in range(size):
            mean = node[MEAN_TAIL + q]
            node[TAIL_SQUARES + q] += here.certain * (1.0 - mean) ** 2 + here.absent * mean * mean


@borrowing
def _squares(size: int, here: Here, members: Members, room: Room, sums: Sums | None, fits: Fits) -> None:
    """Squared densities of the members, and the variance of the density between them."""
    node = room.node
    for q in range(size):
        node[SQUARES + q] = node[OWN + q] = 0.0
    for i in range(here.active):
        weight, density = members.weights[room.active[i]], rows(room.densities, i, NODES)
        for q in range(size):
            gap = density[q] - node[MEAN + q]
            node[SQUARES + q] += weight * gap * gap
            node[OWN + q] += weight * density[q] * density[q]
    if sums is not None:
        _squares_next_to_one(size, here, members, room, fits)
    for q in range(size):
        node[SQUARES + q] += (here.certain + here.absent) * node[MEAN + q] * node[MEAN + q]


@borrowing
def _squares_next_to_one(size: int, here: Here, members: Members, room: Room, fits: Fits) -> None:
    """The variance between members of a probability that is nearly one, as that of zero for low rates: from what they lack."""
    node = room.node
    for q in range(size):
        if node[MEAN + q] <= 0.5 or here.active < len(members.weights):
            continue
        mean, squares = 0.0, 0.0
        for i in range(here.active):
            mean += members.weights[room.active[i]] * expm1(room.levels[np.uint64(i * NODES + q)], fits)
        for i in range(here.active):
            gap = expm1(room.levels[np.uint64(i * NODES + q)], fits) - mean
            squares += members.weights[room.active[i]] * gap * gap
        node[SQUARES + q] = squares


@borrowing
def _entropies(size: int, here: Here, members: Members, room: Room, fits: Fits) -> None:
    """p log p of the members, and their relative entropies to and from the mixture."""
    node = room.node
    for q in range(size):
        node[ENTROPY + q] = node[TO_MIXTURE + q] = 0.0
        node[TO_MEMBERS + q] = (here.certain + here.absent) * node[MEAN + q]
    for i in range(here.active):
        weight, level, density = members.weights[room.active[i]], rows(room.levels, i, NODES), rows(room.densities, i, NODES)
        for q in range(size):
            one, other = _entropy_densities(level[q], node[LEVEL + q], max(density[q], node[MEAN + q]), fits)
            node[ENTROPY + q] += weight * density[q] * level[q]
            node[TO_MEMBERS + q] += weight * one
            node[TO_MIXTURE + q] += weight * other


@borrowing
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


@borrowing
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

"""What has no closed form, and for many members what has one that is too long: integrals over nodes, point by point.

Vector instructions run along the nodes. Risks of the mixture against a surrogate come, in this order, from the Hermite series
(near agreement, see `series`), from the difference of two closed forms where that keeps eleven digits (see `differences`), and
from here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import (
    LANES,
    MATCHED_SCALE,
    MEMBER,
    NEAR_MATCHED,
    NEAR_POOLED,
    OFFSET,
    POOLED_SCALE,
    SCALE,
    SUMMARY,
    TERM,
    TERM_BLOCK,
    Floats,
    inlined,
    kernel,
    rows,
)
from uqprism.backends.numba.panels import Point, new_point, plan
from uqprism.backends.numba.series import (
    CRPS_MATCHED,
    CRPS_POOLED,
    LOG_FORWARD,
    LOG_MATCHED,
    LOG_POOLED,
    QUADRATIC_MATCHED,
    QUADRATIC_POOLED,
)
from uqprism.backends.numba.special import exp, exp_parts, log, upper_tail_ratio
from uqprism.families.lattice import PER_PANEL

Status = np.ndarray[Any, np.dtype[np.int8]]

DONE, DECLINED, NEEDS_PAIRS = 0, 1, 2
UNDERFLOW = 36.0  # scales from its mean at which a density is nearly too small for a double

NODE_PANELS = 20  # at a time
NODE_BLOCK = NODE_PANELS * PER_PANEL
Y, WEIGHT, TOP, SUM, SQUARES, SUM_2, SQUARES_2, BASE, BASE_2 = (row * NODE_BLOCK for row in range(9))
NODE_ROWS = 9
INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)

CRPS_PAIRS, QUADRATIC_PAIRS = TERM["crps.excess.members.members"], TERM["quadratic.excess.members.members"]
QUADRATIC_TOTAL, QUADRATIC_BAYES = TERM["quadratic.total.members.members"], TERM["quadratic.bayes.members"]


class Room(NamedTuple):
    """What all points share: the Gauss-Legendre rule on (0, 1), a row of numbers per node, and coefficients."""

    rule_nodes: Floats
    rule_weights: Floats
    node: Floats
    fits: Fits


class Surrogates(NamedTuple):
    """One point's matched and pooled scales, and whether the series has served them."""

    matched: float
    pooled: float
    near_matched: bool
    near_pooled: bool


@kernel
def integrals(
    members: Floats,
    summaries: Floats,
    terms: Floats,
    weights: Floats,
    rule: tuple[Floats, Floats],
    left: Floats | None,
    logs: bool | None,
    wanted: tuple[bool, bool],
    pairs_known: bool,
    status: Status,
    fits: Fits,
) -> None:
    """Fill the terms of the mixture against matched and pooled, and unless they are known those over pairs of members.

    Args:
        members: from `prepare`.
        summaries: from `prepare`.
        terms: in and out; the closed forms, and at near points the series, are there.
        weights: (members,).
        rule: nodes and weights of the Gauss-Legendre rule on (0, 1).
        left: from `differences`, (points,): one where CRPS or quadratic terms are left to integrate; None if neither are wanted,
            and then their integrals are not compiled.
        logs: True if log terms are wanted, else None.
        wanted: whether CRPS and quadratic terms are.
        pairs_known: whether the terms over pairs are there; otherwise they come from here too.
        status: in and out, (points,): points that are DECLINED are left alone; points may become so, or NEEDS_PAIRS.
        fits: coefficients.
    """
    point, log_weights = new_point(len(weights)), np.log(weights)
    room = Room(rule[0], rule[1], np.empty(NODE_ROWS * NODE_BLOCK), fits)
    for index in range(len(status)):
        block, p = index // LANES, index % LANES
        if status[index] != DONE:
            continue
        summary, term = rows(summaries, block, SUMMARY)[p:], rows(terms, block, TERM_BLOCK)[p:]
        surrogates = Surrogates(
            summary[MATCHED_SCALE], summary[POOLED_SCALE], summary[NEAR_MATCHED] > 0.0, summary[NEAR_POOLED] > 0.0
        )
        over_nodes = over_logs = False
        if left is not None:
            over_nodes = left[index] > 0.0
        if logs is not None:
            over_logs = not (surrogates.near_matched and surrogates.near_pooled)
        if over_nodes or over_logs:
            _gather(rows(members, block, len(weights) * MEMBER)[p:], log_weights, point, fits)
            panels = plan(point, surrogates.matched, surrogates.pooled)
            if panels < 0:
                status[index] = DECLINED
            # Where scales differ widely, nodes outnumber the members and all pairs cost less (docs/speed.md).
            elif over_nodes and not pairs_known and panels * PER_PANEL > 2 * len(weights):
                status[index] = NEEDS_PAIRS
            else:
                if left is not None and over_nodes:
                    _squared_differences(point, weights, panels, surrogates, room, wanted, pairs_known, term)
                if logs is not None and over_logs:
                    _relative_entropies(point, panels, surrogates, room, term)
        if wanted[1] and not pairs_known:
            term[QUADRATIC_TOTAL] = term[QUADRATIC_BAYES] + term[QUADRATIC_PAIRS]


@inlined
def _gather(members: Floats, log_weights: Floats, point: Point, fits: Fits) -> None:
    for i in range(len(log_weights)):
        scale = members[i * MEMBER + SCALE]
        point.offset[i], point.scale[i], point.inverse[i] = members[i * MEMBER + OFFSET], scale, 1.0 / scale
        point.height[i] = log_weights[i] - log(scale, fits)


@inlined
def _place_nodes(point: Point, first: int, last: int, room: Room) -> int:
    """The nodes and weights of some panels; returns how many there are."""
    node, count = room.node, 0
    for k in range(first, last):
        low, length = point.edges[k], point.edges[k + 1] - point.edges[k]
        for q in range(PER_PANEL):
            node[Y + count] = low + length * room.rule_nodes[q]
            node[WEIGHT + count] = length * room.rule_weights[q]
            count += 1
    return count


@inlined
def _relative_entropies(point: Point, panels: int, surrogates: Surrogates, room: Room, term: Floats) -> None:
    """The three relative entropies between mixture and surrogates that everything else under the log rule follows from."""
    node, fits = room.node, room.fits
    narrowest, widest = surrogates.matched, 0.0
    for i in range(len(point.offset)):
        narrowest, widest = min(narrowest, point.scale[i]), max(widest, point.scale[i])
    # Within a narrower range the widest member's density never underflows, and one level serves all nodes.
    wide = point.edges[panels] - point.edges[0] > UNDERFLOW * widest
    ceiling = -log(narrowest, fits)  # no density is higher, so that all logs below are negative
    inverse_matched, inverse_pooled = 1.0 / surrogates.matched, 1.0 / surrogates.pooled
    log_matched, log_pooled = log(surrogates.matched, fits) + ceiling, log(surrogates.pooled, fits) + ceiling
    forward = backward = to_pooled = 0.0
    for first in range(0, panels, NODE_PANELS):
        count = _place_nodes(point, first, min(panels, first + NODE_PANELS), room)
        for q in range(count):
            node[TOP + q], node[SUM + q] = (-math.inf if wide else ceiling), 0.0
        if wide:
            _find_top(point, node, count)
        for i in range(len(point.offset)):
            offset, inverse, height = point.offset[i], point.inverse[i], point.height[i]
            for q in range(count):
                z = (node[Y + q] - offset) * inverse
                node[SUM + q] += exp(height - 0.5 * z * z - node[TOP + q], fits)
        for q in range(count):
            level = node[TOP + q] + log(node[SUM + q], fits) - ceiling
            z, v = node[Y + q] * inverse_matched, node[Y + q] * inverse_pooled
            one, other = _entropy_densities(level, -0.5 * z * z - log_matched, fits)
            node[SQUARES + q] = one * node[WEIGHT + q]
            node[SQUARES_2 + q] = other * node[WEIGHT + q]
            _, other = _entropy_densities(level, -0.5 * v * v - log_pooled, fits)
            node[SUM_2 + q] = other * node[WEIGHT + q]
        for q in range(count):
            forward += node[SQUARES + q]
            backward += node[SQUARES_2 + q]
            to_pooled += node[SUM_2 + q]
    unit = INVERSE_SQRT_2PI / narrowest  # the factor that all densities share and that was left out above
    if not surrogates.near_matched:
        term[LOG_FORWARD], term[LOG_MATCHED] = forward * unit, backward * unit
    if not surrogates.near_pooled:
        term[LOG_POOLED] = to_pooled * unit


@inlined
def _find_top(point: Point, node: Floats, count: int) -> None:
    """The highest level at each node, to sum the others relative to it."""
    for i in range(len(point.offset)):
        offset, inverse, height = point.offset[i], point.inverse[i], point.height[i]
        for q in range(count):
            z = (node[Y + q] - offset) * inverse
            node[TOP + q] = max(node[TOP + q], height - 0.5 * z * z)


@inlined
def _entropy_densities(log_p: float, log_q: float, fits: Fits) -> tuple[float, float]:
    """p log(p/q) - p + q and q log(q/p) - q + p, which are nowhere negative; the logs are."""
    ratio = log_p - log_q
    size = abs(ratio)
    power, rest = exp_parts(-size, fits)
    decay = power * rest + (power - 1.0)  # exp(-size) - 1
    height = exp(max(log_p, log_q), fits)
    of_larger = size + decay
    # 1 - (1 + size) exp(-size)
    of_smaller = -of_larger - size * decay
    one, other = height * of_larger, height * of_smaller
    return (one, other) if ratio > 0.0 else (other, one)


@inlined
def _squared_differences(
    point: Point,
    weights: Floats,
    panels: int,
    surrogates: Surrogates,
    room: Room,
    wanted: tuple[bool, bool],
    pairs_known: bool,
    term: Floats,
) -> None:
    """Integrals of squared differences of distribution functions and densities, all taken from matched's."""
    node, fits = room.node, room.fits
    crps_pairs = crps_matched = crps_pooled = quadratic_pairs = quadratic_matched = quadratic_pooled = 0.0
    inverse_matched, inverse_pooled = 1.0 / surrogates.matched, 1.0 / surrogates.pooled
    for first in range(0, panels, NODE_PANELS):
        count = _place_nodes(point, first, min(panels, first + NODE_PANELS), room)
        for q in range(count):
            node[BASE + q], node[BASE_2 + q] = _normal(node[Y + q] * inverse_matched, inverse_matched, fits)
            node[SUM + q] = node[SQUARES + q] = node[SUM_2 + q] = node[SQUARES_2 + q] = 0.0
        for i in range(len(point.offset)):
            offset, inverse, weight = point.offset[i], point.inverse[i], weights[i]
            for q in range(count):
                probability, density = _normal((node[Y + q] - offset) * inverse, inverse, fits)
                # Taken from matched's, the terms of the variance over the members below are small.
                probability -= node[BASE + q]
                density -= node[BASE_2 + q]
                node[SUM + q] += weight * probability
                node[SQUARES + q] += weight * probability * probability
                node[SUM_2 + q] += weight * density
                node[SQUARES_2 + q] += weight * density * density
        for q in range(count):
            weight = node[WEIGHT + q]
            probability, density = _normal(node[Y + q] * inverse_pooled, inverse_pooled, fits)
            one, other = node[SUM + q] - (probability - node[BASE + q]), node[SUM_2 + q] - (density - node[BASE_2 + q])
            crps_matched += weight * node[SUM + q] ** 2
            crps_pooled += weight * one * one
            crps_pairs += weight * (node[SQUARES + q] - node[SUM + q] ** 2)
            quadratic_matched += weight * node[SUM_2 + q] ** 2
            quadratic_pooled += weight * other * other
            quadratic_pairs += weight * (node[SQUARES_2 + q] - node[SUM_2 + q] ** 2)
    if wanted[0]:
        _store(term, CRPS_PAIRS, CRPS_MATCHED, CRPS_POOLED, (crps_pairs, crps_matched, crps_pooled), surrogates, pairs_known)
    if wanted[1]:
        found = quadratic_pairs, quadratic_matched, quadratic_pooled
        _store(term, QUADRATIC_PAIRS, QUADRATIC_MATCHED, QUADRATIC_POOLED, found, surrogates, pairs_known)


@inlined
def _store(
    term: Floats,
    pairs: int,
    matched: int,
    pooled: int,
    found: tuple[float, float, float],
    surrogates: Surrogates,
    pairs_known: bool,
) -> None:
    """Fill the terms that neither the series nor a closed form has."""
    if not surrogates.near_matched:
        term[matched] = found[1]
        if not pairs_known:
            term[pairs] = 2.0 * found[0]
    if not surrogates.near_pooled:
        term[pooled] = found[2]


@inlined
def _normal(z: float, inverse: float, fits: Fits) -> tuple[float, float]:
    """The distribution function and the density at z scales, for this inverse scale."""
    height = exp(-0.5 * z * z, fits)
    tail = height * upper_tail_ratio(abs(z), fits)
    return (1.0 - tail if z > 0.0 else tail), height * inverse * INVERSE_SQRT_2PI

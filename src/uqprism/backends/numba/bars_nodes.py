"""Nodes for what has no finite sum over bars: tails of members with edges of their own, and the mixture against Gaussians.

Nodes are gathered from one stretch of the line after the other and evaluated when there are NODES of them. A stretch is cut to
where its integrands are smooth, see `reach_of_step`; the narrower it is, the fewer nodes it needs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.arrays import LOG_2PI
from uqprism.backends.fits import Fits
from uqprism.backends.numba.base import Floats, inlined, reduction, rows
from uqprism.backends.numba.special import exp, exp_parts, log, log_and_gap, upper_tail_ratio
from uqprism.backends.rows import ROWS
from uqprism.families.quadrature import gauss_legendre

SUMS = (*ROWS, "log.entropy", "log.weight.matched", "log.weight.pooled", "variance", "spread")
"""What a point's sums are: the rows, the entropy of the mixture, what a Gaussian's mass in a cell costs, and moments."""
SUM = {name: place for place, name in enumerate(SUMS)}
CRPS_BAYES, CRPS_EXCESS = SUM["crps.bayes.members"], SUM["crps.excess.mixture.members"]
QUADRATIC_BAYES, QUADRATIC_EXCESS = SUM["quadratic.bayes.members"], SUM["quadratic.excess.mixture.members"]
LOG_INTO, LOG_FROM, ENTROPY = SUM["log.excess.mixture.members"], SUM["log.excess.members.mixture"], SUM["log.entropy"]
CRPS_SURROGATE, QUADRATIC_SURROGATE = SUM["crps.excess.matched.mixture"], SUM["quadratic.excess.matched.mixture"]
OVERLAP, LOG_BACK = SUM["quadratic.overlap.matched.mixture"], SUM["log.excess.mixture.matched"]
LOG_FORWARD, GAP_WEIGHT = SUM["log.excess.matched.mixture"], SUM["log.weight.matched"]  # pooled comes after matched

NODES = 240
COUNTS = (4, 6, 12)
SHARES = (0.01, 0.16)  # of the longest stretch over which all is smooth, up to which the first two counts do
RULES = tuple(x for count in COUNTS for x in gauss_legendre(count))
HALF_LOG_2PI, INVERSE_SQRT_2PI = 0.5 * LOG_2PI, 1.0 / math.sqrt(2.0 * math.pi)
FAR = 9.5  # scales beyond which a Gaussian does not count


class TailNumbers(NamedTuple):
    """A `families.tails.Tail` in numbers, and how far it reaches in its scales; a step keeps all integrands smooth."""

    gaussian: bool
    start: float
    above: float
    log_above: float
    mean: float
    square: float
    squared_survival: float
    squared_density: float
    entropy: float
    reach: float
    step: float


class Surrogates(NamedTuple):
    """The two Gaussians that stand for the mixture."""

    mean: float
    matched: float
    pooled: float


class Nodes(NamedTuple):
    """Nodes with the mixture there, and for stretches with tails of members, rows of NODES for each member."""

    y: Floats
    weight: Floats
    density: Floats
    log_density: Floats
    below: Floats
    above: Floats
    gap: Floats
    work: Floats
    densities: Floats
    log_densities: Floats
    belows: Floats
    aboves: Floats


@inlined
def new_nodes(members: int) -> Nodes:
    """Room for NODES nodes."""
    return Nodes(
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES * members),
        np.empty(NODES * members),
        np.empty(NODES * members),
        np.empty(NODES * members),
    )


@inlined
def normal_above(z: float, fits: Fits) -> float:
    """The probability of standard normal values above z."""
    tail = exp(-0.5 * z * z, fits) * upper_tail_ratio(abs(z), fits)
    return tail if z > 0.0 else 1.0 - tail


@inlined
def tail_survival(tail: TailNumbers, x: float, fits: Fits) -> float:
    """The share of a tail beyond x scales."""
    if tail.gaussian:
        return normal_above(tail.start + x, fits) / tail.above
    return exp(-x, fits)


@inlined
def tail_log_density(tail: TailNumbers, x: float) -> float:
    """The log density of a tail at x scales, for a scale of one."""
    if tail.gaussian:
        z = tail.start + x
        return -0.5 * z * z - HALF_LOG_2PI - tail.log_above
    return -x


@inlined
def surrogate_step(y: float, surrogates: Surrogates) -> float:
    """How long a stretch that begins at y may be for both Gaussians."""
    away = abs(y - surrogates.mean) - FAR * surrogates.pooled
    # Far from its mean the narrower of the two does not count.
    return min(2.0 * surrogates.matched, max(2.0 * surrogates.pooled, 0.5 * away))


@inlined
def tail_step(away: float, scale: float, tail: TailNumbers) -> float:
    """How long a stretch may be that begins `away` from where a tail does, outwards if that is positive, or else inwards."""
    own = tail.step * scale
    reach = tail.reach * scale
    if away > reach:
        return math.inf
    return own if away > -reach else own - reach - away


@inlined
def place(low: float, high: float, share: float, rules: Any, nodes: Nodes, count: int) -> int:
    """Add the nodes of a stretch, which is this share of the longest that is smooth; returns how many there are then."""
    if share <= SHARES[0]:
        return _place(low, high, rules[0], rules[1], nodes, count)
    if share <= SHARES[1]:
        return _place(low, high, rules[2], rules[3], nodes, count)
    return _place(low, high, rules[4], rules[5], nodes, count)


@inlined
def _place(low: float, high: float, where: Floats, weights: Floats, nodes: Nodes, count: int) -> int:
    for q in range(len(where)):
        nodes.y[count + q] = low + (high - low) * where[q]
        nodes.weight[count + q] = (high - low) * weights[q]
    return count + len(where)


# The mixture against matched and pooled ------------------------------------------------------------------------------------


@inlined
def against_surrogates(
    nodes: Nodes, count: int, surrogates: Surrogates, crps: bool, quadratic: bool, logs: bool, sums: Floats, fits: Fits
) -> None:
    """Add the integrals of the mixture with the two Gaussians over these nodes."""
    pieces = (nodes.density[:count], nodes.log_density[:count], nodes.gap[:count])
    integrate(nodes, count, pieces, surrogates, crps, quadratic, logs, sums, fits)


@inlined
def integrate(
    nodes: Nodes,
    count: int,
    pieces: tuple[Floats, Floats, Floats],
    surrogates: Surrogates,
    crps: bool,
    quadratic: bool,
    logs: bool,
    sums: Floats,
    fits: Fits,
) -> None:
    """The same where density, log density and gap of the mixture are in other arrays."""
    density, level, gap = pieces
    for which in range(2):
        scale = surrogates.matched if which == 0 else surrogates.pooled
        top = -HALF_LOG_2PI - log(scale, fits)
        y, weight, work = nodes.y[:count], nodes.weight[:count], nodes.work[:count]
        if crps:
            below, above = nodes.below[:count], nodes.above[:count]
            sums[CRPS_SURROGATE + which] += _distance(y, weight, below, above, surrogates.mean, 1.0 / scale, fits)
        if quadratic or logs:
            _gaussian(y, work, surrogates.mean, 1.0 / scale, fits)
        if quadratic:
            difference, overlap = _squared_difference(weight, density, work)
            sums[QUADRATIC_SURROGATE + which] += difference
            sums[OVERLAP + which] += overlap
        if logs:
            forward, backward, between, lost = _relative_entropies(
                y, weight, density, level, gap, work, surrogates.mean, 1.0 / scale, top, fits
            )
            if which == 0:
                sums[LOG_FORWARD] += forward
            sums[LOG_BACK + which] += math.inf if lost > 0.0 else backward
            sums[GAP_WEIGHT + which] += math.inf if lost > 0.0 else between


@reduction
def _distance(y: Floats, weight: Floats, below: Floats, above: Floats, mean: float, inverse: float, fits: Fits) -> float:
    """The squared distance of distribution functions, of which the smaller of the two probabilities is taken."""
    distance = 0.0
    weight, below, above = weight[: len(y)], below[: len(y)], above[: len(y)]
    for q in range(len(y)):
        z = (y[q] - mean) * inverse
        tail = exp(-0.5 * z * z, fits) * upper_tail_ratio(abs(z), fits)
        gap = (above[q] if z > 0.0 else below[q]) - tail
        distance += weight[q] * gap * gap
    return distance


@inlined
def _gaussian(y: Floats, into: Floats, mean: float, inverse: float, fits: Fits) -> None:
    into = into[: len(y)]
    for q in range(len(y)):
        z = (y[q] - mean) * inverse
        into[q] = exp(-0.5 * z * z, fits) * (inverse * INVERSE_SQRT_2PI)


@reduction
def _squared_difference(weight: Floats, p: Floats, g: Floats) -> tuple[float, float]:
    difference = overlap = 0.0
    p, g = p[: len(weight)], g[: len(weight)]
    for q in range(len(weight)):
        difference += weight[q] * (g[q] - p[q]) * (g[q] - p[q])
        overlap += weight[q] * g[q] * p[q]
    return difference, overlap


@reduction
def _relative_entropies(
    y: Floats,
    weight: Floats,
    density: Floats,
    level: Floats,
    gap: Floats,
    gaussian: Floats,
    mean: float,
    inverse: float,
    top: float,
    fits: Fits,
) -> tuple[float, float, float, float]:
    """The integrals of p log(p/g) - p + g, g log(g/p) - g + p, nowhere negative, and g times the gap; and g where p is zero."""
    forward = backward = between = lost = 0.0
    weight, density, level = weight[: len(y)], density[: len(y)], level[: len(y)]
    gap, gaussian = gap[: len(y)], gaussian[: len(y)]
    for q in range(len(y)):
        z = (y[q] - mean) * inverse
        p, g = density[q], gaussian[q]
        there = level[q] > -math.inf
        ratio = (level[q] if there else 0.0) - (top - 0.5 * z * z)
        size = abs(ratio)
        power, rest = exp_parts(-size, fits)
        decay = power * rest + (power - 1.0)  # exp(-size) - 1
        of_larger = size + decay
        of_smaller = -of_larger - size * decay
        larger = p if ratio > 0.0 else g
        one, other = larger * of_larger, larger * of_smaller
        forward += weight[q] * ((one if ratio > 0.0 else other) if there else g)
        backward += weight[q] * ((other if ratio > 0.0 else one) if there else 0.0)
        between += weight[q] * g * gap[q]
        lost += 0.0 if there else weight[q] * g
    return forward, backward, between, lost


# Members with tails of their own -------------------------------------------------------------------------------------------


@inlined
def mix(nodes: Nodes, count: int, weights: Floats, sums: Floats, crps: bool, quadratic: bool, logs: bool, fits: Fits) -> None:
    """The mixture at these nodes, and what the integrals over members and mixture gain there."""
    base, base_log = rows(nodes.densities, 0, NODES), rows(nodes.log_densities, 0, NODES)
    for q in range(count):
        nodes.density[q] = nodes.below[q] = nodes.above[q] = nodes.gap[q] = 0.0
        nodes.log_density[q] = base_log[q]
    for i in range(len(weights)):
        weight = weights[i]
        p, level = rows(nodes.densities, i, NODES), rows(nodes.log_densities, i, NODES)
        below, above = rows(nodes.belows, i, NODES), rows(nodes.aboves, i, NODES)
        for q in range(count):
            nodes.density[q] += weight * (p[q] - base[q])  # differences first: members that agree have none
            nodes.below[q] += weight * below[q]
            nodes.above[q] += weight * above[q]
            nodes.log_density[q] = max(nodes.log_density[q], level[q])
    for q in range(count):
        nodes.work[q] = nodes.density[q]  # how far the mixture is from the first member
        nodes.density[q] += base[q]
    if crps:
        _distances(nodes, count, weights, sums)
    if quadratic:
        _squares(nodes, count, weights, sums)
    if logs:
        _logs(nodes, count, weights, sums, fits)


@inlined
def _distances(nodes: Nodes, count: int, weights: Floats, sums: Floats) -> None:
    low, high = rows(nodes.belows, 0, NODES), rows(nodes.aboves, 0, NODES)
    for q in range(count):
        first = middle = square = 0.0
        upper = high[q] < low[q]
        for i in range(len(weights)):
            below, above = nodes.belows[i * NODES + q], nodes.aboves[i * NODES + q]
            first += weights[i] * below * above
            gap = high[q] - above if upper else below - low[q]  # of the distribution functions, by the smaller probabilities
            middle += weights[i] * gap
        for i in range(len(weights)):
            below, above = nodes.belows[i * NODES + q], nodes.aboves[i * NODES + q]
            gap = (high[q] - above if upper else below - low[q]) - middle
            square += weights[i] * gap * gap
        sums[CRPS_BAYES] += nodes.weight[q] * first
        sums[CRPS_EXCESS] += nodes.weight[q] * square


@inlined
def _squares(nodes: Nodes, count: int, weights: Floats, sums: Floats) -> None:
    base = rows(nodes.densities, 0, NODES)
    for i in range(len(weights)):
        p = rows(nodes.densities, i, NODES)
        for q in range(count):
            gap = p[q] - base[q] - nodes.work[q]
            sums[QUADRATIC_BAYES] -= weights[i] * nodes.weight[q] * p[q] * p[q]
            sums[QUADRATIC_EXCESS] += weights[i] * nodes.weight[q] * gap * gap


@inlined
def _logs(nodes: Nodes, count: int, weights: Floats, sums: Floats, fits: Fits) -> None:
    """Every ratio to the mixture is formed from logarithms where densities are far apart or would underflow."""
    base = rows(nodes.densities, 0, NODES)
    for q in range(count):
        top = nodes.log_density[q]
        if top == -math.inf:
            continue
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * exp(nodes.log_densities[i * NODES + q] - top, fits)
        level = top + log(total, fits)
        p, weight, into, gap = nodes.density[q], nodes.weight[q], 0.0, 0.0
        nodes.log_density[q] = level
        safe = p > 1e-290
        inverse = 1.0 / p if safe else 0.0
        for i in range(len(weights)):
            own = nodes.densities[i * NODES + q]
            ratio = own * inverse
            if safe and 0.5 < ratio < 2.0:
                excess = (own - base[q] - nodes.work[q]) * inverse
                whole, above = log_and_gap(excess, ratio, fits)
                into += weights[i] * (excess * excess - ratio * above)
            elif own == 0.0 and nodes.log_densities[i * NODES + q] == -math.inf:
                above = math.inf
                into += weights[i]
            else:
                whole = nodes.log_densities[i * NODES + q] - level
                ratio = exp(whole, fits) if whole < 0.0 else 1.0 / exp(-whole, fits)
                above = ratio - 1.0 - whole
                into += weights[i] * ((ratio * whole if ratio > 0.0 else 0.0) - (ratio - 1.0))
            gap += weights[i] * above
        nodes.gap[q] = gap
        sums[ENTROPY] -= weight * p * level if p > 0.0 else 0.0
        sums[LOG_INTO] += weight * p * into
        sums[LOG_FROM] += weight * p * gap if p > 0.0 else 0.0

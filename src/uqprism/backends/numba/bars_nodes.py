"""Nodes for what has no finite sum over bars: tails of members with edges of their own, and the mixture against Gaussians.

Nodes are gathered from one stretch of the line after the other and evaluated when there are NODES of them. A stretch is cut to
where its integrands are smooth, see `surrogate_step` and `tail_step`; the narrower it is, the fewer nodes it needs.
"""

from __future__ import annotations

import math

from uqprism.arrays import SQRT_PI
from uqprism.backends.fits import Fits
from uqprism.backends.numba.bars_work import (
    CRPS_BAYES,
    CRPS_EXCESS,
    CRPS_SURROGATE,
    ENTROPY,
    FAR,
    HALF_LOG_2PI,
    INVERSE_SQRT_2PI,
    LOG_BACK,
    LOG_BAYES,
    LOG_BEYOND,
    LOG_FORWARD,
    LOG_FROM,
    LOG_INTO,
    NODES,
    OVERLAP,
    QUADRATIC_BAYES,
    QUADRATIC_EXCESS,
    QUADRATIC_GAUSSIAN,
    QUADRATIC_SURROGATE,
    SHARES,
    Nodes,
    TailNumbers,
    Work,
)
from uqprism.backends.numba.base import Floats, inlined, reduction, rows
from uqprism.backends.numba.special import exp, exp_parts, log, log_and_gap, upper_tail_ratio


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
def surrogate_step(work: Work, y: float) -> float:
    """How long a stretch that begins at y may be for both Gaussians."""
    away = abs(y - work.gaussian[0]) - FAR * work.gaussian[2]
    # Far from its mean the narrower of the two does not count.
    return min(2.0 * work.gaussian[1], max(2.0 * work.gaussian[2], 0.5 * away))


@inlined
def tail_step(away: float, scale: float, tail: TailNumbers) -> float:
    """How long a stretch may be that begins `away` from where a tail does, outwards if that is positive, or else inwards."""
    own = tail.step * scale
    reach = tail.reach * scale
    if away > reach:
        return math.inf
    return own if away > -reach else own - reach - away


@inlined
def place(work: Work, low: float, high: float, share: float, count: int) -> int:
    """Add the nodes of a stretch, which is this share of the longest that is smooth; returns how many there are then."""
    if share <= SHARES[0]:
        return _place(low, high, work.how.rules[0], work.how.rules[1], work.nodes, count)
    if share <= SHARES[1]:
        return _place(low, high, work.how.rules[2], work.how.rules[3], work.nodes, count)
    return _place(low, high, work.how.rules[4], work.how.rules[5], work.nodes, count)


@inlined
def _place(low: float, high: float, where: Floats, weights: Floats, nodes: Nodes, count: int) -> int:
    for q in range(len(where)):
        nodes.y[count + q] = low + (high - low) * where[q]
        nodes.weight[count + q] = (high - low) * weights[q]
    return count + len(where)


@inlined
def against_surrogates(work: Work, count: int) -> None:
    """Add the integrals of the mixture with the two Gaussians over the first nodes."""
    nodes = work.nodes
    integrate(work, count, nodes.density[:count], nodes.log_density[:count], nodes.gap[:count])


@inlined
def integrate(work: Work, count: int, density: Floats, level: Floats, gap: Floats) -> None:
    """The same where density, log density and gap of the mixture are in other arrays."""
    nodes, how, sums, mean = work.nodes, work.how, work.sums, work.gaussian[0]
    for which in range(2):
        scale = work.gaussian[1 + which]
        top = -HALF_LOG_2PI - log(scale, how.fits)
        y, weight, values = nodes.y[:count], nodes.weight[:count], nodes.work[:count]
        if how.crps:
            below, above = nodes.below[:count], nodes.above[:count]
            sums[CRPS_SURROGATE + which] += _distance(y, weight, below, above, mean, 1.0 / scale, how.fits)
        if how.quadratic or how.logs:
            _gaussian(y, values, mean, 1.0 / scale, how.fits)
        if how.quadratic:
            difference, overlap = _squared_difference(weight, density, values)
            sums[QUADRATIC_SURROGATE + which] += difference
            sums[OVERLAP + which] += overlap
        if how.logs:
            forward, backward, between, lost = _relative_entropies(
                y, weight, density, level, gap, values, mean, 1.0 / scale, top, how.fits
            )
            sums[LOG_FORWARD + which] += forward
            sums[LOG_BACK + which] += math.inf if lost > 0.0 else backward
            sums[LOG_BEYOND + which] += math.inf if lost > 0.0 else between


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


@inlined
def finish(work: Work) -> None:
    """The rows that are made from others."""
    sums = work.sums
    sums[LOG_BAYES] = sums[ENTROPY] - sums[LOG_INTO]
    for which in range(2):
        sums[LOG_BEYOND + which] += sums[LOG_BACK + which]
        scale = work.gaussian[1 + which]
        sums[QUADRATIC_GAUSSIAN + which] = -0.5 / (SQRT_PI * scale)


@inlined
def outside(work: Work, end: float, sign: float) -> None:
    """Add the integrals of matched and pooled where no member has any probability."""
    nodes = work.nodes
    far = sign * (work.gaussian[0] - end) + FAR * work.gaussian[1]
    used, near = 0, 0.0
    while near < far:
        step = surrogate_step(work, end + sign * near)
        high = far if near + 1.25 * step >= far else near + step
        before = used
        used = place(work, near, high, (high - near) / step, used)
        for q in range(before, used):
            nodes.density[q], nodes.log_density[q], nodes.gap[q] = 0.0, -math.inf, 0.0
            nodes.below[q], nodes.above[q] = (0.0, 1.0) if sign < 0.0 else (1.0, 0.0)
            nodes.y[q] = end + sign * nodes.y[q]
        if used > NODES - 12:
            against_surrogates(work, used)
            used = 0
        near = high
    against_surrogates(work, used)


# Members with tails of their own -------------------------------------------------------------------------------------------


@inlined
def mix(work: Work, count: int) -> None:
    """The mixture at these nodes, and what the integrals over members and mixture gain there."""
    nodes, how = work.nodes, work.how
    base, base_log = rows(nodes.densities, 0, NODES), rows(nodes.log_densities, 0, NODES)
    for q in range(count):
        nodes.density[q] = nodes.below[q] = nodes.above[q] = nodes.gap[q] = 0.0
        nodes.log_density[q] = base_log[q]
    for i in range(len(how.weights)):
        weight = how.weights[i]
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
    if how.crps:
        _distances(work, count)
    if how.quadratic:
        _squares(work, count)
    if how.logs:
        _logs(work, count)


@inlined
def _distances(work: Work, count: int) -> None:
    nodes, weights, sums = work.nodes, work.how.weights, work.sums
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
def _squares(work: Work, count: int) -> None:
    nodes, weights, sums = work.nodes, work.how.weights, work.sums
    base = rows(nodes.densities, 0, NODES)
    for i in range(len(weights)):
        p = rows(nodes.densities, i, NODES)
        for q in range(count):
            gap = p[q] - base[q] - nodes.work[q]
            sums[QUADRATIC_BAYES] -= weights[i] * nodes.weight[q] * p[q] * p[q]
            sums[QUADRATIC_EXCESS] += weights[i] * nodes.weight[q] * gap * gap


@inlined
def _logs(work: Work, count: int) -> None:
    """Every ratio to the mixture is formed from logarithms where densities are far apart or would underflow."""
    nodes, weights, sums, fits = work.nodes, work.how.weights, work.sums, work.how.fits
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

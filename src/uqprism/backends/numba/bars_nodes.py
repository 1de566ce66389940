"""Nodes for what has no finite sum over bars: tails of members with edges of their own, and the mixture against Gaussians.

Nodes are gathered from one stretch of the line after the other and evaluated when there are NODES of them. A stretch is cut to
where its integrands are smooth, see `surrogate_step` and `tail_step`; the narrower it is, the fewer nodes it needs.
"""

from __future__ import annotations

import math
from typing import Any

from uqprism.arrays import SQRT_PI
from uqprism.backends.bars import FAINT, FAR, SHARES, TailNumbers
from uqprism.backends.fits import Fits
from uqprism.backends.numba.bars_work import (
    CRPS_BAYES,
    CRPS_EXCESS,
    CRPS_SURROGATE,
    ENTROPY,
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
    Work,
)
from uqprism.backends.numba.base import Floats, borrowing, reduction
from uqprism.backends.numba.special import exp, exp_parts, log, log_and_gap, upper_tail_ratio


@borrowing
def normal_above(z: float, fits: Fits) -> float:
    """The probability of standard normal values above z."""
    tail = exp(-0.5 * z * z, fits) * upper_tail_ratio(abs(z), fits)
    return tail if z > 0.0 else 1.0 - tail


@borrowing
def tail_survival(tail: TailNumbers, x: float, fits: Fits) -> float:
    """The share of a tail beyond x scales."""
    if tail.gaussian:
        return normal_above(tail.start + x, fits) / tail.above
    return exp(-x, fits)


@borrowing
def tail_log_density(tail: TailNumbers, x: float) -> float:
    """The log density of a tail at x scales, for a scale of one."""
    if tail.gaussian:
        z = tail.start + x
        return -0.5 * z * z - HALF_LOG_2PI - tail.log_above
    return -x


@borrowing
def surrogate_step(work: Work, y: float) -> float:
    """How long a stretch that begins at y may be for both Gaussians."""
    away = abs(y - work.gaussian[0]) - FAR * work.gaussian[2]
    # Far from its mean the narrower of the two does not count.
    return min(2.0 * work.gaussian[1], max(2.0 * work.gaussian[2], 0.5 * away))


@borrowing
def tail_step(away: float, scale: float, tail: TailNumbers) -> float:
    """How long a stretch may be that begins `away` from where a tail does, outwards if that is positive, or else inwards."""
    own = tail.step * scale
    reach = tail.reach * scale
    if away >= reach:  # also at the end of a tail without a width
        return math.inf
    return own if away > -reach else own - reach - away


@borrowing
def place(rules: Any, y: Floats, weight: Floats, low: float, high: float, share: float, count: int) -> int:
    """Add the nodes of a stretch, which is this share of the longest that is smooth; returns how many there are then."""
    kind = 0 if share <= SHARES[0] else 1 if share <= SHARES[1] else 2
    where, shares = rules[2 * kind], rules[2 * kind + 1]
    for q in range(len(where)):
        y[count + q], weight[count + q] = low + (high - low) * where[q], (high - low) * shares[q]
    return count + len(where)


@borrowing
def against_surrogates(work: Work, count: int) -> None:
    """Add the integrals of the mixture with the two Gaussians over the first nodes."""
    nodes = work.nodes
    integrate(work, count, nodes.density[:count], nodes.log_density[:count], nodes.gap[:count])


@borrowing
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


@borrowing
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


@borrowing
def finish(work: Work) -> None:
    """The rows that are made from others."""
    sums = work.sums
    sums[LOG_BAYES] = sums[ENTROPY] - sums[LOG_INTO]
    for which in range(2):
        sums[LOG_BEYOND + which] += sums[LOG_BACK + which]
        scale = work.gaussian[1 + which]
        sums[QUADRATIC_GAUSSIAN + which] = -0.5 / (SQRT_PI * scale)


@borrowing
def outside(work: Work, end: float, sign: float) -> None:
    """Add the integrals of matched and pooled where no member has any probability."""
    nodes = work.nodes
    far = sign * (work.gaussian[0] - end) + FAR * work.gaussian[1]
    used, near = 0, 0.0
    while near < far:
        step = surrogate_step(work, end + sign * near)
        high = far if near + 1.25 * step >= far else near + step
        before = used
        used = place(work.how.rules, work.nodes.y, work.nodes.weight, near, high, (high - near) / step, used)
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


@borrowing
def mix(work: Work, count: int) -> None:
    """The mixture at these nodes, and what the integrals over members and mixture gain there."""
    nodes, how = work.nodes, work.how
    density, below, above = nodes.density[:count], nodes.below[:count], nodes.above[:count]
    apart, base = nodes.work[:count], nodes.densities[:count]
    for q in range(count):
        apart[q] = below[q] = above[q] = 0.0
    for i in range(len(how.weights)):
        weight, p = how.weights[i], nodes.densities[i * NODES : i * NODES + count]
        f, s = nodes.belows[i * NODES : i * NODES + count], nodes.aboves[i * NODES : i * NODES + count]
        for q in range(count):
            apart[q] += weight * (p[q] - base[q])  # differences first: members that agree have none
            below[q] += weight * f[q]
            above[q] += weight * s[q]
    for q in range(count):
        density[q] = base[q] + apart[q]
    if how.quadratic:
        _squares(work, count)
    if how.logs:
        _logs(work, count)
    if how.crps:
        _distances(work, count)  # last, because it takes `nodes.work`


@reduction
def _distances(work: Work, count: int) -> None:
    nodes, weights = work.nodes, work.how.weights
    low, high = nodes.belows[:count], nodes.aboves[:count]
    weight, middle = nodes.weight[:count], nodes.work[:count]
    bayes = excess = 0.0
    for q in range(count):
        middle[q] = 0.0
    for i in range(len(weights)):
        share, own = weights[i], 0.0
        f, s = nodes.belows[i * NODES : i * NODES + count], nodes.aboves[i * NODES : i * NODES + count]
        for q in range(count):
            own += weight[q] * f[q] * s[q]
            # Of the distribution functions, by the smaller probabilities.
            middle[q] += share * (high[q] - s[q] if high[q] < low[q] else f[q] - low[q])
        bayes += share * own
    for i in range(len(weights)):
        share, own = weights[i], 0.0
        f, s = nodes.belows[i * NODES : i * NODES + count], nodes.aboves[i * NODES : i * NODES + count]
        for q in range(count):
            gap = (high[q] - s[q] if high[q] < low[q] else f[q] - low[q]) - middle[q]
            own += weight[q] * gap * gap
        excess += share * own
    work.sums[CRPS_BAYES] += bayes
    work.sums[CRPS_EXCESS] += excess


@reduction
def _squares(work: Work, count: int) -> None:
    nodes, weights = work.nodes, work.how.weights
    base, weight, apart = nodes.densities[:count], nodes.weight[:count], nodes.work[:count]
    bayes = excess = 0.0
    for i in range(len(weights)):
        p, own, other = nodes.densities[i * NODES : i * NODES + count], 0.0, 0.0
        for q in range(count):
            gap = (p[q] - base[q]) - apart[q]
            own += weight[q] * p[q] * p[q]
            other += weight[q] * gap * gap
        bayes += weights[i] * own
        excess += weights[i] * other
    work.sums[QUADRATIC_BAYES] -= bayes
    work.sums[QUADRATIC_EXCESS] += excess


@borrowing
def _logs(work: Work, count: int) -> None:
    """Ratios come from logarithms where densities are far below the mixture, and so does the mixture where it underflows."""
    nodes = work.nodes
    faint = False
    for q in range(count):
        nodes.log_density[q] = log(max(nodes.density[q], FAINT), work.how.fits)
        faint = faint or nodes.density[q] <= FAINT
        nodes.gap[q] = 0.0
    if faint:
        for q in range(count):
            if nodes.density[q] <= FAINT:
                nodes.log_density[q] = _faint(work, q)
    _sum_logs(work, count)


@borrowing
def _faint(work: Work, q: int) -> float:
    """The log density of the mixture from those of the members."""
    nodes, weights, fits = work.nodes, work.how.weights, work.how.fits
    top, total = -math.inf, 0.0
    for i in range(len(weights)):
        top = max(top, nodes.log_densities[i * NODES + q])
    if top == -math.inf:
        return top
    for i in range(len(weights)):
        total += weights[i] * exp(nodes.log_densities[i * NODES + q] - top, fits)
    return top + log(total, fits)


@reduction
def _sum_logs(work: Work, count: int) -> None:
    nodes, weights, fits = work.nodes, work.how.weights, work.how.fits
    base, apart, weight = nodes.densities[:count], nodes.work[:count], nodes.weight[:count]
    density, level, gap = nodes.density[:count], nodes.log_density[:count], nodes.gap[:count]
    into = out = entropy = 0.0
    for i in range(len(weights)):
        p, own_level = nodes.densities[i * NODES : i * NODES + count], nodes.log_densities[i * NODES : i * NODES + count]
        share, some = weights[i], 0.0
        for q in range(count):
            inverse = 1.0 / max(density[q], FAINT)
            excess, ratio = ((p[q] - base[q]) - apart[q]) * inverse, p[q] * inverse
            whole, above = log_and_gap(excess, max(ratio, FAINT), fits)
            there, seen = own_level[q] > -math.inf, density[q] > FAINT
            near = abs(excess) < 0.5 and seen
            far = own_level[q] - level[q] if there else 0.0
            whole = whole if near else far
            above = above if near else (excess if seen else 0.0) - far  # ratios have a mean of one
            gap[q] += share * (above if there else math.inf)
            some += weight[q] * density[q] * (excess * excess - ratio * above if near else ratio * whole - excess)
        into += share * some
    for q in range(count):
        counts = density[q] > FAINT
        entropy += weight[q] * density[q] * (level[q] if counts else 0.0)
        out += weight[q] * density[q] * gap[q] if counts else 0.0
    work.sums[LOG_INTO] += into
    work.sums[LOG_FROM] += out
    work.sums[ENTROPY] -= entropy

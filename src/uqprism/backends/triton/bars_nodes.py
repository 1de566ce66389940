"""Nodes for what has no finite sum over bars: the mixture against the Gaussians matched and pooled; see `numba.bars_nodes`."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

from uqprism.backends.bars import COUNTS, FAINT, SHARES, SUM
from uqprism.backends.bars import FAR as FAR_AWAY
from uqprism.backends.fits import FITS
from uqprism.backends.triton.special import _polynomial as polynomial
from uqprism.families.quadrature import gauss_legendre

MOST_STRETCHES = 4096  # of one cell: what would need more is left as it is
NODES = [float(x) for count in COUNTS for x in gauss_legendre(count)[0]]
SHARES_OF_NODES = [float(x) for count in COUNTS for x in gauss_legendre(count)[1]]

_SQRT_2PI = tl.constexpr(math.sqrt(2.0 * math.pi))
INVERSE_SQRT_2PI, HALF_LOG_2PI = tl.constexpr(1.0 / math.sqrt(2.0 * math.pi)), tl.constexpr(0.5 * math.log(2.0 * math.pi))
FAR, TINY = tl.constexpr(FAR_AWAY), tl.constexpr(FAINT)
_FEW, _SOME = tl.constexpr(SHARES[0]), tl.constexpr(SHARES[1])
_COUNT_0, _COUNT_1, _COUNT_2 = (tl.constexpr(count) for count in COUNTS)
_MOST = tl.constexpr(MOST_STRETCHES)
_TAIL_ABOVE, _TAIL_BELOW = tl.constexpr(FITS.tail_above), tl.constexpr(FITS.tail_below)
# Rows of matched; those of pooled follow each.
_CRPS, _QUADRATIC = tl.constexpr(SUM["crps.excess.matched.mixture"]), tl.constexpr(SUM["quadratic.excess.matched.mixture"])
_OVERLAP, _FORWARD = tl.constexpr(SUM["quadratic.overlap.matched"]), tl.constexpr(SUM["log.excess.matched.mixture"])
_BACK, _BEYOND = tl.constexpr(SUM["log.excess.mixture.matched"]), tl.constexpr(SUM["log.excess.members.matched"])


@triton.jit
def load(array, k, i, at, mask):
    """An entry of an array (k, members, points), whose strides may be zero."""
    pointer, first, second, third = array
    return tl.load(pointer + k * first + i * second + at * third, mask=mask, other=1.0)


@triton.jit
def add(out, row: tl.constexpr, values):
    """Add to a row of sums."""
    pointer, stride, mask = out
    tl.store(pointer + row * stride, tl.load(pointer + row * stride, mask=mask, other=0.0) + values, mask=mask)


@triton.jit
def upper_tail_ratio(z):
    """The probability of standard normal values above z >= 0, over exp(-z**2 / 2)."""
    bounded = tl.minimum(z, 1e30)
    return polynomial(bounded, _TAIL_ABOVE, 10) / polynomial(bounded, _TAIL_BELOW, 11)


@triton.jit
def gaussians(given, at, mask, stride):
    """The mean of the mixture, the scales of matched and pooled, their inverses and their log densities at the mean."""
    mean = tl.load(given + at, mask=mask, other=0.0)
    matched = tl.load(given + stride + at, mask=mask, other=1.0)
    pooled = tl.load(given + 2 * stride + at, mask=mask, other=1.0)
    return mean, matched, pooled, 1.0 / matched, 1.0 / pooled, -HALF_LOG_2PI - tl.log(matched), -HALF_LOG_2PI - tl.log(pooled)


@triton.jit
def smooth_for_gaussians(y, gaussian):
    """How long a stretch that begins at y may be for both Gaussians."""
    away = tl.abs(y - gaussian[0]) - FAR * gaussian[2]
    # Far from its mean the narrower of the two does not count.
    return tl.minimum(2.0 * gaussian[1], tl.maximum(2.0 * gaussian[2], 0.5 * away))


@triton.jit
def nodes_of(share):
    """Where in the rules the nodes of a stretch begin, which is this share of the longest that is smooth, and how many."""
    first = tl.where(share <= _FEW, 0, tl.where(share <= _SOME, _COUNT_0, _COUNT_0 + _COUNT_1))
    return first, tl.where(share <= _FEW, _COUNT_0, tl.where(share <= _SOME, _COUNT_1, _COUNT_2))


@triton.jit
def nothing_yet(zero):
    """The sums of matched and of pooled: CRPS, quadratic, overlap, log forward, backward and beyond, and what is lost."""
    found = ()
    for _ in tl.static_range(14):
        found = found + (zero,)
    return found


@triton.jit
def add_node(sums, node, gaussian, CRPS: tl.constexpr, QUADRATIC: tl.constexpr, LOGS: tl.constexpr):
    """The sums with a node: y, its weight, and of the mixture density, log density, probabilities, and mean log ratio."""
    y, weight, density, level, below, above, gap = node
    found = ()
    for s in tl.static_range(2):
        inverse, top = gaussian[3 + s], gaussian[5 + s]
        z = (y - gaussian[0]) * inverse
        bell = tl.exp(-0.5 * z * z)
        crps, squares, overlap = sums[7 * s], sums[7 * s + 1], sums[7 * s + 2]
        forward, backward, beyond, lost = sums[7 * s + 3], sums[7 * s + 4], sums[7 * s + 5], sums[7 * s + 6]
        if CRPS:
            apart = tl.where(z > 0.0, above, below) - bell * upper_tail_ratio(tl.abs(z))
            crps += weight * apart * apart
        g = bell * (inverse * INVERSE_SQRT_2PI)
        if QUADRATIC:
            squares += weight * (g - density) * (g - density)
            overlap += weight * g * density
        if LOGS:
            there = level > -float("inf")
            ratio = tl.where(there, level, 0.0) - (top - 0.5 * z * z)
            size = tl.abs(ratio)
            decay = libdevice.expm1(-size)
            of_larger = size + decay
            of_smaller = -of_larger - size * decay
            larger = tl.where(ratio > 0.0, density, g)
            one, other = larger * of_larger, larger * of_smaller
            forward += weight * tl.where(there, tl.where(ratio > 0.0, one, other), g)
            backward += weight * tl.where(there, tl.where(ratio > 0.0, other, one), 0.0)
            beyond += tl.where(weight * g > 0.0, weight * g * gap, 0.0)
            lost += tl.where(there, 0.0, weight * g)
        found = found + (crps, squares, overlap, forward, backward, beyond, lost)
    return found


@triton.jit
def store_sums(out, sums, CRPS: tl.constexpr, QUADRATIC: tl.constexpr, LOGS: tl.constexpr):
    """Add the sums to their rows."""
    for s in tl.static_range(2):
        if CRPS:
            add(out, _CRPS + s, sums[7 * s])
        if QUADRATIC:
            add(out, _QUADRATIC + s, sums[7 * s + 1])
            add(out, _OVERLAP + s, sums[7 * s + 2])
        if LOGS:
            never = sums[7 * s + 6] > 0.0
            add(out, _FORWARD + s, sums[7 * s + 3])
            add(out, _BACK + s, tl.where(never, float("inf"), sums[7 * s + 4]))
            add(out, _BEYOND + s, tl.where(never, float("inf"), sums[7 * s + 5]))


@triton.jit
def add_cell(sums, cell, gaussian, rule, active, CRPS: tl.constexpr, QUADRATIC: tl.constexpr, LOGS: tl.constexpr):
    """The sums with a cell in which the mixture's density is constant."""
    left, width, density, level, below, above, gap = cell
    nodes, weights = rule
    right, low = left + width, left
    going = active & (low < right)
    stretches = 0
    while (tl.max(going.to(tl.int32), axis=0) > 0) & (stretches < _MOST):
        step = smooth_for_gaussians(low, gaussian)
        high = tl.where(low + 1.25 * step >= right, right, low + step)
        first, count = nodes_of((high - low) / step)
        for q in range(tl.max(tl.where(going, count, 0), axis=0)):
            used = going & (q < count)
            y = low + (high - low) * tl.load(nodes + first + q, mask=used, other=0.0)
            weight = tl.where(used, (high - low) * tl.load(weights + first + q, mask=used, other=0.0), 0.0)
            rise = density * (y - left)
            node = y, weight, density, level, below + rise, tl.maximum(above - rise, 0.0), gap
            sums = add_node(sums, node, gaussian, CRPS, QUADRATIC, LOGS)
        low = tl.where(going, high, low)
        going = going & (low < right)
        stretches += 1
    return sums


# Tails -----------------------------------------------------------------------------------------------------------------------


@triton.jit
def tail_numbers(tails, side):
    """Of the tail on a side (0 or 1): start, probability above it and its logarithm, reach and step."""
    own = tails + 5 * side
    return tl.load(own), tl.load(own + 1), tl.load(own + 2), tl.load(own + 3), tl.load(own + 4)


@triton.jit
def in_tail(tail, x, GAUSSIAN: tl.constexpr):
    """At x scales from where a tail begins: its share beyond, and its density and log density for a scale of one."""
    level = log_in_tail(tail, x, GAUSSIAN)
    density = tl.exp(level)
    beyond = density
    if GAUSSIAN:
        z = tail[0] + x
        beyond = density * upper_tail_ratio(tl.abs(z)) * _SQRT_2PI
        beyond = tl.where(z > 0.0, beyond, 1.0 / tail[1] - beyond)
    return beyond, density, level


@triton.jit
def log_in_tail(tail, x, GAUSSIAN: tl.constexpr):
    """The log density alone."""
    level = -x
    if GAUSSIAN:
        z = tail[0] + x
        level = -0.5 * z * z - HALF_LOG_2PI - tail[2]
    return level


@triton.jit
def tail_step(away, scale, tail):
    """How long a stretch may be that begins `away` from where a tail does, outwards if that is positive, or else inwards."""
    own, reach = tail[4] * scale, tail[3] * scale
    inside = tl.where(away > -reach, own, own - reach - away)
    return tl.where(away >= reach, float("inf"), inside)  # also at the end of a tail without a width

"""Sums over cells in which every member's density is constant and its distribution function linear.

Loops run along the cells of one member, where LLVM turns them into vector instructions.
"""

from __future__ import annotations

import math

from uqprism.backends.bars import SHARES
from uqprism.backends.numba.bars_nodes import against_surrogates, integrate, place, surrogate_step
from uqprism.backends.numba.bars_work import (
    CHUNK,
    CRPS_BAYES,
    CRPS_EXCESS,
    ENTROPY,
    LOG_FROM,
    LOG_INTO,
    NODES,
    QUADRATIC_BAYES,
    QUADRATIC_EXCESS,
    Work,
)
from uqprism.backends.numba.base import Floats, borrowing, reduction
from uqprism.backends.numba.special import log, log_and_gap

RUN = 8  # neighbouring cells that are taken together


@borrowing
def sum_cells(work: Work, count: int) -> None:
    """Add what members and mixture gain in these work.cells."""
    density, below, above = work.cells.density, work.cells.below, work.cells.above
    for k in range(count):
        density[k] = below[k] = above[k] = 0.0
    for i in range(len(work.how.weights)):
        weight, d = work.how.weights[i], work.cells.d[i * CHUNK : i * CHUNK + count]
        for k in range(count):
            density[k] += weight * d[k]  # less the first member's so far
    if work.how.crps:
        _distances(work, count)
    if work.how.quadratic:
        _squares(work, count)
    if work.how.logs:
        _logs(work, count)
    first = work.cells.p[:count]
    for k in range(count):
        density[k] += first[k]
    if work.how.logs:
        for k in range(count):
            work.sums[ENTROPY] -= work.cells.width[k] * density[k] * work.cells.log_density[k] if density[k] > 0.0 else 0.0
    if work.how.surrogates:
        for i in range(len(work.how.weights)):
            weight, f, s = (
                work.how.weights[i],
                work.cells.f[i * CHUNK : i * CHUNK + count],
                work.cells.s[i * CHUNK : i * CHUNK + count],
            )
            for k in range(count):
                below[k] += weight * f[k]
                above[k] += weight * s[k]


@reduction
def _distances(work: Work, count: int) -> None:
    """Integrals of F (1 - F) and of the squared distance from the mixture's distribution function, of straight lines."""
    middle, bayes, excess = work.cells.gap[:count], 0.0, 0.0
    density, width = work.cells.density[:count], work.cells.width[:count]
    for k in range(count):
        middle[k] = 0.0
    for i in range(len(work.how.weights)):
        weight, x = work.how.weights[i], work.cells.x[i * CHUNK : i * CHUNK + count]
        for k in range(count):
            middle[k] += weight * x[k]
    for i in range(len(work.how.weights)):
        p, d, f, s, x = (
            work.cells.p[i * CHUNK : i * CHUNK + count],
            work.cells.d[i * CHUNK : i * CHUNK + count],
            work.cells.f[i * CHUNK : i * CHUNK + count],
            work.cells.s[i * CHUNK : i * CHUNK + count],
            work.cells.x[i * CHUNK : i * CHUNK + count],
        )
        own = other = 0.0
        for k in range(count):
            h = width[k]
            rise = p[k] * h
            beyond = max(s[k] - rise, 0.0)
            own += h * (f[k] * s[k] + (f[k] + rise) * beyond + 0.5 * (f[k] * beyond + (f[k] + rise) * s[k]))
            a, b = x[k] - middle[k], (d[k] - density[k]) * h
            other += h * (a * a + a * b + b * b * (1.0 / 3.0))
        bayes += work.how.weights[i] * own
        excess += work.how.weights[i] * other
    work.sums[CRPS_BAYES] += bayes * (1.0 / 3.0)
    work.sums[CRPS_EXCESS] += excess


@reduction
def _squares(work: Work, count: int) -> None:
    bayes = excess = 0.0
    density, width = work.cells.density[:count], work.cells.width[:count]
    for i in range(len(work.how.weights)):
        p, d, own, other = work.cells.p[i * CHUNK : i * CHUNK + count], work.cells.d[i * CHUNK : i * CHUNK + count], 0.0, 0.0
        for k in range(count):
            gap = d[k] - density[k]
            own += width[k] * p[k] * p[k]
            other += width[k] * gap * gap
        bayes += work.how.weights[i] * own
        excess += work.how.weights[i] * other
    work.sums[QUADRATIC_BAYES] -= bayes
    work.sums[QUADRATIC_EXCESS] += excess


@reduction
def _logs(work: Work, count: int) -> None:
    """The entropies relative to the mixture and of the mixture relative to members; one logarithm for each member and cell."""
    density, width, gap = work.cells.density[:count], work.cells.width[:count], work.cells.gap[:count]
    first = work.cells.p[:count]
    inverse, level = work.cells.inverse[:count], work.cells.log_density[:count]
    for k in range(count):
        p = density[k] + first[k]
        inverse[k] = 1.0 / p if p > 0.0 else 0.0
        level[k] = log(p if p > 0.0 else 1.0, work.how.fits)
        gap[k] = 0.0
    into = 0.0
    for i in range(len(work.how.weights)):
        own, d, weight, some = (
            work.cells.p[i * CHUNK : i * CHUNK + count],
            work.cells.d[i * CHUNK : i * CHUNK + count],
            work.how.weights[i],
            0.0,
        )
        for k in range(count):
            ratio, excess = own[k] * inverse[k], (d[k] - density[k]) * inverse[k]
            whole, above = log_and_gap(excess, ratio, work.how.fits)
            near = abs(excess) < 0.5
            term = excess * excess - ratio * above if near else ratio * whole - excess
            counts = ratio > 0.0
            some += width[k] * (density[k] + first[k]) * (term if counts else 1.0)
            gap[k] += weight * (above if counts else math.inf)
        into += weight * some
    out = 0.0
    for k in range(count):
        there = inverse[k] > 0.0
        gap[k] = gap[k] if there else 0.0
        level[k] = level[k] if there else -math.inf
        out += width[k] * (density[k] + first[k]) * gap[k]
    work.sums[LOG_INTO] += into
    work.sums[LOG_FROM] += out


@borrowing
def cells_against_surrogates(work: Work, count: int) -> None:
    """Add the integrals of the mixture with matched and pooled over these work.cells."""
    used = k = 0
    while k < count:
        kind = _nodes_of(work, k)
        last = k + 1
        while last < count and last - k < NODES and kind < 2 and _nodes_of(work, last) == kind:
            last += 1
        if last - k >= RUN:
            against_surrogates(work, used)
            used = 0
            _run(work, k, last, work.how.rules[2 * kind], work.how.rules[2 * kind + 1])
            k = last
            continue
        used = _one_cell(work, k, used)
        k += 1
    against_surrogates(work, used)


@borrowing
def _nodes_of(work: Work, k: int) -> int:
    """Which of the rules a cell needs."""
    share = work.cells.width[k] / surrogate_step(work, work.cells.left[k])
    return 0 if share <= SHARES[0] else 1 if share <= SHARES[1] else 2


@borrowing
def _run(work: Work, first: int, last: int, where: Floats, shares: Floats) -> None:
    """The same for neighbouring cells with as many nodes each: the first nodes of all, then the second."""
    cells = work.cells
    for j in range(len(where)):
        _along(work, first, last, where[j], shares[j])
        integrate(work, last - first, cells.density[first:last], cells.log_density[first:last], cells.gap[first:last])


@borrowing
def _along(work: Work, first: int, last: int, at: float, share: float) -> None:
    left, width, density = work.cells.left[first:last], work.cells.width[first:last], work.cells.density[first:last]
    below, above = work.cells.below[first:last], work.cells.above[first:last]
    y, weight, low, high = work.nodes.y, work.nodes.weight, work.nodes.below, work.nodes.above
    for k in range(last - first):
        rise = density[k] * width[k] * at
        y[k], weight[k] = left[k] + width[k] * at, width[k] * share
        low[k], high[k] = below[k] + rise, max(above[k] - rise, 0.0)


@borrowing
def _one_cell(work: Work, k: int, used: int) -> int:
    """Add the nodes of one cell; returns how many wait."""
    low, left = work.cells.left[k], work.cells.left[k]
    right = left + work.cells.width[k]
    while low < right:
        step = surrogate_step(work, low)
        high = right if low + 1.25 * step >= right else low + step
        before = used
        used = place(work.how.rules, work.nodes.y, work.nodes.weight, low, high, (high - low) / step, used)
        for q in range(before, used):
            rise = work.cells.density[k] * (work.nodes.y[q] - left)
            work.nodes.density[q], work.nodes.log_density[q] = work.cells.density[k], work.cells.log_density[k]
            work.nodes.below[q], work.nodes.above[q] = work.cells.below[k] + rise, max(work.cells.above[k] - rise, 0.0)
            work.nodes.gap[q] = work.cells.gap[k]
        if used > NODES - 12:
            against_surrogates(work, used)
            used = 0
        low = high
    return used

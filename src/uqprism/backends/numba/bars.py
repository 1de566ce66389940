"""Members given by bars or quantiles: finite sums over the cells between edges, for each point in one pass over its bars.

In a cell between two neighbouring edges of any member every density is constant and every distribution function linear, so that
the integrals over it are sums over the members. Members that share their edges share the cells; others have their edges merged. A
mean over pairs of members is a variance over the members, so the work is members x cells.

What has no such sum goes over the nodes of `bars_nodes`: stretches where members with edges of their own have tails, and the mixture
against the Gaussians matched and pooled.

Cells are taken CHUNK at a time; loops run along the cells of one member, where LLVM turns them into vector instructions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from uqprism.backends.fits import Fits
from uqprism.backends.numba.bars_nodes import (
    CRPS_BAYES,
    CRPS_EXCESS,
    ENTROPY,
    FAR,
    LOG_FROM,
    LOG_INTO,
    NODES,
    QUADRATIC_BAYES,
    QUADRATIC_EXCESS,
    SHARES,
    SUM,
    Nodes,
    Surrogates,
    TailNumbers,
    against_surrogates,
    integrate,
    mix,
    new_nodes,
    place,
    surrogate_step,
    tail_log_density,
    tail_step,
    tail_survival,
)
from uqprism.backends.numba.base import Floats, inlined, kernel, reduction, rows
from uqprism.backends.numba.special import log, log_and_gap

CHUNK = 256  # cells
RUN = 8  # neighbouring cells that are taken together
VARIANCE, SPREAD = SUM["variance"], SUM["spread"]
SMALLEST, LARGEST = 1e-140, 1e140  # sizes whose squares neither over- nor underflow
AGREE = 1e-9  # of what the members share: a smaller part of it that they do not share has lost its digits to rounding


class Wanted(NamedTuple):
    """Which sums are wanted."""

    crps: bool
    quadratic: bool
    logs: bool
    surrogates: bool


class Cells(NamedTuple):
    """CHUNK cells, with the mixture in each, and rows of CHUNK for each member.

    Attributes:
        left: relative to the point's origin.
        width: of the cell.
        inverse: one over the width.
        density: of the mixture.
        log_density: of the mixture.
        below: the mixture's probability below the cell.
        above: the same above its left end.
        gap: the mean of log(mixture's density / member's density).
        p: densities of the members.
        d: densities less the first member's.
        f: probabilities below the cell.
        s: probabilities above its left end.
        x: probabilities below the cell less the first member's.
    """

    left: Floats
    width: Floats
    inverse: Floats
    density: Floats
    log_density: Floats
    below: Floats
    above: Floats
    gap: Floats
    p: Floats
    d: Floats
    f: Floats
    s: Floats
    x: Floats


class Point(NamedTuple):
    """What is known of each member of a point.

    Attributes:
        total: of its given probabilities.
        change: what makes a normalised difference of the first member's probability, see `_normalise`.
        mean: relative to the origin.
        off: mean less the mean of the mixture.
        low: of scanning from below: the probability below, its rounding error, and the difference from the first member's.
        place: how many ends are passed.
    """

    total: Floats
    change: Floats
    mean: Floats
    off: Floats
    low: Floats
    error: Floats
    difference: Floats
    whole: Floats
    whole_error: Floats
    place: Any


@inlined
def _room(members: int) -> tuple[Cells, Point]:
    cells = Cells(
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
        np.empty(CHUNK * members),
    )
    point = Point(
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members, np.int64),
    )
    return cells, point


@kernel
def load(source: Any, into: Any, along_points: bool) -> None:
    """Copy (bars, members, points) to (points, members, bars), in the order in which the source lies in memory."""
    bars, members, points = source.shape
    if along_points:
        for i in range(members):
            for b in range(bars):
                for p in range(points):
                    into[p, i, b] = source[b, i, p]
    else:
        for p in range(points):
            for i in range(members):
                for b in range(bars):
                    into[p, i, b] = source[b, i, p]


@kernel
def bars(
    ends: Any,
    mass: Any,
    scales: Any,
    weights: Floats,
    tails: tuple[TailNumbers, TailNumbers] | None,
    wanted: tuple[bool, bool, bool, bool],
    rules: Any,
    out: Any,
    declined: Any,
    fits: Fits,
) -> None:
    """Fill `out` with the sums of every point; points that need more care than a kernel takes are declined.

    Args:
        ends: where the distribution functions are known, without the outer edges of tails, (points or 1, members or 1, ends); one
            row of members if all share them.
        mass: probabilities of bars and tails as given, (points, members, bars).
        scales: of the tails below and above, (points, members, 2).
        weights: (members,), all positive.
        tails: below and above, or None.
        wanted: as in `Wanted`.
        rules: nodes and weights of three Gauss-Legendre rules on (0, 1).
        out: (points, len(SUM)).
        declined: (points,).
        fits: coefficients.
    """
    wants, count = Wanted(wanted[0], wanted[1], wanted[2], wanted[3]), len(weights)
    cells, point = _room(count)
    nodes = new_nodes(count)
    below, above = np.empty((count, ends.shape[2])), np.empty((count, ends.shape[2]))
    for p in range(mass.shape[0]):
        sums = out[p]
        sums[:] = 0.0
        edges = ends[p if ends.shape[0] > 1 else 0]
        shared = _share(edges)
        origin = edges[0, edges.shape[1] // 2]
        usable = _normalise(mass[p], point)
        usable = _moments(edges, origin, mass[p], scales[p], weights, tails, shared, point, sums) and usable
        if not usable:
            declined[p] = True
            continue
        matched, pooled = math.sqrt(sums[VARIANCE] + sums[SPREAD]), math.sqrt(sums[VARIANCE])
        middle = 0.0
        for i in range(count):
            middle += weights[i] * point.mean[i]
        surrogates = Surrogates(middle, matched, pooled)
        if shared:
            _shared(
                edges[0], origin, mass[p], scales[p], weights, tails, wants, surrogates, rules, cells, point, nodes, sums, fits
            )
        else:
            _cumulate(mass[p], point, tails, below, above)
            _merged(
                edges,
                origin,
                mass[p],
                scales[p],
                weights,
                tails,
                wants,
                surrogates,
                rules,
                cells,
                point,
                nodes,
                below,
                above,
                sums,
                fits,
            )
            # Merged edges do not give differences of nearly equal members all their digits.
            if 0.0 < sums[CRPS_EXCESS] < AGREE * sums[CRPS_BAYES] or 0.0 < sums[QUADRATIC_EXCESS] < -AGREE * sums[QUADRATIC_BAYES]:
                declined[p] = True
            if 0.0 < sums[LOG_INTO] < AGREE:
                declined[p] = True


@inlined
def _share(edges: Any) -> bool:
    """Whether all members have the same edges."""
    for i in range(1, edges.shape[0]):
        for b in range(edges.shape[1]):
            if edges[i, b] != edges[0, b]:
                return False
    return True


@inlined
def _normalise(mass: Any, point: Point) -> bool:
    """Fill totals, and what normalises differences.

    A normalised probability is the given one over the member's total. The difference from the first member's is
    (given - first) / total - first * change, in which nothing is rounded that members have in common.
    """
    usable = True
    for i in range(mass.shape[0]):
        total, difference = _totals(mass[i], mass[0])
        point.total[i] = total
        point.change[i] = difference / (total * point.total[0])
        usable = usable and 0.0 < total < math.inf
    return usable


@reduction
def _totals(given: Floats, first: Floats) -> tuple[float, float]:
    """The sum of probabilities, and of their differences from the first member's."""
    total = difference = 0.0
    first = first[: len(given)]
    for b in range(len(given)):
        total += given[b]
        difference += given[b] - first[b]
    return total, difference


@reduction
def _first_moments(
    lows: Floats, highs: Floats, given: Floats, first: Floats, origin: float, inverse: float, change: float
) -> tuple[float, float]:
    """The mean of bars relative to the origin, and its difference from that of a first member with the same edges."""
    highs, given, first = highs[: len(lows)], given[: len(lows)], first[: len(lows)]
    mean = difference = 0.0
    for b in range(len(lows)):
        centre = 0.5 * ((lows[b] - origin) + (highs[b] - origin))
        mean += given[b] * inverse * centre
        difference += ((given[b] - first[b]) * inverse - first[b] * change) * centre
    return mean, difference


@reduction
def _second_moment(lows: Floats, highs: Floats, given: Floats, origin: float, inverse: float, mean: float) -> float:
    """The mean squared distance of bars from a mean."""
    highs, given = highs[: len(lows)], given[: len(lows)]
    square = 0.0
    for b in range(len(lows)):
        low, high = lows[b] - origin, highs[b] - origin
        away, width = 0.5 * (low + high) - mean, high - low
        square += given[b] * inverse * (away * away + width * width * (1.0 / 12.0))
    return square


@inlined
def _moments(
    edges: Any,
    origin: float,
    mass: Any,
    scales: Any,
    weights: Floats,
    tails: tuple[TailNumbers, TailNumbers] | None,
    shared: bool,
    point: Point,
    sums: Floats,
) -> bool:
    """Fill the members' means, the mean variance and the variance of the means; False for sizes that no kernel should try."""
    count, size, shift = mass.shape[0], edges.shape[1] - 1, 0
    if tails is not None:
        shift = 1
    for i in range(count):
        own = edges[i if edges.shape[0] > 1 else 0]
        inverse = 1.0 / point.total[i]
        mean, change = _first_moments(
            own[:size], own[1:], mass[i, shift : shift + size], mass[0, shift : shift + size], origin, inverse, point.change[i]
        )
        if tails is not None:
            for side in range(2):
                tail, sign = (tails[0], -1.0) if side == 0 else (tails[1], 1.0)
                centre = (own[0 if side == 0 else size] - origin) + sign * tail.mean * scales[i, side]
                given, first = mass[i, side * (size + 1)], mass[0, side * (size + 1)]
                mean += given * inverse * centre
                change += ((given - first) * inverse - first * point.change[i]) * centre
        point.mean[i] = mean
        # Of members with edges of their own the means themselves differ.
        point.off[i] = change if shared else mean - point.mean[0]
    middle = 0.0
    for i in range(count):
        middle += weights[i] * point.off[i]
    variance = spread = 0.0
    for i in range(count):
        own = edges[i if edges.shape[0] > 1 else 0]
        inverse, mean = 1.0 / point.total[i], point.mean[i]
        square = _second_moment(own[:size], own[1:], mass[i, shift : shift + size], origin, inverse, mean)
        if tails is not None:
            for side in range(2):
                tail, sign = (tails[0], -1.0) if side == 0 else (tails[1], 1.0)
                scale = scales[i, side]
                away = (own[0 if side == 0 else size] - origin) + sign * tail.mean * scale - mean
                within = scale * scale * (tail.square - tail.mean * tail.mean)
                square += mass[i, side * (size + 1)] * inverse * (away * away + within)
        variance += weights[i] * square
        point.off[i] -= middle
        spread += weights[i] * point.off[i] * point.off[i]
    sums[VARIANCE], sums[SPREAD] = variance, spread
    return SMALLEST * SMALLEST < variance and variance + spread < LARGEST * LARGEST


# Cells of constant densities -----------------------------------------------------------------------------------------------


@inlined
def _sum_cells(cells: Cells, count: int, weights: Floats, wants: Wanted, sums: Floats, fits: Fits) -> None:
    """Add what members and mixture gain in these cells."""
    density, below, above = cells.density, cells.below, cells.above
    for k in range(count):
        density[k] = below[k] = above[k] = 0.0
    for i in range(len(weights)):
        weight, d = weights[i], rows(cells.d, i, CHUNK)
        for k in range(count):
            density[k] += weight * d[k]  # less the first member's so far
    if wants.crps:
        _distances(cells, count, weights, sums)
    if wants.quadratic:
        _squares(cells, count, weights, sums)
    if wants.logs:
        _logs(cells, count, weights, sums, fits)
    first = rows(cells.p, 0, CHUNK)
    for k in range(count):
        density[k] += first[k]
    if wants.logs:
        for k in range(count):
            sums[ENTROPY] -= cells.width[k] * density[k] * cells.log_density[k] if density[k] > 0.0 else 0.0
    if wants.surrogates:
        for i in range(len(weights)):
            weight, f, s = weights[i], rows(cells.f, i, CHUNK), rows(cells.s, i, CHUNK)
            for k in range(count):
                below[k] += weight * f[k]
                above[k] += weight * s[k]


@reduction
def _distances(cells: Cells, count: int, weights: Floats, sums: Floats) -> None:
    """Integrals of F (1 - F) and of the squared distance from the mixture's distribution function, of straight lines."""
    middle, bayes, excess = cells.gap[:count], 0.0, 0.0
    density, width = cells.density[:count], cells.width[:count]
    for k in range(count):
        middle[k] = 0.0
    for i in range(len(weights)):
        weight, x = weights[i], rows(cells.x, i, CHUNK)
        for k in range(count):
            middle[k] += weight * x[k]
    for i in range(len(weights)):
        p, d, f, s, x = (
            rows(cells.p, i, CHUNK)[:count],
            rows(cells.d, i, CHUNK)[:count],
            rows(cells.f, i, CHUNK)[:count],
            rows(cells.s, i, CHUNK)[:count],
            rows(cells.x, i, CHUNK)[:count],
        )
        own = other = 0.0
        for k in range(count):
            h = width[k]
            rise = p[k] * h
            beyond = max(s[k] - rise, 0.0)
            own += h * (f[k] * s[k] + (f[k] + rise) * beyond + 0.5 * (f[k] * beyond + (f[k] + rise) * s[k]))
            a, b = x[k] - middle[k], (d[k] - density[k]) * h
            other += h * (a * a + a * b + b * b * (1.0 / 3.0))
        bayes += weights[i] * own
        excess += weights[i] * other
    sums[CRPS_BAYES] += bayes * (1.0 / 3.0)
    sums[CRPS_EXCESS] += excess


@reduction
def _squares(cells: Cells, count: int, weights: Floats, sums: Floats) -> None:
    bayes = excess = 0.0
    density, width = cells.density[:count], cells.width[:count]
    for i in range(len(weights)):
        p, d, own, other = rows(cells.p, i, CHUNK)[:count], rows(cells.d, i, CHUNK)[:count], 0.0, 0.0
        for k in range(count):
            gap = d[k] - density[k]
            own += width[k] * p[k] * p[k]
            other += width[k] * gap * gap
        bayes += weights[i] * own
        excess += weights[i] * other
    sums[QUADRATIC_BAYES] -= bayes
    sums[QUADRATIC_EXCESS] += excess


@reduction
def _logs(cells: Cells, count: int, weights: Floats, sums: Floats, fits: Fits) -> None:
    """The entropies relative to the mixture and of the mixture relative to members; one logarithm for each member and cell."""
    density, width, gap, first = cells.density[:count], cells.width[:count], cells.gap[:count], rows(cells.p, 0, CHUNK)[:count]
    inverse, level = cells.inverse[:count], cells.log_density[:count]
    for k in range(count):
        p = density[k] + first[k]
        inverse[k] = 1.0 / p if p > 0.0 else 0.0
        level[k] = log(p if p > 0.0 else 1.0, fits)
        gap[k] = 0.0
    into = 0.0
    for i in range(len(weights)):
        own, d, weight, some = rows(cells.p, i, CHUNK)[:count], rows(cells.d, i, CHUNK)[:count], weights[i], 0.0
        for k in range(count):
            ratio, excess = own[k] * inverse[k], (d[k] - density[k]) * inverse[k]
            whole, above = log_and_gap(excess, ratio, fits)
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
    sums[LOG_INTO] += into
    sums[LOG_FROM] += out


@inlined
def _cells_against_surrogates(
    cells: Cells, count: int, surrogates: Surrogates, wants: Wanted, rules: Any, nodes: Nodes, sums: Floats, fits: Fits
) -> None:
    """Add the integrals of the mixture with matched and pooled over these cells."""
    used = k = 0
    while k < count:
        kind = _nodes_of(cells, k, surrogates)
        last = k + 1
        while last < count and last - k < NODES and kind < 2 and _nodes_of(cells, last, surrogates) == kind:
            last += 1
        if last - k >= RUN:
            against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)
            used = 0
            _run(cells, k, last, rules[2 * kind], rules[2 * kind + 1], surrogates, wants, nodes, sums, fits)
            k = last
            continue
        used = _one_cell(cells, k, surrogates, wants, rules, nodes, used, sums, fits)
        k += 1
    against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)


@inlined
def _nodes_of(cells: Cells, k: int, surrogates: Surrogates) -> int:
    """Which of the rules a cell needs."""
    share = cells.width[k] / surrogate_step(cells.left[k], surrogates)
    return 0 if share <= SHARES[0] else 1 if share <= SHARES[1] else 2


@inlined
def _run(
    cells: Cells,
    first: int,
    last: int,
    where: Floats,
    weights: Floats,
    surrogates: Surrogates,
    wants: Wanted,
    nodes: Nodes,
    sums: Floats,
    fits: Fits,
) -> None:
    """The same for neighbouring cells with as many nodes each: the first nodes of all, then the second."""
    count = last - first
    left, width, density = cells.left[first:last], cells.width[first:last], cells.density[first:last]
    for j in range(len(where)):
        at, share = where[j], weights[j]
        _along(left, width, density, cells.below[first:last], cells.above[first:last], at, share, nodes, count)
        pieces = (density, cells.log_density[first:last], cells.gap[first:last])
        integrate(nodes, count, pieces, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)


@inlined
def _along(
    left: Floats, width: Floats, density: Floats, below: Floats, above: Floats, at: float, share: float, nodes: Nodes, count: int
) -> None:
    y, weight, low, high = nodes.y[:count], nodes.weight[:count], nodes.below[:count], nodes.above[:count]
    for k in range(count):
        rise = density[k] * width[k] * at
        y[k], weight[k] = left[k] + width[k] * at, width[k] * share
        low[k], high[k] = below[k] + rise, max(above[k] - rise, 0.0)


@inlined
def _one_cell(
    cells: Cells,
    k: int,
    surrogates: Surrogates,
    wants: Wanted,
    rules: Any,
    nodes: Nodes,
    used: int,
    sums: Floats,
    fits: Fits,
) -> int:
    """Add the nodes of one cell; returns how many wait."""
    low, left = cells.left[k], cells.left[k]
    right = left + cells.width[k]
    while low < right:
        step = surrogate_step(low, surrogates)
        high = right if low + 1.25 * step >= right else low + step
        before = used
        used = place(low, high, (high - low) / step, rules, nodes, used)
        for q in range(before, used):
            rise = cells.density[k] * (nodes.y[q] - left)
            nodes.density[q], nodes.log_density[q] = cells.density[k], cells.log_density[k]
            nodes.below[q], nodes.above[q] = cells.below[k] + rise, max(cells.above[k] - rise, 0.0)
            nodes.gap[q] = cells.gap[k]
        if used > NODES - 12:
            against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)
            used = 0
        low = high
    return used


# Members that share their edges --------------------------------------------------------------------------------------------


@inlined
def _shared(
    edges: Floats,
    origin: float,
    mass: Any,
    scales: Any,
    weights: Floats,
    tails: tuple[TailNumbers, TailNumbers] | None,
    wants: Wanted,
    surrogates: Surrogates,
    rules: Any,
    cells: Cells,
    point: Point,
    nodes: Nodes,
    sums: Floats,
    fits: Fits,
) -> None:
    size, shift = len(edges) - 1, 0
    if tails is not None:
        shift = 1
    if wants.crps or wants.surrogates:
        _scan_totals(mass, point)
        if tails is not None:
            _pass_tail(mass, point)
    if tails is not None:
        for side in range(2):
            tail = tails[side]
            own, bar = scales[0, side], side * (size + 1)
            _shared_tail(tail, own, mass, bar, weights, point, wants, cells, sums, fits)
            if wants.surrogates:
                end, sign = edges[side * size] - origin, 2.0 * side - 1.0
                _tail_against_surrogates(tail, own, end, sign, surrogates, wants, rules, cells, nodes, sums, fits)
    elif wants.surrogates:
        for side in range(2):
            _outside(edges[side * size] - origin, 2.0 * side - 1.0, surrogates, wants, rules, nodes, sums, fits)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        for k in range(count):
            low, high = edges[start + k], edges[start + k + 1]
            cells.left[k], cells.width[k], cells.inverse[k] = low - origin, high - low, 1.0 / (high - low)
        for i in range(len(weights)):
            _fill(mass, i, start + shift, count, point, cells)
            if wants.crps or wants.surrogates:
                _scan(i, count, point, cells)
        _to_densities(len(weights), count, cells)
        _sum_cells(cells, count, weights, wants, sums, fits)
        if wants.surrogates:
            _cells_against_surrogates(cells, count, surrogates, wants, rules, nodes, sums, fits)


@inlined
def _fill(mass: Any, i: int, start: int, count: int, point: Point, cells: Cells) -> None:
    """Normalised probabilities, and their differences from the first member's."""
    p, d = rows(cells.p, i, CHUNK)[:count], rows(cells.d, i, CHUNK)[:count]
    given, first = mass[i, start : start + count], mass[0, start : start + count]
    inverse, change = 1.0 / point.total[i], point.change[i]
    for k in range(count):
        p[k] = given[k] * inverse
        d[k] = (given[k] - first[k]) * inverse - first[k] * change


@inlined
def _to_densities(members: int, count: int, cells: Cells) -> None:
    inverse = cells.inverse[:count]
    for i in range(members):
        p, d = rows(cells.p, i, CHUNK)[:count], rows(cells.d, i, CHUNK)[:count]
        for k in range(count):
            # A bar without a width has its probability at a single value, where distribution functions only jump.
            p[k] = p[k] * inverse[k] if inverse[k] < math.inf else 0.0
            d[k] = d[k] * inverse[k] if inverse[k] < math.inf else 0.0


@inlined
def _scan_totals(mass: Any, point: Point) -> None:
    """The sums of all probabilities, in the order and with the rounding errors of `_scan`."""
    for i in range(mass.shape[0]):
        total, error, inverse = 0.0, 0.0, 1.0 / point.total[i]
        for b in range(mass.shape[1]):
            total, error = _add(total, error, mass[i, b] * inverse)
        point.whole[i], point.whole_error[i] = total, error
        point.low[i] = point.error[i] = point.difference[i] = 0.0


@inlined
def _add(total: float, error: float, x: float) -> tuple[float, float]:
    """total + x, and the error with what this sum was rounded by."""
    after = total + x
    part = after - total
    return after, error + ((total - (after - part)) + (x - part))


@inlined
def _pass_tail(mass: Any, point: Point) -> None:
    """Begin to scan behind the tail below."""
    for i in range(mass.shape[0]):
        given, first = mass[i, 0], mass[0, 0]
        point.low[i] = given / point.total[i]
        point.difference[i] = (given - first) / point.total[i] - first * point.change[i]


@inlined
def _scan(i: int, count: int, point: Point, cells: Cells) -> None:
    """Probabilities below and above the left ends of cells; `above` keeps its digits, since sums know their rounding errors."""
    p, d = rows(cells.p, i, CHUNK)[:count], rows(cells.d, i, CHUNK)[:count]
    f, s, x = rows(cells.f, i, CHUNK)[:count], rows(cells.s, i, CHUNK)[:count], rows(cells.x, i, CHUNK)[:count]
    low, error, difference = point.low[i], point.error[i], point.difference[i]
    whole, whole_error = point.whole[i], point.whole_error[i]
    for k in range(count):
        f[k], x[k] = low + error, difference
        s[k] = max((whole - low) + (whole_error - error), 0.0)
        low, error = _add(low, error, p[k])
        difference += d[k]
    point.low[i], point.error[i], point.difference[i] = low, error, difference


@inlined
def _shared_tail(
    tail: TailNumbers,
    scale: float,
    mass: Any,
    bar: int,
    weights: Floats,
    point: Point,
    wants: Wanted,
    cells: Cells,
    sums: Floats,
    fits: Fits,
) -> None:
    """Add what a tail of one form and scale gains, in which members differ by a factor only.

    The first cell then holds the mixture's probability there, and the mean of the log ratios.
    """
    middle = 0.0
    first = mass[0, bar] / point.total[0]
    for i in range(len(weights)):
        middle += weights[i] * ((mass[i, bar] - mass[0, bar]) / point.total[i] - mass[0, bar] * point.change[i])
    whole = first + middle
    gap = 0.0
    for i in range(len(weights)):
        own = mass[i, bar] / point.total[i]
        difference = (mass[i, bar] - mass[0, bar]) / point.total[i] - mass[0, bar] * point.change[i] - middle
        if wants.crps:
            sums[CRPS_BAYES] += weights[i] * scale * own * (tail.mean - own * tail.squared_survival)
            sums[CRPS_EXCESS] += weights[i] * scale * difference * difference * tail.squared_survival
        if whole > 0.0 and scale > 0.0:
            if wants.quadratic:
                sums[QUADRATIC_BAYES] -= weights[i] * own * own * tail.squared_density / scale
                sums[QUADRATIC_EXCESS] += weights[i] * difference * difference * tail.squared_density / scale
            if wants.logs and own > 0.0:
                excess, ratio = difference / whole, own / whole
                level, above = log_and_gap(excess, ratio, fits)
                term = excess * excess - ratio * above if abs(excess) < 0.5 else ratio * level - excess
                sums[LOG_INTO] += weights[i] * whole * term
                gap += weights[i] * above
            elif wants.logs:
                sums[LOG_INTO] += weights[i] * whole
                gap = math.inf
    if whole > 0.0 and wants.logs and scale > 0.0:
        sums[LOG_FROM] += whole * gap
        sums[ENTROPY] += whole * (tail.entropy + log(scale, fits) - log(whole, fits))
    cells.density[0], cells.gap[0] = whole, gap


@inlined
def _tail_against_surrogates(
    tail: TailNumbers,
    scale: float,
    end: float,
    sign: float,
    surrogates: Surrogates,
    wants: Wanted,
    rules: Any,
    cells: Cells,
    nodes: Nodes,
    sums: Floats,
    fits: Fits,
) -> None:
    """Add the integrals of the mixture with matched and pooled over a shared tail; the first cell holds its probability."""
    whole, gap = cells.density[0], cells.gap[0]
    if not (whole > 0.0 and scale > 0.0):
        _outside(end, sign, surrogates, wants, rules, nodes, sums, fits)
        return
    far = max(tail.reach * scale, sign * (surrogates.mean - end) + FAR * surrogates.matched)
    level = log(whole, fits) - log(scale, fits)
    used, near = 0, 0.0
    while near < far:
        step = min(surrogate_step(end + sign * near, surrogates), tail_step(near, scale, tail))
        high = far if near + 1.25 * step >= far else near + step
        before = used
        used = place(near, high, (high - near) / step, rules, nodes, used)
        for q in range(before, used):
            x = nodes.y[q] / scale
            outside = whole * tail_survival(tail, x, fits)
            nodes.log_density[q] = level + tail_log_density(tail, x)
            nodes.density[q] = math.exp(nodes.log_density[q])
            nodes.below[q] = outside if sign < 0.0 else 1.0 - outside
            nodes.above[q] = outside if sign > 0.0 else 1.0 - outside
            nodes.gap[q], nodes.y[q] = gap, end + sign * nodes.y[q]
        if used > NODES - 12:
            against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)
            used = 0
        near = high
    against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)


@inlined
def _outside(
    end: float, sign: float, surrogates: Surrogates, wants: Wanted, rules: Any, nodes: Nodes, sums: Floats, fits: Fits
) -> None:
    """Add the integrals of matched and pooled where no member has any probability."""
    far = sign * (surrogates.mean - end) + FAR * surrogates.matched
    used, near = 0, 0.0
    while near < far:
        step = surrogate_step(end + sign * near, surrogates)
        high = far if near + 1.25 * step >= far else near + step
        before = used
        used = place(near, high, (high - near) / step, rules, nodes, used)
        for q in range(before, used):
            nodes.density[q], nodes.log_density[q], nodes.gap[q] = 0.0, -math.inf, 0.0
            nodes.below[q], nodes.above[q] = (0.0, 1.0) if sign < 0.0 else (1.0, 0.0)
            nodes.y[q] = end + sign * nodes.y[q]
        if used > NODES - 12:
            against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)
            used = 0
        near = high
    against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)


# Members with edges of their own -------------------------------------------------------------------------------------------


@inlined
def _cumulate(mass: Any, point: Point, tails: tuple[TailNumbers, TailNumbers] | None, below: Any, above: Any) -> None:
    """The probabilities below and above each end, each summed from its own side."""
    last, shift = below.shape[1] - 1, 0
    if tails is not None:
        shift = 1
    for i in range(mass.shape[0]):
        inverse = 1.0 / point.total[i]
        below[i, 0] = above[i, last] = 0.0
        if tails is not None:
            below[i, 0], above[i, last] = mass[i, 0] * inverse, mass[i, last + 1] * inverse
        for b in range(last):
            below[i, b + 1] = below[i, b] + mass[i, b + shift] * inverse
            above[i, last - 1 - b] = above[i, last - b] + mass[i, last - 1 - b + shift] * inverse


@inlined
def _merged(
    edges: Any,
    origin: float,
    mass: Any,
    scales: Any,
    weights: Floats,
    tails: tuple[TailNumbers, TailNumbers] | None,
    wants: Wanted,
    surrogates: Surrogates,
    rules: Any,
    cells: Cells,
    point: Point,
    nodes: Nodes,
    below: Any,
    above: Any,
    sums: Floats,
    fits: Fits,
) -> None:
    members, size = len(weights), edges.shape[1]
    low, high = edges[0, 0] - origin, edges[0, size - 1] - origin
    for i in range(members):
        point.place[i] = 0
        low, high = min(low, edges[i, 0] - origin), max(high, edges[i, size - 1] - origin)
    used = 0
    if tails is not None:
        # From where no tail counts any more up to the first end.
        far = low
        for i in range(members):
            far = min(far, edges[i, 0] - origin - tails[0].reach * scales[i, 0])
        if wants.surrogates:
            far = min(far, surrogates.mean - FAR * surrogates.matched)
        used = _stretch(
            far, low, edges, origin, mass, scales, weights, tails, wants, surrogates, rules, point, nodes, below, above, sums, fits, used
        )
    elif wants.surrogates:
        _outside(low, -1.0, surrogates, wants, rules, nodes, sums, fits)
        _outside(high, 1.0, surrogates, wants, rules, nodes, sums, fits)
    count, y = 0, low
    while y < high:
        following, outside = high, False
        for i in range(members):
            at = point.place[i]
            while at < size and edges[i, at] - origin <= y:
                at += 1
            point.place[i] = at
            if at < size:
                following = min(following, edges[i, at] - origin)
            outside = outside or at == 0 or at == size
        if tails is not None:
            if outside:
                used = _stretch(
                    y,
                    following,
                    edges,
                    origin,
                    mass,
                    scales,
                    weights,
                    tails,
                    wants,
                    surrogates,
                    rules,
                    point,
                    nodes,
                    below,
                    above,
                    sums,
                    fits,
                    used,
                )
                y = following
                continue
        _cell(y, following, edges, origin, mass, tails, point, cells, below, above, count)
        count += 1
        if count == CHUNK:
            _finish(cells, count, weights, wants, surrogates, rules, nodes, sums, fits, used)
            count = used = 0
        y = following
    if tails is not None:
        for i in range(members):
            point.place[i] = size
        far = high
        for i in range(members):
            far = max(far, edges[i, size - 1] - origin + tails[1].reach * scales[i, 1])
        if wants.surrogates:
            far = max(far, surrogates.mean + FAR * surrogates.matched)
        used = _stretch(
            high, far, edges, origin, mass, scales, weights, tails, wants, surrogates, rules, point, nodes, below, above, sums, fits, used
        )
    _finish(cells, count, weights, wants, surrogates, rules, nodes, sums, fits, used)


@inlined
def _finish(
    cells: Cells,
    count: int,
    weights: Floats,
    wants: Wanted,
    surrogates: Surrogates,
    rules: Any,
    nodes: Nodes,
    sums: Floats,
    fits: Fits,
    used: int,
) -> None:
    """Add the nodes and the cells that wait."""
    _take(nodes, used, weights, wants, surrogates, sums, fits)
    _sum_cells(cells, count, weights, wants, sums, fits)
    if wants.surrogates:
        _cells_against_surrogates(cells, count, surrogates, wants, rules, nodes, sums, fits)


@inlined
def _take(nodes: Nodes, used: int, weights: Floats, wants: Wanted, surrogates: Surrogates, sums: Floats, fits: Fits) -> None:
    mix(nodes, used, weights, sums, wants.crps, wants.quadratic, wants.logs, fits)
    if wants.surrogates:
        against_surrogates(nodes, used, surrogates, wants.crps, wants.quadratic, wants.logs, sums, fits)


@inlined
def _cell(
    left: float,
    right: float,
    edges: Any,
    origin: float,
    mass: Any,
    tails: tuple[TailNumbers, TailNumbers] | None,
    point: Point,
    cells: Cells,
    below: Any,
    above: Any,
    k: int,
) -> None:
    """Fill one cell; every member is in a bar, or without tails outside of all of its own."""
    size, shift = edges.shape[1], 0
    if tails is not None:
        shift = 1
    cells.left[k], cells.width[k], cells.inverse[k] = left, right - left, 1.0 / (right - left)
    for i in range(edges.shape[0]):
        at, row = point.place[i], i * CHUNK + k
        if at == 0 or at == size:
            cells.p[row] = 0.0
            cells.f[row], cells.s[row] = (0.0, 1.0) if at == 0 else (1.0, 0.0)
        else:
            start, end = edges[i, at - 1] - origin, edges[i, at] - origin
            p = mass[i, at - 1 + shift] / point.total[i] / (end - start)
            cells.p[row] = p
            cells.f[row], cells.s[row] = below[i, at - 1] + p * (left - start), above[i, at] + p * (end - left)
        cells.d[row] = cells.p[row] - cells.p[k]
        # Of two distribution functions, by the smaller probabilities.
        upper = cells.s[k] < cells.f[k]
        cells.x[row] = cells.s[k] - cells.s[row] if upper else cells.f[row] - cells.f[k]


@inlined
def _stretch(
    low: float,
    high: float,
    edges: Any,
    origin: float,
    mass: Any,
    scales: Any,
    weights: Floats,
    tails: tuple[TailNumbers, TailNumbers],
    wants: Wanted,
    surrogates: Surrogates,
    rules: Any,
    point: Point,
    nodes: Nodes,
    below: Any,
    above: Any,
    sums: Floats,
    fits: Fits,
    used: int,
) -> int:
    """Add nodes between two neighbouring ends, where some members have tails; returns how many wait to be taken."""
    size, members = edges.shape[1], len(weights)
    start = low
    while start < high:
        step = high - start
        if wants.surrogates:
            step = min(step, surrogate_step(start, surrogates))
        longest = math.inf
        for i in range(members):
            if point.place[i] == 0:
                longest = min(longest, tail_step(start - (edges[i, 0] - origin), scales[i, 0], tails[0]))
            elif point.place[i] == size:
                longest = min(longest, tail_step(start - (edges[i, size - 1] - origin), scales[i, 1], tails[1]))
        step = min(step, longest)
        end = high if start + 1.25 * step >= high else start + step
        whole = min(longest, surrogate_step(start, surrogates)) if wants.surrogates else longest
        before = used
        used = place(start, end, (end - start) / whole, rules, nodes, used)
        for i in range(members):
            _member_nodes(i, before, used, edges, origin, mass, scales, tails, point, nodes, below, above, fits)
        if used > NODES - 12:
            _take(nodes, used, weights, wants, surrogates, sums, fits)
            used = 0
        start = end
    return used


@inlined
def _member_nodes(
    i: int,
    first: int,
    last: int,
    edges: Any,
    origin: float,
    mass: Any,
    scales: Any,
    tails: tuple[TailNumbers, TailNumbers],
    point: Point,
    nodes: Nodes,
    below: Any,
    above: Any,
    fits: Fits,
) -> None:
    """Fill a member's rows at some nodes."""
    size, at = edges.shape[1], point.place[i]
    p, level = rows(nodes.densities, i, NODES), rows(nodes.log_densities, i, NODES)
    f, s = rows(nodes.belows, i, NODES), rows(nodes.aboves, i, NODES)
    if 0 < at < size:
        start, end = edges[i, at - 1] - origin, edges[i, at] - origin
        density = mass[i, at] / point.total[i] / (end - start)
        height = log(density, fits) if density > 0.0 else -math.inf
        for q in range(first, last):
            p[q], level[q] = density, height
            f[q], s[q] = below[i, at - 1] + density * (nodes.y[q] - start), above[i, at] + density * (end - nodes.y[q])
        return
    side = 0 if at == 0 else 1
    tail = tails[0] if side == 0 else tails[1]
    share = below[i, 0] if side == 0 else above[i, size - 1]
    end, scale, sign = edges[i, 0 if side == 0 else size - 1] - origin, scales[i, side], -1.0 if side == 0 else 1.0
    there = share > 0.0 and scale > 0.0
    height = log(share, fits) - log(scale, fits) if there else -math.inf
    for q in range(first, last):
        x = sign * (nodes.y[q] - end) / scale if there else 0.0
        outside = share * tail_survival(tail, x, fits) if there else 0.0
        level[q] = height + tail_log_density(tail, x)
        p[q] = math.exp(level[q])
        f[q], s[q] = (outside, 1.0 - outside) if side == 0 else (1.0 - outside, outside)

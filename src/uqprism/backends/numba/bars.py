"""Members given by bars or quantiles: finite sums over the cells between edges, for each point in one pass over its bars.

In a cell between two neighbouring edges of any member every density is constant and every distribution function linear, so that
the integrals over it are sums over the members. Members that share their edges share the cells; others have their edges merged. A
mean over pairs of members is a variance over the members, so the work is members x cells.

What has no such sum goes over the nodes of `bars_nodes`: stretches where members with edges of their own have tails, and the
mixture against the Gaussians matched and pooled.
"""

from __future__ import annotations

import math
from typing import Any

from uqprism.backends.bars import AGREE, FAR, LARGEST, SMALLEST, TailNumbers
from uqprism.backends.fits import Fits
from uqprism.backends.numba.bars_cells import cells_against_surrogates, sum_cells
from uqprism.backends.numba.bars_merged import cumulate, merged
from uqprism.backends.numba.bars_nodes import (
    against_surrogates,
    finish,
    outside,
    place,
    surrogate_step,
    tail_log_density,
    tail_step,
    tail_survival,
)
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
    SPREAD,
    VARIANCE,
    Given,
    How,
    Work,
    new_work,
)
from uqprism.backends.numba.base import Floats, borrowing, kernel, reduction
from uqprism.backends.numba.special import log, log_and_gap


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
    tailed: bool,
    tails: tuple[TailNumbers, TailNumbers],
    wanted: tuple[bool, bool, bool, bool],
    rules: Any,
    out: Any,
    declined: Any,
    fits: Fits,
) -> None:
    """Fill `out` with the sums of every point; points that need more care than a kernel takes are declined.

    Args:
        ends: where the distribution functions are known, without the outer edges of tails, (points or 1, members or 1, ends); one
            row of members if all share them. Changed in place.
        mass: probabilities of bars and tails as given, (points, members, bars).
        scales: of the tails below and above, (points, members, 2).
        weights: (members,), all positive.
        tailed: whether there are tails.
        tails: below and above.
        wanted: whether sums of CRPS, of the quadratic and the log rule, and those of matched and pooled are.
        rules: nodes and weights of three Gauss-Legendre rules on (0, 1).
        out: (points, len(SUM)).
        declined: (points,).
        fits: coefficients.
    """
    work = new_work(How(wanted[0], wanted[1], wanted[2], wanted[3], tailed, tails, weights, rules, fits), ends.shape[2])
    for row in range(ends.shape[0]):
        # Relative to an edge, so that a large common offset costs no digits.
        origin = ends[row, 0, ends.shape[2] // 2]
        for i in range(ends.shape[1]):
            for b in range(ends.shape[2]):
                ends[row, i, b] -= origin
    for p in range(mass.shape[0]):
        given = Given(ends[p if ends.shape[0] > 1 else 0], mass[p], scales[p])
        work.sums[:] = 0.0
        shared = _share(given.edges)
        usable = _normalise(work, given) and _moments(work, given, shared)
        if usable:
            middle = 0.0
            for i in range(len(weights)):
                middle += weights[i] * work.point.mean[i]
            variance, spread = work.sums[VARIANCE], work.sums[SPREAD]
            work.gaussian[0], work.gaussian[1], work.gaussian[2] = middle, math.sqrt(variance + spread), math.sqrt(variance)
            if shared:
                _shared(work, given)
            else:
                cumulate(work, given)
                merged(work, given)
                usable = not _agree(work.sums)
            finish(work)
        declined[p] = not usable
        out[p] = work.sums


@borrowing
def _agree(sums: Floats) -> bool:
    """Whether members nearly agree: merged edges do not give their differences all digits."""
    near = 0.0 < sums[CRPS_EXCESS] < AGREE * sums[CRPS_BAYES] or 0.0 < sums[LOG_INTO] < AGREE
    return bool(near or 0.0 < sums[QUADRATIC_EXCESS] < -AGREE * sums[QUADRATIC_BAYES])


@borrowing
def _share(edges: Any) -> bool:
    """Whether all members have the same edges."""
    for i in range(1, edges.shape[0]):
        for b in range(edges.shape[1]):
            if edges[i, b] != edges[0, b]:
                return False
    return True


@borrowing
def _normalise(work: Work, given: Given) -> bool:
    """Fill totals, and what normalises differences.

    A normalised probability is the given one over the member's total. The difference from the first member's is
    (given - first) / total - first * change, in which nothing is rounded that members have in common.
    """
    mass, point = given.mass, work.point
    usable = True
    for i in range(mass.shape[0]):
        total, difference = _sum(mass[i]), 0.0
        for start in range(0, mass.shape[1], CHUNK):
            count = min(CHUNK, mass.shape[1] - start)
            # Stored before they are summed in any order.
            _differences(mass[i, start : start + count], mass[0, start : start + count], 1.0, 0.0, work.cells.gap)
            difference += _sum(work.cells.gap[:count])
        point.total[i] = total
        point.change[i] = difference / (total * point.total[0])
        usable = usable and 0.0 < total < math.inf
    return usable


@borrowing
def _differences(given: Floats, first: Floats, inverse: float, change: float, into: Floats) -> None:
    first, into = first[: len(given)], into[: len(given)]
    for b in range(len(given)):
        into[b] = (given[b] - first[b]) * inverse - first[b] * change


@reduction
def _sum(values: Floats) -> float:
    total = 0.0
    for b in range(len(values)):
        total += values[b]
    return total


@reduction
def _first_moment(lows: Floats, highs: Floats, mass: Floats) -> float:
    highs, mass = highs[: len(lows)], mass[: len(lows)]
    total = 0.0
    for b in range(len(lows)):
        total += mass[b] * (lows[b] + highs[b])
    return 0.5 * total


@reduction
def _second_moment(lows: Floats, highs: Floats, given: Floats, inverse: float, mean: float) -> float:
    """The mean squared distance of bars from a mean."""
    highs, given = highs[: len(lows)], given[: len(lows)]
    square = 0.0
    for b in range(len(lows)):
        low, high = lows[b], highs[b]
        away, width = 0.5 * (low + high) - mean, high - low
        square += given[b] * inverse * (away * away + width * width * (1.0 / 12.0))
    return square


@borrowing
def _moments(work: Work, given: Given, shared: bool) -> bool:
    """Fill the members' means, the mean variance and the variance of the means; False for sizes that no kernel should try."""
    edges, mass, scales, point, weights = given.edges, given.mass, given.scales, work.point, work.how.weights
    count, size, shift = mass.shape[0], edges.shape[1] - 1, 1 if work.how.tailed else 0
    for i in range(count):
        own = edges[i if edges.shape[0] > 1 else 0]
        inverse = 1.0 / point.total[i]
        mean, change = _first_moment(own[:size], own[1:], mass[i, shift : shift + size]) * inverse, 0.0
        for start in range(0, size if shared else 0, CHUNK):
            last = min(size, start + CHUNK)
            first, after = start + shift, last + shift
            _differences(mass[i, first:after], mass[0, first:after], inverse, point.change[i], work.cells.gap)
            change += _first_moment(own[start:last], own[start + 1 : last + 1], work.cells.gap)
        if work.how.tailed:
            for side in range(2):
                tail, sign = work.how.tails[side], 2.0 * side - 1.0
                centre = own[side * size] + sign * tail.mean * scales[i, side]
                share, first = mass[i, side * (size + 1)], mass[0, side * (size + 1)]
                mean += share * inverse * centre
                change += ((share - first) * inverse - first * point.change[i]) * centre
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
        square = _second_moment(own[:size], own[1:], mass[i, shift : shift + size], inverse, mean)
        if work.how.tailed:
            for side in range(2):
                tail, sign = work.how.tails[side], 2.0 * side - 1.0
                scale = scales[i, side]
                away = own[side * size] + sign * tail.mean * scale - mean
                within = scale * scale * (tail.square - tail.mean * tail.mean)
                square += mass[i, side * (size + 1)] * inverse * (away * away + within)
        variance += weights[i] * square
        point.off[i] -= middle
        spread += weights[i] * point.off[i] * point.off[i]
    work.sums[VARIANCE], work.sums[SPREAD] = variance, spread
    return bool(variance > SMALLEST * SMALLEST and variance + spread < LARGEST * LARGEST)


# Members that share their edges --------------------------------------------------------------------------------------------


@borrowing
def _shared(work: Work, given: Given) -> None:
    """Add what members with the same edges gain; their cells are their bars."""
    edges, cells, how = given.edges[0], work.cells, work.how
    size, scan = len(edges) - 1, how.crps or how.surrogates
    if scan:
        _scan_totals(work, given)
    if how.tailed:
        for side in range(2):
            _shared_tail(work, given, side)
            if how.surrogates:
                _tail_against_surrogates(work, given, side)
        if scan:
            _pass_tail(work, given)
    elif how.surrogates:
        for side in range(2):
            outside(work, edges[side * size], 2.0 * side - 1.0)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        for k in range(count):
            low, high = edges[start + k], edges[start + k + 1]
            cells.left[k], cells.width[k], cells.inverse[k] = low, high - low, 1.0 / (high - low)
        for i in range(len(how.weights)):
            _fill(work, given, i, start + (1 if how.tailed else 0), count)
            if scan:
                _scan(work, i, count)
        _to_densities(work, count)
        sum_cells(work, count)
        if how.surrogates:
            cells_against_surrogates(work, count)


@borrowing
def _fill(work: Work, given: Given, i: int, start: int, count: int) -> None:
    """Normalised probabilities, and their differences from the first member's."""
    p, d = work.cells.p[i * CHUNK : i * CHUNK + count], work.cells.d[i * CHUNK : i * CHUNK + count]
    own, first = given.mass[i, start : start + count], given.mass[0, start : start + count]
    inverse, change = 1.0 / work.point.total[i], work.point.change[i]
    for k in range(count):
        p[k] = own[k] * inverse
    _differences(own, first, inverse, change, d)


@borrowing
def _to_densities(work: Work, count: int) -> None:
    inverse = work.cells.inverse[:count]
    for i in range(len(work.how.weights)):
        p, d = work.cells.p[i * CHUNK : i * CHUNK + count], work.cells.d[i * CHUNK : i * CHUNK + count]
        for k in range(count):
            # A bar without a width has its probability at a single value, where distribution functions only jump.
            p[k] = p[k] * inverse[k] if inverse[k] < math.inf else 0.0
            d[k] = d[k] * inverse[k] if inverse[k] < math.inf else 0.0


@borrowing
def _scan_totals(work: Work, given: Given) -> None:
    """The sums of all probabilities, in the order and with the rounding errors of `_scan`."""
    mass = given.mass
    for i in range(mass.shape[0]):
        total, error, inverse = 0.0, 0.0, 1.0 / work.point.total[i]
        for b in range(mass.shape[1]):
            total, error = _add(total, error, mass[i, b] * inverse)
        work.point.whole[i], work.point.whole_error[i] = total, error
        work.point.low[i] = work.point.error[i] = work.point.difference[i] = 0.0


@borrowing
def _add(total: float, error: float, x: float) -> tuple[float, float]:
    """total + x, and the error with what this sum was rounded by."""
    after = total + x
    part = after - total
    return after, error + ((total - (after - part)) + (x - part))


@borrowing
def _pass_tail(work: Work, given: Given) -> None:
    """Begin to scan behind the tail below."""
    mass = given.mass
    for i in range(mass.shape[0]):
        own, first = mass[i, 0], mass[0, 0]
        work.point.low[i] = own / work.point.total[i]
        work.point.difference[i] = (own - first) / work.point.total[i] - first * work.point.change[i]


@borrowing
def _scan(work: Work, i: int, count: int) -> None:
    """Probabilities below and above the left ends of cells; `above` keeps its digits, since sums know their rounding errors."""
    p, d = work.cells.p[i * CHUNK : i * CHUNK + count], work.cells.d[i * CHUNK : i * CHUNK + count]
    f, s, x = (
        work.cells.f[i * CHUNK : i * CHUNK + count],
        work.cells.s[i * CHUNK : i * CHUNK + count],
        work.cells.x[i * CHUNK : i * CHUNK + count],
    )
    low, error, difference = work.point.low[i], work.point.error[i], work.point.difference[i]
    whole, whole_error = work.point.whole[i], work.point.whole_error[i]
    for k in range(count):
        f[k], x[k] = low + error, difference
        s[k] = max((whole - low) + (whole_error - error), 0.0)
        low, error = _add(low, error, p[k])
        difference += d[k]
    work.point.low[i], work.point.error[i], work.point.difference[i] = low, error, difference


@borrowing
def _shared_tail(work: Work, given: Given, side: int) -> None:
    """Add what a tail of one form and scale gains, in which members differ by a factor only.

    The first cell then holds the mixture's probability there, and the mean of the log ratios.
    """
    tail, scale, mass, point, weights = work.how.tails[side], given.scales[0, side], given.mass, work.point, work.how.weights
    bar = side * (mass.shape[1] - 1)
    middle = 0.0
    first = mass[0, bar] / point.total[0]
    for i in range(len(work.how.weights)):
        middle += weights[i] * ((mass[i, bar] - mass[0, bar]) / point.total[i] - mass[0, bar] * point.change[i])
    whole = first + middle
    gap = 0.0
    for i in range(len(work.how.weights)):
        own = mass[i, bar] / point.total[i]
        difference = (mass[i, bar] - mass[0, bar]) / point.total[i] - mass[0, bar] * point.change[i] - middle
        if work.how.crps:
            work.sums[CRPS_BAYES] += weights[i] * scale * own * (tail.mean - own * tail.squared_survival)
            work.sums[CRPS_EXCESS] += weights[i] * scale * difference * difference * tail.squared_survival
        if whole > 0.0 and scale > 0.0:
            if work.how.quadratic:
                work.sums[QUADRATIC_BAYES] -= weights[i] * own * own * tail.squared_density / scale
                work.sums[QUADRATIC_EXCESS] += weights[i] * difference * difference * tail.squared_density / scale
            if work.how.logs and own > 0.0:
                excess, ratio = difference / whole, own / whole
                level, above = log_and_gap(excess, ratio, work.how.fits)
                term = excess * excess - ratio * above if abs(excess) < 0.5 else ratio * level - excess
                work.sums[LOG_INTO] += weights[i] * whole * term
                gap += weights[i] * above
            elif work.how.logs:
                work.sums[LOG_INTO] += weights[i] * whole
                gap = math.inf
    if whole > 0.0 and work.how.logs and scale > 0.0:
        work.sums[LOG_FROM] += whole * gap
        work.sums[ENTROPY] += whole * (tail.entropy + log(scale, work.how.fits) - log(whole, work.how.fits))
    work.cells.density[0], work.cells.gap[0] = whole, gap


@borrowing
def _tail_against_surrogates(work: Work, given: Given, side: int) -> None:
    """Add the integrals of the mixture with matched and pooled over a shared tail; the first cell holds its probability."""
    tail, scale, nodes = work.how.tails[side], given.scales[0, side], work.nodes
    end, sign = given.edges[0, side * (given.edges.shape[1] - 1)], 2.0 * side - 1.0
    whole, gap = work.cells.density[0], work.cells.gap[0]
    if not (whole > 0.0 and scale > 0.0):
        outside(work, end, sign)
        return
    far = max(tail.reach * scale, sign * (work.gaussian[0] - end) + FAR * work.gaussian[1])
    level = log(whole, work.how.fits) - log(scale, work.how.fits)
    used, near = 0, 0.0
    while near < far:
        step = min(surrogate_step(work, end + sign * near), tail_step(near, scale, tail))
        high = far if near + 1.25 * step >= far else near + step
        before = used
        used = place(work.how.rules, work.nodes.y, work.nodes.weight, near, high, (high - near) / step, used)
        for q in range(before, used):
            x = nodes.y[q] / scale
            beyond = whole * tail_survival(tail, x, work.how.fits)
            nodes.log_density[q] = level + tail_log_density(tail, x)
            nodes.density[q] = math.exp(nodes.log_density[q])
            nodes.below[q] = beyond if sign < 0.0 else 1.0 - beyond
            nodes.above[q] = beyond if sign > 0.0 else 1.0 - beyond
            nodes.gap[q], nodes.y[q] = gap, end + sign * nodes.y[q]
        if used > NODES - 12:
            against_surrogates(work, used)
            used = 0
        near = high
    against_surrogates(work, used)

"""Members with edges of their own: the cells between the merged edges, and nodes where some members have tails."""

from __future__ import annotations

import math

import numpy as np

from uqprism.backends.bars import CLOSE, FAR, TailNumbers
from uqprism.backends.fits import Fits
from uqprism.backends.numba.bars_cells import cells_against_surrogates, sum_cells
from uqprism.backends.numba.bars_nodes import (
    against_surrogates,
    mix,
    place,
    surrogate_step,
    tail_log_density,
    tail_step,
)
from uqprism.backends.numba.bars_nodes import (
    outside as outside_of_all,
)
from uqprism.backends.numba.bars_work import (
    CHUNK,
    HALF_LOG_2PI,
    INVERSE_SQRT_2PI,
    NODES,
    Given,
    Work,
)
from uqprism.backends.numba.base import Floats, borrowing
from uqprism.backends.numba.special import exp, log, upper_tail_ratio


@borrowing
def cumulate(work: Work, given: Given) -> None:
    """The probabilities below and above each end, each summed from its own side."""
    mass, point, how, below, above = given.mass, work.point, work.how, work.below, work.above
    last, shift = below.shape[1] - 1, 1 if how.tailed else 0
    for i in range(mass.shape[0]):
        inverse = 1.0 / point.total[i]
        below[i, 0] = above[i, last] = 0.0
        if how.tailed:
            below[i, 0], above[i, last] = mass[i, 0] * inverse, mass[i, last + 1] * inverse
        for b in range(last):
            below[i, b + 1] = below[i, b] + mass[i, b + shift] * inverse
            above[i, last - 1 - b] = above[i, last - b] + mass[i, last - 1 - b + shift] * inverse


@borrowing
def merged(work: Work, given: Given) -> None:
    """Add what such members gain."""
    edges, scales, point, how = given.edges, given.scales, work.point, work.how
    members, size = len(how.weights), edges.shape[1]
    low, high = edges[0, 0], edges[0, size - 1]
    for i in range(members):
        point.place[i] = 0
        low, high = min(low, edges[i, 0]), max(high, edges[i, size - 1])
    if how.tailed:
        # From where no tail counts yet to where none counts any more.
        for i in range(members):
            low = min(low, edges[i, 0] - how.tails[0].reach * scales[i, 0])
            high = max(high, edges[i, size - 1] + how.tails[1].reach * scales[i, 1])
        if how.surrogates:
            low = min(low, work.gaussian[0] - FAR * work.gaussian[1])
            high = max(high, work.gaussian[0] + FAR * work.gaussian[1])
    elif how.surrogates:
        outside_of_all(work, low, -1.0)
        outside_of_all(work, high, 1.0)
    count, used, y = 0, 0, low
    while y < high:
        following, beyond = high, False
        for i in range(members):
            at = point.place[i]
            while at < size and edges[i, at] <= y:
                at += 1
            point.place[i] = at
            if at < size:
                following = min(following, edges[i, at])
            beyond = beyond or at in (0, size)
        if how.tailed and beyond:
            used = _stretch(work, given, y, following, used)
        else:
            _cell(work, given, y, following, count)
            count += 1
        y = following
        if count == CHUNK:
            _finish(work, count, used)
            count = used = 0
    _finish(work, count, used)


@borrowing
def _finish(work: Work, count: int, used: int) -> None:
    """Add the nodes and the cells that wait."""
    _take(work, used)
    sum_cells(work, count)
    if work.how.surrogates:
        cells_against_surrogates(work, count)


@borrowing
def _take(work: Work, used: int) -> None:
    mix(work, used)
    if work.how.surrogates:
        against_surrogates(work, used)


@borrowing
def _cell(work: Work, given: Given, left: float, right: float, k: int) -> None:
    """Fill one cell; every member is in a bar, or without tails outside of all of its own."""
    edges, cells, point, below, above = given.edges, work.cells, work.point, work.below, work.above
    size, shift = edges.shape[1], 1 if work.how.tailed else 0
    cells.left[k], cells.width[k], cells.inverse[k] = left, right - left, 1.0 / (right - left)
    for i in range(edges.shape[0]):
        at, row = point.place[i], i * CHUNK + k
        if at in (0, size):
            cells.p[row] = 0.0
            cells.f[row], cells.s[row] = (0.0, 1.0) if at == 0 else (1.0, 0.0)
        else:
            start, end = edges[i, at - 1], edges[i, at]
            p = given.mass[i, at - 1 + shift] / point.total[i] / (end - start)
            cells.p[row] = p
            cells.f[row], cells.s[row] = below[i, at - 1] + p * (left - start), above[i, at] + p * (end - left)
        cells.d[row] = cells.p[row] - cells.p[k]
        # Of two distribution functions, by the smaller probabilities.
        upper = cells.s[k] < cells.f[k]
        cells.x[row] = cells.s[k] - cells.s[row] if upper else cells.f[row] - cells.f[k]


@borrowing
def _stretch(work: Work, given: Given, low: float, high: float, used: int) -> int:
    """Add nodes between two neighbouring ends, where some members have tails; returns how many wait to be taken."""
    edges, scales, point, how = given.edges, given.scales, work.point, work.how
    size, members = edges.shape[1], len(how.weights)
    start, before = low, used
    while start < high:
        longest = surrogate_step(work, start) if how.surrogates else math.inf
        over = math.inf  # how much further than the longest a last stretch may go
        for i in range(members):
            if point.place[i] not in (0, size):
                continue
            side = 0 if point.place[i] == 0 else 1
            tail, scale, away = how.tails[side], scales[i, side], start - edges[i, side * (size - 1)]
            longest = min(longest, tail_step(away, scale, tail))
            if away < tail.reach * scale:  # the way to a narrow tail is long, and a quarter of it would pass over the tail
                over = min(over, 0.25 * tail.step * scale)
        if how.logs and how.surrogates:
            longest = min(longest, _bend_step(work, given, start))
        end = high if start + longest + min(over, 0.25 * longest) >= high else start + longest
        if end <= start:  # a tail narrower than the spacing of doubles
            end = min(high, np.nextafter(start, math.inf))
            longest = end - start
        used = place(work.how.rules, work.nodes.y, work.nodes.weight, start, end, (end - start) / longest, used)
        start = end
        if used > NODES - 12 or start == high:
            for i in range(members):
                _member_nodes(work, given, i, before, used)
        if used > NODES - 12:
            _take(work, used)
            before = used = 0
    return used


@borrowing
def _bend_step(work: Work, given: Given, y: float) -> float:
    """How long a stretch that begins at y may be for the bends of the log density, where another member takes the lead or nearly.

    Half the distance from any, ahead or behind, but no less than it takes to bend. Log densities are parabolas, which go on
    beyond the edges: nodes feel a bend there too.
    """
    first, longest = _leader(work, given, y), math.inf
    top, rise, bow = _parabola(work, given, first, y)
    for i in range(len(work.how.weights)):
        level, slope, curvature = _parabola(work, given, i, y)
        if i == first or not (level > -math.inf and top > -math.inf):
            continue
        a, b, c = curvature - bow, slope - rise, min(level - top, 0.0)  # the lead is a t^2 + b t + c
        for way in (-1.0, 1.0):
            away, turn = _first_root(a, way * b, c)
            if away < math.inf:
                longest = min(longest, max(0.5 * away, 1.0 / (0.4 * turn + math.sqrt(abs(a)))))
    return longest


@borrowing
def _first_root(a: float, b: float, c: float) -> tuple[float, float]:
    """The first place above zero where a t^2 + b t + c, not above zero at t = 0, is zero or nearly so, and its slope there."""
    square = b * b - 4.0 * a * c
    if square < 0.0:
        near = b > 0.0 and square > 4.0 * a * CLOSE  # a is below zero, and the lead at most square / (-4 a)
        return (-0.5 * b / a, 0.0) if near else (math.inf, 0.0)
    root = math.sqrt(square)
    if b > 0.0:
        return -2.0 * c / (b + root), root
    return (0.5 * (root - b) / a, root) if a > 0.0 and root > 0.0 else (math.inf, 0.0)


@borrowing
def _parabola(work: Work, given: Given, i: int, y: float) -> tuple[float, float, float]:
    """The weighted log density of a member at y, its slope, and half its curvature."""
    size, at = given.edges.shape[1], work.point.place[i]
    level = _level(work, given, i, y) + math.log(work.how.weights[i])
    if 0 < at < size or not level > -math.inf:
        return level, 0.0, 0.0
    side = 0 if at == 0 else 1
    inverse, tail = 1.0 / given.scales[i, side], work.how.tails[side]
    sign = inverse if side else -inverse
    if tail.gaussian:
        z = tail.start + sign * (y - given.edges[i, side * (size - 1)])
        return level, -z * sign, -0.5 * inverse * inverse
    return level, -sign, 0.0


@borrowing
def _leader(work: Work, given: Given, y: float) -> int:
    """The member with the highest weighted density."""
    best, top = 0, -math.inf
    for i in range(len(work.how.weights)):
        level = _level(work, given, i, y) + math.log(work.how.weights[i])
        if level > top:
            best, top = i, level
    return best


@borrowing
def _level(work: Work, given: Given, i: int, y: float) -> float:
    """The log density of a member in the bar or tail in which it is."""
    edges, size, at = given.edges, given.edges.shape[1], work.point.place[i]
    if 0 < at < size:
        density = given.mass[i, at] / work.point.total[i] / (edges[i, at] - edges[i, at - 1])
        return math.log(density) if density > 0.0 else -math.inf
    lower = at == 0
    share, scale = work.below[i, 0] if lower else work.above[i, size - 1], given.scales[i, 0 if lower else 1]
    if not (share > 0.0 and scale > 0.0):
        return -math.inf
    x = (edges[i, 0] - y if lower else y - edges[i, size - 1]) / scale
    return math.log(share / scale) + tail_log_density(work.how.tails[0 if lower else 1], x)


@borrowing
def _member_nodes(work: Work, given: Given, i: int, first: int, last: int) -> None:
    """Fill a member's rows at some nodes, which are all in one bar or one tail of it."""
    edges, point, how, nodes = given.edges, work.point, work.how, work.nodes
    size, at, y = edges.shape[1], point.place[i], nodes.y[first:last]
    p, level = nodes.densities[i * NODES + first : i * NODES + last], nodes.log_densities[i * NODES + first : i * NODES + last]
    f, s = nodes.belows[i * NODES + first : i * NODES + last], nodes.aboves[i * NODES + first : i * NODES + last]
    if 0 < at < size:
        start, end, below, above = edges[i, at - 1], edges[i, at], work.below[i, at - 1], work.above[i, at]
        density = given.mass[i, at] / point.total[i] / (end - start)
        height = log(density, how.fits) if density > 0.0 else -math.inf
        for q in range(len(y)):
            p[q], level[q] = density, height
            f[q], s[q] = below + density * (y[q] - start), above + density * (end - y[q])
        return
    lower = at == 0
    share, scale = work.below[i, 0] if lower else work.above[i, size - 1], given.scales[i, 0 if lower else 1]
    near, far = (s, f) if lower else (f, s)  # the probability towards the other members, and the tail's
    if not (share > 0.0 and scale > 0.0):
        for q in range(len(y)):
            p[q], level[q], near[q], far[q] = 0.0, -math.inf, 1.0, 0.0
        return
    tail, inverse = how.tails[0 if lower else 1], 1.0 / scale
    end, sign = edges[i, 0 if lower else size - 1], -inverse if lower else inverse
    height = log(share, how.fits) - log(scale, how.fits)
    if tail.gaussian:
        _gaussian(y, p, level, near, far, tail, share, sign, end, height, how.fits)
    else:
        _exponential(y, p, level, near, far, share, sign, end, height, how.fits)


@borrowing
def _exponential(
    y: Floats,
    p: Floats,
    level: Floats,
    near: Floats,
    far: Floats,
    share: float,
    sign: float,
    end: float,
    height: float,
    fits: Fits,
) -> None:
    p, level, near, far, density = p[: len(y)], level[: len(y)], near[: len(y)], far[: len(y)], share * abs(sign)
    for q in range(len(y)):
        x = sign * (y[q] - end)
        bell = exp(-x, fits)
        far[q], near[q] = share * bell, 1.0 - share * bell
        level[q], p[q] = height - x, density * bell


@borrowing
def _gaussian(
    y: Floats,
    p: Floats,
    level: Floats,
    near: Floats,
    far: Floats,
    tail: TailNumbers,
    share: float,
    sign: float,
    end: float,
    height: float,
    fits: Fits,
) -> None:
    p, level, near, far = p[: len(y)], level[: len(y)], near[: len(y)], far[: len(y)]
    start, part, top = tail.start, share / tail.above, height - HALF_LOG_2PI - tail.log_above
    density = part * abs(sign) * INVERSE_SQRT_2PI
    for q in range(len(y)):
        z = start + sign * (y[q] - end)
        bell = exp(-0.5 * z * z, fits)
        beyond = bell * upper_tail_ratio(abs(z), fits)
        outside = part * (beyond if z > 0.0 else 1.0 - beyond)
        far[q], near[q] = outside, 1.0 - outside
        level[q], p[q] = top - 0.5 * z * z, density * bell

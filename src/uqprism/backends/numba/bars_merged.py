"""Members with edges of their own: the cells between the merged edges, and nodes where some members have tails."""

from __future__ import annotations

import math

from uqprism.backends.numba.bars_cells import cells_against_surrogates, sum_cells
from uqprism.backends.numba.bars_nodes import (
    against_surrogates,
    mix,
    place,
    surrogate_step,
    tail_log_density,
    tail_step,
    tail_survival,
)
from uqprism.backends.numba.bars_nodes import (
    outside as outside_of_all,
)
from uqprism.backends.numba.bars_work import CHUNK, FAR, NODES, Given, Work
from uqprism.backends.numba.base import inlined, rows
from uqprism.backends.numba.special import log


@inlined
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


@inlined
def merged(work: Work, given: Given) -> None:
    """Add what such members gain."""
    edges, scales, point, how = given.edges, given.scales, work.point, work.how
    members, size = len(how.weights), edges.shape[1]
    low, high = edges[0, 0], edges[0, size - 1]
    for i in range(members):
        point.place[i] = 0
        low, high = min(low, edges[i, 0]), max(high, edges[i, size - 1])
    used = 0
    if how.tailed:
        # From where no tail counts any more up to the first end.
        far = low
        for i in range(members):
            far = min(far, edges[i, 0] - how.tails[0].reach * scales[i, 0])
        if how.surrogates:
            far = min(far, work.gaussian[0] - FAR * work.gaussian[1])
        used = _stretch(work, given, far, low, used)
    elif how.surrogates:
        outside_of_all(work, low, -1.0)
        outside_of_all(work, high, 1.0)
    count, y = 0, low
    while y < high:
        following, outside = high, False
        for i in range(members):
            at = point.place[i]
            while at < size and edges[i, at] <= y:
                at += 1
            point.place[i] = at
            if at < size:
                following = min(following, edges[i, at])
            outside = outside or at in (0, size)
        if how.tailed and outside:
            used = _stretch(work, given, y, following, used)
            y = following
            continue
        _cell(work, given, y, following, count)
        count += 1
        if count == CHUNK:
            _finish(work, count, used)
            count = used = 0
        y = following
    if how.tailed:
        for i in range(members):
            point.place[i] = size
        far = high
        for i in range(members):
            far = max(far, edges[i, size - 1] + how.tails[1].reach * scales[i, 1])
        if how.surrogates:
            far = max(far, work.gaussian[0] + FAR * work.gaussian[1])
        used = _stretch(work, given, high, far, used)
    _finish(work, count, used)


@inlined
def _finish(work: Work, count: int, used: int) -> None:
    """Add the nodes and the cells that wait."""
    _take(work, used)
    sum_cells(work, count)
    if work.how.surrogates:
        cells_against_surrogates(work, count)


@inlined
def _take(work: Work, used: int) -> None:
    mix(work, used)
    if work.how.surrogates:
        against_surrogates(work, used)


@inlined
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


@inlined
def _stretch(work: Work, given: Given, low: float, high: float, used: int) -> int:
    """Add nodes between two neighbouring ends, where some members have tails; returns how many wait to be taken."""
    edges, scales, point, how = given.edges, given.scales, work.point, work.how
    size, members = edges.shape[1], len(how.weights)
    start = low
    while start < high:
        step = high - start
        if how.surrogates:
            step = min(step, surrogate_step(work, start))
        longest = math.inf
        for i in range(members):
            if point.place[i] == 0:
                longest = min(longest, tail_step(start - (edges[i, 0]), scales[i, 0], how.tails[0]))
            elif point.place[i] == size:
                longest = min(longest, tail_step(start - (edges[i, size - 1]), scales[i, 1], how.tails[1]))
        step = min(step, longest)
        end = high if start + 1.25 * step >= high else start + step
        whole = min(longest, surrogate_step(work, start)) if how.surrogates else longest
        before = used
        used = place(work, start, end, (end - start) / whole, used)
        for i in range(members):
            _member_nodes(work, given, i, before, used)
        if used > NODES - 12:
            _take(work, used)
            used = 0
        start = end
    return used


@inlined
def _member_nodes(work: Work, given: Given, i: int, first: int, last: int) -> None:
    """Fill a member's rows at some nodes."""
    edges, mass, point, how, nodes = given.edges, given.mass, work.point, work.how, work.nodes
    below, above = work.below, work.above
    size, at = edges.shape[1], point.place[i]
    p, level = rows(nodes.densities, i, NODES), rows(nodes.log_densities, i, NODES)
    f, s = rows(nodes.belows, i, NODES), rows(nodes.aboves, i, NODES)
    if 0 < at < size:
        start, end = edges[i, at - 1], edges[i, at]
        density = mass[i, at] / point.total[i] / (end - start)
        height = log(density, how.fits) if density > 0.0 else -math.inf
        for q in range(first, last):
            p[q], level[q] = density, height
            f[q], s[q] = below[i, at - 1] + density * (nodes.y[q] - start), above[i, at] + density * (end - nodes.y[q])
        return
    side = 0 if at == 0 else 1
    tail = how.tails[0] if side == 0 else how.tails[1]
    share = below[i, 0] if side == 0 else above[i, size - 1]
    end, scale, sign = edges[i, 0 if side == 0 else size - 1], given.scales[i, side], -1.0 if side == 0 else 1.0
    there = share > 0.0 and scale > 0.0
    height = log(share, how.fits) - log(scale, how.fits) if there else -math.inf
    for q in range(first, last):
        x = sign * (nodes.y[q] - end) / scale if there else 0.0
        outside = share * tail_survival(tail, x, how.fits) if there else 0.0
        level[q] = height + tail_log_density(tail, x)
        p[q] = math.exp(level[q])
        f[q], s[q] = (outside, 1.0 - outside) if side == 0 else (1.0 - outside, outside)

"""Finite sums over the cells between edges, a thread for each point; see `numba.bars` and `numba.bars_cells`."""

from __future__ import annotations

import triton
import triton.language as tl

from uqprism.backends.bars import SUM
from uqprism.backends.triton.bars_nodes import add, add_cell, gaussians, load, nothing_yet, store_sums
from uqprism.backends.triton.special import log_gap

_C_OWN, _C_BETWEEN = tl.constexpr(SUM["crps.bayes.members"]), tl.constexpr(SUM["crps.excess.mixture.members"])
_Q_OWN, _Q_BETWEEN = tl.constexpr(SUM["quadratic.bayes.members"]), tl.constexpr(SUM["quadratic.excess.mixture.members"])
_L_INTO, _L_FROM = tl.constexpr(SUM["log.excess.mixture.members"]), tl.constexpr(SUM["log.excess.members.mixture"])
_ENTROPY = tl.constexpr(SUM["log.bayes.mixture"])


@triton.jit
def summarise(
    about,
    below,
    above,
    apart,
    edges,
    edge_stride,
    edge_of_member,
    edge_of_point,
    mass,
    mass_stride,
    mass_of_member,
    mass_of_point,
    scales,
    moments,
    ends,
    members,
    points,
    TAILED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill what is known of each member of each point, and the probabilities below and above each of its ends.

    A normalised probability is the given one over the member's total. The difference from the first member's is
    (given - first) / total - first * change, in which nothing is rounded that members have in common.

    Args:
        about: (5, members, points): total, change, mean, mean less the first member's where edges are shared, variance.
        below: (ends, members, points).
        above: the same.
        apart: the same, probabilities below less the first member's, where edges are shared.
        edges: ends relative to the point's origin, with the strides of ends, members and points.
        edge_stride: see there.
        edge_of_member: see there.
        edge_of_point: see there.
        mass: probabilities of bars and tails as given, with the strides of bars, members and points.
        mass_stride: see there.
        mass_of_member: see there.
        mass_of_point: see there.
        scales: of the tails (2, members, points).
        moments: of the tails, (2, 2): mean and variance of the distance in scales.
        ends: how many.
        members: how many.
        points: how many.
        TAILED: whether there are tails.
        BLOCK: of points.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.program_id(1)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    e, m = (edges, edge_stride, edge_of_member, edge_of_point), (mass, mass_stride, mass_of_member, mass_of_point)
    stride, own = members * points, i * points + at
    bars = ends - 1
    if TAILED:
        bars = ends + 1
    total, first_total, difference = zero, zero, zero
    for b in range(bars):
        given, first = load(m, b, i, at, mask), load(m, b, 0, at, mask)
        total += given
        first_total += first
        difference += given - first
    inverse = 1.0 / total
    change = difference * inverse / first_total
    low, gap, mean, off, square = zero, zero, zero, zero, zero
    shift = 0
    if TAILED:
        shift = 1
        for side in tl.static_range(2):
            scale = tl.load(scales + side * stride + own, mask=mask, other=1.0)
            centre = load(e, side * (ends - 1), i, at, mask) + (2.0 * side - 1.0) * tl.load(moments + 2 * side) * scale
            given, first = load(m, side * ends, i, at, mask), load(m, side * ends, 0, at, mask)
            mean += given * inverse * centre
            off += ((given - first) * inverse - first * change) * centre
            if side == 0:
                low, gap = given * inverse, (given - first) * inverse - first * change
    left = load(e, 0, i, at, mask)
    for k in range(ends - 1):
        right = load(e, k + 1, i, at, mask)
        given, first = load(m, k + shift, i, at, mask), load(m, k + shift, 0, at, mask)
        share, step = given * inverse, (given - first) * inverse - first * change
        tl.store(below + k * stride + own, low, mask=mask)
        tl.store(apart + k * stride + own, gap, mask=mask)
        centre = 0.5 * (left + right)
        mean += share * centre
        off += step * centre
        low += share
        gap += step
        left = right
    tl.store(below + (ends - 1) * stride + own, low, mask=mask)
    tl.store(apart + (ends - 1) * stride + own, gap, mask=mask)
    high = zero
    if TAILED:
        high = load(m, ends, i, at, mask) * inverse
        for side in tl.static_range(2):
            scale = tl.load(scales + side * stride + own, mask=mask, other=1.0)
            away = load(e, side * (ends - 1), i, at, mask) - mean + (2.0 * side - 1.0) * tl.load(moments + 2 * side) * scale
            share = load(m, side * ends, i, at, mask) * inverse
            square += share * (away * away + scale * scale * tl.load(moments + 2 * side + 1))
    right = load(e, ends - 1, i, at, mask)
    for j in range(ends - 1):
        k = ends - 2 - j
        tl.store(above + (k + 1) * stride + own, high, mask=mask)
        left = load(e, k, i, at, mask)
        share, away, width = load(m, k + shift, i, at, mask) * inverse, 0.5 * (left + right) - mean, right - left
        square += share * (away * away + width * width * (1.0 / 12.0))
        high += share
        right = left
    tl.store(above + own, high, mask=mask)
    tl.store(about + own, total, mask=mask)
    tl.store(about + stride + own, change, mask=mask)
    tl.store(about + 2 * stride + own, mean, mask=mask)
    tl.store(about + 3 * stride + own, off, mask=mask)
    tl.store(about + 4 * stride + own, square, mask=mask)


@triton.jit
def _member(given, i, cell, at, mask, SHARED: tl.constexpr, TAILED: tl.constexpr):
    """Of a member in a cell: density, less the first member's where edges are shared, and probabilities below and above it."""
    e, m, b, a, x, about, place, ends, stride, points = given
    k, left, inverse = cell
    own = i * points + at
    per_total = 1.0 / tl.load(about + own, mask=mask, other=1.0)
    shift = 0
    if TAILED:
        shift = 1
    if SHARED:
        change = tl.load(about + stride + own, mask=mask, other=0.0)
        mass, first = load(m, k + shift, i, at, mask), load(m, k + shift, 0, at, mask)
        p, d = mass * per_total * inverse, ((mass - first) * per_total - first * change) * inverse
        f, s = tl.load(b + k * stride + own, mask=mask, other=0.0), tl.load(a + k * stride + own, mask=mask, other=0.0)
        gap = tl.load(x + k * stride + own, mask=mask, other=0.0)
    else:
        passed = tl.load(place + own, mask=mask, other=0)
        inside = mask & (passed > 0) & (passed < ends)
        start, end = load(e, passed - 1, i, at, inside), load(e, passed, i, at, inside)
        wide = inside & (end > start)
        p = tl.where(wide, load(m, passed - 1 + shift, i, at, inside) * per_total / tl.where(wide, end - start, 1.0), 0.0)
        f = tl.load(b + (passed - 1) * stride + own, mask=inside, other=0.0) + tl.where(inside, p * (left - start), 0.0)
        s = tl.load(a + passed * stride + own, mask=inside, other=0.0) + tl.where(inside, p * (end - left), 0.0)
        f, s = tl.where(passed >= ends, 1.0, f), tl.where(passed <= 0, 1.0, s)
        d, gap = p, f
    return p, d, f, s, gap


@triton.jit
def log_terms(excess, ratio):
    """Of a ratio = 1 + excess of densities: ratio * log(ratio) - excess, and excess - log(ratio)."""
    there = ratio > 0.0
    known = tl.where(there, ratio, 1.0)
    above = log_gap(tl.where(there, excess, 0.0), known)
    near = tl.abs(excess) < 0.5
    term = tl.where(near, excess * excess - ratio * above, ratio * (excess - above) - excess)
    return tl.where(there, term, 1.0), tl.where(there, above, float("inf"))


@triton.jit
def sum_cells(
    out,
    edges,
    edge_stride,
    edge_of_member,
    edge_of_point,
    mass,
    mass_stride,
    mass_of_member,
    mass_of_point,
    below,
    above,
    apart,
    about,
    weights,
    gaussian,
    nodes,
    node_weights,
    merged,
    origins,
    place,
    ends,
    members,
    points,
    SHARED: tl.constexpr,
    TAILED: tl.constexpr,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    LOGS: tl.constexpr,
    SURROGATES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add what all cells hold to the sums.

    Args:
        out: (len(SUM), points).
        edges: as in `summarise`, and so on.
        edge_stride: see there.
        edge_of_member: see there.
        edge_of_point: see there.
        mass: see there.
        mass_stride: see there.
        mass_of_member: see there.
        mass_of_point: see there.
        below: see there.
        above: see there.
        apart: see there.
        about: see there.
        weights: (members,).
        gaussian: (3, points): the mean of the mixture, and the scales of matched and pooled.
        nodes: of all rules.
        node_weights: of all rules.
        merged: the ends of all members in order, (members * ends, points), unless they are shared.
        origins: the member of each of these.
        place: working memory (members, points): how many ends of each member are passed.
        ends: how many each member has.
        members: how many.
        points: how many.
        SHARED: whether all members have the same edges; otherwise with tails, cells in which a member has its tail are left out.
        TAILED: whether there are tails.
        CRPS: whether its sums are wanted.
        QUADRATIC: likewise.
        LOGS: likewise.
        SURROGATES: whether those of matched and pooled are wanted.
        BLOCK: of points.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    stride = members * points
    e, m = (edges, edge_stride, edge_of_member, edge_of_point), (mass, mass_stride, mass_of_member, mass_of_point)
    given = (e, m, below, above, apart, about, place, ends, stride, points)
    normal = gaussians(gaussian, at, mask, points)
    rule = nodes, node_weights
    sums = nothing_yet(zero)
    c_own, c_between, q_own, q_between, into, back, entropy = zero, zero, zero, zero, zero, zero, zero
    if SHARED:
        cells = ends - 1
        left = load(e, 0, 0, at, mask)
    else:
        cells = members * ends - 1
        left = tl.load(merged + at, mask=mask, other=0.0)
        for i in range(members):
            tl.store(place + i * points + at, tl.zeros([BLOCK], tl.int32), mask=mask)
    for k in range(cells):
        active = mask
        if SHARED:
            right = load(e, k + 1, 0, at, mask)
        else:
            right = tl.load(merged + (k + 1) * points + at, mask=mask, other=0.0)
            passing = place + tl.load(origins + k * points + at, mask=mask, other=0).to(tl.int32) * points + at
            tl.store(passing, tl.load(passing, mask=mask, other=0) + 1, mask=mask)
            if TAILED:
                for i in range(members):
                    passed = tl.load(place + i * points + at, mask=mask, other=0)
                    active = active & (passed > 0) & (passed < ends)
        width = tl.where(active, right - left, 0.0)
        wide = width > 0.0
        # A bar without a width has its probability at a single value, where distribution functions only jump.
        inverse = tl.where(wide, 1.0 / tl.where(wide, width, 1.0), 0.0)
        cell = k, left, inverse
        p_0, f_0, s_0 = zero, zero, zero
        dd, xx, yy, ff, ss = zero, zero, zero, zero, zero
        own, squares, between, own_squares = zero, zero, zero, zero
        for i in range(members):
            weight = tl.load(weights + i)
            p, d, f, s, x = _member(given, i, cell, at, mask, SHARED, TAILED)
            if i == 0:
                p_0, f_0, s_0 = p, f, s
            if not SHARED:
                # Of two distribution functions, by the smaller probabilities.
                d, x = p - p_0, tl.where(s_0 < f_0, s_0 - s, f - f_0)
            dd += weight * d
            ff += weight * f
            ss += weight * s
            if CRPS:
                rise = p * width
                beyond = tl.maximum(s - rise, 0.0)
                own += weight * (f * s + (f + rise) * beyond + 0.5 * (f * beyond + (f + rise) * s))
                y = x + d * width
                xx += weight * x
                yy += weight * y
                between += weight * (x * x + x * y + y * y)
            if QUADRATIC:
                own_squares += weight * p * p
                squares += weight * d * d
        density = p_0 + dd
        if CRPS:
            c_own += own * width * (1.0 / 3.0)
            c_between += (between - (xx * xx + xx * yy + yy * yy)) * width * (1.0 / 3.0)
        if QUADRATIC:
            q_own += own_squares * width
            q_between += (squares - dd * dd) * width
        level, gap = zero, zero
        if LOGS:
            there = density > 0.0
            per_density = 1.0 / tl.where(there, density, 1.0)
            level = tl.where(there, tl.log(tl.where(there, density, 1.0)), -float("inf"))
            some = zero
            for i in range(members):
                weight = tl.load(weights + i)
                p, d, _, _, _ = _member(given, i, cell, at, mask, SHARED, TAILED)
                if not SHARED:
                    d = p - p_0
                term, ahead = log_terms((d - dd) * per_density, p * per_density)
                some += weight * term
                gap += weight * ahead
            held = tl.where(there & wide, width * density, 0.0)
            into += tl.where(held > 0.0, held * some, 0.0)
            gap = tl.where(there, gap, 0.0)
            back += tl.where(held > 0.0, held * gap, 0.0)
            entropy -= tl.where(held > 0.0, held * level, 0.0)
        if SURROGATES:
            sums = add_cell(sums, (left, width, density, level, ff, ss, gap), normal, rule, active, CRPS, QUADRATIC, LOGS)
        left = right
    into_rows = (out + at, points, mask)
    if CRPS:
        add(into_rows, _C_OWN, c_own)
        add(into_rows, _C_BETWEEN, c_between)
    if QUADRATIC:
        add(into_rows, _Q_OWN, -q_own)
        add(into_rows, _Q_BETWEEN, q_between)
    if LOGS:
        add(into_rows, _L_INTO, into)
        add(into_rows, _L_FROM, back)
        add(into_rows, _ENTROPY, entropy)
    if SURROGATES:
        store_sums(into_rows, sums, CRPS, QUADRATIC, LOGS)

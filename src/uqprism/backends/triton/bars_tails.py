"""What lies outside the bars: tails of members with edges of their own, and the Gaussians matched and pooled there.

See `numba.bars_merged` for the first, and `outside` of `numba.bars_nodes` for the second.
"""

from __future__ import annotations

import triton
import triton.language as tl

from uqprism.backends.bars import CLOSE, SUM
from uqprism.backends.triton.bars_nodes import (
    FAR,
    TINY,
    add,
    add_node,
    gaussians,
    in_tail,
    load,
    log_in_tail,
    nodes_of,
    nothing_yet,
    smooth_for_gaussians,
    store_sums,
    tail_numbers,
    tail_step,
)
from uqprism.backends.triton.special import log_gap

_C_OWN, _C_BETWEEN = tl.constexpr(SUM["crps.bayes.members"]), tl.constexpr(SUM["crps.excess.mixture.members"])
_Q_OWN, _Q_BETWEEN = tl.constexpr(SUM["quadratic.bayes.members"]), tl.constexpr(SUM["quadratic.excess.mixture.members"])
_L_INTO, _L_FROM = tl.constexpr(SUM["log.excess.mixture.members"]), tl.constexpr(SUM["log.excess.members.mixture"])
_ENTROPY = tl.constexpr(SUM["log.bayes.mixture"])
_MOST, _CLOSE = tl.constexpr(16384), tl.constexpr(CLOSE)
LOWEST = tl.constexpr(-1e250)  # stands for the logarithm of zero


@triton.jit
def outside(
    out,
    limits,
    whole,
    gap,
    scales,
    tails,
    gaussian,
    nodes,
    node_weights,
    points,
    TAILED: tl.constexpr,
    BENT: tl.constexpr,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    LOGS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add the integrals of matched and pooled outside of all bars, where the mixture has a tail that all members share, or none.

    Args:
        out: (len(SUM), points).
        limits: (2, points): where the bars begin and end.
        whole: (2, points): the probability of the mixture's tails.
        gap: (2, points): the mean of log(mixture's density / member's density) there.
        scales: (2, points).
        tails: (2, 5), see `tail_numbers`.
        gaussian: (3, points): the mean of the mixture, and the scales of matched and pooled.
        nodes: of all rules.
        node_weights: of all rules.
        points: how many.
        TAILED: whether there are tails.
        BENT: whether these are parts of Gaussians.
        CRPS: whether its sums are wanted.
        QUADRATIC: likewise.
        LOGS: likewise.
        BLOCK: of points.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    normal = gaussians(gaussian, at, mask, points)
    sums = nothing_yet(zero)
    for side in tl.static_range(2):
        sign = 2.0 * side - 1.0
        end = tl.load(limits + side * points + at, mask=mask, other=0.0)
        share = tl.load(whole + side * points + at, mask=mask, other=0.0)
        scale = tl.load(scales + side * points + at, mask=mask, other=0.0)
        log_gap_here = tl.load(gap + side * points + at, mask=mask, other=0.0)
        tail = tail_numbers(tails, side)
        far = sign * (normal[0] - end) + FAR * normal[1]
        there = (share > 0.0) & (scale > 0.0) & (TAILED != 0)
        far = tl.where(there, tl.maximum(far, tail[3] * scale), far)
        scale, share = tl.where(there, scale, 1.0), tl.where(there, share, 1.0)
        height = tl.log(share) - tl.log(scale)
        near, steps = zero, 0
        going = mask & (near < far)
        while (tl.max(going.to(tl.int32), axis=0) > 0) & (steps < _MOST):
            step = smooth_for_gaussians(end + sign * near, normal)
            step = tl.where(there, tl.minimum(step, tail_step(near, scale, tail)), step)
            high = tl.where(near + 1.25 * step >= far, far, near + step)
            first, count = nodes_of((high - near) / step)
            for q in range(tl.max(tl.where(going, count, 0), axis=0)):
                used = going & (q < count)
                away = near + (high - near) * tl.load(nodes + first + q, mask=used, other=0.0)
                weight = tl.where(used, (high - near) * tl.load(node_weights + first + q, mask=used, other=0.0), 0.0)
                beyond, _, level = in_tail(tail, away / scale, BENT)
                beyond, level = tl.where(there, share * beyond, 0.0), tl.where(there, height + level, -float("inf"))
                below, above = beyond, 1.0 - beyond
                if side == 1:
                    below, above = above, beyond
                node = end + sign * away, weight, tl.exp(level), level, below, above, tl.where(there, log_gap_here, 0.0)
                sums = add_node(sums, node, normal, CRPS, QUADRATIC, LOGS)
            near = tl.where(going, high, near)
            going = going & (near < far)
            steps += 1
    store_sums((out + at, points, mask), sums, CRPS, QUADRATIC, LOGS)


# Members with tails of their own -------------------------------------------------------------------------------------------


@triton.jit
def _in_or_out(given, i, at, mask):
    """Whether a member is below or above all of its ends: how many it has passed, the side of its tail, whether it has one."""
    _, _, _, _, _, _, place, _, ends, _, points = given
    passed = tl.load(place + i * points + at, mask=mask, other=0)
    lower = passed <= 0
    return passed, lower, lower | (passed >= ends)


@triton.jit
def _member_at(given, i, y, at, mask, BENT: tl.constexpr):
    """Density, log density, and probabilities below and above y of a member in the bar or tail in which it is."""
    e, heights, levels, below, above, per_scale, _, tails, ends, stride, points = given
    passed, lower, beyond_all = _in_or_out(given, i, at, mask)
    own = i * points + at
    inside = mask & ~beyond_all
    # Of the tail below, of the bars, and of the tail above.
    height = tl.load(heights + passed * stride + own, mask=mask, other=0.0)
    level = tl.load(levels + passed * stride + own, mask=mask, other=0.0)
    # Where a bar begins, or a tail of either side, and the probability up to there.
    start = load(e, tl.where(lower, 0, passed - 1), i, at, mask)
    stop = load(e, passed, i, at, inside)
    held = tl.load(below + tl.where(lower, 0, passed - 1) * stride + own, mask=mask, other=0.0)
    rest = tl.load(above + tl.where(inside, passed, ends - 1) * stride + own, mask=mask, other=0.0)
    away = tl.load(per_scale + tl.where(lower, 0, stride) + own, mask=mask, other=0.0) * tl.where(lower, start - y, y - start)
    beyond, density, fall = in_tail(_tail_of(tails, lower), tl.where(inside, 0.0, away), BENT)
    far = beyond * tl.where(lower, held, rest)
    f = tl.where(inside, held + height * (y - start), tl.where(lower, far, 1.0 - far))
    s = tl.where(inside, rest + height * (stop - y), tl.where(lower, 1.0 - far, far))
    return tl.where(inside, height, height * density), tl.where(inside, level, level + fall), f, s


@triton.jit
def _tail_of(tails, lower):
    """The numbers of the tail on the side of each point."""
    one, other = tail_numbers(tails, 0), tail_numbers(tails, 1)
    found = ()
    for k in tl.static_range(5):
        found = found + (tl.where(lower, one[k], other[k]),)
    return found


@triton.jit
def _level_at(given, i, y, at, mask, BENT: tl.constexpr):
    """The log density of a member as in `_member_at`, alone; finite."""
    e, _, levels, _, _, per_scale, _, tails, ends, stride, points = given
    passed, lower, beyond_all = _in_or_out(given, i, at, mask)
    own = i * points + at
    level = tl.load(levels + passed * stride + own, mask=mask, other=0.0)
    outside_of_all = mask & beyond_all
    start = load(e, tl.where(lower, 0, ends - 1), i, at, outside_of_all)
    away = tl.load(per_scale + tl.where(lower, 0, stride) + own, mask=outside_of_all, other=0.0)
    away = away * tl.where(lower, start - y, y - start)
    fall = log_in_tail(_tail_of(tails, lower), tl.where(outside_of_all, away, 0.0), BENT)
    return tl.maximum(level + tl.where(outside_of_all, fall, 0.0), LOWEST)


@triton.jit
def _parabola_at(given, weights, i, y, at, mask, BENT: tl.constexpr):
    """The weighted log density of a member at y, finite, its slope, and half its curvature."""
    e, _, _, _, _, per_scale, _, tails, ends, stride, points = given
    level = _level_at(given, i, y, at, mask, BENT) + tl.log(tl.load(weights + i))
    _, lower, beyond_all = _in_or_out(given, i, at, mask)
    outside_of_all = mask & beyond_all
    sign = tl.load(per_scale + tl.where(lower, 0, stride) + i * points + at, mask=outside_of_all, other=0.0)
    sign = tl.where(lower, -sign, sign)
    slope, curvature = -sign, tl.zeros_like(y)
    if BENT:
        start = load(e, tl.where(lower, 0, ends - 1), i, at, outside_of_all)
        slope = -sign * (_tail_of(tails, lower)[0] + sign * (y - start))
        curvature = -0.5 * sign * sign
    return level, slope, curvature


@triton.jit
def _bend_step(given, weights, y, at, mask, members, BENT: tl.constexpr):
    """How long a stretch may be for the bends of the log density, where another member takes the lead or nearly."""
    top, rise, bow = tl.zeros_like(y) - float("inf"), tl.zeros_like(y), tl.zeros_like(y)
    longest = tl.zeros_like(y) + float("inf")
    for j in range(2 * members):  # the leader first; one loop, so that the code is there once
        i = tl.where(j < members, j, j - members)
        level, slope, curvature = _parabola_at(given, weights, i, y, at, mask, BENT)
        leads = (j < members) & (level > top)
        # The lead of a member at t is a t^2 + b t + c; of the leader itself it is zero, which has no root.
        a, b, c = curvature - bow, slope - rise, tl.minimum(level - top, 0.0)
        counts = mask & (j >= members) & (level > 0.5 * LOWEST) & (top > 0.5 * LOWEST)
        for k in range(2):
            away, turn = _first_root(a, (2.0 * k - 1.0) * b, c)
            bends = counts & (away < float("inf"))
            width = 1.0 / tl.where(bends, 0.4 * turn + tl.sqrt(tl.abs(a)), 1.0)
            longest = tl.where(bends, tl.minimum(longest, tl.maximum(0.5 * away, width)), longest)
        top, rise, bow = tl.where(leads, level, top), tl.where(leads, slope, rise), tl.where(leads, curvature, bow)
    return longest


@triton.jit
def _first_root(a, b, c):
    """The first place above zero where a t^2 + b t + c, not above zero at t = 0, is zero or nearly so, and its slope there."""
    square = b * b - 4.0 * a * c
    none = float("inf")
    near = (b > 0.0) & (square < 0.0) & (square > 4.0 * a * _CLOSE)
    root = tl.sqrt(tl.maximum(square, 0.0))
    first = -2.0 * c / tl.where(b > 0.0, b + root, 1.0)
    second = 0.5 * (root - b) / tl.where(a > 0.0, a, 1.0)
    away = tl.where(b > 0.0, first, tl.where((a > 0.0) & (root > 0.0), second, none))
    away = tl.where(square < 0.0, tl.where(near, -0.5 * b / tl.where(near, a, 1.0), none), away)
    return away, root


@triton.jit
def sum_tails(
    out,
    edges,
    edge_stride,
    edge_of_member,
    edge_of_point,
    heights,
    levels,
    below,
    above,
    scales,
    per_scale,
    weights,
    gaussian,
    tails,
    limits,
    nodes,
    node_weights,
    merged,
    origins,
    place,
    seen,
    ends,
    members,
    points,
    BENT: tl.constexpr,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    LOGS: tl.constexpr,
    SURROGATES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add what lies where some members have tails and others perhaps bars.

    Args:
        out: as in `bars_cells.sum_cells`, and so on.
        edges: see there.
        edge_stride: see there.
        edge_of_member: see there.
        edge_of_point: see there.
        heights: densities of the tail below where it begins, of the bars, and of the tail above, (ends + 1, members, points).
        levels: their logarithms.
        below: see there.
        above: see there.
        scales: of the tails (2, members, points).
        per_scale: one over them, zero for tails without a width.
        weights: see there.
        gaussian: see there.
        tails: (2, 5), see `tail_numbers`.
        limits: (4, points): where both stretches begin and end, from left to right.
        nodes: see there.
        node_weights: see there.
        merged: see there.
        origins: see there.
        place: see there.
        seen: working memory (2, members, points): density and log density of each member at a node.
        ends: see there.
        members: see there.
        points: see there.
        BENT: whether tails are parts of Gaussians.
        CRPS: see there.
        QUADRATIC: see there.
        LOGS: see there.
        SURROGATES: see there.
        BLOCK: see there.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    e = (edges, edge_stride, edge_of_member, edge_of_point)
    given = (e, heights, levels, below, above, per_scale, place, tails, ends, members * points, points)
    normal = gaussians(gaussian, at, mask, points)
    sums = nothing_yet(zero)
    c_own, c_between, q_own, q_between, into, back, entropy = zero, zero, zero, zero, zero, zero, zero
    for side in range(2):
        y = tl.load(limits + 2 * side * points + at, mask=mask, other=0.0)
        stop = tl.load(limits + (2 * side + 1) * points + at, mask=mask, other=0.0)
        k = tl.zeros([BLOCK], tl.int32)
        for i in range(members):
            passed = tl.zeros([BLOCK], tl.int32)
            for b in range(ends):
                passed += (load(e, b, i, at, mask) <= y).to(tl.int32)
            tl.store(place + i * points + at, passed, mask=mask)
            k += passed
        going, steps = mask & (y < stop), 0
        while (tl.max(going.to(tl.int32), axis=0) > 0) & (steps < _MOST):
            following = _next(merged, k, at, going, members * ends, points)
            passes = going & (following <= y)
            passing = place + tl.load(origins + k * points + at, mask=passes, other=0).to(tl.int32) * points + at
            tl.store(passing, tl.load(passing, mask=passes, other=0) + 1, mask=passes)
            k += passes.to(tl.int32)
            following = tl.minimum(_next(merged, k, at, going, members * ends, points), stop)
            runs = going & (following > y)

            longest = zero + float("inf")
            over = longest  # how much further than the longest a last stretch may go
            if SURROGATES:
                longest = smooth_for_gaussians(y, normal)
            for i in range(members):
                _, lower, beyond = _in_or_out(given, i, at, mask)
                end_side = tl.where(lower, 0, 1)
                scale = tl.load(scales + (end_side * members + i) * points + at, mask=mask, other=1.0)
                tail = _tail_of(tails, lower)
                away = y - load(e, end_side * (ends - 1), i, at, mask)
                longest = tl.where(beyond, tl.minimum(longest, tail_step(away, scale, tail)), longest)
                # The way to a narrow tail is long, and a quarter of it would pass over the tail.
                over = tl.where(beyond & (away < tail[3] * scale), tl.minimum(over, 0.25 * tail[4] * scale), over)
            if LOGS and SURROGATES:
                step = _bend_step(given, weights, y, at, runs, members, BENT)
                longest = tl.where(runs, tl.minimum(longest, step), longest)
            end = tl.where(y + longest + tl.minimum(over, 0.25 * longest) >= following, following, y + longest)
            stuck = end <= y  # a tail narrower than the spacing of doubles
            end = tl.where(stuck, tl.minimum(following, y + tl.abs(y) * 2.3e-16 + 1e-300), end)
            longest = tl.where(stuck, end - y, longest)
            first, count = nodes_of((end - y) / longest)
            for q in range(tl.max(tl.where(runs, count, 0), axis=0)):
                used = runs & (q < count)
                x = y + tl.where(used, end - y, 0.0) * tl.load(nodes + first + q, mask=used, other=0.0)
                share = tl.where(used, (end - y) * tl.load(node_weights + first + q, mask=used, other=0.0), 0.0)
                p_0, f_0, s_0 = zero, zero, zero
                apart, ff, ss, xx, own, between, own_squares, squares = zero, zero, zero, zero, zero, zero, zero, zero
                top = zero - float("inf")
                for i in range(members):
                    weight = tl.load(weights + i)
                    p, level, f, s = _member_at(given, i, x, at, mask, BENT)
                    if i == 0:
                        p_0, f_0, s_0 = p, f, s
                    # Of distribution functions, by the smaller probabilities.
                    d, gap = p - p_0, tl.where(s_0 < f_0, s_0 - s, f - f_0)
                    apart += weight * d
                    ff += weight * f
                    ss += weight * s
                    xx += weight * gap
                    own += weight * f * s
                    between += weight * gap * gap
                    own_squares += weight * p * p
                    squares += weight * d * d
                    if LOGS:
                        tl.store(seen + i * points + at, p, mask=mask)
                        tl.store(seen + (members + i) * points + at, level, mask=mask)
                        top = tl.maximum(top, level)
                density = p_0 + apart
                if CRPS:
                    c_own += share * own
                    c_between += share * (between - xx * xx)
                if QUADRATIC:
                    q_own += share * own_squares
                    q_between += share * (squares - apart * apart)
                level_of_all, gap = zero, zero
                if LOGS:
                    bright = density > TINY
                    level_of_all = tl.log(tl.maximum(density, TINY))
                    if tl.max((used & ~bright).to(tl.int32), axis=0) > 0:
                        total, reference = zero, tl.where(top > -float("inf"), top, 0.0)
                        for i in range(members):
                            level = tl.load(seen + (members + i) * points + at, mask=mask, other=0.0)
                            total += tl.load(weights + i) * tl.exp(level - reference)
                        faint = tl.where(total > 0.0, reference + tl.log(tl.where(total > 0.0, total, 1.0)), -float("inf"))
                        level_of_all = tl.where(bright, level_of_all, faint)
                    known = tl.where(level_of_all > -float("inf"), level_of_all, 0.0)
                    inverse, some = 1.0 / tl.maximum(density, TINY), zero
                    for i in range(members):
                        weight = tl.load(weights + i)
                        p = tl.load(seen + i * points + at, mask=mask, other=0.0)
                        level = tl.load(seen + (members + i) * points + at, mask=mask, other=0.0)
                        there = level > -float("inf")
                        excess, ratio = ((p - p_0) - apart) * inverse, p * inverse
                        near = (tl.abs(excess) < 0.5) & bright
                        far = tl.where(there, level - known, 0.0)
                        # Ratios have a mean of one.
                        above_mean = tl.where(
                            near, log_gap(excess, tl.where(near, ratio, 1.0)), tl.where(bright, excess, 0.0) - far
                        )
                        gap += weight * tl.where(there, above_mean, float("inf"))
                        some += weight * tl.where(near, excess * excess - ratio * above_mean, ratio * far - excess)
                    held = tl.where(bright, share * density, 0.0)
                    into += held * some
                    entropy -= tl.where(held > 0.0, held * level_of_all, 0.0)
                    back += tl.where(held > 0.0, held * gap, 0.0)
                if SURROGATES:
                    sums = add_node(sums, (x, share, density, level_of_all, ff, ss, gap), normal, CRPS, QUADRATIC, LOGS)
            y = tl.where(runs, end, y)
            going = going & (y < stop)
            steps += 1
    rows = (out + at, points, mask)
    if CRPS:
        add(rows, _C_OWN, c_own)
        add(rows, _C_BETWEEN, c_between)
    if QUADRATIC:
        add(rows, _Q_OWN, -q_own)
        add(rows, _Q_BETWEEN, q_between)
    if LOGS:
        add(rows, _L_INTO, into)
        add(rows, _L_FROM, back)
        add(rows, _ENTROPY, entropy)
    if SURROGATES:
        store_sums(rows, sums, CRPS, QUADRATIC, LOGS)


@triton.jit
def _next(merged, k, at, mask, count, points):
    """The end that comes next, infinity behind the last one."""
    return tl.load(merged + k * points + at, mask=mask & (k < count), other=float("inf"))

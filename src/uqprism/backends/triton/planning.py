"""Panels point by point on a device, a thread for each; see `backends.numba.planning`."""

from __future__ import annotations

import triton
import triton.language as tl

from uqprism.backends.triton.forms import level, member, weight_of
from uqprism.families.panels import FAR, KINK

MAX_PANELS, MAX_KINKS, ROUNDS = 320, 64, 4
MORE = 2  # times as many of both for mixtures, and next to two bounds
# Widths of a panel near a place, and its length as a part of the distance to a place ahead and behind: for 16 nodes what two
# widths, a third and a half are for 12.
NEAR, AHEAD, BEHIND, LONGER = 3.0, 0.5, 1.0, 1.5
FAR_AHEAD, FAR_BEHIND = 0.8, 4.0  # the same where all that is left are power laws, for two thirds and two

_FAR, _KINK = tl.constexpr(FAR), tl.constexpr(LONGER * KINK)
_NEAR, _AHEAD, _BEHIND, _FAR_AHEAD, _FAR_BEHIND = (tl.constexpr(x) for x in (NEAR, AHEAD, BEHIND, FAR_AHEAD, FAR_BEHIND))
_MAX_PANELS, _MAX_KINKS, _ROUNDS = (tl.constexpr(x) for x in (MAX_PANELS, MAX_KINKS, ROUNDS))
_LONGER = tl.constexpr(LONGER)
_HALVINGS = tl.constexpr(8)  # of fewer than 256 sizes


@triton.jit
def size_below(sizes, count, most):
    """The index of the largest of some sizes, in order, that is no larger, or of the smallest one."""
    low, high = tl.zeros_like(most).to(tl.int32), tl.zeros_like(most).to(tl.int32) + count
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        fits = tl.load(sizes + middle) <= most
        apart = high - low > 1
        low, high = tl.where(apart & fits, middle, low), tl.where(apart & ~fits, middle, high)
    return low


@triton.jit
def _march(
    places,
    kinks,
    edges,
    low,
    high,
    count,
    found,
    corners,
    at,
    mask,
    stride,
    HEAVY: tl.constexpr,
    SHARP: tl.constexpr,
    LATTICE: tl.constexpr,
    ROOM: tl.constexpr,
):
    """Store the edges of the panels of some points; returns how many panels each has.

    Panels of a LATTICE hold one of the numbers of counts that `corners` then has, and of which there are so many.
    """
    location, width = places
    kink_at, kink_width = kinks
    y = low
    panels = tl.zeros_like(at)
    tl.store(edges + at, y, mask=mask)
    found = tl.minimum(found, ROOM * _MAX_KINKS)
    most = tl.max(found, axis=0)
    step_count = 0
    while (tl.max((y < high).to(tl.int32), axis=0) > 0) & (step_count < ROOM * _MAX_PANELS):
        step = high - y
        for i in range(count):
            gap = tl.load(location + i * stride + at, mask=mask, other=0.0) - y
            wide = tl.load(width + i * stride + at, mask=mask, other=1.0)
            near = _NEAR * wide
            away = tl.maximum(gap * _AHEAD, gap * -_BEHIND)
            if LATTICE > 0:  # 12 nodes
                near, away = 2.0 * wide, tl.maximum(gap / 3.0, gap * -0.5)
            if HEAVY:
                away = tl.where(tl.abs(gap) > _FAR * wide, tl.maximum(gap * _FAR_AHEAD, gap * -_FAR_BEHIND), away)
            step = tl.minimum(step, tl.maximum(near, away))
            if SHARP:
                corner = tl.load(corners + i) != 0
                step = tl.where(corner & (gap > 0.0), tl.minimum(step, gap), step)
        for i in range(most):
            has = mask & (i < found)
            gap = tl.load(kink_at + i * stride + at, mask=has, other=0.0) - y
            wide = tl.load(kink_width + i * stride + at, mask=has, other=float("inf"))
            # The width of a kink already says how long a panel may be.
            wide, away = 2.0 * wide, tl.maximum(gap * _AHEAD, gap * -_BEHIND)
            if LATTICE > 0:
                wide, away = wide / _LONGER, tl.maximum(gap / 3.0, gap * -0.5)
            step = tl.minimum(step, tl.maximum(wide, away))
        active = y < high
        if LATTICE > 0:
            following = y + tl.load(corners + size_below(corners, LATTICE, step))
        else:
            following = tl.minimum(y + step, high)
            # A step below the spacing of doubles must still move forward.
            following = tl.maximum(following, y + tl.abs(y) * 2.3e-16 + 1e-300)
        y = tl.where(active, following, y)
        step_count += 1
        panels = tl.where(active, step_count, panels)
        tl.store(edges + step_count * stride + at, y, mask=mask & active)
    return tl.where(y < high, -1, panels)


@triton.jit
def _weighted(y, part, numbers, weights, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr, PARTS: tl.constexpr):
    """The weighted log density of one of the components of all members."""
    own = level(y, member(numbers, part, at, mask, COUNT), LOG)
    return own + weight_of(numbers, weights, part, at, mask, COUNT, PARTS)


@triton.jit
def _gap(y, first, second, numbers, weights, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr, PARTS: tl.constexpr):
    """By how many nats the first component leads the second, both weighted."""
    one = _weighted(y, first, numbers, weights, at, mask, LOG, COUNT, PARTS)
    return one - _weighted(y, second, numbers, weights, at, mask, LOG, COUNT, PARTS)


@triton.jit
def _leader(y, numbers, weights, first, count, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr, PARTS: tl.constexpr):
    """The leading one of so many components, from the first on."""
    lead = tl.zeros_like(at) + first
    best = tl.zeros_like(y) - float("inf")
    for i in range(first, first + count):
        height = _weighted(y, i, numbers, weights, at, mask, LOG, COUNT, PARTS)
        lead = tl.where(height > best, i, lead)
        best = tl.maximum(best, height)
    return lead


@triton.jit
def _add_kinks(
    edges,
    panels,
    kinks,
    found,
    numbers,
    weights,
    members,
    at,
    mask,
    stride,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
):
    """Store the corners of log densities that no panel resolves; returns how many each point has.

    The log density of the mixture bends where its leading component changes, and so does that of a member which is a mixture:
    the first rounds are for each such member, the last is for changes from a member to another.
    """
    rounds, own = 1, 0
    if PARTS > 1:
        rounds, own = members + 1, members
    for i in range(rounds):
        within = i < own
        first, count = tl.where(within, i * PARTS, 0), tl.where(within, PARTS, members * PARTS)
        found = _add_changes(
            edges, panels, kinks, found, numbers, weights, first, count, within, at, mask, stride, LOG, COUNT, PARTS, ROOM
        )
    return found


@triton.jit
def _add_changes(
    edges,
    panels,
    kinks,
    found,
    numbers,
    weights,
    first,
    count,
    within,
    at,
    mask,
    stride,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
):
    """Store the corners where the lead changes among so many components, of different members unless `within` one."""
    kink_at, kink_width = kinks
    low = tl.load(edges + at, mask=mask, other=0.0)
    lead = _leader(low, numbers, weights, first, count, at, mask, LOG, COUNT, PARTS)
    for k in range(tl.max(panels, axis=0)):
        inside = mask & (k < panels)
        high = tl.where(inside, tl.load(edges + (k + 1) * stride + at, mask=inside, other=0.0), low)
        following = _leader(high, numbers, weights, first, count, at, mask, LOG, COUNT, PARTS)
        changes = inside & (following != lead)
        if PARTS > 1:
            changes = changes & ((following // PARTS != lead // PARTS) | within)
        if tl.max(changes.to(tl.int32), axis=0) > 0:
            left, right = low, high
            ahead = _gap(left, lead, following, numbers, weights, at, mask, LOG, COUNT, PARTS)
            behind = _gap(right, lead, following, numbers, weights, at, mask, LOG, COUNT, PARTS)
            bends = changes & (ahead - behind > _KINK / 2.0) & (ahead < 1e199) & (behind > -1e199)
            if tl.max(bends.to(tl.int32), axis=0) > 0:
                y = 0.5 * (left + right)
                for _ in range(24):
                    y = (left * behind - right * ahead) / tl.where(behind != ahead, behind - ahead, -1.0)
                    y = tl.where((y > left) & (y < right), y, 0.5 * (left + right))
                    gap = _gap(y, lead, following, numbers, weights, at, mask, LOG, COUNT, PARTS)
                    up = gap > 0.0
                    left, right = tl.where(up, y, left), tl.where(up, right, y)
                    # False position, with the end that stays counted half.
                    ahead, behind = tl.where(up, gap, 0.5 * ahead), tl.where(up, 0.5 * behind, gap)
                near = 1e-3 * (high - low)
                slope = _gap(y + near, lead, following, numbers, weights, at, mask, LOG, COUNT, PARTS)
                slope -= _gap(y - near, lead, following, numbers, weights, at, mask, LOG, COUNT, PARTS)
                width = 2.0 * near / tl.maximum(tl.abs(slope), 1e-300)
                fine = bends & (2.0 * _KINK * width < 0.99 * (high - low))
                room = fine & (found < ROOM * _MAX_KINKS)
                tl.store(kink_at + found * stride + at, y, mask=room)
                tl.store(kink_width + found * stride + at, _KINK * width, mask=room)
                found += fine.to(tl.int32)
        lead = tl.where(inside, following, lead)
        low = high
    return found


@triton.jit
def plan(
    location,
    width,
    lows,
    highs,
    corners,
    numbers,
    weights,
    edges,
    panels_out,
    kink_at,
    kink_width,
    ends,
    count,
    members,
    points,
    number_stride,
    stride,
    HEAVY: tl.constexpr,
    SHARP: tl.constexpr,
    BENDS: tl.constexpr,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    LATTICE: tl.constexpr,
    ROOM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the edges (panels + 1, points) and the number of panels, -1 where there is no room for them.

    Nothing is planned outside `ends` (2, points).
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    low = tl.zeros([BLOCK], tl.float64) + float("inf")
    high = tl.zeros([BLOCK], tl.float64) - float("inf")
    for i in range(count):
        low = tl.minimum(low, tl.load(lows + i * stride + at, mask=mask, other=0.0))
        high = tl.maximum(high, tl.load(highs + i * stride + at, mask=mask, other=0.0))
    low = tl.maximum(low, tl.load(ends + at, mask=mask, other=0.0))
    high = tl.minimum(high, tl.load(ends + stride + at, mask=mask, other=0.0))
    places, kinks = (location, width), (kink_at, kink_width)
    found = tl.zeros([BLOCK], tl.int32)
    panels = _march(places, kinks, edges, low, high, count, found, corners, at, mask, stride, HEAVY, SHARP, LATTICE, ROOM)
    if BENDS:
        given = (numbers, number_stride, stride)
        again = tl.max(panels, axis=0) > -2
        for _ in range(_ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
            if again:
                before = found
                found = _add_kinks(
                    edges, panels, kinks, found, given, weights, members, at, mask, stride, LOG, COUNT, PARTS, ROOM
                )
                again = tl.max(found - before, axis=0) > 0
                if again:
                    panels = _march(
                        places, kinks, edges, low, high, count, found, corners, at, mask, stride, HEAVY, SHARP, LATTICE, ROOM
                    )
    panels = tl.where(found > ROOM * _MAX_KINKS, -1, panels)
    tl.store(panels_out + at, panels, mask=mask)

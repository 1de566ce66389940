"""One pass over the nodes on a device: every row of `backends.rows`, for members of any family; see `backends.numba.nodes`.

One kernel plans the panels, a thread for each point; a second one takes the integrals, with a tile of points and nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from uqprism.backends.fits import FITS
from uqprism.backends.rows import ROW, ROWS
from uqprism.backends.triton.special import _polynomial as polynomial
from uqprism.families.base import STEEP
from uqprism.families.elementwise import PointwiseForm, rebound
from uqprism.families.panels import FAR, KINK

MAX_PANELS, MAX_KINKS, ROUNDS = 320, 64, 4
TILE = 16  # nodes of a panel: a power of two, and more than on a processor, so that panels may be longer
# Widths of a panel near a place, and its length as a part of the distance to a place ahead and behind: for 16 nodes what two
# widths, a third and a half are for 12.
NEAR, AHEAD, BEHIND, LONGER = 3.0, 0.5, 1.0, 1.5
FAR_AHEAD, FAR_BEHIND = 0.8, 4.0  # the same where all that is left are power laws, for two thirds and two
PLAIN = 1e-6  # nats above which a relative entropy keeps nine digits as a plain difference of integrals
FAINT = 1e-290  # a density below which its logarithm is taken from the levels

_FAR, _KINK, _STEEP = tl.constexpr(FAR), tl.constexpr(LONGER * KINK), tl.constexpr(STEEP)
_NEAR, _AHEAD, _BEHIND, _FAR_AHEAD, _FAR_BEHIND, _PLAIN, _FAINT = (
    tl.constexpr(x) for x in (NEAR, AHEAD, BEHIND, FAR_AHEAD, FAR_BEHIND, PLAIN, FAINT)
)
_MAX_PANELS, _MAX_KINKS, _ROUNDS, _TILE = (tl.constexpr(x) for x in (MAX_PANELS, MAX_KINKS, ROUNDS, TILE))
_LOWEST, _NEVER, _WIDE_APART = tl.constexpr(-1e200), tl.constexpr(1e20), tl.constexpr(40.0)
_LOG_SQRT_2PI, _INVERSE_SQRT_4PI = tl.constexpr(0.5 * math.log(2.0 * math.pi)), tl.constexpr(1.0 / math.sqrt(4.0 * math.pi))
_LN_2, _LOG_FITS = tl.constexpr(math.log(2.0)), tl.constexpr(FITS.log)
_ROOT_HALF = tl.constexpr(int(np.array(math.sqrt(0.5)).view(np.int64)) >> 32)
_TAIL_ABOVE, _TAIL_BELOW = tl.constexpr(FITS.tail_above), tl.constexpr(FITS.tail_below)
_ROWS = tl.constexpr(len(ROWS))


def _row(name: str) -> Any:
    return tl.constexpr(ROW[name])


C_OWN, C_BETWEEN = _row("crps.bayes.members"), _row("crps.excess.mixture.members")
Q_OWN, Q_BETWEEN = _row("quadratic.bayes.members"), _row("quadratic.excess.mixture.members")
L_OWN, L_BETWEEN, L_BACK = (_row(f"log.{name}") for name in ("bayes.members", "excess.mixture.members", "excess.members.mixture"))
# Of matched; those of pooled follow each.
C_SURROGATE, Q_SURROGATE = _row("crps.excess.matched.mixture"), _row("quadratic.excess.matched.mixture")
Q_ALONE, Q_OVERLAP = _row("quadratic.bayes.matched"), _row("quadratic.overlap.matched")
L_FORWARD, L_BACKWARD, L_MEMBERS = (
    _row(f"log.excess.{name}") for name in ("matched.mixture", "mixture.matched", "members.matched")
)


@triton.jit
def _absolute(x):
    return tl.abs(x)


@triton.jit
def _exp(x):
    return tl.exp(x)


@triton.jit
def _log(x):
    return tl.log(x)


@triton.jit
def _log1p(x):
    """log(1 + x) for ordinary x >= 0, as in `numba.special`, with the exponent from the upper half of the number."""
    bits = (1.0 + x).to(tl.int64, bitcast=True)
    upper = (bits >> 32).to(tl.int32)
    exponent = ((upper - _ROOT_HALF + (1023 << 20)) >> 20) - 1023
    mantissa = (((upper - (exponent << 20)).to(tl.int64) << 32) | (bits & 0xFFFFFFFF)).to(tl.float64, bitcast=True)
    near = exponent == 0  # where the sum would round x
    below = tl.where(near, 2.0 + x, mantissa + 1.0)
    inverse = (1.0 / below.to(tl.float32)).to(tl.float64)
    inverse = inverse * (2.0 - below * inverse)  # two steps of Newton's method take less than a division
    inverse = inverse * (2.0 - below * inverse)
    q = tl.where(near, x, mantissa - 1.0) * inverse
    square = q * q
    return exponent.to(tl.float64) * _LN_2 + (2.0 * q + q * square * polynomial(square, _LOG_FITS, 8))


@triton.jit
def _where(condition, x, y):
    return tl.where(condition, x, y)


COMPILED = {"absolute": _absolute, "exp": _exp, "log": _log, "log1p": _log1p, "where": _where}


@cache
def compiled(form: PointwiseForm) -> Callable[..., Any]:
    """A family's log density for kernels."""
    names = form.log_density.__code__.co_names
    found = {name: form.log_density.__globals__[name] for name in names if name in form.log_density.__globals__}
    # Kernels take numbers from outside only as declared constants.
    constants = {name: tl.constexpr(x) for name, x in found.items() if isinstance(x, int | float)}
    # Annotations are looked up, too.
    noted = " ".join(map(str, form.log_density.__annotations__.values()))
    constants |= {name: tl.constexpr(0) for name in re.findall(r"[A-Za-z_]\w*", noted)}
    return triton.jit(rebound(form.log_density, {**constants, **COMPILED}))


@triton.jit
def _levels(y, numbers, i, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr, TILED: tl.constexpr):
    """Log densities of member i of some points, at one y of each or, if tiled, at a row of them."""
    pointer, number_stride, member_stride = numbers
    base = pointer + i * member_stride + at
    a = tl.load(base, mask=mask, other=1.0)
    b = tl.load(base + number_stride, mask=mask, other=1.0)
    if TILED:
        a, b = a[:, None], b[:, None]
    if COUNT == 2:
        level = LOG(y, a, b)
    else:
        c = tl.load(base + 2 * number_stride, mask=mask, other=1.0)
        if TILED:
            c = c[:, None]
        if COUNT == 3:
            level = LOG(y, a, b, c)
        else:
            d = tl.load(base + 3 * number_stride, mask=mask, other=1.0)
            if TILED:
                d = d[:, None]
            if COUNT == 4:
                level = LOG(y, a, b, c, d)
            else:
                e = tl.load(base + 4 * number_stride, mask=mask, other=1.0)
                if TILED:
                    e = e[:, None]
                level = LOG(y, a, b, c, d, e)
    return tl.where(level > _LOWEST, level, _LOWEST)


@triton.jit
def _march(places, kinks, edges, low, high, count, found, corners, at, mask, stride, HEAVY: tl.constexpr, SHARP: tl.constexpr):
    """Store the edges of the panels of some points; returns how many panels each has."""
    location, width = places
    kink_at, kink_width = kinks
    y = low
    panels = tl.zeros_like(at)
    tl.store(edges + at, y, mask=mask)
    found = tl.minimum(found, _MAX_KINKS)
    most = tl.max(found, axis=0)
    step_count = 0
    while (tl.max((y < high).to(tl.int32), axis=0) > 0) & (step_count < _MAX_PANELS):
        step = high - y
        for i in range(count):
            gap = tl.load(location + i * stride + at, mask=mask, other=0.0) - y
            wide = tl.load(width + i * stride + at, mask=mask, other=1.0)
            away = tl.maximum(gap * _AHEAD, gap * -_BEHIND)
            if HEAVY:
                away = tl.where(tl.abs(gap) > _FAR * wide, tl.maximum(gap * _FAR_AHEAD, gap * -_FAR_BEHIND), away)
            step = tl.minimum(step, tl.maximum(_NEAR * wide, away))
            if SHARP:
                corner = tl.load(corners + i) != 0
                step = tl.where(corner & (gap > 0.0), tl.minimum(step, gap), step)
        for i in range(most):
            has = mask & (i < found)
            gap = tl.load(kink_at + i * stride + at, mask=has, other=0.0) - y
            wide = tl.load(kink_width + i * stride + at, mask=has, other=float("inf"))
            # The width of a kink already says how long a panel may be.
            step = tl.minimum(step, tl.maximum(2.0 * wide, tl.maximum(gap * _AHEAD, gap * -_BEHIND)))
        active = y < high
        following = tl.minimum(y + step, high)
        # A step below the spacing of doubles must still move forward.
        following = tl.maximum(following, y + tl.abs(y) * 2.3e-16 + 1e-300)
        y = tl.where(active, following, y)
        step_count += 1
        panels = tl.where(active, step_count, panels)
        tl.store(edges + step_count * stride + at, y, mask=mask & active)
    return tl.where(y < high, -1, panels)


@triton.jit
def _gap(y, first, second, numbers, weights, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr):
    """By how many nats the first member leads the second, both weighted."""
    one = _levels(y, numbers, first, at, mask, LOG, COUNT, False) + tl.log(tl.load(weights + first))
    other = _levels(y, numbers, second, at, mask, LOG, COUNT, False) + tl.log(tl.load(weights + second))
    return one - other


@triton.jit
def _leader(y, numbers, weights, members, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr):
    lead = tl.zeros_like(at)
    best = tl.zeros_like(y) - float("inf")
    for i in range(members):
        level = _levels(y, numbers, i, at, mask, LOG, COUNT, False) + tl.log(tl.load(weights + i))
        lead = tl.where(level > best, i, lead)
        best = tl.maximum(best, level)
    return lead


@triton.jit
def _add_kinks(edges, panels, kinks, found, numbers, weights, members, at, mask, stride, LOG: tl.constexpr, COUNT: tl.constexpr):
    """Store the corners of the mixture's log density that no panel resolves; returns how many each point has."""
    kink_at, kink_width = kinks
    low = tl.load(edges + at, mask=mask, other=0.0)
    lead = _leader(low, numbers, weights, members, at, mask, LOG, COUNT)
    for k in range(tl.max(panels, axis=0)):
        inside = mask & (k < panels)
        high = tl.where(inside, tl.load(edges + (k + 1) * stride + at, mask=inside, other=0.0), low)
        following = _leader(high, numbers, weights, members, at, mask, LOG, COUNT)
        changes = inside & (following != lead)
        if tl.max(changes.to(tl.int32), axis=0) > 0:
            left, right = low, high
            ahead = _gap(left, lead, following, numbers, weights, at, mask, LOG, COUNT)
            behind = _gap(right, lead, following, numbers, weights, at, mask, LOG, COUNT)
            bends = changes & (ahead - behind > _KINK / 2.0) & (ahead < 1e199) & (behind > -1e199)
            if tl.max(bends.to(tl.int32), axis=0) > 0:
                y = 0.5 * (left + right)
                for _ in range(24):
                    y = (left * behind - right * ahead) / tl.where(behind != ahead, behind - ahead, -1.0)
                    y = tl.where((y > left) & (y < right), y, 0.5 * (left + right))
                    gap = _gap(y, lead, following, numbers, weights, at, mask, LOG, COUNT)
                    up = gap > 0.0
                    left, right = tl.where(up, y, left), tl.where(up, right, y)
                    # False position, with the end that stays counted half.
                    ahead, behind = tl.where(up, gap, 0.5 * ahead), tl.where(up, 0.5 * behind, gap)
                near = 1e-3 * (high - low)
                slope = _gap(y + near, lead, following, numbers, weights, at, mask, LOG, COUNT)
                slope -= _gap(y - near, lead, following, numbers, weights, at, mask, LOG, COUNT)
                width = 2.0 * near / tl.maximum(tl.abs(slope), 1e-300)
                fine = bends & (2.0 * _KINK * width < 0.99 * (high - low))
                room = fine & (found < _MAX_KINKS)
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
    BLOCK: tl.constexpr,
):
    """Fill the edges (panels + 1, points) and the number of panels, -1 where there is no room for them."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    low = tl.zeros([BLOCK], tl.float64) + float("inf")
    high = tl.zeros([BLOCK], tl.float64) - float("inf")
    for i in range(count):
        low = tl.minimum(low, tl.load(lows + i * stride + at, mask=mask, other=0.0))
        high = tl.maximum(high, tl.load(highs + i * stride + at, mask=mask, other=0.0))
    places, kinks = (location, width), (kink_at, kink_width)
    found = tl.zeros([BLOCK], tl.int32)
    panels = _march(places, kinks, edges, low, high, count, found, corners, at, mask, stride, HEAVY, SHARP)
    if BENDS:
        given = (numbers, number_stride, stride)
        again = tl.max(panels, axis=0) > -2
        for _ in range(_ROUNDS):  # a panel may hide more than one corner: each round finds the ones that the last uncovered
            if again:
                before = found
                found = _add_kinks(edges, panels, kinks, found, given, weights, members, at, mask, stride, LOG, COUNT)
                again = tl.max(found - before, axis=0) > 0
                if again:
                    panels = _march(places, kinks, edges, low, high, count, found, corners, at, mask, stride, HEAVY, SHARP)
    panels = tl.where(found > _MAX_KINKS, -1, panels)
    tl.store(panels_out + at, panels, mask=mask)


@triton.jit
def _entropies(log_p, log_q, larger):
    """p log(p/q) - p + q and q log(q/p) - q + p, which are nowhere negative, from the larger of the densities."""
    ratio = log_p - log_q
    size = tl.abs(ratio)
    decay = libdevice.expm1(-size)
    of_larger = size + decay
    of_smaller = tl.where(size < _WIDE_APART, -of_larger - size * decay, 1.0)
    one, other = larger * of_larger, larger * of_smaller
    ahead = ratio > 0.0
    return tl.where(ahead, one, other), tl.where(ahead, other, one)


@triton.jit
def _upper_tail(z):
    """The probability of standard normal values above z >= 0."""
    bounded = tl.minimum(z, 1e30)
    ratio = polynomial(bounded, _TAIL_ABOVE, 10) / polynomial(bounded, _TAIL_BELOW, 11)
    return tl.exp(-0.5 * z * z) * ratio


@triton.jit
def integrate(  # noqa: PLR0915 (what a function would be called with is what it would be for)
    out,
    status,
    edges,
    panels_in,
    numbers,
    tails,
    weights,
    scales,
    centres,
    reached,
    nodes_in,
    rule_weights,
    from_left,
    from_right,
    members,
    points,
    number_stride,
    stride,
    mass_bound,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    LOGS: tl.constexpr,
    SURROGATES: tl.constexpr,
    HEAVY: tl.constexpr,
    EXACT: tl.constexpr,
    MEMBERS: tl.constexpr,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the rows (rows, points), and the status: one where they mean nothing, two where the log rows must be EXACT.

    Relative entropies that are not small are plain differences, which need one exponential for each member and node. Others need
    the exact form, whose integrand is nowhere negative. Without MEMBERS, log rows of single members are left out.

    `reached` (2, members, points) is working memory: the probability below and above of what was done. The rule's matrices are
    padded to TILE; padded nodes have no weight.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    node, tile = tl.arange(0, _TILE), tl.zeros([BLOCK, _TILE], tl.float64)
    zero = tl.zeros([BLOCK], tl.float64)
    given = (numbers, number_stride, stride)
    panels = tl.load(panels_in + at, mask=mask, other=0)
    first_edge = tl.load(edges + at, mask=mask, other=0.0)
    last_edge = tl.load(edges + tl.maximum(panels, 0) * stride + at, mask=mask, other=0.0)
    abscissa, weight_of_node = tl.load(nodes_in + node)[None, :], tl.load(rule_weights + node)[None, :]
    square = node[:, None] * _TILE + node[None, :]

    mass, c_own, f_matched, f_pooled = zero, zero, zero, zero
    matched, pooled = zero + 1.0, zero + 1.0
    middle_of_all = tl.load(centres + at, mask=mask, other=0.0)
    if SURROGATES:
        matched = tl.load(scales + at, mask=mask, other=1.0)
        pooled = tl.load(scales + stride + at, mask=mask, other=1.0)
    for i in range(members):
        below, above = zero, zero
        if HEAVY:
            weight = tl.load(weights + i)
            centre = tl.load(tails + i * stride + at, mask=mask, other=0.0)
            for side in tl.static_range(2):
                end = first_edge if side == 0 else last_edge
                exponent = tl.load(tails + ((1 + side) * members + i) * stride + at, mask=mask, other=1e9)
                distance = tl.abs(end - centre)
                end_level = _levels(end, given, i, at, mask, LOG, COUNT, False)
                held = tl.where(exponent < _STEEP, tl.exp(end_level) * distance / exponent, 0.0)
                share = weight * held
                first = tl.where(exponent > 1.0, distance / (exponent - 1.0), float("inf"))
                second = tl.where(exponent > 2.0, distance * distance / (exponent - 2.0), float("inf"))
                c_own += tl.where(held > 0.0, share * first, 0.0)
                squares = (end - middle_of_all) * (end - middle_of_all) + 2.0 * second
                squares += (4.0 * side - 2.0) * (centre - middle_of_all) * first
                if SURROGATES:
                    f_matched += tl.where(held > 0.0, 0.5 * share * squares / (matched * matched), 0.0)
                    f_pooled += tl.where(held > 0.0, 0.5 * share * squares / (pooled * pooled), 0.0)
                mass += share
                if side == 0:
                    below = held
                else:
                    above = held
        tl.store(reached + i * stride + at, below, mask=mask)
        tl.store(reached + (members + i) * stride + at, above, mask=mask)
    # The last panel that ends at or below the centre.
    middle = tl.zeros_like(panels)
    for j in range(tl.max(panels, axis=0)):
        end = tl.load(edges + (j + 1) * stride + at, mask=mask & (j < panels), other=1.0)
        middle += ((end <= middle_of_all) & (j < panels)).to(tl.int32)

    # Sums over the nodes are kept for each node until the end, since adding up along a tile takes time.
    sum_mass, sum_c_own, sum_c, sum_q_own, sum_q, sum_l_own, sum_l, sum_back = tile, tile, tile, tile, tile, tile, tile, tile
    sum_c_a, sum_c_v, sum_q_a, sum_q_v, sum_o_a, sum_o_v, sum_f_a, sum_f_v = tile, tile, tile, tile, tile, tile, tile, tile
    sum_b_a, sum_b_v, sum_m_a, sum_m_v, faint = tile, tile, tile, tile, tile
    for downward in tl.static_range(2):
        matrix = tl.load((from_right if downward else from_left) + square)
        steps = (panels - middle) if downward else middle
        store = reached + downward * members * stride
        for j in range(tl.max(steps, axis=0)):
            active = mask & (j < steps)
            k = (panels - 1 - j) if downward else (tl.zeros_like(panels) + j)
            low = tl.load(edges + k * stride + at, mask=active, other=0.0)
            length = tl.load(edges + (k + 1) * stride + at, mask=active, other=0.0) - low
            y = low[:, None] + length[:, None] * abscissa
            measure = length[:, None] * weight_of_node

            # The mixture's log density, relative to the highest member so that nothing underflows.
            mixture_level, p = tile, tile
            if LOGS and EXACT:
                top = tile - float("inf")
                for i in range(members):
                    level = _levels(y, given, i, at, active, LOG, COUNT, True) + tl.log(tl.load(weights + i))
                    top = tl.maximum(top, level)
                for i in range(members):
                    level = _levels(y, given, i, at, active, LOG, COUNT, True) + tl.log(tl.load(weights + i))
                    p += tl.exp(level - top)
                mixture_level = top + tl.log(p)
                p = tl.exp(mixture_level)
            if SURROGATES:
                g_level, h_level, g, h = tile, tile, tile, tile
                z = (y - middle_of_all[:, None]) / matched[:, None]
                v = (y - middle_of_all[:, None]) / pooled[:, None]
                g_level = -0.5 * z * z - (_LOG_SQRT_2PI + tl.log(matched))[:, None]
                h_level = -0.5 * v * v - (_LOG_SQRT_2PI + tl.log(pooled))[:, None]
                if QUADRATIC or LOGS:
                    g, h = tl.exp(g_level), tl.exp(h_level)
            # Sums over the members relative to the first, so that variances between them keep their digits.
            first_density, first_tail = tile, tile
            tail_sum, tail_squares, tail_own, density_sum, density_squares = tile, tile, tile, tile, tile
            mean_level, own_level, plain, own_squares = tile, tile, tile, tile
            for i in range(members):
                weight = tl.load(weights + i)
                level = _levels(y, given, i, at, active, LOG, COUNT, True)
                density = tl.exp(level)
                plain += weight * density
                if CRPS:
                    held = tl.load(store + i * stride + at, mask=active, other=0.0)
                    tail = held[:, None] + length[:, None] * tl.dot(density, matrix, out_dtype=tl.float64)
                    tl.store(store + i * stride + at, held + tl.sum(density * measure, axis=1), mask=active)
                    if i == 0:
                        first_tail = tail
                    gap = tail - first_tail
                    tail_sum += weight * gap
                    tail_squares += weight * gap * gap
                    tail_own += weight * tail * (1.0 - tail)
                if QUADRATIC:
                    if i == 0:
                        first_density = density
                    gap = density - first_density
                    density_sum += weight * gap
                    density_squares += weight * gap * gap
                    own_squares += weight * density * density
                if LOGS and MEMBERS:
                    own_level += weight * density * level
                    if EXACT:
                        one, other = _entropies(level, mixture_level, tl.maximum(density, p))
                        sum_l += weight * one * measure
                        sum_back += weight * other * measure
                        if SURROGATES:
                            one, _ = _entropies(g_level, level, tl.maximum(g, density))
                            sum_m_a += weight * one * measure
                            one, _ = _entropies(h_level, level, tl.maximum(h, density))
                            sum_m_v += weight * one * measure
                    else:
                        mean_level += weight * level
            p = plain
            sum_mass += p * measure
            if CRPS:
                sum_c_own += tail_own * measure
                sum_c += (tail_squares - tail_sum * tail_sum) * measure
            if QUADRATIC:
                sum_q_own += own_squares * measure
                sum_q += (density_squares - density_sum * density_sum) * measure
            if LOGS:
                if not EXACT:
                    mixture_level = tl.log(tl.maximum(p, _FAINT))
                    if SURROGATES:
                        faint += tl.where((p <= _FAINT) & (tl.maximum(g, h) > _FAINT), 1.0, 0.0)
                if MEMBERS:
                    sum_l_own += own_level * measure
                if MEMBERS and not EXACT:
                    sum_l += (own_level - p * mixture_level) * measure
                    sum_back += p * (mixture_level - mean_level) * measure
                    if SURROGATES:
                        sum_m_a += (g * (g_level - mean_level) - g + p) * measure
                        sum_m_v += (h * (h_level - mean_level) - h + p) * measure
            if SURROGATES:
                if CRPS:
                    mixture_tail = first_tail + tail_sum
                    tail = _upper_tail(tl.abs(z))
                    gap = tl.where((z > 0.0) == (downward == 0), 1.0 - tail, tail) - mixture_tail
                    sum_c_a += gap * gap * measure
                    tail = _upper_tail(tl.abs(v))
                    gap = tl.where((v > 0.0) == (downward == 0), 1.0 - tail, tail) - mixture_tail
                    sum_c_v += gap * gap * measure
                if QUADRATIC:
                    sum_q_a += (g - p) * (g - p) * measure
                    sum_q_v += (h - p) * (h - p) * measure
                    sum_o_a += g * p * measure
                    sum_o_v += h * p * measure
                if LOGS:
                    one, other = _entropies(mixture_level, g_level, tl.maximum(p, g))
                    sum_f_a += one * measure
                    sum_b_a += other * measure
                    one, other = _entropies(mixture_level, h_level, tl.maximum(p, h))
                    sum_f_v += one * measure
                    sum_b_v += other * measure
    mass += tl.sum(sum_mass, axis=1)
    c_own += tl.sum(sum_c_own, axis=1)
    c_between, q_own, q_between = tl.sum(sum_c, axis=1), tl.sum(sum_q_own, axis=1), tl.sum(sum_q, axis=1)
    l_own, l_between, l_back = tl.sum(sum_l_own, axis=1), tl.sum(sum_l, axis=1), tl.sum(sum_back, axis=1)
    c_matched, c_pooled, q_matched, q_pooled = (
        tl.sum(sum_c_a, axis=1),
        tl.sum(sum_c_v, axis=1),
        tl.sum(sum_q_a, axis=1),
        tl.sum(sum_q_v, axis=1),
    )
    o_matched, o_pooled = tl.sum(sum_o_a, axis=1), tl.sum(sum_o_v, axis=1)
    f_matched += tl.sum(sum_f_a, axis=1)
    f_pooled += tl.sum(sum_f_v, axis=1)
    b_matched, b_pooled = tl.sum(sum_b_a, axis=1), tl.sum(sum_b_v, axis=1)
    m_matched, m_pooled = tl.sum(sum_m_a, axis=1), tl.sum(sum_m_v, axis=1)

    into = out + at
    if CRPS:
        tl.store(into + C_OWN * stride, c_own, mask=mask)
        tl.store(into + C_BETWEEN * stride, c_between, mask=mask)
    if QUADRATIC:
        tl.store(into + Q_OWN * stride, -q_own, mask=mask)
        tl.store(into + Q_BETWEEN * stride, q_between, mask=mask)
    if LOGS:
        tl.store(into + L_OWN * stride, -l_own, mask=mask)
        tl.store(into + L_BETWEEN * stride, tl.where(l_between > _NEVER, float("inf"), l_between), mask=mask)
        tl.store(into + L_BACK * stride, tl.where(l_back > _NEVER, float("inf"), l_back), mask=mask)
    if SURROGATES:
        if CRPS:
            tl.store(into + C_SURROGATE * stride, c_matched, mask=mask)
            tl.store(into + (C_SURROGATE + 1) * stride, c_pooled, mask=mask)
        if QUADRATIC:
            tl.store(into + Q_SURROGATE * stride, q_matched, mask=mask)
            tl.store(into + (Q_SURROGATE + 1) * stride, q_pooled, mask=mask)
            tl.store(into + Q_OVERLAP * stride, o_matched, mask=mask)
            tl.store(into + (Q_OVERLAP + 1) * stride, o_pooled, mask=mask)
            tl.store(into + Q_ALONE * stride, -_INVERSE_SQRT_4PI / matched, mask=mask)
            tl.store(into + (Q_ALONE + 1) * stride, -_INVERSE_SQRT_4PI / pooled, mask=mask)
        if LOGS:
            tl.store(into + L_FORWARD * stride, tl.where(f_matched > _NEVER, float("inf"), f_matched), mask=mask)
            tl.store(into + (L_FORWARD + 1) * stride, tl.where(f_pooled > _NEVER, float("inf"), f_pooled), mask=mask)
            tl.store(into + L_BACKWARD * stride, tl.where(b_matched > _NEVER, float("inf"), b_matched), mask=mask)
            tl.store(into + (L_BACKWARD + 1) * stride, tl.where(b_pooled > _NEVER, float("inf"), b_pooled), mask=mask)
            tl.store(into + L_MEMBERS * stride, tl.where(m_matched > _NEVER, float("inf"), m_matched), mask=mask)
            tl.store(into + (L_MEMBERS + 1) * stride, tl.where(m_pooled > _NEVER, float("inf"), m_pooled), mask=mask)
    good = (panels >= 0) & (tl.abs(mass - 1.0) <= mass_bound)
    close = tl.zeros_like(good)
    if LOGS and not EXACT:
        if MEMBERS:
            close = (l_between < _PLAIN) | (l_back < _PLAIN)
        if SURROGATES:
            close = close | (tl.max(faint, axis=1) > 0.0)
            if MEMBERS:
                close = close | (m_matched < _PLAIN) | (m_pooled < _PLAIN)
    tl.store(status + at, tl.where(good, tl.where(close, 2, 0), 1).to(tl.int8), mask=mask)

"""The Triton kernels: closed-form terms one point per thread, and measures from terms."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from uqprism.backends.program import TERMS
from uqprism.backends.triton.special import (
    PER_SQRT_PI,
    SQRT_2_PI,
    crps_distance,
    divide,
    log_gap,
    power_of_two,
    quadratic_distance,
    root,
)

UNIT = len(TERMS)  # the row of the unit itself
UNUSABLE, LOSSY = 1, 2

_UNIT, _UNUSABLE, _LOSSY = tl.constexpr(UNIT), tl.constexpr(UNUSABLE), tl.constexpr(LOSSY)


def _rows(rule_and_risk: str, roles: str) -> Any:
    """The rows of these terms as compile-time constants."""
    return (tl.constexpr(TERMS.index(f"{rule_and_risk}.{role}")) for role in roles.split())


BAYES, PAIRS = "members matched pooled", "matched.members pooled.members matched.pooled matched.mixture pooled.mixture"
BOTH_WAYS = "members.matched members.pooled matched.members pooled.members matched.pooled pooled.matched"

C_BAYES, C_BAYES_A, C_BAYES_V = _rows("crps.bayes", BAYES)
C_MM, C_AM, C_VM, C_AV, C_AX, C_VX = _rows("crps.excess", f"members.members {PAIRS}")
Q_BAYES, Q_BAYES_A, Q_BAYES_V = _rows("quadratic.bayes", BAYES)
Q_MM, Q_AM, Q_VM, Q_AV, Q_AX, Q_VX = _rows("quadratic.excess", f"members.members {PAIRS}")
QT_MM, QT_MA, QT_MV, QT_AM, QT_VM, QT_AV, QT_VA = _rows("quadratic.total", f"members.members {BOTH_WAYS}")
L_BAYES, L_BAYES_A, L_BAYES_V = _rows("log.bayes", BAYES)
L_MM, L_MA, L_MV, L_AM, L_VM, L_AV, L_VA = _rows("log.excess", f"members.members {BOTH_WAYS}")
S_BAYES, S_BAYES_A = _rows("squared_error.bayes", "members matched")
(S_EXCESS,) = _rows("squared_error.excess", "members.matched")
(LOG_UNIT,) = _rows("log", "unit")
HALF_LOG_2PI_E, LN_2 = tl.constexpr(0.5 * (math.log(2.0 * math.pi) + 1.0)), tl.constexpr(math.log(2.0))


@triton.jit
def _put(out, row, value):
    """Store a term, if it is asked for, in the row that was found for it."""
    into, stride, mask, slots = out
    slot = tl.load(slots + row)
    tl.store(into + slot * stride, value, mask=mask & (slot >= 0))


@triton.jit
def _load(inputs, i, BY_VARIANCE: tl.constexpr):
    """A member as given: offset from the first member, scale, and what was given."""
    mean, given, _, mean_stride, given_stride, origin = inputs
    # Subtracted first, before anything is scaled or squared: an offset that all share costs no digits.
    offset = tl.load(mean + i * mean_stride) - origin
    x = tl.load(given + i * given_stride)
    scale = root(x) if BY_VARIANCE else x
    return offset, scale, x


@triton.jit
def _member(inputs, inverse, i, BY_VARIANCE: tl.constexpr):
    """The same in units of the centring, with its weight."""
    weight = tl.load(inputs[2] + i)
    offset, scale, x = _load(inputs, i, BY_VARIANCE)
    scale = scale * inverse
    return weight, offset * inverse, scale, x * inverse * inverse if BY_VARIANCE else scale


@triton.jit
def _variance_gap(x, first, BY_VARIANCE: tl.constexpr):
    """A member's variance minus the first one's, from what is exact."""
    # The difference of two squares, factored: nearly equal scales have an exact difference.
    return x - first if BY_VARIANCE else (x - first) * (x + first)


@triton.jit
def _centred(inputs, inverse, moments, i, BY_VARIANCE: tl.constexpr):
    """A member's weight, offset from the mean, scale, and variance minus the mean variance."""
    first, shift, more, gap_shift, more_gap = moments
    weight, offset, scale, x = _member(inputs, inverse, i, BY_VARIANCE)
    # The two shifts one after the other: their sum would be rounded.
    return weight, (offset - shift) - more, scale, (_variance_gap(x, first, BY_VARIANCE) - gap_shift) - more_gap


@triton.jit
def _choose_frame(inputs, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """Which points can be used, and a power of two as the unit."""
    size = zero
    total = zero
    narrowest = zero + float("inf")
    for i in range(count):
        offset, scale, _ = _load(inputs, i, BY_VARIANCE)
        size = tl.maximum(size, tl.maximum(tl.abs(offset), scale))
        narrowest = tl.minimum(narrowest, scale)
        total += tl.abs(offset) + scale  # NaN and infinity survive a sum, not a maximum
    if SINGLE:
        # Squares of the unit, and products of up to six scales in units of it, fit into the precision.
        usable = (total < float("inf")) & (size > 1e-12) & (size < 1e12) & (narrowest > 1e-4 * size)
    else:
        usable = (total < float("inf")) & (size > 1e-140) & (size < 1e140) & (narrowest > 1e-25 * size)
    unit, inverse, exponent = power_of_two(tl.where(usable, size, 1.0), SINGLE)
    return usable, unit, inverse, exponent


@triton.jit
def _find_moments(inputs, inverse, count, zero, BY_VARIANCE: tl.constexpr):
    """Shifts that centre means and variances, twice for what the first one rounds; the mean variance; that of the means."""
    _, _, _, first = _member(inputs, inverse, 0, BY_VARIANCE)
    shift, gap_shift, more, more_gap, pooled, spread = zero, zero, zero, zero, zero, zero
    for i in range(count):
        weight, offset, _, x = _member(inputs, inverse, i, BY_VARIANCE)
        shift += weight * offset
        gap_shift += weight * _variance_gap(x, first, BY_VARIANCE)
        pooled += weight * (x if BY_VARIANCE else x * x)
    for i in range(count):
        weight, offset, _, x = _member(inputs, inverse, i, BY_VARIANCE)
        more += weight * (offset - shift)
        more_gap += weight * (_variance_gap(x, first, BY_VARIANCE) - gap_shift)
    moments = (first, shift, more, gap_shift, more_gap)
    for i in range(count):
        weight, offset, _, _ = _centred(inputs, inverse, moments, i, BY_VARIANCE)
        spread += weight * (offset * offset)
    return moments, pooled, spread


@triton.jit
def _crps_terms(inputs, inverse, moments, surrogates, out, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """Store the CRPS terms that are not over pairs; returns the members' distances from matched and pooled."""
    spread, matched, pooled = surrogates
    to_matched, to_pooled = zero, zero
    for i in range(count):
        weight, offset, scale, deviation = _centred(inputs, inverse, moments, i, BY_VARIANCE)
        to_matched += weight * crps_distance(offset, scale, matched, deviation - spread, True, SINGLE)
        to_pooled += weight * crps_distance(offset, scale, pooled, deviation, True, SINGLE)
    _put(out, C_BAYES_A, matched * PER_SQRT_PI)
    _put(out, C_BAYES_V, pooled * PER_SQRT_PI)
    _put(out, C_AM, to_matched)
    _put(out, C_VM, to_pooled)
    # The gap of their variances is exactly the variance of the means.
    _put(out, C_AV, crps_distance(zero, matched, pooled, spread, True, SINGLE))
    return to_matched, to_pooled


@triton.jit
def _quadratic_terms(
    inputs, inverse, moments, surrogates, bayes, out, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr
):
    """Store the quadratic terms that are not over pairs; returns the members' distances from matched and pooled."""
    spread, matched, pooled = surrogates
    to_matched, to_pooled, matched_gap, pooled_gap = zero, zero, zero, zero
    for i in range(count):
        weight, offset, scale, deviation = _centred(inputs, inverse, moments, i, BY_VARIANCE)
        distance, overlap = quadratic_distance(offset, scale, matched, deviation - spread, True, SINGLE)
        to_matched += weight * distance
        matched_gap -= weight * overlap
        distance, overlap = quadratic_distance(offset, scale, pooled, deviation, True, SINGLE)
        to_pooled += weight * distance
        pooled_gap -= weight * overlap
    between, overlap = quadratic_distance(zero, matched, pooled, spread, True, SINGLE)
    # The factor that `quadratic_distance` leaves out, applied once rather than for each member.
    to_matched, to_pooled, between, overlap = (
        to_matched * SQRT_2_PI,
        to_pooled * SQRT_2_PI,
        between * SQRT_2_PI,
        overlap * SQRT_2_PI,
    )
    matched_gap, pooled_gap = matched_gap * SQRT_2_PI, pooled_gap * SQRT_2_PI
    matched_bayes = -0.5 * PER_SQRT_PI / matched
    pooled_bayes = -0.5 * PER_SQRT_PI / pooled
    _put(out, Q_BAYES_A, matched_bayes)
    _put(out, Q_BAYES_V, pooled_bayes)
    _put(out, Q_AM, to_matched)
    _put(out, Q_VM, to_pooled)
    _put(out, Q_AV, between)
    _put(out, QT_MA, matched_gap - bayes)
    _put(out, QT_MV, pooled_gap - bayes)
    _put(out, QT_AM, matched_gap - matched_bayes)
    _put(out, QT_VM, pooled_gap - pooled_bayes)
    _put(out, QT_AV, -overlap - matched_bayes)
    _put(out, QT_VA, -overlap - pooled_bayes)
    return to_matched, to_pooled


@triton.jit
def _log_terms(inputs, inverse, moments, variances, out, count, zero, BY_VARIANCE: tl.constexpr):
    """Store the log terms with a closed form; the mean over pairs of members needs only their moments."""
    spread, matched, pooled = variances
    bayes, pairs, am, vm, ma, mv = zero, zero, zero, zero, zero, zero
    for i in range(count):
        weight, offset, scale, deviation = _centred(inputs, inverse, moments, i, BY_VARIANCE)
        variance = scale * scale
        square = offset * offset
        am += weight * (log_gap((deviation - spread) / matched, variance / matched) + square / matched)
        vm += weight * (log_gap(deviation / pooled, variance / pooled) + square / pooled)
        ma += weight * (log_gap((spread - deviation) / variance, matched / variance) + square / variance)
        mv += weight * (log_gap(-deviation / variance, pooled / variance) + square / variance)
        # The cross terms of the mean over pairs vanish, since offsets and deviations are centred.
        pairs += weight * (deviation * deviation / pooled + spread + square) / variance
        bayes += weight * tl.log(variance)
    _put(out, L_BAYES, HALF_LOG_2PI_E + 0.5 * bayes)
    _put(out, L_BAYES_A, HALF_LOG_2PI_E + 0.5 * tl.log(matched))
    _put(out, L_BAYES_V, HALF_LOG_2PI_E + 0.5 * tl.log(pooled))
    _put(out, L_MM, 0.5 * pairs)
    _put(out, L_AM, 0.5 * am)
    _put(out, L_VM, 0.5 * vm)
    _put(out, L_MA, 0.5 * ma)
    _put(out, L_MV, 0.5 * mv)
    _put(out, L_VA, 0.5 * log_gap(spread / pooled, matched / pooled))
    _put(out, L_AV, 0.5 * log_gap(-spread / matched, pooled / matched))


@triton.jit
def _member_entropies(
    inputs,
    inverse,
    out,
    count,
    zero,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    BY_VARIANCE: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """Store the members' mean CRPS and quadratic Bayes risks; returns the latter, and each member's part in the total."""
    crps, quadratic, own = zero, zero, zero
    for i in range(count):
        weight, _, scale, _ = _member(inputs, inverse, i, BY_VARIANCE)
        height = divide(weight * PER_SQRT_PI, scale, SINGLE)
        crps += weight * PER_SQRT_PI * scale
        quadratic -= 0.5 * height
        # The member's own gap, with the net weight it has in `measures.risks`: zero for two equal members.
        own += (0.5 - weight) * height
    if CRPS:
        _put(out, C_BAYES, crps)
    if QUADRATIC:
        _put(out, Q_BAYES, quadratic)
    return quadratic, own


@triton.jit
def _pairs(
    inputs,
    inverse,
    count,
    zero,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BY_VARIANCE: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """Every unordered pair of members once: mean CRPS and quadratic distances, and the mean quadratic gap.

    The inner loop is where the time goes: it steps pointers instead of computing addresses.
    """
    mean, given, weights, mean_stride, given_stride, _ = inputs
    crps, quadratic, total = zero, zero, zero
    for i in range(count):
        weight, _, scale, x = _member(inputs, inverse, i, BY_VARIANCE)
        centre = tl.load(mean + i * mean_stride)
        other_mean = mean
        other_given = given
        other_weight = weights
        part, distances, overlaps = zero, zero, zero
        for _j in range(i):
            w = tl.load(other_weight) if WEIGHTED else 1.0
            shift = (centre - tl.load(other_mean)) * inverse
            if BY_VARIANCE:
                y = tl.load(other_given) * inverse * inverse
                width = root(y)
            else:
                y = tl.load(other_given) * inverse
                width = y
            if CRPS:
                part += w * crps_distance(shift, scale, width, x - y, BY_VARIANCE, SINGLE)
            if QUADRATIC:
                distance, overlap = quadratic_distance(shift, scale, width, x - y, BY_VARIANCE, SINGLE)
                distances += w * distance
                overlaps += w * overlap
            other_mean += mean_stride
            other_given += given_stride
            if WEIGHTED:
                other_weight += 1
        both = 2.0 * weight if WEIGHTED else 2.0 * weight * weight  # equal weights are taken out of the inner loop
        crps += both * part
        quadratic += both * SQRT_2_PI * distances
        total -= both * SQRT_2_PI * overlaps
    return crps, quadratic, total


@triton.jit
def _mixture_terms(out, matched_row, pooled_row, to_matched, to_pooled, pairs, flag, KEEPS: tl.constexpr):
    """Store the mixture's distances from matched and pooled; flags points where the difference loses too many digits."""
    # E(A,x) = E(A,m) - E(x,m), and E(x,m) is half the mean over pairs, see docs/theory.md, "Identities".
    matched = to_matched - 0.5 * pairs
    pooled = to_pooled - 0.5 * pairs
    _put(out, matched_row, matched)
    _put(out, pooled_row, pooled)
    return tl.where((matched <= KEEPS * to_matched) | (pooled <= KEEPS * to_pooled), flag | _LOSSY, flag)


@triton.jit
def fill_terms(
    mean,
    given,
    weights,
    terms,
    slots,
    flags,
    points,
    mean_stride,
    given_stride,
    stride,
    count,
    WEIGHTED: tl.constexpr,
    BY_VARIANCE: tl.constexpr,
    CRPS: tl.constexpr,
    QUADRATIC: tl.constexpr,
    LOG: tl.constexpr,
    SQUARED: tl.constexpr,
    CRPS_PAIRS: tl.constexpr,
    QUADRATIC_PAIRS: tl.constexpr,
    CRPS_SURROGATES: tl.constexpr,
    QUADRATIC_SURROGATES: tl.constexpr,
    CRPS_MIXTURE: tl.constexpr,
    QUADRATIC_MIXTURE: tl.constexpr,
    SINGLE: tl.constexpr,
    KEEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the rows of `terms` that are asked for at so many points, and flag the points that need more care."""
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = at < points
    inside = tl.minimum(at, points - 1)  # so that loads need no mask
    out = (terms + at, tl.cast(stride, tl.int64), mask, slots)
    origin = tl.load(mean + inside)
    zero = tl.zeros([BLOCK], dtype=origin.dtype)
    strides = (tl.cast(mean_stride, tl.int64), tl.cast(given_stride, tl.int64))
    inputs = (mean + inside, given + inside, weights, strides[0], strides[1], origin)
    usable, unit, inverse, exponent = _choose_frame(inputs, count, zero, BY_VARIANCE, SINGLE)
    flag = tl.where(usable, 0, _UNUSABLE)
    _put(out, _UNIT, unit)
    _put(out, LOG_UNIT, exponent.to(unit.dtype) * LN_2)
    if CRPS or QUADRATIC:
        bayes, own = _member_entropies(inputs, inverse, out, count, zero, CRPS, QUADRATIC, BY_VARIANCE, SINGLE)
    if CRPS_PAIRS or QUADRATIC_PAIRS:
        crps, quadratic, total = _pairs(inputs, inverse, count, zero, CRPS_PAIRS, QUADRATIC_PAIRS, WEIGHTED, BY_VARIANCE, SINGLE)
        if CRPS_PAIRS:
            _put(out, C_MM, crps)
        if QUADRATIC_PAIRS:
            _put(out, Q_MM, quadratic)
            _put(out, QT_MM, own + total)
    if SQUARED or LOG or CRPS_SURROGATES or QUADRATIC_SURROGATES:
        moments, pooled_variance, spread = _find_moments(inputs, inverse, count, zero, BY_VARIANCE)
        matched_variance = pooled_variance + spread
        surrogates = (spread, root(matched_variance), root(pooled_variance))
        if SQUARED:
            _put(out, S_BAYES, pooled_variance)
            _put(out, S_BAYES_A, matched_variance)
            _put(out, S_EXCESS, spread)
        if LOG:
            _log_terms(inputs, inverse, moments, (spread, matched_variance, pooled_variance), out, count, zero, BY_VARIANCE)
        if CRPS_SURROGATES:
            matched, pooled = _crps_terms(inputs, inverse, moments, surrogates, out, count, zero, BY_VARIANCE, SINGLE)
            if CRPS_MIXTURE:
                flag = _mixture_terms(out, C_AX, C_VX, matched, pooled, crps, flag, KEEPS)
        if QUADRATIC_SURROGATES:
            matched, pooled = _quadratic_terms(inputs, inverse, moments, surrogates, bayes, out, count, zero, BY_VARIANCE, SINGLE)
            if QUADRATIC_MIXTURE:
                flag = _mixture_terms(out, Q_AX, Q_VX, matched, pooled, quadratic, flag, KEEPS)
    tl.store(flags + at, flag.to(tl.int8), mask=mask)


@triton.jit
def combine(terms, table, factors, addresses, measures, entries, first, points, stride, BLOCK: tl.constexpr):
    """Every measure at some points: a weighted sum of terms, times a power of the unit.

    `table` holds, one after the other: the slot of the unit, where each measure's entries start, each entry's slot, and each
    measure's degree and whether it is an excess.
    """
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = at < points
    stride = tl.cast(stride, tl.int64)
    start = table + 1
    slot = start + measures + 1
    degree = slot + entries
    excess = degree + measures
    unit = tl.load(terms + tl.load(table) * stride + at, mask=mask, other=1.0)
    for measure in range(measures):
        value = unit * 0.0
        for entry in range(tl.load(start + measure), tl.load(start + measure + 1)):
            weight = tl.load(factors + entry).to(unit.dtype)
            value += weight * tl.load(terms + tl.load(slot + entry) * stride + at, mask=mask, other=0.0)
        power = tl.load(degree + measure)
        # All degrees of the four rules; zero changes nothing.
        scaled = tl.where(power == -1, value / unit, tl.where(power == 2, value * unit * unit, value))
        value = tl.where(power == 1, value * unit, scaled)
        # Not `maximum`: NaN stays NaN.
        value = tl.where((tl.load(excess + measure) != 0) & (value < 0.0), 0.0, value)
        into = tl.load(addresses + measure).to(tl.pointer_type(terms.dtype.element_ty))
        tl.store(into + first + at, value, mask=mask)

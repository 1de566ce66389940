"""The Triton kernel of closed forms: terms one point per thread, and measures from terms while these are in registers."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import triton
import triton.language as tl

from uqprism.backends.program import TERMS, covers, terms_of
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
from uqprism.measures import catalogue

UNUSABLE, LOSSY = 1, 2

_UNUSABLE, _LOSSY = tl.constexpr(UNUSABLE), tl.constexpr(LOSSY)
HALF_LOG_2PI_E, LN_2 = tl.constexpr(0.5 * (math.log(2.0 * math.pi) + 1.0)), tl.constexpr(math.log(2.0))

MEASURES = tuple(measure for measure in catalogue() if covers(measure))
"""What `fill` can store, in the order of its addresses."""


def _sums(rule: str) -> tuple[Any, ...]:
    """The measures of a rule as sums of its terms: places, where the parts of each start, terms, factors, what is an excess."""
    places = [k for k, measure in enumerate(MEASURES) if measure.rule == rule]
    rows = [term for term in TERMS if term.startswith(f"{rule}.")]
    parts = [terms_of(MEASURES[k]) for k in places]
    found = (
        places,
        [0, *accumulate(map(len, parts))],
        [rows.index(term) for part in parts for term, _ in part],
        [float(factor) for part in parts for _, factor in part],
        [MEASURES[k].risk == "excess" for k in places],
    )
    return tuple(tl.constexpr(tuple(x)) for x in found)


C_PLACES, C_STARTS, C_ROWS, C_FACTORS, C_EXCESS = _sums("crps")
Q_PLACES, Q_STARTS, Q_ROWS, Q_FACTORS, Q_EXCESS = _sums("quadratic")
L_PLACES, L_STARTS, L_ROWS, L_FACTORS, L_EXCESS = _sums("log")
S_PLACES, S_STARTS, S_ROWS, S_FACTORS, S_EXCESS = _sums("squared_error")
OF_A_RULE, MOST = tl.constexpr(len(MEASURES) // 4), tl.constexpr(max(len(terms_of(measure)) for measure in MEASURES))


@triton.jit
def _store(
    into,
    terms,
    unit,
    PLACES: tl.constexpr,
    STARTS: tl.constexpr,
    ROWS: tl.constexpr,
    FACTORS: tl.constexpr,
    EXCESS: tl.constexpr,
):
    """Store the measures of a rule that have an address: weighted sums of terms, written out, times this power of the unit."""
    addresses, at, mask = into
    for k in tl.static_range(OF_A_RULE):
        address = tl.load(addresses + PLACES[k])
        if address != 0:
            value = unit * 0.0
            for entry in tl.static_range(MOST):
                if STARTS[k] + entry < STARTS[k + 1]:
                    value += terms[ROWS[STARTS[k] + entry]] * FACTORS[STARTS[k] + entry]
            value = value * unit
            if EXCESS[k]:
                value = tl.where(value < 0.0, 0.0, value)  # not `maximum`: NaN stays NaN
            tl.store(address.to(tl.pointer_type(value.dtype)) + at, value, mask=mask)


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
def _crps_gaps(inputs, inverse, moments, surrogates, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """Mean distances of matched and pooled from the members, and of matched from pooled."""
    spread, matched, pooled = surrogates
    to_matched, to_pooled = zero, zero
    for i in range(count):
        weight, offset, scale, deviation = _centred(inputs, inverse, moments, i, BY_VARIANCE)
        to_matched += weight * crps_distance(offset, scale, matched, deviation - spread, True, SINGLE)
        to_pooled += weight * crps_distance(offset, scale, pooled, deviation, True, SINGLE)
    # The gap of their variances is exactly the variance of the means.
    return to_matched, to_pooled, crps_distance(zero, matched, pooled, spread, True, SINGLE)


@triton.jit
def _quadratic_gaps(inputs, inverse, moments, surrogates, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """The same of the quadratic rule, then what totals over the same pairs have on top of Bayes risks, in the same order."""
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
    to_matched, to_pooled, between = to_matched * SQRT_2_PI, to_pooled * SQRT_2_PI, between * SQRT_2_PI
    return to_matched, to_pooled, between, matched_gap * SQRT_2_PI, pooled_gap * SQRT_2_PI, -overlap * SQRT_2_PI


@triton.jit
def _log_terms(inputs, inverse, moments, variances, count, zero, BY_VARIANCE: tl.constexpr):
    """The log terms with a closed form, in their order; the mean over pairs of members needs only their moments."""
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
    alone = (
        HALF_LOG_2PI_E + 0.5 * bayes,
        HALF_LOG_2PI_E + 0.5 * tl.log(matched),
        HALF_LOG_2PI_E + 0.5 * tl.log(pooled),
    )
    between = 0.5 * log_gap(-spread / matched, pooled / matched), 0.5 * log_gap(spread / pooled, matched / pooled)
    return alone + (0.5 * pairs, 0.5 * am, 0.5 * vm, 0.5 * ma, 0.5 * mv) + between


@triton.jit
def _member_entropies(inputs, inverse, count, zero, BY_VARIANCE: tl.constexpr, SINGLE: tl.constexpr):
    """The members' mean CRPS and quadratic Bayes risks, and each member's part in the latter's total."""
    crps, quadratic, own = zero, zero, zero
    for i in range(count):
        weight, _, scale, _ = _member(inputs, inverse, i, BY_VARIANCE)
        height = divide(weight * PER_SQRT_PI, scale, SINGLE)
        crps += weight * PER_SQRT_PI * scale
        quadratic -= 0.5 * height
        # The member's own gap, with the net weight it has in `measures.risks`: zero for two equal members.
        own += (0.5 - weight) * height
    return crps, quadratic, own


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
def _from_mixture(gaps, pairs, flag, KEEPS: tl.constexpr):
    """The distances of matched and pooled from the mixture; flags points where the difference loses too many digits."""
    # E(A,x) = E(A,m) - E(x,m), and E(x,m) is half the mean over pairs, see docs/theory.md, "Identities".
    matched = gaps[0] - 0.5 * pairs
    pooled = gaps[1] - 0.5 * pairs
    return matched, pooled, tl.where((matched <= KEEPS * gaps[0]) | (pooled <= KEEPS * gaps[1]), flag | _LOSSY, flag)


@triton.jit
def fill(
    mean,
    given,
    weights,
    integrals,
    addresses,
    flags,
    points,
    mean_stride,
    given_stride,
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
    INTEGRALS: tl.constexpr,
    SINGLE: tl.constexpr,
    KEEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store every measure that has an address, and flag the points that need more care.

    Terms that are not asked for are zero, in measures without an address. `integrals` (3, points) are the log terms that have no
    closed form.
    """
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = at < points
    inside = tl.minimum(at, points - 1)  # so that loads need no mask
    into = (addresses, at, mask)
    origin = tl.load(mean + inside)
    zero = tl.zeros([BLOCK], dtype=origin.dtype)
    strides = (tl.cast(mean_stride, tl.int64), tl.cast(given_stride, tl.int64))
    inputs = (mean + inside, given + inside, weights, strides[0], strides[1], origin)
    usable, unit, inverse, exponent = _choose_frame(inputs, count, zero, BY_VARIANCE, SINGLE)
    flag = tl.where(usable, 0, _UNUSABLE)
    spread, matched_variance, pooled_variance, matched, pooled = zero, zero, zero, zero, zero
    if SQUARED or LOG or CRPS_SURROGATES or QUADRATIC_SURROGATES:
        moments, pooled_variance, spread = _find_moments(inputs, inverse, count, zero, BY_VARIANCE)
        matched_variance = pooled_variance + spread
        matched, pooled = root(matched_variance), root(pooled_variance)
    if SQUARED:
        terms = (pooled_variance, matched_variance, spread)
        _store(into, terms, unit * unit, S_PLACES, S_STARTS, S_ROWS, S_FACTORS, S_EXCESS)
    if LOG:
        variances = (spread, matched_variance, pooled_variance)
        terms = _log_terms(inputs, inverse, moments, variances, count, zero, BY_VARIANCE)
        forward, backward, of_pooled = zero, zero, zero
        if INTEGRALS:
            forward = tl.load(integrals + inside).to(zero.dtype)
            backward = tl.load(integrals + points + inside).to(zero.dtype)
            of_pooled = tl.load(integrals + 2 * points + inside).to(zero.dtype)
        terms = terms + (forward, backward, of_pooled, exponent.to(zero.dtype) * LN_2)
        _store(into, terms, zero + 1.0, L_PLACES, L_STARTS, L_ROWS, L_FACTORS, L_EXCESS)
    crps_own, bayes, own, crps, quadratic, total = zero, zero, zero, zero, zero, zero
    if CRPS or QUADRATIC:
        crps_own, bayes, own = _member_entropies(inputs, inverse, count, zero, BY_VARIANCE, SINGLE)
    if CRPS_PAIRS or QUADRATIC_PAIRS:
        crps, quadratic, total = _pairs(inputs, inverse, count, zero, CRPS_PAIRS, QUADRATIC_PAIRS, WEIGHTED, BY_VARIANCE, SINGLE)
    surrogates = (spread, matched, pooled)
    if CRPS:
        gaps, from_mixture = (zero, zero, zero), (zero, zero)
        if CRPS_SURROGATES:
            gaps = _crps_gaps(inputs, inverse, moments, surrogates, count, zero, BY_VARIANCE, SINGLE)
            if CRPS_MIXTURE:
                to_matched, to_pooled, flag = _from_mixture(gaps, crps, flag, KEEPS)
                from_mixture = (to_matched, to_pooled)
        alone = (crps_own, matched * PER_SQRT_PI, pooled * PER_SQRT_PI)
        terms = alone + (crps,) + gaps + from_mixture
        _store(into, terms, unit, C_PLACES, C_STARTS, C_ROWS, C_FACTORS, C_EXCESS)
    if QUADRATIC:
        alone, gaps, from_mixture, totals = (
            (bayes, zero, zero),
            (zero, zero, zero),
            (zero, zero),
            (zero, zero, zero, zero, zero, zero),
        )
        if QUADRATIC_SURROGATES:
            matched_bayes, pooled_bayes = -0.5 * PER_SQRT_PI / matched, -0.5 * PER_SQRT_PI / pooled
            alone = (bayes, matched_bayes, pooled_bayes)
            gaps_and_totals = _quadratic_gaps(inputs, inverse, moments, surrogates, count, zero, BY_VARIANCE, SINGLE)
            to_matched, to_pooled, between, a, v, both = gaps_and_totals
            gaps = (to_matched, to_pooled, between)
            totals = (a - bayes, v - bayes, a - matched_bayes, v - pooled_bayes, both - matched_bayes, both - pooled_bayes)
            if QUADRATIC_MIXTURE:
                to_matched, to_pooled, flag = _from_mixture(gaps, quadratic, flag, KEEPS)
                from_mixture = (to_matched, to_pooled)
        terms = alone + (quadratic,) + gaps + from_mixture + (own + total,) + totals
        _store(into, terms, 1.0 / unit, Q_PLACES, Q_STARTS, Q_ROWS, Q_FACTORS, Q_EXCESS)
    tl.store(flags + at, flag.to(tl.int8), mask=mask)

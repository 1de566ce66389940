"""From predictions to centred members, and from terms to measures: the first and the last stage of every block of points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from uqprism.backends.numba.base import (
    DEVIATION,
    GIVEN,
    LANES,
    MATCHED_SCALE,
    MATCHED_VARIANCE,
    MEMBER,
    NEAR_MATCHED,
    NEAR_POOLED,
    OFFSET,
    POOLED_SCALE,
    SCALE,
    SPREAD,
    SUMMARY,
    TERM,
    TERM_BLOCK,
    UNIT,
    VARIANCE,
    Floats,
    inlined,
    kernel,
    rows,
)
from uqprism.backends.numba.special import power_of_two
from uqprism.families.near_gaussian import OFFSET as NEAR_OFFSET
from uqprism.families.near_gaussian import RATIO as NEAR_RATIO

LOG_UNIT = TERM["log.unit"]
SMALLEST, LARGEST, NARROWEST = (
    1e-140,
    1e140,
    1e-8,
)  # sizes that no power over- or underflows; a scale as a part of the size that keeps nodes exact
FAINT = 1e-5  # the weight of members that are not near, below which differences of distribution functions keep too few digits


@kernel
def prepare(
    mean: Floats,
    given: Floats,
    weights: Floats,
    by_variance: bool,
    members: Floats,
    summaries: Floats,
    terms: Floats,
    declined: np.ndarray[Any, np.dtype[np.bool_]],
) -> None:
    """Fill members, summaries and the log units; points that need more care than a kernel takes are declined.

    Args:
        mean: (members, points).
        given: the scale, or with `by_variance` the variance, (members, points).
        weights: (members,), all positive.
        by_variance: what `given` is.
        members: out, flat.
        summaries: out, flat.
        terms: out, flat; only the row of the log unit is written.
        declined: out, (points,).
    """
    count, points = mean.shape
    row = np.empty(3 * LANES)
    for block in range((points + LANES - 1) // LANES):
        first = block * LANES
        used = min(LANES, points - first)
        ours, summary = rows(members, block, count * MEMBER), rows(summaries, block, SUMMARY)
        log_unit = rows(terms, block, TERM_BLOCK)[LOG_UNIT : LOG_UNIT + LANES]
        _load(mean, given, by_variance, ours, first, used)
        _choose_unit(ours, count, row, declined[first : first + used])
        for p in range(LANES):
            unit = row[p]
            # One row for each degree from -1 to 2: `write` multiplies by the row of the measure's degree.
            summary[UNIT + p] = 1.0 / unit
            summary[UNIT + LANES + p] = 1.0
            summary[UNIT + 2 * LANES + p] = unit
            summary[UNIT + 3 * LANES + p] = unit * unit
            log_unit[p] = row[LANES + p]
        _standardise(ours, count, weights, by_variance, summary)
        _moments(ours, count, weights, by_variance, summary)
        _nearness(ours, count, weights, summary, row)
        for p in range(used):
            declined[first + p] = declined[first + p] or 0.0 < row[p] < FAINT or 0.0 < row[LANES + p] < FAINT


@inlined
def _load(mean: Floats, given: Floats, by_variance: bool, members: Floats, first: int, used: int) -> None:
    """Means relative to the first member's, scales, and what was given; unused lanes hold harmless members."""
    for i in range(mean.shape[0]):
        member = rows(members, i, MEMBER)
        for p in range(used):
            # Subtracted first, before anything is scaled or squared: an offset that all share costs no digits.
            member[OFFSET + p] = mean[i, first + p] - mean[0, first + p]
            member[GIVEN + p] = given[i, first + p]
        for p in range(used, LANES):
            member[OFFSET + p], member[GIVEN + p] = 0.0, 1.0
        for p in range(LANES):
            member[SCALE + p] = math.sqrt(member[GIVEN + p]) if by_variance else member[GIVEN + p]


@inlined
def _choose_unit(members: Floats, count: int, row: Floats, declined: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
    """The power of two above each point's size and its log; points whose size no kernel should try are declined."""
    for p in range(LANES):
        row[p], row[LANES + p], row[2 * LANES + p] = 0.0, math.inf, 0.0
    for i in range(count):
        member = rows(members, i, MEMBER)
        for p in range(LANES):
            distance, scale = abs(member[OFFSET + p]), member[SCALE + p]
            row[p] = max(row[p], distance, scale)
            row[LANES + p] = min(row[LANES + p], scale)
            row[2 * LANES + p] += distance + scale  # NaN and infinity survive a sum, not a maximum
    for p in range(LANES):
        size, narrowest, total = row[p], row[LANES + p], row[2 * LANES + p]
        usable = total < math.inf and SMALLEST < size < LARGEST and narrowest > NARROWEST * size
        if not usable:
            for i in range(count):
                member = rows(members, i, MEMBER)
                member[OFFSET + p], member[SCALE + p], member[GIVEN + p] = 0.0, 1.0, 1.0
        if p < len(declined):
            declined[p] = not usable
        row[p], row[LANES + p] = power_of_two(size if usable else 1.0)


@inlined
def _standardise(members: Floats, count: int, weights: Floats, by_variance: bool, summary: Floats) -> None:
    """Divide by the unit and centre."""
    for i in range(count):
        member = rows(members, i, MEMBER)
        for p in range(LANES):
            # A power of two: these products are exact.
            inverse = summary[UNIT + p]
            member[OFFSET + p] *= inverse
            member[SCALE + p] *= inverse
            member[GIVEN + p] *= inverse * inverse if by_variance else inverse
    _centre(members[OFFSET:], count, weights)


@inlined
def _centre(first: Floats, count: int, weights: Floats) -> None:
    """Subtract the weighted mean of a row, which begins with the first member's, from every member's.

    Twice: the second time removes what the first one rounded.
    """
    shift = np.empty(LANES)
    for _ in range(2):
        shift[:] = 0.0
        for i in range(count):
            member = first[i * MEMBER : i * MEMBER + LANES]
            for p in range(LANES):
                shift[p] += weights[i] * member[p]
        for i in range(count):
            member = first[i * MEMBER : i * MEMBER + LANES]
            for p in range(LANES):
                member[p] -= shift[p]


@inlined
def _moments(members: Floats, count: int, weights: Floats, by_variance: bool, summary: Floats) -> None:
    """The variance of the means, the mean variance, each member's deviation from it, and the two surrogates' scales."""
    zeroth = members[GIVEN : GIVEN + LANES].copy()
    for p in range(LANES):
        summary[SPREAD + p] = summary[VARIANCE + p] = 0.0
    for i in range(count):
        member, weight = rows(members, i, MEMBER), weights[i]
        for p in range(LANES):
            offset, given = member[OFFSET + p], member[GIVEN + p]
            summary[SPREAD + p] += weight * offset * offset
            summary[VARIANCE + p] += weight * (given if by_variance else given * given)
            # The difference of two squares, factored: nearly equal scales have an exact difference.
            member[DEVIATION + p] = (given - zeroth[p]) * (1.0 if by_variance else given + zeroth[p])
    _centre(members[DEVIATION:], count, weights)
    for p in range(LANES):
        summary[MATCHED_VARIANCE + p] = summary[VARIANCE + p] + summary[SPREAD + p]
        summary[MATCHED_SCALE + p] = math.sqrt(summary[MATCHED_VARIANCE + p])
        summary[POOLED_SCALE + p] = math.sqrt(summary[VARIANCE + p])


@inlined
def _nearness(members: Floats, count: int, weights: Floats, summary: Floats, far: Floats) -> None:
    """One where all members are near the surrogate, zero elsewhere; `far` is the weight of those that are not."""
    for p in range(2 * LANES):
        far[p] = 0.0
    for i in range(count):
        member, weight = rows(members, i, MEMBER), weights[i]
        for p in range(LANES):
            offset, deviation = abs(member[OFFSET + p]), member[DEVIATION + p]
            away = abs(deviation - summary[SPREAD + p]) <= NEAR_RATIO * summary[MATCHED_VARIANCE + p]
            near = offset <= NEAR_OFFSET * summary[MATCHED_SCALE + p] and away
            far[p] += 0.0 if near else weight
            away = abs(deviation) <= NEAR_RATIO * summary[VARIANCE + p]
            near = offset <= NEAR_OFFSET * summary[POOLED_SCALE + p] and away
            far[LANES + p] += 0.0 if near else weight
    for p in range(LANES):
        summary[NEAR_MATCHED + p] = 0.0 if far[p] > 0.0 else 1.0
        summary[NEAR_POOLED + p] = 0.0 if far[LANES + p] > 0.0 else 1.0


Integers = np.ndarray[Any, np.dtype[np.int64]]


@intrinsic
def _pointer(_context: Any, _address: Any) -> Any:
    """An address as a pointer: measures are separate arrays, and a kernel takes any number of them."""
    return types.voidptr(types.int64), lambda _, builder, __, args: builder.inttoptr(args[0], cgutils.voidptr_t)


@kernel
def write(
    terms: Floats,
    summaries: Floats,
    start: Integers,
    row: Integers,
    factor: Floats,
    degree: Integers,
    excess: np.ndarray[Any, np.dtype[np.bool_]],
    addresses: Integers,
    single: bool,
    points: int,
) -> None:
    """Write every measure of a `Program` at so many points.

    Args:
        terms: flat.
        summaries: flat.
        start: as in `Program`.
        row: as in `Program`.
        factor: as in `Program`.
        degree: as in `Program`.
        excess: as in `Program`.
        addresses: where each measure's values go.
        single: whether they are float32.
        points: how many.
    """
    value = np.empty(LANES)
    for measure in range(len(addresses)):
        # Two views of the same address, of which one is used: compiled code cannot choose a type at run time.
        double_out = carray(_pointer(addresses[measure]), points, np.float64)
        single_out = carray(_pointer(addresses[measure]), points, np.float32)
        unit = UNIT + (degree[measure] + 1) * LANES
        for block in range(len(terms) // TERM_BLOCK):
            power = rows(summaries, block, SUMMARY)[unit : unit + LANES]
            for p in range(LANES):
                value[p] = 0.0
            for entry in range(start[measure], start[measure + 1]):
                term, weight = rows(rows(terms, block, TERM_BLOCK), row[entry], LANES), factor[entry]
                for p in range(LANES):
                    value[p] += weight * term[p]
            for p in range(LANES):
                value[p] *= power[p]
            if excess[measure]:
                for p in range(LANES):
                    value[p] = max(value[p], 0.0)
            if single:
                into = single_out[block * LANES : (block + 1) * LANES]
                for p in range(len(into)):
                    into[p] = value[p]
            else:
                for p in range(min(LANES, points - block * LANES)):
                    double_out[block * LANES + p] = value[p]

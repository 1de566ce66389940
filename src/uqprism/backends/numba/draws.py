"""The kernel for members known by draws: slices of points over threads, one sort of each point, then one walk along it.

NumPy sorts: its sorts use vector registers. Where all draws count alike, shares are counts and their sums whole numbers, and a
draw costs the same for any number of members; otherwise each draw takes one pass over the members' shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.backends.draws import draws_of, exactness
from uqprism.backends.fits import FAR, FITS, Fits
from uqprism.backends.numba.base import LANES, SUMMARY, TERM, TERM_BLOCK, UNIT, Floats, inlined, kernel, reduction
from uqprism.backends.numba.closed_forms import INVERSE_SQRT_PI, crps_distance
from uqprism.backends.numba.points import write
from uqprism.backends.numba.special import SQRT_2_PI, mean_gap, power_of_two
from uqprism.backends.program import Program
from uqprism.backends.reference import Computed
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import require_variance
from uqprism.measures import Measure
from uqprism.support.parallel import threads

Integers = np.ndarray[Any, np.dtype[np.int64]]

SLICE = 2**17  # draws of one slice: what stays in a cache, with the order and what else is of that size
WORTH = 2**15  # draws for which a thread is worth its start
NARROWEST = 1e-300  # the range of draws whose inverse is still a number

C_BAYES, C_BAYES_MATCHED, C_BAYES_POOLED = (TERM[f"crps.bayes.{name}"] for name in ("members", "matched", "pooled"))
C_PAIRS, C_BETWEEN = TERM["crps.excess.members.members"], TERM["crps.excess.matched.pooled"]
C_MATCHED, C_POOLED, C_MATCHED_MIXTURE, C_POOLED_MIXTURE = (
    TERM[f"crps.excess.{name}"] for name in ("matched.members", "pooled.members", "matched.mixture", "pooled.mixture")
)
S_BAYES, S_BAYES_MATCHED, S_EXCESS = (
    TERM[f"squared_error.{name}"] for name in ("bayes.members", "bayes.matched", "excess.members.matched")
)


@reduction
def _moments(draws: Floats, mass: Floats, unit: float) -> tuple[float, float]:
    """The mean less the first draw, and the variance, in units; the masses sum to one."""
    first, mean, rest, square = draws[0], 0.0, 0.0, 0.0
    for k in range(len(draws)):
        mean += mass[k] * ((draws[k] - first) / unit)
    for k in range(len(draws)):
        rest += mass[k] * ((draws[k] - first) / unit - mean)
    mean += rest
    for k in range(len(draws)):
        gap = (draws[k] - first) / unit - mean
        square += mass[k] * (gap * gap)
    return mean, square


@reduction
def _to_gaussian(draws: Floats, mass: Floats, centre: float, unit: float, scale: float, room: Floats, fits: Fits) -> float:
    """The mean distance of the draws from a Gaussian about zero of this scale, in units; `centre` is added to each."""
    far = math.sqrt(FAR)
    for k in range(len(draws)):
        t = ((draws[k] - draws[0]) / unit + centre) / scale
        above, below = mean_gap(t * t, fits)
        near = above / below
        room[k] = mass[k] * (near if abs(t) < far else abs(t) - SQRT_2_PI)
    total = 0.0
    for k in range(len(draws)):
        total += room[k]
    return scale * (total + SQRT_2_PI)


@reduction
def _spread(shares: Floats, weights: Floats, shifts: Floats, length: float) -> tuple[float, float]:
    """The variance of the members' shares and the mean of share (1 - share); adds to the integrals of the shares' differences."""
    base, mean = shares[0], 0.0
    for i in range(len(shares)):
        mean += weights[i] * (shares[i] - base)
    variance = bayes = 0.0
    for i in range(len(shares)):
        gap = shares[i] - base
        shifts[i] -= length * gap
        variance += weights[i] * ((gap - mean) * (gap - mean))
        bayes += weights[i] * (shares[i] * (1.0 - shares[i]))
    return variance, bayes


@reduction
def _mean_shift(draws: Floats, others: Floats, unit: float) -> float:
    """The mean difference of draws that are sorted alike, in units."""
    total = 0.0
    for k in range(len(draws)):
        total += (draws[k] - others[k]) / unit
    return total / len(draws)


@inlined
def _counted(
    draws: Floats, order: Integers, owner: Integers, unit: float, counts: Integers, rows: Floats, shifts: Floats
) -> tuple[float, float]:
    """The mean of the members' entropies and their mean distance to the mixture, where all draws count alike."""
    members, each = rows.shape
    counts[:] = 0
    squares = np.int64(0)
    bayes = between = 0.0
    last = draws[order[0]]
    for k in range(len(order)):
        draw, i = draws[order[k]], owner[order[k]]
        length = (draw - last) / unit
        # With c_i draws of member i and k of all so far: sums of c_i (n - c_i) and of (M c_i - k)^2 / M.
        bayes += length * float(each * k - squares)
        between += length * float(members * squares - k * k)
        rows[i, counts[i]] = draw
        squares += 2 * counts[i] + 1
        counts[i] += 1
        last = draw
    for i in range(members):
        shifts[i] = _mean_shift(rows[i], rows[0], unit)
    share = 1.0 / (float(members) * float(each) * float(each))
    return bayes * share, between * share / members


@inlined
def _weighed(
    draws: Floats,
    order: Integers,
    owner: Integers,
    mass: Floats,
    unit: float,
    weights: Floats,
    totals: Floats,
    shares: Floats,
    sums: Floats,
    shifts: Floats,
) -> tuple[float, float]:
    """The same with weights of members and of draws."""
    totals[:], sums[:], shares[:], shifts[:] = 0.0, 0.0, 0.0, 0.0
    for k in range(len(order)):
        totals[owner[order[k]]] += mass[order[k]]
    bayes = between = 0.0
    last = draws[order[0]]
    for k in range(len(order)):
        draw, i = draws[order[k]], owner[order[k]]
        if draw > last:
            length = (draw - last) / unit
            variance, entropy = _spread(shares, weights, shifts, length)
            bayes += length * entropy
            between += length * variance
        sums[i] += mass[order[k]]
        shares[i] = sums[i] / totals[i]  # exactly one after the last, since both sums are in this order
        last = draw
    return bayes, between


@kernel
def sums(
    draws: Floats,
    order: Integers,
    owner: Integers,
    mass: Floats,
    weights: Floats,
    alike: bool,
    surrogates: bool,
    summaries: Floats,
    terms: Floats,
    fits: Fits,
) -> None:
    """Fill the terms of CRPS and squared error, and the powers of the unit.

    Args:
        draws: (points, draws of all members), one member after another, as many of each.
        order: that sorts them, of the same shape.
        owner: (draws,), the member of each.
        mass: (points, draws), the weights within each member, or of one row for all points.
        weights: (members,), all positive.
        alike: whether all draws have one weight, and all members.
        surrogates: whether the terms between draws and surrogates are needed.
        summaries: out, flat; only the powers of the unit are written.
        terms: out, flat.
        fits: coefficients.
    """
    points, count = draws.shape
    members = len(weights)
    each = count // members
    counts, totals, shares, sums, shifts = (
        np.empty(members, np.int64),
        np.empty(members),
        np.empty(members),
        np.empty(members),
        np.empty(members),
    )
    rows, joint, room = np.empty((members, each)), np.empty(count), np.empty(count)
    for p in range(points):
        x, by, own = draws[p], order[p], mass[p if len(mass) > 1 else 0]
        at, into = (p // LANES) * TERM_BLOCK + p % LANES, (p // LANES) * SUMMARY + UNIT + p % LANES
        extent = x[by[count - 1]] - x[by[0]]
        unit = power_of_two(extent if extent > NARROWEST else NARROWEST)[0] if extent > 0.0 else 1.0
        summaries[into], summaries[into + LANES] = 1.0 / unit, 1.0
        summaries[into + 2 * LANES], summaries[into + 3 * LANES] = unit, unit * unit
        if alike:
            bayes, between = _counted(x, by, owner, unit, counts, rows, shifts)
        else:
            bayes, between = _weighed(x, by, owner, own, unit, weights, totals, shares, sums, shifts)
        if not extent < np.inf:
            bayes = between = np.nan
        variance = mean = spread = 0.0
        for i in range(members):
            part = slice(i * each, (i + 1) * each)
            variance += weights[i] * _moments(x[part], own[part], unit)[1]
            mean += weights[i] * shifts[i]
        for i in range(members):
            spread += weights[i] * ((shifts[i] - mean) * (shifts[i] - mean))
        terms[at + C_BAYES], terms[at + C_PAIRS] = bayes, 2.0 * between
        terms[at + S_BAYES], terms[at + S_BAYES_MATCHED], terms[at + S_EXCESS] = variance, variance + spread, spread
        if surrogates:
            matched, pooled = math.sqrt(variance + spread), math.sqrt(variance)
            terms[at + C_BAYES_MATCHED], terms[at + C_BAYES_POOLED] = matched * INVERSE_SQRT_PI, pooled * INVERSE_SQRT_PI
            terms[at + C_BETWEEN] = crps_distance(0.0, matched, pooled, spread, 1.0, fits)
            for k in range(count):
                joint[k] = weights[owner[k]] * own[k]
            centre = -_moments(x, joint, unit)[0]
            mixture = bayes + between
            far = _to_gaussian(x, joint, centre, unit, matched, room, fits) - matched * INVERSE_SQRT_PI - mixture
            terms[at + C_MATCHED_MIXTURE] = max(far, 0.0)
            terms[at + C_MATCHED] = max(far, 0.0) + between
            far = _to_gaussian(x, joint, centre, unit, pooled, room, fits) - pooled * INVERSE_SQRT_PI - mixture
            terms[at + C_POOLED_MIXTURE] = max(far, 0.0)
            terms[at + C_POOLED] = max(far, 0.0) + between


@dataclass(frozen=True)
class Sample:
    """Draws (draws, members, points), their weights of that shape, and those of the members, all positive."""

    draws: Floats
    mass: Floats
    weights: Floats

    def at(self, points: slice) -> tuple[Floats, Floats, bool]:
        """At some points: draws and masses (points, members x draws), and whether all count alike; one row of masses if so."""
        draws, mass = (np.transpose(x[:, :, points], (2, 1, 0)) for x in (self.draws, self.mass))
        count = draws.shape[1] * draws.shape[2]
        wide = np.ascontiguousarray(draws, np.float64).reshape(-1, count)
        if (mass == mass[:1, :1, :1]).all():
            return wide, np.full((1, count), 1.0 / draws.shape[2]), bool((self.weights == self.weights[0]).all())
        mass = np.ascontiguousarray(mass, np.float64)
        return wide, (mass / mass.sum(axis=2, keepdims=True)).reshape(-1, count), False


def compute(ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
    """The measures, for points along one axis, of arrays on a processor."""
    counted = ensemble.counted()
    members, program = draws_of(counted), Program.of(measures)
    weights = np.ones(counted.n_members) if counted.weights is None else to_numpy(counted.weights).astype(np.float64)
    sample = Sample(to_numpy(members.draws), to_numpy(members.weights), weights / weights.sum())
    dtype: Any = np.float32 if sample.draws.dtype == np.float32 else np.float64
    out = [np.empty(counted.n_points, dtype) for _ in measures]
    _run(sample, program, out)
    names = [measure.name for measure in measures]
    with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
        values = [from_numpy(x, members.draws) for x in out]
    return Computed(dict(zip(names, values, strict=True)), exactness(counted, measures))


def _run(sample: Sample, program: Program, out: Sequence[Floats]) -> None:
    """Fill `out`, an array (points,) for each measure."""
    each, members, points = sample.draws.shape
    workers = max(1, min(threads(), points * each * members // WORTH))
    step = max(1, min(SLICE // (each * members), -(-points // workers)))
    owner = np.repeat(np.arange(members), each)

    def one(first: int) -> None:
        at = slice(first, min(points, first + step))
        _slice(sample, at, owner, program, [x[at] for x in out])

    starts = range(0, points, step)
    if len(starts) <= 1:
        for first in starts:
            one(first)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, starts))


def _slice(sample: Sample, at: slice, owner: Integers, program: Program, out: Sequence[Floats]) -> None:
    """All stages for a few points."""
    draws, mass, alike = sample.at(at)
    blocks = -(-len(draws) // LANES)
    summaries, terms = np.zeros(blocks * SUMMARY), np.zeros(blocks * TERM_BLOCK)
    surrogates = program.needs("crps", surrogates=True)
    order = draws.argsort(axis=1)
    sums(draws, order, owner, mass, sample.weights, alike, surrogates, summaries, terms, FITS)
    for name, row in (("matched", S_BAYES_MATCHED), ("pooled", S_BAYES)):
        if any(term.startswith("crps.") and name in term for term in program.terms):
            require_variance(terms.reshape(blocks, -1)[:, row : row + LANES].reshape(-1)[: len(draws)], name)
    addresses = np.array([x.ctypes.data for x in out], dtype=np.int64)
    single = out[0].dtype == np.float32
    write(
        terms,
        summaries,
        program.start,
        program.row,
        program.factor,
        program.degree,
        program.excess,
        addresses,
        single,
        len(draws),
    )

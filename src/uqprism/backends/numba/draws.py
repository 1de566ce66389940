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
from uqprism.backends.fits import FITS, Fits
from uqprism.backends.numba.base import LANES, SUMMARY, TERM, TERM_BLOCK, UNIT, Floats, inlined, kernel, reduction
from uqprism.backends.numba.closed_forms import INVERSE_SQRT_PI, SQRT_2, crps_distance
from uqprism.backends.numba.points import write
from uqprism.backends.numba.special import exp, power_of_two, upper_tail_ratio
from uqprism.backends.program import Program
from uqprism.backends.reference import Computed
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.approximations import require_variance
from uqprism.families.draws import SHORT
from uqprism.measures import Measure
from uqprism.support.parallel import threads

Integers = np.ndarray[Any, np.dtype[np.int64]]

SLICE = 2**17  # draws of one slice: what stays in a cache, with the order and what else is of that size
WORTH = 2**15  # draws for which a thread is worth its start
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
WIDE = -1.0  # in the place of an integral, which is never negative, that takes primitives
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


@inlined
def _normal(z: float, fits: Fits) -> tuple[float, float]:
    """The probability of normal values up to z, and the density there."""
    bell = exp(-0.5 * z * z, fits)
    tail = bell * upper_tail_ratio(abs(z), fits)
    return tail if z < 0.0 else 1.0 - tail, bell * DENSITY


@reduction
def _short_steps(left: Floats, right: Floats, shares: Floats, inverse: float, out: Floats, fits: Fits) -> None:
    """The integrals of all steps that are short, as in `families.draws`; written in the loop, where they become vectors."""
    for k in range(len(out)):
        length, middle = (right[k] - left[k]) * inverse, 0.5 * (right[k] + left[k]) * inverse
        share = 1.0 - shares[k] if middle > 0.0 else shares[k]
        short = length * max(1.0, abs(middle)) < SHORT
        m, w = -abs(middle) if short else 0.0, 0.5 * length
        m2, w2 = m * m, w * w
        bell = exp(-0.5 * m2, fits)
        gap, density = share - bell * upper_tail_ratio(-m, fits), bell * DENSITY
        c2, c3, c4 = -0.5 * m, (m2 - 1.0) * (1.0 / 6.0), m * (3.0 - m2) * (1.0 / 24.0)
        c5, c6 = (m2 * (m2 - 6.0) + 3.0) * (1.0 / 120.0), m * (m2 * (10.0 - m2) - 15.0) * (1.0 / 720.0)
        c7 = (m2 * (m2 * (m2 - 15.0) + 45.0) - 15.0) * (1.0 / 5040.0)
        linear = w2 * (c2 * (1.0 / 3.0) + w2 * (c4 * 0.2 + w2 * c6 * (1.0 / 7.0)))
        q4, q6, q8 = c2 * c2 + 2.0 * c3, c3 * c3 + 2.0 * (c5 + c2 * c4), c4 * c4 + 2.0 * (c7 + c2 * c6 + c3 * c5)
        square = w2 * (1.0 / 3.0 + w2 * (q4 * 0.2 + w2 * (q6 * (1.0 / 7.0) + w2 * q8 * (1.0 / 9.0))))
        series = 2.0 * w * (gap * gap - 2.0 * gap * density * linear + density * density * square)
        out[k] = series if short else WIDE


@inlined
def _primitives(z: float, fits: Fits) -> tuple[float, float]:
    """The integrals of the normal distribution function and of its square up to z."""
    p, density = _normal(z, fits)
    return z * p + density, p * (z * p + 2.0 * density) - _normal(SQRT_2 * z, fits)[0] * INVERSE_SQRT_PI


@reduction
def _from_steps(places: Floats, shares: Floats, scale: float, room: Floats, fits: Fits) -> float:
    """The distance of a Gaussian about zero from sorted draws with these shares between them, see `families.draws.from_steps`."""
    last = len(places) - 1
    _short_steps(places[:last], places[1:], shares[:last], 1.0 / scale, room[:last], fits)
    total = _primitives(places[0] / scale, fits)[1] + _primitives(-places[last] / scale, fits)[1]
    for k in range(last):
        if room[k] == WIDE:
            low, high, share = places[k] / scale, places[k + 1] / scale, shares[k]
            if low + high > 0.0:
                low, high, share = -high, -low, 1.0 - share
            (one, two), (three, four) = _primitives(low, fits), _primitives(high, fits)
            room[k] = share * share * (high - low) - 2.0 * share * (three - one) + (four - two)
    for k in range(last):
        total += room[k]
    return scale * total


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


@inlined
def _places(
    draws: Floats,
    order: Integers,
    owner: Integers,
    mass: Floats,
    weights: Floats,
    unit: float,
    alike: bool,
    places: Floats,
    mixture: Floats,
) -> None:
    """Fill the sorted draws about the mixture's mean, in units, and the mixture's share up to each."""
    total = mean = 0.0
    for k in range(len(order)):
        share = weights[owner[order[k]]] * mass[order[k]]
        places[k] = (draws[order[k]] - draws[order[0]]) / unit
        total += share
        mean += share * places[k]
        mixture[k] = total
    for k in range(len(order)):
        places[k] -= mean / total
        mixture[k] = float(k + 1) / len(order) if alike else mixture[k] / total


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
    rows, room, places, mixture = np.empty((members, each)), np.empty(count), np.empty(count), np.empty(count)
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
            _places(x, by, owner, own, weights, unit, alike, places, mixture)
            far = _from_steps(places, mixture, matched, room, fits)
            terms[at + C_MATCHED_MIXTURE], terms[at + C_MATCHED] = far, far + between
            far = _from_steps(places, mixture, pooled, room, fits)
            terms[at + C_POOLED_MIXTURE], terms[at + C_POOLED] = far, far + between


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

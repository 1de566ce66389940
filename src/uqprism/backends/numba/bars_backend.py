"""The fused kernel for bars and quantiles: slices of points over threads, and from sums to measures."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.backends.bars import SUM, BarRisks, numbers_of
from uqprism.backends.fits import FITS
from uqprism.backends.numba.bars import bars, load
from uqprism.backends.numba.bars_work import RULES
from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, exactness_of
from uqprism.backends.rows import Wanted
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.histogram import Histogram
from uqprism.families.quadrature import TOLERANCE
from uqprism.families.tails import Tail
from uqprism.measures import Measure
from uqprism.support.parallel import threads

Floats = np.ndarray[Any, Any]
SLICE_BYTES = 2**22  # of probabilities in one slice: what stays in a cache
MOST_POINTS = 2**12  # in one slice
LINE = 16  # points: where they are neighbours in memory, whole cache lines are read


class BarsBackend:
    """All measures of the paper of members given by bars or quantiles, on a processor."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        members = cast("Histogram", ensemble.members)
        wanted = Wanted.by(measures, Histogram)
        if wanted.quadratic or wanted.log:
            members.require_density()
        sums, declined = run(ensemble, wanted)
        like = members.probabilities
        dtype = to_numpy(like[:1]).dtype
        risks, values, exactness = BarRisks(sums.T), {}, {}
        for measure in measures:
            with np.errstate(invalid="ignore"):
                value, closed = risks.measure(measure)
            with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
                values[measure.name] = from_numpy(value.astype(dtype, copy=False), like)
            exactness[measure.name] = exactness_of([] if closed else [TOLERANCE], "float64", dtype)
        names = [measure.name for measure in measures]
        return Computed(values, exactness, [(declined, names)] if len(declined) else [])


# Over points ---------------------------------------------------------------------------------------------------------------


def run(ensemble: EnsemblePrediction, wanted: Wanted) -> tuple[Floats, Floats]:
    """The sums of all points, (points, len(SUM)), and the points that were declined."""
    members = cast("Histogram", ensemble.members)
    count, points = members.batch_shape
    weights = np.full(count, 1.0 / count)
    if ensemble.weights is not None:
        weights = to_numpy(ensemble.weights).astype(np.float64)
        weights = weights / weights.sum()
    ends, mass = to_numpy(members.ends), to_numpy(members.probabilities)
    scales = np.stack([to_numpy(x) for x in members.scales])
    tailed = members.outer is not None
    below, above = (numbers_of(tail, logs=wanted.log) for tail in members.outer or (Tail("exponential"),) * 2)
    flags = (wanted.crps, wanted.quadratic, wanted.log, wanted.surrogates)
    out, declined = np.empty((points, len(SUM))), np.zeros(points, dtype=np.bool_)
    fitting = max(LINE, SLICE_BYTES // (8 * mass.shape[0] * count) // LINE * LINE)
    step = min(MOST_POINTS, fitting, max(1, -(-points // threads())))

    def one(first: int) -> None:
        at = slice(first, min(points, first + step))
        ends_at, mass_at, scales_at = (_tile(x, at) for x in (narrowed(ends), mass, scales))
        bars(ends_at, mass_at, scales_at, weights, tailed, (below, above), flags, RULES, out[at], declined[at], FITS)

    starts = range(0, points, step)
    if len(starts) <= 1:
        for first in starts:
            one(first)
    else:
        with ThreadPoolExecutor(threads()) as pool:
            list(pool.map(one, starts))
    return out, np.flatnonzero(declined)


def narrowed(x: Floats) -> Floats:
    """One entry along axes on which no element depends."""
    return x[tuple(slice(0, 1) if step == 0 else slice(None) for step in x.strides)]


def _tile(x: Floats, at: slice) -> Floats:
    """(bars, members, points) at some points as (points, members, bars), in double precision."""
    part = x[..., at] if x.shape[2] > 1 else x
    into = np.empty(part.shape[::-1])
    load(part, into, abs(part.strides[2]) <= abs(part.strides[0]))
    return into

"""The fused kernel for bars and quantiles: slices of points over threads, and from sums to measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, cast

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.backends.fits import FITS
from uqprism.backends.numba.bars import bars, load
from uqprism.backends.numba.bars_work import RULES, SUM, TailNumbers
from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, exactness_of
from uqprism.backends.rows import SUMS, SURROGATES, Wanted
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.gaussian import Surrogate
from uqprism.families.histogram import Histogram
from uqprism.families.quadrature import TOLERANCE
from uqprism.families.tails import Tail
from uqprism.measures import Measure
from uqprism.measures.risks import Primitive, recipe
from uqprism.rules import Rule, SquaredError
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
        risks, values, exactness = _Risks(sums), {}, {}
        for measure in measures:
            value, closed = risks.measure(measure)
            with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
                values[measure.name] = from_numpy(value.astype(dtype, copy=False), like)
            exactness[measure.name] = exactness_of([] if closed else [TOLERANCE], "float64", dtype)
        names = [measure.name for measure in measures]
        return Computed(values, exactness, [(declined, names)] if len(declined) else [])


class _Risks:
    """Every risk that follows from the sums of all points."""

    def __init__(self, sums: Floats) -> None:
        self._sums = sums
        variance, spread = (sums[:, SUM[name]] for name in ("variance", "spread"))
        self._variance, self._spread, zero = variance, spread, np.zeros_like(variance)
        self._gaussians = {
            "matched": Surrogate(mean=zero, variance=variance + spread, deviation=spread, missing=zero),
            "pooled": Surrogate(mean=zero, variance=variance, deviation=zero, missing=spread),
        }

    def measure(self, measure: Measure) -> tuple[Floats, bool]:
        """A measure, and whether it is a finite sum."""
        rule, roles = measure.resolved(), [role for role in (measure.prediction, measure.truth) if role is not None]
        value: Floats = np.zeros(len(self._sums))
        closed = True
        with np.errstate(invalid="ignore"):
            for primitive, factor in recipe(rule, Histogram, measure.risk, *roles).items():
                part, exact = self._risk(rule, primitive)
                value, closed = value + factor * part, closed and exact
        return np.maximum(value, 0.0) if measure.risk == "excess" else value, closed

    def _risk(self, rule: Rule, primitive: Primitive) -> tuple[Floats, bool]:
        rows = None if isinstance(rule, SquaredError) else SUMS.get((rule.name, primitive))
        if rows is not None:
            exact = not any(name in row for row in rows for name in SURROGATES)
            value: Floats = sum(
                (factor * self._sums[:, SUM[row]] for row, factor in rows.items()), start=np.zeros(len(self._sums))
            )
            return value, exact
        return self._squared_error(*primitive) if isinstance(rule, SquaredError) else self._gaussian(rule, *primitive), True

    def _squared_error(self, risk: str, *roles: str) -> Floats:
        if risk == "bayes":
            return self._variance + self._spread if roles == ("matched",) else self._variance
        return (2.0 if roles == ("members", "members") else 1.0) * self._spread

    def _gaussian(self, rule: Rule, risk: str, *roles: str) -> Floats:
        """Closed forms of matched and pooled."""
        prediction, truth = self._gaussians[roles[0]], self._gaussians[roles[-1]]
        if risk == "bayes":
            return rule.entropy(truth)
        return (rule.divergence if risk == "excess" else rule.expected_score)(prediction=prediction, truth=truth)


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


@lru_cache(maxsize=64)
def numbers_of(tail: Tail, *, logs: bool) -> TailNumbers:
    """A tail as kernels take it; sums of tails of several scales are smooth over shorter stretches than their logarithms."""
    above = tail._above if tail.is_gaussian else 1.0
    step = (0.6 if logs else 1.0) if tail.is_gaussian else (3.0 if logs else 5.0)
    return TailNumbers(
        tail.is_gaussian,
        float(tail.start),
        above,
        math.log(above),
        tail.mean,
        tail.square,
        tail.squared_survival,
        tail.squared_density,
        tail.entropy,
        tail.reach,
        step,
    )

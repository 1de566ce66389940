"""The fused kernel for bars and quantiles: slices of points over threads, and from sums to measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, cast

import numpy as np

from uqprism.arrays import from_numpy, to_numpy
from uqprism.backends.fits import FITS
from uqprism.backends.numba.bars import bars, load
from uqprism.backends.numba.bars_nodes import RULES, SUM, TailNumbers
from uqprism.backends.program import covers
from uqprism.backends.reference import Computed, exactness_of
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.gaussian import Surrogate
from uqprism.families.histogram import Histogram
from uqprism.families.quadrature import TOLERANCE
from uqprism.families.tails import Tail
from uqprism.measures import Measure
from uqprism.measures.risks import Primitive, recipe
from uqprism.rules import Log, Quadratic, Rule, SquaredError
from uqprism.support.parallel import threads

Floats = np.ndarray[Any, Any]
Sums = Callable[[str], Floats]

SLICE_BYTES = 2**22  # of probabilities in one slice: what stays in a cache
MOST_POINTS = 2**12  # in one slice
LINE = 16  # points: where they are neighbours in memory, whole cache lines are read
DENSE = (Log, Quadratic)  # rules that need a density


class BarsBackend:
    """All measures of the paper of members given by bars or quantiles, on a processor."""

    def covers(self, measure: Measure) -> bool:
        """True for the paper's rules and approximations."""
        return covers(measure)

    def compute(self, ensemble: EnsemblePrediction, measures: Sequence[Measure]) -> Computed:
        """The measures at all points but the declined."""
        ensemble = ensemble.counted()
        members = cast("Histogram", ensemble.members)
        rules = [measure.resolved() for measure in measures]
        if any(isinstance(rule, DENSE) for rule in rules):
            members.require_density()
        sums, declined = run(ensemble, wanted_by(measures))
        like = members.probabilities
        dtype = to_numpy(like[:1]).dtype
        terms, values, exactness = Terms(sums), {}, {}
        for measure, rule in zip(measures, rules, strict=True):
            value, closed = terms.measure(measure, rule)
            with np.errstate(over="ignore", under="ignore"):  # what a narrow result cannot hold becomes infinite or zero
                values[measure.name] = from_numpy(value.astype(dtype, copy=False), like)
            exactness[measure.name] = exactness_of([] if closed else [TOLERANCE], "float64", dtype)
        names = [measure.name for measure in measures]
        return Computed(values, exactness, [(declined, names)] if len(declined) else [])


def wanted_by(measures: Sequence[Measure]) -> tuple[bool, bool, bool, bool]:
    """Which sums measures need: of CRPS, the quadratic and the log rule, and those with matched or pooled."""
    names = {measure.resolved().name for measure in measures}
    surrogates = any(
        key in {"excess.matched", "excess.pooled"}
        for measure in measures
        for primitive in _recipe(measure)
        for key in _mixed(primitive)
    )
    return "crps" in names, "quadratic" in names, "log" in names, surrogates


@lru_cache(maxsize=4096)
def _recipe(measure: Measure) -> dict[Primitive, float]:
    roles = [role for role in (measure.prediction, measure.truth) if role is not None]
    return recipe(measure.resolved(), Histogram, measure.risk, *roles)


def _mixed(primitive: Primitive) -> list[str]:
    """The surrogates that an integral with the members or the mixture is over."""
    risk, *roles = primitive
    gaussians = [role for role in roles if role in {"matched", "pooled"}]
    return [f"excess.{role}" for role in gaussians] if risk != "bayes" and len(gaussians) < len(roles) else []


class Terms:
    """What the sums of all points give: every risk that `recipe` leaves to compute."""

    def __init__(self, sums: Floats) -> None:
        self._sums = sums
        variance, spread = self("variance"), self("spread")
        zero = np.zeros_like(variance)
        self._gaussians = {
            "matched": Surrogate(mean=zero, variance=variance + spread, deviation=spread, missing=zero),
            "pooled": Surrogate(mean=zero, variance=variance, deviation=zero, missing=spread),
        }

    def __call__(self, name: str) -> Floats:
        """The sums of this name, (points,)."""
        return self._sums[:, SUM[name]]

    def measure(self, measure: Measure, rule: Rule) -> tuple[Floats, bool]:
        """A measure, and whether it is a finite sum."""
        parts = _recipe(measure)
        value: Floats = np.zeros(len(self._sums))
        with np.errstate(invalid="ignore"):
            for primitive, factor in parts.items():
                value = value + factor * self._primitive(rule, *primitive)
        if measure.risk == "excess":
            value = np.maximum(value, 0.0)
        closed = isinstance(rule, SquaredError) or not any(_mixed(primitive) for primitive in parts)
        return value, closed

    def _primitive(self, rule: Rule, risk: str, *roles: str) -> Floats:
        if isinstance(rule, SquaredError):
            return self._squared_error(risk, *roles)
        gaussians = [self._gaussians[role] for role in roles if role in self._gaussians]
        if len(gaussians) == len(roles):  # closed forms of Gaussians
            if risk == "bayes":
                return rule.entropy(gaussians[0])
            prediction, truth = gaussians
            score = rule.divergence if risk == "excess" else rule.expected_score
            return score(prediction=prediction, truth=truth)
        if risk == "bayes":
            members = self._bayes_of_members(rule)
            return members + self(f"{rule.name}.excess.mixture.members") if roles == ("mixture",) else members
        if risk == "total":
            return self._quadratic_total(*roles)
        return self._log_excess(rule, *roles) if isinstance(rule, Log) else self._kernel_excess(rule, *roles)

    def _bayes_of_members(self, rule: Rule) -> Floats:
        if isinstance(rule, Log):
            return self("log.entropy") - self("log.excess.mixture.members")
        return self(f"{rule.name}.bayes.members")

    def _squared_error(self, risk: str, *roles: str) -> Floats:
        if risk == "bayes":
            return self("variance") + self("spread") if roles == ("matched",) else self("variance")
        return (2.0 if roles == ("members", "members") else 1.0) * self("spread")

    def _kernel_excess(self, rule: Rule, *roles: str) -> Floats:
        """Distances, which are symmetric; to the members it is as far as to the mixture, and from there on."""
        gaussian = next((role for role in roles if role in self._gaussians), None)
        inside = self(f"{rule.name}.excess.mixture.members") if "members" in roles else 0.0
        return inside if gaussian is None else self(f"{rule.name}.excess.{gaussian}.mixture") + inside

    def _quadratic_total(self, prediction: str, truth: str) -> Floats:
        """The squared norm of the prediction less twice its overlap with the truth."""
        bayes, excess = self("quadratic.bayes.members"), self("quadratic.excess.mixture.members")
        gaussian = next((role for role in (prediction, truth) if role in self._gaussians), None)
        if gaussian is None:
            return bayes + 2.0 * excess
        overlap = self(f"quadratic.overlap.{gaussian}.mixture")
        norm = -Quadratic().entropy(self._gaussians[gaussian]) if prediction == gaussian else -bayes
        return norm - 2.0 * overlap

    def _log_excess(self, rule: Rule, prediction: str, truth: str) -> Floats:
        into = self("log.excess.mixture.members")
        if prediction in self._gaussians:
            found = self("log.excess.matched.mixture")
            if prediction == "pooled":
                pair = self._gaussians["pooled"], self._gaussians["matched"]
                found = found + rule.divergence(prediction=pair[0], truth=pair[1])
            return found + into if truth == "members" else found
        if truth in self._gaussians:
            found = self(f"log.excess.mixture.{truth}")
            return found + self(f"log.weight.{truth}") if prediction == "members" else found
        return into if prediction == "mixture" else self("log.excess.members.mixture")


# Over points ---------------------------------------------------------------------------------------------------------------


def run(ensemble: EnsemblePrediction, wanted: tuple[bool, bool, bool, bool]) -> tuple[Floats, Floats]:
    """The sums of all points, (points, len(SUM)), and the points that were declined."""
    members = cast("Histogram", ensemble.members)
    count, points = members.batch_shape
    weights = np.full(count, 1.0 / count)
    if ensemble.weights is not None:
        weights = to_numpy(ensemble.weights).astype(np.float64)
        weights = weights / weights.sum()
    ends, mass = to_numpy(members.ends), to_numpy(members.probabilities)
    scales = np.stack([to_numpy(x) for x in members.scales])
    tails = None if members.outer is None else tuple(numbers_of(tail, logs=wanted[2]) for tail in members.outer)
    out, declined = np.empty((points, len(SUM))), np.zeros(points, dtype=np.bool_)
    fitting = max(LINE, SLICE_BYTES // (8 * mass.shape[0] * count) // LINE * LINE)
    step = min(MOST_POINTS, fitting, max(1, -(-points // threads())))

    def one(first: int) -> None:
        at = slice(first, min(points, first + step))
        own = [_tile(narrowed(ends), at), _tile(mass, at), _tile(scales, at)]
        bars(*own, weights, tails, wanted, RULES, out[at], declined[at], FITS)

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

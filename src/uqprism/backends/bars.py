"""Members given by bars or quantiles: the sums that kernels take of each point, and every measure that follows from them.

The sums are those of `rows`, in the units of y, with the entropy of the mixture and the moments of the members beside them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from uqprism.arrays import Array, namespace
from uqprism.backends.rows import ROWS, SUMS, SURROGATES
from uqprism.families.gaussian import Surrogate
from uqprism.families.histogram import Histogram
from uqprism.families.tails import Tail
from uqprism.measures import Measure
from uqprism.measures.risks import Primitive, recipe
from uqprism.rules import Rule, SquaredError

SUM = {name: place for place, name in enumerate((*ROWS, "log.bayes.mixture", "variance", "spread"))}
"""Where a point's sums are: the rows, and further ones that some of them are made from."""
COUNTS = (4, 6, 12)  # nodes of a stretch against a Gaussian
SHARES = (0.01, 0.16)  # of the longest stretch over which all is smooth, up to which the first two counts do
FAR = 9.5  # scales beyond which a Gaussian does not count
FAINT = 1e-290  # a density that is taken for zero but in its logarithm
CLOSE = 40.0  # nats by which another member may stay below the leading one and bend the log density still
SMALLEST, LARGEST = 1e-140, 1e140  # sizes whose squares neither over- nor underflow
AGREE = 1e-9  # of what members share: a smaller part that they do not share has lost its digits where edges are merged


class TailNumbers(NamedTuple):
    """A `families.tails.Tail` in numbers, and how far it reaches in its scales; a step keeps all integrands smooth."""

    gaussian: bool
    start: float
    above: float
    log_above: float
    mean: float
    square: float
    squared_survival: float
    squared_density: float
    entropy: float
    reach: float
    step: float


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


class BarRisks:
    """Every risk that follows from the sums (len(SUM), points)."""

    def __init__(self, sums: Array) -> None:
        self._sums, xp = sums, namespace(sums)
        variance, spread = (sums[SUM[name]] for name in ("variance", "spread"))
        self._variance, self._spread, zero = variance, spread, xp.zeros_like(variance)
        self._gaussians = {
            "matched": Surrogate(mean=zero, variance=variance + spread, deviation=spread, missing=zero),
            "pooled": Surrogate(mean=zero, variance=variance, deviation=zero, missing=spread),
        }

    def measure(self, measure: Measure) -> tuple[Array, bool]:
        """A measure, and whether it is a finite sum."""
        rule, roles = measure.resolved(), [role for role in (measure.prediction, measure.truth) if role is not None]
        xp, closed = namespace(self._sums), True
        value = xp.zeros_like(self._variance)
        for primitive, factor in recipe(rule, Histogram, measure.risk, *roles).items():
            part, exact = self._risk(rule, primitive)
            value, closed = value + factor * part, closed and exact
        return xp.clip(value, 0.0, None) if measure.risk == "excess" else value, closed

    def _risk(self, rule: Rule, primitive: Primitive) -> tuple[Array, bool]:
        rows = None if isinstance(rule, SquaredError) else SUMS.get((rule.name, primitive))
        if rows is not None:
            exact = not any(name in row for row in rows for name in SURROGATES)
            return sum((factor * self._sums[SUM[row]] for row, factor in rows.items()), start=0.0), exact
        return self._squared_error(*primitive) if isinstance(rule, SquaredError) else self._gaussian(rule, *primitive), True

    def _squared_error(self, risk: str, *roles: str) -> Array:
        if risk == "bayes":
            return self._variance + self._spread if roles == ("matched",) else self._variance
        return (2.0 if roles == ("members", "members") else 1.0) * self._spread

    def _gaussian(self, rule: Rule, risk: str, *roles: str) -> Array:
        """Closed forms of matched and pooled."""
        prediction, truth = self._gaussians[roles[0]], self._gaussians[roles[-1]]
        if risk == "bayes":
            return rule.entropy(truth)
        return (rule.divergence if risk == "excess" else rule.expected_score)(prediction=prediction, truth=truth)

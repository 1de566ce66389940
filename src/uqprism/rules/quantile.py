"""The quantile (pinball) score: a consistent scoring function for a quantile, turned into a proper rule."""

from __future__ import annotations

from uqprism.arrays import Array, constant, is_array, namespace
from uqprism.errors import InvalidValueError
from uqprism.families.base import Family
from uqprism.families.draws import Draws
from uqprism.families.quadrature import integrate
from uqprism.rules.base import Rule, at_least_zero, default_name, number, rules


@rules.register("quantile")
class Quantile(Rule):
    """The pinball loss of the predicted quantile; in the units of y, blind to all but that quantile.

    Args:
        level: which quantile, between 0 and 1; 0.5 is the median and half the absolute error.
        name: as in measure names; by default it includes levels other than the median.
    """

    degree = 1
    plain_name = "quantile score"
    cost = "the distance between a predicted quantile, by default the median, and what happens, weighted by the side it lies on"

    def __init__(self, level: float = 0.5, *, name: str | None = None) -> None:
        self.level = number("level", level)
        if not is_array(self.level) and not 0.0 < self.level < 1.0:
            raise InvalidValueError(f"level must lie strictly between 0 and 1, got {level}")
        self.name = name or default_name("quantile", self.level, 0.5)

    def score(self, distribution: Family, y: Array) -> Array:
        """level * (y - q) above the predicted quantile q, (1 - level) * (q - y) below."""
        q = distribution.quantile(self.level)
        xp = namespace(q)
        # One expression for both sides of q; `expected_score` is its mean.
        return 0.5 * xp.abs(y - q) + (0.5 - self.level) * (q - y)

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """The mean pinball loss of the prediction's quantile."""
        q = prediction.quantile(self.level)
        return 0.5 * truth.absolute_deviation(q) + (0.5 - self.level) * (q - truth.mean)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """The integral of the truth's density between the quantiles, weighted by the distance from the prediction's."""
        q, best = prediction.quantile(self.level), truth.quantile(self.level)
        if isinstance(truth, Draws) or truth.lattice is not None:
            # Without a density this is a difference of sums over draws or counts.
            gap = self.expected_score(prediction=prediction, truth=truth) - self.entropy(truth)
            return at_least_zero(gap)
        xp = namespace(q, best)
        low, high = constant(xp.minimum(q, best)), constant(xp.maximum(q, best))
        inside = integrate(lambda t: xp.abs(q - t) * truth.density(t), truth, between=(low, high))
        # The bounds carry no gradient; this term is zero and has the one of the truth's quantile.
        return inside + (best - constant(best)) * constant((best - q) * truth.density(best))

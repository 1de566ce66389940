"""The squared error of the mean."""

from __future__ import annotations

from uqprism.arrays import Array
from uqprism.families.base import Family
from uqprism.rules.base import Rule, rules


@rules.register("squared_error")
class SquaredError(Rule):
    """The squared distance of the outcome from the predicted mean; in squared units of y, blind to all but the mean."""

    name = "squared_error"
    degree = 2
    sees_only_mean = True
    plain_name = "squared error"
    cost = "the squared distance between the predicted mean and what happens; predicted variances do not count"

    def score(self, distribution: Family, y: Array) -> Array:
        """(y - mean)**2."""
        return (y - distribution.mean) ** 2

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """The squared difference of the means plus the variance of the truth."""
        return self.divergence(prediction=prediction, truth=truth) + truth.variance

    def entropy(self, truth: Family) -> Array:
        """The variance."""
        return truth.variance

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """The squared difference of the means."""
        return (prediction.mean - truth.mean) ** 2

"""The quadratic score: the Brier score for densities."""

from __future__ import annotations

import math

from uqprism.arrays import Array, namespace
from uqprism.families.base import Family
from uqprism.families.functionals import density_distance, overlap
from uqprism.rules.base import rules
from uqprism.rules.kernel import KernelRule


@rules.register("quadratic")
class Quadratic(KernelRule):
    """The integrated squared density less twice the density at the outcome; in inverse units of y, usually negative."""

    name = "quadratic"
    degree = -1
    entropy_cancels = True  # of a narrow truth both are about its squared density, with opposite signs
    may_be_negative = True
    plain_name = "quadratic score"
    cost = (
        "the integral of the squared density less twice the density at what happens, so that an outcome far outside costs no "
        "more than one outside"
    )
    distance = density_distance

    def gap(self, p: Family, q: Family) -> Array:
        """Minus twice the overlap of the densities."""
        return -2.0 * overlap(p, q)

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """E g(X, Y) - E g(X, X') / 2; infinite for a prediction whose density has no integrable square."""
        own = self.gap(prediction, prediction)
        value = self.gap(prediction, truth) - 0.5 * own
        xp = namespace(value)
        return xp.where(own == -math.inf, xp.full_like(value, math.inf), value)

    def gap_to(self, p: Family, y: Array) -> Array:
        """Minus twice the density at y."""
        return -2.0 * p.density(y)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """The integrated squared difference of the densities."""
        return density_distance(prediction, truth)

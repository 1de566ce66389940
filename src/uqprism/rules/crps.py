"""The continuous ranked probability score."""

from __future__ import annotations

from uqprism.arrays import Array
from uqprism.families.base import Family
from uqprism.families.functionals import absolute_gap, cramer_distance
from uqprism.rules.base import rules
from uqprism.rules.kernel import KernelRule


@rules.register("crps")
class CRPS(KernelRule):
    """The mean distance from the outcome less half the mean distance between two draws; in the units of y."""

    name = "crps"
    degree = 1
    plain_name = "CRPS"
    cost = (
        "the continuous ranked probability score, a distance between the whole predicted distribution and what happens; of a "
        "prediction that is a single number it is the absolute error"
    )
    distance = cramer_distance

    def gap(self, p: Family, q: Family) -> Array:
        """E|X - Y|."""
        return absolute_gap(p, q)

    def gap_to(self, p: Family, y: Array) -> Array:
        """E|X - y|."""
        return p.absolute_deviation(y)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """The integrated squared difference of the distribution functions."""
        return cramer_distance(prediction, truth)

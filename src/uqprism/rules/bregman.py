"""Bregman scores: every rule that is consistent for the mean (Savage 1971)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uqprism.arrays import Array, namespace
from uqprism.families.base import Family
from uqprism.families.quadrature import TOLERANCE, gauss_legendre, record
from uqprism.rules.base import ByFunctions, Rule, at_least_zero, check, rules

if TYPE_CHECKING:
    from uqprism.families.centring import Centring

Function = Callable[[Array], Array]


@rules.register("bregman")
class Bregman(ByFunctions):
    """phi(y) - phi(m) - phi'(m)(y - m) with m the predicted mean; phi = t**2 gives the squared error.

    Args:
        phi: a convex function of arrays.
        derivative: its derivative.
        curvature: its second derivative, if you have it: excess risks then keep all digits where means nearly agree (without it,
            half of them). Excess risks integrate it, so it should be smooth between the members' means.
        name: as in measure names, to tell several apart.
    """

    sees_only_mean = True

    def __init__(
        self,
        phi: Function = lambda t: t * t,
        derivative: Function = lambda t: 2.0 * t,
        *,
        curvature: Function | None = None,
        name: str = "bregman",
    ) -> None:
        self.phi, self.derivative, self.curvature, self.name = phi, derivative, curvature, name
        if type(self) is Bregman:  # not again for centred coordinates
            check(self)

    def score(self, distribution: Family, y: Array) -> Array:
        """phi(y) - phi(m) - phi'(m)(y - m)."""
        m = distribution.mean
        return self.phi(y) - self.phi(m) - self.derivative(m) * (y - m)

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """The entropy of the truth plus the divergence."""
        return self.entropy(truth) + self.divergence(prediction=prediction, truth=truth)

    def entropy(self, truth: Family) -> Array:
        """E phi(Y) - phi(E Y), formed as the mean of the score so that it cannot cancel below zero."""
        return truth.expectation(lambda y: self.score(truth, y))

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """The Bregman distance of the means, by its formula where that keeps its digits, else as an integral of phi'."""
        record(TOLERANCE)
        start, step = prediction.mean, truth.mean - prediction.mean
        xp = namespace(step)
        terms = self.phi(start + step), self.phi(start), self.derivative(start) * step
        direct = terms[0] - terms[1] - terms[2]
        # A result of 1e-3 of its terms has 13 of their 16 digits.
        apart = direct > 1e-3 * sum(xp.abs(term) for term in terms)
        step = xp.where(apart, 0.0 * step, step)  # keeps the integral finite where it is not used
        total = 0.0 * (start + step)
        for node, weight in zip(*gauss_legendre(16), strict=True):
            t = start + float(node) * step
            if self.curvature is None:
                total = total + float(weight) * step * (self.derivative(t) - self.derivative(start))
            else:
                # Taylor's theorem with the remainder as an integral: no term cancels.
                total = total + float(weight) * (1.0 - float(node)) * step * step * self.curvature(t)
        return xp.where(apart, direct, at_least_zero(total))

    def centred(self, centring: Centring) -> Rule:
        """phi of the centred coordinates, so that differences of means keep all their digits."""
        centre, unit, curvature = centring.centre, centring.unit, self.curvature
        return _Centred(
            lambda t: self.phi(centre + unit * t),
            lambda t: unit * self.derivative(centre + unit * t),
            curvature=None if curvature is None else lambda t: unit * unit * curvature(centre + unit * t),
            name=self.name,
        )


class _Centred(Bregman):
    degree = 0  # its phi takes centred coordinates and gives values in the original units

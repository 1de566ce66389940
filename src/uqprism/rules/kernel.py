"""Kernel rules: scores built from a gap g(X, Y) between two values, whose divergence is a squared distance.

    score(P, y) = E g(X, y) - E g(X, X') / 2        entropy = E g(Y, Y') / 2

with g = |x - y| (CRPS), minus twice the density of coincidence (quadratic), 1 - exp(-(x - y)^2 / 2h^2) (Gaussian kernel).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

from uqprism.arrays import SQRT_2, Array, is_array, namespace
from uqprism.errors import InvalidValueError
from uqprism.families.base import Family
from uqprism.families.draws import Draws
from uqprism.families.functionals import Functional, cramer_distance, density_distance, overlap, smooth
from uqprism.families.gaussian import Gaussian
from uqprism.families.mixture import Mixture, linear
from uqprism.families.quadrature import record
from uqprism.rules.base import Identity, Pair, Rule, at_least_zero, default_name, number, rules

if TYPE_CHECKING:
    from uqprism.families.centring import Centring


class KernelRule(Rule):
    """A rule whose divergence is symmetric and quadratic in the difference of the distributions."""

    strictly_proper = True
    distance: Functional = cramer_distance  # used only to find out whether a family has a closed form

    @abstractmethod
    def gap(self, p: Family, q: Family) -> Array:
        """E g(X, Y) for independent X of p and Y of q."""

    @abstractmethod
    def gap_to(self, p: Family, y: Array) -> Array:
        """E g(X, y)."""

    def score(self, distribution: Family, y: Array) -> Array:
        """E g(X, y) - E g(X, X') / 2."""
        return self.gap_to(distribution, y) - 0.5 * self.gap(distribution, distribution)

    def expected_score(self, *, prediction: Family, truth: Family) -> Array:
        """E g(X, Y) - E g(X, X') / 2."""
        return self.gap(prediction, truth) - 0.5 * self.gap(prediction, prediction)

    def entropy(self, truth: Family) -> Array:
        """E g(Y, Y') / 2."""
        return 0.5 * self.gap(truth, truth)

    def pairs_are_closed(self, members: type[Family]) -> bool:
        """True if the divergence between two members of this family has a closed form."""
        return self.distance.is_closed(members, members)

    def identities(self, members: type[Family]) -> dict[Pair, Identity]:
        """Excess risks of members against members are twice those of the mixture, so one of the two is enough."""
        pairs, information = ("members", "members"), ("mixture", "members")
        # Pairs with closed forms cost least; otherwise M integrals against the mixture replace M**2 over pairs.
        if self.pairs_are_closed(members):
            half: Identity = ((0.5, pairs),)
            return {information: half, ("members", "mixture"): half}
        return {pairs: ((2.0, information),), ("members", "mixture"): ((1.0, information),)}


def points_of(draws: Draws) -> Mixture:
    """Draws as Gaussians without a width."""
    nothing = namespace(draws.draws).zeros_like(draws.draws)
    return Mixture._of(Gaussian(mean=draws.draws, scale=nothing, check=False), draws.weights)


@rules.register("gaussian_kernel")
class GaussianKernel(KernelRule):
    """The Gaussian kernel score: half the squared maximum mean discrepancy, between 0 and 1, blind to far outliers.

    Args:
        bandwidth: the length below which differences stop mattering, in the units of y.
        name: as in measure names; by default it includes bandwidths other than one.
    """

    degree = 0
    plain_name = "Gaussian kernel score"
    cost = "a distance between the predicted distribution and what happens that never exceeds 1"
    distance = density_distance

    def __init__(self, bandwidth: float = 1.0, *, name: str | None = None) -> None:
        self.bandwidth: Array = number("bandwidth", bandwidth)
        if not is_array(self.bandwidth) and not 0.0 < self.bandwidth < math.inf:
            raise InvalidValueError(f"bandwidth must be finite and greater than zero, got {bandwidth}")
        self.name = name or default_name("gaussian_kernel", self.bandwidth, 1.0)

    def gap(self, p: Family, q: Family) -> Array:
        """1 - E exp(-(X - Y)^2 / 2h^2)."""
        h = self.bandwidth
        if isinstance(p, Gaussian) and isinstance(q, Gaussian):
            spread = p.variance + q.variance
            xp = namespace(spread)
            shift = p.mean - q.mean
            # Small where the bandwidth is wide, hence `expm1`.
            return -xp.expm1(-0.5 * xp.log1p(spread / h / h) - 0.5 * shift * shift / (spread + h * h))
        if isinstance(p, Draws | Mixture):
            return linear(self.gap, points_of(p) if isinstance(p, Draws) else p, q)
        if isinstance(q, Draws | Mixture):
            return self.gap(q, p)
        # The kernel is sqrt(2 pi) h times a normal density of variance h**2; each side is blurred by half of that variance.
        return 1.0 - math.sqrt(2.0 * math.pi) * h * overlap(self._blurred(p), self._blurred(q))

    def gap_to(self, p: Family, y: Array) -> Array:
        """1 - E exp(-(X - y)^2 / 2h^2)."""
        h = self.bandwidth
        return 1.0 - math.sqrt(2.0 * math.pi) * h * smooth(p, h * h).density(y)

    def divergence(self, *, prediction: Family, truth: Family) -> Array:
        """Half the squared maximum mean discrepancy: the quadratic rule's distance after blurring both."""
        blurred = density_distance(self._blurred(prediction), self._blurred(truth))
        distance = math.sqrt(0.5 * math.pi) * self.bandwidth * blurred
        if not (isinstance(prediction, Draws) and isinstance(truth, Draws)):
            return distance
        record(1e-6)
        # Draws much closer than the bandwidth: densities differ less than they are rounded, gaps between draws do not.
        gap = self.gap(prediction, truth)
        direct = at_least_zero(gap - 0.5 * (self.gap(prediction, prediction) + self.gap(truth, truth)))
        xp = namespace(gap)
        return xp.where(gap * gap < 4.0 * direct, direct, distance)

    def _blurred(self, p: Family) -> Family:
        width = self.bandwidth / SQRT_2
        return smooth(p, width * width)

    def centred(self, centring: Centring) -> Rule:
        """The bandwidth in the unit of the centred coordinates."""
        local = GaussianKernel(name=self.name)  # the constructor takes one number, and here each point has its own
        local.bandwidth = self.bandwidth / centring.unit
        return local

    def pairs_are_closed(self, members: type[Family]) -> bool:
        """True where blurring a member gives a Gaussian."""
        return issubclass(members, Gaussian)

"""Distributions that are given by draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from uqprism.arrays import SQRT_2, SQRT_PI, Array, coerce, expand, merged, namespace, normal_cdf
from uqprism.errors import ShapeError
from uqprism.families.base import Family, families, mixing_weights, no_density, prepare
from uqprism.families.functionals import absolute_gap, closed_form, cramer_distance, smooth
from uqprism.families.gaussian import Gaussian
from uqprism.families.mixture import Mixture
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import record
from uqprism.families.searching import search, take_along
from uqprism.families.stored import require

DIFFERENCE = 1e-6  # the tolerance of a distance between draws and another family, which is a difference
STEPS = 1e-8  # the same for Gaussians, whose distance is a sum
SHORT = (
    0.2  # the length of a step, times the distance from the mean if that is more than one, below which a series has the digits
)


@families.register("draws")
class Draws(Family):
    """Weight on each draw, equal unless given; the first axis of `draws` runs over the draws, the rest is the batch.

    There is no density, so the log and quadratic rules raise; CRPS costs a sort.
    """

    name = "draws"
    in_lists: ClassVar[tuple[str, ...]] = ("draws", "weights")
    parameters: ClassVar[dict[str, str]] = {"draws": "location", "weights": "shape"}
    draws: Array  # (draws, *batch)
    weights: Array  # (draws, *batch)

    def __init__(self, draws: Array, weights: Array = None, *, check: bool = True) -> None:
        self.draws = prepare(self.parameters, check, draws=draws)["draws"]
        if self.draws.ndim == 0 or self.draws.shape[0] == 0:
            raise ShapeError(f"draws must have a first axis with at least one draw, got shape {tuple(self.draws.shape)}")
        self.weights = mixing_weights(self.draws, weights, check)

    @classmethod
    def unequal(cls, parts: Sequence[Array], *, check: bool = True) -> Self:
        """Distributions known by different numbers of draws, (draws, *batch) each; their axis comes first in the batch."""
        arrays = list(coerce(**{f"draws[{i}]": x for i, x in enumerate(parts)}).values())
        if len({tuple(x.shape[1:]) for x in arrays}) > 1 or any(x.ndim == 0 or x.shape[0] == 0 for x in arrays):
            raise ShapeError(
                f"each member must have axes (draws, *points), with at least one draw and the same points, got "
                f"{', '.join(str(tuple(x.shape)) for x in arrays[:5])}"
            )
        xp, most = namespace(*arrays), max(x.shape[0] for x in arrays)

        def filled(x: Array, value: Array) -> Array:
            return xp.concat([x, xp.broadcast_to(value, (most - x.shape[0], *x.shape[1:]))])

        # Shorter ones are filled up with draws of no weight.
        made = cls(xp.stack([filled(x, x[:1]) for x in arrays], axis=1), check=check)
        shares = [xp.full_like(xp.reshape(x, (x.shape[0], -1))[:, 0], 1.0 / x.shape[0]) for x in arrays]
        weights = xp.stack([filled(share, 0.0 * share[:1]) for share in shares], axis=1)
        weights = expand(weights, 2, made.draws.ndim - 2)
        made.weights = xp.broadcast_to(weights, tuple(made.draws.shape))
        return made

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch, without the axis of the draws."""
        return tuple(self.draws.shape[1:])

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], options: Mapping[str, Any], *, check: bool = False) -> Self:  # noqa: ARG003 (others have some)
        """What these arrays define; the weights are taken as they are."""
        require(cls.name, arrays, cls.parameters)
        if arrays["draws"].shape != arrays["weights"].shape:
            raise ShapeError(f"parameters must have one shape, got {arrays['draws'].shape} and {arrays['weights'].shape}")
        prepare(dict.fromkeys(arrays, "location"), check, **arrays)  # a weight may be 0
        draws = object.__new__(cls)
        draws.draws, draws.weights = arrays["draws"], arrays["weights"]
        return draws

    @property
    def mean(self) -> Array:
        """The mean of the draws."""
        # Relative to the first draw, so that a large common offset costs no digits.
        return self.draws[0] + self._average(self.draws - self.draws[0])

    @property
    def variance(self) -> Array:
        """The mean squared deviation of the draws."""
        deviation = self.draws - self.draws[0]  # exact where draws are close, far from zero or not
        for _ in range(2):  # the second pass removes what the first one rounded
            deviation = deviation - self._average(deviation)
        return self._average(deviation * deviation)

    def widened(self) -> Self:
        """The same in working precision, with weights that sum to one there."""
        wide = super().widened()
        wide.weights = wide.weights / namespace(wide.weights).sum(wide.weights, axis=0)
        return wide

    def _average(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=0)

    @property
    def has_density(self) -> bool:
        """False: the probability lies at the draws."""
        return False

    def log_density(self, y: Array) -> Array:
        """Raises: samples have no density."""
        raise no_density(self)

    def expectation(self, function: Callable[[Array], Array], *others: Family) -> Array:
        """The mean of function over the draws."""
        wide = self.lifted(max((len(d.batch_shape) for d in others), default=0))
        return wide._average(function(wide.draws))

    def cdf(self, y: Array) -> Array:
        """The share of draws up to y."""
        xp = namespace(self.draws)
        return self._mix(xp.astype(self.draws <= self._spread(y), self.draws.dtype))

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|."""
        return self._mix(namespace(self.draws).abs(self.draws - self._spread(y)))

    def _spread(self, y: Array) -> Array:
        """y with an axis for the draws before those of the batch."""
        y = y + namespace(self.draws).zeros_like(self.draws[0])
        return expand(y, y.ndim - len(self.batch_shape))

    def _mix(self, values: Array) -> Array:
        return namespace(values).sum(self.weights * values, axis=-1 - len(self.batch_shape))

    def quantile(self, level: Array) -> Array:
        """The smallest draw that at least this share of the draws does not exceed."""
        xp = namespace(self.draws)
        order = xp.argsort(self.draws, axis=0)
        draws, share = take_along(self.draws, order), xp.cumulative_sum(take_along(self.weights, order), axis=0)
        level = level + 0.0 * draws[0]
        flat = merged(level, len(self.batch_shape))
        # Ten times 0.1 sums to less than 1 in floating point.
        at = xp.clip(search(share, flat - 1e-12, below=True), 0, draws.shape[0] - 1)
        return xp.reshape(take_along(draws, at), level.shape)

    def landmarks(self) -> Landmarks:
        """Every draw is a corner."""
        xp = namespace(self.draws)
        nothing = xp.zeros_like(self.draws)
        return Landmarks(self.draws, nothing + np.inf, nothing, (True,) * self.draws.shape[0])


def _merge(p: Draws, q: Draws) -> tuple[Array, Array, Array]:
    """Lengths between the draws of both in order, and both distribution functions there: (draws - 1, *batch)."""
    xp = namespace(p.draws, q.draws)
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    p, q = p.lifted(len(shape)), q.lifted(len(shape))

    def wide(x: Array) -> Array:
        return xp.broadcast_to(x, (x.shape[0], *shape))

    both = xp.concat([wide(p.draws), wide(q.draws)], axis=0)
    order = xp.argsort(both, axis=0)
    both = take_along(both, order)
    mass = [wide(p.weights), wide(q.weights)]
    f = xp.cumulative_sum(take_along(xp.concat([mass[0], 0.0 * mass[1]], axis=0), order), axis=0)
    g = xp.cumulative_sum(take_along(xp.concat([0.0 * mass[0], mass[1]], axis=0), order), axis=0)
    # Both functions are constant between neighbouring draws, so an integral over y is a sum over these lengths.
    return both[1:] - both[:-1], f[:-1], g[:-1]


@closed_form(absolute_gap, Draws, Draws)
def _absolute_gap(p: Draws, q: Draws) -> Array:
    if p is q:
        xp = namespace(p.draws)
        order = xp.argsort(p.draws, axis=0)
        draws, share = take_along(p.draws, order), xp.cumulative_sum(take_along(p.weights, order), axis=0)[:-1]
        return 2.0 * xp.sum((draws[1:] - draws[:-1]) * share * (1.0 - share), axis=0)
    length, f, g = _merge(p, q)
    return namespace(length).sum(length * (f * (1.0 - g) + g * (1.0 - f)), axis=0)


@closed_form(cramer_distance, Draws, Draws)
def _cramer_distance(p: Draws, q: Draws) -> Array:
    length, f, g = _merge(p, q)
    return namespace(length).sum(length * (f - g) ** 2, axis=0)


@closed_form(smooth, Draws)
def _smooth(p: Draws, variance: Array) -> Mixture:
    return Mixture._of(Gaussian(mean=p.draws, variance=variance + 0.0 * p.draws, check=False), p.weights)


@closed_form(absolute_gap, Draws, Family)
def _absolute_gap_to(p: Draws, q: Family) -> Array:
    p = p.lifted(len(q.batch_shape))
    gaps = q.absolute_deviation(p.draws)
    return namespace(gaps).sum(p.weights * gaps, axis=0)


@closed_form(cramer_distance, Draws, Family)
def _cramer_distance_to(p: Draws, q: Family) -> Array:
    """A step function is never close to a smooth one (n draws: at least 1/n**2 of the scale), so little is lost."""
    record(DIFFERENCE)
    distance = absolute_gap(p, q) - 0.5 * absolute_gap(p, p) - 0.5 * absolute_gap(q, q)
    return namespace(distance).maximum(distance, namespace(distance).zeros_like(distance))


@closed_form(cramer_distance, Draws, Gaussian)
def _cramer_distance_to_gaussian(p: Draws, q: Gaussian) -> Array:
    record(STEPS)
    xp = namespace(p.draws)
    p = p.lifted(len(q.batch_shape))
    order = xp.argsort(p.draws, axis=0)
    share = xp.cumulative_sum(take_along(p.weights, order), axis=0)
    return from_steps(take_along(p.draws, order), (share / share[-1])[:-1], q)


def from_steps(draws: Array, share: Array, q: Gaussian) -> Array:
    """The distance of a Gaussian from the steps of sorted draws (n, *batch) and the shares (n - 1, *batch) between them.

    A sum of integrals from draw to draw, none of them negative: series about the middle of short steps, primitives of wide ones.
    """
    z = (draws - q.mean) / q.scale
    left, right = z[:-1], z[1:]
    xp = namespace(z)
    # Steps above the mean are reflected: small probabilities keep their digits.
    above = left + right > 0.0
    low, high = xp.where(above, -right, left), xp.where(above, -left, right)
    share = xp.where(above, 1.0 - share, share)
    length, middle = right - left, 0.5 * (low + high)
    short = length * xp.maximum(xp.abs(middle), xp.ones_like(middle)) < SHORT
    series = _short_step(xp.where(short, middle, 0.0 * middle), xp.where(short, 0.5 * length, 0.0 * length), share)
    wide = share * share * length - 2.0 * share * (_once(high) - _once(low)) + (_squared(high) - _squared(low))
    return q.scale * (xp.sum(xp.where(short, series, wide), axis=0) + _squared(z[0]) + _squared(-z[-1]))


def _short_step(m: Array, w: Array, share: Array) -> Array:
    """The integral of (share - Phi)^2 from m - w to m + w, by the series of Phi about m."""
    xp = namespace(m)
    gap, density, m2, w2 = share - normal_cdf(m), xp.exp(-0.5 * m * m) / math.sqrt(2.0 * math.pi), m * m, w * w
    # Phi(m + u) - Phi(m) is the density times the sum of c_k u^k, with c_1 = 1; only even powers of u count.
    c2, c3, c4 = -m / 2.0, (m2 - 1.0) / 6.0, m * (3.0 - m2) / 24.0
    c5, c6 = (m2 * (m2 - 6.0) + 3.0) / 120.0, m * (m2 * (10.0 - m2) - 15.0) / 720.0
    c7 = (m2 * (m2 * (m2 - 15.0) + 45.0) - 15.0) / 5040.0
    linear = w2 * (c2 / 3.0 + w2 * (c4 / 5.0 + w2 * c6 / 7.0))
    q4, q6, q8 = c2 * c2 + 2.0 * c3, c3 * c3 + 2.0 * (c5 + c2 * c4), c4 * c4 + 2.0 * (c7 + c2 * c6 + c3 * c5)
    square = w2 * (1.0 / 3.0 + w2 * (q4 / 5.0 + w2 * (q6 / 7.0 + w2 * q8 / 9.0)))
    return 2.0 * w * (gap * gap - 2.0 * gap * density * linear + density * density * square)


def _once(z: Array) -> Array:
    """The integral of Phi up to z."""
    return z * normal_cdf(z) + namespace(z).exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _squared(z: Array) -> Array:
    """The integral of Phi^2 up to z."""
    p, density = normal_cdf(z), namespace(z).exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return p * (z * p + 2.0 * density) - normal_cdf(SQRT_2 * z) / SQRT_PI

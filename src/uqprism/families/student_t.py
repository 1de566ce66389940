"""Student's t family, for predictions with heavy tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from uqprism.arrays import (
    Array,
    constant,
    from_numpy,
    is_jax,
    is_torch,
    is_traced,
    log_gamma_half_step,
    namespace,
    on_device,
    to_numpy,
)
from uqprism.families.base import Family, decades, families, with_gradient
from uqprism.families.elementwise import PointwiseForm, log1p
from uqprism.families.functionals import absolute_gap, closed_form
from uqprism.families.panels import Landmarks
from uqprism.families.quadrature import gauss_legendre
from uqprism.synonyms import named_arguments


def _numbers(d: StudentT) -> tuple[Array, ...]:
    height = _log_normaliser(d.df) - namespace(d.scale).log(d.scale)
    return d.location, 1.0 / (d.scale * namespace(d.df).sqrt(d.df)), height, -0.5 * (d.df + 1.0)


def _log_form(y: Array, location: Array, inverse: Array, height: Array, power: Array) -> Array:
    z = (y - location) * inverse
    return height + power * log1p(z * z)


def _log_normaliser(n: Array) -> Array:
    # The difference of two log gamma functions cancels for many degrees of freedom.
    return log_gamma_half_step(0.5 * n) - 0.5 * namespace(n).log(math.pi * n)


@families.register("student_t")
class StudentT(Family):
    """Student t distributions with this location, scale and degrees of freedom.

    The variance is infinite for two or fewer degrees of freedom, the mean undefined for one or fewer.
    """

    name = "student_t"
    parameters: ClassVar[dict[str, str]] = {"location": "location", "scale": "scale", "df": "shape"}
    form = PointwiseForm(_numbers, _log_form)
    location: Array
    scale: Array
    df: Array

    @named_arguments(deviation="the standard deviation times sqrt(1 - 2 / df)")
    def __init__(self, *, location: Array, scale: Array, df: Array, check: bool = True) -> None:
        super().__init__(check=check, location=location, scale=scale, df=df)

    @property
    def mean(self) -> Array:
        """The location; NaN where one or fewer degrees of freedom leave no mean."""
        xp = namespace(self.location)
        return xp.where(self.df > 1.0, self.location, xp.full_like(self.location, math.nan))

    @property
    def centre(self) -> Array:
        """The location, which is there even where the mean is not."""
        return self.location

    @property
    def spread(self) -> Array:
        """The scale, which is finite even where the variance is not."""
        return self.scale

    @property
    def variance(self) -> Array:
        """The variance, (*batch); infinite for two or fewer degrees of freedom."""
        xp = namespace(self.scale)
        excess = self.df - 2.0
        finite = excess > 0.0
        ratio = self.df / xp.where(finite, excess, xp.ones_like(excess))
        return self.scale * self.scale * xp.where(finite, ratio, xp.full_like(ratio, math.inf))

    def cdf(self, y: Array) -> Array:
        """The probability of values up to y."""
        return _cdf((y - self.location) / self.scale, self.df)

    def survival(self, y: Array) -> Array:
        """The probability of values above y."""
        return _cdf((self.location - y) / self.scale, self.df)

    def signed_cdf(self, y: Array, pivot: Array) -> Array:
        """The probability of values up to y, less one where y is above the pivot."""
        z = (y - self.location) / self.scale
        xp = namespace(z)
        sign = xp.where(y > pivot, -xp.ones_like(z), xp.ones_like(z))
        return sign * _cdf(sign * z, self.df)

    @property
    def tails(self) -> tuple[Array, Array]:
        """The probability of far values falls with the power of the degrees of freedom."""
        return self.df, self.df

    def quantile(self, level: Array) -> Array:
        """The value that Y stays below with probability `level`."""
        # SciPy needs values on the host, which traced arrays do not have; bisection does without.
        if any(is_traced(x) or on_device(x) for x in (*self.arrays(), level)):
            return super().quantile(level)
        import scipy.special

        z = from_numpy(scipy.special.stdtrit(to_numpy(self.df), to_numpy(level)), self.scale)
        quantile = constant(self.location) + constant(self.scale) * z
        return with_gradient(self, quantile, level) if is_torch(z) or is_jax(z) else quantile

    def absolute_deviation(self, y: Array) -> Array:
        """The mean of |Y - y|; infinite for one or fewer degrees of freedom."""
        z = (y - self.location) / self.scale
        n = self.df
        xp = namespace(z)
        finite = n > 1.0
        # The branch that is not used must be finite, or its gradient would be NaN.
        m = xp.where(finite, n, 2.0 * xp.ones_like(n))
        value = z * (2.0 * _cdf(z, m) - 1.0) + 2.0 * xp.exp(_log_density(z, m)) * (m + z * z) / (m - 1.0)
        return self.scale * xp.where(finite, value, xp.full_like(value, math.inf))

    def landmarks(self) -> Landmarks:
        """The location, with tails that matter for ever more scales as the degrees of freedom fall."""
        n = self.df
        xp = namespace(n)
        # At this many scales, 1 + z**2 / df is the square of the decades of the power law.
        reach = self.scale * xp.sqrt(n * xp.expm1(2.0 * xp.log(decades(n))))
        # The density is singular at sqrt(df) scales from the real line, so below one degree of freedom it varies faster.
        width = self.scale * xp.clip(xp.sqrt(n), None, 1.0)
        return Landmarks(self.location[None], width[None], reach[None], (False,))


@closed_form(absolute_gap, StudentT, Family)
def _absolute_gap(p: StudentT, q: Family) -> Array:
    """By quadrature where it exists; infinite for one or fewer degrees of freedom."""
    gap = absolute_gap.fallback(p, q)
    xp = namespace(gap)
    return xp.where(p.df > 1.0, gap, xp.full_like(gap, math.inf))


def _log_density(z: Array, n: Array) -> Array:
    return _log_normaliser(n) - 0.5 * (n + 1.0) * namespace(z, n).log1p(z * z / n)


def _cdf(z: Array, n: Array) -> Array:
    if is_jax(z):
        return _traceable_cdf()(*namespace(z).broadcast_arrays(z, n))
    if is_torch(z):
        return _cdf_by_panels(z, n + 0.0 * z)
    import scipy.special

    return scipy.special.stdtr(n, z)


@cache
def _traceable_cdf() -> Callable[[Array, Array], Array]:
    """`_cdf_by_panels` with its slope in z given: it is the density, and the slope of the panels takes minutes to compile."""
    import jax

    cdf = jax.custom_jvp(jax.jit(_cdf_by_panels))

    def slope(at: tuple[Array, Array], towards: tuple[Any, Any]) -> tuple[Array, Array]:
        (z, n), (dz, dn) = at, towards
        value, moved = cdf(z, n), namespace(z).zeros_like(z)
        if not isinstance(dn, jax.custom_derivatives.SymbolicZero):
            value, moved = jax.jvp(lambda n: _cdf_by_panels(z, n), (n,), (dn,))
        if not isinstance(dz, jax.custom_derivatives.SymbolicZero):
            moved = moved + namespace(z).exp(_log_density(z, n)) * dz
        return value, moved

    cdf.defjvp(slope, symbolic_zeros=True)
    return cdf


def _cdf_by_panels(z: Array, n: Array) -> Array:
    xp = namespace(z, n)
    far = z * z > FAR * n
    # Each branch gets arguments at which its gradient is finite.
    half = _central_mass(xp.where(far, xp.zeros_like(z), xp.abs(z)), n)
    tail = _far_tail(xp.where(far, xp.abs(z), xp.sqrt(2.0 * FAR * constant(n))), n)
    tail = xp.where(far, tail, 0.5 - half)
    return xp.where(z < 0, tail, 1.0 - tail)


FAR = 9.0  # times the degrees of freedom: squares beyond which the series for the tail needs few terms


def _far_tail(z: Array, n: Array) -> Array:
    """The probability above z with z**2 > FAR * n, by the series of the incomplete beta function in 1 / (1 + z**2 / n)."""
    xp = namespace(z)
    x = 1.0 / (1.0 + z * z / n)
    term = total = xp.ones_like(x)
    for k in range(17):  # x is below 0.1
        term = term * x * (0.5 * n + 0.5 + k) / (0.5 * n + 1.0 + k)
        total = total + term
    return xp.exp(_log_density(z, n)) * z / n * total


# Up to w = 5.24, 94 scales: for z**2 <= FAR * n, what lies beyond is less than the smallest double.
_PANELS = np.concatenate([[0.0], 0.5 * 1.6 ** np.arange(6)])


def _central_mass(z: Array, n: Array) -> Array:
    """The probability between 0 and z >= 0: neither PyTorch nor JAX (with gradients) has the incomplete beta function.

    In w = asinh(z) the density falls off exponentially whatever the degrees of freedom, so panels of growing length resolve it.
    """
    xp = namespace(z)
    end = xp.asinh(z)
    power = -0.5 * (n + 1.0)

    def add(total: Array, low: float, high: float, node: float, weight: float) -> Array:
        left = xp.clip(end, None, low)
        length = xp.clip(end, None, high) - left
        w = left + node * length
        sinh = xp.sinh(w)
        return total + weight * length * xp.exp(power * xp.log1p(sinh * sinh / n)) * xp.cosh(w)

    places = [(low, high, *at) for low, high in pairwise(_PANELS.tolist()) for at in np.transpose(gauss_legendre(24)).tolist()]
    total = xp.zeros_like(end * power)
    if is_jax(z):
        from jax.lax import scan  # compiles one node: all of them, written out, took minutes and gigabytes

        total, _ = scan(lambda t, place: (add(t, *place), None), total, xp.asarray(places, dtype=z.dtype))
    else:
        for place in places:
            total = add(total, *place)
    return total * xp.exp(_log_normaliser(n))

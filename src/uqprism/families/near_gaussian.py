"""Distances between a mixture of Gaussians and its Gaussian surrogate, to full relative accuracy.

When the members nearly agree these distances are of fourth to eighth order in the disagreement and every difference of
larger terms loses them. Divided by the surrogate's density, the mixture's is one plus a series of Hermite polynomials whose
coefficients are means of products of the members' small offsets; the distances are sums of squares of that series. Where the
members do not nearly agree nothing cancels, and panels of Gauss-Legendre nodes are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, cast
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from uqprism.arrays import LOG_2PI, Array, constant, expand, from_numpy, is_traced, namespace, normal_cdf
from uqprism.families.functionals import (
    closed_form,
    cramer_distance,
    density_distance,
    relative_entropy,
    relative_entropy_density,
)
from uqprism.families.gaussian import Gaussian, Surrogate, scale_gap
from uqprism.families.mixture import Mixture
from uqprism.families.quadrature import TOLERANCE, gauss_legendre, grid_over, record

TERMS = 36
OFFSET, RATIO = 0.3, 0.1  # members this near to the surrogate let 36 terms reach the last digit


def hermite(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """He_n(z) / sqrt(n!) for n = 0 .. TERMS - 1: (terms, nodes)."""
    rows = [np.ones_like(z), z]
    for n in range(1, TERMS - 1):
        rows.append((z * rows[n] - math.sqrt(n) * rows[n - 1]) / math.sqrt(n + 1))
    return np.stack(rows)


def _is_near(mixture: Mixture, surrogate: Surrogate) -> Array:
    """True where all members lie within OFFSET scales and RATIO variances of the surrogate."""
    offset, ratio = _offsets(mixture, surrogate)
    xp = namespace(offset)
    return xp.all((xp.abs(constant(offset)) <= OFFSET) & (xp.abs(constant(ratio)) <= RATIO), axis=0)


def _offsets(mixture: Mixture, surrogate: Surrogate) -> tuple[Array, Array]:
    """Each member's offset in the surrogate's scale, and the relative difference of its variance."""
    members = mixture.components
    assert isinstance(members, Gaussian)
    assert members.deviation is not None
    assert surrogate.deviation is not None
    return (
        (members.mean - surrogate.mean) / surrogate.scale,
        (members.deviation - surrogate.deviation) / surrogate.variance,
    )


# CRPS, quadratic and log need the same coefficients. Weak, so that neither distribution is kept alive for them.
_known: WeakKeyDictionary[Surrogate, tuple[ReferenceType[Mixture], Array]] = WeakKeyDictionary()


def _coefficients(mixture: Mixture, surrogate: Surrogate, near: Array) -> Array:
    """The coefficients of He_n / sqrt(n!) in p / q - 1, (terms, *batch), computed once for each pair."""
    if surrogate not in _known or _known[surrogate][0]() is not mixture:
        _known[surrogate] = (ref(mixture), _compute_coefficients(mixture, surrogate, near))
    return _known[surrogate][1]


def _compute_coefficients(mixture: Mixture, surrogate: Surrogate, near: Array) -> Array:
    """The first three are known exactly; the others are weighted means of the members' own."""
    offset, ratio = _offsets(mixture, surrogate)
    xp = namespace(offset)
    # Zero where the series is not used, so that its gradients stay finite there.
    offset, ratio = (xp.where(near, x, xp.zeros_like(x)) for x in (offset, ratio))
    before, now = xp.ones_like(offset), offset
    zero = xp.zeros_like(offset[0])
    # Densities with one mean agree up to order one, and c_2 is the missing variance. As means over the members these
    # # would be rounding errors, often larger than the distances.
    found = [zero, zero, surrogate.missing / surrogate.variance / math.sqrt(2.0)]
    for n in range(1, TERMS - 1):
        before, now = now, (offset * now + math.sqrt(n) * ratio * before) / math.sqrt(n + 1)
        if n >= 2:
            found.append(xp.sum(mixture.weights * now, axis=0))
    return xp.stack(found, axis=0)


def _series(coefficients: Array, basis: np.ndarray[Any, Any]) -> Array:
    """The sum of coefficients times basis functions (terms, nodes): (nodes, *batch)."""
    xp = namespace(coefficients)
    flat = xp.reshape(coefficients, (coefficients.shape[0], -1))
    values = xp.matmul(from_numpy(np.ascontiguousarray(basis.T), coefficients), flat)
    return xp.reshape(values, (basis.shape[1], *coefficients.shape[1:]))


def _nodes_sum(values: Array, weights: np.ndarray[Any, Any]) -> Array:
    xp = namespace(values)
    return xp.sum(xp.reshape(from_numpy(weights, values), (-1, *(1,) * (values.ndim - 1))) * values, axis=0)


class HermiteTables(NamedTuple):
    """Hermite polynomials (terms, nodes) at Gauss-Hermite nodes, and the nodes' weights for exp(-z**2)."""

    square: np.ndarray[Any, Any]  # for integrals of the squared series over exp(-z**2)
    integral: np.ndarray[Any, Any]  # the same of its antiderivative
    normal: np.ndarray[Any, Any]  # for integrals over a normal density
    weights: np.ndarray[Any, Any]


@cache
def _tables() -> HermiteTables:
    """Made when first asked for, since the first use of LAPACK takes its time."""
    # Exact for the squares, polynomials of degree 70; the logarithms are no polynomials and need this many.
    nodes, weights = np.polynomial.hermite.hermgauss(64)
    square = hermite(nodes)
    # The antiderivative of phi He_n is -phi He_(n-1); the division by sqrt(n) adapts the normalisation by sqrt(n!).
    integral = np.concatenate([np.zeros_like(square[:1]), square[:-1] / np.sqrt(np.arange(1, TERMS))[:, None]])
    return HermiteTables(square, integral, hermite(math.sqrt(2.0) * nodes), weights)


def _cramer_series(mixture: Mixture, surrogate: Surrogate, near: Array) -> Array:
    values = _series(_coefficients(mixture, surrogate, near), _tables().integral)
    # phi(z)**2 = exp(-z**2) / (2 pi), and exp(-z**2) is the weight of the rule.
    return surrogate.scale * _nodes_sum(values * values, _tables().weights / (2.0 * math.pi))


def _density_series(mixture: Mixture, surrogate: Surrogate, near: Array) -> Array:
    values = _series(_coefficients(mixture, surrogate, near), _tables().square)
    return _nodes_sum(values * values, _tables().weights / (2.0 * math.pi)) / surrogate.scale


def _entropy_series(mixture: Mixture, surrogate: Surrogate, near: Array, *, forward: bool) -> Array:
    values = _series(_coefficients(mixture, surrogate, near), _tables().normal)
    xp = namespace(values)
    # Far out, where the weight is negligible, the truncated series may fall below -1.
    log_ratio = xp.log1p(xp.clip(values, -0.999, None))
    zero = xp.zeros_like(log_ratio)
    density = relative_entropy_density(log_ratio, zero) if forward else relative_entropy_density(zero, log_ratio)
    return _nodes_sum(density, _tables().weights / math.sqrt(math.pi))


Exact = Callable[[Mixture, Surrogate, Array], Array]

FAINT = 1e-3  # members that are not near and have less weight together: the mixture is nearly the surrogate all the same


def _is_faint(mixture: Mixture, surrogate: Surrogate) -> Array:
    """True where the members that are not near have next to no weight, so that distances are of the order of its square."""
    offset, ratio = _offsets(mixture, surrogate)
    xp = namespace(offset)
    far = (xp.abs(constant(offset)) > OFFSET) | (xp.abs(constant(ratio)) > RATIO)
    return xp.sum(xp.where(far, constant(mixture.weights), xp.zeros_like(constant(offset))), axis=0) < FAINT


class _Differences:
    """What the members add to the surrogate at the nodes of a grid, formed from differences of parameters; (nodes, *batch)."""

    def __init__(self, mixture: Mixture, surrogate: Surrogate) -> None:
        shared = mixture.shared_grid is not None and mixture.shared_grid is surrogate.shared_grid
        self.grid = mixture.shared_grid.grid if shared and mixture.shared_grid else grid_over(mixture, surrogate)
        self.mixture, self.surrogate = mixture, surrogate
        xp = namespace(surrogate.scale)
        members = cast("Gaussian", mixture.components)
        nodes = self.grid.nodes
        z = (expand(nodes, 1, len(surrogate.batch_shape) + 1 - nodes.ndim) - surrogate.mean) / surrogate.scale
        self.log_density = -0.5 * (z * z + LOG_2PI) - xp.log(surrogate.scale)
        self.z, axis = z, -1 - len(mixture.batch_shape)
        z = expand(z, z.ndim + 1 + axis)
        gap = scale_gap(members, surrogate)
        # z of the member less z of the surrogate.
        self.step = ((surrogate.mean - members.mean) - z * gap) / members.scale
        self.log_ratio = -xp.log1p(gap / surrogate.scale) - 0.5 * self.step * (self.step + 2.0 * z)
        self.wide, self.axis = z, axis

    def average(self, values: Array) -> Array:
        """The weighted sum over the members."""
        return namespace(values).sum(self.mixture.weights * values, axis=self.axis)

    def density_ratio(self) -> Array:
        """The mixture's density divided by the surrogate's, less one."""
        # Far out a ratio may overflow; what it stands for is negligible, or the product below is taken instead.
        return self.average(namespace(self.step).expm1(namespace(self.step).clip(self.log_ratio, None, 600.0)))

    def distribution(self) -> Array:
        """The mixture's distribution function less the surrogate's."""
        xp = namespace(self.step)
        near = xp.abs(self.step) < 0.1
        step = xp.where(near, self.step, xp.zeros_like(self.step))
        # The mean of the density between the two places, times their distance.
        between = 0.0 * step
        for node, weight in zip(*gauss_legendre(6), strict=True):
            between = between + float(weight) * xp.exp(-0.5 * (self.wide + float(node) * step) ** 2)
        apart = normal_cdf(self.wide + self.step) - normal_cdf(self.wide)
        return self.average(xp.where(near, step * between / math.sqrt(2.0 * math.pi), apart))


def _cramer_faint(mixture: Mixture, surrogate: Surrogate, _: Array) -> Array:
    found = _Differences(mixture, surrogate)
    return found.grid.integrate(found.distribution() ** 2)


def _density_faint(mixture: Mixture, surrogate: Surrogate, _: Array) -> Array:
    found = _Differences(mixture, surrogate)
    xp = namespace(found.z)
    near = xp.exp(found.log_density) * found.density_ratio()
    # Where a member is far denser than the surrogate nothing cancels.
    far = found.grid.evaluate(mixture, "density") - xp.exp(found.log_density)
    dense = xp.max(found.log_ratio, axis=found.axis) > 30.0
    return found.grid.integrate(xp.where(dense, far, near) ** 2)


def _entropy_faint(mixture: Mixture, surrogate: Surrogate, _: Array, *, forward: bool) -> Array:
    found = _Differences(mixture, surrogate)
    xp = namespace(found.z)
    excess = found.density_ratio()
    near = xp.abs(excess) < 0.5
    apart = found.grid.evaluate(mixture, "log_density") - found.log_density
    ratio = xp.where(near, xp.log1p(xp.where(near, excess, xp.zeros_like(excess))), apart)
    zero = xp.zeros_like(ratio)
    # Both densities relative to the surrogate's, or where that is far the smaller to the mixture's own.
    top = xp.where(ratio > 0.0, ratio, zero)
    one, other = ratio - top, zero - top
    density = relative_entropy_density(one, other) if forward else relative_entropy_density(other, one)
    return found.grid.integrate(xp.exp(found.log_density + top) * density)


def _choose(mixture: Mixture, surrogate: Surrogate, series: Exact, faint: Exact, panels: Callable[[], Array]) -> Array:
    """The series where members nearly agree, differences where all with weight do, panels elsewhere.

    Only what is needed is computed, unless the values are traced: then differences are left out.
    """
    record(TOLERANCE)
    members = mixture.components
    if not isinstance(members, Gaussian) or members.deviation is None:
        return panels()
    near = _is_near(mixture, surrogate)
    xp = namespace(near)
    traced = is_traced(near)
    if not traced and bool(xp.all(near)):
        return series(mixture, surrogate, near)
    value = None
    rare = near if traced else _is_faint(mixture, surrogate) & ~near
    if traced or not bool(xp.all(near | rare)):
        value = panels()
    if not traced and bool(xp.any(rare)):
        other = faint(mixture, surrogate, rare)
        value = other if value is None else xp.where(rare, other, value)
    if traced or bool(xp.any(near)):
        value = xp.where(near, series(mixture, surrogate, near), value)
    return value


@closed_form(cramer_distance, Mixture, Surrogate)
def _cramer_distance(p: Mixture, q: Surrogate) -> Array:
    return _choose(p, q, _cramer_series, _cramer_faint, lambda: cramer_distance.fallback(p, q))


@closed_form(density_distance, Mixture, Surrogate)
def _density_distance(p: Mixture, q: Surrogate) -> Array:
    return _choose(p, q, _density_series, _density_faint, lambda: density_distance.fallback(p, q))


@closed_form(relative_entropy, Mixture, Surrogate)
def _relative_entropy(truth: Mixture, prediction: Surrogate) -> Array:
    return _choose(
        truth,
        prediction,
        partial(_entropy_series, forward=True),
        partial(_entropy_faint, forward=True),
        lambda: relative_entropy.fallback(truth, prediction),
    )


@closed_form(relative_entropy, Surrogate, Mixture)
def _relative_entropy_of_surrogate(truth: Surrogate, prediction: Mixture) -> Array:
    return _choose(
        prediction,
        truth,
        partial(_entropy_series, forward=False),
        partial(_entropy_faint, forward=False),
        lambda: relative_entropy.fallback(truth, prediction),
    )

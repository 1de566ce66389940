"""Distances between a mixture of Gaussians and its Gaussian surrogate, to full relative accuracy.

When the members nearly agree these distances are of fourth to eighth order in the disagreement and every difference of
larger terms loses them. Divided by the surrogate's density, the mixture's is one plus a series of Hermite polynomials whose
coefficients are means of products of the members' small offsets; the distances are sums of squares of that series. Where the
members do not nearly agree nothing cancels, and panels of Gauss-Legendre nodes are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from uqprism.arrays import Array, constant, from_numpy, is_traced, namespace
from uqprism.families.functionals import (
    closed_form,
    cramer_distance,
    density_distance,
    relative_entropy,
    relative_entropy_density,
)
from uqprism.families.gaussian import Gaussian, Surrogate
from uqprism.families.mixture import Mixture
from uqprism.families.quadrature import TOLERANCE, record

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


Series = Callable[[Mixture, Surrogate, Array], Array]


def _choose(mixture: Mixture, surrogate: Surrogate, series: Series, panels: Callable[[], Array]) -> Array:
    """The series where members nearly agree, panels elsewhere; only what is needed, unless the values are traced."""
    record(TOLERANCE)
    members = mixture.components
    if not isinstance(members, Gaussian) or members.deviation is None:
        return panels()
    near = _is_near(mixture, surrogate)
    xp = namespace(near)
    if not is_traced(near):
        if bool(xp.all(near)):
            return series(mixture, surrogate, near)
        if not bool(xp.any(near)):
            return panels()
    return xp.where(near, series(mixture, surrogate, near), panels())


@closed_form(cramer_distance, Mixture, Surrogate)
def _cramer_distance(p: Mixture, q: Surrogate) -> Array:
    return _choose(p, q, _cramer_series, lambda: cramer_distance.fallback(p, q))


@closed_form(density_distance, Mixture, Surrogate)
def _density_distance(p: Mixture, q: Surrogate) -> Array:
    return _choose(p, q, _density_series, lambda: density_distance.fallback(p, q))


@closed_form(relative_entropy, Mixture, Surrogate)
def _relative_entropy(truth: Mixture, prediction: Surrogate) -> Array:
    def series(m: Mixture, s: Surrogate, near: Array) -> Array:
        return _entropy_series(m, s, near, forward=True)

    return _choose(truth, prediction, series, lambda: relative_entropy.fallback(truth, prediction))


@closed_form(relative_entropy, Surrogate, Mixture)
def _relative_entropy_of_surrogate(truth: Surrogate, prediction: Mixture) -> Array:
    def series(m: Mixture, s: Surrogate, near: Array) -> Array:
        return _entropy_series(m, s, near, forward=False)

    return _choose(prediction, truth, series, lambda: relative_entropy.fallback(truth, prediction))

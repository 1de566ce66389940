"""Incomplete gamma and beta functions for every array library, with gradients in all arguments.

PyTorch has no derivative of the incomplete gamma function in its shape and no incomplete beta function; JAX lacks derivatives of
the latter. A gradient is therefore that of value + slope * (shape - constant), with slopes from differences of sixth order in
the shapes, and is right to first order only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from uqprism.arrays import (
    Array,
    _special,
    constant,
    is_jax,
    is_torch,
    is_traced,
    is_wrapped,
    log_gamma,
    log_gap,
    namespace,
    normal_cdf,
)

STEP = 5e-3
SIXTH = ((1, 0.75), (2, -0.15), (3, 1.0 / 60.0))  # weights of central differences


def log_beta(a: Array, b: Array) -> Array:
    """The logarithm of the beta function."""
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def digamma(x: Array) -> Array:
    """The derivative of log gamma."""
    return _special(x).digamma(x)


def trigamma(x: Array) -> Array:
    """The second derivative of log gamma."""
    return _special(x).polygamma(1, x)


def gamma_cdf(shape: Array, x: Array, *, above: bool = False) -> Array:
    """The probability that a standard gamma variable of this shape is at most x >= 0, or above x."""
    value, sign = _gamma(constant(shape), constant(x), above), -1.0 if above else 1.0
    if not (is_torch(x) or is_jax(x)):
        return value
    if differentiated(x):
        value = value + sign * _gamma_density(constant(shape), constant(x)) * _zero(x)
    if differentiated(shape):
        value = value + _slope(lambda k: _gamma(k, constant(x), above), constant(shape)) * _zero(shape)
    return value


def _gamma(shape: Array, x: Array, above: bool) -> Array:
    xp = namespace(shape, x)
    shape, x = shape + xp.zeros_like(x), x + xp.zeros_like(shape)
    value = _special(x).gammaincc(shape, x) if above else _special(x).gammainc(shape, x)
    large = (shape > LARGE) & (xp.abs(x - shape) < 0.3 * shape)
    if is_traced(large) or bool(xp.any(large)):
        one = xp.ones_like(x)
        value = xp.where(large, _gamma_of_large(xp.where(large, shape, one), xp.where(large, x, one), above), value)
    return value


LARGE = 1e4  # a shape from which three terms reach the last digits; those of libraries lose a digit for each power of ten
# The terms by powers of eta, from c0 = 1/mu - 1/eta with eta**2 / 2 = mu - log(1 + mu), c1 and c2 by recurrence, in 60 digits.
TERMS = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
        -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
        -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798,
        -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06,
    ),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516),
)  # fmt: skip


def _gamma_of_large(shape: Array, x: Array, above: bool) -> Array:
    """By Temme's uniform expansion, DLMF 8.12, near the shape."""
    xp = namespace(x)
    mu = (x - shape) / shape
    half = log_gap(mu, x / shape)
    eta = xp.sign(mu) * xp.sqrt(2.0 * half)
    total = 0.0 * eta
    for term in reversed(TERMS):
        power = 0.0 * eta
        for coefficient in reversed(term):
            power = power * eta + coefficient
        total = total / shape + power
    rest = xp.exp(-shape * half) / xp.sqrt(2.0 * math.pi * shape) * total
    z = eta * xp.sqrt(shape)
    return normal_cdf(-z) + rest if above else normal_cdf(z) - rest


def _gamma_density(shape: Array, x: Array) -> Array:
    xp = namespace(x)
    safe = xp.where(x > 0.0, x, xp.ones_like(x))
    return xp.where(x > 0.0, xp.exp((shape - 1.0) * xp.log(safe) - safe - log_gamma(shape)), xp.zeros_like(safe))


def beta_cdf(a: Array, b: Array, x: Array, *, rest: Array = None) -> Array:
    """The probability that a beta variable is at most x in [0, 1]; `rest` is 1 - x where that has more digits."""
    rest = 1.0 - x if rest is None else rest
    if not (is_torch(x) or is_jax(x)):
        import scipy.special

        # From the nearer end, so that values next to one keep their digits.
        return np.where(x < 0.5, scipy.special.betainc(a, b, x), scipy.special.betaincc(b, a, rest))
    c, d, u, v = (constant(z) + 0.0 * constant(a + b + x) for z in (a, b, x, rest))
    value = _beta(c, d, u, v)
    if differentiated(x):
        value = value + _beta_density(c, d, u, v) * _zero(x)
    if differentiated(a):
        value = value + _slope(lambda k: _beta(k, d, u, v), c) * _zero(a)
    if differentiated(b):
        value = value + _slope(lambda k: _beta(c, k, u, v), d) * _zero(b)
    return value


def _beta(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """By the continued fraction, on the side on which it converges, where the library has no function for it."""
    if is_jax(x):
        return _special(x).betainc(a, b, x)
    xp = namespace(x)
    swap = x * (a + b + 2.0) > a + 1.0
    one = xp.ones_like(x)
    p, q = xp.where(swap, b, a), xp.where(swap, a, b)
    z, w = xp.where(swap, rest, x), xp.where(swap, x, rest)
    inside = (z > 0.0) & (w > 0.0)
    z, w = xp.where(inside, z, 0.5 * one), xp.where(inside, w, 0.5 * one)
    front = xp.exp(p * xp.log(z) + q * xp.log(w) - log_beta(p, q)) / p
    tail = xp.where(inside, front * _fraction(p, q, z), 0.0 * one)
    tail = xp.where(x > 0.0, tail, xp.where(swap, one, 0.0 * one))
    return xp.where(swap, 1.0 - tail, tail)


ROUNDS = 10_000  # of the fraction at most; some four times the root of the larger shape are needed


def _fraction(a: Array, b: Array, x: Array) -> Array:
    """Lentz's evaluation of the continued fraction of the incomplete beta function."""
    xp = namespace(x)
    tiny = xp.full_like(x, 1e-300 if "64" in str(x.dtype) else 1e-30)

    def safe(y: Array) -> Array:
        return xp.where(xp.abs(y) < tiny, tiny, y)

    c, d = xp.ones_like(x), 1.0 / safe(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, ROUNDS):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / safe(1.0 + factor * d)
            c = safe(1.0 + factor / c)
            value = value * d * c
        if m % 20 == 0 and bool(xp.all(xp.abs(d * c - 1.0) < 1e-15)):
            break
    return value


def _beta_density(a: Array, b: Array, x: Array, rest: Array) -> Array:
    xp = namespace(x)
    inside = (x > 0.0) & (rest > 0.0)
    u, v = xp.where(inside, x, 0.5 * xp.ones_like(x)), xp.where(inside, rest, 0.5 * xp.ones_like(x))
    value = xp.exp((a - 1.0) * xp.log(u) + (b - 1.0) * xp.log(v) - log_beta(a, b))
    return xp.where(inside, value, xp.zeros_like(value))


def _slope(function: Callable[[Array], Array], shape: Array) -> Array:
    """The derivative of a constant function of a shape."""
    xp = namespace(shape)
    # Distributions change by about one when a shape does by its root, or by itself where it is small.
    step = STEP * xp.minimum(shape, xp.sqrt(shape)) * math.sqrt(2.0)
    total = 0.0 * shape
    for times, weight in SIXTH:
        total = total + weight * (function(shape + times * step) - function(shape - times * step))
    return total / step


def differentiated(x: Array) -> bool:
    """True if a gradient in x may be asked for."""
    return is_traced(x) or is_wrapped(x) or bool(getattr(x, "requires_grad", False))


def _zero(x: Array) -> Array:
    """Zero, with the gradient of x."""
    return x - constant(x)

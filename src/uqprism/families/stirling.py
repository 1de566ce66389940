"""Gamma functions of large numbers by Stirling's formula, whose large terms cancel before they are rounded."""

from __future__ import annotations

import math

from uqprism.arrays import LOG_2PI, Array, namespace
from uqprism.families.elementwise import log, log_gap, where
from uqprism.families.incomplete import digamma


def stirling_error(x: Array) -> Array:
    """log gamma(x + 1) less Stirling's formula, for x > 0: the small part of a difference of large numbers."""
    large = x > 15.0
    small = where(large, 1.0, x)
    z = where(large, x, x + 8.0)
    r = 1.0 / z
    s = r * r
    # The next term is below 2e-14.
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360)))))
    low = (small + 1.0) * (small + 2.0) * (small + 3.0) * (small + 4.0)
    high = (small + 5.0) * (small + 6.0) * (small + 7.0) * (small + 8.0)
    shifted = series + (small + 8.5) * log(small + 8.0) - (small + 0.5) * log(small) - 8.0 - log(low * high)
    return where(large, series, shifted)


def log_beta_power(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """a log(x) + b log(rest) less the logarithm of the beta function, for 0 < x < 1 and rest = 1 - x."""
    xp = namespace(a, b)
    both = a + b
    errors = stirling_error(a) + stirling_error(b) - stirling_error(both)
    at_mean = 0.5 * (xp.log(a) + xp.log(b) - xp.log(both) - LOG_2PI) - errors
    below, above = a / both, b / both
    step = where(below < above, x - below, above - rest)
    return at_mean - a * log_gap(step / below, x / below) - b * log_gap(-step / above, rest / above)


def log_less_digamma(x: Array) -> Array:
    """log(x) - digamma(x), which for large x is a difference of numbers that are nearly equal."""
    xp = namespace(x)
    large = x > 30.0
    r = 1.0 / xp.where(large, x, xp.full_like(x, 30.0))
    s = r * r
    # The next term is below 2e-15 of the first.
    series = r * (0.5 + r * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s / 132)))))
    small = xp.where(large, xp.ones_like(x), x)
    return xp.where(large, series, xp.log(small) - digamma(small))


def log_beta_ratio(a: Array, b: Array) -> Array:
    """The logarithm of B(a + b, a + b) / (B(a, a) B(b, b)) for the beta function B."""
    return _halves(a + b) - _halves(a) - _halves(b)


def _halves(a: Array) -> Array:
    """The logarithm of B(a, a) without its term that is linear in a."""
    return 0.5 * (math.log(2.0) + LOG_2PI - log(a)) + 2.0 * stirling_error(a) - stirling_error(2.0 * a)

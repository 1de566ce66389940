"""Synthetic regression sets with one input, drawn from a seed, and functions for the true distribution of each.

| set | section of the paper | stated by the paper | our choice |
|---|---|---|---|
| `sine` | appendix, Training Objective | a sine with larger noise for x > 0 | every number |
| `two_curves` | appendix, Synthetic Experiment | the conditional distribution, n = 1200 | the region of the inputs |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError

Array = Any
Regions = Sequence[tuple[float, float]]

SINE_REGION = (-3.0, 3.0)  # nearly two periods, half of them noisy
SINE_FREQUENCY = 2.0
SINE_QUIET, SINE_NOISY = 0.1, 0.5  # standard deviations of the noise for x <= 0 and x > 0

TWO_CURVES_REGION = (-4.0, 4.0)  # the mixing weight goes from 0.99 to 0.01


def sine(n: int, seed: int) -> tuple[Array, Array]:
    """Inputs (n, 1), uniform on [-3, 3], and targets (n,): sin(2 x) plus Gaussian noise, five times as large for x > 0."""
    rng = np.random.default_rng(seed)
    x = _uniform(rng, n, [SINE_REGION])
    return x[:, None], sine_mean(x) + sine_scale(x) * rng.standard_normal(n)


def sine_mean(x: Array) -> Array:
    """The expected target at x."""
    return np.sin(SINE_FREQUENCY * np.asarray(x))


def sine_scale(x: Array) -> Array:
    """The standard deviation of the noise at x: 0.1 for x <= 0, 0.5 for x > 0."""
    return np.where(np.asarray(x) > 0.0, SINE_NOISY, SINE_QUIET)


def two_curves(n: int, seed: int, *, regions: Regions = (TWO_CURVES_REGION,)) -> tuple[Array, Array]:
    """Inputs (n, 1) and targets (n,) from a mixture of two noisy curves.

    Args:
        n: the number of points; 1200 in the paper.
        seed: the random seed.
        regions: intervals; the inputs are uniform on their union.
    """
    rng = np.random.default_rng(seed)
    x = _uniform(rng, n, regions)
    weight, (first, second), scale = two_curves_truth(x)
    mean = np.where(rng.random(n) < weight, first, second)
    return x[:, None], mean + scale * rng.standard_normal(n)


def two_curves_truth(x: Array) -> tuple[Array, tuple[Array, Array], Array]:
    """The weight of the first curve, the means of both curves and their common standard deviation, at x.

    weight = 1 / (1 + exp(1.2 x)), means = x/3 + 1.2 sin(0.8 x) and x/3 - 1.2 cos(0.8 x),
    scale = 0.12 + 0.28 (0.5 + 0.5 sin(0.7 x))^2.
    """
    x = np.asarray(x, dtype=np.float64)
    weight = 0.5 - 0.5 * np.tanh(0.6 * x)  # the same function, without overflow
    means = x / 3.0 + 1.2 * np.sin(0.8 * x), x / 3.0 - 1.2 * np.cos(0.8 * x)
    return weight, means, 0.12 + 0.28 * (0.5 + 0.5 * np.sin(0.7 * x)) ** 2


def _uniform(rng: np.random.Generator, n: int, regions: Regions) -> Array:
    """n numbers, uniform on the union of disjoint intervals."""
    low, high = np.asarray(regions, dtype=np.float64).T
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidValueError(f"regions must be intervals (low, high) with low < high, got {list(regions)}")
    ends = np.cumsum(high - low)
    along = rng.uniform(0.0, ends[-1], n)
    which = np.searchsorted(ends, along, side="right").clip(max=len(ends) - 1)
    return high[which] - (ends[which] - along)

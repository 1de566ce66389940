"""Levels of quantiles: several at a time, and those of random draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from uqprism.arrays import Array, expand, from_numpy
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError

Seed: TypeAlias = "int | np.random.Generator | None"  # a text, since looking up `np.random` loads it
Quantile = Callable[[Any, Array], Array]


def several_levels(quantile: Quantile) -> Quantile:
    """Let a method `quantile` take several levels, a list or an array with one axis, as the first axis of its result."""

    @wraps(quantile)
    def of_levels(self: Any, level: Array) -> Array:
        if isinstance(level, list | tuple | int | float):
            _check(np.asarray(level, dtype=np.float64))
        if isinstance(level, list | tuple | np.ndarray):
            level = from_numpy(np.asarray(level, dtype=np.float64), self.arrays()[0])
        return quantile(self, expand(level, 1, len(self.batch_shape)) if getattr(level, "ndim", 0) == 1 else level)

    return of_levels


def _check(levels: np.ndarray[Any, Any]) -> None:
    if levels.ndim > 1:
        raise ShapeError(f"level must be a number or a list of numbers, got nested lists of shape {levels.shape}")
    bad = ~((levels >= 0.0) & (levels <= 1.0))
    if bad.any():
        raise InvalidValueError(
            f"level must be a probability from 0 to 1, got {float(levels[bad].flat[0]):g}; divide percentages by 100"
        )


def count_of(n: object) -> int:
    """How many draws are asked for.

    Raises:
        ArgumentError: no whole number above zero.
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise ArgumentError(f"n must be the number of draws, at least 1, got {n!r}")
    return int(n)


def random_levels(shape: tuple[int, ...], seed: Seed, like: Array) -> Array:
    """Uniform levels strictly between 0 and 1, where no quantile is infinite, in the library and precision of `like`."""
    precision = np.finfo(np.float32 if "32" in str(like.dtype) else np.float64)
    levels = np.random.default_rng(seed).random(shape)
    return from_numpy(np.clip(levels, precision.tiny, 1.0 - precision.epsneg), like)

"""Rows to learn from, to stop on and to test on: drawn without replacement from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.paper.data.dataset import Dataset, Samples

Array = Any


def split(name: str, samples: Samples, seed: int, test_fraction: float, validation_fraction: float) -> Dataset:
    """The rows in random order, cut into test, validation and training rows; both fractions are of all rows."""
    test, validation, train = parts(len(samples), seed, test_fraction, validation_fraction)
    return Dataset(name, train=samples.take(train), validation=samples.take(validation), test=samples.take(test))


def parts(count: int, seed: int, *fractions: float) -> list[Array]:
    """Row numbers 0 to count-1 in random order, cut into a part per fraction and one of what is left; none may be empty."""
    if not all(0.0 < fraction < 1.0 for fraction in fractions) or sum(fractions) >= 1.0:
        raise InvalidValueError(f"fractions must lie between 0 and 1 and leave rows to train on, got {fractions}")
    ends = np.cumsum([round(fraction * count) for fraction in fractions])
    pieces = np.split(np.random.default_rng(seed).permutation(count), ends)
    if not all(len(piece) for piece in pieces):
        raise InvalidValueError(f"{count} rows cannot be split into parts of {fractions} and the rest: one would be empty")
    return pieces

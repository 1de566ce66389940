"""What predictions cost now: what the models expect, corrected by what was found where outcomes are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

COVERED = 1.96  # standard errors to each side, for 95 %
FEWEST = 20  # labelled rows that a correction needs


@dataclass(frozen=True)
class Estimate:
    """A mean penalty with the ends of its 95 % interval.

    Attributes:
        value: the estimate.
        low: the lower end.
        high: the upper end.
        corrected: whether labelled rows of the reference corrected it; otherwise it is what the models expect.
    """

    value: float
    low: float
    high: float
    corrected: bool


@dataclass(frozen=True)
class Correction:
    """What predictions cost, as a multiple of what the models expect, from rows whose outcomes are known.

    The interval contains the error of the factor, and the chance of the outcomes of the new rows. It takes for granted that the
    factor is still that of the reference.

    Attributes:
        factor: mean penalty over mean expectation.
        error: its standard error.
        residual: the standard deviation of penalties about the corrected expectation.
        rows: how many rows it is from; without any the factor is one.
    """

    factor: float = 1.0
    error: float = 0.0
    residual: float = 0.0
    rows: int = 0

    @classmethod
    def of(cls, expected: np.ndarray, penalty: np.ndarray) -> Correction:
        """From expectations and penalties of rows, NaN where an outcome is not known."""
        known = np.isfinite(penalty) & np.isfinite(expected)
        count = int(known.sum())
        if count < FEWEST:
            return cls()
        expected, penalty = expected[known], penalty[known]
        mean = float(expected.mean())
        factor = float(penalty.mean()) / mean if mean else 1.0
        residual = float((penalty - factor * expected).std(ddof=1))
        return cls(factor, residual / math.sqrt(count) / abs(mean) if mean else 0.0, residual, count)

    def estimate(self, expected: np.ndarray) -> Estimate:
        """The mean penalty of rows with these expectations."""
        mean, count = float(expected.mean()), len(expected)
        residual = self.residual if self.rows else float(expected.std())
        half = COVERED * math.hypot(self.error * mean, residual / math.sqrt(count))
        value = self.factor * mean
        return Estimate(value, value - half, value + half, self.rows > 0)

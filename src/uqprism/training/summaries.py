"""What the estimators say of their predictions: quantiles, and how much of the CRPS they save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.arrays import Array, from_numpy, namespace, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate

ENTROPY = "crps.bayes.mixture"
Floats = np.ndarray[Any, np.dtype[np.float64]]


def quantiles(prediction: EnsemblePrediction, levels: Sequence[float]) -> Array:
    """The quantiles of the mixture of all members, (rows, levels)."""
    found = [float(level) for level in np.atleast_1d(np.asarray(levels, dtype=np.float64))]
    if not found or not all(0.0 < level < 1.0 for level in found):
        raise ArgumentError(f"levels must be probabilities between 0 and 1, got {levels!r}")
    mixture = prediction.mixture
    values = [mixture.quantile(level) for level in found]
    return namespace(values[0]).stack(values, axis=-1)


def crps_skill(prediction: EnsemblePrediction, targets: Any, weights: Any = None) -> float:
    """The share of the CRPS of the targets' own distribution that the mixture of all members saves."""
    y = to_numpy(targets).astype(np.float64).reshape(-1)
    w = np.ones(len(y)) if weights is None else to_numpy(weights).astype(np.float64)
    if len(y) != prediction.points_shape[0]:
        raise ShapeError(f"y must have one number per row, got {len(y)} for {prediction.points_shape[0]} rows")
    if (bad := np.flatnonzero(~np.isfinite(y))).size:
        raise InvalidValueError(f"y must be finite: {len(bad)} of {len(y)} rows hold NaN or infinity, the first is row {bad[0]}")
    mixture = prediction.mixture
    distance = mixture.absolute_deviation(from_numpy(y, mixture.centre))
    # Half the distance between two draws, from the kernels: pairs of components would take much memory.
    achieved = float(np.average(to_numpy(distance - evaluate(prediction, [ENTROPY])[ENTROPY]), weights=w))
    reference = _own_crps(y, w)
    # Of targets that are all the same there is nothing to save.
    return 1.0 - achieved / reference if reference > 0.0 else float(achieved == 0.0)


def _own_crps(y: Floats, weights: Floats) -> float:
    """The mean CRPS of the targets' own distribution: half the mean distance between two of them."""
    order = np.argsort(y)
    gaps, below = np.diff(y[order]), np.cumsum(weights[order] / weights.sum())[:-1]
    return float(np.sum(gaps * below * (1.0 - below)))

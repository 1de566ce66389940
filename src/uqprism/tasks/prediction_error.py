"""The error of an ensemble at each point, which selective prediction ranks against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from uqprism.arrays import Array, from_numpy, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.registry import unknown
from uqprism.rules import Log
from uqprism.tasks.scores import with_targets

Kind = Literal["squared", "absolute", "nll", "crps"]
PAIRS_AT_ONCE = 1 << 22  # the CRPS of a mixture needs all pairs of members
HALF_SPREAD = "crps.bayes.mixture"  # half the mean distance between two draws; there is a fused kernel for it

ERRORS: dict[str, Callable[[EnsemblePrediction, Array], Array]] = {
    "squared": lambda ensemble, y: (ensemble.mixture.mean - y) ** 2,
    "absolute": lambda ensemble, y: abs(ensemble.mixture.mean - y),
    "nll": lambda ensemble, y: Log().score(ensemble.mixture, y),
    # E|X - y| - E|X - X'| / 2 (Gneiting and Raftery 2007).
    "crps": lambda ensemble, y: ensemble.mixture.absolute_deviation(y) - evaluate(ensemble, HALF_SPREAD)[HALF_SPREAD],
}


def prediction_error(ensemble: EnsemblePrediction, target: Array, kind: Kind = "squared") -> np.ndarray:
    """The error of the ensemble at every point, (points,), as a NumPy array.

    Args:
        ensemble: the predictions.
        target: the observed values, in the shape of the points.
        kind: `squared` or `absolute` error of the mixture's mean; `nll` or `crps`, the log score or the CRPS of the mixture.
    """
    flat, y = with_targets(ensemble, target)
    if kind not in get_args(Kind):
        raise unknown("kind of error", kind, get_args(Kind))
    step = max(1, PAIRS_AT_ONCE // flat.n_members**2)
    found = []
    for start in range(0, len(y), step):
        part = flat[start : start + step]
        here = from_numpy(y[start : start + step], part.members.mean)
        found.append(to_numpy(ERRORS[kind](part, here)))
    return np.concatenate(found).astype(np.float64, copy=False)

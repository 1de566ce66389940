"""What of a score counts when points are drawn by it: its value, how far it is from the mean, or only its rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np

from uqprism.registry import unknown
from uqprism.tasks.active_learning.ranks import tied_ranks

Scaling = Literal["raw", "standardised", "rank"]


def raw(scores: np.ndarray) -> np.ndarray:
    """The scores as they are: in their own units, which softmax then takes for log chances."""
    return scores


def standardised(scores: np.ndarray) -> np.ndarray:
    """Standard deviations above the mean of the pool; zeros where all scores are equal."""
    # In units of the largest score: squares of large or small ones would leave double precision.
    size = np.abs(scores).max(initial=0.0)
    scores = scores / size if size > 0.0 else scores
    deviation = scores - scores.mean()
    # The mean of equal numbers may be off by a rounding, which must not be blown up to a standard deviation.
    return deviation / deviation.std() if np.ptp(scores) > 0.0 else np.zeros_like(scores)


def rank(scores: np.ndarray) -> np.ndarray:
    """Minus the log of the rank from the top, ties averaged: as log weights, the n-th best counts 1/n of the best.

    This is softrank acquisition (Kirsch et al. 2023); no change of units, nor any other increasing function, moves it.
    """
    return -np.log(tied_ranks(-scores))


SCALINGS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"raw": raw, "standardised": standardised, "rank": rank}


def scaled(scores: np.ndarray, scaling: Scaling) -> np.ndarray:
    """The scores (points,) by `raw`, `standardised` or `rank`."""
    if scaling not in get_args(Scaling):
        raise unknown("scaling of scores", scaling, SCALINGS)
    return SCALINGS[scaling](scores)

"""Which points a batch is made of, given a score for each: drawn by softmax, the highest, or spread out among the highest."""

from __future__ import annotations

from typing import Literal

import numpy as np

Selection = Literal["softmax", "top", "diverse"]
SELECTIONS: tuple[Selection, ...] = ("softmax", "top", "diverse")
SHORTLIST = 5  # times the batch: from how many of the highest scores a diverse batch is chosen
ROWS_AT_ONCE = 1024  # of labelled points whose distances to the shortlist are in memory together


def gumbel_top_k(log_weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of k points drawn without replacement, in the order drawn, each time with chances in proportion to the weights.

    The k largest of log weight plus independent Gumbel noise are distributed exactly so (Yellott 1977; Kool et al. 2019). No
    weight is ever computed, so none underflows, and log weights may be negative, huge, or far apart.
    """
    noise = rng.gumbel(size=len(log_weights))
    # Next to a huge log weight the noise is rounded away: from the largest one down, and by noise alone where keys are equal.
    with np.errstate(over="ignore"):
        keys = (log_weights - np.max(log_weights, initial=-np.inf)) + noise
    return np.lexsort((noise, keys))[::-1][:k]


def softmax(scores: np.ndarray, count: int, rng: np.random.Generator, temperature: float = 1.0) -> np.ndarray:
    """Positions of a batch drawn without replacement in proportion to exp(score / temperature), in the order drawn.

    A high temperature makes all points equally likely; towards zero the highest scores are taken.
    """
    with np.errstate(over="ignore"):  # infinitely less likely than the highest: never before it
        return gumbel_top_k((scores - scores.max()) / temperature, count, rng)


def top(scores: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of the highest scores, the highest first; equal scores in random order."""
    return np.lexsort((rng.random(len(scores)), scores))[::-1][:count]


def diverse(
    scores: np.ndarray, count: int, rng: np.random.Generator, *, candidates: np.ndarray, labelled: np.ndarray
) -> np.ndarray:
    """Positions of a batch that is spread out: of the highest scores, each time the point farthest from all labelled or picked.

    Args:
        scores: (points,).
        count: points in the batch; the shortlist is five times as long.
        rng: breaks ties at the end of the shortlist.
        candidates: features of the points, (points, d), in units in which distances mean something.
        labelled: those of the points that are labelled already, (n, d).
    """
    shortlist = top(scores, SHORTLIST * count, rng)
    features = candidates[shortlist]
    distance = _to_nearest(features, labelled)
    picked = []
    for _ in range(count):
        best = int(np.argmax(distance))  # of equal distances the first: the highest score
        picked.append(shortlist[best])
        distance = np.minimum(distance, _squared_distance(features, features[[best]])[:, 0])
        distance[best] = -np.inf
    return np.array(picked, dtype=np.int64)


def _to_nearest(features: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The squared distance of each row to the nearest of the others."""
    nearest = np.full(len(features), np.inf)
    for start in range(0, len(others), ROWS_AT_ONCE):
        nearest = np.minimum(nearest, _squared_distance(features, others[start : start + ROWS_AT_ONCE]).min(axis=1))
    return nearest


def _squared_distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Between all rows, (len(first), len(second)); rounded away from zero at most by rounding, never negative."""
    sizes = (first * first).sum(axis=1)[:, None] + (second * second).sum(axis=1)
    return np.maximum(sizes - 2.0 * first @ second.T, 0.0)


def in_standard_units(features: np.ndarray) -> np.ndarray:
    """Each feature (points, d) with mean zero and standard deviation one; constant ones are zero."""
    centred = features - features.mean(axis=0)
    scale = centred.std(axis=0)
    return np.where(np.ptp(features, axis=0) > 0.0, centred / np.where(scale > 0.0, scale, 1.0), 0.0)

"""How points are picked: an acquisition scores them, the scores are scaled, and a batch is drawn or taken by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from uqprism.arrays import Array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.measures import Measure, MeasureTable
from uqprism.registry import unknown
from uqprism.tasks.active_learning.models import ADVICE, described
from uqprism.tasks.resampling import tied_ranks

AcquisitionLike = str | Measure | Callable[[EnsemblePrediction], Array]
RANDOM = "random"


@dataclass(frozen=True)
class Acquisition:
    """One of three: a measure, a function (ensemble) -> scores (points,), or neither, which is chance."""

    name: str
    measure: Measure | None = None
    function: Callable[[EnsemblePrediction], Array] | None = None

    @classmethod
    def of(cls, acquisition: Any, name: str | None = None) -> Acquisition:
        """Resolve what the user gave; an unknown name suggests the nearest."""
        if isinstance(acquisition, Acquisition):
            return acquisition
        if isinstance(acquisition, str) and acquisition.lower() == RANDOM:
            return cls(name or RANDOM)
        if isinstance(acquisition, str | Measure):
            measure = as_measure(acquisition)
            return cls(name or measure.name, measure)
        if callable(acquisition) and not isinstance(acquisition, type):
            return cls(name or str(getattr(acquisition, "__name__", type(acquisition).__name__)), function=acquisition)
        raise ArgumentError(
            "acquisition must be the name of a measure, a Measure, 'random' or a function (ensemble) -> scores, "
            f"got {acquisition!r}"
        )

    @property
    def is_random(self) -> bool:
        """Whether chance alone decides."""
        return self.measure is None and self.function is None

    @property
    def description(self) -> str:
        """A description that is compared when a loop is resumed; functions by their name."""
        if self.measure is not None:
            return measure_description(self.measure)
        return RANDOM if self.function is None else described(self.function)

    def assess(self, ensemble: EnsemblePrediction, more: Sequence[Measure]) -> tuple[np.ndarray, MeasureTable]:
        """Scores (points,), the higher the sooner to be picked, and a table of this and more measures."""
        wanted = [*([] if self.measure is None else [self.measure]), *more]
        table = _as_numpy(evaluate(ensemble, wanted)) if wanted else MeasureTable({}, {})
        if self.function is not None:
            scores = to_numpy(self.function(ensemble))
        else:
            scores = np.zeros(ensemble.n_points) if self.measure is None else table[self.measure]
        return self._checked(scores, ensemble), table

    def _checked(self, scores: np.ndarray, ensemble: EnsemblePrediction) -> np.ndarray:
        if scores.shape != (ensemble.n_points,):
            raise ShapeError(
                f"acquisition {self.name!r} must return one score for each of {ensemble.n_points} points, "
                f"got shape {scores.shape}"
            )
        scores = scores.astype(np.float64)
        bad = ~np.isfinite(scores)
        if bad.any():
            raise InvalidValueError(
                f"acquisition {self.name!r} must give finite scores, got {scores[bad.argmax()]} for {int(bad.sum())} of "
                f"{len(scores)} points; for points that are not to be picked, return a low number"
            )
        excess = self.measure is not None and self.measure.risk == "excess"
        if excess and ensemble.n_members == 1 and not scores.any():
            raise InvalidValueError(
                f"acquisition {self.name!r} is zero for every point, because the model has one member, which agrees with itself. "
                f"{ADVICE}"
            )
        return scores


def as_measure(measure: str | Measure) -> Measure:
    """The measure of this name, or itself, with its rule known to exist."""
    if isinstance(measure, str):
        return Measure.parse(measure)
    if isinstance(measure, Measure):
        measure.resolved()  # raises an error for an unknown rule
        return measure
    raise ArgumentError(f"measures must be names or Measures, got {measure!r}; catalogue() lists them")


def measure_description(measure: Measure) -> str:
    """Its name, and the settings of its rule if it has any."""
    settings = {key: value for key, value in sorted(vars(measure.resolved()).items()) if key != "name"}
    return f"{measure.name} {settings}" if settings else measure.name


def _as_numpy(table: MeasureTable) -> MeasureTable:
    values: dict[str, Any] = {name: to_numpy(column) for name, column in table.items()}
    return MeasureTable(values, table.exactness, table.measures)


# Scaling of scores ---

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


# Batches ---

Picking = Literal["softmax", "top", "diverse"]
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
        distance[best] = -np.inf  # not picked again, even if all others are at distance zero
    return np.array(picked, dtype=np.int64)


def _to_nearest(features: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The squared distance of each row to the nearest of the others."""
    nearest = np.full(len(features), np.inf)
    for start in range(0, len(others), ROWS_AT_ONCE):
        nearest = np.minimum(nearest, _squared_distance(features, others[start : start + ROWS_AT_ONCE]).min(axis=1))
    return nearest


def _squared_distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Between all rows, (len(first), len(second)); never negative, though equal rows may be a rounding error apart."""
    # By a matrix product, because all differences (rows, rows, d) would fill the memory.
    sizes = (first * first).sum(axis=1)[:, None] + (second * second).sum(axis=1)
    return np.maximum(sizes - 2.0 * first @ second.T, 0.0)

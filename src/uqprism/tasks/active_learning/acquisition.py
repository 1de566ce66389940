"""What decides which points to label next: a measure, a function of the ensemble, or chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import Array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.evaluation import evaluate
from uqprism.measures import Measure, MeasureTable
from uqprism.tasks.active_learning.models import ADVICE, described

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
        """What tells this from another acquisition, as far as that can be told; functions by their name."""
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
        measure.resolved()
        return measure
    raise ArgumentError(f"measures must be names or Measures, got {measure!r}; catalogue() lists them")


def measure_description(measure: Measure) -> str:
    """Its name, and the settings of its rule if it has any."""
    settings = {key: value for key, value in sorted(vars(measure.resolved()).items()) if key != "name"}
    return f"{measure.name} {settings}" if settings else measure.name


def _as_numpy(table: MeasureTable) -> MeasureTable:
    values: dict[str, Any] = {name: to_numpy(column) for name, column in table.items()}
    return MeasureTable(values, table.exactness, table.measures)

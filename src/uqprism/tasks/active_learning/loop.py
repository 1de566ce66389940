"""One loop of active learning, round by round: what a learner iterates over, and what a comparison runs many of in lockstep."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.tasks.active_learning.models import Fit, predict
from uqprism.tasks.active_learning.pool import Pool, take
from uqprism.tasks.active_learning.records import Records
from uqprism.tasks.active_learning.settings import Settings
from uqprism.tasks.active_learning.state import LearningState
from uqprism.tasks.prediction_error import Kind, prediction_error

if TYPE_CHECKING:
    import numpy as np

MetricName = Literal["nll", "rmse", "crps"]
Keep = Literal["all", "picks"]
ERRORS: dict[MetricName, Kind] = {"nll": "nll", "rmse": "squared", "crps": "crps"}  # that each is the mean, or its root, of


@dataclass(frozen=True, eq=False)
class Examined:
    """A fitted model, what it says about the rest of the pool, and how well it does on the test set."""

    model: Any
    labelled: np.ndarray
    rest: np.ndarray
    ensemble: EnsemblePrediction
    metrics: dict[str, float]

    @classmethod
    def of(cls, model: Any, pool: Pool, labelled: np.ndarray) -> Examined:
        """Look at the test set and at the points that the model was not trained on."""
        rest = pool.others(labelled)
        return cls(model, labelled, rest, predict(model, take(pool.inputs, rest)), _metrics(model, pool))


@dataclass(frozen=True, eq=False)
class Loop:
    """Settings, data, and a place for finished rounds."""

    pool: Pool
    settings: Settings
    records: Records | None

    @classmethod
    def of(cls, fit: Fit, pool: Pool, settings: Settings, folder: str | os.PathLike[str] | None, keep: Keep = "all") -> Loop:
        """A loop whose folder, if there is one, is its own."""
        if folder is None:
            return cls(pool, settings, None)
        kept = {} if keep == "all" else {"keep": keep}
        about = {**fit.record, **settings.record(), **pool.fingerprint, **kept}
        records = Records(Path(folder), about, whole=keep == "all")
        records.check()
        return cls(pool, settings, records)

    def open(self) -> np.ndarray:
        """Get ready to run: the indices to start from."""
        if self.records is not None:
            self.records.open()
        return self.settings.start(len(self.pool))

    def replay(self, round_number: int, labelled: np.ndarray) -> LearningState | None:
        """The round as it was when it was run before, or None."""
        return None if self.records is None else self.records.load(round_number, labelled)

    def conclude(self, round_number: int, seen: Examined) -> LearningState:
        """Measure the rest of the pool, pick a batch and keep the round."""
        settings = self.settings
        scores, measures = settings.acquisition.assess(seen.ensemble, settings.measures)
        candidates = labelled = None
        if settings.needs_features:
            features = self.pool.features(settings.features, seen.model)
            candidates, labelled = features[seen.rest], features[seen.labelled]
        picked = seen.rest[settings.pick(round_number, scores, candidates, labelled)]
        state = LearningState(round_number, seen.labelled, seen.rest, scores, measures, picked, seen.metrics)
        if self.records is not None:
            self.records.save(state)
        return state


def _metrics(model: Any, pool: Pool) -> dict[str, float]:
    """The mixture's negative log likelihood, the error of its mean and its CRPS; without a density, no likelihood."""
    if pool.test_targets is None:
        return {}
    ensemble = predict(model, pool.test_inputs)
    found: dict[str, float] = {}
    for name, kind in ERRORS.items():
        try:
            mean = float(prediction_error(ensemble, pool.test_targets, kind).mean())
        except UnsupportedError:
            continue
        found[name] = math.sqrt(mean) if name == "rmse" else mean
    return found

"""`ActiveLearner`: in each round train a model on the labelled points, examine the rest of the pool, and pick a batch of it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.measures import Measure
from uqprism.tasks.active_learning.models import Fit, predict
from uqprism.tasks.active_learning.picking import AcquisitionLike, Picking, Scaling
from uqprism.tasks.active_learning.pool import Features, Pool, take
from uqprism.tasks.active_learning.records import LearningState, Records
from uqprism.tasks.active_learning.settings import LoopSettings
from uqprism.tasks.prediction_error import Kind, prediction_error
from uqprism.tasks.task import Metric

Keep = Literal["all", "picks"]


@dataclass(frozen=True, kw_only=True)
class LearningMetric(Metric):
    """A test error of the mixture.

    Attributes:
        error: whose mean it is.
        root: whether it is the root of that mean.
    """

    error: Kind
    root: bool = False


METRICS = {
    metric.name: metric
    for metric in (
        LearningMetric(name="nll", meaning="negative log-likelihood", error="nll"),
        LearningMetric(name="rmse", meaning="root mean squared error", error="squared", root=True),
        LearningMetric(name="crps", meaning="mean CRPS", error="crps"),
    )
}


class ActiveLearner:
    """Pool-based active learning: iterating yields a `LearningState` for each of `rounds` rounds.

    In each round a model is trained from scratch on the labelled points and scored on the test set; it predicts the rest of
    the pool, from which a batch is picked for the next round. Iterating again starts over with the same result; with a
    `folder`, finished rounds are read instead of computed.

    Args:
        fit: a function (inputs, targets) -> model, or a scikit-learn regressor, which is cloned in each round. A function that
            takes `seed` is given one, another in each round; where a regressor's `random_state` is None, it is set. The model has
            `predict_ensemble(inputs)`, or is one that `up.from_model` understands.
        pool_inputs: all points that may be labelled: an array or tensor (points, ...), a data frame, or a sparse matrix.
        pool_targets: their targets (points,), looked at only when a point is labelled.
        initial: see `LoopSettings`, also for `acquisition`, `batch_size`, `rounds`, `random_state`, `selection`, `temperature`,
            `scores`, `features` and `measures`.
        test: inputs and targets to score each round's model on; None for no metrics.
        folder: where rounds are kept, so that a stopped loop can be resumed; None keeps nothing. A folder with rounds of other
            data or settings is refused. Functions are compared by their names only.

    Attributes:
        labelled: the indices labelled so far, those picked in the latest round included.
        averages: each metric's mean over the rounds so far.
    """

    def __init__(
        self,
        fit: Any,
        pool_inputs: Any,
        pool_targets: Any,
        *,
        initial: int | Sequence[int] | np.ndarray,
        acquisition: AcquisitionLike,
        batch_size: int,
        rounds: int,
        test: tuple[Any, Any] | None = None,
        random_state: int = 0,
        selection: Picking = LoopSettings.selection,
        temperature: float = LoopSettings.temperature,
        scores: Scaling = LoopSettings.scores,
        features: Features | None = None,
        measures: str | Measure | Sequence[str | Measure] = (),
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self._fit = Fit.of(fit)
        pool = Pool.of(pool_inputs, pool_targets, test)
        settings = LoopSettings(
            initial=initial,
            acquisition=acquisition,
            batch_size=batch_size,
            rounds=rounds,
            random_state=random_state,
            selection=selection,
            temperature=temperature,
            scores=scores,
            features=features,
            measures=measures,
        ).for_pool(len(pool))
        self._loop = Loop.of(self._fit, pool, settings, folder)
        self.labelled = settings.start(len(pool))
        self._metrics: list[Mapping[str, float]] = []

    def __iter__(self) -> Iterator[LearningState]:
        labelled = self._loop.open()
        metrics: list[Mapping[str, float]] = []  # a new list: iterating again starts over
        for number in range(len(self)):
            state = self._loop.replay(number, labelled)
            if state is None:
                state = self._run(number, labelled)
            labelled = state.all_labelled
            metrics.append(state.metrics)
            self.labelled, self._metrics = labelled, metrics
            yield state

    def __len__(self) -> int:
        return self._loop.settings.rounds

    @property
    def averages(self) -> dict[str, float]:
        """Each metric's mean over the rounds so far."""
        names = self._metrics[0] if self._metrics else ()
        return {name: float(np.mean([metrics[name] for metrics in self._metrics])) for name in names}

    def _run(self, number: int, labelled: np.ndarray) -> LearningState:
        model = self._fit(self._loop.pool, labelled, self._loop.settings.fit_seed(number))
        return self._loop.conclude(number, Examined.of(model, self._loop.pool, labelled))

    def __repr__(self) -> str:
        settings = self._loop.settings
        return f"<ActiveLearner: {settings.acquisition.name}, {settings.rounds} rounds of {settings.batch_size}>"


@dataclass(frozen=True, eq=False)
class Examined:
    """A fitted model, its predictions for the rest of the pool, and its errors on the test set."""

    model: Any
    labelled: np.ndarray
    rest: np.ndarray
    ensemble: EnsemblePrediction
    metrics: dict[str, float]

    @classmethod
    def of(cls, model: Any, pool: Pool, labelled: np.ndarray) -> Examined:
        """Predict the test set and the points that the model was not trained on."""
        rest = pool.others(labelled)
        return cls(model, labelled, rest, predict(model, take(pool.inputs, rest)), _metrics(model, pool))


@dataclass(frozen=True, eq=False)
class Loop:
    """The data and settings of a loop, and the folder of its finished rounds."""

    pool: Pool
    settings: LoopSettings
    records: Records | None

    @classmethod
    def of(cls, fit: Fit, pool: Pool, settings: LoopSettings, folder: str | os.PathLike[str] | None, keep: Keep = "all") -> Loop:
        """A loop; a folder that holds rounds of another loop is refused."""
        if folder is None:
            return cls(pool, settings, None)
        kept = {} if keep == "all" else {"keep": keep}  # a folder holds one kind of files only
        about = {**fit.record, **settings.record(), **pool.fingerprint, **kept}
        records = Records(Path(folder), about, whole=keep == "all")
        records.check()  # before training: a folder that is refused later would cost a model
        return cls(pool, settings, records)

    def open(self) -> np.ndarray:
        """Prepare the folder and return the indices to start from."""
        if self.records is not None:
            self.records.open()
        return self.settings.start(len(self.pool))

    def replay(self, round_number: int, labelled: np.ndarray) -> LearningState | None:
        """The state of a round that is kept in the folder, or None."""
        return None if self.records is None else self.records.load(round_number, labelled)

    def conclude(self, round_number: int, seen: Examined) -> LearningState:
        """Evaluate the rest of the pool, pick a batch and save the round."""
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
    """Each metric on the test set; a distribution without a density has no likelihood."""
    if pool.test_targets is None:
        return {}
    ensemble = predict(model, pool.test_inputs)
    found: dict[str, float] = {}
    for name, metric in METRICS.items():
        try:
            mean = float(prediction_error(ensemble, pool.test_targets, metric.error).mean())
        except UnsupportedError:
            continue
        found[name] = math.sqrt(mean) if metric.root else mean
    return found

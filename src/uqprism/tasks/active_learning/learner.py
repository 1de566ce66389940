"""`ActiveLearner`: label, learn, look, pick, and again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uqprism.measures import Measure
from uqprism.tasks.active_learning.acquisition import AcquisitionLike
from uqprism.tasks.active_learning.loop import Examined, Loop
from uqprism.tasks.active_learning.models import Fit
from uqprism.tasks.active_learning.pool import Features, Pool
from uqprism.tasks.active_learning.scaling import Scaling
from uqprism.tasks.active_learning.selection import Selection
from uqprism.tasks.active_learning.settings import Settings
from uqprism.tasks.active_learning.state import LearningState


class ActiveLearner:
    """Pool-based active learning: iterating yields a `LearningState` for each of `rounds` rounds.

    In a round a model is trained from scratch on what is labelled, scored on the test set, and asked about the rest of the
    pool, from which a batch is picked for the next round. Iterating again starts anew and gives the same; with a `folder`,
    finished rounds are read, not computed.

    Args:
        fit: a function (inputs, targets) -> model, or a scikit-learn regressor, which is cloned in each round. A function that
            takes `seed` is given one, another in each round; where a regressor's `random_state` is None, it is set. The model has
            `predict_ensemble(inputs)`, or is one that `up.from_model` understands.
        pool_inputs: all points that may be labelled: an array or tensor (points, ...), a data frame, or a sparse matrix.
        pool_targets: their targets (points,), looked at only when a point is labelled.
        initial: how many points to start from, drawn at random, or their indices.
        acquisition: what to pick by: a measure's name or a `Measure`; `random`; or a function (ensemble) -> scores (points,),
            of which the highest are picked first.
        batch_size: points to pick in each round.
        rounds: how many; the last is trained on initial + (rounds - 1) * batch_size points.
        test: inputs and targets to score each round's model on; None for no metrics.
        random_state: an integer, from which all chance here follows.
        selection: `softmax` draws in proportion to exp(score / temperature); `top` takes the highest; `diverse` spreads the
            batch out among the highest, each time taking the point that is farthest from all labelled or picked.
        temperature: of softmax: high ones pick at random, low ones the highest.
        scores: for softmax: `raw`, `standardised` over the pool, or by `rank` alone.
        features: for diverse batches: a function (model, inputs) -> (points, d) that gives what distances are measured in; by
            default the inputs. Both are standardised.
        measures: further measures to keep in each state.
        folder: where rounds are kept, so that a loop that was stopped goes on; None keeps nothing. It is refused if it holds
            rounds of other data or settings. Functions are told apart by their names only.

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
        selection: Selection = "softmax",
        temperature: float = 1.0,
        scores: Scaling = "raw",
        features: Features | None = None,
        measures: str | Measure | Sequence[str | Measure] = (),
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self._fit = Fit.of(fit)
        pool = Pool.of(pool_inputs, pool_targets, test)
        settings = Settings.of(
            len(pool),
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
        )
        self._loop = Loop.of(self._fit, pool, settings, folder)
        self.labelled = settings.start(len(pool))
        self._metrics: list[Mapping[str, float]] = []

    def __iter__(self) -> Iterator[LearningState]:
        labelled = self._loop.open()
        metrics: list[Mapping[str, float]] = []
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

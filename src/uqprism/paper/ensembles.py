"""Train ensembles and store their members, predictions and measures.

    data set -> members -> predictions -> measures

`predict_all` stops at the predictions: only these need a GPU. What follows from them takes seconds on any machine with a copy of
the store.

A training's record is written after its predictions for the test images, into the same folder, so predictions with a record are
complete. Predictions without one were left by a killed run; they are made again, from stored members or by another training.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.measures import MeasureTable, published
from uqprism.paper import data, inputs
from uqprism.paper.data import Dataset
from uqprism.paper.store import Artefact, Bundle, Store
from uqprism.tasks.prediction_error import prediction_error

if TYPE_CHECKING:
    from uqprism.training import DeepEnsemble, History
    from uqprism.training.networks import Factory


Array = Any
TEST = "test"
# The training of every experiment, where it does not say otherwise: written out, as this package's defaults may change.
TRAINING: dict[str, Any] = {
    "head": "natural",
    "n_members": 10,
    "max_epochs": 200,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "schedule": "constant",
    "weight_decay": 0.0,
    "patience": 20,
    "stopping": "member",
    "refit": False,
    "validation_fraction": 0.1,
    "bootstrap": False,
    "max_gradient": None,
}
LARGE = "resnet18"  # half a gigabyte per ensemble, two with the optimiser: neither is stored


@dataclass(frozen=True)
class Training:
    """How an ensemble is trained: Adam on the head's loss, each member with its weights of the best validation epoch.

    Attributes:
        network: `small_cnn` or `resnet18`.
        channels, hidden: widths of the small CNN.
        head: what the outputs mean.
        n_members: networks.
        learning_rate: of Adam.
        batch_size: rows per step.
        max_epochs: at most.
        patience: epochs without a better validation loss after which a member stops.
    """

    network: str = "small_cnn"
    channels: tuple[int, int, int] = (16, 32, 64)
    hidden: int = 128
    head: str = "natural"
    n_members: int = 10
    learning_rate: float = 1e-3
    batch_size: int = 64
    max_epochs: int = 100
    patience: int = 10

    def architecture(self) -> Factory:
        """A factory of the networks."""
        from uqprism.training import ResNet18, SmallCNN

        return ResNet18() if self.network == LARGE else SmallCNN(channels=self.channels, hidden=self.hidden)


@dataclass(frozen=True)
class EnsembleSpec:
    """Everything that decides an ensemble.

    Attributes:
        data: name of the data set.
        seed: of the data and of the networks.
        training: how the networks are trained.
        options: of the data set, such as its sizes.
        constants: of the data set's module, so that a changed generator gives another ensemble.
    """

    data: str
    seed: int
    training: Training
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constants", data.constants(self.data))

    @property
    def members(self) -> Artefact:
        """The trained networks."""
        return Artefact("members", self)

    def predictions(self, what: str = TEST) -> Artefact:
        """Predictions for the test images, or for other images of this name."""
        return Artefact("predictions", what, (self.members,))

    @property
    def measures(self) -> Artefact:
        """The measures of the test images."""
        return Artefact("measures", "columns of the paper's tables", (self.predictions(),))

    @property
    def record(self) -> Artefact:
        """The course of training, and the targets of the test images."""
        return Artefact("bundle", "record", (self.members,))


class StoredEnsemble:
    """An ensemble and what follows from it, read from the store; loads and trains only what is missing."""

    def __init__(self, fit: EnsembleSpec, store: Store) -> None:
        self.fit, self.store = fit, store

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        return inputs.load(self.store, self.fit.data, seed=self.fit.seed, **self.fit.options)

    @cached_property
    def ensemble(self) -> DeepEnsemble:
        """The networks."""
        how, train, validation = self.fit.training, self.data.train, self.data.validation
        settings: Any = {
            "validation": (validation.inputs, validation.targets),
            "network": how.architecture(),
            "seed": self.fit.seed,
            **{
                name: getattr(how, name)
                for name in ("head", "n_members", "learning_rate", "batch_size", "max_epochs", "patience")
            },
        }
        if how.network == LARGE:
            return trained_now(train.inputs, train.targets, **settings)
        return trained(self.store, self.fit.members, train.inputs, train.targets, **settings)

    def predictions(self, what: str = TEST, inputs: Callable[[], Array] | None = None) -> EnsemblePrediction:
        """Predictions for the test images, or for the images that `inputs` returns."""
        if inputs is None:
            return self._finished().get(self.fit.predictions(what))
        return self.store.get(self.fit.predictions(what), lambda: self._predicted(inputs()))

    def _predicted(self, images: Array) -> EnsemblePrediction:
        """Predictions of the networks, which are trained first if they are not stored.

        Runs with one thread: the last digits of convolutions depend on the number of threads, and results must not depend on
        the number of processes.
        """
        from uqprism.training.device import torch_threads

        with torch_threads(1):
            return self.ensemble.predict_ensemble(images)

    def record(self) -> Bundle:
        """The course of training, the checksum of the data, and the array `targets` of the test images."""
        return self._finished().get(self.fit.record)

    def _finished(self) -> Store:
        """The store that has both the predictions and the record of one training; trains first if there is none."""
        predictions, record = self.fit.predictions(), self.fit.record
        if (there := self.store.having(predictions, record)) is not None:
            return there
        for earlier in (record, self.fit.measures, predictions):  # left by another training; the record first
            self.store.discard(earlier)
        # Not `get`, which would take those of another run, and so of another training.
        self.store.make(predictions, lambda: self._predicted(self.data.test.inputs))
        self.store.make(record, lambda: self._recorded(self.store.get(predictions)))
        return self._finished()

    def _recorded(self, predictions: EnsemblePrediction) -> Bundle:
        history, targets = self.ensemble.history, self.data.test.targets
        error = prediction_error(predictions, targets)
        return Bundle(
            data={
                "data": self.data.checksum(),  # keys name a data set, not the contents of its files
                "member seeds": list(history.seeds),
                "best epochs": list(history.best_epochs),
                "epochs": len(history.validation_loss),
                "restarts": sum(event.kind == "restarted" for event in history.events),
                "error": float(np.sqrt(error.mean())),
                "spread of targets": float(targets.std()),
                "spread of validation targets": float(self.data.validation.targets.std()),
                "spread of training targets": float(self.data.train.targets.std()),
            },
            arrays={"targets": targets, "validation_loss": history.validation_loss},
        )

    def measures(self) -> MeasureTable:
        """The measures of the test images."""
        there, wanted = self._finished(), self.fit.measures
        store = there if wanted in there else replace(self.store, others=())  # measures of another run are of another training
        return store.get(wanted, lambda: measured(self.predictions()))


def measured(predictions: EnsemblePrediction) -> MeasureTable:
    """Evaluate the measures that have a column in the paper's tables."""
    return evaluate(predictions, measures=published.measures())


def predict_all(fits: Iterable[EnsembleSpec], store: Store, others: Callable[[StoredEnsemble], Any] = lambda _: None) -> None:
    """Train and predict what is not in the store yet; `others` may predict for further images."""
    for fit in fits:
        fitted = StoredEnsemble(fit, store)
        fitted.record()
        others(fitted)


def trained(store: Store, members: Artefact, inputs: Any, targets: Any, **settings: Any) -> DeepEnsemble:
    """The ensemble from the store, or trained now with checkpoints: `uqprism.training.train` with these settings.

    The key and the sources of `members` must decide the settings and the rows. Restarts of diverged members do not warn: they are
    in the ensemble's history.
    """
    given = {**settings, "checkpoint": store.unfinished(members)}
    return store.get(members, lambda: trained_now(inputs, targets, **given))


def trained_now(inputs: Any, targets: Any, **settings: Any) -> DeepEnsemble:
    """Train without a store, for members that are too large to keep."""
    from uqprism.training import TrainingWarning, train

    with warnings.catch_warnings():
        # Restarts are in the history, and counted in the results.
        warnings.simplefilter("ignore", TrainingWarning)
        ensemble = train(inputs, targets, **{**TRAINING, **settings, "progress": False})  # the bar of a run counts jobs
    refuse_interrupted([ensemble.history])
    return ensemble


def refuse_interrupted(histories: Iterable[History]) -> None:
    """Raise `KeyboardInterrupt` if a training was interrupted: the trainer then returns its networks so far."""
    if any(event.kind == "interrupted" for history in histories for event in history.events):
        raise KeyboardInterrupt

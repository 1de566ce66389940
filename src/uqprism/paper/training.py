"""Trainings that are kept in a store and go on from their checkpoints."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from uqprism.paper.artefacts import Artefact, Store

if TYPE_CHECKING:
    from uqprism.training import DeepEnsemble, History


def trained(store: Store, members: Artefact, inputs: Any, targets: Any, **settings: Any) -> DeepEnsemble:
    """The ensemble from the store, or trained now, with checkpoints: `uqprism.training.train` with these settings.

    The settings and what the rows are must be in the key and the sources of `members`. Restarts of diverged members are no
    warnings here: they stand in the ensemble's history.
    """
    given = {**settings, "checkpoint": store.unfinished(members)}
    return store.get(members, lambda: trained_now(inputs, targets, **given))


def trained_now(inputs: Any, targets: Any, **settings: Any) -> DeepEnsemble:
    """The same without a store, for members that are too large to keep."""
    from uqprism.training import TrainingWarning, train

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        ensemble = train(inputs, targets, **{**settings, "progress": False})
    refuse_interrupted([ensemble.history])
    return ensemble


def refuse_interrupted(histories: Iterable[History]) -> None:
    """Ctrl-C makes the trainer return what it has so far; half a training is no result, so the interruption goes on."""
    if any(event.kind == "interrupted" for history in histories for event in history.events):
        raise KeyboardInterrupt

"""Anything that can be fitted, as one function of data and seed; anything that predicts, as an `EnsemblePrediction`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.adapters import from_model
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ShapeError, UnsupportedError
from uqprism.support.optional import require
from uqprism.tasks.active_learning.pool import Pool

ADVICE = (
    "Active learning needs members that disagree: take a RandomForestRegressor, a GaussianProcessRegressor, "
    "sklearn.ensemble.BaggingRegressor(BayesianRidge()) or another bag of models that predict a standard deviation "
    "(a bag of trees does; a bag of Ridge does not), up.DeepEnsembleRegressor, or a model of your own with "
    "predict_ensemble(inputs)"
)
IRRELEVANT = ("n_jobs", "verbose", "progress")  # parameters that do not change what is fitted


@dataclass(frozen=True, eq=False)
class Fit:
    """A function that fits models.

    Attributes:
        given: the user's function or estimator.
        one: (inputs, targets, seed) -> a fitted model.
    """

    given: Any
    one: Callable[[Any, Any, int], Any]

    def __call__(self, pool: Pool, rows: np.ndarray, seed: int) -> Any:
        """A model fitted to these rows."""
        return _finished(self.one(*pool.rows(rows), seed))

    @classmethod
    def of(cls, fit: Any) -> Fit:
        """A scikit-learn regressor is cloned each time; a function is called, with `seed=` if it takes one."""
        if isinstance(fit, type):
            raise ArgumentError(f"fit must be a regressor or a function, got the class {fit.__name__}; pass {fit.__name__}()")
        if hasattr(fit, "fit") and hasattr(fit, "get_params"):
            return cls(fit, functools.partial(_fit_alone if hasattr(fit, "many") else _fit_clone, fit))
        if not callable(fit):
            raise ArgumentError(
                f"fit must be a function (inputs, targets) -> model, or a scikit-learn regressor, got {type(fit).__name__}"
            )
        if _takes_seed(fit):
            return cls(fit, lambda inputs, targets, seed: fit(inputs, targets, seed=seed))
        return cls(fit, lambda inputs, targets, _: fit(inputs, targets))

    @property
    def together(self) -> bool:
        """Whether models of several training sets are trained in one call."""
        return hasattr(self.given, "many")

    def many(self, pool: Pool, rows: Sequence[np.ndarray], seeds: Sequence[int]) -> Iterator[Any]:
        """A model for each training set: all in one call where `fit` has a method `many`, else one after the other."""
        if not rows:
            return
        if not self.together:
            for each, seed in zip(rows, seeds, strict=True):
                yield self(pool, each, seed)  # one at a time, so that a model can be used and dropped before the next is trained
            return
        models = list(self.given.many(pool.inputs, pool.targets, np.stack(rows), list(seeds)))
        if len(models) != len(rows):
            raise ShapeError(f"fit.many must return one model for each of {len(rows)} experiments, got {len(models)}")
        yield from map(_finished, models)

    @functools.cached_property
    def record(self) -> dict[str, Any]:
        """A description that is compared when a loop is resumed: functions by their name, models by their parameters."""
        if not hasattr(self.given, "get_params"):
            return {"fit": described(self.given)}
        parameters = {
            name: type(value).__qualname__ if hasattr(value, "get_params") else _shown(value)
            for name, value in sorted(self.given.get_params(deep=True).items())
            if name.split("__")[-1] not in IRRELEVANT
        }
        return {"fit": type(self.given).__qualname__, "fit parameters": parameters}


def predict(model: Any, inputs: Any) -> EnsemblePrediction:
    """The model's own ensemble, or that of `from_model` makes of it."""
    try:
        ensemble = from_model(model, inputs)
    except UnsupportedError as error:
        raise UnsupportedError(f"fit gave a {type(model).__name__}: {error}. {ADVICE}") from None
    if not isinstance(ensemble, EnsemblePrediction):
        raise ArgumentError(f"predict_ensemble must return an EnsemblePrediction, got {type(ensemble).__name__}; build one first")
    rows = int(inputs.shape[0])  # sparse matrices have no length
    if ensemble.points_shape != (rows,):
        raise ShapeError(f"predict_ensemble must predict one point for each of {rows} rows, got {ensemble.points_shape}")
    return ensemble


def _finished(model: Any) -> Any:
    """The model, unless Ctrl-C ended its training: this package's trainer then keeps what it has, which is no round's result."""
    inner = model
    for name in ("best_estimator_", "_final_estimator", "ensemble_"):
        inner = getattr(inner, name, inner)
    events = getattr(getattr(inner, "history", None), "events", ())
    if any(getattr(event, "kind", None) == "interrupted" for event in events):
        raise KeyboardInterrupt("training was interrupted; finished rounds are kept")
    return model


def _fit_alone(estimator: Any, inputs: Any, targets: Any, seed: int) -> Any:
    """A fresh copy of an estimator that can be trained in a stack, fitted as it is there."""
    return estimator.many(inputs, targets, np.arange(len(targets))[None], [seed])[0]


def _fit_clone(estimator: Any, inputs: Any, targets: Any, seed: int) -> Any:
    """A fresh copy, fitted; where it would draw from a generator without a seed, it gets one."""
    model = require("sklearn.base", extra="sklearn").clone(estimator)
    parameters = model.get_params(deep=True)
    free = sorted(name for name in parameters if name.split("__")[-1] == "random_state" and parameters[name] is None)
    seeds = np.random.SeedSequence(seed).generate_state(len(free))  # a seed for each part of a pipeline, in the order of names
    model.set_params(**dict(zip(free, (seeds >> 1).tolist(), strict=True)))
    return model.fit(inputs, targets)


def _takes_seed(function: Callable[..., Any]) -> bool:
    if isinstance(function, functools.partial) and "seed" in function.keywords:
        return False  # it has one already
    try:
        return "seed" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions hide their arguments
        return False


def described(thing: Any) -> str:
    """A function by its name, other objects as they show themselves."""
    if isinstance(thing, functools.partial):
        return f"partial({described(thing.func)}, {_shown(thing.args)}, {_shown(thing.keywords)})"
    if hasattr(thing, "__qualname__"):
        return str(thing.__qualname__)
    return _shown(thing)


def _shown(value: Any) -> str:
    """The object's text without its place in memory, which is another in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))

"""Models that hold several others, and models that predict an ensemble themselves."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, check_options, has, is_a, join, name, option_names, stacked
from uqprism.adapters.distributions import is_distribution, member
from uqprism.adapters.numbers import around_mean
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, UnsupportedError
from uqprism.support.optional import require


@adapters.register("predict_ensemble")
class PredictsEnsemble(Adapter):
    """Models with a method `predict_ensemble(X)`, such as this package's estimators; options go to that method."""

    supports = "models with predict_ensemble(X)"
    priority = 10

    def matches(self, model: Any) -> bool:
        """Whether the method is there."""
        return has(model, "predict_ensemble")

    def predict(self, model: Any, X: Array, **options: Any) -> EnsemblePrediction:
        """What the method returns."""
        names = list(inspect.signature(model.predict_ensemble).parameters)[1:]  # without X
        check_options(options, {*names, *option_names(model.predict_ensemble)}, model)
        return model.predict_ensemble(X, **options)

    def predict_member(self, model: Any, X: Array) -> EnsemblePrediction:
        """Refuse: an ensemble is not a member."""
        raise UnsupportedError(f"{name(model)} is an ensemble itself, not one member of another; pass it by itself")


@adapters.register("list")
class ModelList(Adapter):
    """A list or tuple of fitted models, one member each."""

    supports = "lists of models, one member each"

    def matches(self, model: Any) -> bool:
        """Whether it is a list or a tuple."""
        return isinstance(model, list | tuple)

    def predict(self, model: Any, X: Array, **options: Any) -> EnsemblePrediction:
        """The members in the order of the list."""
        if not model:
            raise ArgumentError("the list must hold at least one fitted model, got none")
        networks = [is_a(each, "torch", "Module") for each in model]
        if any(networks) and not all(networks):
            first, other = model[networks.index(True)], model[networks.index(False)]
            raise ArgumentError(
                f"the list mixes PyTorch modules ({name(first)}) with other models ({name(other)}), which take different inputs; "
                "predict with each kind and pass all means and variances to EnsemblePrediction.gaussian"
            )
        return join(((f"model {i} of the list", each, lambda rows: rows) for i, each in enumerate(model)), X, options)

    def predict_member(self, model: Any, X: Array, **options: Any) -> Any:
        """In another list, a list of distributions is one member, with a point for each of them."""
        if model and all(is_distribution(each) for each in model):
            points = stacked([EnsemblePrediction(member(each)) for each in model]).members
            return EnsemblePrediction(points.map(lambda x: x[..., None, :]))
        return super().predict_member(model, X, **options)


@adapters.register("bagging")
class Bagging(Adapter):
    """scikit-learn's bags, one member per model."""

    supports = "BaggingRegressor, one member per model"

    def matches(self, model: Any) -> bool:
        """Whether it is a bag of regressors."""
        return is_a(model, "sklearn", "BaggingRegressor")

    def predict_member(self, model: Any, X: Array, *, validation: Any = None, variance: Array = None) -> EnsemblePrediction:
        """One Gaussian around the mean of the bag."""
        return around_mean(model, X, validation, variance)

    def predict(self, model: Any, X: Array, **options: Any) -> EnsemblePrediction:
        """Each model predicts from the features that it was given."""
        model.predict(_table(X)[:1])  # checks the fit and the input as the bag does; its models know no feature names
        parts = enumerate(zip(model.estimators_, model.estimators_features_, strict=True))
        return join(((f"model {i} of the bag", part, partial(_columns, columns)) for i, (part, columns) in parts), X, options)


@adapters.register("voting")
class Voting(Adapter):
    """scikit-learn's votes, one member per model, with the weights of the vote."""

    supports = "VotingRegressor, one member per model"

    def matches(self, model: Any) -> bool:
        """Whether it is a vote of regressors."""
        return is_a(model, "sklearn", "VotingRegressor")

    def predict(self, model: Any, X: Array, **options: Any) -> EnsemblePrediction:
        """Each model predicts."""
        require("sklearn.utils.validation", extra="sklearn").check_is_fitted(model)
        kept = [called for called, part in model.estimators if part != "drop"]
        models = zip(kept, model.estimators_, strict=True)
        found = join(((f"model {called}", part, lambda rows: rows) for called, part in models), X, options)
        weights = model._weights_not_none  # scikit-learn has no public name for them
        return found if weights is None else EnsemblePrediction(found.members, np.divide(weights, np.sum(weights)))

    def predict_member(self, model: Any, X: Array, *, validation: Any = None, variance: Array = None) -> EnsemblePrediction:
        """One Gaussian around the mean of the vote."""
        return around_mean(model, X, validation, variance)


def _columns(columns: Any, rows: Array) -> Array:
    """Some columns of rows."""
    table = _table(rows)
    return (table if hasattr(table, "tocsr") else np.asarray(table))[:, columns]


def _table(rows: Array) -> Array:
    return rows.tocsr() if hasattr(rows, "tocsr") else rows  # not every sparse format can be indexed

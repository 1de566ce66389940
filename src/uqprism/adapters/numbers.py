"""Models that predict numbers without noise: their errors on validation rows, or a given variance, stand in for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name, one_member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import kind_by_name
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UnsupportedError

FORECASTERS = ("darts", "gluonts", "statsforecast", "mlforecast", "neuralforecast", "prophet")  # predict takes no rows


@adapters.register("numbers")
class PredictsNumbers(Adapter):
    """Any regressor with predict(X), of any library; all other adapters are asked first."""

    supports = "regressors with predict(X) that say nothing about noise"
    priority = -20

    def matches(self, model: Any) -> bool:
        """Whether it predicts; a classifier is refused with a reason."""
        if not callable(getattr(model, "predict", None)):
            return False
        if _classifies(model):
            raise UnsupportedError(f"{name(model)} is a classifier, whose predictions are no numbers; uqprism is for regression")
        if is_a(model, "sklearn", "ClusterMixin", "OutlierMixin"):
            raise UnsupportedError(f"{name(model)} does not predict a target; uqprism is for regression")
        if type(model).__module__.partition(".")[0] in FORECASTERS:
            raise UnsupportedError(
                f"{name(model)} has yet to forecast. Pass its forecasts to from_model, as the page of its library in the "
                "documentation shows"
            )
        return True

    def kind_of(self, model: Any) -> str:
        """As the model's class is called."""
        return kind_by_name(name(model))

    def predict(
        self, model: Any, X: Array, *, validation: tuple[Array, Array] | None = None, variance: Array = None
    ) -> EnsemblePrediction:
        """A Gaussian around the number, with the mean squared error on validation rows (X, y), or with this variance."""
        if validation is not None and variance is not None:
            raise ArgumentError("give one of validation and variance, got both")
        if validation is None and variance is None:
            raise UnsupportedError(
                f"{name(model)} predicts numbers without noise, and each member of an ensemble needs a variance. Pass "
                "validation=(X_valid, y_valid), rows that it was not fitted to, whose mean squared error is then taken, or "
                "variance=, a number or an array (points,)"
            )
        mean = _numbers(model, X)
        noise = np.asarray(mean_squared_error(model, validation) if variance is None else variance, dtype=np.float64)
        if noise.shape not in {(), mean.shape}:
            raise ShapeError(f"variance must be a number or an array (points,), here {mean.shape}, got {noise.shape}")
        return one_member(model, "gaussian", mean=mean, variance=np.broadcast_to(noise, mean.shape))


def around_mean(model: Any, X: Array, validation: tuple[Array, Array] | None, variance: Array) -> EnsemblePrediction:
    """An ensemble as one member of another: a Gaussian around what it predicts, as `PredictsNumbers` makes it."""
    if validation is None and variance is None:
        raise UnsupportedError(
            f"{name(model)} is an ensemble itself, not one member of another; pass it by itself, or pass validation=(X_valid, "
            "y_valid), which makes it one Gaussian with its mean squared error there"
        )
    return PredictsNumbers().predict(model, X, validation=validation, variance=variance)


def _classifies(model: Any) -> bool:
    classes = getattr(model, "classes_", None)  # CatBoost's regressors have none of them
    labelled = classes is not None and len(classes) > 0
    return labelled or is_a(model, "sklearn", "ClassifierMixin") or getattr(model, "_estimator_type", None) == "classifier"


def mean_squared_error(model: Any, validation: Any) -> float:
    """Of what the model predicts for the rows of validation, a pair of rows and targets."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ArgumentError("validation must be a pair of rows and targets, (X_valid, y_valid)")
    targets = np.asarray(validation[1], dtype=np.float64)
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    if not np.isfinite(targets).all():
        raise InvalidValueError("the targets of validation must be finite; leave out the rows whose target is missing")
    predicted = _numbers(model, validation[0])
    if targets.shape != predicted.shape or not len(targets):
        raise ShapeError(f"validation must hold a target for each row, got {predicted.shape} rows and {targets.shape} targets")
    return float(np.mean((targets - predicted) ** 2))


def _numbers(model: Any, rows: Array) -> Array:
    """What it predicts, one number per row; a column is one."""
    predicted = np.asarray(model.predict(rows), dtype=np.float64)
    return predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted

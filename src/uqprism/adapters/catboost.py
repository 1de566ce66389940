"""CatBoost: mean and variance with virtual ensembles, and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, one_member
from uqprism.adapters.quantiles import PredictsQuantiles
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import InvalidValueError

LEVEL = 0.5  # CatBoost's default
GAUSSIAN = "RMSEWithUncertainty"


@adapters.register("catboost")
class CatBoost(Adapter):
    """Models that predict mean and variance."""

    supports = f"CatBoost models with loss_function='{GAUSSIAN}'"
    kind = "boosting"

    def matches(self, model: Any) -> bool:
        """Whether it was fitted for both."""
        return is_a(model, "catboost", "CatBoost") and _loss(model)[0] == GAUSSIAN

    def predict(self, model: Any, X: Array, *, n_members: int = 10) -> EnsemblePrediction:
        """One Gaussian per virtual ensemble: the sums of the first trees, up to so many in as many steps."""
        if n_members < 1:
            raise InvalidValueError(f"n_members must be at least 1, got {n_members}")
        try:
            given = model.virtual_ensembles_predict(X, prediction_type="VirtEnsembles", virtual_ensembles_count=n_members)
        except Exception as error:
            if "Not enough trees" not in str(error):
                raise
            raise InvalidValueError(
                f"{n_members} virtual ensembles need more than the {model.tree_count_} trees of this model; pass a smaller "
                "n_members, or fit more iterations"
            ) from None
        mean, variance = np.moveaxis(np.asarray(given, dtype=np.float64).reshape(-1, n_members, 2), 2, 0)
        return EnsemblePrediction.gaussian(mean=mean.T, variance=variance.T, member_axis=0)

    def predict_member(self, model: Any, X: Array) -> EnsemblePrediction:
        """One Gaussian, of all trees."""
        mean, variance = np.asarray(model.predict(X, prediction_type=GAUSSIAN), dtype=np.float64).reshape(-1, 2).T
        return one_member(model, "gaussian", mean=mean, variance=variance)


@adapters.register("catboost_quantiles")
class CatBoostQuantiles(PredictsQuantiles):
    """One member per model of several levels; models of one level in lists."""

    supports = "CatBoost models with loss_function='MultiQuantile:alpha=...' or 'Quantile:alpha=...'"
    kind = "boosting"

    def levels(self, model: Any) -> tuple[float, ...] | None:
        """The levels of the loss."""
        loss, options = _loss(model) if is_a(model, "catboost", "CatBoost") else ("", {})
        if loss not in {"Quantile", "MultiQuantile"}:
            return None
        return tuple(float(level) for level in options.get("alpha", str(LEVEL)).split(","))


def _loss(model: Any) -> tuple[str, dict[str, str]]:
    """The name of the loss and its options, written as `Name:option=value;option=value`."""
    try:
        given = model.get_all_params().get("loss_function") if model.is_fitted() else model.get_param("loss_function")
    except Exception as error:
        if type(error).__name__ != "CatBoostError":
            raise
        return "", {}  # a sum of models knows no parameters
    loss, _, options = str(given).partition(":")
    return loss, dict(part.split("=", 1) for part in options.split(";") if "=" in part)

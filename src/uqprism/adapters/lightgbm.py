"""LightGBM's models that were fitted with the quantile objective."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import Adapter, adapters, has, is_a, join
from uqprism.adapters.quantiles import PredictsQuantiles
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction

OBJECTIVE = ("objective", "objective_type", "app", "application", "loss")  # LightGBM's names for it
LEVEL = 0.9  # LightGBM's default


@adapters.register("lightgbm")
class LightGBM(PredictsQuantiles):
    """One level per model: a list of them makes members."""

    supports = "LightGBM models with objective='quantile', in lists"
    kind = "boosting"

    def levels(self, model: Any) -> tuple[float, ...] | None:
        """The level of the objective."""
        if not is_a(model, "lightgbm", "LGBMModel", "Booster"):
            return None
        # What it was fitted with; the parameters of an estimator may have been set anew.
        booster: Any = model.booster_ if getattr(model, "fitted_", False) else model
        given = booster.params if has(booster, "params") else model.get_params()
        if not any(given.get(each) == "quantile" for each in OBJECTIVE):
            return None
        return (float(given.get("alpha", LEVEL)),)


@adapters.register("lightgbm_cv")
class LightGBMFolds(Adapter):
    """What `lightgbm.cv(..., return_cvbooster=True)` keeps: the boosters of its folds."""

    supports = "LightGBM's CVBooster, one member per fold"
    kind = "boosting"
    priority = 11  # it seems to have any method, that of ensembles too

    def matches(self, model: Any) -> bool:
        """Whether it holds the boosters of folds."""
        return is_a(model, "lightgbm", "CVBooster")

    def predict(self, model: Any, X: Array, **options: Any) -> EnsemblePrediction:
        """Each booster predicts."""
        return join(((f"fold {i}", booster, lambda rows: rows) for i, booster in enumerate(model.boosters)), X, options)

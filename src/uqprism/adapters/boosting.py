"""scikit-learn's regressors that are fitted with the quantile loss: gradient boosting and linear models."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import adapters, is_a, name
from uqprism.adapters.quantiles import PredictsQuantiles
from uqprism.ensemble.origin import kind_by_name

LEVEL = {  # the argument that is the level
    "GradientBoostingRegressor": "alpha",
    "HistGradientBoostingRegressor": "quantile",
    "QuantileRegressor": "quantile",
}


@adapters.register("sklearn_quantiles")
class SklearnQuantiles(PredictsQuantiles):
    """One level per model: a list of them makes members."""

    supports = "scikit-learn's regressors with the quantile loss, in lists"

    def kind_of(self, model: Any) -> str:
        """As the model's class is called."""
        return kind_by_name(name(model))

    def levels(self, model: Any) -> tuple[float, ...] | None:
        """The level of its loss."""
        for kind, argument in LEVEL.items():
            if is_a(model, "sklearn", kind) and getattr(model, "loss", "quantile") == "quantile":
                return (float(getattr(model, argument)),)
        return None

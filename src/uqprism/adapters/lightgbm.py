"""LightGBM's models that were fitted with the quantile objective."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import adapters, is_a
from uqprism.adapters.quantiles import PredictsQuantiles

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
        given = model.get_params() if hasattr(model, "get_params") else model.params
        if not any(given.get(each) == "quantile" for each in OBJECTIVE):
            return None
        return (float(given.get("alpha", LEVEL)),)

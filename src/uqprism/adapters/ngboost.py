"""NGBoost models, one member each, of the family of the distribution that they predict."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import Adapter, adapters, has, not_fitted, one_member
from uqprism.adapters.distributions import read
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction


@adapters.register("ngboost")
class NGBoost(Adapter):
    """Models with `pred_dist`, as NGBoost's."""

    supports = "NGBoost models"
    kind = "boosting"

    def matches(self, model: Any) -> bool:
        """Whether it predicts distributions as NGBoost does."""
        return has(model, "pred_dist")  # the method is all that is needed

    def predict(self, model: Any, X: Array) -> EnsemblePrediction:
        """The distribution that the model predicts."""
        if getattr(model, "init_params", ()) is None:  # NGBoost itself fails on this later, without saying why
            raise not_fitted(model)
        family, parameters = read(model.pred_dist(X))
        return one_member(model, family, **parameters)

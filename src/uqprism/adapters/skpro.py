"""skpro's regressors, by the distributions that they predict."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import Adapter, adapters, is_a, not_fitted
from uqprism.adapters.distributions import member
from uqprism.ensemble import EnsemblePrediction


@adapters.register("skpro")
class Skpro(Adapter):
    """Probabilistic regressors, one member each."""

    supports = "skpro's regressors"

    def matches(self, model: Any) -> bool:
        """Whether it is a probabilistic regressor."""
        return is_a(model, "skpro", "BaseProbaRegressor")

    def predict(self, model: Any, X: Any) -> EnsemblePrediction:
        """The distribution that it predicts."""
        if not model.is_fitted:  # skpro fails on this later, without saying why
            raise not_fitted(model)
        return EnsemblePrediction(member(model.predict_proba(X)))

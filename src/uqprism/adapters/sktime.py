"""sktime's forecasters, by the distributions that they predict."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.adapters.distributions import member
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError


@adapters.register("sktime")
class Sktime(Adapter):
    """Forecasters, one member each; the rows are the forecasting horizon."""

    supports = "sktime's forecasters"

    def matches(self, model: Any) -> bool:
        """Whether it is a forecaster."""
        return is_a(model, "sktime", "BaseForecaster")

    def predict(self, model: Any, X: Any, *, exogenous: Any = None) -> EnsemblePrediction:
        """The distribution at each step of the horizon X, given exogenous variables if it needs some."""
        try:
            predicted = model.predict_proba(fh=X, X=exogenous)
        except NotImplementedError as error:
            raise UnsupportedError(
                f"{name(model)} predicts no distribution: {error} Pass quantiles that it predicts to "
                "EnsemblePrediction.quantiles(levels=, values=), or forecast each series with a forecaster that does"
            ) from None
        return EnsemblePrediction(member(predicted))

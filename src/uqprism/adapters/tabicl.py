"""TabICL: the quantiles that it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.adapters.levels import quantile_member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.families.quantiles import Tails

LEVELS = tuple(np.round(np.arange(0.01, 0.995, 0.01), 2).tolist())


@adapters.register("tabicl")
class TabICL(Adapter):
    """TabICL's regressors, one member each."""

    supports = "TabICL's regressors"

    def matches(self, model: Any) -> bool:
        """Whether it is a regressor of TabICL."""
        return is_a(model, "tabicl", "TabICLRegressor")

    def predict(
        self, model: Any, X: Array, *, levels: Sequence[float] = LEVELS, tails: Tails = "exponential"
    ) -> EnsemblePrediction:
        """Its quantiles at these levels."""
        values = model.predict(X, output_type="quantiles", alphas=list(levels))
        return quantile_member(levels, values, tails)

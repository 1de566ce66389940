"""quantile-forest: each tree with the training targets that its leaves keep, or the quantiles of the whole forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name
from uqprism.adapters.levels import quantile_member
from uqprism.adapters.trees import leaf_draws
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.families.quantiles import Tails

LEVELS = tuple(np.round(np.arange(0.05, 0.951, 0.05), 2).tolist())


@adapters.register("quantile_forest")
class QuantileForest(Adapter):
    """Quantile forests, one member per tree or one member in all."""

    supports = "quantile forests of quantile-forest"
    kind = "forest"

    def matches(self, model: Any) -> bool:
        """Whether it is a quantile forest."""
        return is_a(model, "quantile_forest", "BaseForestQuantileRegressor")

    def predict(
        self, model: Any, X: Array, *, levels: Sequence[float] | None = None, tails: Tails = "exponential"
    ) -> EnsemblePrediction:
        """The targets in the leaf of each tree; with levels one member, the quantiles that the forest predicts."""
        if levels is not None:
            return self.predict_member(model, X, levels=levels, tails=tails)
        _check(model)
        leaves, kept, targets = model.apply(X), model.forest_.y_train_leaves, np.asarray(model.forest_.y_train)[0]
        # Places count from 1, and 0 fills up leaves of fewer rows.
        places = np.asarray(kept)[np.arange(leaves.shape[1]), leaves, 0].transpose(2, 1, 0)
        return leaf_draws(targets[np.maximum(places, 1) - 1], places > 0)

    def predict_member(
        self, model: Any, X: Array, *, levels: Sequence[float] = LEVELS, tails: Tails = "exponential"
    ) -> EnsemblePrediction:
        """One member, the quantiles that the forest predicts."""
        _check(model)
        return quantile_member(levels, model.predict(X, quantiles=list(levels)), tails)


def _check(model: Any) -> None:
    if getattr(model, "n_outputs_", 1) > 1:
        raise UnsupportedError(f"{name(model)} predicts {model.n_outputs_} targets; fit one forest for each target")

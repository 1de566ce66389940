"""TabPFN: the bars that it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction


@adapters.register("tabpfn")
class TabPFN(Adapter):
    """TabPFN's regressors, one member each."""

    supports = "TabPFN's regressors"

    def matches(self, model: Any) -> bool:
        """Whether it is a regressor of TabPFN, here or on its server."""
        return is_a(model, "tabpfn", "TabPFNRegressor") or is_a(model, "tabpfn_client", "TabPFNRegressor")

    def predict(self, model: Any, X: Array) -> EnsemblePrediction:
        """One histogram, with the half-normal outer bars of its criterion."""
        full = model.predict(X, output_type="full")
        logits, borders = (_numbers(x) for x in (full["logits"], full["criterion"].borders))
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities = (weights / weights.sum(axis=-1, keepdims=True)).T
        return EnsemblePrediction.histogram(edges=borders, probabilities=probabilities[None], outer="half_normal", member_axis=0)


def _numbers(x: Any) -> Array:
    """A tensor as an array."""
    return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, dtype=np.float64)

"""Bayesian deep ensembles of sklearn-contrib-bde: every draw of every chain is a member."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.adapters.draws import from_posterior
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction

SMALLEST = 1e-6  # what bde adds to the scale


@adapters.register("bde")
class Bde(Adapter):
    """`BdeRegressor`, by the raw array (chains, draws, rows, 2) that it returns."""

    supports = "BdeRegressor of sklearn-contrib-bde"
    kind = "posterior"

    def matches(self, model: Any) -> bool:
        """Whether it is such a regressor."""
        return is_a(model, "bde", "BdeRegressor")

    def predict(self, model: Any, X: Array, *, n_members: int | None = None) -> EnsemblePrediction:
        """One Gaussian per draw, or this many of them, evenly spaced."""
        mean, raw = np.moveaxis(np.asarray(model.predict(X, raw=True), dtype=np.float64), -1, 0)
        # The second column is no scale yet: bde puts it through softplus.
        return from_posterior(mean, scale=np.logaddexp(0.0, raw) + SMALLEST, sample_dims=2, n_members=n_members)

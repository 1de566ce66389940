"""NGBoost models, as one Gaussian or Laplace member each."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, name, one_member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.support.optional import require

FAMILIES = {  # by the class of the distribution: the family, and its name for what NGBoost calls loc
    "Normal": ("gaussian", "mean"),
    "NormalFixedMean": ("gaussian", "mean"),
    "NormalFixedVar": ("gaussian", "mean"),
    "Laplace": ("laplace", "location"),
}


@adapters.register("ngboost")
class NGBoost(Adapter):
    """Models with `pred_dist`, as NGBoost's."""

    supports = "NGBoost models with a Normal or Laplace distribution"

    def matches(self, model: Any) -> bool:
        """Whether it predicts distributions as NGBoost does."""
        return hasattr(model, "pred_dist")  # the method is all that is needed

    def predict(self, model: Any, X: Array) -> EnsemblePrediction:
        """The distribution that the model predicts."""
        if getattr(model, "init_params", ()) is None:  # NGBoost itself fails on this later, without saying why
            not_fitted = require("sklearn.exceptions", extra="sklearn").NotFittedError
            raise not_fitted(f"{name(model)} is not fitted yet; call fit first")
        predicted = model.pred_dist(X)
        classes = type(predicted).__mro__
        kind = next(c.__name__ for c in classes if not c.__name__.startswith("DistWith"))  # how NGBoost wraps some
        if kind not in FAMILIES:
            raise UnsupportedError(
                f"{name(model)} predicts a {kind}; of NGBoost's distributions, Normal and Laplace are accepted"
            )
        family, centre = FAMILIES[kind]
        location, scale = np.broadcast_arrays(predicted.loc, predicted.scale)
        return one_member(model, family, **{centre: location, "scale": scale})

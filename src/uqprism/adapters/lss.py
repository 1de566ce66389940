"""XGBoostLSS and LightGBMLSS: the distributions whose parameters they predict."""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a, name, one_member
from uqprism.adapters.distributions import read
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.support.optional import require


@adapters.register("lss")
class LSS(Adapter):
    """Models of one target, by the data frame of parameters that they return."""

    supports = "XGBoostLSS and LightGBMLSS models"
    kind = "boosting"

    def matches(self, model: Any) -> bool:
        """Whether it is a model of one of the two."""
        return is_a(model, "xgboostlss", "XGBoostLSS") or is_a(model, "lightgbmlss", "LightGBMLSS")

    def predict(self, model: Any, X: Any) -> EnsemblePrediction:
        """One member, of the family of the model's distribution."""
        given = model.predict(X, pred_type="parameters")
        torch = require("torch", extra="deep")
        try:
            distribution = model.dist.distribution(**{key: torch.as_tensor(np.asarray(given[key])) for key in given.columns})
        except TypeError:  # of flows, mixtures and expectiles, whose parameters are not those of one distribution
            kind = type(model.dist).__name__
            raise UnsupportedError(
                f"{name(model)} predicts {kind}, whose parameters are not those of one distribution. Pass draws, as in "
                "from_draws([model.predict(data, pred_type='samples').T.to_numpy() for model in models])"
            ) from None
        family, parameters = read(distribution)
        return one_member(model, family, **{key: x.double().numpy() for key, x in parameters.items()})

"""XGBoost's models that were fitted with the quantile objective, at one level or several."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from uqprism.adapters.base import adapters, is_a
from uqprism.adapters.quantiles import PredictsQuantiles

OBJECTIVE = "reg:quantileerror"


@adapters.register("xgboost")
class XGBoost(PredictsQuantiles):
    """One member per model of several levels; models of one level in lists."""

    supports = "XGBoost models with objective='reg:quantileerror'"
    kind = "boosting"

    def levels(self, model: Any) -> tuple[float, ...] | None:
        """The levels of the objective."""
        if is_a(model, "xgboost", "XGBModel"):
            if model.objective != OBJECTIVE:
                return None
            model = model.get_booster()  # its own parameters may have been set anew
        elif not is_a(model, "xgboost", "Booster"):
            return None
        objective = json.loads(model.save_config())["learner"]["objective"]
        if objective["name"] != OBJECTIVE:
            return None
        return tuple(np.ravel(json.loads(objective["quantile_loss_param"]["quantile_alpha"])).astype(float).tolist())

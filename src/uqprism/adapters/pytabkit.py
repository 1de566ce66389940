"""pytabkit: the models of its validation splits, one member each."""

from __future__ import annotations

import re
from typing import Any

from uqprism.adapters.base import Adapter, adapters, is_a, join
from uqprism.adapters.parts import parts
from uqprism.ensemble import EnsemblePrediction

PINBALL = re.compile(r"multi_pinball\((.+)\)")


@adapters.register("pytabkit")
class Pytabkit(Adapter):
    """Regressors with `predict_ensemble`, by the arrays (members, rows, outputs) behind it."""

    supports = "pytabkit's regressors"
    priority = 11  # its predict_ensemble returns an array

    def matches(self, model: Any) -> bool:
        """Whether it is a regressor of pytabkit."""
        return is_a(model, "pytabkit", "AlgInterfaceRegressor")

    def predict(self, model: Any, X: Any, **options: Any) -> EnsemblePrediction:
        """One member per model, of quantiles if it was trained with multi_pinball, else with validation rows or a variance."""
        found = PINBALL.fullmatch(str(getattr(model, "train_metric_name", None)))
        levels = tuple(float(level) for level in found[1].split(",")) if found else None

        def predict(rows: Any) -> Any:
            raw = model._predict_raw(rows).double().numpy()  # `predict_ensemble` keeps the first of several outputs
            return raw if levels else raw[..., 0]

        members = parts(predict, len(predict(X)), levels)
        return join(((f"model {i}", part, lambda rows: rows) for i, part in enumerate(members)), X, options)

"""AutoGluon's tabular predictors: every model of the first level, and every child of its bag, is a member."""

from __future__ import annotations

from typing import Any

from uqprism.adapters.base import Adapter, adapters, is_a, join
from uqprism.adapters.parts import Part, parts
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError

KINDS = ("regression", "quantile")


@adapters.register("autogluon")
class AutoGluon(Adapter):
    """Predictors of quantiles, and of numbers with validation rows or a variance."""

    supports = "AutoGluon's TabularPredictor"

    def matches(self, model: Any) -> bool:
        """Whether it is a tabular predictor."""
        return is_a(model, "autogluon", "TabularPredictor")

    def predict(self, model: Any, X: Any, **options: Any) -> EnsemblePrediction:
        """One member per child of each bag, or per model that is no bag; the options are those for such models."""
        if model.problem_type not in KINDS:
            raise UnsupportedError(f"the predictor's problem_type is {model.problem_type}; uqprism takes {' and '.join(KINDS)}")
        members = [
            (f"model {called}, child {i}", part, lambda rows: rows)
            for called in model.model_names(level=1)
            for i, part in enumerate(_children(model, called))
        ]
        return join(members, X, options)


def _children(predictor: Any, called: str) -> list[Part]:
    """The models of a bag, or the one model that is no bag."""
    model = predictor._trainer.load_model(called)  # AutoGluon has no public name for a bag's children
    levels = tuple(map(float, predictor.quantile_levels)) if predictor.problem_type == "quantile" else None
    if is_a(model, "autogluon", "BaggedEnsembleModel"):
        return parts(lambda rows: model.predict_children(predictor.transform_features(rows)), len(model.models), levels)
    return parts(lambda rows: [predictor.predict(rows, model=called)], 1, levels)

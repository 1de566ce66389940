"""scikit-learn's wrappers around a model, and regressors that predict their own standard deviation."""

from __future__ import annotations

import inspect
from typing import Any

from uqprism.adapters.base import Adapter, Wrapper, adapters, find, has, is_a, name, not_fitted, one_member
from uqprism.adapters.numbers import PredictsNumbers
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError


@adapters.register("pipeline")
class Pipeline(Wrapper):
    """Pipelines: the steps transform X, the last one predicts."""

    supports = "pipelines of these"

    def matches(self, model: Any) -> bool:
        """Whether it is a pipeline."""
        return is_a(model, "sklearn", "Pipeline")

    def unwrap(self, model: Any, X: Array) -> tuple[Any, Array]:
        """The last step, and the transformed rows."""
        return model[-1], model[:-1].transform(X) if len(model) > 1 else X  # an empty pipeline has no transform


@adapters.register("search")
class Search(Wrapper):
    """Finished parameter searches, such as GridSearchCV."""

    supports = "finished parameter searches of these"

    def matches(self, model: Any) -> bool:
        """Whether it has found a best model."""
        # The mark of a search that is finished, in any library; scikit-learn's are also known before.
        return has(model, "best_estimator_") or is_a(model, "sklearn", "BaseSearchCV")

    def unwrap(self, model: Any, X: Array) -> tuple[Any, Array]:
        """The best model."""
        if not has(model, "best_estimator_") and getattr(model, "refit", True) is False:
            raise UnsupportedError(f"{name(model)} keeps no best model with refit=False; search with refit=True")
        if not has(model, "best_estimator_"):
            raise not_fitted(model)
        return model.best_estimator_, X


@adapters.register("return_std")
class ReturnsScale(Adapter):
    """Regressors with predict(X, return_std=True), of any library; more specific adapters are asked first."""

    supports = "regressors with predict(X, return_std=True), such as BayesianRidge"
    priority = -10

    def matches(self, model: Any) -> bool:
        """Whether predict has the argument; a regressor of a transformed target is refused with a reason."""
        if is_a(model, "sklearn", "TransformedTargetRegressor") and not has(model, "regressor_"):
            raise not_fitted(model)
        if is_a(model, "sklearn", "TransformedTargetRegressor") and not isinstance(find(model.regressor_), PredictsNumbers):
            raise UnsupportedError(
                "a TransformedTargetRegressor predicts a transformed target, whose variance is not that of the target; "
                "pass its fitted .regressor_, and take the results as those of the transformed target"
            )
        try:
            return "return_std" in inspect.signature(model.predict).parameters
        except (AttributeError, TypeError, ValueError):  # no predict, or one that hides its arguments
            return False

    def predict(self, model: Any, X: Array) -> EnsemblePrediction:
        """One Gaussian."""
        mean, scale = model.predict(X, return_std=True)
        return one_member(model, "gaussian", mean=mean, scale=scale)

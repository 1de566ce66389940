"""What adapters of models that predict quantiles have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, name
from uqprism.adapters.levels import Level, quantile_member
from uqprism.arrays import Array
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import UnsupportedError
from uqprism.families.quantiles import Tails


class PredictsQuantiles(Adapter):
    """Models that predict the quantiles of the target, at one level or several.

    A model of one level is part of a member. In a list, the first model of every level make a member, the second of every
    level the next one.
    """

    priority = 2

    @abstractmethod
    def levels(self, model: Any) -> tuple[float, ...] | None:
        """The levels that the model was fitted for; None if it does not predict quantiles."""

    def values(self, model: Any, X: Array) -> Array:
        """What it predicts, (points,) for one level and (points, levels) for several."""
        return model.predict(X)

    def matches(self, model: Any) -> bool:
        """Whether it predicts quantiles."""
        return self.levels(model) is not None

    def predict(self, model: Any, X: Array, *, tails: Tails = "exponential") -> EnsemblePrediction:
        """One member with these quantiles and tails."""
        member = self.predict_member(model, X, tails=tails)
        if isinstance(member, Level):
            raise UnsupportedError(
                f"{name(model)} predicts the quantile of level {member.level:g} alone, which is not a distribution. Pass a list "
                "of models fitted at several levels, such as 0.1, 0.5 and 0.9"
            )
        return member

    def predict_member(self, model: Any, X: Array, *, tails: Tails = "exponential") -> EnsemblePrediction | Level:
        """The same, or the one quantile that the model predicts."""
        levels = self.levels(model) or ()
        values = np.asarray(self.values(model, X), dtype=np.float64)
        if len(levels) > 1:
            return quantile_member(levels, values, tails)
        return Level(levels[0], values.reshape(-1), tails)

"""Deep Evidential Regression (Amini et al. 2020) as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.evidential import EvidentialPrediction
from uqprism.support.optional import require
from uqprism.training.estimators.base import EnsembleRegressor
from uqprism.training.heads import Evidential, Head
from uqprism.training.networks.base import Factory

torch = require("torch", extra="deep")


@dataclass(eq=False, repr=False)
class EvidentialRegressor(EnsembleRegressor):
    """One network that predicts a distribution over Gaussians, for which members stand.

    Take its split with care: data tell the sum of noise and ignorance, not their ratio (Meinert et al. 2023), and far from the
    data `uncertainty` may fall where that of a deep ensemble rises.

    Attributes:
        n_members: how many Gaussians stand for that distribution in `predict_ensemble` and `uncertainty`.
        evidence_weight: lambda of the loss: how much evidence is taken away from rows that are predicted wrongly.
    """

    n_members: int = 64
    evidence_weight: float = field(default=0.01, kw_only=True)

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        return self._network(), Evidential(self.evidence_weight, self.n_members), 1

    def predict_evidential(self, X: Any) -> EvidentialPrediction:
        """The four parameters for each row, with `aleatoric` and `epistemic` in closed form."""
        return self._fitted().predict_evidential(self._checked(X))

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The members that stand for the predicted distribution, (members, rows)."""
        return replace(self._fitted(), head=Evidential(self.evidence_weight, self.n_members)).predict_ensemble(self._checked(X))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean, and the standard deviation in closed form if asked."""
        found = self.predict_evidential(X)
        mean, scale = found.gamma, np.sqrt(found.aleatoric + found.epistemic)
        if isinstance(X, torch.Tensor):
            mean, scale = (torch.from_numpy(x).to(X.device) for x in (mean, scale))
        return (mean, scale) if return_std else mean

"""MC dropout (Gal and Ghahramani 2016) as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from uqprism.ensemble import EnsemblePrediction
from uqprism.training.estimators.base import EnsembleRegressor
from uqprism.training.heads import Head
from uqprism.training.networks import MLP
from uqprism.training.networks.base import Factory


@dataclass(eq=False, repr=False)
class MCDropoutRegressor(EnsembleRegressor):
    """One network trained with dropout, which stays on to predict: every stochastic pass is a member.

    The masks of the passes are drawn once, when the model is fitted: the same rows get the same prediction, whatever other rows
    are asked for. (A network of one's own uses PyTorch's dropout, whose masks go by the batch.)

    Attributes:
        n_members: how many passes.
        dropout: the probability that a hidden unit is left out; a `network` has its own.
        head: what the network predicts and the loss.
    """

    n_members: int = 50
    dropout: float = field(default=0.1, kw_only=True)
    head: str | Head = field(default="natural", kw_only=True)

    def _training(self) -> tuple[str | Factory, str | Head, int]:
        network = MLP(tuple(self.hidden), self.activation, self.dropout) if self.network is None else self.network
        return network, self.head, 1

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The predictive distributions of the passes, (members, rows)."""
        ensemble = self._fitted()
        return ensemble.predict_ensemble(self._checked(X), passes=self.n_members, seed=ensemble.history.seeds[0])

"""MC dropout (Gal and Ghahramani 2016) as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError
from uqprism.training.estimators.base import EnsembleRegressor
from uqprism.training.heads import Head
from uqprism.training.networks.base import Factory, resolve
from uqprism.training.techniques import DROPOUT


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
        if self.network is None and not (self.dropout and self.hidden):
            raise ArgumentError(
                f"MC dropout needs something to leave out, got dropout={self.dropout!r} and hidden={self.hidden!r}; "
                "for no dropout take DeepEnsembleRegressor"
            )
        network = self._network(dropout=self.dropout)
        return network if self.network is None else partial(_with_dropout, resolve(network)), self.head, 1

    def predict_ensemble(self, X: Any) -> EnsemblePrediction:
        """The predictive distributions of the passes, (members, rows)."""
        ensemble = self._fitted()
        return ensemble.predict_ensemble(self._checked(X), passes=self.n_members, seed=ensemble.history.seeds[0])


def _with_dropout(network: Factory, input_shape: tuple[int, ...], n_outputs: int) -> Any:
    """What the user's function builds, which must have dropout: better said before training than after."""
    module = network(input_shape, n_outputs)
    if not any(isinstance(part, DROPOUT) for part in module.modules()):
        raise ArgumentError("MC dropout needs a network with dropout layers, the one given has none")
    return module

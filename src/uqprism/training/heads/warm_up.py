"""Squared error first, then the likelihood (Nix and Weigend 1994; Skafte et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training.heads.base import Tensor, heads
from uqprism.training.heads.mean_variance import MeanVariance, gaussian_nll

torch = require("torch", extra="deep")


@heads.register("warm_up")
@dataclass(frozen=True)
class WarmUp(MeanVariance):
    """Mean and variance; half the squared error for some epochs, in which the variance is not trained, then the likelihood.

    Attributes:
        epochs: how long the warm-up lasts; early stopping counts from its end.
    """

    name: ClassVar[str] = "warm_up"
    epochs: int = 10

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise ArgumentError(f"epochs must not be negative, got {self.epochs}")

    @property
    def warm_up_epochs(self) -> int:
        """Epochs of squared error."""
        return self.epochs

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """Squared error or likelihood, by age."""
        parameters = self.parameters(raw)
        squared = 0.5 * (target - parameters["mean"]) ** 2
        return torch.where(age < self.epochs, squared, gaussian_nll(**parameters, target=target))

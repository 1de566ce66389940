"""beta-NLL (Seitzer et al. 2022): the likelihood's gradient, weighted back towards rows of large variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.errors import ArgumentError
from uqprism.training.heads.base import Tensor, heads
from uqprism.training.heads.mean_variance import MeanVariance, gaussian_nll


@heads.register("beta_nll")
@dataclass(frozen=True)
class BetaNLL(MeanVariance):
    """Mean and variance; each row's negative log-likelihood times its variance^beta, which is taken as a constant.

    Attributes:
        beta: 0 is the likelihood itself, 1 weights all rows of the mean alike; 0.5 is the authors' advice.
    """

    name: ClassVar[str] = "beta_nll"
    beta: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.beta <= 1.0:
            raise ArgumentError(f"beta must lie in [0, 1], got {self.beta}")

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The weighted negative log-likelihood."""
        parameters = self.parameters(raw)
        return gaussian_nll(**parameters, target=target) * parameters["variance"].detach() ** self.beta

    def validation_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The likelihood without the weights: those make the loss no measure of fit."""
        return gaussian_nll(**self.parameters(raw), target=target)

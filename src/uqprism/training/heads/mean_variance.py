"""Mean and variance with the Gaussian likelihood: the paper's "standard" parameterisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.training.heads.base import SMALLEST, Head, Tensor, heads, softplus
from uqprism.training.heads.natural import HALF_LOG_2PI


@heads.register("mean_variance")
@dataclass(frozen=True)
class MeanVariance(Head):
    """mean = f1, variance = softplus(f2) + 1e-6; the negative log-likelihood (Nix and Weigend 1994).

    Its gradient for the mean is weighted by 1 / variance: rows that fit badly early get a large variance, then little weight.
    """

    name: ClassVar[str] = "mean_variance"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the variance."""
        return {"mean": raw[..., 0], "variance": softplus(raw[..., 1]) + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return gaussian_nll(**self.parameters(raw), target=target)


def gaussian_nll(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    """-log N(target; mean, variance)."""
    return 0.5 * (target - mean) ** 2 / variance + 0.5 * variance.log() + HALF_LOG_2PI

"""Heads that predict a Gaussian: natural parameters (the default), mean and variance, and mean and scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from uqprism.errors import ArgumentError
from uqprism.families import Gaussian
from uqprism.rules import CRPS
from uqprism.support.optional import require
from uqprism.training.heads import SMALLEST, Head, Tensor, heads, softplus

torch = require("torch", extra="deep")

SMALLEST_PRECISION = 1e-8  # where softplus underflows to zero, the variance is 1e8 and not infinite
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@heads.register("natural")
@dataclass(frozen=True)
class Natural(Head):
    """eta1 = f1, precision = softplus(f2) + 1e-8 and eta2 = -precision / 2; mean = eta1 / precision, variance = 1 / precision.

    The natural parameters of a Gaussian (Immer et al. 2023). The loss is the negative log-likelihood in its completed square,
    1/2 precision (y - eta1/precision)^2 - 1/2 log precision + 1/2 log 2 pi. The paper's form, -eta1 y - eta2 y^2 - eta1^2 /
    (4 eta2) - ..., subtracts numbers of the size precision * y^2: in float32, with mean 1000, variance 1e-4 and y = 1000.01,
    it gives -515.7 instead of -3.19.
    """

    name: ClassVar[str] = "natural"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the variance."""
        precision = softplus(raw[..., 1]) + SMALLEST_PRECISION
        return {"mean": raw[..., 0] / precision, "variance": 1.0 / precision}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return natural_nll(raw[..., 0], softplus(raw[..., 1]) + SMALLEST_PRECISION, target)


@heads.register("mean_variance")
@dataclass(frozen=True)
class MeanVariance(Head):
    """mean = f1, variance = softplus(f2) + 1e-6; the negative log-likelihood (Nix and Weigend 1994).

    The paper's "standard" parameterisation. The gradient for the mean is weighted by 1 / variance: rows that fit badly early
    get a large variance, then little weight.
    """

    name: ClassVar[str] = "mean_variance"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the variance."""
        return {"mean": raw[..., 0], "variance": softplus(raw[..., 1]) + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return gaussian_nll(**self.parameters(raw), target=target)


@heads.register("beta_nll")
@dataclass(frozen=True)
class BetaNLL(MeanVariance):
    """Mean and variance; the negative log-likelihood of each row, weighted by variance^beta (Seitzer et al. 2022).

    The weight has no gradient. It gives rows of large variance back some of the influence that the likelihood takes away.

    Attributes:
        beta: 0 is the likelihood itself, 1 weights the mean's errors equally in all rows; the authors advise 0.5.
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
        """The likelihood without weights: the weighted one does not measure the fit."""
        return gaussian_nll(**self.parameters(raw), target=target)


@heads.register("warm_up")
@dataclass(frozen=True)
class WarmUp(MeanVariance):
    """Mean and variance; half the squared error at first, then the negative log-likelihood.

    The variance is not trained during the warm-up (Nix and Weigend 1994; Skafte et al. 2019).

    Attributes:
        epochs: the length of the warm-up; early stopping starts after it.
    """

    name: ClassVar[str] = "warm_up"
    epochs: int = 10

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise ArgumentError(f"epochs must not be negative, got {self.epochs}")

    @property
    def warm_up_epochs(self) -> int:
        """The epochs of squared error."""
        return self.epochs

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """Half the squared error below `epochs`, then the negative log-likelihood."""
        parameters = self.parameters(raw)
        squared = 0.5 * (target - parameters["mean"]) ** 2
        # Both are computed, because a step recorded as a CUDA graph cannot branch.
        return torch.where(age < self.epochs, squared, gaussian_nll(**parameters, target=target))


@heads.register("crps")
@dataclass(frozen=True)
class CRPSHead(Head):
    """mean = f1, scale = softplus(f2) + 1e-6; the CRPS by this package's own rule.

    Outliers influence it less than the likelihood.
    """

    name: ClassVar[str] = "crps"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the scale."""
        return {"mean": raw[..., 0], "scale": softplus(raw[..., 1]) + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The CRPS."""
        # Unchecked, because checks read numbers from the device, which a CUDA graph cannot record.
        return CRPS().score(Gaussian(**self.parameters(raw), check=False), target)


def gaussian_nll(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    """-log N(target; mean, variance)."""
    return 0.5 * (target - mean) ** 2 / variance + 0.5 * variance.log() + HALF_LOG_2PI


def natural_nll(eta1: Tensor, precision: Tensor, target: Tensor) -> Tensor:
    """-log N(target; eta1 / precision, 1 / precision), without cancellation."""
    return 0.5 * precision * (target - eta1 / precision) ** 2 - 0.5 * precision.log() + HALF_LOG_2PI

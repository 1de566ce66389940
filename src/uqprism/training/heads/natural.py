"""The natural parameters of a Gaussian (Immer et al. 2023): the default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from uqprism.training.heads.base import Head, Tensor, heads, softplus

SMALLEST_PRECISION = 1e-8
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@heads.register("natural")
@dataclass(frozen=True)
class Natural(Head):
    """eta1 = f1, precision = softplus(f2) + 1e-8 and eta2 = -precision / 2; mean = eta1 / precision, variance = 1 / precision.

    The loss is the negative log-likelihood in its completed square, 1/2 precision (y - eta1/precision)^2 - 1/2 log precision
    + 1/2 log 2 pi. The paper's form, -eta1 y - eta2 y^2 - eta1^2 / (4 eta2) - ..., subtracts numbers of the size
    precision * y^2: in float32, with mean 1000, variance 1e-4 and y = 1000.01, it gives -515.7 instead of -3.19.
    """

    name: ClassVar[str] = "natural"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the variance."""
        precision = softplus(raw[..., 1]) + SMALLEST_PRECISION
        return {"mean": raw[..., 0] / precision, "variance": 1.0 / precision}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return natural_nll(raw[..., 0], softplus(raw[..., 1]) + SMALLEST_PRECISION, target)


def natural_nll(eta1: Tensor, precision: Tensor, target: Tensor) -> Tensor:
    """-log N(target; eta1 / precision, 1 / precision), without cancellation."""
    return 0.5 * precision * (target - eta1 / precision) ** 2 - 0.5 * precision.log() + HALF_LOG_2PI

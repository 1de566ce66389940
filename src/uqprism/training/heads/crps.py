"""The CRPS as the training loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.families import Gaussian
from uqprism.rules import CRPS
from uqprism.training.heads.base import SMALLEST, Head, Tensor, heads, softplus


@heads.register("crps")
@dataclass(frozen=True)
class CRPSHead(Head):
    """mean = f1, scale = softplus(f2) + 1e-6; the closed form of this package's own rule.

    Outliers move it less than the likelihood.
    """

    name: ClassVar[str] = "crps"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The mean and the scale."""
        return {"mean": raw[..., 0], "scale": softplus(raw[..., 1]) + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The CRPS."""
        return CRPS().score(Gaussian(**self.parameters(raw), check=False), target)

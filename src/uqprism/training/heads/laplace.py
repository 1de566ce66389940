"""A Laplace distribution: heavier tails than a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.training.heads import SMALLEST, Head, Tensor, heads, softplus


@heads.register("laplace")
@dataclass(frozen=True)
class LaplaceHead(Head):
    """location = f1, scale = softplus(f2) + 1e-6; the negative log-likelihood |y - location| / scale + log(2 scale)."""

    name: ClassVar[str] = "laplace"
    family: ClassVar[str] = "laplace"

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The location and the scale."""
        return {"location": raw[..., 0], "scale": softplus(raw[..., 1]) + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood."""
        parameters = self.parameters(raw)
        return (target - parameters["location"]).abs() / parameters["scale"] + (2.0 * parameters["scale"]).log()

"""Deep Evidential Regression (Amini et al. 2020): the parameters of a Normal-Inverse-Gamma distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.arrays import to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.evidential import EvidentialPrediction
from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training.heads import SMALLEST, Head, Tensor, heads, softplus

torch = require("torch", extra="deep")


@heads.register("evidential")
@dataclass(frozen=True)
class Evidential(Head):
    """gamma = f1, nu = softplus(f2), alpha = softplus(f3) + 1, beta = softplus(f4), each of the last three plus 1e-6.

    The loss is the negative log-likelihood of the Student t distribution they imply, plus weight * |y - gamma| (2 nu + alpha),
    which lowers the evidence of rows that are predicted wrongly.

    Attributes:
        weight: lambda of the paper; with 0, evidence grows without bound.
        n_members: how many Gaussian members represent the distribution in `predict_ensemble`.
    """

    name: ClassVar[str] = "evidential"
    n_outputs: ClassVar[int] = 4
    family: ClassVar[str] = "evidential"
    weight: float = 0.01
    n_members: int = 64

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ArgumentError(f"weight must not be negative, got {self.weight}")
        if self.n_members < 1:
            raise ArgumentError(f"n_members must be at least 1, got {self.n_members}")

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The four parameters of the Normal-Inverse-Gamma distribution."""
        nu, alpha, beta = softplus(raw[..., 1:]).unbind(-1)
        # Alpha above 1, because the mean of the noise variance, beta / (alpha - 1), is infinite at 1.
        return {"gamma": raw[..., 0], "nu": nu + SMALLEST, "alpha": alpha + 1.0 + SMALLEST, "beta": beta + SMALLEST}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The negative log-likelihood and the penalty on misplaced evidence."""
        given = self.parameters(raw)
        penalty = (target - given["gamma"]).abs() * (2.0 * given["nu"] + given["alpha"])
        return student_nll(**given, target=target) + self.weight * penalty

    def validation_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The likelihood alone: the penalty does not measure the fit."""
        return student_nll(**self.parameters(raw), target=target)

    def log_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """None: what it predicts is a posterior itself."""
        raise ArgumentError("an evidential network has no posterior to sample: use another head, or no posterior_samples")

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """The parameters for mean + scale * Y, in double precision; nu and alpha count observations and do not change."""
        given = {name: value.double() for name, value in parameters.items()}
        return given | {"gamma": mean + scale * given["gamma"], "beta": scale**2 * given["beta"]}

    def evidence(self, parameters: dict[str, Tensor]) -> Any:
        """The `EvidentialPrediction`, one distribution for each point and network."""
        arrays = {name: to_numpy(value) for name, value in parameters.items()}
        return EvidentialPrediction(**arrays, networks=arrays["gamma"].ndim > 1)

    def ensemble(self, parameters: dict[str, Tensor]) -> EnsemblePrediction:
        """Gaussian members that represent the predicted distributions."""
        found = self.evidence(parameters).as_ensemble(self.n_members)
        if not isinstance(parameters["gamma"], torch.Tensor):
            return found
        # `as_ensemble` computes in NumPy; tensors go back to the device of the inputs.
        arrays = (torch.from_numpy(x).to(parameters["gamma"].device) for x in (found.members.mean, found.members.scale))
        return EnsemblePrediction.gaussian(**dict(zip(("mean", "scale"), arrays, strict=True)), member_axis=0)


def student_nll(gamma: Tensor, nu: Tensor, alpha: Tensor, beta: Tensor, target: Tensor) -> Tensor:
    """-log of the Student t density with 2 alpha degrees of freedom at gamma, scale^2 = beta (1 + nu) / (nu alpha)."""
    spread = 2.0 * beta * (1.0 + nu) / nu
    return (
        0.5 * (math.pi * spread).log()
        + (alpha + 0.5) * torch.log1p((target - gamma) ** 2 / spread)
        + torch.lgamma(alpha)
        - torch.lgamma(alpha + 0.5)
    )

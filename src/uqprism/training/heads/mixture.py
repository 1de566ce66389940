"""A mixture of Gaussians, for noise that is skewed, heavy-tailed or has several modes (Bishop 1994)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.families import Family, Gaussian, Mixture
from uqprism.rules import Quadratic
from uqprism.support.optional import require
from uqprism.training.heads import Head, Tensor, heads, softplus
from uqprism.training.heads.gaussian import HALF_LOG_2PI
from uqprism.training.heads.lists import check_rule, constant, first, normal_quantiles
from uqprism.training.options import positive_integer

torch = require("torch", extra="deep")

BOTH, CRPS_SHARE = "log+crps", 5.0  # the CRPS of a standardised target is about a fifth of a nat
LEAST = 1e-3  # of a scale in standardised units: the likelihood of a value that occurs twice grows without bound below


@heads.register("mixture")
@dataclass(frozen=True)
class MixtureHead(Head):
    """K Gaussians: shares = softmax(f), means = f plus quantiles of a standard Gaussian, scales = softplus(f) + 1e-3.

    The means begin apart, so that components learn different things.

    Attributes:
        components: their number.
        rule: the proper scoring rule that is minimised, "log", "crps", "quadratic", or "log+crps": the log score plus five times
            the CRPS, of standardised targets. The likelihood minds tails, the CRPS where most of the mass is.
    """

    name: ClassVar[str] = "mixture"
    family: ClassVar[str] = "mixture"
    components: int = 3
    rule: str = BOTH

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", positive_integer("components", self.components))
        check_rule(self.rule, BOTH)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Three for each component."""
        return 3 * self.components

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """Shares, means and scales, (..., components)."""
        shares, mean, scale = self._parts(raw)
        return {"shares": shares.softmax(-1), "mean": mean, "scale": scale}

    def _parts(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shares, mean, scale = raw.unflatten(-1, (3, self.components)).unbind(-2)
        apart = normal_quantiles(tuple((i + 0.5) / self.components for i in range(self.components)))
        return shares, mean + constant(apart, raw), softplus(scale) + LEAST

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The score of the mixture."""
        if self.rule == "quadratic":
            return Quadratic().score(self.distribution(self.parameters(raw)), target)
        shares, mean, scale = self._parts(raw)
        if self.rule == "crps":
            return mixture_crps(shares.softmax(-1), mean, scale, target)
        z = (target[..., None] - mean) / scale
        # From the logarithms of the shares: a share that has become zero could not grow again.
        log_score = HALF_LOG_2PI - torch.logsumexp(shares.log_softmax(-1) - 0.5 * z * z - scale.log(), -1)
        return log_score if self.rule == "log" else log_score + CRPS_SHARE * mixture_crps(shares.softmax(-1), mean, scale, target)

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """Means and scales in the units of mean + scale * Y, in double precision."""
        given = {name: value.double() for name, value in parameters.items()}
        return given | {"mean": mean + scale * given["mean"], "scale": scale * given["scale"]}

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The mixtures, with a batch of (...)."""
        given = {name: first(value) for name, value in parameters.items()}
        shares = given.pop("shares")
        return Mixture(Gaussian(**given, check=check), shares, check=check)


def mixture_crps(shares: Tensor, mean: Tensor, scale: Tensor, target: Tensor) -> Tensor:
    """The CRPS of Gaussian mixtures with parameters (..., components): E|Y - y| - E|Y - Y'| / 2 (Grimit et al. 2006).

    A step of training takes half as long with it as with the rule itself, which knows no gradients of its own.
    """
    first, second = torch.triu_indices(shares.shape[-1], shares.shape[-1], offset=1, device=shares.device).unbind()
    shifts = torch.cat([target[..., None] - mean, mean[..., first] - mean[..., second]], -1)
    scales = torch.cat([scale, torch.hypot(scale[..., first], scale[..., second])], -1)
    # Each pair counts twice; a component with itself has a distance of 2 scale / sqrt(pi).
    weights = torch.cat([shares, -shares[..., first] * shares[..., second]], -1)
    return (weights * _Distance.apply(shifts, scales)).sum(-1) - (shares * shares * scale).sum(-1) / math.sqrt(math.pi)


class _Distance(torch.autograd.Function):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """E|X| of Gaussians with these means and scales, whose derivatives are two numbers that its value consists of."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, scale: Tensor) -> Tensor:
        z = mean / scale
        inclination = torch.erf(z * math.sqrt(0.5))
        density = torch.exp(-0.5 * z * z) * math.sqrt(2.0 / math.pi)
        ctx.save_for_backward(inclination, density)
        return scale * density + mean * inclination

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        inclination, density = ctx.saved_tensors
        return gradient * inclination, gradient * density

"""A mixture of Gaussians, for noise that is skewed, heavy-tailed or has several modes (Bishop 1994)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
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
CRPS_WEIGHTS = {"log": 0.0, "crps": 1.0, BOTH: CRPS_SHARE}
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
        return shares, mean + constant(_apart(self.components), raw), softplus(scale) + LEAST

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The score of the mixture."""
        if self.rule == "quadratic":
            return Quadratic().score(self.distribution(self.parameters(raw)), target)
        return scores(raw, target, self.components, float(self.rule != "crps"), CRPS_WEIGHTS[self.rule])

    def log_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return scores(raw, target, self.components, 1.0, 0.0)

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """Means and scales in the units of mean + scale * Y, in double precision."""
        given = {name: value.double() for name, value in parameters.items()}
        return given | {"mean": mean + scale * given["mean"], "scale": scale * given["scale"]}

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The mixtures, with a batch of (...)."""
        given = {name: first(value) for name, value in parameters.items()}
        shares = given.pop("shares")
        return Mixture(Gaussian(**given, check=check), shares, check=check)


def scores(raw: Tensor, target: Tensor, components: int, log_share: float, crps_share: float) -> Tensor:
    """So much of the log score and of the CRPS of the mixtures that raw outputs (..., 3 components) stand for."""
    wanted = torch.is_grad_enabled() and raw.requires_grad
    return _Scores.apply(raw, target, (components, log_share, crps_share, wanted))


class _Scores(torch.autograd.Function):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """The scores and, in the same pass, their gradient: autograd would take three times as long."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, target: Tensor, how: tuple[int, float, float, bool]) -> Tensor:
        components, log_share, crps_share, wanted = how
        # The components come first: operations on a last axis of three are slow.
        logits, centre, width = raw.reshape(-1, 3, components).movedim(0, -1).contiguous()
        mean = centre + constant(_apart(components), raw)[:, None]
        scale = softplus(width) + LEAST
        shift, log_shares = target.reshape(-1) - mean, logits.log_softmax(0)
        shares = log_shares.exp()
        found = []
        if log_share:
            found.append((log_share, *_log_score(shift, scale, log_shares, shares, wanted=wanted)))
        if crps_share:
            found.append((crps_share, *_crps(shift, scale, mean, shares, wanted=wanted)))
        losses = sum(share * loss for share, loss, _ in found)
        if wanted:
            gradients = [sum(share * parts[i] for share, _, parts in found) for i in range(3)]
            gradients[2] = gradients[2] * torch.sigmoid(width)
            ctx.save_for_backward(torch.stack(gradients).movedim(-1, 0).reshape(raw.shape))
        return losses.view(target.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.unsqueeze(-1) * ctx.saved_tensors[0], None, None


Parts = tuple[Tensor, list[Tensor]]


def _log_score(shift: Tensor, scale: Tensor, log_shares: Tensor, shares: Tensor, *, wanted: bool) -> Parts:
    """The log score and its gradient for the shares' logits, the means and the scales, each (components, n)."""
    z = shift / scale
    # From the logarithms of the shares: a share that has become zero could not grow again.
    joint = log_shares - 0.5 * z * z - scale.log()
    log_density = torch.logsumexp(joint, 0)
    if not wanted:
        return HALF_LOG_2PI - log_density, []
    owned = (joint - log_density).exp()  # how likely the target is each component's
    pull = owned * z / scale
    return HALF_LOG_2PI - log_density, [shares - owned, -pull, owned / scale - pull * z]


def _crps(shift: Tensor, scale: Tensor, mean: Tensor, shares: Tensor, *, wanted: bool) -> Parts:
    """The CRPS, E|Y - y| - E|Y - Y'| / 2 (Grimit et al. 2006), and its gradient as above.

    E|X| of a Gaussian is scale * density + mean * inclination, where these two are its derivatives.
    """
    count = len(mean)
    wide = torch.hypot(scale[:, None], scale)
    shifts = torch.cat([shift, (mean[:, None] - mean).flatten(0, 1)])
    scales = torch.cat([scale, wide.flatten(0, 1)])
    z = shifts / scales
    inclination = torch.erf(z * math.sqrt(0.5))
    density = torch.exp(-0.5 * z * z) * math.sqrt(2.0 / math.pi)
    distances = scales * density + shifts * inclination
    to_target, apart = distances[:count], distances[count:].view_as(wide)
    slope = to_target - (shares * apart).sum(1)  # the derivative for each share
    half = 0.5 * (shares * (to_target + slope)).sum(0)
    if not wanted:
        return half, []
    leans, thick = inclination[count:].view_as(wide), density[count:].view_as(wide)
    of_means = -shares * (inclination[:count] + (shares * leans).sum(1))
    of_scales = shares * (density[:count] - scale * (shares * thick / wide).sum(1))
    return half, [shares * (slope - (shares * slope).sum(0)), of_means, of_scales]


@lru_cache(maxsize=16)
def _apart(components: int) -> tuple[float, ...]:
    return normal_quantiles(tuple((i + 0.5) / components for i in range(components)))

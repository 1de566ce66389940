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
Shares = tuple[int, bool, float]
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
        return scores(raw, target, self.components, self.rule != "crps", CRPS_WEIGHTS[self.rule])

    @property
    def knows_gradient(self) -> bool:
        """All rules but the quadratic."""
        return self.rule != "quadratic"

    def with_gradient(self, raw: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The score of the mixture and its gradient."""
        return scored(raw, target, (self.components, self.rule != "crps", CRPS_WEIGHTS[self.rule]))

    def log_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood."""
        return scores(raw, target, self.components, True, 0.0)

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """Means and scales in the units of mean + scale * Y, in double precision."""
        given = {name: value.double() for name, value in parameters.items()}
        return given | {"mean": mean + scale * given["mean"], "scale": scale * given["scale"]}

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The mixtures, with a batch of (...)."""
        given = {name: first(value) for name, value in parameters.items()}
        shares = given.pop("shares")
        return Mixture(Gaussian(**given, check=check), shares, check=check)


def scores(raw: Tensor, target: Tensor, components: int, likelihood: bool, crps_share: float) -> Tensor:
    """The log score, or not, plus so much of the CRPS of the mixtures that raw outputs (..., 3 components) stand for."""
    if torch.is_grad_enabled() and raw.requires_grad:
        return _Scores.apply(raw, target, (components, likelihood, crps_share))
    return _scores(raw, target, (components, likelihood, crps_share), None)


class _Scores(torch.autograd.Function):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """The scores with their gradient, which autograd would take three times as long to find."""

    @staticmethod
    def forward(ctx: Any, raw: Tensor, target: Tensor, how: Shares) -> Tensor:
        losses, gradient = scored(raw, target, how)
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.unsqueeze(-1) * ctx.saved_tensors[0], None, None


def scored(raw: Tensor, target: Tensor, how: Shares) -> tuple[Tensor, Tensor]:
    """The scores (...) and their gradient (..., 3 components); `how` is the number of components and what is scored."""
    gradient = raw.new_zeros(3, how[0], target.numel())  # of the shares' logits, the means and the scales
    losses = _scores(raw, target, how, gradient)
    return losses, gradient.movedim(-1, 0).reshape(raw.shape)


def _scores(raw: Tensor, target: Tensor, how: Shares, into: Tensor | None) -> Tensor:
    components, likelihood, crps_share = how
    # The components come first: operations on a last axis of three are slow.
    logits, centre, width = raw.reshape(-1, 3, components).movedim(0, -1).contiguous().unbind()
    scale = softplus(width).add_(LEAST)
    shift = target.reshape(-1) - centre - constant(_apart(components), raw)[:, None]
    log_shares = logits.log_softmax(0)
    shares = log_shares.exp()
    losses = _log_score(shift, scale, log_shares, shares, into) if likelihood else torch.zeros_like(shift[0])
    if crps_share:
        losses.add_(_crps(shift, scale, shares, into, crps_share), alpha=crps_share)
    if into is not None:
        into[2].mul_(torch.sigmoid(width))
    return losses.view(target.shape)


def _log_score(shift: Tensor, scale: Tensor, log_shares: Tensor, shares: Tensor, into: Tensor | None) -> Tensor:
    """The log score (n,); its gradient for the shares' logits, the means and the scales is added `into` (3, components, n)."""
    z = shift / scale
    # From the logarithms of the shares: a share that has become zero could not grow again.
    joint = (log_shares - scale.log()).addcmul_(z, z, value=-0.5)
    greatest = joint.amax(0)
    owned = (joint - greatest).exp_()
    whole = owned.sum(0)
    if into is not None:
        owned.div_(whole)  # how likely the target is each component's
        pull = (owned * z).div_(scale)
        into[0].add_(shares).sub_(owned)
        into[1].sub_(pull)
        into[2].addcdiv_(owned, scale).addcmul_(pull, z, value=-1.0)
    return HALF_LOG_2PI - whole.log_().add_(greatest)


def _crps(shift: Tensor, scale: Tensor, shares: Tensor, into: Tensor | None, times: float) -> Tensor:
    """The CRPS, E|Y - y| - E|Y - Y'| / 2 (Grimit et al. 2006), and so many times its gradient, as above.

    E|X| of a Gaussian is scale * density + mean * inclination, where these two are its derivatives.
    """
    count = shift.shape[0]
    wide = torch.hypot(scale[:, None], scale)
    shifts = torch.cat([shift, (shift - shift[:, None]).flatten(0, 1)])
    scales = torch.cat([scale, wide.flatten(0, 1)])
    z = shifts / scales
    density = (z * z).mul_(-0.5).exp_().mul_(math.sqrt(2.0 / math.pi))
    inclination = z.mul_(math.sqrt(0.5)).erf_()
    distances = (scales * density).addcmul_(shifts, inclination)
    to_target, apart = distances[:count], distances[count:].view_as(wide)
    slope = to_target - (shares * apart).sum(1)  # the derivative for each share
    if into is not None:
        leans, thick = inclination[count:].view_as(wide), density[count:].view_as(wide)
        weight = shares * times
        into[0].addcmul_(weight, slope - (shares * slope).sum(0))
        into[1].addcmul_(weight, (shares * leans).sum(1).add_(inclination[:count]), value=-1.0)
        into[2].addcmul_(weight, torch.addcmul(density[:count], scale, (shares * thick).div_(wide).sum(1), value=-1.0))
    return (to_target.add_(slope) * shares).sum(0).mul_(0.5)


@lru_cache(maxsize=16)
def _apart(components: int) -> tuple[float, ...]:
    return normal_quantiles(tuple((i + 0.5) / components for i in range(components)))

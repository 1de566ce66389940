"""Quantiles, trained by the pinball loss (Koenker and Bassett 1978); they never cross."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqprism.errors import ArgumentError
from uqprism.families import Family, Quantiles
from uqprism.families.quantiles import TAILS, Tails
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.heads import SMALLEST, Head, Tensor, heads, softplus
from uqprism.training.heads.lists import constant, first, normal_quantiles

torch = require("torch", extra="deep")

LEVELS = (0.01, *(round(0.05 * i, 2) for i in range(1, 20)), 0.99)
START = 0.6931471805599453  # softplus(0): a network whose outputs are zero predicts a standard Gaussian


@heads.register("quantiles")
@dataclass(frozen=True)
class QuantileHead(Head):
    """The middle quantile is f, the others follow by steps up and down from it, each softplus(f) times that of a Gaussian.

    The loss is twice the mean pinball loss over the levels, which is the CRPS of the quantiles as the levels become dense.

    Attributes:
        levels: increasing probabilities between 0 and 1, at least two.
        tails: what lies outside the outermost levels, see `uqprism.Quantiles`; "none" has no density.
    """

    name: ClassVar[str] = "quantiles"
    family: ClassVar[str] = "quantiles"
    levels: tuple[float, ...] = LEVELS
    tails: Tails = "exponential"

    def __post_init__(self) -> None:
        levels = tuple(map(float, self.levels))
        increasing = all(a < b for a, b in zip((0.0, *levels), (*levels, 1.0), strict=True))
        if len(levels) < 2 or not increasing:
            raise ArgumentError(f"levels must be at least two increasing probabilities between 0 and 1, got {self.levels!r}")
        if self.tails not in TAILS:
            raise unknown("tails", self.tails, TAILS)
        object.__setattr__(self, "levels", levels)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One for each level."""
        return len(self.levels)

    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The quantiles in the order of the levels, (..., levels)."""
        middle = len(self.levels) // 2
        usual = constant(normal_quantiles(self.levels), raw)
        steps = softplus(raw) / START + SMALLEST
        gaps = usual[1:] - usual[:-1]
        centre = raw[..., middle : middle + 1] + usual[middle]
        up = centre + (steps[..., middle + 1 :] * gaps[middle:]).cumsum(-1)
        down = centre - (steps[..., :middle] * gaps[:middle]).flip(-1).cumsum(-1).flip(-1)
        return {"values": torch.cat([down, centre, up], -1)}

    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """Twice the mean pinball loss."""
        above = target[..., None] - self.parameters(raw)["values"]
        levels = constant(self.levels, raw)
        return 2.0 * torch.maximum(levels * above, (levels - 1.0) * above).mean(-1)

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """The quantiles of mean + scale * Y, in double precision."""
        return {"values": mean + scale * parameters["values"].double()}

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The distributions, with a batch of (...)."""
        return Quantiles(self.levels, first(parameters["values"]), tails=self.tails, check=check)

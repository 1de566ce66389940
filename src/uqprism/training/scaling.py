"""Standardisation as part of the model: means and scales that are computed, and removed, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uqprism.support.optional import require

torch = require("torch", extra="deep")

Tensor = Any
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Scaling:
    """x -> (x - mean) / scale, in float64 until the last step.

    Attributes:
        mean: of each column of a table, of each channel of images (rows, channels, ...), or of the targets.
        scale: the standard deviation; for a constant a part of its size, or of 1 for zero.
    """

    mean: Tensor
    scale: Tensor

    @classmethod
    def of(cls, values: Tensor, constant_spread: float = 1.0) -> Scaling:
        """Fitted to rows (n, *features); a constant counts as if it spread over this part of its size."""
        axes = (0,) if values.ndim <= 2 else (0, *range(2, values.ndim))
        count = values.shape[0] * math.prod(values.shape[2:])
        # Relative to one of the values, and to the largest distance from it: a constant column has no spread to the last digit,
        # and squares neither overflow nor vanish.
        origin = values[0].double() if values.ndim <= 2 else values[0].double().flatten(1)[:, 0]
        blocks = values.split(ROWS_AT_ONCE)
        span = torch.zeros_like(origin)
        for block in blocks:
            span = torch.maximum(span, (block.double() - _aligned(origin, values.ndim)).abs().amax(axes))
        unit = torch.where(span > 0, span, torch.ones_like(span))

        def mean_of(function: Callable[[Tensor], Tensor]) -> Tensor:
            parts = [function((b.double() - _aligned(origin, b.ndim)) / _aligned(unit, b.ndim)).sum(axes) for b in blocks]
            return torch.stack(parts).sum(0) / count

        mean = mean_of(lambda x: x)
        variance = mean_of(lambda x: (x - _aligned(mean, values.ndim)) ** 2)
        # What rounding makes of a constant is no spread either.
        constant = span <= 4 * torch.finfo(torch.float64).eps * origin.abs()
        size = constant_spread * torch.where(origin == 0, torch.ones_like(origin), origin.abs())
        return cls((origin + unit * mean).cpu(), torch.where(constant, size, unit * variance.sqrt()).cpu())

    def apply(self, values: Tensor, dtype: Any) -> Tensor:
        """The values standardised, in this precision."""
        mean, scale = (_aligned(x.to(values.device), values.ndim) for x in (self.mean, self.scale))
        blocks = [((block.double() - mean) / scale).to(dtype) for block in values.split(ROWS_AT_ONCE)]
        return torch.cat(blocks) if len(blocks) != 1 else blocks[0]

    def to(self, device: Any) -> Scaling:
        """The same on another device."""
        return Scaling(self.mean.to(device), self.scale.to(device))


def _aligned(statistic: Tensor, ndim: int) -> Tensor:
    """Per-column or per-channel numbers, shaped to broadcast against rows (n, columns) or (n, channels, ...)."""
    return statistic.reshape(statistic.shape + (1,) * (ndim - 2)) if ndim > 2 else statistic

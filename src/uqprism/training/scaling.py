"""Standardisation as part of the model: means and scales that are computed, and removed, in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqprism.storage import require

torch = require("torch", extra="deep")

Tensor = Any
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Scaling:
    """x -> (x - mean) / scale, in float64 until the last step.

    Attributes:
        mean: of each column of a table, of each channel of images (rows, channels, ...), or of the targets.
        scale: the standard deviation; 1 where a column is constant, so that it becomes zero.
    """

    mean: Tensor
    scale: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Scaling:
        """Fitted to rows (n, *features)."""
        axes = (0,) if values.ndim <= 2 else (0, *range(2, values.ndim))
        count = values.shape[0] * _size(values.shape[2:])
        # One value first, so that a constant column gives a mean of exactly that value and a scale of exactly zero.
        first = values[0].double()
        origin = first if values.ndim <= 2 else first.flatten(1)[:, 0]
        shift = _aligned(origin, values.ndim)
        blocks = values.split(ROWS_AT_ONCE)
        mean = sum(((block.double() - shift).sum(axes) for block in blocks), torch.zeros_like(origin)) / count
        away = _aligned(mean, values.ndim)
        squares = (((block.double() - shift - away) ** 2).sum(axes) for block in blocks)
        variance = sum(squares, torch.zeros_like(origin)) / count
        # What rounding leaves of a constant is no spread either.
        noise = (4 * torch.finfo(torch.float64).eps * (origin.abs() + mean.abs())) ** 2
        scale = torch.where(variance > noise, variance.sqrt(), torch.ones_like(variance))
        return cls(origin + mean, scale)

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


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size

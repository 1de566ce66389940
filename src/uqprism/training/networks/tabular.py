"""An MLP for tables: every column is embedded by a piecewise-linear or periodic function of its own (Gorishniy et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.networks import networks
from uqprism.training.networks.bins import BINS, edges
from uqprism.training.networks.mlp import MLP
from uqprism.training.options import positive_integer

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any


@networks.register("tabular")
@dataclass(frozen=True)
class TabularMLP:
    """An `MLP` on embedded columns; on rows of another shape than (columns,), such as images, an `MLP`.

    Each column becomes `pieces` numbers, of which its own linear layer makes `width`. A piece of a piecewise-linear embedding
    is 0 below its bin, 1 above it, and linear in between. Beyond the training rows
    the pieces stay as they are at the edge, and one more number grows with the distance. Its weights are never trained, as it is
    zero in all training rows: they stay different in all members, which disagree more the further a row is from the data.

    Attributes:
        hidden: widths of the hidden layers, as in `MLP`.
        activation: `relu`, `silu` or `gelu`.
        dropout: the probability that a hidden unit is set to zero in training.
        embedding: `piecewise`, `periodic`, or None for the columns as they are.
        pieces: of a column: bins, or pairs of a sine and a cosine.
        width: numbers that a column's embedding has; None feeds the pieces to the first hidden layer as they are.
        frequency: spread of the initial frequencies of a periodic embedding, in periods per standard deviation of the column.
        bins: `quantile` for bins of equally many training rows, or `tree` for those of a decision tree of the targets by the
            column alone, which ends bins where the targets' mean changes.
    """

    name: ClassVar[str] = "tabular"
    hidden: tuple[int, ...] = (100, 100, 100)
    activation: str = "relu"
    dropout: float = 0.0
    embedding: str | None = "piecewise"
    pieces: int = 16
    width: int | None = 8
    frequency: float = 0.3
    bins: str = "quantile"

    def __post_init__(self) -> None:
        widths = MLP(self.hidden, self.activation, self.dropout).hidden  # which checks them
        object.__setattr__(self, "hidden", widths)
        if self.embedding is not None and self.embedding not in EMBEDDINGS:
            raise unknown("embedding", self.embedding, EMBEDDINGS)
        if self.bins not in BINS:
            raise unknown("bins", self.bins, BINS)
        object.__setattr__(self, "pieces", positive_integer("pieces", self.pieces))
        if self.width is not None:
            object.__setattr__(self, "width", positive_integer("width", self.width))
        if not 0.0 < self.frequency < math.inf:
            raise ArgumentError(f"frequency must be positive and finite, got {self.frequency!r}")

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """Build a network with fresh weights; its bins are those of the training rows once it is trained."""
        (columns,) = input_shape if len(input_shape) == 1 else (0,)
        if not columns or self.embedding is None:
            return MLP(self.hidden, self.activation, self.dropout)(input_shape, n_outputs)
        encoding = EMBEDDINGS[self.embedding](columns, self)
        given = columns * encoding.pieces
        layers = [encoding]
        if self.width is not None:
            layers.append(ByColumn(columns, encoding.pieces, self.width))
            given = columns * self.width
        rest = MLP(self.hidden, self.activation, self.dropout)((given,), n_outputs)
        return nn.Sequential(*layers, *rest)


class Pieces(nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """(rows, columns) to (rows, columns * pieces): the pieces of each column's bins, and the distance beyond them.

    Bins of a column with few distinct values are fewer; the pieces left over are zero.

    Attributes:
        encodes: nothing is trained here, so that training rows can pass once, and not in every epoch.
    """

    encodes = True

    def __init__(self, columns: int, spec: TabularMLP) -> None:
        super().__init__()
        self.pieces, self._bins = spec.pieces + 1, spec.bins
        lowest, highest = -2.0, 2.0  # until `observe` has seen the data
        ends = np.linspace(lowest, highest, spec.pieces + 1)
        self.register_buffer("left", torch.tensor(ends[:-1]).float().repeat(columns, 1))
        self.register_buffer("slope", torch.full((columns, spec.pieces), spec.pieces / (highest - lowest)))
        self.register_buffer("lowest", torch.full((columns,), lowest))
        self.register_buffer("highest", torch.full((columns,), highest))

    def observe(self, inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The buffers for these training rows (rows, columns) and targets (rows,)."""
        values, aims = (x.detach().double().cpu().numpy() for x in (inputs, targets))
        count = self.pieces - 1
        left, slope = np.zeros((values.shape[1], count)), np.zeros((values.shape[1], count))
        for column, ends in enumerate(edges(self._bins, values, aims, count)):
            n = len(ends) - 1
            left[column, :n], slope[column, :n] = ends[:-1], 1.0 / np.diff(ends)
        lowest, highest = values.min(0), values.max(0)
        found = {"left": left, "slope": slope, "lowest": lowest, "highest": highest}
        return {name: torch.from_numpy(value) for name, value in found.items()}

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked(dict(self.named_buffers()), x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """All members: buffers (members, ...) and inputs (members, rows, columns)."""
        left, slope = (values[name].unsqueeze(-3) for name in ("left", "slope"))
        inside = ((x.unsqueeze(-1) - left) * slope).clamp(0.0, 1.0)
        beyond = x - _within(values, x)
        return torch.cat([inside, beyond.unsqueeze(-1)], dim=-1).flatten(-2)


def _within(values: dict[str, Tensor], x: Tensor) -> Tensor:
    """The nearest values inside the training rows."""
    lowest, highest = (values[name].unsqueeze(-2) for name in ("lowest", "highest"))
    return torch.minimum(torch.maximum(x, lowest), highest)


class Waves(nn.Module):  # type: ignore[name-defined]
    """(rows, columns) to (rows, columns * pieces): sines and cosines of trained frequencies, the column, the distance beyond."""

    def __init__(self, columns: int, spec: TabularMLP) -> None:
        super().__init__()
        self.pieces = 2 * spec.pieces + 2
        self.frequency = nn.Parameter(2.0 * math.pi * spec.frequency * torch.randn(columns, spec.pieces))
        self.register_buffer("lowest", torch.full((columns,), -2.0))
        self.register_buffer("highest", torch.full((columns,), 2.0))

    def observe(self, inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The buffers for these training rows (rows, columns)."""
        values = inputs.detach().double().cpu()
        return {"lowest": values.amin(0), "highest": values.amax(0)}

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked({"frequency": self.frequency, **dict(self.named_buffers())}, x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """All members: parameters and buffers (members, ...) and inputs (members, rows, columns)."""
        inside = _within(values, x)
        angles = inside.unsqueeze(-1) * values["frequency"].unsqueeze(-3)
        parts = [angles.sin(), angles.cos(), inside.unsqueeze(-1), (x - inside).unsqueeze(-1)]
        return torch.cat(parts, dim=-1).flatten(-2)


class ByColumn(nn.Module):  # type: ignore[name-defined]
    """(rows, columns * pieces) to (rows, columns * width): a linear layer of its own for each column."""

    def __init__(self, columns: int, pieces: int, width: int) -> None:
        super().__init__()
        self.columns = columns
        bound = 1.0 / math.sqrt(pieces)  # as in `torch.nn.Linear`
        self.weight = nn.Parameter(torch.empty(columns, pieces, width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(columns, 1, width).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked({"weight": self.weight, "bias": self.bias}, x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """One network or all members: parameters (members, ...) and inputs (members, rows, columns * pieces)."""
        weight, bias = values["weight"], values["bias"]
        product = torch.baddbmm(bias.flatten(0, -3), self._parts(x), weight.flatten(0, -3))
        return self._together(product, x.shape[:-1])

    def with_backward(self, values: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Any]:
        """What `stacked` gives, and its backward pass as `training.chain` calls it."""
        weight, parts = values["weight"], self._parts(x)
        product = torch.baddbmm(values["bias"].flatten(0, 1), parts, weight.flatten(0, 1))

        def back(gradient: Tensor, into: dict[str, Tensor], needed: bool) -> Tensor:
            own = self._parts(gradient)
            into["weight"].copy_(torch.bmm(parts.transpose(1, 2), own).view_as(weight))
            into["bias"].copy_(own.sum(1).view_as(into["bias"]))
            return self._together(torch.bmm(own, weight.flatten(0, 1).transpose(1, 2)), x.shape[:-1]) if needed else gradient

        return self._together(product, x.shape[:-1]), back

    def _parts(self, x: Tensor) -> Tensor:
        """(members, rows, columns * n) to (members * columns, rows, n), also without members."""
        return x.unflatten(-1, (self.columns, -1)).transpose(-2, -3).flatten(0, -3)

    def _together(self, parts: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The way back: (members * columns, rows, n) to (members, rows, columns * n)."""
        return parts.view(*shape[:-1], self.columns, *parts.shape[1:]).transpose(-2, -3).flatten(-2)


EMBEDDINGS: dict[str, Any] = {"piecewise": Pieces, "periodic": Waves}

"""One network for all members: they share its matrices and have scalings and output layers of their own (Wen et al. 2020)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training.networks import Factory, networks
from uqprism.training.networks.mlp import ACTIVATIONS, MLP
from uqprism.training.networks.tabular import EMBEDDINGS, ByColumn, TabularMLP
from uqprism.training.options import positive_integer

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any


@networks.register("shared")
@dataclass(frozen=True)
class SharedMLP(TabularMLP):
    """`members` times a `TabularMLP` whose matrices are the same (TabM, Gorishniy et al. 2025).

    A layer computes scale_out * (W (scale_in * x)) + bias, where the matrix W is that of all members and the vectors are each
    member's own. Members begin with random signs of the first layer's inputs, one for each column, and end with output layers
    of their own; all other scalings begin at one. The embeddings of the columns are shared too.

    Attributes:
        members: their number.
        hidden, activation, dropout, embedding, pieces, width, frequency, bins: see `TabularMLP`.
    """

    name: ClassVar[str] = "shared"
    members: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "members", positive_integer("members", self.members))

    @classmethod
    def of(cls, network: Factory, members: int) -> SharedMLP:
        """The specification of so many members of this network."""
        if type(network) is TabularMLP:
            return cls(**dataclasses.asdict(network), members=members)
        if type(network) is MLP:
            return cls(**dataclasses.asdict(network), embedding=None, members=members)
        raise ArgumentError(
            "shared=True needs a TabularMLP or an MLP, whose layers it knows; other networks can only be trained apart "
            "(shared=False)"
        )

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """Build a network with fresh weights; its outputs are those of all members, one after the other."""
        if n_outputs % self.members:
            raise ArgumentError(f"n_outputs must be a multiple of members={self.members}, got {n_outputs}")
        layers, given, chunk = [], math.prod(input_shape), 1
        if self.embedding is not None and len(input_shape) == 1:
            encoding = EMBEDDINGS[self.embedding](given, self)
            layers.append(encoding)
            chunk = encoding.pieces
            if self.width is not None:
                layers.append(ByColumn(given, encoding.pieces, self.width))
                chunk = self.width
            given *= chunk
        elif len(input_shape) != 1:
            layers.append(nn.Flatten())
        layers.append(Scaled(self.members, given, chunk))
        for place, following in enumerate(self.hidden):
            layers += [Scaled(self.members, given)] if place else []
            layers += [SharedLinear(self.members, given, following), ACTIVATIONS[self.activation]()]
            layers += [nn.Dropout(self.dropout)] if self.dropout else []
            given = following
        return nn.Sequential(*layers, OwnLinear(self.members, given, n_outputs // self.members))


class Scaled(nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """Each member's scalings of a layer's inputs, (rows, members * n) to the same.

    With `chunk`, (rows, n) to (rows, members * n): all members have the same inputs, and random signs of so many at a time.
    """

    def __init__(self, members: int, width: int, chunk: int | None = None) -> None:
        super().__init__()
        self.first = chunk is not None
        signs = torch.randint(0, 2, (members, width // (chunk or 1))) * 2.0 - 1.0
        self.scale = nn.Parameter(signs.repeat_interleave(chunk, 1) if chunk else torch.ones(members, width))

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked({"scale": self.scale}, x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """One network or a stack of them, whose scalings and inputs have one more axis in front."""
        if not self.first:
            return x * values["scale"].flatten(-2).unsqueeze(-2)
        return (x.unsqueeze(-2) * values["scale"].unsqueeze(-3)).flatten(-2)


class SharedLinear(nn.Module):  # type: ignore[name-defined]
    """(rows, members * given) to (rows, members * following): one matrix, and each member's scalings of its outputs."""

    def __init__(self, members: int, given: int, following: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(given)  # as in `torch.nn.Linear`
        self.weight = nn.Parameter(torch.empty(following, given).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(following).uniform_(-bound, bound).repeat(members, 1))
        self.scale = nn.Parameter(torch.ones(members, following))

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked(dict(self.named_parameters()), x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """One network or a stack of them, whose parameters and inputs have one more axis in front."""
        members = values["scale"].shape[-2]
        each = x.unflatten(-1, (members, -1))
        product = each.flatten(-3, -2) @ values["weight"].transpose(-1, -2)
        out = product.unflatten(-2, (-1, members)) * values["scale"].unsqueeze(-3) + values["bias"].unsqueeze(-3)
        return out.flatten(-2)


class OwnLinear(nn.Module):  # type: ignore[name-defined]
    """(rows, members * given) to (rows, members * following): a matrix for each member."""

    def __init__(self, members: int, given: int, following: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(given)
        self.weight = nn.Parameter(torch.empty(members, given, following).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, 1, following).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """One network."""
        return self.stacked(dict(self.named_parameters()), x)

    def stacked(self, values: dict[str, Tensor], x: Tensor) -> Tensor:
        """One network or a stack."""
        each = x.unflatten(-1, (values["weight"].shape[-3], -1)).transpose(-2, -3)
        return (each @ values["weight"] + values["bias"]).transpose(-2, -3).flatten(-2)

"""The layers that `recorded` can record: their passes for a part of the members, with outputs where they are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqprism.support.optional import require
from uqprism.training.networks.tabular import ByColumn
from uqprism.training.stack import Stack

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any
Tensors = dict[str, Tensor]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Dense:
    """A linear layer, with ReLU or not.

    Attributes:
        name: in the network.
        given: inputs.
        width: outputs.
        bias: whether there is one.
        rectified: whether ReLU follows.
        first: whether this is the first layer, of whose inputs nobody needs the gradient.
    """

    name: str
    given: int
    width: int
    bias: bool
    rectified: bool
    first: bool

    def spaces(self, batch: int) -> list[Shape]:
        """What a member writes: the outputs, and the gradient of the inputs."""
        return [(batch, self.width), *([] if self.first else [(batch, self.given)])]

    def forward(self, values: Tensors, x: Tensor, own: list[Tensor]) -> Tensor:
        """The outputs."""
        weight = values[f"{self.name}.weight"].transpose(1, 2)
        if self.bias:
            torch.baddbmm(values[f"{self.name}.bias"].unsqueeze(1), x, weight, out=own[0])
        else:
            torch.bmm(x, weight, out=own[0])
        return own[0].relu_() if self.rectified else own[0]

    def backward(self, values: Tensors, into: Tensors, x: Tensor, slope: Tensor, own: list[Tensor]) -> Tensor:
        """The gradient of the inputs, from that of the outputs; those of the parameters go `into`."""
        if self.rectified:
            torch.ops.aten.threshold_backward.grad_input(slope, own[0], 0, grad_input=slope)
        torch.bmm(slope.transpose(1, 2), x, out=into[f"{self.name}.weight"])
        if self.bias:
            torch.sum(slope, 1, out=into[f"{self.name}.bias"])
        return slope if self.first else torch.bmm(slope, values[f"{self.name}.weight"], out=own[1])


@dataclass(frozen=True)
class Columns:
    """`ByColumn`, as the first layer.

    Attributes:
        name: in the network.
        columns: of the table.
        pieces: inputs of a column.
        width: outputs of a column.
    """

    name: str
    columns: int
    pieces: int
    width: int

    def spaces(self, batch: int) -> list[Shape]:
        """What a member writes: inputs, outputs and their gradient by column, outputs by row; weights and their gradient."""
        by_column, weights = (self.columns, batch, self.width), (self.columns, self.pieces, self.width)
        return [(self.columns, batch, self.pieces), by_column, by_column, (batch, self.columns * self.width), weights, weights]

    def forward(self, values: Tensors, x: Tensor, own: list[Tensor]) -> Tensor:
        """The outputs."""
        apart, out, _, rows, weight, _ = own
        apart.copy_(x.unflatten(-1, (self.columns, self.pieces)).transpose(1, 2))
        weight.copy_(values[f"{self.name}.weight"])
        bias = values[f"{self.name}.bias"].flatten(0, 1)
        torch.baddbmm(bias, apart.flatten(0, 1), weight.flatten(0, 1), out=out.flatten(0, 1))
        rows.unflatten(-1, (self.columns, self.width)).copy_(out.transpose(1, 2))
        return rows

    def backward(self, values: Tensors, into: Tensors, x: Tensor, slope: Tensor, own: list[Tensor]) -> Tensor:
        """Write the gradients of the parameters."""
        apart, _, each, _, _, weight = own
        each.copy_(slope.unflatten(-1, (self.columns, self.width)).transpose(1, 2))
        torch.bmm(apart.flatten(0, 1).transpose(1, 2), each.flatten(0, 1), out=weight.flatten(0, 1))
        into[f"{self.name}.weight"].copy_(weight)
        torch.sum(each, 2, keepdim=True, out=into[f"{self.name}.bias"])
        return slope


def layers_of(stack: Stack, encoded: bool) -> list[Dense | Columns] | None:
    """The layers that are trained; None if one of them cannot be recorded."""
    if stack.chain is None:
        return None
    found: list[Dense | Columns] = []
    layers = list(stack.template.named_children())[int(encoded) :]
    kinds = [type(layer) for _, layer in layers]
    for place, (name, layer) in enumerate(layers):
        if not all(parameter.requires_grad for parameter in layer.parameters()):
            return None
        if kinds[place] is nn.Linear:
            rectified = kinds[place + 1 : place + 2] == [nn.ReLU]
            found.append(Dense(name, layer.in_features, layer.out_features, layer.bias is not None, rectified, not found))
        elif kinds[place] is ByColumn and not found:
            found.append(Columns(name, *layer.weight.shape))
        elif kinds[place] is not nn.ReLU or place == 0 or kinds[place - 1] is not nn.Linear:
            return None
    return found if kinds and kinds[-1] is nn.Linear else None

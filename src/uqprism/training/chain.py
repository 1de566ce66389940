"""All members through a sequence of layers by stacked matrices, with gradients that are written where Adam reads them.

Autograd records every product, holds a copy of every gradient and is asked for each at every step, which takes a third of a
step of small networks. Here it serves only the layers that have no backward pass of their own, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from uqprism.support.optional import require
from uqprism.training.randomness import DropoutMasks

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any
NARROW = 16
Tensors = dict[str, Tensor]
Function = Callable[[Tensors, Tensor], Tensor]
# Takes the gradient of a layer's outputs, where those of its parameters go, and whether that of its inputs is needed, which it
# returns.
Backward = Callable[[Tensor, Tensors, bool], Tensor]


class Chain:
    """The passes through the layers of a `torch.nn.Sequential` that `techniques.is_chain` accepts.

    Attributes:
        encodes: whether the first layer has nothing to train and takes each row by itself, so that the rows can pass it once and
            for all; the other layers then take what `encode` gives.
    """

    def __init__(self, template: Any) -> None:
        self._layers = list(template.named_children())
        each = [layer for _, layer in self._layers]
        self._inner = [[inner for inner, _ in (*layer.named_parameters(), *layer.named_buffers())] for layer in each]
        self._trained = [{inner for inner, p in layer.named_parameters() if p.requires_grad} for layer in each]
        self._first = min((place for place, names in enumerate(self._trained) if names), default=0)
        self._in_place = [type(each[i]) is nn.ReLU and i > 0 and isinstance(each[i - 1], nn.Linear) for i in range(len(each))]
        self._back: list[tuple[int, Backward]] = []
        self.encodes = bool(getattr(each[0], "encodes", False)) and not self._trained[0]

    def __call__(
        self, parameters: Tensors, buffers: Tensors, x: Tensor, masks: DropoutMasks | None, *, encoded: bool = False
    ) -> Tensor:
        """Outputs (members, rows, outputs) for inputs (members, rows, ...), which autograd can follow."""
        values = parameters | buffers if buffers else parameters  # parameters that are not trained are among the buffers
        for place in range(int(encoded), len(self._layers)):
            x = self._function(place, masks)(self._own(place, values), x)
        return x

    def encode(self, buffers: Tensors, x: Tensor) -> Tensor:
        """What the first layer makes of inputs (members, rows, ...)."""
        return self._layers[0][1].stacked(self._own(0, buffers), x)

    def training(self, parameters: Tensors, buffers: Tensors, x: Tensor, masks: DropoutMasks | None, *, encoded: bool) -> Tensor:
        """Outputs as above, which autograd cannot follow; `backward` can."""
        values = parameters | buffers if buffers else parameters
        self._back = []
        with torch.no_grad():
            for place in range(int(encoded), len(self._layers)):
                x = self._kept(place, self._own(place, values), x, masks)
        return x

    def backward(self, gradient: Tensor, into: Tensors) -> None:
        """Write the gradients of the stacked parameters, by name, for that of the outputs of the last `training`."""
        with torch.no_grad():
            for place, back in reversed(self._back):
                if place < self._first:
                    break
                name = self._layers[place][0]
                own = {inner: into[f"{name}.{inner}"] for inner in self._inner[place] if inner in self._trained[place]}
                gradient = back(gradient, own, place > self._first)
        self._back = []

    def _own(self, place: int, values: Tensors) -> Tensors:
        name = self._layers[place][0]
        return {inner: values[f"{name}.{inner}"] for inner in self._inner[place]}

    def _function(self, place: int, masks: DropoutMasks | None) -> Function:
        """A layer as a function of its stacked parameters and inputs."""
        layer = self._layers[place][1]
        if isinstance(layer, nn.Linear):
            return _linear
        if isinstance(layer, nn.Dropout):
            return lambda _, x: x if masks is None else masks.apply(x, layer.p, place)
        if isinstance(layer, nn.Flatten):
            return lambda _, x: x.flatten(2)
        if hasattr(layer, "stacked"):
            return layer.stacked
        # In place: the output of the linear layer is not needed again.
        return (lambda _, x: torch.relu_(x)) if self._in_place[place] else (lambda _, x: layer(x))

    def _kept(self, place: int, own: Tensors, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        """The outputs of one layer; its backward pass is noted."""
        layer = self._layers[place][1]
        back: Backward
        if isinstance(layer, nn.Linear):
            out, back = _linear(own, x), _linear_backward(own, x)
        elif self._in_place[place]:
            out = torch.relu_(x)
            back = partial(_relu_backward, out)
        elif place < self._first:
            out, back = self._function(place, masks)(own, x), _nothing
        elif hasattr(layer, "with_backward"):
            out, back = layer.with_backward(own, x)
        else:
            out, back = _by_autograd(self._function(place, masks), own, self._trained[place], x)
        self._back.append((place, back))
        return out


def _linear(own: Tensors, x: Tensor) -> Tensor:
    weight, bias = own["weight"].transpose(1, 2), own.get("bias")
    return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)


def _linear_backward(own: Tensors, x: Tensor) -> Backward:
    def back(gradient: Tensor, into: Tensors, needed: bool) -> Tensor:
        if "weight" in into:
            _product(x.transpose(1, 2), gradient, into["weight"].transpose(1, 2))
        if "bias" in into:
            torch.sum(gradient, 1, out=into["bias"])
        return torch.bmm(gradient, own["weight"]) if needed else gradient

    return back


def _product(a: Tensor, b: Tensor, into: Tensor) -> None:
    """Stacked matrix products, with the digits that `torch.bmm` has without `out`: it computes narrow ones in another way."""
    if a.shape[1] < NARROW or b.shape[2] < NARROW // 2:
        into.copy_(torch.bmm(a, b))
    else:
        torch.bmm(a, b, out=into)


def _relu_backward(out: Tensor, gradient: Tensor, *_: Any) -> Tensor:
    return torch.ops.aten.threshold_backward(gradient, out, 0)


def _nothing(gradient: Tensor, *_: Any) -> Tensor:
    return gradient


def _by_autograd(function: Function, own: Tensors, trained: set[str], x: Tensor) -> tuple[Tensor, Backward]:
    """The outputs of a layer without a backward pass of its own, and the one that autograd finds."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        leaves = {inner: value.detach().requires_grad_(inner in trained) for inner, value in own.items()}
        out = function(leaves, leaf)

    def back(gradient: Tensor, into: Tensors, needed: bool) -> Tensor:
        asked = [*(leaves[inner] for inner in into), *([leaf] if needed else [])]
        found = torch.autograd.grad(out, asked, gradient)
        for target, value in zip(into.values(), found, strict=False):
            target.copy_(value)
        return found[-1] if needed else gradient

    return out.detach(), back

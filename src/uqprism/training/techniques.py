"""Three ways to run all members of a stack at once, and how one is chosen for a network.

| technique | how | for |
|---|---|---|
| `matmul` | one batched matrix product per layer | chains of linear layers, pointwise activations and dropout: every MLP |
| `vmap` | `torch.func.vmap` over the members | other networks, if their operations can be batched; convolutions on a GPU |
| `loop` | one member after the other, still under one optimiser | the rest; convolutions on a CPU, and batch norm |

Grouped convolutions, which is what vmap makes of many networks' convolutions, are slower than one after the other on a CPU, and
on a GPU where they are large, as in networks with batch norm (benchmarks/RESULTS.md, RESULTS-gpu.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.storage import require
from uqprism.training.randomness import MASK, hashed, uniform

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any
Tensors = dict[str, Tensor]
POINTWISE = (nn.ReLU, nn.SiLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.Softplus, nn.Hardswish, nn.Mish)
DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
NORMS, CONVOLUTIONS = nn.modules.batchnorm._BatchNorm, nn.modules.conv._ConvNd
NAMES = ("auto", "matmul", "vmap", "loop")


@dataclass(frozen=True)
class Draw:
    """Which dropout masks to use: those of each member's seed and count.

    Attributes:
        seeds: one per member.
        counts: one per member: its optimiser step, or the number of a stochastic pass.
        per_row: a mask for every row, as in training; otherwise one for all rows, which makes a pass one thinned network.
    """

    seeds: Tensor
    counts: Tensor
    per_row: bool = True

    def dropped(self, x: Tensor, probability: float, layer: int) -> Tensor:
        """Units (members, rows, units) with some set to zero and the rest scaled up."""
        rows = x.shape[1] if self.per_row else 1
        positions = torch.arange(rows * x.shape[2], device=x.device).view(rows, x.shape[2])
        keys = hashed(self.seeds, MASK, self.counts, layer)[:, None, None]
        return x * ((uniform(keys, positions) >= probability).to(x.dtype) / (1.0 - probability))

    def generator_seed(self) -> int:
        """One seed of all of it, for networks that use PyTorch's own dropout."""
        return int(hashed(self.seeds, MASK, self.counts).sum()) & (2**63 - 1)


Forward = Callable[[Tensors, Tensors, Tensor, Draw | None], Tensor]


def choose(name: str, template: Any, example: Tensor, parameters: Tensors, buffers: Tensors) -> tuple[str, Forward]:
    """The technique of this name, or for `auto` the fastest that works, and its forward pass.

    A forward pass takes stacked parameters and buffers, inputs (members, rows, ...) and a `Draw` for dropout, None without.
    """
    if name not in NAMES:
        raise unknown("technique", name, NAMES)
    if name == "matmul" and not is_chain(template):
        raise ArgumentError("technique 'matmul' needs a torch.nn.Sequential of linear layers, pointwise activations and dropout")
    if name == "auto":
        name = "matmul" if is_chain(template) else "vmap" if _batches(template, example, parameters, buffers) else "loop"
    return name, {"matmul": _matmul, "vmap": _vmap, "loop": _loop}[name](template)


def is_chain(template: Any) -> bool:
    """True for a sequence of layers that `matmul` can run."""
    allowed = (nn.Linear, nn.Dropout, nn.Flatten, nn.Identity, *POINTWISE)
    flat = all(not isinstance(layer, nn.Flatten) or i == 0 for i, layer in enumerate(template.children()))
    return type(template) is nn.Sequential and flat and all(type(layer) in allowed for layer in template)


def _batches(template: Any, example: Tensor, parameters: Tensors, buffers: Tensors) -> bool:
    """True where vmap pays and gives what the loop gives."""
    slow = NORMS if example.is_cuda else (NORMS, CONVOLUTIONS)
    if any(isinstance(module, slow) for module in template.modules()):
        return False
    few = {name: value[:2].detach() for name, value in parameters.items()}
    state = {name: value[:2].clone() for name, value in buffers.items()}
    inputs = example.expand(len(next(iter(few.values()))), *example.shape)
    template.eval()
    try:
        with torch.no_grad():
            together = _vmap(template)(few, state, inputs, None)
            return bool(torch.allclose(together, _loop(template)(few, state, inputs, None), rtol=1e-3, atol=1e-3))
    except RuntimeError:  # what vmap raises for operations it cannot batch
        return False


def _matmul(template: Any) -> Forward:
    layers = [(i, str(i), layer) for i, layer in enumerate(template)]

    def forward(parameters: Tensors, _: Tensors, x: Tensor, draw: Draw | None) -> Tensor:
        for i, name, layer in layers:
            if isinstance(layer, nn.Linear):
                weight = parameters[f"{name}.weight"].transpose(1, 2)
                bias = parameters.get(f"{name}.bias")
                x = torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)
            elif isinstance(layer, nn.Dropout):
                x = x if draw is None else draw.dropped(x, layer.p, i)
            elif isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif type(layer) is nn.ReLU and i > 0:
                x = torch.relu_(x)  # in place: nothing needs what a linear layer returned
            else:
                x = layer(x)
        return x

    return forward


def _vmap(template: Any) -> Forward:
    def one(parameters: Tensors, buffers: Tensors, x: Tensor) -> Tensor:
        return torch.func.functional_call(template, (parameters, buffers), (x,))

    together = torch.func.vmap(one, randomness="different")

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, draw: Draw | None) -> Tensor:
        _listen_to(draw)
        return together(parameters, buffers, x)

    return forward


def _loop(template: Any) -> Forward:
    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, draw: Draw | None) -> Tensor:
        _listen_to(draw)
        rows = [{name: value[i] for name, value in (parameters | buffers).items()} for i in range(len(x))]
        return torch.stack([torch.func.functional_call(template, row, (x[i],)) for i, row in enumerate(rows)])

    return forward


def _listen_to(draw: Draw | None) -> None:
    """PyTorch's own dropout draws from its generator: a stochastic pass sets that; in training the epoch does."""
    if draw is not None and not draw.per_row:
        torch.manual_seed(draw.generator_seed())

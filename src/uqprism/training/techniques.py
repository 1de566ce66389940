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

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uqprism.errors import ArgumentError, ShapeError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.randomness import MASK, hashed, seed_generator, uniform

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
        kept = (uniform(keys, positions) >= probability).to(x.dtype)
        return x * kept / (1.0 - probability) if probability < 1.0 else torch.zeros_like(x)

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
        candidates = ["matmul"] if is_chain(template) else ["vmap"] if _pays(template, example) else []
        name = next((each for each in candidates if _agrees(each, template, example, parameters, buffers)), "loop")
    return name, TECHNIQUES[name](template)


def is_chain(template: Any) -> bool:
    """True for a sequence of layers that `matmul` can run: each once, with nothing hooked onto it."""
    if type(template) is not nn.Sequential:
        return False
    layers = list(template)
    distinct = len({id(layer) for layer in layers}) == len(layers) and not _hooked(template)
    return distinct and all(_plain(layer, first=i == 0) for i, layer in enumerate(layers))


def _plain(layer: Any, *, first: bool) -> bool:
    if type(layer) is nn.Flatten:
        return first and (layer.start_dim, layer.end_dim) == (1, -1)
    return type(layer) in {nn.Linear, nn.Dropout, nn.Identity, *POINTWISE} and not _hooked(layer)


def _hooked(module: Any) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _pays(template: Any, example: Tensor) -> bool:
    """Whether vmap is worth a try: not where the loop is faster, nor where a parameter has two names, which vmap mixes up."""
    slow = NORMS if example.is_cuda else (NORMS, CONVOLUTIONS)
    names = [len(list(template.named_parameters(remove_duplicate=flag))) for flag in (True, False)]
    return names[0] == names[1] and not any(isinstance(module, slow) for module in template.modules())


def _agrees(name: str, template: Any, example: Tensor, parameters: Tensors, buffers: Tensors) -> bool:
    """True where a technique gives what the loop gives, and can be trained: tried on two members, and a copy of the template."""
    found, template = [], copy.deepcopy(template)
    try:
        for technique in (name, "loop"):
            forward = TECHNIQUES[technique](template)
            few = {key: value[:2].detach().clone().requires_grad_() for key, value in parameters.items()}
            state = {key: value[:2].clone() for key, value in buffers.items()}
            inputs = example.expand(len(next(iter(few.values()))), *example.shape)
            with torch.random.fork_rng(devices=[example.device] if example.is_cuda else []), torch.enable_grad():
                template.train()  # dropout makes the numbers differ here, but what is not possible fails
                forward(few, state, inputs, None).sum().backward()
                template.eval()
                outputs = forward(few, state, inputs, None)
                (gradient,) = torch.autograd.grad(outputs.pow(2).sum(), [next(iter(few.values()))])
            found.append([outputs.detach(), gradient, *state.values()])
    except (RuntimeError, KeyError, TypeError, AttributeError):  # what vmap raises for operations it cannot batch, and the like
        return False
    return all(torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-3) for a, b in zip(*found, strict=True))


def _matmul(template: Any) -> Forward:
    layers = list(template.named_children())
    follows_linear = [i > 0 and isinstance(layers[i - 1][1], nn.Linear) for i in range(len(layers))]

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, draw: Draw | None) -> Tensor:
        held = parameters | buffers if buffers else parameters  # what is not trained counts as a buffer
        for i, (name, layer) in enumerate(layers):
            if isinstance(layer, nn.Linear):
                weight, bias = held[f"{name}.weight"].transpose(1, 2), held.get(f"{name}.bias")
                x = torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)
            elif isinstance(layer, nn.Dropout):
                x = x if draw is None else draw.dropped(x, layer.p, i)
            elif isinstance(layer, nn.Flatten):
                x = x.flatten(2)
            elif type(layer) is nn.ReLU and follows_linear[i]:
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
    # A module that stands in two places is one module: setting its parameters under both names would leave them set for good.
    modules = [len(list(template.named_modules(remove_duplicate=flag))) for flag in (True, False)]
    tied = modules[0] == modules[1]

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, draw: Draw | None) -> Tensor:
        _listen_to(draw)
        rows = [{name: value[i] for name, value in (parameters | buffers).items()} for i in range(len(x))]
        call = torch.func.functional_call
        outputs = [call(template, row, (x[i],), tie_weights=tied) for i, row in enumerate(rows)]
        if not isinstance(outputs[0], torch.Tensor):
            raise ShapeError(f"network must return one tensor (rows, outputs), it returned a {type(outputs[0]).__name__}")
        return torch.stack(outputs)

    return forward


def _listen_to(draw: Draw | None) -> None:
    """PyTorch's own dropout draws from its generator: a stochastic pass sets that; in training the epoch does."""
    if draw is not None and not draw.per_row:
        seed_generator(draw.seeds.device, draw.generator_seed())


TECHNIQUES: dict[str, Callable[[Any], Forward]] = {"matmul": _matmul, "vmap": _vmap, "loop": _loop}

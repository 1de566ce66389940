"""Three techniques to run all members of a stack, and the choice of one for a network.

| technique | what it does | used for |
|---|---|---|
| `matmul` | one batched matrix product per layer | chains of linear layers, activations, dropout and what has `stacked`: MLPs |
| `vmap` | `torch.func.vmap` over the members | other networks, if their operations can be batched; convolutions on a GPU |
| `loop` | one member after the other, still under one optimiser | the rest; convolutions on a CPU, and batch norm |

vmap turns the convolutions of many networks into grouped convolutions. These are slower than the loop on a CPU, and also on a
GPU if they are large, as in networks with batch norm (benchmarks/RESULTS.md, RESULTS-gpu.md).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from uqprism.errors import ArgumentError, ShapeError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.chain import Chain
from uqprism.training.device import torch_threads
from uqprism.training.randomness import DropoutMasks, keep_generators, seed_generator

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any
Tensors = dict[str, Tensor]
POINTWISE = (nn.ReLU, nn.SiLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.Softplus, nn.Hardswish, nn.Mish)
DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
NORMS, CONVOLUTIONS = nn.modules.batchnorm._BatchNorm, nn.modules.conv._ConvNd
NAMES = ("auto", "matmul", "vmap", "loop")


Forward = Callable[[Tensors, Tensors, Tensor, DropoutMasks | None], Tensor]


def choose(name: str, template: Any, example: Tensor, parameters: Tensors, buffers: Tensors) -> tuple[str, Forward]:
    """The technique of this name, or for `auto` the fastest that works, and its forward pass.

    A forward pass takes stacked parameters and buffers, inputs (members, rows, ...) and `DropoutMasks`, or None without dropout.
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
    """True for a sequence of layers that `matmul` can run: each layer occurs once and has no hooks."""
    if type(template) is not nn.Sequential:  # not isinstance: a subclass may have a forward pass of its own
        return False
    layers = list(template)
    # `named_children`, which `_matmul` reads, lists a repeated layer only once.
    distinct = len({id(layer) for layer in layers}) == len(layers) and not _hooked(template)
    return distinct and all(_plain(layer, first=i == 0) for i, layer in enumerate(layers))


def _plain(layer: Any, *, first: bool) -> bool:
    if type(layer) is nn.Flatten:
        return first and (layer.start_dim, layer.end_dim) == (1, -1)
    return (type(layer) in {nn.Linear, nn.Dropout, nn.Identity, *POINTWISE} or hasattr(layer, "stacked")) and not _hooked(layer)


def _hooked(module: Any) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)


def _pays(template: Any, example: Tensor) -> bool:
    """Whether to try vmap: not if the loop is faster, nor if a parameter has two names, which vmap confuses."""
    slow = NORMS if example.is_cuda else (NORMS, CONVOLUTIONS)
    names = [len(list(template.named_parameters(remove_duplicate=flag))) for flag in (True, False)]
    return names[0] == names[1] and not any(isinstance(module, slow) for module in template.modules())


def _agrees(name: str, template: Any, example: Tensor, parameters: Tensors, buffers: Tensors) -> bool:
    """Whether a technique can be trained and agrees with the loop, tried on two members and a copy of the template."""
    found, template = [], copy.deepcopy(template)
    try:
        for technique in (name, "loop"):
            forward = TECHNIQUES[technique](template)
            few = {key: value[:2].detach().clone().requires_grad_() for key, value in parameters.items()}
            state = {key: value[:2].clone() for key, value in buffers.items()}
            inputs = example.expand(len(next(iter(few.values()))), *example.shape)
            with keep_generators(example.device), torch.enable_grad(), torch_threads(1):  # two members are not work for more
                template.train()  # with dropout the numbers differ; this finds operations that fail
                forward(few, state, inputs, None).sum().backward()
                template.eval()
                outputs = forward(few, state, inputs, None)
                (gradient,) = torch.autograd.grad(outputs.pow(2).sum(), [next(iter(few.values()))])
            found.append([outputs.detach(), gradient, *state.values()])
    except (RuntimeError, KeyError, TypeError, AttributeError):  # such as what vmap raises for operations it cannot batch
        return False
    return all(torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-3) for a, b in zip(*found, strict=True))


def _vmap(template: Any) -> Forward:
    def one(parameters: Tensors, buffers: Tensors, x: Tensor) -> Tensor:
        return torch.func.functional_call(template, (parameters, buffers), (x,))

    together = torch.func.vmap(one, randomness="different")  # a dropout mask for each member

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        _seed_dropout(masks)
        return together(parameters, buffers, x)

    return forward


def _loop(template: Any) -> Forward:
    # Parameters of a module that occurs twice must be set under one name only, or they would not be restored.
    modules = [len(list(template.named_modules(remove_duplicate=flag))) for flag in (True, False)]
    tied = modules[0] == modules[1]

    def forward(parameters: Tensors, buffers: Tensors, x: Tensor, masks: DropoutMasks | None) -> Tensor:
        _seed_dropout(masks)
        rows = [{name: value[i] for name, value in (parameters | buffers).items()} for i in range(len(x))]
        call = torch.func.functional_call
        outputs = [call(template, row, (x[i],), tie_weights=tied) for i, row in enumerate(rows)]
        if not isinstance(outputs[0], torch.Tensor):
            raise ShapeError(f"network must return one tensor (rows, outputs), it returned a {type(outputs[0]).__name__}")
        return torch.stack(outputs)

    return forward


def _seed_dropout(masks: DropoutMasks | None) -> None:
    """Seed PyTorch's own dropout for a stochastic pass; in training the trainer seeds it once per epoch."""
    if masks is not None and not masks.per_row:
        seed_generator(masks.seeds.device, masks.generator_seed())


TECHNIQUES: dict[str, Callable[[Any], Forward]] = {"matmul": Chain, "vmap": _vmap, "loop": _loop}

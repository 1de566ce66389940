"""Networks for every shape, and three ways to run a stack of them that agree."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import uqprism as up
from uqprism.training import MLP, ResNet18, SmallCNN, TabularMLP, networks
from uqprism.training.stack import Stack

SHAPES = {
    "mlp": (MLP((5, 4)), (3,)),
    "linear": (MLP(()), (1,)),
    "silu": (MLP((6,), "silu"), (2, 3)),
    "gelu": (MLP((6,), "gelu"), (4,)),
    "tabular": (TabularMLP((5, 4), pieces=3, width=2), (3,)),
    "tabular, pieces as they are": (TabularMLP((5,), pieces=3, width=None), (1,)),
    "tabular, periodic": (TabularMLP((5,), embedding="periodic", pieces=2), (3,)),
    "tabular, images": (TabularMLP((5,)), (1, 2, 2)),
    "cnn 1x1": (SmallCNN((2, 3, 4), 5), (1, 1, 1)),
    "cnn 9x9": (SmallCNN((2, 3, 4), 5), (3, 9, 9)),
    "cnn 32x32": (SmallCNN((2, 3, 4), 5), (1, 32, 32)),
    "resnet small": (ResNet18(stem=3, width=4), (1, 8, 8)),
    "resnet": (ResNet18(width=4), (3, 33, 47)),
}


class Layer(nn.Linear):
    """A layer of three inputs and two outputs."""

    def __init__(self) -> None:
        super().__init__(3, 2)


class Gate(Layer):
    """A network whose path depends on its numbers: vmap cannot run it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y if float(y.detach().sum()) > 0 else 2.0 * y


class Frozen(Layer):
    """A network with a parameter that is not trained and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed = nn.Parameter(torch.rand(2), requires_grad=False)
        self.register_buffer("offset", torch.rand(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * self.fixed + self.offset


class Unsaved(Layer):
    """A network with a buffer that state_dict leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequency", torch.rand(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.sin(self.frequency * x))


class Two(Layer):
    """A layer that returns two tensors."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        return super().forward(x), x


def frozen_bias(layer: nn.Linear) -> nn.Linear:
    layer.bias.requires_grad_(False).fill_(7.0)
    return layer


def twice(features: int, n_outputs: int) -> nn.Module:
    layer = nn.Linear(features, features)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(features, n_outputs))


def tied(features: int, n_outputs: int) -> nn.Module:
    layers = (nn.Linear(features, width) for width in (features, features, n_outputs))
    network = nn.Sequential(next(layers), nn.Tanh(), *layers)
    network[2].weight = network[0].weight
    return network


def hooked(features: int, n_outputs: int) -> nn.Module:
    layer = nn.Linear(features, n_outputs)
    layer.register_forward_hook(lambda *arguments: 2.0 * arguments[2])
    return nn.Sequential(layer)


def build(network: Any, shape: tuple[int, ...], technique: str = "auto", members: int = 3) -> Stack:
    network = networks.resolve(network)
    return Stack.build(network, torch.zeros(2, *shape, dtype=torch.float64), 2, list(range(members)), technique)


@pytest.mark.parametrize("case", SHAPES)
def test_every_member_of_a_stack_is_the_network_of_its_seed(case: str) -> None:
    network, shape = SHAPES[case]
    stack = build(network, shape)
    x = torch.randn(3, 4, *shape, dtype=torch.float64)
    together = stack(x)
    for i in range(3):
        with torch.random.fork_rng():
            torch.manual_seed(i)
            alone = network(shape, 2).double().eval()
        assert_close(together[i], alone(x[i]))
        assert_close(stack.module(i)(x[i]), alone(x[i]))


@pytest.mark.parametrize("case", SHAPES)
def test_techniques_agree_in_outputs_and_gradients(case: str) -> None:
    network, shape = SHAPES[case]
    x = torch.randn(3, 4, *shape, dtype=torch.float64)
    found = []
    for technique in ("auto", "vmap", "loop"):
        stack = build(network, shape, technique)
        outputs = stack(x, training=True)
        gradients = torch.autograd.grad(outputs.pow(2).sum(), list(stack.parameters.values()))
        found.append((outputs.detach(), gradients, {k: v.clone() for k, v in stack.buffers.items()}))
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])


TECHNIQUES = {
    "mlp": (MLP((4,), dropout=0.5), (3,), "matmul"),
    "tabular": (TabularMLP((4,), dropout=0.5), (3,), "matmul"),
    "own sequence": (lambda s, n: nn.Sequential(nn.Linear(*s, 4, bias=False), nn.Tanh(), nn.Linear(4, n)), (3,), "matmul"),
    "named layers": (lambda s, n: nn.Sequential(OrderedDict(a=nn.Linear(*s, 4), b=nn.ReLU(), c=nn.Linear(4, n))), (3,), "matmul"),
    "frozen bias": (lambda s, n: nn.Sequential(nn.Linear(*s, 4), nn.ReLU(), frozen_bias(nn.Linear(4, n))), (3,), "matmul"),
    "activations in a row": (lambda s, n: nn.Sequential(nn.Linear(*s, n), nn.Tanh(), nn.ReLU(), nn.ReLU()), (3,), "matmul"),
    "activation first": (lambda s, n: nn.Sequential(nn.Identity(), nn.ReLU(), nn.Linear(*s, n)), (3,), "matmul"),
    "a layer twice": (lambda s, n: twice(*s, n), (3,), "loop"),
    "a parameter twice": (lambda s, n: tied(*s, n), (3,), "loop"),
    "a hook": (lambda s, n: hooked(*s, n), (3,), "vmap"),
    "spectral norm": (lambda s, n: nn.utils.parametrizations.spectral_norm(nn.Linear(*s, n)), (3,), "loop"),
    "unsaved buffer": (Unsaved, (3,), "vmap"),
    "layer norm": (lambda shape, n: nn.Sequential(nn.Linear(*shape, 4), nn.LayerNorm(4), nn.Linear(4, n)), (3,), "vmap"),
    "convolutions": (SmallCNN(), (1, 8, 8), "loop"),
    "frozen": (Frozen, (3,), "vmap"),
    "batch norm": (ResNet18(stem=3, width=4), (1, 8, 8), "loop"),
    "branches": (lambda *_: Gate(), (3,), "loop"),
}


@pytest.mark.parametrize("case", TECHNIQUES)
def test_the_technique_is_chosen_by_the_network(case: str) -> None:
    network, shape, expected = TECHNIQUES[case]
    stack = build(network, shape)
    assert stack.technique == expected
    x = torch.randn(2, *shape, dtype=torch.float64)
    for i in range(3):
        assert_close(stack(x.expand(3, *x.shape))[i], stack.module(i)(x))


def test_batch_norm_keeps_statistics_for_each_member() -> None:
    stack = build(ResNet18(stem=3, width=4), (1, 8, 8))
    x = torch.randn(3, 6, 1, 8, 8, dtype=torch.float64) + torch.arange(3.0)[:, None, None, None, None]
    stack(x, training=True)
    name = next(name for name in stack.buffers if name.endswith("running_mean"))
    assert len({round(float(v), 6) for v in stack.buffers[name][:, 0]}) == 3
    assert all(int(v) == 1 for name, value in stack.buffers.items() if name.endswith("tracked") for v in value)


def test_taking_members_copies_them() -> None:
    stack = build(MLP((4,)), (3,))
    part = stack.take([2, 0])
    x = torch.randn(1, 5, 3, dtype=torch.float64)
    assert_close(part(x.expand(2, -1, -1)), stack(x.expand(3, -1, -1))[[2, 0]])
    part.rows.zero_()
    assert stack.rows.abs().sum() > 0


@pytest.mark.parametrize(
    "network", [MLP((3, 2), "gelu", 0.1), TabularMLP((3,), pieces=4, width=None), SmallCNN((1, 2, 3), 4), ResNet18(3, 8)]
)
def test_specifications_convert_to_plain_data_and_back(network: object) -> None:
    assert networks.from_dict(networks.to_dict(network)) == network
    assert networks.to_dict(lambda *_: None) is None


BAD = {
    "activation": (lambda: MLP(activation="rellu"), "did you mean 'relu'"),
    "embedding": (lambda: TabularMLP(embedding="piecewize"), "did you mean 'piecewise'"),
    "pieces": (lambda: TabularMLP(pieces=0), "pieces must be a positive integer"),
    "frequency": (lambda: TabularMLP(frequency=0.0), "frequency must be positive"),
    "dropout": (lambda: MLP(dropout=1.0), r"dropout must lie in \[0, 1\)"),
    "width": (lambda: MLP((0,)), "each width of hidden must be a positive integer"),
    "stem": (lambda: ResNet18(stem=5), "stem must be 3 or 7"),
    "table into convolutions": (lambda: build(SmallCNN(), (3,)), "small_cnn takes images"),
    "no features": (lambda: build(MLP(), (0,)), "at least one feature"),
    "name": (lambda: networks.resolve("mpl"), "did you mean 'mlp'"),
    "no function": (lambda: networks.resolve(3), "network must be a name"),
    "a module": (lambda: networks.resolve(nn.Linear(3, 2)), "builds a fresh one for each member; got Linear"),
    "no module": (lambda: build(lambda *_: 3, (3,)), "must build a torch.nn.Module"),
    "no parameters": (lambda: build(lambda *_: nn.Identity(), (2,)), "no parameters to train"),
    "another width": (lambda: build(lambda *_: nn.Linear(7, 2), (3,)), r"network cannot take rows of shape \(3,\)"),
    "outputs": (lambda: build(lambda *_: nn.Linear(3, 5), (3,)), r"must return \(rows, 2\)"),
    "technique": (lambda: build(SmallCNN(), (1, 8, 8), "matmul"), "'matmul' needs a torch.nn.Sequential"),
    "a lazy module": (lambda: build(lambda *_: nn.LazyLinear(2), (3,)), "must not build lazy modules"),
    "two tensors": (lambda: build(lambda *_: Two(), (3,)), "must return one tensor .* returned a tuple"),
    "one argument": (
        lambda: networks.resolve(lambda n: n),
        r"take \(input_shape, n_outputs\) or nothing, its arguments are \(n\)",
    ),
    "no technique": (lambda: build(MLP(), (3,), "vmaps"), "did you mean 'vmap'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_networks_are_refused(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(up.UqprismError, match=message):
        make()

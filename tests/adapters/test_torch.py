"""PyTorch modules as members."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import uqprism as up


class Returns(nn.Module):
    """A network that returns its mean and variance in one of several ways."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.drop, self.how = nn.Linear(3, 2), nn.Dropout(0.5), how

    def forward(self, x: torch.Tensor) -> object:
        mean, raw = self.layer(self.drop(x)).split(1, dim=-1)
        variance = raw.exp()
        return {
            "tuple": lambda: (mean, variance),
            "flat tuple": lambda: (mean[:, 0], variance[:, 0]),
            "tensor": lambda: torch.cat([mean, variance], -1),
            "dictionary": lambda: {"mean": mean, "scale": variance.sqrt()},
            "normal": lambda: torch.distributions.Normal(mean, variance.sqrt()),
            "independent": lambda: torch.distributions.Independent(torch.distributions.Normal(mean, variance.sqrt()), 1),
            "laplace": lambda: torch.distributions.Laplace(mean, variance.sqrt()),
            "raw": lambda: torch.cat([mean, raw], -1),
            "mean": lambda: mean,
            "keys": lambda: {"loc": mean, "logvar": raw},
            "poisson": lambda: torch.distributions.Poisson(variance),
        }[self.how]()


STACKABLE = ["tuple", "tensor", "dictionary"]
X = torch.randn(7, 3)


def three(how: str) -> list[Returns]:
    return [Returns(how) for _ in range(3)]


@pytest.mark.parametrize("how", [*STACKABLE, "flat tuple", "normal", "independent", "laplace"])
@pytest.mark.parametrize("rows", [1, 7])
def test_modules_are_members(how: str, rows: int) -> None:
    """In a list, from a generator or with stacked parameters, all rows at once or few."""
    networks, x = three(how), X[:rows]
    ens = up.from_torch(networks, x)
    mean = torch.stack([n.layer(x)[:, 0] for n in networks])
    variance = torch.stack([n.layer(x)[:, 1].exp() for n in networks])
    if how == "laplace":
        assert_close(ens.members.location, mean)
        assert_close(ens.members.scale, variance.sqrt())
    else:
        assert_close(ens.members.mean, mean)
        assert_close(ens.members.variance, variance)
    assert all(n.training and n.drop.training for n in networks)  # as they were
    assert_close(up.from_torch(networks, x, rows_at_once=2).matched.mean, ens.matched.mean)
    for kept, read in zip(ens.members.arrays(), up.from_torch((n for n in networks), x).members.arrays(), strict=True):
        assert_close(read, kept)
    if how in STACKABLE:
        parameters, buffers = torch.func.stack_module_state(networks)
        stacked = up.from_torch(networks[0], x, parameters=parameters, buffers=buffers)
        assert_close(stacked.members.mean, mean)
        assert_close(stacked.members.variance, variance)


def test_heads_read_raw_outputs() -> None:
    networks = three("raw")
    ens = up.from_torch(networks, X, head="natural")
    raw = networks[1].layer(X)
    precision = nn.functional.softplus(raw[:, 1]) + 1e-8
    assert_close(ens.members.mean[1], raw[:, 0] / precision)
    assert_close(ens.members.variance[1], 1 / precision)
    assert up.from_torch(networks, X, head="laplace").members.name == "laplace"


def test_gradients_reach_the_networks() -> None:
    networks = three("tuple")
    ens = up.from_torch(nn.ModuleList(networks), X)
    up.decompose(ens, rule="crps").excess.sum().backward()
    assert all(n.layer.weight.grad.abs().sum() > 0 for n in networks)


def test_from_model_takes_modules() -> None:
    """Alone, in a list or stacked, with the options of from_torch."""
    networks = three("raw")
    expected = up.from_torch(networks, X, head="natural").members.mean
    for given in (networks, tuple(networks), nn.ModuleList(networks)):
        assert_close(up.from_model(given, X, head="natural", rows_at_once=4).members.mean, expected)
    assert_close(up.from_model(networks[1], X, head="natural").members.mean, expected[1:2])
    parameters, buffers = torch.func.stack_module_state(networks)
    stacked = up.from_model(networks[0], X, head="natural", parameters=parameters, buffers=buffers)
    assert_close(stacked.members.mean, expected)
    with pytest.raises(up.UqprismError, match="n_members is for Gaussian processes"):
        up.from_model(networks, X, n_members=3)


BAD = {
    "numpy": (lambda: up.from_torch([Returns("tuple")], X.numpy()), "inputs must be a torch tensor"),
    "keys": (lambda: up.from_torch([Returns("keys")], X), "must have mean and variance or scale"),
    "none": (lambda: up.from_torch([], X), "at least one module"),
    "one": (lambda: up.from_torch(Returns("tuple"), X), "must be a list of modules"),
    "means": (lambda: up.from_torch([Returns("mean")], X), r"must return \(mean, variance\)"),
    "poisson": (lambda: up.from_torch([Returns("poisson")], X), "Normal or Laplace distributions, got Poisson"),
    "mixed": (lambda: up.from_torch([Returns("tuple"), Returns("laplace")], X), "must all predict the same parameters"),
    "head": (lambda: up.from_torch([Returns("mean")], X, head="natural"), r"reads tensors \(rows, 2\)"),
    "evidential": (lambda: up.from_torch([Returns("raw")], X, head="evidential"), "no ensemble yet"),
    "list with parameters": (lambda: up.from_torch([nn.Linear(3, 2)], X, parameters={}), "the one module"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_networks_are_refused(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(up.UqprismError, match=message):
        call()

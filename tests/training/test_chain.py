"""The passes through stacked layers: gradients are those of autograd, and rows that are encoded once give the same members."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn
from torch.testing import assert_close

import uqprism as up
from uqprism.training import MLP, MixtureHead, SharedMLP, TabularMLP, data, networks, train
from uqprism.training.heads.joined import Joined
from uqprism.training.randomness import DropoutMasks
from uqprism.training.stack import Stack

from .problems import FAST, rows_of, waves


def frozen(features: int, n_outputs: int) -> nn.Module:
    first = nn.Linear(features, 4)
    first.weight.requires_grad_(False)
    return nn.Sequential(first, nn.Tanh(), nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, n_outputs))


CHAINS: dict[str, Any] = {
    "wide": MLP((20, 17)),
    "linear": MLP(()),
    "silu and dropout": MLP((5, 4), "silu", dropout=0.5),
    "embedded": TabularMLP((20, 5), pieces=3, width=2),
    "pieces as they are": TabularMLP((5,), pieces=3, width=None),
    "periodic": TabularMLP((5,), embedding="periodic", pieces=2),
    "shared": SharedMLP((6, 5), pieces=3, width=2, members=2),
    "shared, without embedding": SharedMLP((6,), embedding=None, dropout=0.3, members=2),
    "frozen": lambda shape, n_outputs: frozen(*shape, n_outputs),
}


@pytest.mark.parametrize("case", CHAINS)
def test_gradients_are_those_of_autograd(case: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, towards = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((3, 9, 4), (3, 9, 2)))
    stack = Stack.build(networks.resolve(CHAINS[case]), x[0, :2], 2, [1, 2, 3], "matmul")
    masks = DropoutMasks(torch.arange(3), torch.ones(3, dtype=torch.int64))
    expected = stack(x, masks=masks)
    gradients = torch.autograd.grad((expected * towards).sum(), list(stack.parameters.values()))
    assert stack.chain is not None
    found = torch.full_like(stack.rows, torch.nan)
    for encoded in (False, True) if stack.chain.encodes else (False,):
        inputs = stack.chain.encode(stack.buffers, x) if encoded else x
        outputs = stack.chain.training(stack.parameters, stack.buffers, inputs, masks, encoded=encoded)
        stack.chain.backward(towards, stack.views(found))
        assert_close(outputs, expected, rtol=1e-12, atol=1e-14)
        for value, gradient in zip(stack.views(found).values(), gradients, strict=True):
            assert_close(value, gradient, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("head", [MixtureHead(), MixtureHead(2, "log"), MixtureHead(1, "crps"), Joined(MixtureHead(), 2)])
def test_gradients_of_heads_that_know_them(head: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(3, 5, head.n_outputs, generator=generator, dtype=torch.float64).requires_grad_()
    target = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    one, given = (head.one, head.apart(raw)) if isinstance(head, Joined) else (head, raw)
    distribution = one.distribution(one.parameters(given))
    each = target.unsqueeze(-1).expand(given.shape[:-1]) if isinstance(head, Joined) else target
    log, crps = up.rules.Log().score(distribution, each), up.rules.CRPS().score(distribution, each)
    expected = {"log": log, "crps": crps, "log+crps": log + 5.0 * crps}[one.rule]
    expected = expected.mean(-1) if isinstance(head, Joined) else expected
    losses, gradient = head.with_gradient(raw.detach(), target)
    assert_close(losses, expected.detach(), rtol=1e-10, atol=1e-12)
    assert_close(gradient, torch.autograd.grad(expected.sum(), raw)[0], rtol=1e-9, atol=1e-12)


def test_rows_that_are_encoded_at_every_step_give_the_same_members(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = waves(80)
    settings = {**FAST, "network": TabularMLP((6,), pieces=3, width=2), "validation": (3.0 * x[:9], y[:9])}
    once = train(x, y, **settings)
    monkeypatch.setattr(data, "ENCODED_BYTES", 0)
    assert_array_equal(rows_of(train(x, y, **settings)), rows_of(once))
    assert np.isfinite(rows_of(once)).all()

"""Small problems that the training tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from uqprism.training import DeepEnsemble
from uqprism.training.trainer import Trainer

if TYPE_CHECKING:
    import pytest

FAST: dict[str, Any] = {"n_members": 3, "max_epochs": 3, "device": "cpu", "progress": False}


def waves(n: int = 120, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of the first feature with noise that grows along it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, features))
    return x, np.sin(2.0 * x[:, 0]) + 0.1 * (3.0 + x[:, 0]) * rng.normal(size=n)


def images(n: int = 24, size: int = 8, channels: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noise whose mean is the target."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return rng.normal(size=(n, channels, size, size)) + y[:, None, None, None], y


def cut_off(monkeypatch: pytest.MonkeyPatch, epochs: int, error: BaseException) -> None:
    """Training raises this error after so many epochs."""
    epoch, done = Trainer._epoch, []

    def counted(self: Trainer) -> None:
        if len(done) == epochs:
            raise error
        done.append(1)
        epoch(self)

    monkeypatch.setattr(Trainer, "_epoch", counted)


def rows_of(ensemble: DeepEnsemble) -> np.ndarray:
    return ensemble.stack.rows.numpy()


class Explosive(nn.Module):
    """A network whose outputs are infinite for some initial weights."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.broken = nn.Parameter(torch.tensor(float("inf") if always or torch.rand(()) < 0.4 else 1.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.broken

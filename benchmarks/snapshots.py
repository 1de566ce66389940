"""Snapshot ensembles (Huang et al. 2017): networks at the end of each cycle of the learning rate. The package has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from uqprism.training import DeepEnsemble, TrainingOptions, train

Array = Any


def fit(x: Array, y: Array, *, cycles: int, first: float, further: float, **settings: Any) -> DeepEnsemble:
    """`n_members` networks at the end of each of so many cycles, the first and the further ones of such shares of the default."""
    epochs = TrainingOptions(**settings).settled(len(y)).max_epochs
    at = train(x, y, **settings, **_cycle(epochs, first))
    found = [at]
    for _ in range(cycles - 1):
        at = train(x, y, start=at, **settings, **_cycle(epochs, further))
        found.append(at)
    stack = at.stack
    rows = torch.cat([each.stack.rows for each in found])
    buffers = {name: torch.cat([each.stack.buffers[name] for each in found]) for name in stack.buffers}
    return replace(at, stack=stack.with_rows(rows, buffers))


def _cycle(epochs: int, share: float) -> dict[str, Any]:
    """The rate falls from its largest value to zero; a whole training may stop earlier."""
    return {} if share == 1.0 else {"max_epochs": max(round(share * epochs), 1), "patience": None}

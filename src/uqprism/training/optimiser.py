"""Adam over the rows of a stack: one fused call, with a count of steps for each member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqprism.support.optional import require

torch = require("torch", extra="deep")
adam = require("torch.optim.adam", extra="deep").adam

Tensor = Any


@dataclass
class Moments:
    """Adam's memory, in the shape of the rows.

    Attributes:
        first: running mean of the gradients.
        second: running mean of their squares.
        steps: how many each member has made, float32 as PyTorch's fused kernel wants them.
    """

    first: Tensor
    second: Tensor
    steps: Tensor

    @classmethod
    def zeros(cls, rows: Tensor) -> Moments:
        """Before the first step."""
        return cls(torch.zeros_like(rows), torch.zeros_like(rows), torch.zeros(len(rows), device=rows.device))

    def take(self, members: Tensor) -> Moments:
        """A copy for some of the members."""
        return Moments(self.first[members], self.second[members], self.steps[members])


def adam_step(
    rows: Tensor, gradient: Tensor, moments: Moments, *, learning_rate: float, weight_decay: float, together: bool
) -> None:
    """Update the rows in place. `together` says that all members are equally old, so that one call serves for all of them.

    Every operation is by element and the bias corrections go by the member's own steps: each row moves as if it were alone.
    """
    if weight_decay:
        rows.mul_(1.0 - learning_rate * weight_decay)
    if together:
        tensors = [[rows], [gradient], [moments.first], [moments.second]]
        steps = [moments.steps[0]]
    else:
        tensors = [list(x) for x in (rows, gradient, moments.first, moments.second)]
        steps = list(moments.steps)
    adam(
        *tensors,
        [],
        steps,
        fused=True,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=learning_rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )
    if together:
        moments.steps[1:] = moments.steps[0]


def shorten(gradient: Tensor, longest: float) -> None:
    """Scale down the rows that are longer than this, each by its own length."""
    lengths = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    gradient.mul_((longest / lengths.clamp_min(1e-30)).clamp_max(1.0))

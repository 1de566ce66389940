"""The multilayer perceptron."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from uqprism.errors import ArgumentError, ShapeError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.networks import networks
from uqprism.training.options import positive_integer

torch = require("torch", extra="deep")

ACTIVATIONS = {"relu": torch.nn.ReLU, "silu": torch.nn.SiLU, "gelu": torch.nn.GELU}


@networks.register("mlp")
@dataclass(frozen=True)
class MLP:
    """Fully connected layers; rows of any shape are flattened.

    Attributes:
        hidden: widths of the hidden layers in order, or one width; () is a linear model.
        activation: `relu`, `silu` or `gelu`.
        dropout: the probability that a hidden unit is set to zero in training.
    """

    name: ClassVar[str] = "mlp"
    hidden: tuple[int, ...] = (100, 100, 100)
    activation: str = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise unknown("activation", self.activation, ACTIVATIONS)
        if not 0.0 <= self.dropout < 1.0:
            raise ArgumentError(f"dropout must lie in [0, 1), got {self.dropout}")
        given: Any = self.hidden
        hidden = given if isinstance(given, Iterable) else (given,)
        widths = tuple(positive_integer("each width of hidden", width) for width in hidden)
        object.__setattr__(self, "hidden", widths)

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """Build a network with fresh weights."""
        nn = torch.nn
        if (width := math.prod(input_shape)) == 0:
            raise ShapeError(f"rows need at least one feature, got rows of shape {input_shape}")
        layers: list[Any] = [nn.Flatten()] if len(input_shape) != 1 else []
        for following in self.hidden:
            layers += [nn.Linear(width, following), ACTIVATIONS[self.activation]()]
            layers += [nn.Dropout(self.dropout)] if self.dropout else []
            width = following
        return nn.Sequential(*layers, nn.Linear(width, n_outputs))

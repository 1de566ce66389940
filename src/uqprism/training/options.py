"""How to train: the numbers a user may set, checked once."""

from __future__ import annotations

import numbers
import operator
from dataclasses import dataclass
from typing import Any

from uqprism.errors import ArgumentError


@dataclass(frozen=True)
class TrainingOptions:
    """How long, how fast and on what part of the data.

    Attributes:
        max_epochs: passes over the training rows, at most.
        batch_size: rows per step and member, at most: the rows are cut evenly, so that no batch is small.
        learning_rate: of Adam.
        weight_decay: decoupled from the gradient, as in AdamW.
        patience: epochs without a better validation loss after which a member stops; None trains all epochs.
        validation_fraction: of the rows, kept out of training to stop on, others for each member; 0 for none.
        bootstrap: each member draws its training rows with replacement.
        max_gradient: longest allowed gradient of a member's mean loss; longer ones are shortened. None leaves them.
    """

    max_epochs: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 20
    validation_fraction: float = 0.1
    bootstrap: bool = False
    max_gradient: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size", "patience"):
            if (value := getattr(self, name)) is not None or name != "patience":
                object.__setattr__(self, name, positive_integer(name, value))
        for name in ("learning_rate", "max_gradient"):
            if (value := getattr(self, name)) is None and name == "max_gradient":
                continue
            if not _is_real(value) or not 0 < value < float("inf"):
                raise ArgumentError(f"{name} must be positive and finite, got {value!r}")
        if not _is_real(self.weight_decay) or not 0 <= self.weight_decay < float("inf"):
            raise ArgumentError(f"weight_decay must not be negative, got {self.weight_decay!r}")
        if not _is_real(self.validation_fraction) or not 0 <= self.validation_fraction < 1:
            raise ArgumentError(f"validation_fraction must lie in [0, 1), got {self.validation_fraction!r}")


def positive_integer(name: str, value: Any) -> int:
    """The value as an int; anything else is an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a positive integer, got {value!r}") from None
    if number < 1:
        raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
    return number


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real)

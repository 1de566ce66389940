"""How to train: the numbers a user may set, checked once."""

from __future__ import annotations

from dataclasses import dataclass

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
            value = getattr(self, name)
            if value is not None and (int(value) != value or value < 1):
                raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
        for name in ("learning_rate", "max_gradient"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ArgumentError(f"{name} must be positive and finite, got {value!r}")
        if not 0 <= self.weight_decay < float("inf"):
            raise ArgumentError(f"weight_decay must not be negative, got {self.weight_decay!r}")
        if not 0 <= self.validation_fraction < 1:
            raise ArgumentError(f"validation_fraction must lie in [0, 1), got {self.validation_fraction!r}")

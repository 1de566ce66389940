"""Heads: what a network's outputs mean, and the loss that trains them. A new file in this folder is found by itself."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError
from uqprism.families import Family, families
from uqprism.registry import Registry
from uqprism.rules import Log
from uqprism.support.optional import require

torch = require("torch", extra="deep")

__all__ = ["Head", "from_dict", "heads", "resolve", "to_dict"]

Tensor = Any
SMALLEST = 1e-6  # of a variance or scale in standardised units, as in Lakshminarayanan et al. 2017

heads: Registry[type[Head]] = Registry("head", "uqprism.training.heads")


@dataclasses.dataclass(frozen=True)
class Head(ABC):
    """The base class of heads: frozen dataclasses of settings; everything learned is in the network.

    Attributes:
        name: the name it is registered under.
        n_outputs: how many outputs the network has.
        family: the family of the predicted distribution.
    """

    name: ClassVar[str]
    n_outputs: ClassVar[int] = 2
    family: ClassVar[str] = "gaussian"

    @property
    def warm_up_epochs(self) -> int:
        """The number of first epochs that early stopping ignores."""
        return 0

    @abstractmethod
    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The parameters of the distribution by name, in standardised units, from raw outputs (..., n_outputs)."""

    @abstractmethod
    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """The training loss for each standardised target (...).

        `age` is the number of finished epochs and broadcasts against the targets. It is a tensor, so that a step recorded as
        a CUDA graph serves all epochs.
        """

    @property
    def knows_gradient(self) -> bool:
        """Whether `with_gradient` saves training the use of autograd."""
        return False

    def with_gradient(self, raw: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The training losses (...) and their gradient for the raw outputs (..., n_outputs)."""
        raise NotImplementedError

    def validation_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The loss for early stopping: by default the training loss after any warm-up."""
        return self.loss(raw, target, torch.full_like(target, float(self.warm_up_epochs)))

    def log_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """The negative log-likelihood of each standardised target, whatever the loss is; posteriors are sampled by it."""
        return Log().score(self.distribution(self.parameters(raw)), target)

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """The parameters of the distribution of mean + scale * Y, in double precision."""
        given = {name: value.double() for name, value in parameters.items()}
        moved = self.distribution(given).affine(mean, scale)
        return {name: getattr(moved, name) for name in given}

    def fitted(self, targets: Tensor) -> Self:
        """The head for these standardised training targets; itself unless its settings depend on them."""
        return self

    def distribution(self, parameters: dict[str, Tensor], *, check: bool = False) -> Family:
        """The distributions with these parameters."""
        return families.get(self.family)(**parameters, check=check)

    def ensemble(self, parameters: dict[str, Tensor]) -> EnsemblePrediction:
        """The ensemble prediction for parameters (members, *points) in the user's units."""
        return EnsemblePrediction(self.distribution(parameters, check=True))


def resolve(head: str | Head) -> Head:
    """The head of this name with its default settings; a `Head` is returned as it is."""
    if isinstance(head, Head):
        return head
    if not isinstance(head, str):
        raise ArgumentError(f"head must be one of {', '.join(heads.names())} or a Head, got {type(head).__name__}")
    return heads.get(head)()


def to_dict(head: Head) -> dict[str, Any]:
    """A registered head as plain data."""
    if head.name not in heads or type(head) is not heads.get(head.name):
        raise ArgumentError(f"{type(head).__name__} is not registered; decorate it with @heads.register(...) under its own name")
    return {"name": head.name, **dataclasses.asdict(head)}


def from_dict(data: dict[str, Any]) -> Head:
    """The head that `to_dict` wrote."""
    # JSON has no tuples.
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return heads.get(data["name"])(**fields)


softplus = torch.nn.functional.softplus  # positive like exp, but linear for large outputs, where exp overflows

"""What a head is: raw network outputs to the parameters of a predictive distribution, and the loss to train them with."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError
from uqprism.registry import Registry
from uqprism.support.optional import require

torch = require("torch", extra="deep")

Tensor = Any
SMALLEST = 1e-6  # of a variance or scale in standardised units, as in Lakshminarayanan et al. 2017

heads: Registry[type[Head]] = Registry("head", "uqprism.training.heads")


@dataclasses.dataclass(frozen=True)
class Head(ABC):
    """A frozen dataclass without state: everything learned is in the network.

    Targets and parameters are in standardised units; `to_units` brings parameters into the user's. A head that draws on the
    age of training (a warm-up) gets it as a tensor, so that one recorded step serves all epochs.
    """

    name: ClassVar[str]
    n_outputs: ClassVar[int] = 2
    family: ClassVar[str] = "gaussian"

    @property
    def warm_up_epochs(self) -> int:
        """Epochs during which validation says nothing yet."""
        return 0

    @abstractmethod
    def parameters(self, raw: Tensor) -> dict[str, Tensor]:
        """The parameters of the distribution by name, from raw outputs (..., n_outputs)."""

    @abstractmethod
    def loss(self, raw: Tensor, target: Tensor, age: Tensor) -> Tensor:
        """What training minimises, for each target (...); `age` broadcasts against it and counts finished epochs."""

    def validation_loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """What early stopping watches: the same loss, past any warm-up."""
        return self.loss(raw, target, torch.full_like(target, float(self.warm_up_epochs)))

    def to_units(self, parameters: dict[str, Tensor], mean: Tensor, scale: Tensor) -> dict[str, Tensor]:
        """Standardised parameters as those of mean + scale * y, in double precision."""
        given = {name: value.double() for name, value in parameters.items()}
        return {name: mean + scale * x if name in LOCATIONS else scale ** POWERS[name] * x for name, x in given.items()}

    def ensemble(self, parameters: dict[str, Tensor]) -> EnsemblePrediction:
        """The prediction that parameters (members, *points) in the user's units make."""
        return getattr(EnsemblePrediction, self.family)(**parameters)


# How parameters follow y -> mean + scale * y: some move with it, the others are multiplied by this power of the scale.
LOCATIONS = frozenset({"mean", "location", "gamma"})
POWERS = {"scale": 1, "variance": 2, "beta": 2, "nu": 0, "alpha": 0}


def resolve(head: str | Head) -> Head:
    """A head by name, with its defaults, or one that was made already."""
    if isinstance(head, Head):
        return head
    if not isinstance(head, str):
        raise ArgumentError(f"head must be one of {', '.join(heads.names())} or a Head, got {type(head).__name__}")
    return heads.get(head)()


def to_dict(head: Head) -> dict[str, Any]:
    """A head as plain data."""
    if head.name not in heads or type(head) is not heads.get(head.name):
        raise ArgumentError(f"{type(head).__name__} has no name of its own to be found by; give it one with @heads.register(...)")
    return {"name": head.name, **dataclasses.asdict(head)}


def from_dict(data: dict[str, Any]) -> Head:
    """What `to_dict` made."""
    return heads.get(data["name"])(**{key: value for key, value in data.items() if key != "name"})


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): positive, and linear for large x."""
    return torch.nn.functional.softplus(x)

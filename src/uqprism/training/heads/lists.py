"""What heads share whose distributions are lists: of components, bars or quantiles."""

from __future__ import annotations

from uqprism.arrays import namespace
from uqprism.registry import unknown
from uqprism.training.heads import Tensor

RULES = ("log", "crps", "quadratic")


def check_rule(name: str) -> None:
    """Refuse what is not the name of a rule that a head can minimise."""
    if name not in RULES:
        raise unknown("rule of a head", name, RULES)


def first(x: Tensor) -> Tensor:
    """The axis of the list, which is the last of a network's outputs, as the first one, where families have it."""
    return namespace(x).moveaxis(x, -1, 0)

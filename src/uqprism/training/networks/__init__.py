"""Networks: specifications that build a `torch.nn.Module`. A new file in this folder is found by itself."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

from uqprism.errors import ArgumentError
from uqprism.registry import Registry

__all__ = ["Factory", "Network", "from_dict", "networks", "resolve", "to_dict"]


class Network(Protocol):
    """A frozen dataclass that builds networks; every call builds one with fresh weights."""

    name: ClassVar[str]

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """A `torch.nn.Module` from (rows, *input_shape) to (rows, n_outputs)."""
        ...


networks: Registry[Any] = Registry("network", "uqprism.training.networks")
Factory = Callable[[tuple[int, ...], int], Any]


def resolve(network: Any) -> Factory:
    """The function (input_shape, n_outputs) -> `torch.nn.Module` for a name, a specification or a function of the user."""
    if isinstance(network, str):
        return networks.get(network)()
    # One built network would be all members at once.
    module = hasattr(network, "named_parameters") and not isinstance(network, type)
    if not callable(network) or module:
        raise ArgumentError(
            "network must be a name, a specification such as MLP(...), or a function (input_shape, n_outputs) -> "
            f"torch.nn.Module, which builds a fresh one for each member; got {type(network).__name__}"
        )
    return network if _takes_shapes(network) else partial(_build, network)


def _takes_shapes(function: Any) -> bool:
    """True for a function of (input_shape, n_outputs), False for one without arguments; others are errors."""
    given = list(inspect.signature(function).parameters.values())
    required = [p for p in given if p.default is p.empty and p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    if (
        len(required) == 2
        or any(p.kind is p.VAR_POSITIONAL for p in given)
        or {"input_shape", "n_outputs"} <= {p.name for p in given}
    ):
        return True
    if required:
        raise ArgumentError(
            f"network must take (input_shape, n_outputs) or nothing, its arguments are ({', '.join(p.name for p in given)})"
        )
    return False


def _build(function: Any, *_: Any) -> Any:
    """Call a function without arguments."""
    return function()


def to_dict(network: Any) -> dict[str, Any] | None:
    """A registered specification as plain data; None for a function of the user."""
    name = getattr(network, "name", "")
    if name not in networks or type(network) is not networks.get(name):
        return None
    return {"name": name, **dataclasses.asdict(network)}


def from_dict(data: dict[str, Any]) -> Factory:
    """The specification that `to_dict` wrote."""
    # JSON has no tuples.
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return networks.get(data["name"])(**fields)

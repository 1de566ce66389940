"""What a network specification is, and how one is found by name and written to a file."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

from uqprism.errors import ArgumentError, ShapeError
from uqprism.registry import Registry


class Network(Protocol):
    """A frozen dataclass that builds networks; calling it again builds another with fresh weights."""

    name: ClassVar[str]

    def __call__(self, input_shape: tuple[int, ...], n_outputs: int) -> Any:
        """A `torch.nn.Module` from (rows, *input_shape) to (rows, n_outputs)."""
        ...


networks: Registry[Any] = Registry("network", "uqprism.training.networks")
Factory = Callable[[tuple[int, ...], int], Any]


def resolve(network: Any) -> Factory:
    """A registered name, a specification, or any function (input_shape, n_outputs) or () -> `torch.nn.Module`."""
    if isinstance(network, str):
        return networks.get(network)()
    module = hasattr(network, "named_parameters") and not isinstance(network, type)
    if not callable(network) or module:
        raise ArgumentError(
            "network must be a name, a specification such as MLP(...), or a function (input_shape, n_outputs) -> "
            f"torch.nn.Module, which builds a fresh one for each member; got {type(network).__name__}"
        )
    return network if _takes_shapes(network) else partial(_build, network)


def _takes_shapes(function: Any) -> bool:
    """Whether it is called with the shapes or with nothing; anything else is an error."""
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
    """For a function that knows the shapes by itself."""
    return function()


def to_dict(network: Any) -> dict[str, Any] | None:
    """A registered specification as plain data, None for a user's own function."""
    name = getattr(network, "name", "")
    if name not in networks or type(network) is not networks.get(name):
        return None
    return {"name": name, **dataclasses.asdict(network)}


def from_dict(data: dict[str, Any]) -> Factory:
    """What `to_dict` made."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return networks.get(data["name"])(**fields)


def image_channels(name: str, input_shape: tuple[int, ...]) -> int:
    """The channels of images (channels, height, width); anything else is an error."""
    if len(input_shape) != 3:
        raise ShapeError(f"{name} takes images (rows, channels, height, width), got rows of shape {input_shape}")
    return input_shape[0]

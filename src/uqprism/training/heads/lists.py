"""What heads share whose distributions are lists: of components, bars or quantiles."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

from uqprism.arrays import is_traced, namespace
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.heads import Tensor

torch = require("torch", extra="deep")

RULES = ("log", "crps", "quadratic")


def check_rule(name: str, *more: str) -> None:
    """Refuse what is not the name of a rule that a head can minimise."""
    if name not in (*RULES, *more):
        raise unknown("rule of a head", name, (*RULES, *more))


def first(x: Tensor) -> Tensor:
    """The axis of the list, which is the last of a network's outputs, as the first one, where families have it."""
    return namespace(x).moveaxis(x, -1, 0)


def constant(values: tuple[float, ...], like: Tensor) -> Tensor:
    """These numbers with the device and the precision of a tensor."""
    if is_traced(like):  # a tensor that is made while a program is recorded has no values, and must not be kept
        return torch.tensor(values, device=like.device, dtype=like.dtype)
    return _constant(values, like.device, like.dtype)


@lru_cache(maxsize=64)
def _constant(values: tuple[float, ...], device: Any, dtype: Any) -> Tensor:
    # Made once: a step that is recorded as a CUDA graph must not copy numbers to the device.
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


@lru_cache(maxsize=64)
def normal_quantiles(levels: tuple[float, ...]) -> tuple[float, ...]:
    """The quantiles of a standard Gaussian."""
    return tuple(NormalDist().inv_cdf(level) for level in levels)

"""Weights: a probability distribution over the members of an ensemble, the components of a mixture or draws."""

from __future__ import annotations

import numpy as np

from uqprism.arrays import Array, coerce, is_traced, namespace
from uqprism.errors import InvalidValueError, ShapeError


def mixing_weights(like: Array, weights: Array, check: bool = True) -> Array:
    """Weights of the shape of `like` from None (equal) or one number for each entry of its first axis.

    Raises:
        ShapeError: not one weight for each member.
        InvalidValueError: a weight that is negative or not finite, or weights that do not sum to one.
    """
    xp = namespace(like)
    count = like.shape[0]
    if weights is None:
        return xp.full_like(like, 1.0 / count)
    weights = as_weights(weights, like)
    if tuple(weights.shape) not in ((count,), tuple(like.shape)):
        shape = tuple(weights.shape)
        raise ShapeError(f"weights must have one entry for each of the {count} members, got shape {shape}; None means equal")
    if check:
        check_weights(weights)
    wide = weights if weights.shape == like.shape else xp.reshape(weights, (count, *(1,) * (like.ndim - 1)))
    wide = xp.broadcast_to(xp.astype(wide, like.dtype), like.shape)
    return wide / xp.sum(wide, axis=0)


def as_weights(weights: Array, like: Array) -> Array:
    """Weights of any kind as an array of the library and device of `like`."""
    if isinstance(weights, np.ndarray) and not isinstance(like, np.ndarray):
        weights = weights.tolist()
    return coerce(weights=weights, members=like)["weights"]


def check_weights(weights: Array) -> None:
    """Refuse weights (members, ...) that are no probability distribution over the members."""
    if is_traced(weights):
        return
    xp = namespace(weights)
    good = xp.isfinite(weights) & (weights >= 0.0)
    if not bool(xp.all(good)):
        first = float(xp.reshape(weights, (-1,))[int(xp.argmin(xp.astype(xp.reshape(good, (-1,)), xp.int32)))])
        raise InvalidValueError(f"weights must be finite and not negative, got {first}; drop the members that should not count")
    total = xp.sum(weights, axis=0)
    slack = 1e-6 if "64" in str(weights.dtype) else 1e-4
    if not bool(xp.all(xp.abs(total - 1.0) <= slack)):
        worst = float(xp.max(total))
        raise InvalidValueError(f"weights must sum to one, got {worst:g}; divide them by their sum")

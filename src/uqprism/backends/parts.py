"""Cut a prediction into parts whose temporaries stay small."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

from uqprism.arrays import Array, is_torch, is_traced, is_wrapped, namespace, to_numpy
from uqprism.ensemble import EnsemblePrediction

ELEMENTS = 2**21  # of the largest temporary in one part
ON_DEVICE = 16  # times as many: small parts leave an accelerator idle


def split(flat: EnsemblePrediction) -> tuple[list[EnsemblePrediction], np.ndarray[Any, Any] | None]:
    """Parts of at most so many points that temporaries stay small, easy points first, and the order that was used.

    Points whose members nearly agree need no quadrature and points of like difficulty the same number of panels, so sorting
    them saves more than it costs. Traced and wrapped arrays stay whole: their values are not known.
    """
    count, size = flat.n_points, _points_per_part(flat)
    centre, spread = flat.members.centre, flat.members.spread
    if fits_one_part(flat) or any(is_traced(x) or is_wrapped(x) for x in (centre, spread, flat.weights)):
        return [flat], None
    middle, width = to_numpy(centre).astype(np.float64), to_numpy(spread).astype(np.float64)
    order = np.argsort(((middle.max(axis=0) - middle.min(axis=0)) + width.max(axis=0)) / width.min(axis=0), kind="stable")
    return [flat[index_like(order[i : i + size], centre)] for i in range(0, count, size)], order


def fits_one_part(flat: EnsemblePrediction) -> bool:
    """True if all points together are few."""
    return flat.n_points <= _points_per_part(flat)


def _points_per_part(flat: EnsemblePrediction) -> int:
    centre = flat.members.centre
    elements = ELEMENTS * (ON_DEVICE if is_torch(centre) and centre.device.type != "cpu" else 1)
    return max(1, elements // (flat.n_members * max(flat.n_members, 256)))


def index_like(order: np.ndarray[Any, Any], like: Array) -> Array:
    """Positions as an index array for `like`."""
    if isinstance(like, np.ndarray):
        return order
    return namespace(like).asarray(order, device=array_api_compat.device(like))


def put(values: Array, at: Array, new: Array) -> Array:
    """`values` with those at some positions replaced."""
    if is_torch(values) and (values.requires_grad or new.requires_grad):
        return values.index_copy(0, at, new)  # a new tensor: gradients flow through both
    values[at] = new
    return values

"""Columns of numbers as a pandas table, with the index that the user's rows have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqprism.arrays import Array, to_numpy
from uqprism.errors import ShapeError
from uqprism.support.optional import require


def data_frame(columns: Mapping[str, Array], index: Any = None) -> Any:
    """A `pandas.DataFrame` with a row per point, in the order of the points.

    Args:
        columns: an array for each name, (*points).
        index: of the rows, such as that of the table the points come from; by default they are counted.
    """
    pandas = require("pandas", extra="pandas")
    flat = {name: to_numpy(x).reshape(-1) for name, x in columns.items()}
    rows = len(next(iter(flat.values()), ()))
    if index is not None and len(index) != rows:
        raise ShapeError(f"index must have an entry for each of the {rows} points, got {len(index)}")
    return pandas.DataFrame(flat, index=index)

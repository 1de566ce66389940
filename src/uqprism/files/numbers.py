"""Columns of a table as numbers, also where they are written as text: cells that are none are found, not fatal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from uqprism.errors import InvalidValueError
from uqprism.support.optional import require

if TYPE_CHECKING:
    import numpy as np

pa = require("pyarrow", extra="cli")
compute = require("pyarrow.compute", extra="cli")

NUMBER = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?|(?i:inf|infinity))$"
MISSING = tuple(require("pyarrow.csv", extra="cli").ConvertOptions().null_values)  # as in columns of numbers of a CSV file
LONGEST_CELL = 40  # characters of one in a message


def is_text(kind: Any) -> bool:
    """Whether a column of this Arrow type holds text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def as_numbers(column: Any) -> np.ndarray[Any, Any]:
    """A column as numbers; nulls, and text that is no number, as NaN."""
    if is_text(column.type):
        return numbers_in(column)[0].to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(column.type):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy(zero_copy_only=False)


def is_list(kind: Any) -> bool:
    """Whether a cell of this Arrow type is a list."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def as_cells(column: Any, name: str) -> np.ndarray[Any, Any]:
    """A column as numbers (rows,), or of lists as (rows, numbers of a cell), where a missing list is NaN throughout.

    Raises:
        InvalidValueError: lists of different lengths.
    """
    if not is_list(column.type):
        return as_numbers(column)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    lengths = compute.list_value_length(column).drop_null()
    if not len(lengths):
        return numpy.full((len(column), 1), numpy.nan)
    ends = compute.min_max(lengths).as_py()
    if ends["min"] != ends["max"]:
        raise InvalidValueError(
            f"column {name!r} has lists of {ends['min']} to {ends['max']} numbers; all members of all rows need as many"
        )
    flat = as_numbers(column.flatten())
    if not column.null_count:
        return flat.reshape(len(column), ends["min"])
    found = numpy.full((len(column), ends["min"]), numpy.nan)
    found[column.is_valid().to_numpy(zero_copy_only=False)] = flat.reshape(-1, ends["min"])
    return found


def numbers_in(column: Any) -> tuple[Any, Any]:
    """A column of text as doubles, and whether each cell is text that is no number; those and missing ones are null."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # Functions for bytes: a damaged file may hold text that is not UTF-8.
    cells = compute.ascii_trim(column.cast(pa.large_string()), " \t")
    numeric = compute.match_substring_regex(cells, NUMBER)
    missing = compute.is_in(cells, pa.array([*MISSING, None], pa.large_string()))
    found = compute.if_else(numeric, cells, None).cast(pa.float64())
    return found, compute.and_not(compute.invert(compute.fill_null(numeric, False)), missing)


def mostly_text(column: Any) -> str | None:
    """The first cell that is no number, if such cells are the majority of those that are not missing."""
    found, unreadable = numbers_in(column)
    count = compute.sum(unreadable).as_py() or 0
    if count <= len(found) - found.null_count:
        return None
    return cell(column, compute.index(unreadable, True).as_py())


def cell(column: Any, row: int) -> str:
    """A cell for a message: text in quotes and cut to a bounded length, a missing value as null."""
    value = column[row]
    if not value.is_valid:
        return "null"
    if not is_text(value.type):
        return str(value.as_py())
    value = value.value if hasattr(value, "dictionary") else value
    text = value.cast(pa.binary()).as_py().decode(errors="backslashreplace")
    if text.strip() in MISSING:
        return "null"
    return repr(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}...")

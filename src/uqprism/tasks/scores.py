"""The door of all tasks: measures of a table, or anybody's own uncertainties, as named columns of numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from uqprism.arrays import is_array, to_numpy
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError

T = TypeVar("T")
THREADS = min(4, os.cpu_count() or 1)  # sorting lets go of the interpreter's lock


@dataclass(frozen=True)
class Scores:
    """One column of numbers per measure, all of one length, none NaN; the higher, the more uncertain.

    Attributes:
        columns: arrays (points,) by measure name.
    """

    columns: Mapping[str, np.ndarray]

    @property
    def names(self) -> tuple[str, ...]:
        """The measures, in the order of the table."""
        return tuple(self.columns)

    @property
    def n_points(self) -> int:
        """How many points each measure has."""
        return len(next(iter(self.columns.values())))

    @cached_property
    def values(self) -> np.ndarray:
        """All columns as one array (measures, points)."""
        return np.stack(list(self.columns.values()))

    def each(self, function: Callable[[str, np.ndarray], T]) -> dict[str, T]:
        """What the function makes of each column, several at a time."""
        with ThreadPoolExecutor(THREADS) as pool:
            return dict(zip(self.columns, pool.map(function, self.columns, self.columns.values()), strict=True))


def as_scores(table: Any, argument: str = "table") -> Scores:
    """Columns out of a `MeasureTable`, a mapping of names to arrays, a data frame, or one array of uncertainties."""
    columns = {name: numbers(column, title) for name, title, column in _columns(table, argument)}
    if not columns:
        raise ArgumentError(f"{argument} has no measures; evaluate(ensemble) makes a table of all")
    lengths = {name: len(column) for name, column in columns.items()}
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ShapeError(f"{argument} must have one length, got {length} for {name!r} and {lengths[first]} for {first!r}")
    return Scores(columns)


def numbers(values: Any, argument: str, *, finite: bool = False) -> np.ndarray:
    """At least two real numbers, none NaN, as a flat array."""
    if not is_array(values):
        values = np.asarray(values)
    found = to_numpy(values).reshape(-1)
    if found.dtype.kind not in "fiub":
        raise ArrayTypeError(f"{argument} must be real numbers, got dtype {found.dtype}; convert it to float first")
    found = found.astype(np.float64, copy=False)
    if len(found) < 2:
        raise InvalidValueError(f"{argument} must have at least 2 points, got {len(found)}; give more points")
    bad = ~np.isfinite(found) if finite else np.isnan(found)
    if bad.any():
        kind = "NaN or infinite" if finite else "NaN"
        raise InvalidValueError(
            f"{argument} must not be {kind}, point {int(np.argmax(bad))} is {found[np.argmax(bad)]} ({int(bad.sum())} in all); "
            "drop those points, everywhere alike"
        )
    return found


def errors_of(error: Any, scores: Scores, argument: str = "error") -> np.ndarray:
    """The error of each point of these scores, finite."""
    found = numbers(error, argument, finite=True)
    if len(found) != scores.n_points:
        raise ShapeError(
            f"{argument} must have one value for each of the table's {scores.n_points} points, got {len(found)}; "
            "both must be of the same rows"
        )
    return found


def _columns(table: Any, argument: str) -> Iterable[tuple[str, str, Any]]:
    """Names, what to call them in an error, and values."""
    if isinstance(table, str):
        raise ArgumentError(f"{argument} must be a table of measures, got the text {table!r}; read the file first")
    if is_table(table):
        columns = zip(table.column_names, table.columns, strict=True) if hasattr(table, "column_names") else table.items()
        return [(str(name), f"{argument}[{str(name)!r}]", column) for name, column in columns]
    return [("uncertainty", argument, table)]


def is_table(value: Any) -> bool:
    """Whether this has named columns: a `MeasureTable`, a mapping, a pandas frame or an Arrow table."""
    return isinstance(value, Mapping) or hasattr(value, "columns")

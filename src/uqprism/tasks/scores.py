"""Read what tasks are given: measures of a table, or uncertainties from elsewhere, as named columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from uqprism.arrays import check_unmasked, is_array, to_numpy
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ArrayTypeError, InvalidValueError, ShapeError
from uqprism.evaluation import Decomposition, evaluate
from uqprism.measures import RISKS, Measure, select_measures
from uqprism.measures.defined import is_defined
from uqprism.support.parallel import threads

T = TypeVar("T")
ROUNDING = 1e-9  # of the largest error: an error that is a difference, such as a CRPS, may be rounded below zero


@dataclass(frozen=True)
class Scores:
    """One column of numbers per measure, all of one length, none NaN; the higher, the more uncertain.

    Attributes:
        columns: arrays (points,) by measure name.
        shape: of the points, before they were flattened.
        index: of a pandas frame, or None.
    """

    columns: Mapping[str, np.ndarray]
    shape: tuple[int, ...] = ()
    index: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The measures, in the order of the table."""
        return tuple(self.columns)

    @property
    def n_points(self) -> int:
        """The number of points of each measure."""
        return len(next(iter(self.columns.values())))

    def each(self, function: Callable[[str, np.ndarray], T]) -> dict[str, T]:
        """Apply a function to each column, several at a time."""
        with ThreadPoolExecutor(threads()) as pool:  # sorting releases the interpreter's lock
            return dict(zip(self.columns, pool.map(function, self.columns, self.columns.values()), strict=True))


def as_scores(table: Any, argument: str = "table", *, fewest: int = 2) -> Scores:
    """Columns out of a `MeasureTable`, a mapping of names to arrays, a data frame, or one array of uncertainties.

    An ensemble stands for its usual measures, and a `Decomposition` for its three risks.
    """
    if isinstance(table, EnsemblePrediction):
        table = evaluate(table, _usual(table))
    elif isinstance(table, Decomposition):
        table = {risk: getattr(table, risk) for risk in RISKS}
    given = list(_columns(table, argument))
    # Columns with equal names would replace each other unnoticed; the next lines count them.
    columns = {name: real_numbers(column, title, fewest=fewest) for name, title, column in given}
    if len(columns) < len(given):
        raise InvalidValueError(f"{argument} has two columns of one name among {', '.join(columns)}; rename one")
    if not columns:
        raise ArgumentError(f"{argument} has no measures; evaluate(ensemble) makes a table of all")
    lengths = {name: len(column) for name, column in columns.items()}
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ShapeError(f"{argument} must have one length, got {length} for {name!r} and {lengths[first]} for {first!r}")
    # Lists have a method `index`; `reindex` tells pandas apart.
    return Scores(columns, np.shape(given[0][2]), getattr(table, "index", None) if hasattr(table, "reindex") else None)


def real_numbers(values: Any, argument: str, *, finite: bool = False, fewest: int = 2) -> np.ndarray:
    """Real numbers, at least so many and none NaN, as a flat array."""
    check_unmasked(values, argument)
    if not is_array(values):
        values = np.asarray(values)
    found = to_numpy(values).reshape(-1)
    if found.dtype.kind not in "fiub":
        raise ArrayTypeError(f"{argument} must be real numbers, got dtype {found.dtype}; convert it to float first")
    found = found.astype(np.float64, copy=False)
    if len(found) < fewest:
        points = f"{fewest} point{'s' if fewest > 1 else ''}"
        raise InvalidValueError(f"{argument} must have at least {points}, got {len(found)}; give more points")
    bad = ~np.isfinite(found) if finite else np.isnan(found)  # infinity has a place in a ranking, NaN has none
    if bad.any():
        kind = "NaN or infinite" if finite else "NaN"
        raise InvalidValueError(
            f"{argument} must not be {kind}, point {int(np.argmax(bad))} is {found[np.argmax(bad)]} ({int(bad.sum())} in all); "
            "drop those points, everywhere alike"
        )
    return found


def errors_of(error: Any, scores: Scores, argument: str = "error", *, may_be_negative: bool = False) -> np.ndarray:
    """The error of each point of these scores, finite and, unless it may be, not negative."""
    found = real_numbers(error, argument, finite=True)
    negative = found < -ROUNDING * np.abs(found).max()
    if negative.any() and not may_be_negative:
        first = int(np.argmax(negative))
        raise InvalidValueError(
            f"{argument} must not be negative, point {first} is {found[first]:g} ({int(negative.sum())} in all); pass squared or "
            f"absolute errors, as of up.prediction_error(ensemble, y); for log scores pass may_be_negative=True"
        )
    if len(found) != scores.n_points:
        raise ShapeError(
            f"{argument} must have one value for each of the table's {scores.n_points} points, got {len(found)}; "
            "both must be of the same rows"
        )
    # Flat errors fit points of any shape, but errors in another shape would belong to other points.
    if len(np.shape(error)) > 1 and np.shape(error) != scores.shape:
        raise ShapeError(f"{argument} must have the shape of the table's points {scores.shape}, got {np.shape(error)}")
    # Pandas would match rows by their index, the arrays here go by order.
    if scores.index is not None and hasattr(error, "reindex") and not scores.index.equals(error.index):
        raise ShapeError(f"{argument} must have the index of the table; use {argument}.reindex(table.index), or reset both")
    return found


def with_targets(ensemble: EnsemblePrediction, target: Any) -> tuple[EnsemblePrediction, np.ndarray]:
    """An ensemble with its points along one axis, and a finite target for each of them."""
    if not isinstance(ensemble, EnsemblePrediction):
        raise ArrayTypeError(f"ensemble must be an EnsemblePrediction, got {type(ensemble).__name__}; the target comes second")
    if np.shape(target) != tuple(ensemble.points_shape):
        raise ShapeError(f"target must have the shape of the points {ensemble.points_shape}, got {np.shape(target)}")
    return ensemble.flat(), real_numbers(target, "target", finite=True)


def _usual(ensemble: EnsemblePrediction) -> list[Measure]:
    """The usual measures that the members have: for draws those that need no density."""
    return [m for m in select_measures("usual") if is_defined(m, ensemble.members)]


def _columns(table: Any, argument: str) -> Iterable[tuple[str, str, Any]]:
    """Names, their titles in an error, and values."""
    if isinstance(table, str):
        raise ArgumentError(f"{argument} must be a table of measures, got the text {table!r}; read the file first")
    if is_table(table):
        pairs = hasattr(table, "items")  # Arrow and polars tables have none
        columns = table.items() if pairs else [(name, table[name]) for name in getattr(table, "column_names", table.columns)]
        return [(str(name), f"{argument}[{str(name)!r}]", column) for name, column in columns]
    if isinstance(table, list | tuple) and any(is_table(each) or np.ndim(each) > 0 for each in table):
        raise ArgumentError(f"{argument} must be one table, got a {type(table).__name__} of several; name them in a mapping")
    if table is None or np.ndim(table) == 0:
        raise ArgumentError(f"{argument} must be a table of measures, got {table!r}; up.evaluate(ensemble) makes one")
    if np.ndim(table) > 1:
        raise ShapeError(
            f"{argument} must have one axis as uncertainties, got shape {np.shape(table)}; name columns in a mapping"
        )
    return [("uncertainty", argument, table)]


def is_table(value: Any) -> bool:
    """Whether this has named columns: a `MeasureTable`, a mapping, a pandas frame or an Arrow table."""
    return isinstance(value, Mapping) or hasattr(value, "columns")

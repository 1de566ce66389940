"""The columns of a table as numbers: categories, booleans and missing values, as learnt from the training rows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from uqprism.errors import ArrayTypeError, InvalidValueError, ShapeError
from uqprism.support.optional import require
from uqprism.training.kinds import Kind, kind_of, refusal

Floats = np.ndarray[Any, np.dtype[np.float64]]

MOST = 32  # categories of a column that have a number of their own; each is a learnt vector, the weights of the first layer
FEWEST = 5  # rows of a category that has one: of fewer rows nothing can be learnt
OTHER, MISSING = "(other)", "(missing)"


def is_frame(values: Any) -> bool:
    """Whether these are a pandas or Polars data frame or an Arrow table."""
    if type(values).__name__ == "LazyFrame":
        raise ArrayTypeError("the table is a LazyFrame, whose rows are not there yet; call its collect()")
    named = hasattr(values, "column_names") or hasattr(values, "columns")
    elsewhere = hasattr(values, "map_partitions")  # the rows of a Dask table
    return named and hasattr(values, "shape") and not elsewhere


def take_rows(values: Any, rows: Any) -> Any:
    """Some rows of a table, an array or a tensor."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values.take(rows) if hasattr(values, "column_names") else values[rows]


@dataclass(frozen=True)
class Column:
    """One column of a table, and how it becomes numbers.

    A number stays one; where it is missing it becomes the median, and a second number says so. A boolean is 0 or 1. A category
    becomes one number per kept category, which is 1 for that category and 0 for the others. Categories that are rare in training
    or beyond the limit share one, to which unknown ones belong as well; a second number then says how often the row's category
    was seen in training, as a logarithm.

    Attributes:
        name: of the column.
        kind: number, boolean or category.
        fill: the number in place of a missing one.
        gaps: whether values were missing in training.
        kept: the categories with a number of their own.
        counts: how often each category was seen in training, if some share a number; None if all have one of their own.
    """

    name: str
    kind: Kind
    fill: float = 0.0
    gaps: bool = False
    kept: tuple[str, ...] = ()
    counts: dict[str, int] | None = None

    @classmethod
    def of(cls, name: str, values: Any) -> Column:
        """Learn from a `pandas.Series`."""
        kind = kind_of(values)
        gaps = bool(values.isna().any())
        if kind == "category":
            counts: dict[str, int] = {}
            for value, count in values.dropna().value_counts().items():
                if count > 0:
                    counts[_text(value)] = counts.get(_text(value), 0) + int(count)
            ranked = sorted(counts, key=lambda value: (-counts[value], value))  # ties by name, so that the order of rows is free
            kept = tuple(sorted(value for value in ranked[:MOST] if counts[value] >= FEWEST or len(ranked) == 2))
            return cls(name, kind, gaps=gaps, kept=kept, counts=None if len(kept) == len(counts) else counts)
        array = _numbers(name, values)
        there = array[~np.isnan(array)]
        fill = float(np.median(there)) if len(there) else 0.0
        return cls(name, kind, fill=fill if kind == "number" else float(fill >= 0.5), gaps=gaps)

    @property
    def names(self) -> list[str]:
        """What each of its numbers is called."""
        if self.kind != "category":
            return [self.name, *([f"{self.name} {MISSING}"] if self.gaps else [])]
        extra = [OTHER] * (self.counts is not None) + [MISSING] * self.gaps
        return [f"{self.name}={value}" for value in (*self.kept, *extra)] + [f"{self.name} how often"] * (self.counts is not None)

    @property
    def switches(self) -> list[bool]:
        """Which of its numbers are zero or one."""
        if self.kind != "category":
            return [self.kind == "boolean", *([True] if self.gaps else [])]
        return [True] * (len(self.kept) + (self.counts is not None) + self.gaps) + [False] * (self.counts is not None)

    def apply(self, values: Any) -> Floats:
        """The numbers of each row, (rows, numbers), for a `pandas.Series`."""
        if self.kind != "category":
            missing = values.isna().to_numpy(dtype=bool)
            filled = np.where(missing, self.fill, _numbers(self.name, values))
            return np.stack([filled, missing.astype(np.float64)], axis=1) if self.gaps else filled[:, None]
        pandas = require("pandas", extra="pandas")
        codes, different = pandas.factorize(values)  # once for each category, not for each row
        known = [_text(value) for value in different]
        width = len(self.kept)
        places = pandas.Index(self.kept).get_indexer(known)
        if self.counts is not None:
            places[places < 0] = width  # unknown categories belong to the others
            width += 1
        # The last one is that of the code -1, for missing values.
        places = np.append(places, width if self.gaps else -1 if self.counts is None else width - 1)[codes]
        found = np.zeros((len(codes), width + self.gaps))
        found[np.flatnonzero(places >= 0), places[places >= 0]] = 1.0
        if self.counts is None:
            return found
        often = np.log1p([*(float(self.counts.get(value, 0)) for value in known), 0.0])
        return np.concatenate([found, often[codes][:, None]], axis=1)


@dataclass(frozen=True)
class Columns:
    """The columns of the table that a model was trained on.

    Attributes:
        columns: in their order.
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, frame: Any) -> Self:
        """Learn from training rows; columns that cannot be used are refused together, each with the way out."""
        series, found, refused = _series(frame), [], []
        if not len(frame):
            raise InvalidValueError("the table has no rows")
        for name, values in series.items():
            if (why := refusal(name, values)) is not None:
                refused.append(why)
            else:
                found.append(Column.of(name, values))
        if refused:
            raise InvalidValueError("; ".join(refused))
        return cls(tuple(found))

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that they become."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def switches(self) -> tuple[bool, ...]:
        """Which of these numbers are zero or one."""
        return tuple(switch for column in self.columns for switch in column.switches)

    def apply(self, frame: Any) -> Floats:
        """The numbers of each row, (rows, numbers), of a table with the same columns, or of an array if all are numbers."""
        series = _series(frame) if is_frame(frame) else self._positions(frame)
        if tuple(series) != self.given:
            raise ShapeError(f"inputs must have the columns {', '.join(self.given)}, in this order; got {', '.join(series)}")
        for column in self.columns:
            self._check(column, series[column.name])
        parts = [column.apply(series[column.name]) for column in self.columns]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(frame), 0))

    def check_array(self) -> None:
        """Refuse an array in place of a table with categories."""
        if odd := [column.name for column in self.columns if column.kind == "category"]:
            raise ShapeError(f"inputs must be a table like that of training, since {_listed(odd)} held categories; got an array")

    def _positions(self, array: Any) -> dict[str, Any]:
        """The columns of an array, by position."""
        pandas = require("pandas", extra="pandas")
        self.check_array()
        values = np.asarray(array)
        if values.ndim != 2 or values.shape[1] != len(self.columns):
            raise ShapeError(f"inputs must be (rows, {len(self.columns)}), got shape {values.shape}")
        return {column.name: pandas.Series(values[:, i]) for i, column in enumerate(self.columns)}

    def _check(self, column: Column, values: Any) -> None:
        """Refuse a column that holds something else than in training."""
        if (why := refusal(column.name, values, training=False)) is not None:
            raise InvalidValueError(why)
        kind = "category" if column.kind == "category" else "number"
        now = "category" if kind_of(values) == "category" else "number"
        if kind == "number" and now == "category" and not values.isna().all():
            raise InvalidValueError(
                f"column {column.name!r} held {column.kind}s in training, and holds text now; convert it, as with "
                f"pandas.to_numeric(frame[{column.name!r}])"
            )
        if column.kind == "boolean" and (odd := set(values.dropna().unique()) - {0, 1}):
            raise InvalidValueError(f"column {column.name!r} held booleans in training, and holds {min(odd)} now; convert it")

    def to_dict(self) -> list[dict[str, Any]]:
        """The columns as plain data."""
        return [dataclasses.asdict(column) for column in self.columns]

    @classmethod
    def from_dict(cls, data: list[Mapping[str, Any]]) -> Self:
        """The columns that `to_dict` wrote."""
        return cls(tuple(Column(**{**each, "kept": tuple(each["kept"])}) for each in data))


def names_of(frame: Any) -> list[Any]:
    """The names of the columns, all different as text."""
    names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    counts = Counter(map(str, names))
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise InvalidValueError(f"the table has more than one column {_listed(twice)}; rename them")
    return names


def _series(frame: Any) -> dict[str, Any]:
    """Each column as a `pandas.Series`, by name."""
    names = names_of(frame)
    texts = [str(name) for name in names]
    if hasattr(frame, "iloc"):
        return {text: frame[name] for text, name in zip(texts, names, strict=True)}
    if hasattr(frame, "column_names"):  # Arrow
        return {name: frame.column(name).to_pandas() for name in names}
    return {name: _from_polars(frame[name]) for name in names}


def _from_polars(column: Any) -> Any:
    """A Polars column as a `pandas.Series`; what it says is a category stays one."""
    values = column.to_numpy()
    stated = "category" if str(column.dtype).startswith(("Categorical", "Enum")) else None
    return require("pandas", extra="pandas").Series(list(values) if values.ndim > 1 else values, dtype=stated)


def _numbers(name: str, values: Any) -> Floats:
    """A column of numbers or booleans in double precision, NaN where it is missing."""
    plain = isinstance(values.dtype, np.dtype) and values.dtype.kind in "fiub"
    values = values if plain else values.astype(object).where(~values.isna(), np.nan)  # `pandas.NA` is no float
    array: Floats = values.to_numpy(dtype=np.float64)
    if (bad := np.flatnonzero(np.isinf(array))).size:
        raise InvalidValueError(
            f"column {name!r} must be finite: {len(bad)} of {len(array)} rows hold infinity, the first is row {bad[0]}; "
            "drop or repair them"
        )
    return array


def _text(value: Any) -> str:
    """A category as text; 1 and 1.0, which a column of whole numbers becomes where one is missing, are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))

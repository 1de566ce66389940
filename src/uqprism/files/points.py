"""The points of a file, or of a folder of parts, for the tasks: measures, members, targets and errors by column."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns, Layout, NoMembersError, resolve
from uqprism.ensemble.prediction import FORMAT, EnsemblePrediction
from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.evaluation import evaluate
from uqprism.families.quadrature import Exactness
from uqprism.files.csv_files import column_names, explained
from uqprism.files.options import matching
from uqprism.files.paths import find_files
from uqprism.files.read import arrow_csv, naming, pa, pq, stored_weights
from uqprism.files.rows import complaint, good_rows, numbers
from uqprism.measures import catalogue
from uqprism.measures.measure import is_measure
from uqprism.registry import unknown
from uqprism.tasks.prediction_error import prediction_error

REMEDY = "repair it, or leave such rows out with on_bad (--on-bad drop)"


@dataclass(frozen=True)
class Points:
    """Columns of one file or of several with the same columns, read when they are asked for.

    Attributes:
        paths: the files.
        columns: which of their columns hold members.
        on_bad: `error` refuses rows with bad members, `drop` gives NaN for them.
    """

    paths: tuple[Path, ...]
    columns: Columns
    on_bad: str = "error"

    @classmethod
    def of(
        cls,
        inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: Columns | None = None,
        on_bad: str = "error",
    ) -> Points:
        """The points of a Parquet, CSV or NPZ file, a folder of them, or a pattern."""
        if on_bad not in {"error", "drop"}:
            raise ArgumentError(str(unknown("on_bad (--on-bad)", on_bad, ("error", "drop"))))
        return cls(tuple(span.path for span in find_files(inputs)), columns or Columns(), on_bad)

    @property
    def title(self) -> str:
        """The file, for errors."""
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the first file."""
        with naming(self.paths[0], "read"):
            return pq.read_schema(self.paths[0]) if _is_parquet(self.paths[0]) else self._whole(self.paths[0]).schema

    @property
    def names(self) -> list[str]:
        """All columns."""
        return self.schema.names

    @property
    def numeric_names(self) -> list[str]:
        """The columns that hold numbers."""
        tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
        return [each.name for each in self.schema if any(test(each.type) for test in tests)]

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """These columns as numbers, nulls as NaN."""
        wanted = list(names)
        tables = self._tables(wanted)
        if tables and not any(table.num_rows for table in tables):
            raise InvalidValueError(f"{self.title}: has no rows, only the names of its columns")
        return {name: self._numbers(name, [table.column(name) for table in tables]) for name in wanted}

    def _tables(self, names: Sequence[str]) -> list[Any]:
        """These columns of each file, as they stand there."""
        wanted = list(names)
        for name in wanted:
            if name not in self.names:
                raise InvalidValueError(f"{self.title}: {unknown('column', name, self._not_members())}")
        tables = []
        for path in self.paths:
            with naming(path, "read"):
                table = pq.read_table(path, columns=wanted, partitioning=None) if _is_parquet(path) else self._whole(path)
                tables.append(table.select(wanted))
        return tables

    def _not_members(self) -> list[str]:
        """The columns to choose from when one is unknown: all, if there are only members."""
        try:
            members = {*self.layout.mean, *self.layout.spread}
        except InvalidValueError:
            members = set()
        return [name for name in self.names if name not in members] or self.names

    def _whole(self, path: Path) -> Any:
        """A CSV or NPZ file as an Arrow table."""
        return _csv(path, self.columns) if path.suffix == ".csv" else _npz(path)

    def _numbers(self, name: str, chunks: Sequence[Any]) -> np.ndarray:
        try:
            return np.concatenate([numbers(chunk).astype(np.float64, copy=False) for chunk in chunks])
        except (pa.ArrowException, ValueError, TypeError):
            raise InvalidValueError(f"{self.title}: column {name!r} must hold numbers, its type is {chunks[0].type}") from None

    def measures(self, wanted: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Measures by name: columns of the file where it was scored, else computed from the members; NaN in bad rows.

        Args:
            wanted: names or patterns such as `crps.*`, with commas between if you like, or `all`; also names of other columns.
        """
        return self.measured(wanted)[0]

    def measured(self, wanted: Sequence[str] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Exactness]]:
        """The same, and how exact those are that were computed here."""
        patterns = [part.strip() for text in wanted or ["all"] for part in text.split(",") if part.strip()]
        columns = [name for name in patterns if name in self.names]
        scored = self.scored
        others = [pattern for pattern in patterns if pattern not in columns]
        known = scored or ([measure.name for measure in catalogue()] if others else [])
        chosen = matching(others, known, self.title)
        found, exactness = self.read([*columns, *(chosen if scored else [])]), {}
        if chosen and not scored:
            table = evaluate(self.ensemble(), chosen)
            found |= {name: self._in_all_rows(np.asarray(table[name])) for name in chosen}
            exactness = table.exactness
        return {name: found[name] for name in dict.fromkeys([*columns, *chosen])}, exactness

    @property
    def scored(self) -> list[str]:
        """The columns that hold measures."""
        return [name for name in self.names if is_measure(name)]

    def take(self, names: Sequence[str], rows: np.ndarray) -> dict[str, list[Any]]:
        """What stands in these columns at some rows, of whatever type."""
        tables = self._tables(names)
        chunks = {name: pa.chunked_array([part for table in tables for part in table.column(name).chunks]) for name in names}
        return {name: chunk.take(pa.array(rows)).to_pylist() for name, chunk in chunks.items()}

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        try:
            return resolve(self.columns, self.names, self.title)
        except NoMembersError as error:
            if self.scored:
                raise InvalidValueError(
                    f"{self.title}: has measures but no members; score with --keep-members, or name the column of what was "
                    "predicted with --prediction, or that of the errors with --error-column"
                ) from None
            raise InvalidValueError(
                f"{error}. Files have columns of measures (uqprism score writes them) or of members; for errors without members "
                "name --error-column, or --target with --prediction"
            ) from None

    @cached_property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and spreads, (members, rows)."""
        found = self.read([*self.layout.mean, *self.layout.spread])
        mean, spread = (np.stack([found[name] for name in names]) for names in (self.layout.mean, self.layout.spread))
        return mean, spread

    @cached_property
    def good(self) -> np.ndarray:
        """Which rows have members that are distributions; others are refused, or left out if they may be."""
        good = good_rows(*self.members)
        if good is None:
            return np.ones(self.members[0].shape[1], dtype=bool)
        if self.on_bad == "error":
            told = complaint(self.layout, *self.members, good=good, is_null=self._is_null)
            raise InvalidValueError(f"{self.title}: {told}; {REMEDY}")
        return good

    def _is_null(self, name: str, row: int) -> bool:
        return self.take([name], np.array([row]))[name][0] is None

    def ensemble(self) -> EnsemblePrediction:
        """What the members predict for the good rows."""
        mean, spread = (array[:, self.good] for array in self.members)
        arrays: dict[str, Any] = {"mean": mean, self.layout.kind: spread}
        return EnsemblePrediction.gaussian(**arrays, weights=stored_weights(self.schema))

    def _in_all_rows(self, values: np.ndarray) -> np.ndarray:
        found = np.full(len(self.good), np.nan)
        found[self.good] = values
        return found

    def error(self, *, column: str | None, target: str | None, prediction: str | None, kind: str = "squared") -> np.ndarray:
        """The error of each point: a column of its own, or made from a target and a prediction or the members."""
        if column is not None:
            if target is not None or prediction is not None:
                raise ArgumentError("give --error-column, or --target (with --prediction), not both")
            return self._known(column)
        if target is None:
            raise ArgumentError("the error of each point is missing; name its column with --error-column, or --target")
        y = self._known(target)
        if prediction is None:
            known = self.good & np.isfinite(y) if self.on_bad == "drop" else self.good
            found = np.full(len(y), np.nan)
            found[known] = prediction_error(self.ensemble()[known[self.good]], y[known], kind)  # type: ignore[arg-type]
            return found
        if kind not in {"squared", "absolute"}:
            raise ArgumentError(f"--error {kind} needs the members, not --prediction; leave it out, or take squared or absolute")
        apart = np.abs(self._known(prediction) - y)
        return apart**2 if kind == "squared" else apart

    def _known(self, name: str) -> np.ndarray:
        """A column of finite numbers; others are refused, or given as NaN if they may be left out."""
        values = self.read([name])[name]
        bad = ~np.isfinite(values)
        if self.on_bad == "error" and bad.any():
            row = int(np.argmax(bad))
            shown = "null" if self._is_null(name, row) else values[row]
            more = f" ({bad.sum()} bad rows in all)" if bad.sum() > 1 else ""
            raise InvalidValueError(f"{self.title}: row {row}: {name} must be finite, got {shown}{more}; {REMEDY}")
        return np.where(bad, np.nan, values)


def _is_parquet(path: Path) -> bool:
    return path.suffix in {".parquet", ".pq"}


def _csv(path: Path, columns: Columns) -> Any:
    """A CSV file as an Arrow table; what `uqprism score` refuses is refused in the same words."""
    names, layout, problem = column_names(path), None, None
    try:
        layout = resolve(columns, names, path)
    except InvalidValueError as error:
        problem = error
    types = {} if layout is None else {name: pa.float64() for name in (*layout.mean, *layout.spread)}
    try:
        return arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        if problem is not None and not any(map(is_measure, names)):  # a letter, say: that it has no members tells more
            raise problem from None
        raise explained(error, path, names, layout) from None


def _npz(path: Path) -> Any:
    """An NPZ file as an Arrow table."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != "header"}
    except (ValueError, AttributeError, TypeError):  # an .npy file, or arrays of objects
        raise FileError(f"{path}: is no .npz file of plain arrays") from None
    weights = arrays.pop("member_weights", None)
    if "given_variance" in arrays:  # what EnsemblePrediction.save calls variances
        arrays["variance"] = arrays.pop("given_variance")
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if name in {"mean", "variance", "scale"} and array.ndim > 1:  # members first
            columns |= {f"{name}_{i}": row.reshape(-1) for i, row in enumerate(array)}
        else:
            columns[name] = array.reshape(-1)
    about = {FORMAT: json.dumps({"weights": None if weights is None else weights.tolist()})}
    return pa.table(columns, metadata=about)

"""The points of a file or a folder as arrays: measures, members, targets and errors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns, NoMembersError
from uqprism.ensemble.layout import LARGEST, Layout
from uqprism.ensemble.origin import Origin, common
from uqprism.ensemble.prediction import EnsemblePrediction
from uqprism.errors import ArgumentError, BadFileError, InvalidValueError, UnknownNameError
from uqprism.evaluation import evaluate
from uqprism.families.quadrature import Exactness
from uqprism.files.numbers import as_cells, as_numbers, cell, is_text, mostly_text
from uqprism.files.options import matching
from uqprism.files.paths import Span, find_files
from uqprism.files.read import InputFile, open_input, pa
from uqprism.files.rows import complaint
from uqprism.measures import Measure, is_measure, select_measures
from uqprism.measures.defined import only_defined
from uqprism.registry import unknown
from uqprism.tasks.prediction_error import prediction_error

REMEDY = "repair it, or leave such rows out with on_bad (--on-bad drop)"


@dataclass(frozen=True)
class Points:
    """One file of predictions, or several with the same columns; columns are read when they are used.

    Attributes:
        paths: the files.
        columns: which of their columns hold members.
        on_bad: "error" refuses rows with bad members, "drop" gives NaN for them.
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
        """The points of a Parquet, CSV or NPZ file, of a folder of them, or of all files that match a pattern."""
        if on_bad not in {"error", "drop"}:
            raise ArgumentError(str(unknown("on_bad (--on-bad)", on_bad, ("error", "drop"))))
        return cls(tuple(span.path for span in find_files(inputs)), columns or Columns(), on_bad)

    @property
    def title(self) -> str:
        """The files in an error message."""
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    @contextmanager
    def _opened(self, path: Path) -> Iterator[InputFile]:
        with closing(open_input(Span(path, path.name), self.columns)) as file:
            yield file

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the first file."""
        with self._opened(self.paths[0]) as file:
            return file.table_schema

    @cached_property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the first file states some."""
        with self._opened(self.paths[0]) as file:
            return file.weights

    @cached_property
    def origin(self) -> Origin:
        """Where the members came from, if all files say the same."""
        found = []
        for path in self.paths:
            with self._opened(path) as file:
                found.append(Origin.from_dict((file.header or {}).get("origin")))
        return common(found)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return self.schema.names

    @property
    def numeric_names(self) -> list[str]:
        """The columns that hold numbers."""
        tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
        return [each.name for each in self.schema if any(test(each.type) for test in tests)]

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """These columns as numbers, nulls as NaN."""
        wanted = list(dict.fromkeys(names))
        tables = self._tables(wanted)
        if tables and not any(table.num_rows for table in tables):
            raise InvalidValueError(f"{self.title}: has no rows, only the names of its columns")
        return {name: self._numbers(name, [table.column(name) for table in tables]) for name in wanted}

    def _tables(self, names: Sequence[str]) -> list[Any]:
        """An Arrow table of these columns for each file."""
        wanted, known = list(names), set(self.names)
        for name in wanted:
            if name not in known:
                raise InvalidValueError(f"{self.title}: {unknown('column', name, self._not_members())}")
        tables = []
        for path in self.paths:
            with self._opened(path) as file:
                tables.append(file.table(wanted))
        return tables

    def _not_members(self) -> list[str]:
        """The columns to suggest when one is unknown: those without members, if there are such columns."""
        try:
            members = {*self.layout.names}
        except InvalidValueError:
            members = set()
        return [name for name in self.names if name not in members] or self.names

    def _numbers(self, name: str, chunks: Sequence[Any]) -> np.ndarray:
        for path, chunk in zip(self.paths, chunks, strict=True):
            if is_text(chunk.type) and (example := mostly_text(chunk)) is not None:
                raise BadFileError(
                    path, f"column {name!r} must hold numbers, its type is {chunk.type}, most of its cells are such as {example}"
                )
        try:
            return np.concatenate([as_numbers(chunk).astype(np.float64, copy=False) for chunk in chunks])
        except (pa.ArrowException, ValueError, TypeError):
            raise InvalidValueError(f"{self.title}: column {name!r} must hold numbers, its type is {chunks[0].type}") from None

    def measures(self, wanted: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Measures by name: columns of a scored file, otherwise computed from the members; NaN in bad rows.

        Args:
            wanted: names of measures, patterns such as "crps.*", "usual" or "all", also separated by commas; or other columns.
        """
        return self.measured(wanted)[0]

    def measured(self, wanted: Sequence[str] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Exactness]]:
        """The same measures, and the exactness of those computed here."""
        patterns = [part.strip() for text in wanted or ["all"] for part in text.split(",") if part.strip()]
        columns = [name for name in patterns if name in self.names]  # a column comes before a measure of its name
        scored = self.scored
        others = [pattern for pattern in patterns if pattern not in columns]
        chosen = matching(others, scored, self.title) if scored else [measure.name for measure in self._computable(others)]
        found, exactness = self.read([*columns, *(chosen if scored else [])]), {}
        if chosen and not scored:
            table = evaluate(self.ensemble(), chosen)
            found |= {name: self._in_all_rows(np.asarray(table[name])) for name in chosen}
            exactness = table.exactness
        return {name: found[name] for name in dict.fromkeys([*columns, *chosen])}, exactness

    def _computable(self, patterns: Sequence[str]) -> list[Measure]:
        """The measures that are asked for, of any rule: they are computed from the members."""
        try:
            measures = select_measures(patterns) if patterns else []
        except UnknownNameError as error:
            raise InvalidValueError(f"{self.title}: {error}") from None
        # Of a set, those that the members have; a measure that is asked for by its name is computed, or an error.
        return only_defined(measures, self.ensemble().members) if set(patterns) & {"all", "usual"} else measures

    @property
    def scored(self) -> list[str]:
        """The columns that hold measures."""
        return [name for name in self.names if is_measure(name)]

    def take(self, names: Sequence[str], rows: np.ndarray) -> dict[str, list[Any]]:
        """The values of these columns in some rows, of any type."""
        wanted = pa.array(rows)
        return {name: column.take(wanted).to_pylist() for name, column in self._columns(names).items()}

    def column(self, name: str) -> Any:
        """The column as Arrow has it, of any type."""
        return self._columns([name])[name]

    def _columns(self, names: Sequence[str]) -> dict[str, Any]:
        tables = self._tables(names)
        return {name: pa.chunked_array([part for table in tables for part in table.column(name).chunks]) for name in names}

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        try:
            with self._opened(self.paths[0]) as file:
                return file.layout
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
    def members(self) -> dict[str, np.ndarray]:
        """The parameters of the members, (members, rows), of draws, bars and quantiles with one more axis before these."""
        tables = self._tables(self.layout.names)
        if tables and not any(table.num_rows for table in tables):
            raise InvalidValueError(f"{self.title}: has no rows, only the names of its columns")

        def read(name: str) -> np.ndarray:
            if not self.layout.lists:
                return self._numbers(name, [table.column(name) for table in tables])
            return np.concatenate([as_cells(table.column(name), name) for table in tables])

        return self.layout.arrays(read, None if self.layout.lists else np.float64)

    @cached_property
    def good(self) -> np.ndarray:
        """Which rows have valid members. Others raise an error, unless `on_bad` is "drop"."""
        good = self.layout.good(self.members)
        if good is None:
            return np.ones(next(iter(self.members.values())).shape[-1], dtype=bool)
        if self.on_bad == "error":
            problem = complaint(self.layout, self.members, good=good, shown=self._shown, place=self._place)
            raise InvalidValueError(f"{self.title}: {problem}; {REMEDY}")
        return good

    def _shown(self, name: str, row: int) -> str:
        """A cell as it was read."""
        for table in self._tables([name]):
            if row < table.num_rows:
                break
            row -= table.num_rows
        return cell(table.column(name), row)

    def _place(self, row: int) -> str:
        """Where a row is, for a message."""
        if len(self.paths) > 1:  # rows are counted over all files
            return f"row {row}"
        with self._opened(self.paths[0]) as file:
            return file.place(row)

    def ensemble(self) -> EnsemblePrediction:
        """The ensemble of the good rows."""
        arrays = {name: x[..., self.good] for name, x in self.members.items()}
        return EnsemblePrediction(self.layout.members(arrays, check=False), self.weights).made_by(self.origin)

    def _in_all_rows(self, values: np.ndarray) -> np.ndarray:
        found = np.full(len(self.good), np.nan)  # so that measures stay beside the other columns of their rows
        found[self.good] = values
        return found

    def error(self, *, column: str | None, target: str | None, prediction: str | None, kind: str = "squared") -> np.ndarray:
        """The error of each point: a column, or computed from a target and either a prediction or the members."""
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
            # The ensemble has good rows only.
            found[known] = prediction_error(self.ensemble()[known[self.good]], y[known], kind)  # type: ignore[arg-type]
            return found
        if kind not in {"squared", "absolute"}:
            raise ArgumentError(f"--error {kind} needs the members, not --prediction; leave it out, or take squared or absolute")
        apart = np.abs(self._known(prediction) - y)
        return apart**2 if kind == "squared" else apart

    def _known(self, name: str) -> np.ndarray:
        """A column of finite numbers. Others raise an error; if `on_bad` is "drop", they become NaN."""
        values = self.read([name])[name]
        bad = ~(abs(values) <= LARGEST["location"])
        if self.on_bad == "error" and bad.any():
            row = int(np.argmax(bad))
            shown, large = self._shown(name, row), np.isfinite(values[row])
            wanted = "a number" if shown.startswith("'") else f"at most {LARGEST['location']:.0e} in size" if large else "finite"
            more = f" ({bad.sum()} bad rows in all)" if bad.sum() > 1 else ""
            raise InvalidValueError(f"{self.title}: {self._place(row)}: {name} must be {wanted}, got {shown}{more}; {REMEDY}")
        return np.where(bad, np.nan, values)

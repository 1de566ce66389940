"""Reading a file of predictions: Parquet, CSV or NPZ as Arrow tables, whole or in batches of bounded size."""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from uqprism.ensemble.columns import Columns, Layout, NoMembersError, resolve
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, FileError, InvalidValueError, UqprismError
from uqprism.files.npz import NpzArrays, check_gaussian
from uqprism.files.paths import Span
from uqprism.measures import is_measure
from uqprism.registry import unknown
from uqprism.support.optional import require

pa = require("pyarrow", extra="cli")
pq = require("pyarrow.parquet", extra="cli")
arrow_csv = require("pyarrow.csv", extra="cli")

Batch = Any  # a pyarrow.RecordBatch
Schema = Any  # a pyarrow.Schema
CSV_BLOCK = 1 << 22  # Arrow reads several ahead
READ_BYTES = 1 << 25  # of read buffers, one per column
READ_BUFFER = 1 << 18  # without one, a column chunk is read whole, and a file may be a single row group
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@contextmanager
def naming(path: Path, verb: str) -> Iterator[None]:
    """Turn the errors of Arrow, zip files and the system into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, BadZipFile, EOFError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, UqprismError | pa.ArrowCancelled):  # they name the file already, or are no fault of it
            raise
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise FileError(f"{path}: cannot be {verb}: {reason}") from None


class InputFile(ABC):
    """An open file of predictions: its columns, which of them hold the members, the members' weights, and its rows."""

    def __init__(self, span: Span, columns: Columns) -> None:
        self.path, self.columns = span.path, columns

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The Arrow schema of the batches."""

    @property
    def table_schema(self) -> Schema:
        """The Arrow schema of `table`."""
        return self.schema

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return self.schema.names

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        return resolve(self.columns, self.names, self.path)

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the file states some."""
        return None

    @property
    def expected_rows(self) -> int | None:
        """The number of rows that the file says it has; None if it does not say."""
        return None

    @abstractmethod
    def _batches(self, rows: int) -> Iterator[tuple[Batch, float]]: ...

    @abstractmethod
    def _table(self, names: Sequence[str] | None) -> Any: ...

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def batches(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """Record batches of about this many rows, each with the fraction of the file read so far."""
        with naming(self.path, "read"):
            yield from self._batches(rows)

    def table(self, names: Sequence[str] | None = None) -> Any:
        """An Arrow table of all rows, with all columns or with these."""
        if names is not None and (missing := [name for name in names if name not in self.names]):
            raise InvalidValueError(f"{self.path}: {unknown('column', missing[0], self.names)}")
        with naming(self.path, "read"):
            return self._table(names)


class ParquetInput(InputFile):
    """A Parquet file, or some of its row groups."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span, columns)
        # Arrow has a buffer for each column, so with more columns each is smaller.
        columns_in_file = max(1, len(pq.read_schema(span.path).names))
        buffer = max(1 << 12, min(READ_BUFFER, READ_BYTES // columns_in_file))
        self.file = pq.ParquetFile(span.path, pre_buffer=False, buffer_size=buffer)
        self.groups = list(range(self.file.num_row_groups)) if span.row_groups is None else list(span.row_groups)

    @property
    def schema(self) -> Schema:
        """The schema of the file."""
        return self.file.schema_arrow

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members; a file of `EnsemblePrediction.to_arrow` must hold Gaussian ones."""
        check_gaussian(self._header, self.path)
        return super().layout

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the ensemble was saved with some."""
        weights = self._header.get("weights")
        return None if weights is None else tuple(weights)

    @property
    def expected_rows(self) -> int:
        """The rows of the row groups, as the footer counts them."""
        counts = row_group_sizes(self.file)
        return sum(counts[i] for i in self.groups)

    @property
    def _header(self) -> dict[str, Any]:
        return json.loads((self.schema.metadata or {}).get(FORMAT.encode(), b"{}"))

    def _batches(self, rows: int) -> Iterator[tuple[Batch, float]]:
        total, done = self.expected_rows, 0
        found = self.file.iter_batches(batch_size=rows, row_groups=self.groups) if self.groups else iter(())
        for batch in _joined(found, rows):
            done += batch.num_rows
            yield batch, done / max(total, 1)

    def _table(self, names: Sequence[str] | None) -> Any:
        table = pq.read_table(self.path, columns=None if names is None else list(names), partitioning=None)
        return table if names is None else table.select(names)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def row_group_sizes(file: Any) -> list[int]:
    """The number of rows of each row group of a `pyarrow.parquet.ParquetFile`."""
    return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]


def _joined(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
    """The same rows with short batches joined: each small row group would cost a call and a row group."""
    waiting: list[Batch] = []
    for batch in batches:
        if waiting and sum(b.num_rows for b in waiting) + batch.num_rows > rows:
            yield from _one(waiting)
            waiting = []
        waiting.append(batch)
    yield from _one(waiting)


def _one(batches: list[Batch]) -> list[Batch]:
    if len(batches) < 2:
        return batches
    try:
        table = pa.Table.from_batches(batches)
        return list(table.unify_dictionaries().combine_chunks().to_batches())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested dictionaries cannot be unified
        return batches


class CsvInput(InputFile):
    """A CSV file with a header. Members are numbers; other columns are text, or have the types that their values suggest."""

    def __init__(self, span: Span, columns: Columns, as_text: bool) -> None:
        super().__init__(span, columns)
        self.header, self.as_text = _csv_header(span.path), as_text

    @property
    def names(self) -> list[str]:
        """The names of all columns, from the first line."""
        return self.header

    @property
    def schema(self) -> Schema:
        """The columns, with the types that the first block suggests."""
        try:
            return self._reader.schema
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None

    @property
    def table_schema(self) -> Schema:
        """The columns, with the types that all values suggest."""
        return self.table().schema

    @cached_property
    def _reader(self) -> Any:
        """The streaming reader."""
        self._stream = pa.OSFile(str(self.path))  # opened here, because Arrow's reader does not tell how far it is
        return arrow_csv.open_csv(self._stream, read_options=arrow_csv.ReadOptions(block_size=CSV_BLOCK), **self._options())

    def _options(self) -> dict[str, Any]:
        # Guessed types would fail on members that are whole numbers in the first block and not later.
        types = dict.fromkeys(self._members(), pa.float64())
        if self.as_text:  # a number read and written again may look different, an identifier lose its zeros
            types = {name: types.get(name, pa.string()) for name in self.header}
        return {
            "parse_options": arrow_csv.ParseOptions(newlines_in_values=True),  # else a quoted line break could end a block
            "convert_options": arrow_csv.ConvertOptions(column_types=types),
        }

    def _members(self) -> tuple[str, ...]:
        """The columns of the members; none in a file without members."""
        try:
            return (*self.layout.mean, *self.layout.spread)
        except InvalidValueError:
            return ()

    def _batches(self, rows: int) -> Iterator[tuple[Batch, float]]:
        size = max(self.path.stat().st_size, 1)
        try:
            for batch in _joined(self._reader, rows):
                for start in range(0, batch.num_rows, rows):  # a block of short lines has many rows
                    # Arrow reads ahead, so the fraction runs a little ahead of the rows.
                    yield batch.slice(start, rows), min(self._stream.tell() / size, 1.0)
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None

    def _table(self, names: Sequence[str] | None) -> Any:
        try:
            table = arrow_csv.read_csv(self.path, **self._options())
        except pa.ArrowInvalid as error:
            raise self._explained(error) from None
        return table if names is None else table.select(names)

    def _explained(self, error: Exception) -> InvalidValueError | FileError:
        """Arrow's message with the name of the column, and with the way to correct a value that is not of its type."""
        members = self._members()
        if not members and not any(map(is_measure, self.header)):  # then this tells more: the file may be a letter
            try:
                self.layout  # noqa: B018 (raises)
            except InvalidValueError as problem:
                return problem
        text = str(error).splitlines()[0]
        # Arrow names a column by its number only.
        number = re.search(r"In CSV column #(\d+): (?:Row #\d+: )?(.*)", text)
        if number is None:
            return FileError(f"{self.path}: cannot be read: {text}")
        name = self.header[int(number[1])]
        remedy = "its type was guessed from the first 4 MB, write to .csv to pass it through as text"
        if name in members:
            remedy = "members must be numbers"
        return FileError(f"{self.path}: column {name!r}: {number[2]}; {remedy}")

    def close(self) -> None:
        """Drop the file, which is closed when Arrow has stopped reading ahead.

        If it were closed during a read, its descriptor would go to the next file opened, and the read would take a block of that.
        """
        vars(self).pop("_reader", None)
        vars(self).pop("_stream", None)


def _csv_header(path: Path) -> list[str]:
    """The names in the first line; refuses a file without one, or with another separator."""
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets begin with a byte order mark
        names = next(csv.reader(file), [])
    if not names:
        raise FileError(f"{path}: is empty; a CSV file begins with the names of its columns")
    for mark, word in SEPARATORS.items():
        if len(names) == 1 and mark in names[0]:
            raise FileError(
                f"{path}: the columns are separated by {word}; the separator must be a comma and the decimal mark a point, "
                f"so save it again that way (pandas: read_csv(path, sep={mark!r}, decimal=...).to_csv)"
            )
    return names


class NpzInput(InputFile):
    """An .npz file, which is in memory as a whole."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span, columns)
        self.arrays = NpzArrays(span.path)
        self.data = pa.table(self.arrays.columns)

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        if self.arrays.matrices and self.columns != Columns():
            raise ArgumentError(
                f"{self.path}: an .npz file names its arrays mean and variance or scale; leave out the column options"
            )
        self.arrays.check_members()
        try:
            return super().layout
        except NoMembersError:
            raise self.arrays.no_members() from None

    @property
    def schema(self) -> Schema:
        """The arrays as columns."""
        return self.data.schema

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the ensemble was saved with some."""
        return self.arrays.weights

    def _batches(self, rows: int) -> Iterator[tuple[Batch, float]]:
        done = 0
        for batch in self.data.to_batches(max_chunksize=rows):
            done += batch.num_rows
            yield batch, done / max(self.data.num_rows, 1)

    def _table(self, names: Sequence[str] | None) -> Any:
        return self.data if names is None else self.data.select(names)

    def close(self) -> None:
        """Do nothing: the file was closed after reading."""


def open_input(span: Span, columns: Columns, *, as_text: bool = False) -> InputFile:
    """Open a file; `as_text` passes the columns of a CSV file through as they are written."""
    with naming(span.path, "read"):
        if span.path.suffix == ".csv":
            return CsvInput(span, columns, as_text)
        return NpzInput(span, columns) if span.path.suffix == ".npz" else ParquetInput(span, columns)

"""Parquet, CSV and NPZ files as a stream of Arrow record batches of bounded size."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from uqprism.ensemble.columns import Columns, Layout, resolve
from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import ArgumentError, FileError, InvalidValueError
from uqprism.files.csv_files import column_names, explained
from uqprism.files.npz import NpzArrays
from uqprism.files.paths import Span
from uqprism.support.optional import require

pa = require("pyarrow", extra="cli")
pq = require("pyarrow.parquet", extra="cli")
arrow_csv = require("pyarrow.csv", extra="cli")

Batch = Any  # a pyarrow.RecordBatch
Schema = Any  # a pyarrow.Schema
CSV_BLOCK = 1 << 22  # Arrow reads several ahead
READ_BYTES = 1 << 25  # of read buffers, one per column
READ_BUFFER = 1 << 18  # without one, a column chunk is read whole, and a file may be a single row group


@contextmanager
def naming(path: Path, verb: str) -> Iterator[None]:
    """Turn what Arrow, zip files and the system raise into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, BadZipFile, EOFError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, FileError | pa.ArrowCancelled):
            raise
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise FileError(f"{path}: cannot be {verb}: {reason}") from None


class Source(ABC):
    """One input file, opened: its Arrow schema, its member columns and weights, and its rows in batches."""

    layout: Layout
    weights: tuple[float, ...] | None = None

    def __init__(self, span: Span) -> None:
        self.path = span.path

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns, as they pass through."""

    @abstractmethod
    def read(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """Batches of about so many rows, each with the fraction of the file read so far."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def batches(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """The same as `read`, with errors that name the file."""
        with naming(self.path, "read"):
            yield from self.read(rows)


class ParquetSource(Source):
    """A Parquet file, or some of its row groups."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span)
        columns_in_file = max(1, len(pq.read_schema(span.path).names))
        buffer = max(1 << 12, min(READ_BUFFER, READ_BYTES // columns_in_file))
        self.file = pq.ParquetFile(span.path, pre_buffer=False, buffer_size=buffer)
        self.layout = resolve(columns, self.file.schema_arrow.names, span.path)
        self.groups = list(range(self.file.num_row_groups)) if span.row_groups is None else list(span.row_groups)
        self.weights = stored_weights(self.schema)

    @property
    def schema(self) -> Schema:
        """The columns in the file."""
        return self.file.schema_arrow

    @property
    def row_counts(self) -> list[int]:
        """The rows of each row group of the file."""
        return [self.file.metadata.row_group(i).num_rows for i in range(self.file.num_row_groups)]

    def read(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """Batches of about so many rows, each with the fraction of the file read so far."""
        counts = self.row_counts
        total, done = sum(counts[i] for i in self.groups), 0
        found = self.file.iter_batches(batch_size=rows, row_groups=self.groups) if self.groups else iter(())
        for batch in joined(found, rows):
            done += batch.num_rows
            yield batch, done / max(total, 1)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


def stored_weights(schema: Schema) -> tuple[float, ...] | None:
    """The weights of the members, if the ensemble was saved with some."""
    about = (schema.metadata or {}).get(FORMAT.encode())
    weights = None if about is None else json.loads(about)["weights"]
    return None if weights is None else tuple(weights)


def joined(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
    """The same rows with short batches put together: small row groups would cost a call and a row group each."""
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


class CsvSource(Source):
    """A CSV file with a header; members are numbers, other columns text or whatever the first block suggests."""

    def __init__(self, span: Span, columns: Columns, as_text: bool) -> None:
        super().__init__(span)
        self.names = column_names(span.path)
        self.layout, self.as_text = resolve(columns, self.names, span.path), as_text

    @cached_property
    def reader(self) -> Any:
        """The streaming reader."""
        self.stream = pa.OSFile(str(self.path))
        types = {name: pa.float64() for name in (*self.layout.mean, *self.layout.spread)}
        if self.as_text:  # a number read and written again may look different, an identifier lose its zeros
            types = {name: types.get(name, pa.string()) for name in self.names}
        return arrow_csv.open_csv(
            self.stream,
            read_options=arrow_csv.ReadOptions(block_size=CSV_BLOCK),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(column_types=types),
        )

    @property
    def schema(self) -> Schema:
        """The columns, with the types that the first block suggests."""
        try:
            return self.reader.schema
        except pa.ArrowInvalid as error:
            raise explained(error, self.path, self.names, self.layout) from None

    def read(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """Batches of about so many rows, each with the fraction of the file read so far."""
        size = max(self.path.stat().st_size, 1)
        try:
            for batch in joined(self.reader, rows):
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows), min(self.stream.tell() / size, 1.0)
        except pa.ArrowInvalid as error:
            raise explained(error, self.path, self.names, self.layout) from None

    def close(self) -> None:
        """Let go of the file, which is closed when Arrow has stopped reading ahead.

        Closed under a read, it would give its number to the next file that is opened, and the read would take a block from that.
        """
        vars(self).pop("reader", None)
        vars(self).pop("stream", None)


class NpzSource(Source):
    """An .npz file; its members become columns `mean_0`, `variance_0` and so on."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span)
        if columns != Columns():
            raise ArgumentError(
                f"{span.path}: an .npz file names its arrays mean and variance or scale; leave out the column options"
            )
        self.npz = NpzArrays(span.path)
        self.weights = self.npz.weights
        count, kind = self.npz.mean.shape[0], self.npz.kind
        self.fields = [f"{name}_{i}" for name in ("mean", kind) for i in range(count)]
        self.layout = resolve(columns, [*self.npz.others, *self.fields], span.path)

    @cached_property
    def schema(self) -> Schema:
        """The arrays as columns."""
        return self._batch(0, 0).schema

    def read(self, rows: int) -> Iterator[tuple[Batch, float]]:
        """Batches of about so many rows, each with the fraction of the file read so far."""
        for start in range(0, self.npz.points, rows):
            stop = min(start + rows, self.npz.points)
            yield self._batch(start, stop), stop / self.npz.points

    def _batch(self, start: int, stop: int) -> Batch:
        arrays = [array.entries(start, stop) for array in self.npz.others.values()]
        arrays += [*self.npz.mean.members(start, stop), *self.npz.spread.members(start, stop)]
        return pa.RecordBatch.from_arrays([pa.array(x) for x in arrays], [*self.npz.others, *self.fields])

    def close(self) -> None:
        """Let go of the file."""
        self.npz.opened.close()


def open_source(span: Span, columns: Columns, *, as_text: bool = False) -> Source:
    """The file, ready to read; `as_text` passes the columns of a CSV file through as they are written."""
    with naming(span.path, "read"):
        if span.path.suffix == ".csv":
            return CsvSource(span, columns, as_text)
        return NpzSource(span, columns) if span.path.suffix == ".npz" else ParquetSource(span, columns)


def check_types(schema: Schema, layout: Layout, path: Path) -> None:
    """Refuse member columns that hold no numbers."""
    for name in (*layout.mean, *layout.spread):
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
        if not any(test(kind) for test in tests):
            raise InvalidValueError(f"{path}: column {name!r} must hold numbers, its type is {kind}; convert it or name another")

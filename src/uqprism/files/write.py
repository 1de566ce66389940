"""Files that appear whole or not at all: Parquet, CSV and NPZ, written batch by batch."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism.ensemble.columns import Layout
from uqprism.errors import InvalidValueError
from uqprism.files.npz import NpzWriter
from uqprism.files.options import Options
from uqprism.files.read import Batch, Schema, arrow_csv, pa, pq
from uqprism.support.optional import require

if TYPE_CHECKING:
    import numpy as np

compute = require("pyarrow.compute", extra="cli")

RECORD = "uqprism.score"


class Sink(ABC):
    """Where scored batches go; `finish` completes the file, `close` lets go of it in any case."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Append these rows."""

    @abstractmethod
    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file, with a record of how it was made where the format has a place for one."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""


class ParquetSink(Sink):
    """A row group per batch; measures are not dictionary-encoded, for they hardly ever repeat."""

    def __init__(self, path: Path, schema: Schema, options: Options) -> None:
        repeating = [leaf for leaf in _leaves(schema) if leaf not in set(options.names)]
        self.writer = pq.ParquetWriter(path, schema, compression=options.compression, use_dictionary=repeating or False)

    def write(self, batch: Batch) -> None:
        """Append these rows as one row group."""
        if batch.num_rows:
            self.writer.write_batch(batch, row_group_size=batch.num_rows)

    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file, with the record in its footer."""
        self.writer.add_key_value_metadata({RECORD: json.dumps(record)})
        self.writer.close()

    def close(self) -> None:
        """Let go of everything."""
        self.writer.close()


def _leaves(schema: Schema) -> list[str]:
    """The names by which Parquet knows the columns: those of nested ones are paths."""
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema).close()
    columns = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    return [columns.column(i).path for i in range(len(columns))]


class CsvSink(Sink):
    """Text with a header; quotes only where a batch needs them."""

    def __init__(self, path: Path, schema: Schema) -> None:
        for field in schema:
            if pa.types.is_nested(field.type):
                raise InvalidValueError(f"column {field.name!r} is nested, which CSV cannot hold; write .parquet")
        with path.open("w", newline="", encoding="utf-8") as header:
            csv.writer(header, lineterminator="\n").writerow(schema.names)
        self.file = path.open("ab")

    def write(self, batch: Batch) -> None:
        """Append these rows as lines."""
        style = "needed" if any(map(_needs_quotes, batch.columns)) else "none"
        arrow_csv.write_csv(batch, self.file, arrow_csv.WriteOptions(include_header=False, quoting_style=style))

    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file; CSV has no place for a record."""
        self.file.close()

    def close(self) -> None:
        """Let go of everything."""
        self.file.close()


def _needs_quotes(column: Any) -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
    return bool(compute.any(compute.match_substring_regex(column.cast(kind), '[",\r\n]')).as_py())


class NpzSink(Sink):
    """An array per column, and with the members kept `mean` and `variance` or `scale`, (members, points)."""

    def __init__(self, path: Path, schema: Schema, layout: Layout, keep_members: bool) -> None:
        self.writer, self.schema, self.rows = NpzWriter(path), schema, 0
        self.matrices = {"mean": layout.mean, layout.kind: layout.spread} if keep_members else {}
        for name in self.matrices:
            if name in schema.names:
                raise InvalidValueError(f"column {name!r} has the name of an array of members; rename it")

    def write(self, batch: Batch) -> None:
        """Append to every array."""
        self.rows += batch.num_rows
        for field, column in zip(batch.schema, batch.columns, strict=True):
            self.writer.append(field.name, _plain(field.name, column))

    def finish(self, record: dict[str, Any]) -> None:
        """Put the arrays into one file; the record is left out."""
        self.writer.finish(self.rows, self.matrices)

    def close(self) -> None:
        """Let go of everything."""
        self.writer.close()


def _plain(name: str, column: Any) -> np.ndarray[Any, Any]:
    """A column as a NumPy array; only floating numbers have a place for what is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.hasobject and not text and not column.null_count:
        raise InvalidValueError(f"column {name!r} is of type {column.type}, which .npz cannot hold; write .parquet")
    if column.null_count and not pa.types.is_floating(column.type):
        raise InvalidValueError(f"column {name!r} has nulls, which .npz cannot hold; write .parquet")
    return values


def open_sink(path: Path, suffix: str, schema: Schema, layout: Layout, options: Options) -> Sink:
    """A file of the format that this suffix names."""
    if suffix == ".csv":
        return CsvSink(path, schema)
    if suffix == ".npz":
        return NpzSink(path, schema, layout, options.keep_members)
    return ParquetSink(path, schema, options)

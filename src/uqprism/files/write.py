"""Writing scored rows: Parquet and CSV batch by batch, NPZ at the end."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.layout import MIXTURE, Layout
from uqprism.errors import InvalidValueError
from uqprism.files.described import describe, described_arrays, in_metadata
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import ending
from uqprism.files.read import Batch, Schema, arrow_csv, pa, pq
from uqprism.support.optional import require
from uqprism.support.storage import save_arrays

compute = require("pyarrow.compute", extra="cli")

RECORD = "uqprism.score"


class OutputFile(ABC):
    """A file that scored batches are appended to. `finish` completes it; `close` releases it in any case."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Append these rows."""

    @abstractmethod
    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file, with a record of how it was made if the format can hold one."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class ParquetOutput(OutputFile):
    """Parquet with a row group per batch. Measures are not dictionary-encoded, because they hardly ever repeat."""

    def __init__(self, path: Path, schema: Schema, options: ScoreOptions) -> None:
        repeating = [leaf for leaf in _leaves(schema) if leaf not in set(options.names)]
        self.writer = pq.ParquetWriter(path, schema, compression=options.compression, use_dictionary=repeating)

    def write(self, batch: Batch) -> None:
        """Append these rows as one row group."""
        if batch.num_rows:
            self.writer.write_batch(batch, row_group_size=batch.num_rows)

    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file, with the record in its footer."""
        self.writer.add_key_value_metadata({RECORD: json.dumps(record)})  # at the end, because only then the rows are counted
        self.writer.close()

    def close(self) -> None:
        """Close the file."""
        self.writer.close()


def _leaves(schema: Schema) -> list[str]:
    """The names that Parquet gives the columns: those of nested ones are paths."""
    # Only the writer knows these names, so it writes an empty file.
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema).close()
    columns = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    return [columns.column(i).path for i in range(len(columns))]


class CsvOutput(OutputFile):
    """CSV with a header, and with quotes only in batches that need them."""

    def __init__(self, path: Path, schema: Schema) -> None:
        for field in schema:
            if pa.types.is_nested(field.type):
                raise InvalidValueError(f"column {field.name!r} is nested, which CSV cannot hold; write .parquet")
        with path.open("w", newline="", encoding="utf-8") as header:
            csv.writer(header, lineterminator="\n").writerow(schema.names)  # Arrow quotes every name
        self.file = path.open("ab")

    def write(self, batch: Batch) -> None:
        """Append these rows as lines."""
        # Arrow quotes every text in this style; files should look as they were.
        style = "needed" if any(map(_needs_quotes, batch.columns)) else "none"
        arrow_csv.write_csv(batch, self.file, arrow_csv.WriteOptions(include_header=False, quoting_style=style))

    def finish(self, record: dict[str, Any]) -> None:
        """Complete the file; CSV cannot hold a record."""
        self.file.close()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def describe_output(path: Path, schema: Schema) -> None:
    """Say beside a finished CSV file what the schema says of the members; other formats say it themselves."""
    if ending(path) == ".csv":
        describe(path, schema)


def _needs_quotes(column: Any) -> bool:
    kind = _plain(column.type)
    if not _is_text(kind):
        return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
    return bool(compute.any(compute.match_substring_regex(column.cast(kind), '[",\r\n]')).as_py())


class NpzOutput(OutputFile):
    """An array per column; the members become `mean` and `variance` or `scale`, (members, points). Rows wait in memory."""

    def __init__(self, path: Path, schema: Schema, layout: Layout, keep_members: bool) -> None:
        self.path = path
        self.columns: dict[str, list[np.ndarray[Any, Any]]] = {}
        # An array of members has no axis for levels and components; their columns stay as they are.
        single = not layout.lists and layout.family != MIXTURE and len(layout.names) == layout.n_members * len(layout.columns)
        self.matrices = layout.by_parameter if keep_members and single else {}
        self.header = in_metadata(schema.metadata, path) if self.matrices else {}
        for name in self.matrices:
            if name in schema.names:
                raise InvalidValueError(f"column {name!r} has the name of an array of members; rename it")

    def write(self, batch: Batch) -> None:
        """Append to every array."""
        for field, column in zip(batch.schema, batch.columns, strict=True):
            self.columns.setdefault(field.name, []).append(_numpy(field.name, column))

    def finish(self, record: dict[str, Any]) -> None:
        """Write the file, without the record."""
        arrays = {name: np.concatenate(self.columns.pop(name)) for name in list(self.columns)}
        arrays = {name: x.astype(np.str_) if x.dtype.hasobject else x for name, x in arrays.items()}  # objects would be pickled
        matrices = {name: np.stack([arrays.pop(column) for column in columns]) for name, columns in self.matrices.items()}
        if self.header:
            matrices |= described_arrays({**self.header, "parameters": list(matrices)})
        with self.path.open("xb") as file:
            save_arrays(file, {**matrices, **arrays})

    def close(self) -> None:
        """Drop the rows."""
        self.columns.clear()


def _numpy(name: str, column: Any) -> np.ndarray[Any, Any]:
    """A column as a NumPy array; only floating numbers can be missing."""
    kind = pa.float64() if pa.types.is_null(column.type) else _plain(column.type)
    column = column if column.type == kind else column.cast(kind)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.hasobject and not _is_text(kind) and not column.null_count:
        raise InvalidValueError(f"column {name!r} is of type {kind}, which .npz cannot hold; write .parquet")
    if column.null_count and not pa.types.is_floating(kind):  # only floats have a NaN in place of a null
        raise InvalidValueError(f"column {name!r} has nulls, which .npz cannot hold; write .parquet")
    return values


def _plain(kind: Any) -> Any:
    """The type of the values of a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def open_output(path: Path, suffix: str, schema: Schema, layout: Layout, options: ScoreOptions) -> OutputFile:
    """Open a file of the format that this suffix names."""
    if suffix == ".csv":
        return CsvOutput(path, schema)
    if suffix == ".npz":
        return NpzOutput(path, schema, layout, options.keep_members)
    return ParquetOutput(path, schema, options)

"""Parquet files, read in batches; what their footer says is checked before memory is used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.errors import BadFileError
from uqprism.files.described import in_metadata
from uqprism.files.npz import stated_weights
from uqprism.files.paths import Span
from uqprism.files.source import SAMPLE, Batch, InputFile, Schema, joined, naming, pa
from uqprism.support.optional import require
from uqprism.support.reading import check_columns, check_unpacked, reason

pq = require("pyarrow.parquet", extra="cli")

READ_BYTES = 1 << 25  # of read buffers, one per column
READ_BUFFER = 1 << 18  # without one, a column chunk is read whole, and a file may be a single row group
MOST_FOOTER = 1 << 25  # bytes; Arrow needs 15 times as much
# The footer begins with its version and the list of columns, in Thrift's compact protocol; a list's length follows 0xfc.
COLUMNS = re.compile(rb"\x15[\x00-\x7f]\x19\xfc([\x80-\xff]{0,4}[\x00-\x7f])", re.DOTALL)


class ParquetInput(InputFile):
    """A Parquet file, or some of its row groups."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span, columns)
        _check_footer(span.path)
        metadata = pq.read_metadata(span.path)
        # Arrow has a buffer for each column, so with more columns each is smaller.
        buffer = max(1 << 12, min(READ_BUFFER, READ_BYTES // max(1, metadata.num_columns)))
        checked = {"metadata": metadata, "page_checksum_verification": True}
        self.file = pq.ParquetFile(span.path, pre_buffer=False, buffer_size=buffer, **checked)
        self.groups = list(range(self.file.num_row_groups)) if span.row_groups is None else list(span.row_groups)
        _check_contents(span.path, metadata)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the file."""
        return self.file.schema_arrow

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the ensemble was saved with some."""
        weights = self.header.get("weights")
        return None if weights is None else stated_weights(weights, self.path)

    @property
    def expected_rows(self) -> int:
        """The rows of the row groups, as the footer counts them."""
        counts = row_group_sizes(self.file)
        return sum(counts[i] for i in self.groups)

    @property
    def header(self) -> dict[str, Any]:
        """What a file of `EnsemblePrediction.to_arrow` says of its members; empty for others."""
        return in_metadata(self.schema.metadata, self.path)

    def _batches(self, rows: int, names: Sequence[str] | None = None) -> Iterator[tuple[Batch, float]]:
        total, done = self.expected_rows, 0
        columns = None if names is None else list(names)
        found = self.file.iter_batches(batch_size=rows, row_groups=self.groups, columns=columns) if self.groups else iter(())
        for batch in joined(found, rows):
            done += batch.num_rows
            yield self._checked(batch), done / max(total, 1)

    def _table(self, names: Sequence[str] | None) -> Any:
        wanted = None if names is None else list(names)
        table = pq.read_table(self.path, columns=wanted, partitioning=None, page_checksum_verification=True)
        return self._checked(table if names is None else table.select(names))

    def _checked(self, rows: Any) -> Any:
        """The same rows; refuses text that is not UTF-8, which Arrow reads, and which fails wherever it is shown or converted."""
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise BadFileError(self.path, f"column {name!r}: {reason(error)}") from None
        return rows

    def sample(self, name: str) -> Any:
        """The first cells of a column."""
        with naming(self.path, "read"):
            found = self.file.iter_batches(SAMPLE, row_groups=self.groups, columns=[name]) if self.groups else iter(())
            return next((batch.column(name) for batch in found), self.schema.empty_table().column(name))

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def row_group_sizes(file: Any) -> list[int]:
    """The number of rows of each row group of a `pyarrow.parquet.ParquetFile`."""
    return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]


def _check_footer(path: Path) -> None:
    """Refuse a footer that would take seconds or more memory than predictions need; Arrow parses it whole."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - 8, 0))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or length + 12 > size:  # Arrow tells what is wrong
            return
        if length > MOST_FOOTER:
            raise BadFileError(path, f"its footer has {length:,} bytes; write it with fewer columns or fewer row groups")
        file.seek(size - 8 - length)
        if found := COLUMNS.match(file.read(min(length, 16))):
            check_columns(path, sum((byte & 0x7F) << 7 * i for i, byte in enumerate(found[1])) - 1)


def _check_contents(path: Path, metadata: Any) -> None:
    """Refuse row groups that contradict the footer, or that hold far more than fits into the file."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = [group.num_rows for group in groups]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise BadFileError(path, f"its footer counts {metadata.num_rows:,} rows, its row groups {sum(rows):,}; it is damaged")
    unpacked = sum(max(group.total_byte_size, 8 * group.num_rows * metadata.num_columns) for group in groups)
    check_unpacked(path, unpacked, path.stat().st_size)

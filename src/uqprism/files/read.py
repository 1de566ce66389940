"""Reading a file of predictions: Parquet, CSV or NPZ as Arrow tables, whole or in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from uqprism.ensemble.columns import Columns, NoMembersError, check_unique
from uqprism.ensemble.layout import Layout
from uqprism.errors import ArgumentError
from uqprism.files.csv import CsvInput, arrow_csv
from uqprism.files.described import as_metadata
from uqprism.files.npz import NpzArrays
from uqprism.files.parquet import ParquetInput, pq, row_group_sizes
from uqprism.files.paths import Span, ending
from uqprism.files.source import Batch, InputFile, Schema, naming, pa

__all__ = ["Batch", "InputFile", "Schema", "arrow_csv", "naming", "open_input", "pa", "pq", "row_group_sizes"]


class NpzInput(InputFile):
    """An .npz file, which is in memory as a whole."""

    def __init__(self, span: Span, columns: Columns) -> None:
        super().__init__(span, columns)
        self.arrays = NpzArrays(span.path)
        data = pa.table({name: _cells(x) for name, x in self.arrays.columns.items()})
        self.data = data.replace_schema_metadata(as_metadata(self.arrays.header, self.arrays.weights))

    @cached_property
    def layout(self) -> Layout:
        """The columns of the members."""
        if self.arrays.matrices and self.columns != Columns(family=self.columns.family):
            raise ArgumentError(
                f"{self.path}: an .npz file names its arrays mean and variance or scale; leave out the column options"
            )
        self.arrays.check_members()
        try:
            return super().layout
        except NoMembersError:
            raise self.arrays.no_members() from None

    @property
    def header(self) -> dict[str, Any]:
        """What a file of `EnsemblePrediction.save` says of its members; empty for others."""
        return self.arrays.header

    @property
    def schema(self) -> Schema:
        """The arrays as columns."""
        return self.data.schema

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the ensemble was saved with some."""
        return self.arrays.weights

    def _batches(self, rows: int, names: Sequence[str] | None = None) -> Iterator[tuple[Batch, float]]:
        done = 0
        for batch in self._table(names).to_batches(max_chunksize=rows):
            done += batch.num_rows
            yield batch, done / max(self.data.num_rows, 1)

    def _table(self, names: Sequence[str] | None) -> Any:
        return self.data if names is None else self.data.select(names)

    def close(self) -> None:
        """Do nothing: the file was closed after reading."""


def _cells(x: Any) -> Any:
    return x if x.ndim == 1 else pa.FixedSizeListArray.from_arrays(x.ravel(), x.shape[1])


def open_input(span: Span, columns: Columns, *, as_text: bool = False) -> InputFile:
    """Open a file; `as_text` passes the columns of a CSV file through as they are written."""
    with naming(span.path, "read"):
        file: InputFile
        if ending(span.path).startswith(".csv"):
            file = CsvInput(span, columns, as_text)
        else:
            file = NpzInput(span, columns) if ending(span.path) == ".npz" else ParquetInput(span, columns)
        check_unique(file.names, span.path)
        return file

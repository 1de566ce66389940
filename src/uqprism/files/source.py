"""An open file of predictions as Arrow batches of bounded size, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns, described
from uqprism.ensemble.layout import Layout
from uqprism.errors import BadFileError, FileError, InvalidValueError, UqprismError
from uqprism.files.packed import unpacking
from uqprism.files.paths import Span
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.support.reading import reading, reason

pa = require("pyarrow", extra="cli")

Batch = Any  # a pyarrow.RecordBatch
Schema = Any  # a pyarrow.Schema
SAMPLE = 1_000  # rows


@contextmanager
def naming(path: Path, verb: str) -> Iterator[None]:
    """Turn the errors of Arrow, parsers and the system into one line that names the file."""
    if verb == "read":
        with reading(path), unpacking(path):
            yield
        return
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, UqprismError | pa.ArrowCancelled):  # they name the file already, or are no fault of it
            raise
        raise FileError(f"{path}: cannot be {verb}: {reason(error)}") from None


class InputFile(ABC):
    """An open file of predictions: its columns, which of them hold the members, the members' weights, and its rows."""

    def __init__(self, span: Span, columns: Columns) -> None:
        self.path, self.columns = span.path, columns

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The Arrow schema of the batches; text cells may come in place of numbers."""

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
        return described(self.columns, self.names, self.path, self.header)

    @property
    def header(self) -> dict[str, Any] | None:
        """What the file itself says of its members, if it was written by `EnsemblePrediction`."""
        return None

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the members, if the file states some."""
        return None

    @property
    def expected_rows(self) -> int | None:
        """The number of rows that the file says it has; None if it does not say."""
        return None

    @abstractmethod
    def _batches(self, rows: int, names: Sequence[str] | None = None) -> Iterator[tuple[Batch, float]]: ...

    @abstractmethod
    def _table(self, names: Sequence[str] | None) -> Any: ...

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def place(self, row: int) -> str:
        """Where a row is, for a message."""
        return f"row {row}"

    def batches(self, rows: int, names: Sequence[str] | None = None) -> Iterator[tuple[Batch, float]]:
        """Record batches of about this many rows, of all columns or of these, each with the fraction of the file read so far."""
        with naming(self.path, "read"):
            done = 0
            for batch, fraction in self._batches(rows, names):
                done += batch.num_rows
                yield batch, fraction
            self._check_rows(done)

    def table(self, names: Sequence[str] | None = None) -> Any:
        """An Arrow table of all rows, with all columns or with these."""
        if names is not None and (missing := set(names).difference(self.names)):
            raise InvalidValueError(f"{self.path}: {unknown('column', min(missing), self.names)}")
        with naming(self.path, "read"):
            table = self._table(names)
            self._check_rows(table.num_rows)
            return table

    def sample(self, name: str) -> Any:
        """The first cells of a column."""
        with naming(self.path, "read"):
            return next((batch.column(name) for batch, _ in self._batches(SAMPLE)), pa.array([], pa.string()))

    def _check_rows(self, count: int) -> None:
        if self.expected_rows not in (None, count):
            raise BadFileError(self.path, f"holds {count:,} rows, but says that it has {self.expected_rows:,}; it is damaged")


def joined(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
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

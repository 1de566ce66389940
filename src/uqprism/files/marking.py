"""Marking rows of files: the measure of all rows in temporary files, and two columns more in the output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, BadFileError, InvalidValueError
from uqprism.files.numbers import as_numbers
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Span, ending
from uqprism.files.read import Batch, InputFile, Schema, naming, open_input, pa
from uqprism.files.spool import Spool
from uqprism.files.state import FileState, blaming, unchanged
from uqprism.files.write import CsvOutput, OutputFile, ParquetOutput, describe_output
from uqprism.measures import is_measure, select_measures
from uqprism.support.progress import ProgressBar
from uqprism.support.storage import atomic_path
from uqprism.tasks.flagging import Threshold, Wanted
from uqprism.tasks.reasons import KINDS, Reasons, available_parts, risk_of

FLAGGED, REASON = "flagged", "reason"
ADDED = (FLAGGED, REASON)
BATCH_BYTES, MOST_ROWS = 1 << 24, 1 << 16


def has_column(span: Span, columns: Columns, name: str) -> bool:
    """Whether a file has this column, or has to be scored to get it."""
    with blaming(span.path), closing(open_input(span, columns)) as file:
        if name in file.names:
            return True
        if not is_measure(name):
            select_measures([name])  # which names the nearest, if it is none
        scored = [each for each in file.names if is_measure(each)]
        if scored:
            raise InvalidValueError(f"has measures but not {name}; name one of {', '.join(scored[:12])} with measure (--measure)")
        return False


def parts_in(span: Span, columns: Columns, name: str) -> tuple[str, str] | None:
    """The columns of a file that tell reasons, if it has them."""
    with blaming(span.path), closing(open_input(span, columns)) as file:
        return available_parts(name, file.names)


class Column:
    """The measure of all rows and its parts, in temporary files."""

    def __init__(self, name: str, parts: tuple[str, str] | None, folder: Path) -> None:
        self.name, self.parts = name, parts
        self.values = Spool(folder / "measure.bin")
        self.of_parts = [] if parts is None else [Spool(folder / f"part{i}.bin") for i in range(2)]
        self.states: list[FileState] = []
        self.count = 0

    def read(self, spans: Sequence[Span], columns: Columns, bar: ProgressBar, *, named: Path) -> None:
        """Read these columns of all files; errors about all of them name one."""
        names: list[str] | None = None
        for span in spans:
            with unchanged(span.path) as state, blaming(span.path), closing(open_input(span, columns)) as file:
                names = names or file.names
                if file.names != names:
                    raise InvalidValueError(f"its columns are not those of {spans[0].path}; flag them apart")
                if taken := [each for each in ADDED if each in names]:
                    raise InvalidValueError(f"has a column {taken[0]!r} already; rename it")
                for batch, fraction in _batches(file):
                    self._add(batch)
                    bar.update(completed=len(self.states) + fraction)
                self.states.append(state)
        for spool in (self.values, *self.of_parts):
            spool.complete()
        if not len(self.values):
            raise BadFileError(named, f"has no numbers in column {self.name!r}" if self.count else "has no rows")

    def _add(self, batch: Batch) -> None:
        self.count += batch.num_rows
        for spool, name in zip((self.values, *self.of_parts), (self.name, *(self.parts or ())), strict=True):
            column = batch.column(name)
            try:
                spool.append(as_numbers(column))
            except (pa.ArrowException, ValueError, TypeError):
                raise InvalidValueError(f"column {name!r} must hold numbers, its type is {column.type}") from None

    def reasons(self) -> Reasons | None:
        """What is usual, if the parts are there."""
        if not self.of_parts:
            return None
        noise, disagreement = (spool.median() for spool in self.of_parts)
        return Reasons(noise, disagreement, risk_of(self.name))

    def close(self) -> None:
        """Remove the files."""
        for spool in (self.values, *self.of_parts):
            spool.close()


def _batches(file: InputFile) -> Iterator[tuple[Batch, float]]:
    rows = min(max(BATCH_BYTES // (8 * max(len(file.names), 1)), 1 << 8), MOST_ROWS)
    return file.batches(rows)


def write_marked(
    spans: Sequence[Span],
    columns: Columns,
    target: Path,
    column: Column,
    wanted: Wanted,
    *,
    only: bool,
    bar: ProgressBar,
) -> tuple[int, dict[str, int], Threshold]:
    """Write all rows with their flags, and count those that are flagged, by reason."""
    threshold, usual = wanted.threshold(column.values), column.reasons()
    marker = Marker(column, threshold, usual)
    as_text = ending(target) == ".csv"
    with naming(target, "written"), atomic_path(target) as temporary:
        output: OutputFile | None = None
        schema: Schema = None
        try:
            for i, (span, before) in enumerate(zip(spans, column.states, strict=True)):
                with (
                    unchanged(span.path, before),
                    blaming(span.path),
                    closing(open_input(span, columns, as_text=as_text)) as file,
                ):
                    for batch, fraction in _batches(file):
                        marked = marker(batch, file.schema.metadata)
                        schema = schema or marked.schema
                        output = output or _opened(temporary, target, marked.schema, column.name)
                        output.write(marked.filter(marked.column(FLAGGED)) if only else marked)
                        bar.update(completed=len(spans) + i + fraction)
        finally:
            if output is not None:
                output.close()
    describe_output(target, schema)
    return marker.flagged, marker.counted(), threshold


def _opened(path: Path, target: Path, schema: Any, name: str) -> OutputFile:
    if ending(target) == ".csv":
        try:
            return CsvOutput(path, schema)
        except InvalidValueError as error:  # no fault of the input, which may be a temporary file
            raise ArgumentError(f"output {target}: {error}") from None
    measures = tuple(select_measures([name])) if is_measure(name) else ()
    return ParquetOutput(path, schema, ScoreOptions(measures))


class Marker:
    """Adds the two columns to one batch after another."""

    def __init__(self, column: Column, threshold: Threshold, usual: Reasons | None) -> None:
        self.column, self.threshold, self.usual = column, threshold, usual
        self.flagged = self.tied = 0
        self.kinds: Counter[str] = Counter()

    def __call__(self, batch: Batch, about: Any) -> Batch:
        """The batch with both columns, and with what the file says about itself."""
        values = as_numbers(batch.column(self.column.name)).astype(np.float64, copy=False)
        rows, self.tied = self.threshold.select(values, self.tied)
        self.flagged += int(rows.sum())
        fields, arrays = list(batch.schema), list(batch.columns)
        fields.append(pa.field(FLAGGED, pa.bool_()))
        arrays.append(pa.array(rows))
        if self.usual is not None:
            fields.append(pa.field(REASON, pa.string()))
            arrays.append(pa.array(self._told(batch, rows), pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=about))

    def _told(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        told = np.full(len(rows), "", dtype=object)
        if self.usual is not None and self.column.parts is not None and rows.any():
            noise, disagreement = (as_numbers(batch.column(part)).astype(np.float64)[rows] for part in self.column.parts)
            told[rows] = self.usual.sentences(noise, disagreement)
            self.kinds.update(self.usual.kinds(noise, disagreement).tolist())
        return told

    def counted(self) -> dict[str, int]:
        """How many rows are flagged for each reason."""
        return {kind: self.kinds[kind] for kind in KINDS} if self.usual is not None else {}

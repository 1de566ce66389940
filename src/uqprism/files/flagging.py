"""`flag` for files of any size: which rows to look at first, and why, as two columns more."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.columns import Columns, ColumnsLike
from uqprism.errors import ArgumentError, BadFileError, InvalidValueError
from uqprism.files.numbers import as_numbers
from uqprism.files.options import OnBad, ScoreOptions
from uqprism.files.paths import PathLike, Span, check_apart, check_outside, ending, find_files, plan_parts
from uqprism.files.read import Batch, InputFile, naming, open_input, pa
from uqprism.files.scoring import score
from uqprism.files.spool import Spool
from uqprism.files.state import FileState, blaming, unchanged
from uqprism.files.write import CsvOutput, OutputFile, ParquetOutput
from uqprism.measures import Measure, is_measure, select_measures
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.support.storage import atomic_path
from uqprism.tasks.flagging import Threshold, Wanted, shortest
from uqprism.tasks.reasons import KINDS, Reasons, available_parts, parts_of
from uqprism.tasks.task import recommend

FLAGGED, REASON = "flagged", "reason"
ADDED = (FLAGGED, REASON)
BATCH_BYTES, MOST_ROWS = 1 << 24, 1 << 16


@dataclass(frozen=True)
class FlagReport:
    """What was flagged.

    Attributes:
        output: the file that was written.
        rows: how many rows were read.
        flagged: how many of them are flagged.
        threshold: the lowest uncertainty that is flagged; a new row is flagged if it reaches this.
        shortest: the same in the fewest digits.
        measure: the column that decides.
        missing: rows without a number there, which are not flagged.
        reasons: how many are flagged for noise, for disagreement, and as unfamiliar; empty if that is not known.
        seconds: how long it took.
    """

    output: Path
    rows: int
    flagged: int
    threshold: float
    shortest: str
    measure: str
    missing: int
    reasons: Mapping[str, int]
    seconds: float

    def __str__(self) -> str:
        why = ", ".join(f"{count:,} {kind}" for kind, count in self.reasons.items() if count)
        share = f"{self.flagged / self.rows:.3g} of all" if self.rows else "no rows"
        lines = [f"{self.output}: {self.flagged:,} of {self.rows:,} rows flagged ({share}), {self.measure} >= {self.shortest}"]
        lines += [f"reasons: {why}"] if why else []
        lines += [f"{self.missing:,} rows have no {self.measure} and are not flagged"] if self.missing else []
        return "\n".join(lines)


def flag(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    share: float | None = None,
    above: float | None = None,
    budget: int | None = None,
    measure: str | Measure | None = None,
    only: bool = False,
    mean_columns: ColumnsLike = None,
    variance_columns: ColumnsLike = None,
    scale_columns: ColumnsLike = None,
    family: str | None = None,
    on_bad: OnBad = "error",
    keep_members: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> FlagReport:
    """Flag the most uncertain rows of Parquet, CSV or NPZ files that may be larger than memory.

    The output has the rows and columns of the inputs and two columns more: `flagged`, and `reason` in words for flagged rows
    (see `uqprism.tasks.reasons.Reasons`). Files with columns of measures are taken as they are; others are scored first. The
    threshold is exact, not an estimate: the measure of all rows is kept in a temporary file beside the output, 8 bytes a row (24
    with reasons), and read several times, so that memory does not grow with the number of rows.

    Args:
        inputs: files, folders and glob patterns, all with the same columns.
        output: a .parquet or .csv file.
        share: of the rows, rounded up; rows that equal the last flagged one are flagged too. By default 0.1.
        above: flag rows with at least this uncertainty, in the units of the measure.
        budget: flag this number of rows; of those that equal the last one, the first.
        measure: a measure, or another column of numbers; by default the one that `recommend("selective_prediction")` names.
        only: write the flagged rows alone.
        mean_columns: as for `score`, as are `variance_columns`, `scale_columns`, `family`, `on_bad` and `keep_members`, which
            matter for inputs that are scored first.
        variance_columns: see `mean_columns`.
        scale_columns: see `mean_columns`.
        family: see `mean_columns`.
        on_bad: see `mean_columns`; rows that are kept without measures are not flagged.
        keep_members: see `mean_columns`.
        overwrite: replace an existing output.
        progress: draw a bar on standard error.

    Returns:
        The report.
    """
    started, target = time.perf_counter(), Path(output)
    wanted = Wanted(share, above, budget)
    name = str(measure) if measure is not None else recommend("selective_prediction").measure
    columns = Columns(mean_columns, variance_columns, scale_columns, family)
    check_outside(inputs, target)
    spans = find_files(inputs)
    _check_output(target, spans, overwrite=overwrite)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".uqprism-flag-", dir=target.absolute().parent) as folder:
        if not _has(spans[0], columns, name):
            scored = Path(folder) / "scored.parquet"
            given = {"mean_columns": mean_columns, "variance_columns": variance_columns, "scale_columns": scale_columns}
            _score(inputs, scored, name, **given, family=family, on_bad=on_bad, keep_members=keep_members, progress=progress)
            spans = find_files(scored)
        with (
            progress_bar("flagging", 2.0 * len(spans), shown=progress, counted=False) as bar,
            closing(_Column(name, _parts(spans[0], columns, name), Path(folder))) as column,
        ):
            column.read(spans, columns, bar)
            flagged, reasons, threshold = _write(spans, columns, target, column, wanted, only=only, bar=bar)
    return FlagReport(
        target,
        column.count,
        flagged,
        threshold.value,
        shortest(threshold.value, threshold.below),
        name,
        column.values.missing,
        reasons,
        time.perf_counter() - started,
    )


def _check_output(target: Path, spans: Sequence[Span], *, overwrite: bool) -> None:
    if ending(target) not in (".parquet", ".csv"):
        raise ArgumentError(f"output {target}: flag writes one .parquet or .csv file; name one")
    check_apart(plan_parts(spans, target), target)
    if target.exists() and not overwrite:
        raise ArgumentError(f"output {target}: exists already; name another, or pass overwrite (--overwrite)")


def _has(span: Span, columns: Columns, name: str) -> bool:
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


def _score(inputs: Any, scored: Path, name: str, **how: Any) -> None:
    """Score into one temporary file: the measure, and the parts that tell the reason."""
    score(inputs, scored, measures=list(dict.fromkeys([name, *parts_of(name)])), on_bad_file="fail", **how)


def _parts(span: Span, columns: Columns, name: str) -> tuple[str, str] | None:
    with blaming(span.path), closing(open_input(span, columns)) as file:
        return available_parts(name, file.names)


class _Column:
    """The measure of all rows and its parts, in temporary files."""

    def __init__(self, name: str, parts: tuple[str, str] | None, folder: Path) -> None:
        self.name, self.parts = name, parts
        self.values = Spool(folder / "measure.bin")
        self.of_parts = [] if parts is None else [Spool(folder / f"part{i}.bin") for i in range(2)]
        self.states: list[FileState] = []
        self.count = 0

    def read(self, spans: Sequence[Span], columns: Columns, bar: ProgressBar) -> None:
        """Read these columns of all files."""
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
            raise BadFileError(spans[0].path, f"has no numbers in column {self.name!r}" if self.count else "has no rows")

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
        return Reasons(*(spool.median() for spool in self.of_parts)) if self.of_parts else None

    def close(self) -> None:
        """Remove the files."""
        for spool in (self.values, *self.of_parts):
            spool.close()


def _batches(file: InputFile) -> Iterator[tuple[Batch, float]]:
    rows = min(max(BATCH_BYTES // (8 * max(len(file.names), 1)), 1 << 8), MOST_ROWS)
    return file.batches(rows)


def _write(
    spans: Sequence[Span],
    columns: Columns,
    target: Path,
    column: _Column,
    wanted: Wanted,
    *,
    only: bool,
    bar: ProgressBar,
) -> tuple[int, dict[str, int], Threshold]:
    """Write all rows with their flags, and count those that are flagged, by reason."""
    threshold, usual = wanted.threshold(column.values), column.reasons()
    marker = _Marker(column, threshold, usual)
    as_text = ending(target) == ".csv"
    with naming(target, "written"), atomic_path(target) as temporary:
        output: OutputFile | None = None
        try:
            for i, (span, before) in enumerate(zip(spans, column.states, strict=True)):
                with (
                    unchanged(span.path, before),
                    blaming(span.path),
                    closing(open_input(span, columns, as_text=as_text)) as file,
                ):
                    for batch, fraction in _batches(file):
                        marked = marker(batch)
                        output = output or _opened(temporary, target, marked.schema, column.name)
                        output.write(marked.filter(marked.column(FLAGGED)) if only else marked)
                        bar.update(completed=len(spans) + i + fraction)
        finally:
            if output is not None:
                output.close()
    return marker.flagged, marker.counted(), threshold


def _opened(path: Path, target: Path, schema: Any, name: str) -> OutputFile:
    if ending(target) == ".csv":
        return CsvOutput(path, schema)
    measures = tuple(select_measures([name])) if is_measure(name) else ()
    return ParquetOutput(path, schema, ScoreOptions(measures))


class _Marker:
    """Adds the two columns to one batch after another."""

    def __init__(self, column: _Column, threshold: Threshold, usual: Reasons | None) -> None:
        self.column, self.threshold, self.usual = column, threshold, usual
        self.flagged = self.tied = 0
        self.kinds: Counter[str] = Counter()

    def __call__(self, batch: Batch) -> Batch:
        values = as_numbers(batch.column(self.column.name)).astype(np.float64, copy=False)
        rows, self.tied = self.threshold.select(values, self.tied)
        self.flagged += int(rows.sum())
        fields, arrays = list(batch.schema), list(batch.columns)
        fields.append(pa.field(FLAGGED, pa.bool_()))
        arrays.append(pa.array(rows))
        if self.usual is not None:
            fields.append(pa.field(REASON, pa.string()))
            arrays.append(pa.array(self._told(batch, rows), pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))

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

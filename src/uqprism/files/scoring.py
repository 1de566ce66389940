"""`score`: add measures to every row of files of any size, on one machine or a cluster."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism.ensemble.columns import Columns, ColumnsLike, Layout
from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.files.options import OnBad, ScoreOptions
from uqprism.files.paths import Part, PathLike, check_outside, find_files, plan_parts
from uqprism.measures import MeasuresLike, select_measures
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.support.storage import sweep

if TYPE_CHECKING:
    from uqprism.files.stream import FinishedPart

CLUSTER_ROWS = 4_000_000  # in one task: some seconds of work, so that a lost one costs little


@dataclass(frozen=True)
class ScoreReport:
    """The result of `score`.

    Attributes:
        rows: the rows read for all of the output, good and bad.
        bad_rows: how many of them had invalid members.
        seconds: the duration of the run.
        parts: the files written, or found complete when resuming.
        output: the file or folder as given.
        resumed_rows: how many of `rows` an earlier run had written.
    """

    rows: int
    bad_rows: int
    seconds: float
    parts: tuple[Path, ...]
    output: Path
    resumed_rows: int = 0

    @property
    def rows_per_second(self) -> float:
        """The rows of this run per second."""
        return (self.rows - self.resumed_rows) / max(self.seconds, 1e-9)

    def __str__(self) -> str:
        new = self.rows - self.resumed_rows
        kept = f", {self.resumed_rows:,} rows kept from an earlier run" if self.resumed_rows else ""
        bad = f", {self.bad_rows:,} bad" if self.bad_rows else ", none bad"
        return f"scored {new:,} rows in {self.seconds:.1f} s ({self.rows_per_second:,.0f} rows/s){kept}{bad}: {self.output}"


def score(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    measures: MeasuresLike = None,
    mean_columns: ColumnsLike = None,
    variance_columns: ColumnsLike = None,
    scale_columns: ColumnsLike = None,
    weights: Sequence[float] | None = None,
    on_bad: OnBad = "error",
    keep_members: bool = False,
    compression: str = "snappy",
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    threads: int | None = None,
    part_rows: int | None = None,
    dask: Any = None,
) -> ScoreReport:
    """Add measures to every row of Parquet, CSV or NPZ files.

    Parquet and CSV files may be larger than memory: they are read and written in batches. NPZ files are read and written whole.

    Args:
        inputs: files, folders (searched to any depth) and glob patterns.
        output: a .parquet, .csv or .npz file, or a folder, which gets a Parquet part for each input file.
        measures: names, `Measure`s, patterns such as "crps.*", "all" for the 144 of `catalogue()`, or "usual", the default, 12:
            total, bayes and excess with members in both roles under the paper's four rules.
        mean_columns: the columns with the members' means: a pattern with `{i}`, or their names; by default `mean_{i}`.
        variance_columns: the columns with their variances; by default `variance_{i}`.
        scale_columns: the columns with their standard deviations, instead of variances; by default `scale_{i}`.
        weights: one per member, with sum one; by default those in the file, or equal weights.
        on_bad: what to do with rows where a mean is not finite or a variance or scale is not finite and positive: "error"
            raises an error that names the first, "null" gives null for their measures, "drop" leaves them out.
        keep_members: keep the member columns in the output.
        compression: of Parquet output: snappy, zstd, lz4, gzip, brotli or none.
        resume: keep the parts that an earlier run with the same options made from the same files.
        overwrite: replace existing output.
        progress: draw a progress bar on standard error.
        threads: how many batches to compute at a time; by default one per core, four at most.
        part_rows: cut larger Parquet files at their row groups into parts of about this many rows, if the output is a folder; by
            default files stay whole, and on a cluster the limit is four million rows.
        dask: the address of a Dask scheduler, its scheduler file, or a `distributed.Client`: one task per part.

    Raises:
        FileError: a file that cannot be found, read or written.
        InvalidValueError: bad rows, or files without the columns of the members.
        ArgumentError: arguments that contradict each other, or output that exists already.
    """
    start, target = time.perf_counter(), Path(output)
    shared = None if weights is None else tuple(float(weight) for weight in weights)
    columns = Columns(mean_columns, variance_columns, scale_columns)
    options = ScoreOptions(tuple(select_measures(measures, default="usual")), columns, shared, on_bad, keep_members, compression)
    check_outside(inputs, target)  # before anything is read
    parts = _planned(plan_parts(find_files(inputs), target), target, part_rows or (None if dask is None else CLUSTER_ROWS))
    _check_members(parts, options)
    from uqprism.files import manifest

    kept = manifest.finished(target, parts, options, resume=resume, overwrite=overwrite)
    made = kept + _write_missing(parts, kept, target, options, progress=progress, threads=threads, dask=dask)
    return _report(made, target, time.perf_counter() - start, sum(one.rows for one in kept))


def _planned(parts: list[Part], output: Path, rows: int | None) -> list[Part]:
    """The parts, with large files cut if `rows` is given."""
    from uqprism.files.stream import cut_at_row_groups

    if rows is None:
        return parts
    if parts[0].target == output:
        raise ArgumentError(f"output {output}: is a file, but --dask and --part-rows (dask, part_rows) need a folder; name one")
    return [piece for part in parts for piece in cut_at_row_groups(part, rows)]


def _write_missing(
    parts: Sequence[Part],
    kept: Sequence[FinishedPart],
    output: Path,
    options: ScoreOptions,
    *,
    progress: bool,
    threads: int | None,
    dask: Any,
) -> list[FinishedPart]:
    """Write the missing parts, here or on a cluster, and remove temporary files."""
    from uqprism.files import manifest, stream

    run, done = uuid.uuid4().hex[:12], {one.part.target for one in kept}
    missing = [part for part in parts if part.target not in done]
    sweep(output)
    if missing and parts[0].target != output:  # a folder, which has a manifest
        (output / manifest.MANIFEST).unlink(missing_ok=True)  # it describes parts that will be replaced
    try:
        with progress_bar("scoring", _size(missing), shown=progress, counted=False) as bar:
            tick = _ticker(bar)
            if dask is not None:
                from uqprism.files.cluster import write_parts

                made = write_parts(missing, options, dask, run=run, tick=tick)
            else:
                count = threads or stream.default_threads()
                made = [stream.write_part(part, options, run=run, threads=count, tick=tick) for part in missing]
    finally:
        sweep(output, run)  # of workers that were lost
    if parts[0].target != output:
        manifest.write_manifest(output, [*kept, *made], options)
        manifest.remove_stale(output, parts)
    return made


def _ticker(bar: ProgressBar) -> Callable[[int, float], None]:
    """A function that moves the bar by the rows and bytes done since its last call."""
    rows = 0

    def tick(more: int, size: float) -> None:
        nonlocal rows
        rows += more
        speed = rows / bar.seconds if bar.seconds else 0.0
        bar.update(advance=size, text=f"{rows:,} rows, {speed:,.0f} rows/s")

    return tick


def _report(made: Sequence[FinishedPart], output: Path, seconds: float, resumed: int) -> ScoreReport:
    bad, files = sum(one.bad_rows for one in made), tuple(sorted(one.part.target for one in made))
    return ScoreReport(sum(one.rows for one in made), bad, seconds, files, output, resumed)


def _size(parts: Sequence[Part]) -> int:
    """The number of bytes to read, for the bar; a file cut into parts counts once for each part."""
    return sum(span.path.stat().st_size for part in parts for span in part.spans)


def _check_members(parts: Sequence[Part], options: ScoreOptions) -> None:
    """Before writing, refuse inputs whose member columns are missing or differ from those of the first input."""
    from uqprism.files.read import open_input
    from uqprism.files.rows import Scorer

    first: tuple[Path, Layout] | None = None
    # All of them now: a mistake in the last file should not show after hours of scoring.
    for span in {span.path: span for part in parts for span in part.spans}.values():
        with closing(open_input(span, options.columns)) as file:
            layout = file.layout
            if first is None or span.path.suffix != ".csv":  # the types of a CSV file are known only from its values
                Scorer(file, options)
        first = first or (span.path, layout)
        if layout != first[1]:
            raise InvalidValueError(
                f"{span.path}: has {len(layout.mean)} members by mean and {layout.kind}, but {first[0]} has "
                f"{len(first[1].mean)} by mean and {first[1].kind}, or their columns differ; score them separately"
            )

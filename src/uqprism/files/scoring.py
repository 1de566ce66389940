"""`score`: add measures to every row of files of any size, on one machine or a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism.ensemble.columns import Columns, ColumnsLike
from uqprism.errors import ArgumentError, BadFileError
from uqprism.files.claim import Claim, claimed
from uqprism.files.options import OnBad, OnBadFile, ScoreOptions, Tolerance
from uqprism.files.outcome import Run, ScoreReport
from uqprism.files.paths import Part, PathLike, check_apart, check_outside, find_files, plan_parts
from uqprism.measures import MeasuresLike, is_set, select_measures
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.support.storage import ABANDONED, sweep

if TYPE_CHECKING:
    from uqprism.files.stream import FinishedPart

CLUSTER_ROWS = 4_000_000  # in one task: some seconds of work, so that a lost one costs little

log = logging.getLogger(__name__)


def score(
    inputs: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    measures: MeasuresLike = None,
    mean_columns: ColumnsLike = None,
    variance_columns: ColumnsLike = None,
    scale_columns: ColumnsLike = None,
    family: str | None = None,
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
    on_bad_file: OnBadFile = "name",
    max_bad: int | float | str | None = None,
    summary: PathLike | None = None,
) -> ScoreReport:
    """Add measures to every row of Parquet, CSV or NPZ files.

    Parquet and CSV files may be larger than memory: they are read and written in batches. NPZ files are read and written whole.

    Args:
        inputs: files, folders (searched to any depth) and glob patterns.
        output: a .parquet, .csv or .npz file, or a folder, which gets a Parquet part for each input file.
        measures: names, `Measure`s, patterns such as "crps.*", "all" for the 144 of `catalogue()`, or "usual", the default, 12:
            total, bayes and excess with members in both roles under the paper's four rules. Of these two sets, those that the
            members do not have are left out, with a warning, such as log of draws.
        mean_columns: the columns with the members' means: a pattern with `{i}`, or their names; by default `mean_{i}`.
        variance_columns: the columns with their variances; by default `variance_{i}`.
        scale_columns: the columns with their standard deviations, instead of variances; by default `scale_{i}`.
        family: of the members, such as "laplace", perhaps with options, as in "quantiles:tails=gaussian"; by default it is
            recognised by the columns, see `from_frame`.
        weights: one per member, with sum one; by default those in the file, or equal weights.
        on_bad: what to do with rows where a mean is not finite or a variance or scale is not finite and positive: "error"
            makes the file a bad one and names the first, "null" gives null for their measures, "drop" leaves them out.
        keep_members: keep the member columns in the output.
        compression: of Parquet output: snappy, zstd, lz4, gzip, brotli or none.
        resume: keep the parts that an earlier run with the same options made from inputs that have not changed since. Changed
            and new inputs are scored, and parts whose inputs are gone are removed.
        overwrite: replace existing output.
        progress: draw a progress bar on standard error.
        threads: how many batches to compute at a time; by default one per core, four at most.
        part_rows: cut larger Parquet files at their row groups into parts of about this many rows, if the output is a folder; by
            default files stay whole, and on a cluster the limit is four million rows.
        dask: the address of a Dask scheduler, its scheduler file, or a `distributed.Client`: one task per part.
        on_bad_file: what to do with inputs that cannot be read, lack the columns of the others, change while they are read,
            or have bad rows under `on_bad="error"`. "name" scores all others and then raises an error that names every one,
            "skip" does not raise, "fail" stops at the first.
        max_bad: how many bad rows to accept in all, such as 100, or which share, such as 0.01 or "1%"; by default any number.
            It needs `on_bad` "null" or "drop".
        summary: a .json file to write, also if the run fails: its rows, bad files, parts, seconds, options and exit code.

    Returns:
        The report. That of a run which ends with bad files or too many bad rows is the attribute `report` of the error.

    Raises:
        BadFilesError: some inputs could not be scored; or, for a single input, `BadFileError`.
        BadRowsError: more bad rows than `max_bad`. Its message names the bad files too; the output has all others.
        BusyError: another run is writing to the output.
        FileError: a file that cannot be found, read or written.
        ArgumentError: arguments that contradict each other, or output that exists already.
    """
    columns = Columns(mean_columns, variance_columns, scale_columns, family)
    cut, shared = part_rows or (None if dask is None else CLUSTER_ROWS), None if weights is None else tuple(map(float, weights))
    about = {"inputs": _texts(inputs), "resume": resume, "overwrite": overwrite, "part_rows": cut}
    run = Run(Path(output), {**about, "on_bad_file": on_bad_file, "max_bad": max_bad})
    with run.summarised(summary):
        chosen = tuple(select_measures(measures, default="usual"))
        options = run.options = ScoreOptions(chosen, columns, shared, on_bad, keep_members, compression)
        run.tolerance = Tolerance.of(on_bad_file, max_bad, on_bad)
        check_outside(inputs, run.output)  # before anything is read
        run.inputs = find_files(inputs)
        if is_set(measures):
            from uqprism.files.checking import measures_of

            options = run.options = replace(options, measures=measures_of(run.inputs, options))
        parts = plan_parts(run.inputs, run.output)
        if cut is not None and parts[0].target == run.output:
            raise ArgumentError(
                f"output {output}: is a file, but --dask and --part-rows (dask, part_rows) need a folder; name one"
            )
        with claimed(run.output, folder=parts[0].target != run.output) as claim:
            run.locked = claim.locked
            missing = _prepare(run, parts, options, claim, cut=cut, resume=resume, overwrite=overwrite)
            try:
                with progress_bar("scoring", _size(missing), shown=progress, counted=False) as bar:
                    for one in _written(run, missing, options, claim, threads=threads, dask=dask, tick=_ticker(bar)):
                        run.add(one)
            finally:
                sweep(run.output, claim.run)  # of workers that were lost
            if parts[0].target != run.output:
                _complete(run, options, claim)
        return run.conclude()


def _texts(inputs: PathLike | Sequence[PathLike]) -> list[str]:
    return [os.fspath(item) for item in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]


def _prepare(
    run: Run, parts: list[Part], options: ScoreOptions, claim: Claim, *, cut: int | None, resume: bool, overwrite: bool
) -> list[Part]:
    """Find what is there already, and return the parts to write, without the inputs that are bad."""
    from uqprism.files import manifest
    from uqprism.files.checking import check_inputs

    folder = parts[0].target != run.output
    if not claim.locked:
        log.warning("output %s: its file system has no locks, so start no second run into it", run.output)
    # Behind a lock, whatever other runs left is dead.
    sweep(run.output, idle=0.0 if claim.locked else ABANDONED)
    if cut is not None:
        parts = [piece for part in parts for piece in _cut(run, part, cut)]
        check_apart(parts, run.output)
    run.kept += manifest.finished(run.output, parts, options, resume=resume, overwrite=overwrite)
    log.info("%d inputs, %d parts kept from an earlier run", len(run.inputs), len(run.kept))
    done = {one.part.target for one in run.kept}
    missing = [part for part in parts if part.target not in done]
    if missing and folder:
        (run.output / manifest.MANIFEST).unlink(missing_ok=True)  # it describes parts that will be replaced
    members = run.kept[0].record.get("members") if run.kept else None
    spans = [span for part in missing for span in part.spans]
    check_inputs(spans, options, run.set_aside, expected=members, together=not folder)
    return [left for part in missing if (left := run.without_bad(part)) is not None]


def _cut(run: Run, part: Part, rows: int) -> list[Part]:
    from uqprism.files.stream import cut_at_row_groups

    try:
        return cut_at_row_groups(part, rows)
    except BadFileError as error:
        run.set_aside(error)
        return []


def _written(
    run: Run,
    missing: Sequence[Part],
    options: ScoreOptions,
    claim: Claim,
    *,
    threads: int | None,
    dask: Any,
    tick: Callable[[int, float], None],
) -> Iterator[FinishedPart]:
    """Write the parts, here or on a cluster, and set aside the inputs that turn out bad."""
    from uqprism.files import stream

    if dask is not None:
        from uqprism.files.cluster import write_parts

        for result in write_parts(missing, options, claim, dask, tick=tick):
            if isinstance(result, BadFileError):
                run.set_aside(result)
            else:
                yield result
        return
    count = threads or stream.default_threads()
    for part in missing:
        # A file of several inputs is made again without a bad one, whose first rows may be in it.
        while (left := run.without_bad(part)) is not None:
            try:
                yield stream.write_part(left, options, claim, threads=count, tick=tick)
                break
            except BadFileError as error:
                run.set_aside(error)


def _complete(run: Run, options: ScoreOptions, claim: Claim) -> None:
    """Remove the parts of earlier runs that are not in the output any more, and write the manifest."""
    from uqprism.files import manifest

    made = [*run.kept, *run.made]
    claim.check()
    (run.output / manifest.MANIFEST).unlink(missing_ok=True)
    run.removed += manifest.remove_stale(run.output, made)
    for path in run.removed:
        log.info("removed %s, whose input is gone, bad or cut otherwise", path)
    manifest.check_parts(run.output, made)
    manifest.write_manifest(run.output, made, options, bad_files=run.report().bad_files, removed=run.removed)


def _ticker(bar: ProgressBar) -> Callable[[int, float], None]:
    """A function that moves the bar by the rows and bytes done since its last call."""
    rows = 0

    def tick(more: int, size: float) -> None:
        nonlocal rows
        rows += more
        speed = rows / bar.seconds if bar.seconds else 0.0
        bar.update(advance=size, text=f"{rows:,} rows, {speed:,.0f} rows/s")

    return tick


def _size(parts: Sequence[Part]) -> int:
    """The number of bytes to read, for the bar; a file cut into parts counts once for each part."""
    size = 0
    for span in (span for part in parts for span in part.spans):
        with suppress(OSError):  # one that is gone is found bad when it is read
            size += span.path.stat().st_size
    return size

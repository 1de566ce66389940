"""`flag` for files of any size: which rows to look at first, and why, as two columns more."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns, ColumnsLike
from uqprism.errors import ArgumentError, BadFileError
from uqprism.files.options import OnBad
from uqprism.files.outcome import ScoreReport
from uqprism.files.paths import PathLike, Span, check_apart, check_outside, ending, find_files, plan_parts
from uqprism.files.scoring import score
from uqprism.measures import Measure
from uqprism.support.progress import progress_bar
from uqprism.support.storage import check_writable, make_folder, writing
from uqprism.tasks.flagging import Wanted, shortest, whole_rows
from uqprism.tasks.reasons import parts_of
from uqprism.tasks.task import recommend


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
        dropped: bad rows that were left out, under `on_bad="drop"`.
        asked: how many rows the share is, rounded up; None if no share was asked for.
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
    dropped: int
    asked: int | None
    reasons: Mapping[str, int]
    seconds: float

    def __str__(self) -> str:
        why = ", ".join(f"{count:,} {kind}" for kind, count in self.reasons.items() if count)
        share = f"{self.flagged / self.rows:.3g} of all" if self.rows else "no rows"
        lines = [f"{self.output}: {self.flagged:,} of {self.rows:,} rows flagged ({share}), {self.measure} >= {self.shortest}"]
        lines += [f"reasons: {why}"] if why else []
        if self.asked is not None and self.flagged > self.asked:
            lines.append(f"{_rows(self.asked)} were asked for; those that equal the last one are flagged too")
        lines += [f"not flagged, without {self.measure}: {_rows(self.missing)}"] if self.missing else []
        lines += [f"left out, with bad members: {_rows(self.dropped)}"] if self.dropped else []
        return "\n".join(lines)


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"


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
    weights: Sequence[float] | None = None,
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
        mean_columns: as for `score`, as are `variance_columns`, `scale_columns`, `family`, `weights`, `on_bad` and
            `keep_members`, which matter for inputs that are scored first.
        variance_columns: see `mean_columns`.
        scale_columns: see `mean_columns`.
        family: see `mean_columns`.
        weights: see `mean_columns`.
        on_bad: see `mean_columns`; rows that are kept without measures are not flagged.
        keep_members: see `mean_columns`.
        overwrite: replace an existing output.
        progress: draw a bar on standard error.

    Returns:
        The report.
    """
    from uqprism.files import marking  # which needs pyarrow

    started, target = time.perf_counter(), Path(output)
    wanted = Wanted(share, above, budget)
    name = str(measure) if measure is not None else recommend("selective_prediction").measure
    columns = Columns(mean_columns, variance_columns, scale_columns, family)
    check_outside(inputs, target)
    spans, dropped = find_files(inputs), 0
    first = spans[0].path
    _check_output(target, spans, overwrite=overwrite)
    with writing(target), tempfile.TemporaryDirectory(prefix=".uqprism-flag-", dir=target.absolute().parent) as folder:
        if not marking.has_column(spans[0], columns, name):
            scored = Path(folder) / "scored.parquet"
            given = {"mean_columns": mean_columns, "variance_columns": variance_columns, "scale_columns": scale_columns}
            how = {"family": family, "weights": weights, "on_bad": on_bad, "keep_members": keep_members, "progress": progress}
            made = _score(inputs, scored, name, **given, **how)
            if not made.rows:  # rather than of the file between
                raise BadFileError(spans[0].path, "has no rows")
            dropped = made.bad_rows if on_bad == "drop" else 0
            spans = find_files(scored)
        with (
            progress_bar("flagging", 2.0 * len(spans), shown=progress, counted=False) as bar,
            closing(marking.Column(name, marking.parts_in(spans[0], columns, name), Path(folder))) as column,
        ):
            column.read(spans, columns, bar, named=first)
            flagged, reasons, threshold = marking.write_marked(spans, columns, target, column, wanted, only=only, bar=bar)
    return FlagReport(
        target,
        column.count,
        flagged,
        threshold.value,
        shortest(threshold.value, threshold.below),
        name,
        column.values.missing,
        dropped,
        None if wanted.share is None else whole_rows(wanted.share, len(column.values)),
        reasons,
        time.perf_counter() - started,
    )


def _check_output(target: Path, spans: Sequence[Span], *, overwrite: bool) -> None:
    if ending(target) not in (".parquet", ".csv"):
        raise ArgumentError(f"output {target}: flag writes one .parquet or .csv file; name one")
    check_apart(plan_parts(spans, target), target)
    make_folder(target.absolute().parent)
    check_writable(target)
    if target.exists() and not overwrite:
        raise ArgumentError(f"output {target}: exists already; name another, or pass overwrite (--overwrite)")


def _score(inputs: Any, scored: Path, name: str, **how: Any) -> ScoreReport:
    """Score into one temporary file: the measure, and the parts that tell the reason."""
    return score(inputs, scored, measures=list(dict.fromkeys([name, *parts_of(name)])), on_bad_file="fail", **how)

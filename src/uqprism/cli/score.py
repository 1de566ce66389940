"""Score files of any size."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uqprism.cli.application import Overwrite, Progress, Quiet, app, interruptible
from uqprism.cli.columns import MeanColumns, ScaleColumns, VarianceColumns
from uqprism.errors import ArgumentError

Inputs = Annotated[list[str], typer.Argument(metavar="IN", help="Parquet, CSV or NPZ files, folders or glob patterns.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet, .csv or .npz file, or a folder.")]
MEASURES = (
    "A measure, a pattern such as 'crps.*', 'all' (144) or 'usual' (12); may be repeated or have commas. By default usual: "
    "total, bayes and excess with members in both roles, under four rules."
)
Measures = Annotated[list[str] | None, typer.Option(metavar="NAME", help=MEASURES)]
Weights = Annotated[str | None, typer.Option(metavar="W,W,...", help="One per member, summing to one. By default equal.")]
ON_BAD = "What to do with rows where a member is null, NaN or infinite, or a variance or scale not above zero."
OnBad = Annotated[str, typer.Option(metavar="error|null|drop", help=ON_BAD)]
KeepMembers = Annotated[bool, typer.Option("--keep-members", help="Keep the member columns in the output.")]
Compression = Annotated[str, typer.Option(metavar="CODEC", help="Of Parquet: snappy, zstd, lz4, gzip, brotli or none.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep the parts that an earlier run finished.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Batches to compute at a time. By default one per core, at most 4.")]
PartRows = Annotated[int | None, typer.Option(min=1, help="Cut larger Parquet files into parts of about this many rows.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, or its file; its workers write the parts.")]
EXIT_CODES = (
    "Exit codes: 0 done; 1 bad rows, or a file that cannot be read or written; 2 wrong usage, or existing "
    "output; 130 interrupted. No half-written file remains."
)


@app.command(epilog=EXIT_CODES)
def score(
    *,
    inputs: Inputs,
    output: Output,
    measures: Measures = None,
    mean_columns: MeanColumns = None,
    variance_columns: VarianceColumns = None,
    scale_columns: ScaleColumns = None,
    weights: Weights = None,
    on_bad: OnBad = "error",
    keep_members: KeepMembers = False,
    compression: Compression = "snappy",
    resume: Resume = False,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
    threads: Threads = None,
    part_rows: PartRows = None,
    dask: Dask = None,
) -> None:
    """Add measures to every row of Parquet and CSV files of any size, or of NPZ files."""
    from uqprism.files import score as run

    with interruptible("parts that are finished stay, continue with --resume"):
        report = run(
            inputs,
            output,
            measures=measures,
            mean_columns=mean_columns,
            variance_columns=variance_columns,
            scale_columns=scale_columns,
            weights=_numbers(weights),
            on_bad=on_bad,  # type: ignore[arg-type]
            keep_members=keep_members,
            compression=compression,
            resume=resume,
            overwrite=overwrite,
            progress=not quiet and (progress or sys.stderr.isatty()),
            threads=threads,
            part_rows=part_rows,
            dask=dask,
        )
    if not quiet:
        print(report)


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(f"weights (--weights) must be numbers with commas between, got {text!r}") from None

"""Score files of any size, and list the measures to score them with."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uqprism.cli.application import (
    MeanColumns,
    Overwrite,
    Progress,
    Quiet,
    ScaleColumns,
    VarianceColumns,
    command,
    interruptible,
    measures_option,
)
from uqprism.errors import ArgumentError
from uqprism.files.options import COMPRESSIONS, ScoreOptions

Inputs = Annotated[list[str], typer.Argument(metavar="IN", help="Parquet, CSV or NPZ files, folders or glob patterns.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet, .csv or .npz file, or a folder.")]
Measures = Annotated[list[str] | None, measures_option("usual")]
Weights = Annotated[
    str | None, typer.Option(metavar="W,W,...", help="One per member, with sum one. By default those in the file, or equal.")
]
ON_BAD = "What to do with rows where a member is null, NaN or infinite, or a variance or scale not above zero."
OnBad = Annotated[str, typer.Option(metavar="error|null|drop", help=ON_BAD)]
KeepMembers = Annotated[bool, typer.Option("--keep-members", help="Keep the member columns in the output.")]
Compression = Annotated[str, typer.Option(metavar="CODEC", help=f"Of Parquet: {', '.join(COMPRESSIONS)}.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep the parts that an earlier run finished.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Batches to compute at a time. By default one per core, at most 4.")]
PartRows = Annotated[int | None, typer.Option(min=1, help="Cut larger Parquet files into parts of about this many rows.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, or its file; its workers write the parts.")]
EXIT_CODES = (
    "Exit codes: 0 done; 1 bad rows, or a file that cannot be read or written; 2 wrong usage, or existing "
    "output; 130 interrupted. No half-written file remains."
)


@command(-40, "Add measures of uncertainty to every row of files.", epilog=EXIT_CODES)
def score(
    *,
    inputs: Inputs,
    output: Output,
    measures: Measures = None,
    mean_columns: MeanColumns = None,
    variance_columns: VarianceColumns = None,
    scale_columns: ScaleColumns = None,
    weights: Weights = None,
    on_bad: OnBad = ScoreOptions.on_bad,
    keep_members: KeepMembers = ScoreOptions.keep_members,
    compression: Compression = ScoreOptions.compression,
    resume: Resume = False,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
    threads: Threads = None,
    part_rows: PartRows = None,
    dask: Dask = None,
) -> None:
    """Add measures to every row of Parquet and CSV files of any size, or of NPZ files."""
    from uqprism.files import score as run  # `score` is the command here

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


@command(100, "List the measures, with their labels in the paper.")
def catalogue(
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="A rule to list the measures of; may be repeated. By default the paper's four."),
    ] = None,
) -> None:
    """List the measures with their labels in the paper, in both orders of its indices."""
    from uqprism import measures
    from uqprism.rules import PAPER

    found = measures.catalogue(rule or PAPER)
    print(f"{'measure':<40}{'paper, by ' + measures.ORDERS[0]:<30}by {measures.ORDERS[1]}")
    for measure in found:
        first, second = (measure.paper_label(order=order) for order in measures.ORDERS)
        print(f"{measure.name:<40}{first:<30}{second}")

"""Score files of any size, and list the measures to score them with."""

from __future__ import annotations

from typing import Annotated

import typer

from uqprism.cli.application import (
    Overwrite,
    Progress,
    Quiet,
    command,
    exit_codes,
    interruptible,
    measures_option,
    say,
    shows_bar,
    with_columns,
)
from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, BadFilesError, BadRowsError, ExitCode
from uqprism.files.options import COMPRESSIONS, ScoreOptions, Tolerance
from uqprism.support.logs import log_to

Inputs = Annotated[
    list[str], typer.Argument(metavar="IN", help="Parquet, CSV (also .csv.gz) or NPZ files, folders or glob patterns.")
]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet, .csv or .npz file, or a folder.")]
Measures = Annotated[list[str] | None, measures_option("usual")]
Weights = Annotated[
    str | None, typer.Option(metavar="W,W,...", help="One per member, with sum one. By default those in the file, or equal.")
]
ON_BAD = "What to do with rows where a member is null, NaN or infinite, or a variance or scale not above zero."
OnBad = Annotated[str, typer.Option(metavar="error|null|drop", help=ON_BAD)]
KeepMembers = Annotated[bool, typer.Option("--keep-members", help="Keep the member columns in the output.")]
Compression = Annotated[str, typer.Option(metavar="CODEC", help=f"Compression of Parquet: {', '.join(COMPRESSIONS)}.")]
RESUME = (
    "Keep the parts that an earlier run made from inputs that have not changed since; score changed and new inputs; remove the "
    "parts of inputs that are gone."
)
Resume = Annotated[bool, typer.Option("--resume", help=RESUME)]
ON_BAD_FILE = (
    "What to do with inputs that cannot be read, lack the columns of the others, change while they are read, or have bad rows "
    "under --on-bad error: name them all at the end, with an exit code of its own; skip them, which is named too but no "
    "failure; fail at the first."
)
OnBadFile = Annotated[str, typer.Option(metavar="name|skip|fail", help=ON_BAD_FILE)]
MAX_BAD = "How many bad rows to accept, such as 100, or which share, such as 1% or 0.01. With --on-bad null or drop."
MaxBad = Annotated[str | None, typer.Option(metavar="N|SHARE", help=MAX_BAD)]
SUMMARY = "Write rows, bad files, parts, seconds, options and exit code as JSON, also if the run fails."
Summary = Annotated[str | None, typer.Option(metavar="FILE.json", help=SUMMARY)]
LogFile = Annotated[str | None, typer.Option(metavar="FILE", help="Append each step with its time (UTC) to this file.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Batches to compute at a time. By default one per core, at most 4.")]
PartRows = Annotated[int | None, typer.Option(min=1, help="Cut larger Parquet files into parts of about this many rows.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, or its file; its workers write the parts.")]
EXIT_CODES = f"{exit_codes(ExitCode.ALARM)} No half-written file remains."


@command(-40, "Add measures of uncertainty to every row of files.", epilog=EXIT_CODES)
@with_columns
def score(
    *,
    inputs: Inputs,
    output: Output,
    measures: Measures = None,
    columns: Columns,
    weights: Weights = None,
    on_bad: OnBad = ScoreOptions.on_bad,
    on_bad_file: OnBadFile = Tolerance.on_bad_file,
    max_bad: MaxBad = None,
    keep_members: KeepMembers = ScoreOptions.keep_members,
    compression: Compression = ScoreOptions.compression,
    resume: Resume = False,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
    threads: Threads = None,
    part_rows: PartRows = None,
    dask: Dask = None,
    summary: Summary = None,
    log_file: LogFile = None,
) -> None:
    """Add measures to every row of Parquet and CSV files of any size, or of NPZ files."""
    from uqprism.files import ScoreReport
    from uqprism.files import score as run  # `score` is the command here
    from uqprism.files.outcome import bad_files_text, check_log_file

    def show(report: ScoreReport) -> None:
        if not report.locked:
            say(f"output {output}: its file system has no locks, so start no second run into it")
        if not quiet:
            print(report, flush=True)  # before what follows on standard error

    if log_file is not None:
        check_log_file(log_file, output)
    with interruptible("parts that are finished stay, continue with --resume"), log_to(log_file):
        try:
            report = run(
                inputs,
                output,
                measures=measures,
                **columns.arguments,
                weights=numbers(weights),
                on_bad=on_bad,  # type: ignore[arg-type]
                keep_members=keep_members,
                compression=compression,
                resume=resume,
                overwrite=overwrite,
                progress=shows_bar(progress, quiet),
                threads=threads,
                part_rows=part_rows,
                dask=dask,
                on_bad_file=on_bad_file,  # type: ignore[arg-type]
                max_bad=max_bad,
                summary=summary,
            )
        except (BadFilesError, BadRowsError) as error:
            show(error.report)
            raise
    show(report)
    if report.bad_files:
        say(bad_files_text(report))


@command(-35, "Print what files of predictions contain.")
@with_columns
def inspect(*, inputs: Inputs, columns: Columns) -> None:
    """Print what files of predictions contain, as all other commands read them."""
    from uqprism.files.inspection import inspected
    from uqprism.files.paths import find_files

    with interruptible(""):
        print("\n\n".join(str(inspected(span, columns)) for span in find_files(inputs)))


def numbers(text: str | None) -> list[float] | None:
    """The weights that the option `--weights` gives."""
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

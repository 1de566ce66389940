"""The command line: thin commands over the library."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from uqprism import __version__
from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.experiments import summaries

app = typer.Typer(
    name="uqprism",
    help="Split the uncertainty of a regression ensemble into noise and what more data would remove.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"uqprism {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Split the uncertainty of a regression ensemble into noise and what more data would remove."""


@app.command()
def demo() -> None:
    """Split the uncertainty of an embedded ensemble under all four rules, and say what it means."""
    from uqprism import demo as example

    print("Five models predict the minutes of four deliveries.")
    print("Expected penalty (total) = noise + what more data would remove:\n")
    print(f"{'rule':<15}{'trip':<26}{'total':>9}{'noise':>9}{'removable':>11}")
    previous = ""
    for finding in example.findings():
        rule = "" if finding.rule == previous else finding.rule
        previous = finding.rule
        values = f"{finding.total:>9.3f}{finding.bayes:>9.3f}{finding.excess:>11.3f}"
        print(f"{rule:<15}{finding.trip:<26}{values}")
    print("\n" + textwrap.fill(example.meaning(), width=70))


@app.command()
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


Inputs = Annotated[list[str], typer.Argument(metavar="IN...", help="Parquet, CSV or NPZ files, folders or glob patterns.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet, .csv or .npz file, or a folder.")]
MEASURES = (
    "A measure, a pattern such as 'crps.*', or all; may be repeated or have commas. By default total, bayes and excess with "
    "members in both roles, under four rules."
)
Measures = Annotated[list[str] | None, typer.Option(metavar="NAME", help=MEASURES)]
MeanColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of means, such as mu{i} or a,b,c. By default mean_{i}.")
]
VarianceColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of variances, likewise. By default variance_{i}.")
]
ScaleColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of standard deviations, likewise. By default scale_{i}.")
]
Weights = Annotated[str | None, typer.Option(metavar="W,W,...", help="One per member, summing to one. By default equal.")]
ON_BAD = "What to do with rows where a member is null, NaN or infinite, or a variance or scale not above zero."
OnBad = Annotated[str, typer.Option(metavar="error|null|drop", help=ON_BAD)]
KeepMembers = Annotated[bool, typer.Option("--keep-members", help="Keep the member columns in the output.")]
Compression = Annotated[str, typer.Option(metavar="CODEC", help="Of Parquet: snappy, zstd, lz4, gzip, brotli or none.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep the parts that an earlier run finished.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Progress = Annotated[bool, typer.Option("--progress", help="Draw a progress bar also where there is no terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Batches to compute at a time. By default one per core, at most 4.")]
PartRows = Annotated[int | None, typer.Option(min=1, help="Cut larger Parquet files into parts of about so many rows.")]
Dask = Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, or its file, to spread the parts over.")]
EXIT_CODES = (
    "Exit codes: 0 done; 1 bad rows, or a file that cannot be read or written; 2 wrong usage, or an output that is there "
    "already; 130 interrupted. Nothing half-written is left behind."
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
    """Add measures to every row of files of any size, in bounded memory."""
    from uqprism.scale import score as run

    with _interruptible("parts that are finished stay, continue with --resume"):
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


EXPERIMENTS = "\b\nNAME is one of:\n" + "\n".join(
    textwrap.fill(f"{name}: {summary}", 76, initial_indent="  ", subsequent_indent="    ")
    for name, summary in summaries().items()
)
WROTE = (
    "Into the folder go report.md, result.json with settings, seeds, versions and numbers, the pictures, and the arrays they "
    "show. A folder with a finished result of the same settings is read, not run again; of other settings, it is refused. Exit "
    "codes: 0 done, whether or not the paper's statements hold; 1 a file that cannot be written, or a package that is missing; 2 "
    "wrong usage; 130 interrupted."
)
Name = Annotated[str, typer.Argument(metavar="NAME|all", help="What to reproduce; see below.")]
Preset = Annotated[str, typer.Option(metavar="quick|paper", help="Minutes at most, or the size of the paper.")]
Folder = Annotated[str | None, typer.Option(metavar="DIR", help="By default runs/NAME; with all, DIR/NAME for each.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Of data and networks; by default the preset's.")]


@app.command(epilog=f"{EXPERIMENTS}\n\n{WROTE}")
def reproduce(
    *,
    name: Name,
    preset: Preset = "quick",
    out: Folder = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper, and hold its statements against the numbers that come out."""
    from uqprism.experiments import reproduce as run

    chosen = list(summaries()) if name == "all" else [name]
    with _interruptible("finished trainings stay, the same command goes on from there"):
        for each in chosen:
            folder = os.path.join(out or "runs", each) if name == "all" else out
            shown = not quiet and (progress or sys.stderr.isatty())
            outcome = run(each, preset=preset, out=folder, seed=seed, overwrite=overwrite, progress=shown)
            if not quiet:
                print(outcome)


@contextmanager
def _interruptible(advice: str) -> Iterator[None]:
    """Ctrl-C and the end a batch system sets leave as an error would, temporary files removed, with their own exit codes."""

    def terminate(*_: Any) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except UnknownNameError as error:  # of a measure or an experiment, so an argument was wrong
        raise ArgumentError(str(error)) from None
    except KeyboardInterrupt:
        print(f"uqprism: interrupted; {advice}", file=sys.stderr)
        raise typer.Exit(130) from None


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(f"weights (--weights) must be numbers with commas between, got {text!r}") from None

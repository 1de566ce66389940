"""A page that shows how uncertain predictions are, and why; and how to cite it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from uqprism.cli.application import Quiet, app, interruptible
from uqprism.cli.columns import (
    ErrorColumn,
    ErrorKind,
    File,
    MeanColumns,
    OnBad,
    Outside,
    Prediction,
    Resamples,
    ScaleColumns,
    Seed,
    Target,
    VarianceColumns,
)
from uqprism.errors import ArgumentError, FileError
from uqprism.support.optional import require
from uqprism.tasks.resampling import RESAMPLES

MEASURES = (
    "Measures to compare, or patterns such as 'crps.*', or all; may be repeated or have commas. By default total, bayes and "
    "excess with members in both roles, under four rules."
)
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page to write, an .html file.")]
Measures = Annotated[list[str] | None, typer.Option(metavar="NAME", help=MEASURES)]
Rule = Annotated[str, typer.Option(metavar="NAME", help="The rule to split the uncertainty by.")]
Unit = Annotated[str, typer.Option(metavar="WORD", help="Of the target, such as minutes.")]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Of the page. By default the name of the file.")]
SHOW = "Columns to tell rows apart by, with commas between. By default the first four that are nothing else."
Show = Annotated[str | None, typer.Option(metavar="COLUMN,...", help=SHOW)]
CONTENTS = (
    "The page is one file that needs no network. It has a summary in sentences, the two kinds of uncertainty of each row, and "
    "the rows with the most of each; with --target (or --error-column) whether the uncertainty finds the errors; with "
    "--target also calibration; with --ood how well points from outside are told apart."
)


@app.command(epilog=CONTENTS)
def report(
    *,
    file: File,
    output: Output = "report.html",
    target: Target = None,
    prediction: Prediction = None,
    error: ErrorKind = "squared",
    error_column: ErrorColumn = None,
    ood: Outside = None,
    unit: Unit = "",
    title: Title = None,
    show: Show = None,
    rule: Rule = "crps",
    measures: Measures = None,
    mean_columns: MeanColumns = None,
    variance_columns: VarianceColumns = None,
    scale_columns: ScaleColumns = None,
    on_bad: OnBad = "error",
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows how uncertain predictions are and why, for people who never read the paper."""
    _check(output)
    if error_column and (target or prediction):
        raise ArgumentError("give --error-column, or --target (with --prediction), not both")
    from uqprism.ensemble.columns import Columns
    from uqprism.files.points import Points
    from uqprism.report.page import write_page
    from uqprism.report.readers import read_subject

    def progress(step: str) -> None:
        if not quiet:
            print(f"uqprism: {step} ...", file=sys.stderr)

    with interruptible("nothing was written"):
        progress("reading")
        subject = read_subject(
            Points.of(file, Columns(mean_columns, variance_columns, scale_columns), on_bad),
            target=target,
            prediction=prediction,
            error=error_column or (error if target else None),
            ood=ood,
            measures=measures,
            rule=rule,
            unit=unit,
            title=title,
            show=[name.strip() for name in show.split(",")] if show else None,
        )
        page = write_page(subject, output, resamples=resamples, seed=seed, command=_command(), progress=progress)
    if not quiet:
        if "left_out" in page.sentences:
            print(f"uqprism: {page.sentences['left_out']}", file=sys.stderr)
        print(f"{page.summary()}\n\nThe report is in {page}")


def _check(output: str) -> None:
    """Refuse what cannot be written or drawn before any work is done."""
    if Path(output).suffix not in {".html", ".htm"}:
        raise ArgumentError(f"--output must end in .html, got {output!r}")
    if Path(output).is_dir() or not Path(output).absolute().parent.is_dir():
        what = "is a folder" if Path(output).is_dir() else "lies in a folder that does not exist"
        raise FileError(f"--output {output}: {what}; name a file in a folder that is there")
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report")


def _command() -> str:
    """What was typed, without the folders above the program."""
    return shlex.join(["uqprism", *sys.argv[1:]])


@app.command()
def cite() -> None:
    """Print how to cite the paper and this package, as BibTeX."""
    from uqprism.support.citation import citation

    print(citation(), end="")

"""Pages for people: the report, and the local page of `uqprism app`."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from typing import Annotated

import typer

from uqprism.cli.application import (
    ErrorColumn,
    ErrorKind,
    File,
    OnBad,
    Ood,
    Prediction,
    Quiet,
    Resamples,
    Seed,
    Target,
    command,
    default_of,
    interruptible,
    measures_option,
    say,
    with_columns,
)
from uqprism.cli.output import check_place
from uqprism.ensemble.columns import Columns
from uqprism.ensemble.origin import KINDS
from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.support.storage import PAGES, check_ending
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.resampling import RESAMPLES

Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page to write, an .html file.")]
Measures = Annotated[list[str] | None, measures_option("usual", columns=True)]
Rule = Annotated[str, typer.Option(metavar="NAME", help="The rule to split the uncertainty by.")]
UNIT = "The unit of the target, such as minutes or $. By default the one in its column's name, such as price ($)."
Unit = Annotated[str | None, typer.Option(metavar="WORD", help=UNIT)]
ID = "The column that names the rows. By default one such as id, name or house_id whose values are all different."
Id = Annotated[str | None, typer.Option(metavar="COLUMN", help=ID)]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the page. By default the name of the file.")]
SHOW = "Further columns to show beside rows, with commas between. By default the first four with no other use."
Show = Annotated[str | None, typer.Option(metavar="COLUMN,...", help=SHOW)]
AUDIT = "What uqprism audit --save wrote for such models on such data; the page then says what more data did there."
MODELS = "What the members are, where neither the file nor one beside it says so; decides what the page says of more data."
Models = Annotated[str | None, typer.Option(metavar="|".join(list(KINDS)[1:]), help=MODELS)]
AuditFile = Annotated[str | None, typer.Option("--audit", metavar="FILE", help=AUDIT)]
CONTENTS = (
    "The page is one file that needs no network. It begins with one sentence, one picture and three things to do; then follow "
    "noise and disagreement of each row, and the rows with the most of each; with --target (or --error-column) whether the "
    "uncertainty finds the errors; with "
    "--target also calibration; with --ood how well unfamiliar inputs are noticed."
)
PREDICTIONS = "A Parquet, CSV (also .csv.gz) or NPZ file with columns of members, shown first. By default an example."
Predictions = Annotated[str | None, typer.Argument(metavar="FILE", help=PREDICTIONS)]
ERROR = default_of(prediction_error, "kind")
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="By default the first free one from 8501 on.")]
Address = Annotated[
    str | None,
    typer.Option(help="Serve other machines too, on this network address or, with 0.0.0.0, on all; no password protects it."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address only.")]


@command(-30, "Write a page on how uncertain predictions are, and why.", epilog=CONTENTS)
@with_columns
def report(
    *,
    file: File,
    output: Output = "report.html",
    target: Target = None,
    prediction: Prediction = None,
    error: ErrorKind = ERROR,
    error_column: ErrorColumn = None,
    ood: Ood = None,
    id: Id = None,
    unit: Unit = None,
    title: Title = None,
    show: Show = None,
    rule: Rule = "crps",
    measures: Measures = None,
    columns: Columns,
    on_bad: OnBad = "error",
    audit: AuditFile = None,
    models: Models = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write a page that shows how uncertain predictions are and why, for people who never read the paper."""
    _check(output)
    if error_column and (target or prediction):
        raise ArgumentError("give --error-column, or --target (with --prediction), not both")
    # Here, because they import pyarrow, which other commands do without.
    from uqprism.files.points import Points
    from uqprism.report.page import write_page
    from uqprism.report.readers import read_subject

    def progress(step: str) -> None:
        if not quiet:
            say(f"{step} ...")  # standard output has the summary alone

    with interruptible("nothing was written"):
        progress("reading")
        subject = read_subject(
            Points.of(file, columns, on_bad),
            target=target,
            prediction=prediction,
            error=error_column or (error if target else None),  # the kind has a default, also without a target
            ood=ood,
            measures=measures,
            rule=rule,
            unit=unit,
            title=title,
            id=id,
            show=[name.strip() for name in show.split(",")] if show else None,
            audit=audit,
            models=models,
        )
        page = write_page(subject, output, resamples=resamples, seed=seed, command=_command(), progress=progress)
    if not quiet:
        if "left_out" in page.sentences:
            say(page.sentences["left_out"])
        print(f"{page.summary()}\n\nThe report is in {page}")


def _check(output: str) -> None:
    """Refuse what cannot be written or drawn before any work is done."""
    check_ending(output, PAGES, "--output")
    check_place("--output", output)
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report")


def _command() -> str:
    """What was typed, without the folders above the program."""
    # Quoted, so that it can be copied from the page.
    return shlex.join(["uqprism", *sys.argv[1:]])


@command(-20, "Open a local page to drop a file of predictions on.")
def app(*, file: Predictions = None, port: Port = None, address: Address = None, no_browser: NoBrowser = False) -> None:
    """Open a local page: drop a file of predictions, see its uncertainty split, flag rows, download the scores."""
    require("streamlit", extra="app")
    from uqprism.app.launch import serve

    with interruptible("the page is closed"):
        # While the server runs, a pipe would hold the address back.
        serve(file, port=port, address=address, browser=not no_browser, say=_announce)


def _announce(text: str) -> None:
    with suppress(OSError):  # the page is there, whether or not its address can be printed
        print(text, flush=True)

"""Flag the rows of files that people should look at first."""

from __future__ import annotations

from typing import Annotated

import typer

from uqprism.cli.application import (
    Overwrite,
    Progress,
    Quiet,
    command,
    interruptible,
    shows_bar,
    with_columns,
)
from uqprism.cli.score import Inputs, KeepMembers, OnBad, Weights, numbers
from uqprism.ensemble.columns import Columns
from uqprism.files.options import ScoreOptions
from uqprism.tasks.flagging import SHARE

MEASURE = (
    "The uncertainty to flag by: a measure, or a column of numbers. By default the one that `uqprism recommend` names first."
)
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet or .csv file.")]
Share = Annotated[float | None, typer.Option(metavar="SHARE", help=f"Flag this share of the rows. By default {SHARE}.")]
Above = Annotated[float | None, typer.Option(metavar="T", help="Flag rows with this uncertainty or more.")]
Budget = Annotated[int | None, typer.Option(metavar="N", help="Flag this number of rows.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help=MEASURE)]
Only = Annotated[bool, typer.Option("--only", help="Write the flagged rows alone.")]


@command(-34, "Flag the most uncertain rows of files, and say why they are.")
@with_columns
def flag(
    *,
    inputs: Inputs,
    output: Output,
    share: Share = None,
    above: Above = None,
    budget: Budget = None,
    measure: Name = None,
    only: Only = False,
    columns: Columns,
    weights: Weights = None,
    on_bad: OnBad = ScoreOptions.on_bad,
    keep_members: KeepMembers = False,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Add columns `flagged` and `reason` to every row of files of any size; files of members are scored first."""
    from uqprism.files import flag as run

    with interruptible("nothing was written"):
        report = run(
            inputs,
            output,
            share=share,
            above=above,
            budget=budget,
            measure=measure,
            only=only,
            **columns.arguments,
            weights=numbers(weights),
            on_bad=on_bad,  # type: ignore[arg-type]
            keep_members=keep_members,
            overwrite=overwrite,
            progress=shows_bar(progress, quiet),
        )
    if not quiet:
        print(report)

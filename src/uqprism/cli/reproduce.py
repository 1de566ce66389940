"""Reproduce the paper."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Annotated

import typer

from uqprism.cli.application import Overwrite, Progress, Quiet, app, interruptible
from uqprism.experiments import summaries

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
    with interruptible("finished trainings stay, the same command goes on from there"):
        for each in chosen:
            folder = os.path.join(out or "runs", each) if name == "all" else out
            shown = not quiet and (progress or sys.stderr.isatty())
            outcome = run(each, preset=preset, out=folder, seed=seed, overwrite=overwrite, progress=shown)
            if not quiet:
                print(outcome)

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
    "Into the folder go report.md, result.json with settings, seeds, versions and numbers, the pictures and the arrays they "
    "show, the tables as Parquet, and _work with what each job made. A run that was stopped, however, goes on from there. A "
    "folder with a finished result of the same settings is read, not run again; of other settings, or of other data files than "
    "are there now, it is refused. Exit codes: 0 done, whether or not the paper's statements hold; 1 a job that failed, a file "
    "that cannot be read or written, data files that are others than before, or a package that is "
    "missing; 2 wrong usage; 130 interrupted."
)
Name = Annotated[str, typer.Argument(metavar="NAME|all", help="What to reproduce; see below.")]
Preset = Annotated[str, typer.Option(metavar="quick|paper", help="Minutes at most, or the size of the paper.")]
FOLDER = "By default runs/NAME, or runs/PRESET/NAME for presets other than quick; with all, DIR/NAME for each."
Folder = Annotated[str | None, typer.Option(metavar="DIR", help=FOLDER)]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Of data and networks; by default the preset's.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Processes to work at a time, each on a part of the experiment.")]
Data = Annotated[str | None, typer.Option(metavar="ROOT", help="The folder of the data sets; by default $UQPRISM_DATA.")]
DRY_RUN = "Print the jobs, which are done, about how long the rest takes, and which data files are missing."
DryRun = Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)]


@app.command(epilog=f"{EXPERIMENTS}\n\n{WROTE}")
def reproduce(
    *,
    name: Name,
    preset: Preset = "quick",
    out: Folder = None,
    seed: Seed = None,
    jobs: Jobs = 1,
    data: Data = None,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper, and hold its statements against the numbers that come out."""
    from uqprism import experiments

    chosen = list(summaries()) if name == "all" else [name]
    with interruptible("finished jobs stay, the same command goes on from there"):
        for each in chosen:
            folder = os.path.join(out or experiments.default_folder(preset), each) if name == "all" else out
            if dry_run:
                print(experiments.plan(each, preset=preset, out=folder, seed=seed, jobs=jobs, data=data))
                continue
            shown = not quiet and (progress or sys.stderr.isatty())
            outcome = experiments.reproduce(
                each, preset=preset, out=folder, seed=seed, jobs=jobs, data=data, overwrite=overwrite, progress=shown
            )
            if not quiet:
                print(outcome)

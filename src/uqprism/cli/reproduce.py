"""Reproduce the paper, and cite it."""

from __future__ import annotations

import os
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from uqprism.cli.application import Overwrite, Progress, Quiet, command, interruptible, say, shows_bar
from uqprism.errors import ArgumentError, UnknownNameError, UqprismError
from uqprism.support.storage import in_words

WROTE = (
    "The folder receives report.md, result.json with settings, seeds, versions and numbers, the pictures and their arrays, the "
    "tables as Parquet, and the results of each job in _work. A run that was stopped or killed continues from there, and ends "
    "with the numbers of one that was not, to the bit. A folder with a finished result of the same settings is read, not run "
    "again; one of other settings, or made from other data files, is refused. With all, an experiment that fails is named and "
    "the others are run. Exit codes: 0 done, whether or not the paper's statements hold; 1 a failed job, a file that cannot be "
    "read or written, changed data files, or a missing package; 2 wrong usage; 130 interrupted."
)
Name = Annotated[str, typer.Argument(metavar="NAME|all", help="What to reproduce; see below.")]
PRESET = "quick takes minutes at most, paper has the size of the paper; some experiments have others, see below."
Preset = Annotated[str, typer.Option(metavar="quick|paper|...", help=PRESET)]
FOLDER = "By default runs/NAME, or runs/PRESET/NAME for presets other than quick; with all, DIR/NAME for each."
Folder = Annotated[str | None, typer.Option("--output", "-o", "--out", metavar="DIR", help=FOLDER)]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of data and networks; by default the preset's.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Jobs to run at a time, each in a process of its own.")]
Data = Annotated[str | None, typer.Option(metavar="ROOT", help="The folder of the data sets; by default $UQPRISM_DATA.")]
DRY_RUN = "Print the jobs, which of them are done, about how long the others take, and which data files are missing."
DryRun = Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)]


class Listing(TyperCommand):
    """A command whose help ends with the experiments; listing their presets imports them, so the text is made on demand."""

    @staticmethod
    def epilog_text() -> str:
        """The experiments with their presets, and what a run writes."""
        from uqprism import paper

        presets = paper.presets()
        lines = [
            textwrap.fill(f"{name} ({', '.join(presets[name])}): {summary}", 76, initial_indent="  ", subsequent_indent="    ")
            for name, summary in paper.summaries().items()
        ]
        # \b: Click keeps the line breaks.
        return "\n".join(["\b", "NAME is one of these, with its presets:", *lines, "", WROTE])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the experiments under the options."""
        self.epilog = f"{self.epilog}\n\n{self.epilog_text()}"
        super().format_epilog(ctx, formatter)


@command(110, "Run an experiment of the paper, check its statements.", cls=Listing)
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
    """Run an experiment of the paper, and check the paper's statements with its numbers."""
    from uqprism import paper
    from uqprism.paper.jobs import total

    settings: Any = {"preset": preset, "seed": seed, "jobs": jobs, "data": data}
    running: Any = {"overwrite": overwrite, "progress": shows_bar(progress, quiet)}
    several = name == "all"
    with interruptible("finished jobs stay, the same command continues from there"):
        folders = _folders(out, settings) if several else {name: out}
        failures, plans = Failures(len(folders)), list[Any]()
        for each, folder in folders.items():
            with failures.caught(each) if several else nullcontext():  # alone, it fails as other commands do
                if dry_run:
                    # Jobs that several experiments share are counted once.
                    plans.append(paper.plan(each, out=folder, **settings).following(plans))
                    print(plans[-1])
                    continue
                outcome = paper.reproduce(each, out=folder, **settings, **running)
                if not quiet:
                    print(outcome)
        if several and plans:
            print(total(plans))
        failures.conclude()


def _folders(out: str | None, settings: Any) -> dict[str, str | None]:
    """The experiments that have the preset, each with its folder; wrong settings are refused before any of them is run."""
    from uqprism import paper
    from uqprism.paper.runner import Reproduction

    preset = settings["preset"]
    chosen, lacking = paper.having(preset)
    if lacking:
        say(f"no preset {preset!r}, so left out: {', '.join(lacking)}")
    folders = {each: os.path.join(out or paper.default_folder(preset), each) for each in chosen}
    for each, folder in folders.items():
        Reproduction.of(paper.get(each), out=folder, **settings)  # only to raise what it refuses
    return dict(folders)


@dataclass
class Failures:
    """The failed experiments of a series, with the exit code that each would have alone."""

    count: int
    codes: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def caught(self, name: str) -> Iterator[None]:
        """Print a failure of this experiment, and go on."""
        try:
            yield
        except UqprismError as error:
            say(f"{name}: {error}")
            self.codes[name] = 2 if isinstance(error, ArgumentError | UnknownNameError) else 1
        except (BrokenPipeError, typer.Exit, typer.Abort):  # of the command, not of the experiment
            raise
        except OSError as error:
            say(f"{name}: {in_words(error)}")
            self.codes[name] = 1
        except Exception:
            # No error of this package: the traceback says where it comes from.
            say(f"{name}: {traceback.format_exc().rstrip()}")
            self.codes[name] = 1

    def conclude(self) -> None:
        """Name the failed experiments, and exit with their code: 2 if all were wrong usage."""
        if self.codes:
            names = ", ".join(self.codes)
            say(f"{len(self.codes)} of {self.count} experiments failed: {names}")
            raise typer.Exit(min(self.codes.values()))


@command(120, "Print how to cite the paper and this package.")
def cite() -> None:
    """Print how to cite the paper and this package, as BibTeX."""
    from uqprism.support.citation import citation

    print(citation(), end="")

"""The application that all commands belong to, and how they end when they are stopped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.support.versions import __version__
from uqprism.tasks.task import all_tasks

app = typer.Typer(
    name="uqprism",
    help="Split the uncertainty of a regression ensemble into noise and what more data would remove.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


# In the order in which people meet them, each in a line of a terminal; commands that are not here come last.
OVERVIEW = {
    "demo": "See it at work: train an ensemble, write a report on it.",
    "score": "Add measures of uncertainty to every row of files.",
    "report": "Write a page on how uncertain predictions are, and why.",
    "app": "Open a local page to drop a file of predictions on.",
    "recommend": "Say which measure the paper advises for a task.",
    **{task.command: task.summary for task in all_tasks()},
    "catalogue": "List the measures, with their labels in the paper.",
    "reproduce": "Run an experiment of the paper, check its statements.",
    "cite": "Print how to cite the paper and this package.",
}


def put_in_order() -> None:
    """List the commands as `OVERVIEW` does."""
    names = list(OVERVIEW)

    def place(command: Any) -> int:
        name = command.name or command.callback.__name__
        command.short_help = OVERVIEW.get(name)
        return names.index(name) if name in names else len(names)

    app.registered_commands.sort(key=place)


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


Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Progress = Annotated[bool, typer.Option("--progress", help="Draw a progress bar also where there is no terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
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

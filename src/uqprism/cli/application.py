"""The application that all commands belong to, and how they end when they are stopped."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from uqprism import __version__
from uqprism.errors import ArgumentError, UnknownNameError

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

"""The application that all commands belong to, and the options that several of them have."""

from __future__ import annotations

import inspect
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Annotated, Any, TypeVar, get_args

import typer

from uqprism.cli.examples import listed
from uqprism.ensemble.columns import Columns
from uqprism.errors import ArgumentError, ExitCode, UnknownNameError
from uqprism.measures import select_measures
from uqprism.support.versions import __version__
from uqprism.tasks.prediction_error import Kind as ErrorKinds

Function = TypeVar("Function", bound=Callable[..., Any])

app = typer.Typer(
    name="uqprism", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
_PLACES: dict[str, int] = {}


def command(place: int, summary: str, *, name: str | None = None, **how: Any) -> Callable[[Function], Function]:
    """Add a command.

    Args:
        place: where it stands in the list of commands; equal ones by name. Tasks have 0 to 99.
        summary: its line in the list.
        name: by default the function's.
        how: further arguments of Typer's `command`.
    """

    def add(function: Function) -> Function:
        called = name or function.__name__
        _PLACES[called] = place

        @wraps(function)
        def guarded(*given: Any, **named: Any) -> Any:
            with ended_by_signals():
                return function(*given, **named)

        epilog = "\n\n".join(filter(None, [listed(called), how.pop("epilog", "")]))
        app.command(called, short_help=summary, epilog=epilog, **how)(guarded)
        # Typer lists commands in the order of imports.
        app.registered_commands.sort(key=lambda each: (_PLACES[str(each.name)], str(each.name)))
        return function

    return add


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
    """Split the uncertainty of a regression ensemble into noise and disagreement, which more data could reduce."""


def say(text: str) -> None:
    """Print a line on standard error, if that can be written to; results alone go to standard output."""
    with suppress(OSError):  # work does not fail for a lost line
        print(f"uqprism: {text}", file=sys.stderr)


def shows_bar(progress: bool, quiet: bool) -> bool:
    """Whether to draw a progress bar: on a terminal, and elsewhere, such as in a log file, only if it was asked for."""
    return not quiet and (progress or sys.stderr.isatty())


@contextmanager
def ended_by_signals(advice: str = "") -> Iterator[None]:
    """On Ctrl-C, SIGTERM or SIGHUP, remove temporary files as after an error, and exit with 128 and the signal's number."""

    def terminate(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    # By default they end the process without any `finally`. `nohup` ignores SIGHUP, and so it stays.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows lacks one
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, terminate)
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; {advice}" if advice else "interrupted")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """As `ended_by_signals`, where names of measures and experiments are arguments; Ctrl-C prints the advice."""
    with ended_by_signals(advice):
        try:
            yield
        except UnknownNameError as error:  # so an argument was wrong
            raise ArgumentError(str(error)) from None


def exit_codes(*left_out: ExitCode, done: str = ExitCode.DONE.meaning) -> str:
    """What a command may end with, as a sentence: all codes but these."""
    told = {code: re.sub("^`.*?: ", "", code.meaning).replace("`", "") for code in ExitCode if code not in left_out}
    return f"Exit codes: {'; '.join(f'{code.value} {text}' for code, text in (told | {ExitCode.DONE: done}).items())}."


# Options of several commands -----------------------------------------------------------------------------------------


def default_of(function: Callable[..., Any], argument: str) -> Any:
    """The default of an argument in Python."""
    return inspect.signature(function).parameters[argument].default  # so that shell and Python cannot differ


def with_columns(function: Function) -> Function:
    """Let a command that takes `columns`, an `ensemble.columns.Columns`, have the options of `COLUMNS` in its place."""
    parameters = []
    signature = inspect.signature(function, eval_str=True)
    for each in signature.parameters.values():
        named = [each.replace(name=name, annotation=kind, default=None) for name, kind in COLUMNS.items()]
        parameters += named if each.name == "columns" else [each]

    @wraps(function)
    def called(**given: Any) -> Any:
        others = {name: value for name, value in given.items() if name not in COLUMNS}
        return function(**others, columns=columns_of(given))

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def columns_of(given: dict[str, Any]) -> Columns:
    """Which columns hold the members, by the options of `COLUMNS`."""
    return Columns(*(given[name] for name in COLUMNS))


def measures_option(default: str, *, columns: bool = False) -> Any:
    """The option `--measures`, of type `list[str] | None`.

    Args:
        default: the set that the command takes by default, `all` or `usual`.
        columns: whether other columns of the file can be named too.
    """
    all_measures, usual = (len(select_measures(name)) for name in ("all", "usual"))  # counted, so that the help stays true
    text = (
        f"A measure{', another column' if columns else ''}, a pattern such as 'crps.*', 'all' ({all_measures}) or 'usual' "
        f"({usual}: total, bayes and excess with members in both roles); may be repeated or have commas. By default {default}."
    )
    return typer.Option(metavar="NAME", help=text)


def _columns(what: str, usual: str) -> Any:
    text = f"Columns of {what}: a pattern such as my_{usual}_{{i}}, or names with commas. By default {usual}_{{i}}."
    return typer.Option(metavar="PATTERN", help=text)


FILE = "A Parquet, CSV (also .csv.gz) or NPZ file, a folder or a pattern, with columns of measures (uqprism score) or of members."
OOD = "Files of predictions for unfamiliar inputs, each a data set of its own."
ON_BAD = "What to do with rows that lack a number or have bad members."
ERROR = "Which error to compute from the target; nll and crps need members."

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
Progress = Annotated[bool, typer.Option("--progress", help="Draw a progress bar even without a terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary.")]
File = Annotated[str, typer.Argument(metavar="FILE", help=FILE)]
MeanColumns = Annotated[str | None, _columns("means", "mean")]
VarianceColumns = Annotated[str | None, _columns("variances", "variance")]
ScaleColumns = Annotated[str | None, _columns("standard deviations", "scale")]
FAMILY = (
    "The family of the members, such as laplace, perhaps with options, as in quantiles:tails=gaussian. By default it is "
    "recognised by the columns."
)
Family = Annotated[str | None, typer.Option(metavar="NAME", help=FAMILY)]
COLUMNS = {"mean_columns": MeanColumns, "variance_columns": VarianceColumns, "scale_columns": ScaleColumns, "family": Family}
OnBad = Annotated[str, typer.Option(metavar="error|drop", help=ON_BAD)]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The target, to compute errors from.")]
Prediction = Annotated[str | None, typer.Option(metavar="COLUMN", help="What was predicted. By default the members' mean.")]
ErrorColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="The error of each row.")]
ErrorKind = Annotated[str, typer.Option(metavar="|".join(get_args(ErrorKinds)), help=ERROR)]
Ood = Annotated[list[str] | None, typer.Option(metavar="FILE", help=f"{OOD} May be repeated.")]
Resamples = Annotated[int, typer.Option(min=0, help="How many resamples of the rows give the spreads; 0 for none.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the resamples.")]

"""The tasks as commands: each is made from what its module says in `COMMAND`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from uqprism.cli.application import app, interruptible
from uqprism.cli.output import Format, Output, Plot, Top, check, draw, write
from uqprism.tasks.command import Command, Kind, commands
from uqprism.tasks.resampling import RESAMPLES

Parameter = tuple[Any, Any]  # its annotation and its default
REQUIRED = inspect.Parameter.empty

FILE = "A Parquet, CSV or NPZ file, a folder or a pattern: with columns of measures (uqprism score), or of members."
OUTSIDE = "Files of points from outside, each a data set of its own."
MEASURES = "Measures or columns to use, or patterns such as 'crps.*'; may be repeated or have commas. By default all measures."

# How each kind of input is asked for.
READS: dict[Kind, dict[str, Parameter]] = {
    "table": {"file": (Annotated[str, typer.Argument(metavar="FILE", help=FILE)], REQUIRED)},
    "tables": {"outside": (Annotated[list[str], typer.Argument(metavar="OUTSIDE...", help=OUTSIDE)], REQUIRED)},
    "tables?": {"ood": (Annotated[list[str] | None, typer.Option(metavar="FILE", help=OUTSIDE + " May be repeated.")], None)},
    "error": {
        "error_column": (Annotated[str | None, typer.Option(metavar="COLUMN", help="The error of each point.")], None),
        "target": (Annotated[str | None, typer.Option(metavar="COLUMN", help="What happened, to make errors from.")], None),
        "prediction": (
            Annotated[str | None, typer.Option(metavar="COLUMN", help="What was predicted. By default the members' mean.")],
            None,
        ),
        "error": (
            Annotated[
                str, typer.Option(metavar="squared|absolute|nll|crps", help="Which error to make; nll and crps need members.")
            ],
            "squared",
        ),
    },
}
READS["error?"] = READS["error"]

# Every other argument that a task may have.
OPTIONS: dict[str, Parameter] = {
    "metric": (
        Annotated[str | None, typer.Option(metavar="NAME", help="What to rank measures by.")],
        None,
    ),
    "resamples": (Annotated[int, typer.Option(min=0, help="Of the points, for spreads; 0 for none.")], RESAMPLES),
    "seed": (Annotated[int, typer.Option(min=0, help="Of the resamples.")], 0),
}
COMMON: dict[str, Parameter] = {
    "measures": (Annotated[list[str] | None, typer.Option(metavar="NAME", help=MEASURES)], None),
    "format": (Format, "table"),
    "output": (Output, None),
    "plot": (Plot, None),
    "top": (Top, 20),
}


def _add(command: Command) -> None:
    parameters = {name: each for kind in command.reads.values() for name, each in READS[kind].items()}
    if command.metrics:
        choice = typer.Option(metavar="NAME", help=f"What to rank measures by: {', '.join(command.metrics)}.")
        parameters["metric"] = (Annotated[str, choice], command.metrics[0])
    parameters |= {name: OPTIONS[name] for name in command.options} | COMMON

    def run(**given: Any) -> None:
        check(given["format"], given["plot"])
        with interruptible("nothing was written"):
            arguments = {name: READERS[kind](given) for name, kind in command.reads.items()}
            arguments |= {name: given[name] for name in ("metric", *command.options) if name in given}
            result = command.function(**{name: value for name, value in arguments.items() if value is not None})
            draw(result, given["plot"])
        write(result, given["format"], given["output"], top=given["top"], note=_note(result))

    run.__name__, run.__doc__ = command.name, inspect.getdoc(command.function).split("\n")[0]  # type: ignore[union-attr]
    run.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=k) for name, (k, d) in parameters.items()]
    )
    app.command(command.name)(run)


def _note(result: Any) -> str:
    return getattr(result, "reason", "") or (str(result).splitlines()[0] + ".")


def _points(path: str) -> Any:
    from uqprism.scale.points import Points

    return Points.of(path)


def _table(given: dict[str, Any]) -> Any:
    return _points(given["file"]).measures(given["measures"])


def _outside(paths: list[str], measures: list[str] | None) -> Any:
    names = [Path(path).stem for path in paths]
    if len(set(names)) < len(names):
        names = paths
    tables = {name: _points(path).measures(measures) for name, path in zip(names, paths, strict=True)}
    return tables if len(tables) > 1 else next(iter(tables.values()))


def _error(given: dict[str, Any]) -> Any:
    return _points(given["file"]).error(
        column=given["error_column"], target=given["target"], prediction=given["prediction"], kind=given["error"]
    )


def _error_if_given(given: dict[str, Any]) -> Any:
    return _error(given) if given["error_column"] or given["target"] else None


READERS: dict[Kind, Callable[[dict[str, Any]], Any]] = {
    "table": _table,
    "tables": lambda given: _outside(given["outside"], given["measures"]),
    "tables?": lambda given: _outside(given["ood"], given["measures"]) if given["ood"] else None,
    "error": _error,
    "error?": _error_if_given,
}

for _each in commands():
    _add(_each)


@app.command()
def recommend(
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="selective_prediction, ood_detection or active_learning.")],
    format: Format = "table",
    output: Output = None,
) -> None:
    """Say which measure the paper advises for a task, and on what evidence."""
    from uqprism.tasks import recommend as advise

    check(format, None)
    with interruptible(""):
        advice = advise(task)
    if format == "table" and output is None:
        typer.echo(str(advice))
    else:
        write(advice, format, output)

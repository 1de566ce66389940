"""The tasks as commands: each command is made from the description of its task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
import typer

from uqprism.cli.application import (
    COLUMNS,
    OOD,
    ErrorColumn,
    ErrorKind,
    File,
    OnBad,
    Ood,
    Prediction,
    Resamples,
    Seed,
    Target,
    columns_of,
    command,
    default_of,
    interruptible,
    measures_option,
    say,
)
from uqprism.cli.output import Format, Output, Plot, Top, check, draw, write
from uqprism.errors import ArgumentError
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.task import Kind, Task, all_tasks

Parameter = tuple[Any, Any]  # its annotation and its default
ALIKE = "Among measures that are not worse and rank the points alike, one is shown; `rank alike` counts them."
MANY = 100_000  # values, beyond which a comparison may take more than a moment
REQUIRED = inspect.Parameter.empty


# The options for each kind of input.
READS: dict[Kind, dict[str, Parameter]] = {
    "table": {
        "file": (File, REQUIRED),
        **{name: (kind, None) for name, kind in COLUMNS.items()},
        "on_bad": (OnBad, "error"),
    },
    "tables": {"ood": (Annotated[list[str], typer.Argument(metavar="OOD", help=OOD)], REQUIRED)},
    "tables?": {"ood": (Ood, None)},
    "error": {
        "error_column": (ErrorColumn, None),
        "target": (Target, None),
        "prediction": (Prediction, None),
        "error": (ErrorKind, default_of(prediction_error, "kind")),
    },
}
READS["error?"] = READS["error"]  # whether an error is given is seen from its options

# Every other argument that a task may have; the defaults are those of its function.
OPTIONS: dict[str, Any] = {
    "metric": Annotated[str | None, typer.Option(metavar="NAME", help="What to rank by. By default the task's own.")],
    "may_be_negative": Annotated[bool, typer.Option("--may-be-negative", help="Errors may be negative, as log scores are.")],
    "margin": Annotated[float, typer.Option(min=0.0, help="Differences up to this do not count, however certain.")],
    "resamples": Resamples,
    "seed": Seed,
}
COMMON: dict[str, Parameter] = {
    "measures": (Annotated[list[str] | None, measures_option("all", columns=True)], None),
    "format": (Format, None),
    "output": (Output, None),
    "plot": (Plot, None),
    "top": (Top, 20),
}


def _add(task: Task, reads: Mapping[str, Kind]) -> None:
    parameters = {name: each for kind in reads.values() for name, each in READS[kind].items()}
    if task.metrics:
        choice = typer.Option(metavar="NAME", help=f"What to rank measures by: {', '.join(each.name for each in task.metrics)}.")
        parameters["metric"] = (Annotated[str, choice], task.metrics[0].name)
    parameters |= {name: (OPTIONS[name], default_of(task.function, name)) for name in task.options} | COMMON

    def run(**given: Any) -> None:
        kind = check(given["format"], given["output"], given["plot"])
        with interruptible("nothing was written"):
            _check_choice(reads, given)
            arguments = {name: READERS[kind](given) for name, kind in reads.items()}
            # Otherwise a missing number is an error, which the reader or the task raises.
            arguments = _complete(arguments, reads) if given["on_bad"] == "drop" else arguments
            arguments |= {name: given[name] for name in ("metric", *task.options) if name in given}
            # A log score may be negative; any other negative error is a difference whose sign was left in.
            if "may_be_negative" in task.options and given["target"] and given["error"] == "nll":
                arguments["may_be_negative"] = True
            _announce(next(arguments[name] for name, kind in reads.items() if kind == "table"))
            result = task.function(**{name: value for name, value in arguments.items() if value is not None})
            draw(result, given["plot"])
        write(result, kind, given["output"], top=given["top"], note=_note(result))

    # Typer reads a command from its name, docstring, annotations and signature.
    run.__name__, run.__doc__ = task.command, task.help
    run.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        # Keyword-only: one without a default may follow others.
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=k) for name, (k, d) in parameters.items()]
    )
    command(task.place, task.summary)(run)


def _check_choice(reads: Mapping[str, Kind], given: dict[str, Any]) -> None:
    """Refuse both errors and unfamiliar inputs, or neither, where either is optional."""
    if {"error?", "tables?"} <= set(reads.values()):
        by_error, by_ood = bool(given["error_column"] or given["target"]), bool(given["ood"])
        if by_error == by_ood:
            raise ArgumentError(
                "choosing needs either --target (or --error-column), for selective prediction, or --ood, for detection; "
                f"got {'both' if by_error else 'neither'}"
            )


def _announce(table: dict[str, Any]) -> None:
    """Print what is computed, if it may take more than a moment."""
    n_rows = len(next(iter(table.values()), ()))
    if n_rows * len(table) >= MANY:
        say(f"comparing {len(table)} measures on {n_rows:,} rows ...")  # not among the results


def _note(result: Any) -> str:
    """The line above a table."""
    reason = getattr(result, "reason", None)
    if reason:
        return f"Use {result.measure}. {reason}" + (f" {ALIKE}" if getattr(result, "duplicates", None) else "")
    head = str(result).splitlines()[0]
    about = getattr(result, "settings", {})
    return head + (f", {about['points']} points with mean error {about['mean_error']:.4g}" if "mean_error" in about else "")


def _points(path: str, given: dict[str, Any]) -> Any:
    from uqprism.files.points import Points

    return Points.of(path, columns_of(given), given["on_bad"])


def _table(given: dict[str, Any]) -> Any:
    return _points(given["file"], given).measures(given["measures"])


def _ood(paths: list[str], given: dict[str, Any]) -> Any:
    from uqprism.files import named_by_stem

    tables = {name: _points(path, given).measures(given["measures"]) for name, path in named_by_stem(paths).items()}
    return tables if len(tables) > 1 else next(iter(tables.values()))  # of several, the result has a part for each


def _error(given: dict[str, Any]) -> Any:
    return _points(given["file"], given).error(
        column=given["error_column"], target=given["target"], prediction=given["prediction"], kind=given["error"]
    )


def _error_if_given(given: dict[str, Any]) -> Any:
    return _error(given) if given["error_column"] or given["target"] else None


def _complete(arguments: dict[str, Any], reads: Mapping[str, Kind]) -> dict[str, Any]:
    """The arguments without rows in which a number is missing; a table and its errors keep the same rows."""
    found = dict(arguments)
    own = {name: kind for name, kind in reads.items() if arguments[name] is not None}
    for name, kind in own.items():
        if kind in {"tables", "tables?"}:
            several = isinstance(next(iter(found[name].values())), dict)
            found[name] = {each: _whole_rows(t)[0] for each, t in found[name].items()} if several else _whole_rows(found[name])[0]
    table, error = (next((name for name, kind in own.items() if kind.startswith(what)), None) for what in ("table", "error"))
    if table is not None:
        found[table], good = _whole_rows(found[table], None if error is None else found[error])
        if error is not None:
            found[error] = found[error][good]
    return found


def _whole_rows(table: dict[str, Any], error: Any = None) -> tuple[dict[str, Any], Any]:
    """The rows that have all numbers, and which they are; prints how many are left out."""
    columns = [*table.values(), *([] if error is None else [error])]
    good = ~np.any(np.isnan(columns), axis=0)  # one set of rows for all, so that measures compare on the same
    if not good.all():
        say(f"{int((~good).sum())} of {len(good)} rows left out")
    return {name: column[good] for name, column in table.items()}, good


READERS: dict[Kind, Callable[[dict[str, Any]], Any]] = {
    "table": _table,
    "tables": lambda given: _ood(given["ood"], given),
    "tables?": lambda given: _ood(given["ood"], given) if given["ood"] else None,
    "error": _error,
    "error?": _error_if_given,
}

for _each in all_tasks():
    if _each.reads:
        _add(_each, _each.reads)


@command(-10, "Print which measure the paper advises for a task.")
def recommend(
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help=", ".join(each.name for each in all_tasks() if each.advice) + ".")],
    format: Format = None,
    output: Output = None,
) -> None:
    """Print which measure the paper advises for a task, and the evidence."""
    from uqprism.tasks import recommend as advise

    kind = check(format, output, None)
    with interruptible(""):
        advice = advise(task)
    if kind == "table" and output is None:
        typer.echo(str(advice))
    else:
        write(advice, kind, output)

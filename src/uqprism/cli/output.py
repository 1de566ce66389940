"""Write results: a table for people, JSON or CSV for programs, a picture."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from uqprism.errors import ArgumentError, FileError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.support.storage import PICTURES, check_ending, check_writable, write_text, writing

FORMATS = ("table", "json", "csv")
ENDINGS = {".txt": "table", ".json": "json", ".csv": "csv"}
FORMAT_HELP = "How to write the result. By default a table, or what the ending of --output says."
Format = Annotated[str | None, typer.Option("--format", "-f", metavar="|".join(FORMATS), help=FORMAT_HELP)]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of printing.")]
Plot = Annotated[
    str | None, typer.Option(metavar="FILE", help=f"Draw the result, into a file that ends in {', '.join(PICTURES)}.")
]
Top = Annotated[int, typer.Option(min=0, metavar="N", help="Rows of a table to print, the best first; 0 for all.")]


class Writable(Protocol):
    """A result that can be written."""

    def rows(self) -> list[dict[str, Any]]:
        """Rows with the same columns."""

    def to_json(self) -> str:
        """The whole result as JSON."""


def check(kind: str | None, output: str | None, plot: str | None) -> str:
    """The format to write; an error, before any work is done, if something cannot be written."""
    if kind is not None and kind not in FORMATS:
        raise ArgumentError(str(unknown("format (--format)", kind, FORMATS)))
    said = "table" if output is None else ENDINGS[check_ending(output, ENDINGS, "--output")]
    if kind is not None and output is not None and Path(output).suffix and said != kind:
        raise ArgumentError(f"--format {kind} and the ending of --output {output} contradict each other; leave one out")
    if plot is not None:
        check_ending(plot, PICTURES, "--plot")
        require("matplotlib", extra="report")  # now, not after the work
    for option, path in (("--output", output), ("--plot", plot)):
        if path is not None:
            check_place(option, path)
    return kind or said


def check_place(option: str, path: str) -> None:
    """Refuse a path that no file can be written to, before the work whose result it is for."""
    place = Path(path).absolute()
    with writing(f"{option} {path}"):
        what = "is a folder" if place.is_dir() else "" if place.parent.is_dir() else "lies in a folder that does not exist"
        if what:
            raise FileError(f"{option} {path}: {what}; name a file in an existing folder")
    check_writable(path)


def write(result: Writable, kind: str, output: str | None, *, top: int = 0, note: str = "") -> None:
    """Print the result in this format, or write it to a file; the note is printed above a table, and when a file is written."""
    rows = getattr(result, "summary", result.rows)() if kind == "table" else result.rows()
    if kind == "table":
        shown = rows[:top] if top and output is None else rows  # a file has all rows
        more = f"{len(shown)} of {len(rows)} shown, --top 0 shows all.\n" if len(shown) < len(rows) else ""
        text = (f"{note}\n\n" if note else "") + _table(shown) + more
    else:
        text = result.to_json() + "\n" if kind == "json" else _csv(rows)
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)
        sys.stdout.write(f"{note}\n" if note else "")  # beside a file, the note tells that the work is done


def draw(result: Any, plot: str | None) -> None:
    """Draw the result, if a picture was asked for."""
    if plot is not None:
        from uqprism.plots import style

        axes = result.plot()
        style.save_as(axes.figure, Path(plot))


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(name.replace("_", " "), justify="left" if isinstance(value, str) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(_shown, row.values()))
    # Wide, because Rich cuts cells to the width of a terminal, which a pipe does not have.
    console = Console(file=io.StringIO(), width=1000)
    console.print(table)
    # Rich fills lines with spaces.
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")  # by default lines end as on Windows
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()

"""A progress bar on standard error: rows, rows per second, time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.support.optional import require


@contextmanager
def bar(size: int, shown: bool) -> Iterator[Callable[[int, float], None]]:
    """A function that is told of rows and bytes done, out of `size` bytes; draws nothing unless it is to be shown."""
    if not shown:
        yield lambda *_: None
        return
    require("rich", extra="cli")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rows]:,} rows"),
        TextColumn("{task.fields[speed]:,.0f} rows/s"),
        TimeRemainingColumn(),
    ]
    # A bar was asked for, so it is drawn even where standard error is no terminal.
    console = Console(file=sys.stderr, force_terminal=True)
    with Progress(*columns, console=console, transient=True) as progress:
        task: Any = progress.add_task("scoring", total=size, rows=0, speed=0.0)

        def tick(rows: int, done: float) -> None:
            state = progress.tasks[0]
            total, elapsed = state.fields["rows"] + rows, state.elapsed or 0.0
            progress.update(task, advance=done, rows=total, speed=total / elapsed if elapsed else 0.0)

        yield tick

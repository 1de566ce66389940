"""One progress bar for everything that takes long, on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from uqprism.support.optional import require

_taken: ContextVar[bool] = ContextVar("_taken", default=False)


class ProgressBar:
    """A bar, or nothing at all where none is shown."""

    def __init__(self, progress: Any = None, task: Any = None) -> None:
        self._progress, self._task = progress, task

    @property
    def seconds(self) -> float:
        """Seconds since the bar appeared; zero if none is shown."""
        return (self._progress.tasks[0].elapsed or 0.0) if self._progress is not None else 0.0

    def update(self, *, advance: float | None = None, completed: float | None = None, text: str | None = None) -> None:
        """Move the bar by `advance` or to `completed`, and replace the text behind it."""
        if self._progress is not None:
            given = {"advance": advance, "completed": completed, "description": text}
            self._progress.update(self._task, **{name: value for name, value in given.items() if value is not None})


class Announcement:
    """One line on a terminal about work of several steps, shown once, when the steps have taken a while."""

    def __init__(self, text: str, after: float = 2.0) -> None:
        self._text, self._after, self._spent, self._shown = text, after, 0.0, False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Count the time of a step."""
        if self._shown or not sys.stderr.isatty():
            yield
            return
        timer = threading.Timer(max(self._after - self._spent, 0.0), self._show)
        timer.daemon = True  # a process that ends does not wait for it
        timer.start()
        started = time.perf_counter()
        try:
            yield
        finally:
            timer.cancel()
            self._spent += time.perf_counter() - started

    def _show(self) -> None:
        if not self._shown:
            self._shown = True
            sys.stderr.write(f"uqprism: {self._text}\n")  # rich puts it above a bar, if there is one
            sys.stderr.flush()


@contextmanager
def progress_bar(
    label: str, total: float, *, shown: bool | None = None, counted: bool = True, estimate: bool = True, extra: str = "cli"
) -> Iterator[ProgressBar]:
    """Show a bar while the block runs.

    Args:
        label: what is counted, such as "rounds"; written before the bar.
        total: when it is full.
        shown: whether to draw; None draws on a terminal, unless a bar of an enclosing block is there already.
        counted: whether to write "3/10" rather than a percentage.
        estimate: whether to write the time left.
        extra: the extra that installs `rich`.
    """
    # Two bars would overwrite each other, so an inner one is not drawn.
    if not (sys.stderr.isatty() and not _taken.get() if shown is None else shown):
        yield ProgressBar()
        return
    require("rich", extra=extra)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [TextColumn(label)]
    columns += [MofNCompleteColumn() if counted else TextColumn("{task.percentage:>3.0f}%"), BarColumn(20)]
    columns += [TimeRemainingColumn()] if estimate else []
    # Drawn also where standard error is no terminal: then it was asked for.
    console = Console(file=sys.stderr, force_terminal=True)
    token = _taken.set(True)
    try:
        with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as progress:
            yield ProgressBar(progress, progress.add_task("", total=total))
    finally:
        _taken.reset(token)

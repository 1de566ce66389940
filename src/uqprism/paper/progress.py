"""Progress over the jobs of a run on standard error: how many are done, time left, what is at work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.paper.jobs import Job, Plan, duration
from uqprism.support.optional import require
from uqprism.support.progress import only_bar


class Watcher:
    """Is told what happens to jobs; this one keeps it to itself."""

    def begun(self, job: Job) -> None:
        """A job is at work."""

    def finished(self, job: Job, seconds: float) -> None:
        """A job is done."""

    def failed(self, job: Job) -> None:
        """A job will not be done."""


class Bar(Watcher):
    """Draws it."""

    def __init__(self, plan: Plan, progress: Any) -> None:
        self._plan, self._progress, self._running = plan, progress, list[str]()
        self._task = progress.add_task(plan.title, total=len(plan.jobs), completed=len(plan.taken), left="", running="")

    def begun(self, job: Job) -> None:
        """A job is at work."""
        self._running.append(job.name)
        self._draw()

    def finished(self, job: Job, seconds: float) -> None:
        """A job is done."""
        self._plan = self._plan.after(job, seconds)
        self.failed(job)

    def failed(self, job: Job) -> None:
        """A job will not be done."""
        self._running.remove(job.name)
        self._progress.advance(self._task)
        self._draw()

    def _draw(self) -> None:
        left = f"about {duration(self._plan.seconds_left())} left" if self._plan.left else ""
        self._progress.update(self._task, left=left, running="; ".join(self._running))


@contextmanager
def watching(plan: Plan, shown: bool) -> Iterator[Watcher]:
    """A watcher for this plan; draws nothing unless it is to be shown."""
    if not shown or not plan.left:
        yield Watcher()
        return
    require("rich", extra="cli")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[running]}"),
    ]
    # A bar was asked for, so it is drawn even where standard error is no terminal.
    console = Console(file=sys.stderr, force_terminal=True)
    with only_bar(), Progress(*columns, console=console, transient=True) as progress:
        yield Bar(plan, progress)

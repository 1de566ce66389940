"""Progress over the jobs of a run on standard error: how many are done, time left, what is at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uqprism.paper.jobs import Job, Plan, duration
from uqprism.support.progress import ProgressBar, progress_bar


class Watcher:
    """Receive what happens to jobs, and draw it on a bar."""

    def __init__(self, plan: Plan, bar: ProgressBar) -> None:
        self._plan, self._bar, self._running = plan, bar, list[str]()

    def begun(self, job: Job) -> None:
        """A job is at work."""
        self._running.append(job.name)
        self._draw(0)

    def finished(self, job: Job, seconds: float) -> None:
        """A job is done."""
        self._plan = self._plan.after(job, seconds)
        self.failed(job)

    def failed(self, job: Job) -> None:
        """A job will not be done."""
        self._running.remove(job.name)
        self._draw(1)

    def _draw(self, done: int) -> None:
        left = [f"about {duration(self._plan.seconds_left())} left"] if self._plan.left else []
        self._bar.update(advance=done, text="; ".join([*left, *self._running]))


@contextmanager
def watching(plan: Plan, shown: bool) -> Iterator[Watcher]:
    """A watcher for this plan; it draws nothing unless it is to be shown."""
    with progress_bar(plan.title, len(plan.jobs), shown=shown and bool(plan.left), estimate=False) as bar:
        bar.update(completed=len(plan.taken))
        yield Watcher(plan, bar)

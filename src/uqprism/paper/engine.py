"""Run jobs: one after the other in this process, or in several processes that each take the next one.

A job writes its artefact into the store, so processes exchange only which job comes next and whether it succeeded. A job that
fails does not stop the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from uqprism.errors import JobError, UqprismError
from uqprism.paper.jobs import Job, RunPlan, duration
from uqprism.paper.store import Store
from uqprism.support.progress import ProgressBar, progress_bar
from uqprism.support.storage import in_words

Work = Callable[[Job, Store], Any]
SHOWN = 3  # failures that are shown in full


def carry_out(work: Work, plan: RunPlan, store: Store, shown: bool) -> None:
    """Do the jobs that are left; if some fail, raise `JobError` after the last one, with the reasons."""
    jobs = plan.left
    processes = min(plan.processes, len(jobs))
    with watching(plan, shown) as watcher:
        outcomes = _here(work, jobs, store, watcher) if processes <= 1 else _in_processes(work, jobs, store, processes, watcher)
        failures = {}
        for job, failure in outcomes:
            if failure is None:
                watcher.finished(job, float(store.record(job.artefact)["seconds"]))
            else:
                failures[job.name] = failure
                watcher.failed(job)
    if failures:
        # Processes end in any order; the message has that of the plan.
        in_order = {job.name: failures[job.name] for job in plan.jobs if job.name in failures}
        raise JobError(_message(in_order, len(plan.jobs)))


def attempt(work: Work, job: Job, store: Store) -> str | None:
    """Do a job; returns None if it succeeded, else the reason why not."""
    try:
        store.get(job.artefact, lambda: work(job, store))
    except UqprismError as error:  # foreseen: its message says all
        return str(error)
    except OSError as error:
        return in_words(error)
    except Exception:
        return traceback.format_exc()  # as text, because a traceback cannot be sent to another process
    return None


def _here(work: Work, jobs: Iterable[Job], store: Store, watcher: Watcher) -> Iterator[tuple[Job, str | None]]:
    for job in jobs:
        watcher.begun(job)
        yield job, attempt(work, job, store)


def _in_processes(
    work: Work, jobs: list[Job], store: Store, processes: int, watcher: Watcher
) -> Iterator[tuple[Job, str | None]]:
    waiting = iter(jobs)
    busy: dict[Any, tuple[Any, Job]] = {}  # by connection
    # Otherwise each process would start as many threads as there are cores.
    threads = max((os.cpu_count() or 1) // processes, 1)
    with ExitStack() as stack:

        def give_next(worker: tuple[Any, Any] | None) -> None:
            """Send the next job to this process, or to a new one."""
            if (job := next(waiting, None)) is not None:
                process, connection = worker or stack.enter_context(_process(work, store, threads))
                connection.send(job)  # one at a time: their durations differ too much to divide them in advance
                busy[connection] = process, job
                watcher.begun(job)

        for _ in range(processes):
            give_next(None)
        while busy:
            for connection in wait(list(busy)):
                process, job = busy.pop(connection)
                failure, alive = _answer(process, connection)
                yield job, failure
                give_next((process, connection) if alive else None)  # one that died is replaced


def _answer(process: Any, connection: Any) -> tuple[str | None, bool]:
    """The failure of a process's job, or None, and whether the process is still alive."""
    try:
        return connection.recv(), True
    except (EOFError, OSError):
        process.join()
        return f"its process ended with code {process.exitcode} (-9 is often: out of memory)", False


@contextmanager
def _process(work: Work, store: Store, threads: int) -> Iterator[tuple[Any, Connection]]:
    # Spawned, because CUDA and thread pools do not work in a forked process.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(work, store, theirs, threads), daemon=True)
    process.start()
    theirs.close()  # so that the worker alone holds this end, and its death closes the connection
    try:
        yield process, ours
    finally:
        ours.close()  # which ends a process that waits for a job
        if process.exitcode is None:
            process.terminate()
        process.join()


def serve(work: Work, store: Store, connection: Connection, threads: int) -> None:
    """Do jobs until the connection closes. If the main process was killed, the current job is still finished and stored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the main one ends the others
    # Libraries read these when they are imported, which the first job does.
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    try:
        while True:
            connection.send(attempt(work, connection.recv(), store))
    except (EOFError, OSError):
        return


def _message(failures: dict[str, str], n_jobs: int) -> str:
    count, reasons = f"{len(failures)} of {n_jobs} jobs failed", {reason.rstrip() for reason in failures.values()}
    advice = "the same command tries again"
    if len(failures) < n_jobs:
        advice = "finished jobs are kept, the same command does the rest"
    if len(failures) > 1 and len(reasons) == 1:  # often a missing file or package, which every job needs
        return f"{count}, all for the same reason; {advice}\n  {reasons.pop()}"
    shown = [f"{name}: {reason.rstrip()}" for name, reason in list(failures.items())[:SHOWN]]
    more = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
    return "\n  ".join([f"{count}; {advice}", *shown, *more])


class Watcher:
    """Shows the progress of jobs on a bar: how many are done, time left, which are running."""

    def __init__(self, plan: RunPlan, bar: ProgressBar) -> None:
        self._plan, self._bar, self._running = plan, bar, list[str]()

    def begun(self, job: Job) -> None:
        """Record that a job was started."""
        self._running.append(job.name)
        self._draw(0)

    def finished(self, job: Job, seconds: float) -> None:
        """Record that a job is done."""
        self._plan = self._plan.after(job, seconds)
        self.failed(job)

    def failed(self, job: Job) -> None:
        """Record that a job ended without its artefact."""
        self._running.remove(job.name)
        self._draw(1)

    def _draw(self, done: int) -> None:
        left = [f"about {duration(self._plan.seconds_left())} left"] if self._plan.left else []
        self._bar.update(advance=done, text="; ".join([*left, *self._running]))


@contextmanager
def watching(plan: RunPlan, shown: bool) -> Iterator[Watcher]:
    """A `Watcher` for this plan; without `shown` it draws nothing."""
    with progress_bar(plan.title, len(plan.jobs), shown=shown and bool(plan.left), estimate=False) as bar:
        bar.update(completed=len(plan.taken))
        yield Watcher(plan, bar)

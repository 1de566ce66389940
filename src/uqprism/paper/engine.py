"""Jobs at work: one after the other in this process, or several processes that each take the next one.

What a job finds goes into the store, so processes tell each other only which job comes next and whether it went well. A job that
fails leaves the others alone.
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
from uqprism.paper.artefacts import Store
from uqprism.paper.jobs import Job, Plan
from uqprism.paper.progress import Watcher, watching

Work = Callable[[Job, Store], Any]
MOST_TOLD = 3  # failures that are told in full


def carry_out(work: Work, plan: Plan, store: Store, shown: bool) -> None:
    """Do the jobs that are left; if some fail, raise after the last one, with the reason of each."""
    jobs = plan.left
    processes = min(plan.processes, len(jobs))
    with watching(plan, shown) as watcher:
        outcomes = _here(work, jobs, store, watcher) if processes <= 1 else _elsewhere(work, jobs, store, processes, watcher)
        failures = {}
        for job, failure in outcomes:
            if failure is None:
                watcher.finished(job, float(store.record(job.artefact)["seconds"]))
            else:
                failures[job.name] = failure
                watcher.failed(job)
    if failures:
        in_order = {job.name: failures[job.name] for job in plan.jobs if job.name in failures}
        raise JobError(_told(in_order, len(plan.jobs)))


def attempt(work: Work, job: Job, store: Store) -> str | None:
    """Do a job; None if it went well, else why it did not."""
    try:
        store.get(job.artefact, lambda: work(job, store))
    except UqprismError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()
    return None


def _here(work: Work, jobs: Iterable[Job], store: Store, watcher: Watcher) -> Iterator[tuple[Job, str | None]]:
    for job in jobs:
        watcher.begun(job)
        yield job, attempt(work, job, store)


def _elsewhere(work: Work, jobs: list[Job], store: Store, processes: int, watcher: Watcher) -> Iterator[tuple[Job, str | None]]:
    waiting = iter(jobs)
    busy: dict[Any, tuple[Any, Job]] = {}  # by connection
    threads = max((os.cpu_count() or 1) // processes, 1)
    with ExitStack() as stack:

        def give_next(worker: tuple[Any, Any] | None) -> None:
            """To this process, or to a new one."""
            if (job := next(waiting, None)) is not None:
                process, connection = worker or stack.enter_context(_process(work, store, threads))
                connection.send(job)
                busy[connection] = process, job
                watcher.begun(job)

        for _ in range(processes):
            give_next(None)
        while busy:
            for connection in wait(list(busy)):
                process, job = busy.pop(connection)
                failure, alive = _answer(process, connection)
                yield job, failure
                give_next((process, connection) if alive else None)


def _answer(process: Any, connection: Any) -> tuple[str | None, bool]:
    """What became of a process's job, and whether the process can take another."""
    try:
        return connection.recv(), True
    except (EOFError, OSError):
        process.join()
        return f"its process ended with code {process.exitcode} (-9 is often: out of memory)", False


@contextmanager
def _process(work: Work, store: Store, threads: int) -> Iterator[tuple[Any, Connection]]:
    # Spawned, not forked: a fork would copy the state of CUDA and of thread pools, which then do not work.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(work, store, theirs, threads), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        ours.close()  # a process that waits for a job ends
        if process.exitcode is None:
            process.terminate()
        process.join()


def serve(work: Work, store: Store, connection: Connection, threads: int) -> None:
    """Do jobs until there is nobody to ask for more; where the asker was killed, the job at hand is finished and kept."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one ends the others
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))
    try:
        while True:
            connection.send(attempt(work, connection.recv(), store))
    except (EOFError, OSError):
        return


def _told(failures: dict[str, str], n_jobs: int) -> str:
    count, reasons = f"{len(failures)} of {n_jobs} jobs failed", {reason.rstrip() for reason in failures.values()}
    advice = "the same command tries again"
    if len(failures) < n_jobs:
        advice = "what the others found is kept, the same command does the rest"
    if len(failures) > 1 and len(reasons) == 1:
        return f"{count}, all for the same reason; {advice}\n  {reasons.pop()}"
    shown = [f"{name}: {reason.rstrip()}" for name, reason in list(failures.items())[:MOST_TOLD]]
    more = [f"and {len(failures) - MOST_TOLD} more"] if len(failures) > MOST_TOLD else []
    return "\n  ".join([f"{count}; {advice}", *shown, *more])

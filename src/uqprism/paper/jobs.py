"""The jobs of a run, which of them are done, and how long the rest may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.paper.store import Artefact, Store


@dataclass(frozen=True)
class Job:
    """A part of a run that depends on no other part: it makes one artefact, and is done when that is stored.

    Attributes:
        name: for display, such as `dots, seed 3`; unique in the run.
        artefact: what it makes; its key holds everything that the work depends on.
        seconds: expected duration, corrected by the durations of finished jobs; the ratios between jobs matter most.
        shared: the artefact that takes most of that time, if jobs of other experiments need it too.
        rest: expected duration where the shared artefact is already stored.
    """

    name: str
    artefact: Artefact
    seconds: float = 10.0
    shared: Artefact | None = None
    rest: float = 1.0

    @property
    def key(self) -> Any:
        """The key of the artefact."""
        return self.artefact.key


@dataclass(frozen=True)
class RunPlan:
    """All jobs of a run, and how long the finished ones took.

    Attributes:
        title: name of the run.
        jobs: in the order in which they are started.
        taken: seconds of the finished jobs, by name.
        processes: number of processes.
        machine: the machine that the expected durations are for, such as ` on a GPU`.
        notes: lines to print under the plan.
        ready: names of the jobs whose shared artefact is already stored.
        refused: True if the run would be refused.
    """

    title: str
    jobs: tuple[Job, ...]
    taken: Mapping[str, float]
    processes: int = 1
    machine: str = ""
    notes: tuple[str, ...] = ()
    ready: frozenset[str] = frozenset()
    refused: bool = False

    @classmethod
    def of(cls, title: str, jobs: Sequence[Job], store: Store, processes: int) -> RunPlan:
        """The plan of these jobs, given what is in the store."""
        # `taken`, `ready` and the failures of a run are by name.
        names = [job.name for job in jobs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(f"jobs must have names of their own, got {twice!r} twice")
        taken = {job.name: float(store.record(job.artefact)["seconds"]) for job in jobs if job.artefact in store}
        return cls(title, tuple(jobs), taken, processes, ready=frozenset(job.name for job in jobs if _ready(job, store)))

    @property
    def left(self) -> list[Job]:
        """The jobs that are not done."""
        return [job for job in self.jobs if job.name not in self.taken]

    def after(self, job: Job, seconds: float) -> RunPlan:
        """The plan once this job is done."""
        return replace(self, taken={**self.taken, job.name: seconds})

    def following(self, plans: Iterable[RunPlan]) -> RunPlan:
        """The plan if these plans are carried out before it, so that the artefacts they share are already stored."""
        shared = (job.shared for plan in plans if not plan.refused for job in plan.left)
        made = {each.digest for each in shared if each is not None}
        found = {job.name for job in self.left if job.shared is not None and job.shared.digest in made} - self.ready
        note = (f"Most of {len(found)} jobs is shared with an experiment above and counted there.",) if found else ()
        return replace(self, ready=self.ready | found, notes=(*note, *self.notes))

    def expected(self, job: Job) -> float:
        """Expected seconds of a job, scaled by how long finished jobs of its kind took compared with what was expected."""
        # A job that found what it shares tells nothing about one that has to make it.
        done = [each for each in self.jobs if each.name in self.taken and (each.name in self.ready) == (job.name in self.ready)]
        guessed = sum(map(self._guess, done))
        return self._guess(job) * (sum(self.taken[each.name] for each in done) / guessed if guessed else 1.0)

    def _guess(self, job: Job) -> float:
        return job.rest if job.name in self.ready else job.seconds

    def seconds_left(self) -> float:
        """Expected seconds until all jobs are done: the work divided evenly, but at least the longest job."""
        expected = [self.expected(job) for job in self.left]
        return max([sum(expected) / self.processes, *expected], default=0.0)

    def __str__(self) -> str:
        machine = "" if self.taken else self.machine  # durations measured here have corrected the guesses
        left = f"about {duration(self.seconds_left())} left{machine}" if self.left else "nothing left to do"
        lines = [f"{self.title}: {len(self.jobs)} jobs, {len(self.taken)} done, {left} with {_processes(self.processes)}"]
        for job in self.jobs:
            done = job.name in self.taken
            time = duration(self.taken[job.name]) if done else f"~{duration(self.expected(job))}"
            lines.append(f"  {'done' if done else 'to do':<7}{time:>9}  {job.name}")
        return "\n".join([*lines, *self.notes])


def total(plans: Sequence[RunPlan]) -> str:
    """One line that adds up plans carried out one after the other, without those that would be refused."""
    taken = [plan for plan in plans if not plan.refused]
    jobs, done = (sum(map(len, each)) for each in ([plan.jobs for plan in taken], [plan.taken for plan in taken]))
    seconds = sum(plan.seconds_left() for plan in taken)
    left = f"about {duration(seconds)} left" if jobs > done else "nothing left to do"
    machine = ", with a GPU where one is named" if any(plan.machine and plan.left and not plan.taken for plan in taken) else ""
    refused = f"; {len(plans) - len(taken)} would be refused" if len(taken) < len(plans) else ""
    processes = _processes(max((plan.processes for plan in plans), default=1))
    return f"all {len(taken)} experiments: {jobs} jobs, {done} done, {left} with {processes}{machine}{refused}"


def _processes(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}"


def _ready(job: Job, store: Store) -> bool:
    """Whether the shared artefact is stored; for a finished job, whether it was stored before.

    A job that took less time than its shared artefact did not make it.
    """
    if job.shared is None or job.shared not in store:
        return False
    return job.artefact not in store or store.record(job.artefact)["seconds"] < store.record(job.shared)["seconds"]


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""The jobs of a run, and how much of them is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.experiments.artefacts import Artefact, Store


@dataclass(frozen=True)
class Job:
    """A part of a run that needs no other part: it makes one artefact, and is done when that is there.

    Attributes:
        name: for people, such as `dots, seed 3`; no other job of the run has it.
        artefact: what it makes; its key says all that the work needs to know.
        seconds: a guess, to plan with until finished jobs tell; their ratios matter more than their size.
    """

    name: str
    artefact: Artefact
    seconds: float = 10.0

    @property
    def key(self) -> Any:
        """What decides the result."""
        return self.artefact.key


@dataclass(frozen=True)
class Plan:
    """All jobs of a run, and what the finished ones took.

    Attributes:
        title: of the run.
        jobs: in the order in which they are begun.
        taken: seconds by name, of those that are done.
        processes: at a time.
        machine: what the guesses are for, such as ` on a GPU`; finished jobs tell of the machine at hand.
        notes: what to know before it is begun.
    """

    title: str
    jobs: tuple[Job, ...]
    taken: Mapping[str, float]
    processes: int = 1
    machine: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, title: str, jobs: Sequence[Job], store: Store, processes: int) -> Plan:
        """From what is in the store."""
        names = [job.name for job in jobs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(f"jobs must have names of their own, got {twice!r} twice")
        taken = {job.name: float(store.record(job.artefact)["seconds"]) for job in jobs if job.artefact in store}
        return cls(title, tuple(jobs), taken, processes)

    @property
    def left(self) -> list[Job]:
        """The jobs to do."""
        return [job for job in self.jobs if job.name not in self.taken]

    def after(self, job: Job, seconds: float) -> Plan:
        """The plan when this job is done too."""
        return replace(self, taken={**self.taken, job.name: seconds})

    def expected(self, job: Job) -> float:
        """Seconds that it will take: the guess, corrected by how far the guesses were off so far."""
        guessed = sum(each.seconds for each in self.jobs if each.name in self.taken)
        return job.seconds * (sum(self.taken.values()) / guessed if guessed else 1.0)

    def seconds_left(self) -> float:
        """Until all is done: the work shared out evenly, but no less than the longest job."""
        expected = [self.expected(job) for job in self.left]
        return max([sum(expected) / self.processes, *expected], default=0.0)

    def __str__(self) -> str:
        machine = "" if self.taken else self.machine
        left = f"about {duration(self.seconds_left())} left{machine}" if self.left else "nothing left to do"
        count = f"{self.processes} process{'es' if self.processes > 1 else ''}"
        lines = [f"{self.title}: {len(self.jobs)} jobs, {len(self.taken)} done, {left} with {count}"]
        for job in self.jobs:
            done = job.name in self.taken
            time = duration(self.taken[job.name]) if done else f"~{duration(self.expected(job))}"
            lines.append(f"  {'done' if done else 'to do':<7}{time:>9}  {job.name}")
        return "\n".join([*lines, *self.notes])


def duration(seconds: float) -> str:
    """In the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""What an experiment is, and what comes out of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from uqprism.errors import ArgumentError
from uqprism.paper.agreement import Agreement
from uqprism.paper.artefacts import Artefact, Store
from uqprism.paper.jobs import Job
from uqprism.registry import unknown

Config = TypeVar("Config")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, held against our numbers.

    Attributes:
        name: in a few words.
        paper: the sentence.
        holds: whether our numbers say the same.
        measured: our numbers in a sentence.
        numbers: the same by name.
    """

    name: str
    paper: str
    holds: bool
    measured: str
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """What a run found: all that its pictures and its report are made from.

    Attributes:
        config: the settings as plain data.
        seeds: every seed that was used, by purpose.
        claims: the paper's sentences, held against our numbers.
        tables: rows by column, each table under its title; in the report, and each as a Parquet file.
        notes: paragraphs that explain the numbers.
        arrays: what the pictures show.
        data: SHA-256 of each data set that was used, by name (`Dataset.checksum`, or `artefacts.checksum` of arrays).
        agreements: how well our numbers agree with a table of the paper, by what is compared (`paper.agreement`).
    """

    config: Mapping[str, Any]
    seeds: Mapping[str, Any]
    claims: tuple[Claim, ...]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    agreements: Mapping[str, Agreement] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A drawn figure and what to say under it."""

    figure: Any
    caption: str


def one_job(config: Any) -> list[Job]:
    """The job of an experiment that has only one."""
    return [Job("all of it", Artefact("findings", config))]


@dataclass(frozen=True)
class Experiment(Generic[Config]):
    """One experiment of the paper: jobs that find something, each by itself, and what follows from all of it.

    `work` is sent to other processes, so it is a function of a module. It knows only its job and the store: whatever decides
    its result must be in the job's key.

    Attributes:
        name: of its module.
        summary: a sentence.
        presets: settings by name: frozen dataclasses, with a `seed` if anything is drawn.
        work: from a job to the value of its artefact; it may keep artefacts on the way.
        gather: from settings and a store in which all jobs are done to the result, in seconds.
        draw: from a result alone to its pictures, by file name without ending.
        jobs: the parts that settings fall into; by default one, whose key is the settings and which finds `Findings`.
        needs: from settings to the data sets and OOD mosaics whose files are read, by their names in `uqprism.paper.data`.
        wants_gpu: presets whose guesses of time are those of a GPU.
        reads: other experiments, of whose stores (in the folders beside this one's) artefacts are used where they fit.
    """

    name: str
    summary: str
    presets: Mapping[str, Config]
    work: Callable[[Job, Store], Any]
    gather: Callable[[Config, Store], Result]
    draw: Callable[[Result], dict[str, Picture]]
    jobs: Callable[[Config], Sequence[Job]] = one_job
    reads: tuple[str, ...] = ()
    needs: Callable[[Config], Iterable[str]] = lambda _: ()
    wants_gpu: tuple[str, ...] = ()

    def config(self, preset: str, seed: int | None = None) -> Config:
        """The settings of this name, with another seed if one is given; settings without a seed, which draw nothing, stay."""
        if preset not in self.presets:
            raise unknown("preset", preset, self.presets)
        if seed is not None and seed < 0:
            raise ArgumentError(f"seed must not be negative, got {seed}")
        chosen: Any = self.presets[preset]
        return dataclasses.replace(chosen, seed=seed) if seed is not None and hasattr(chosen, "seed") else chosen


def first_line(docstring: str | None) -> str:
    """What a module says it is."""
    return (docstring or "").split("\n", 1)[0]

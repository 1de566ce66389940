"""What an experiment is, what it results in, and the registry of experiments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uqprism.errors import ArgumentError
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Store
from uqprism.registry import Registry, unknown

if TYPE_CHECKING:
    from uqprism.paper.comparison import Agreement

Config = TypeVar("Config")
EXPERIMENTS: Registry[Experiment[Any]] = Registry("experiment", "uqprism.paper.experiments")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, compared with our numbers.

    Attributes:
        name: in a few words.
        paper: the sentence.
        holds: whether our numbers agree with it.
        measured: our numbers in a sentence.
        numbers: our numbers by name.
    """

    name: str
    paper: str
    holds: bool
    measured: str
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Result:
    """The result of a run: pictures and report are made from it alone.

    Attributes:
        config: the settings as plain data.
        seeds: every seed that was used, by purpose.
        claims: the paper's sentences, compared with our numbers.
        tables: rows by column, each table under its title; shown in the report and written as Parquet files.
        notes: paragraphs that explain the numbers.
        arrays: what the pictures show.
        data: SHA-256 of each data set that was used, by name (`Dataset.checksum`, or `store.checksum` of arrays).
        agreements: agreement of our numbers with a table of the paper, by what is compared.
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
    """A figure and its caption."""

    figure: Any
    caption: str


def one_job(config: Any) -> list[Job]:
    """The single job of an experiment that is not divided."""
    return [Job("all of it", Artefact("bundle", config))]


@dataclass(frozen=True)
class Experiment(Generic[Config]):
    """One experiment of the paper: independent jobs, and the result that follows from them.

    `work` runs in other processes, so it must be a function of a module. It gets only its job and the store: the job's key must
    hold whatever decides its result.

    Attributes:
        name: the name of its module.
        summary: a sentence.
        presets: settings by name: frozen dataclasses, with a `seed` if anything is drawn.
        work: makes the artefact of a job; it may store other artefacts on the way.
        gather: makes the result from the settings and a store in which all jobs are done, in seconds.
        draw: makes the pictures from a result alone, by file name without ending.
        jobs: the parts that settings fall into; by default one, whose key is the settings and which makes a `Bundle`.
        needs: the data sets and OOD mosaics whose files the settings read, by their names in `uqprism.paper.data`.
        wants_gpu: presets whose expected times are those of a GPU.
        reads: other experiments whose stores, in folders beside this one's, are searched before an artefact is made.
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
        """The settings of this preset, with another seed if one is given; settings without a seed ignore it."""
        if preset not in self.presets:
            raise unknown("preset", preset, self.presets)
        if seed is not None and seed < 0:  # NumPy refuses it only when the work has begun
            raise ArgumentError(f"seed must not be negative, got {seed}")
        chosen: Any = self.presets[preset]
        return dataclasses.replace(chosen, seed=seed) if seed is not None and hasattr(chosen, "seed") else chosen


def register(experiment: Experiment[Config]) -> Experiment[Config]:
    """Add an experiment to the registry, under its name."""
    return EXPERIMENTS.register(experiment.name)(experiment)


def first_line(docstring: str | None) -> str:
    """The first line of a module's docstring."""
    return (docstring or "").split("\n", 1)[0]

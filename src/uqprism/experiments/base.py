"""What an experiment is, and what comes out of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from uqprism.errors import ArgumentError
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
        tables: rows by column, each table under its title.
        notes: paragraphs that explain the numbers.
        arrays: what the pictures show.
    """

    config: Mapping[str, Any]
    seeds: Mapping[str, Any]
    claims: tuple[Claim, ...]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A drawn figure and what to say under it."""

    figure: Any
    caption: str


@dataclass(frozen=True)
class Experiment(Generic[Config]):
    """One experiment of the paper.

    Attributes:
        name: of its module.
        summary: a sentence.
        presets: settings by name: frozen dataclasses with a `seed`.
        run: from settings, a folder for what must survive an interruption, and whether to show progress, to the result.
        draw: from a result alone to its pictures, by file name without ending.
    """

    name: str
    summary: str
    presets: Mapping[str, Config]
    run: Callable[[Config, Path, bool], Result]
    draw: Callable[[Result], dict[str, Picture]]

    def config(self, preset: str, seed: int | None = None) -> Config:
        """The settings of this name, with another seed if one is given."""
        if preset not in self.presets:
            raise unknown("preset", preset, self.presets)
        if seed is not None and seed < 0:
            raise ArgumentError(f"seed must not be negative, got {seed}")
        chosen: Any = self.presets[preset]
        return chosen if seed is None else dataclasses.replace(chosen, seed=seed)


def first_line(docstring: str | None) -> str:
    """What a module says it is."""
    return (docstring or "").split("\n", 1)[0]

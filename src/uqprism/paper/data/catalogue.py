"""Data sets by name: each is registered with a summary and a function that loads it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError
from uqprism.paper.data.dataset import Dataset
from uqprism.paper.data.root import Root
from uqprism.registry import Registry

Files = Callable[[Root], list[Path]]


@dataclass(frozen=True)
class Entry:
    """A registered data set.

    Attributes:
        summary: one sentence.
        load: a function of its options; it may also take `root` (a `Root`) and `seed`.
        files: from a root to the files and folders that `load` reads there; it does not read them.
    """

    summary: str
    load: Callable[..., Dataset]
    files: Files | None = None


datasets: Registry[Entry] = Registry("data set", "uqprism.paper.data.sets")


def register(
    name: str, summary: str, *, files: Files | None = None
) -> Callable[[Callable[..., Dataset]], Callable[..., Dataset]]:
    """Decorator that registers a loader under `name`; `files` maps a root to the paths that the loader reads, as in `Entry`."""

    def add(function: Callable[..., Dataset]) -> Callable[..., Dataset]:
        datasets.register(name)(Entry(summary, function, files))
        return function

    return add


def load(
    name: str, *, root: str | os.PathLike[str] | None = None, seed: int = 0, download: bool = True, **options: Any
) -> Dataset:
    """The data set of this name.

    Args:
        name: one of `names()`.
        root: the folder of data files; by default that of the environment variable UQPRISM_DATA, else the user's cache.
        seed: of the random split or of the generated images. The same seed gives the same data.
        download: whether missing official files are downloaded.
        options: options of this data set, such as `test_fraction`; docs/data.md lists them.
    """
    entry = datasets.get(name)
    taken = inspect.signature(entry.load).parameters
    known = [each for each in taken if each not in {"root", "seed"}]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ArgumentError(f"{name} takes the options {', '.join(known)}, got {', '.join(unknown)}")
    if "root" in taken:  # generated sets need no folder
        options["root"] = Root.of(root, downloads=download)
    if "seed" in taken:
        options["seed"] = seed
    return entry.load(**options)


def constants(name: str) -> dict[str, Any]:
    """The constants of the data set's module that are numbers: with the seed and the options they decide generated data."""
    found = getattr(datasets.get(name).load, "__globals__", {})
    return {each: value for each, value in found.items() if each.isupper() and _is_number(value)}


def _is_number(value: Any) -> bool:
    return all(isinstance(each, int | float) for each in value) if isinstance(value, tuple) else isinstance(value, int | float)


def names() -> list[str]:
    """The names of all data sets."""
    return datasets.names()


def summaries() -> dict[str, str]:
    """One sentence about each data set, by name."""
    return {name: datasets.get(name).summary for name in names()}

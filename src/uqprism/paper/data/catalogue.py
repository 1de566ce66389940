"""Data sets by name: each is filed with a sentence and a function that loads it."""

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
    """What is filed under a name.

    Attributes:
        summary: one sentence.
        load: takes `root` (a `Root`) and `seed` where it needs them, and its options, by name.
        files: from a root to what `load` reads there, files or whole folders; it reads nothing itself.
    """

    summary: str
    load: Callable[..., Dataset]
    files: Files | None = None


datasets: Registry[Entry] = Registry("data set")


def register(
    name: str, summary: str, *, files: Files | None = None
) -> Callable[[Callable[..., Dataset]], Callable[..., Dataset]]:
    """Decorator that files a loader under `name`; `files` gives what it reads under a root, as in `Entry`."""

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
        root: the folder with the files; by default that of the environment variable UQPRISM_DATA, or a cache in the user's home.
        seed: of everything drawn: rows of the parts, generated images. The same seed gives the same data.
        download: whether official files that are missing are fetched.
        options: what this data set leaves open, such as `test_fraction`; docs/data.md has them.
    """
    entry = datasets.get(name)
    taken = inspect.signature(entry.load).parameters
    known = [each for each in taken if each not in {"root", "seed"}]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ArgumentError(f"{name} takes the options {', '.join(known)}, got {', '.join(unknown)}")
    if "root" in taken:
        options["root"] = Root.of(root, downloads=download)
    if "seed" in taken:
        options["seed"] = seed
    return entry.load(**options)


def constants(name: str) -> dict[str, Any]:
    """The numbers in capitals in the module of this data set: what decides generated data, beside seed and options."""
    found = getattr(datasets.get(name).load, "__globals__", {})
    return {each: value for each, value in found.items() if each.isupper() and _is_number(value)}


def _is_number(value: Any) -> bool:
    return all(isinstance(each, int | float) for each in value) if isinstance(value, tuple) else isinstance(value, int | float)


def names() -> list[str]:
    """What `load` knows."""
    return datasets.names()


def summaries() -> dict[str, str]:
    """A sentence for each name."""
    return {name: datasets.get(name).summary for name in names()}

"""What command line and report need to know of a task: a module of this folder that sets `COMMAND` gets both by itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["table", "tables", "tables?", "error", "error?"]


@dataclass(frozen=True)
class Section:
    """A task as a part of the report: its figure and its table, under a heading.

    Attributes:
        title: the heading, for people who know nothing of the task.
        about: a paragraph that says what is shown and defines the words in it.
    """

    title: str
    about: str


@dataclass(frozen=True)
class Command:
    """A task as a command.

    Attributes:
        name: of the command.
        function: of the task; the first line of its docstring is the help.
        reads: which of its arguments come from files: `table` (measures of points), `tables` (one or several such, by name) or
            `error` (of each point); with a question mark where it may be left out.
        metrics: what its argument `metric` may be, the default first; empty if it has none.
        options: which of its other arguments can be set: names that `uqprism.cli.tasks.OPTIONS` describes.
        section: of the report, which appears where there is all that the task reads; None for none.
    """

    name: str
    function: Callable[..., Any]
    reads: Mapping[str, Kind]
    metrics: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    section: Section | None = None


def commands() -> list[Command]:
    """The commands of all tasks."""
    import uqprism.tasks

    modules = [importlib.import_module(f"uqprism.tasks.{each.name}") for each in pkgutil.iter_modules(uqprism.tasks.__path__)]
    return [module.COMMAND for module in modules if hasattr(module, "COMMAND")]

"""What the command line needs to know of a task: a module of this folder that sets `COMMAND` gets a command by itself."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["table", "tables", "tables?", "error", "error?"]


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
    """

    name: str
    function: Callable[..., Any]
    reads: Mapping[str, Kind]
    metrics: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def commands() -> list[Command]:
    """The commands of all tasks."""
    import uqprism.tasks

    modules = [importlib.import_module(f"uqprism.tasks.{each.name}") for each in pkgutil.iter_modules(uqprism.tasks.__path__)]
    return [module.COMMAND for module in modules if hasattr(module, "COMMAND")]

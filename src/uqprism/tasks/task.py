"""What a task is to the rest of the package: one description, from which API, command, report section and documentation follow.

A module of this package that calls `register(Task(...))` adds a task; nothing else has to be written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from uqprism.errors import UnknownNameError
from uqprism.registry import Registry

Kind = Literal["table", "tables", "tables?", "error", "error?"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that says how well a measure does a task.

    Attributes:
        name: in results, files and on the command line.
        higher_is_better: the direction.
        label: a word or two for a legend; by default the name.
        meaning: a phrase that says what it is, for an axis; empty to show the label alone.
        chance: its value for a measure that knows nothing, or None where that depends on the data.
    """

    name: str
    higher_is_better: bool = False
    label: str = ""
    meaning: str = ""
    chance: float | None = None

    @property
    def short(self) -> str:
        """The label, for a legend: `PRR`."""
        return self.label or self.name.replace("_", " ")

    @property
    def title(self) -> str:
        """Label, meaning and direction, for an axis: `AUSE: area between ... and oracle, 0: oracle (lower is better)`."""
        direction = "higher" if self.higher_is_better else "lower"
        return f"{self.short}{f': {self.meaning}' if self.meaning else ''} ({direction} is better)"


@dataclass(frozen=True)
class ReportSection:
    """A task as a section of the report: a figure and a table under a heading.

    Attributes:
        title: the heading, for readers who do not know the task.
        about: a paragraph that says what is shown and defines the words in it.
        short: its name in the list of sections.
    """

    title: str
    about: str
    short: str = ""


@dataclass(frozen=True)
class Task:
    """The description of a task.

    Attributes:
        name: of the task, of its function in Python and in results.
        command: its name on the command line, and in the addresses of pages.
        function: that does it; the first line of its docstring is the help of the command.
        title: a few words for people.
        summary: a line in the list of commands.
        reads: which arguments of the function come from files: `table` (measures of points), `tables` (one or several tables by
            name) or `error` (of each point), with a question mark where it may be left out. Empty for a task whose command is
            written by hand.
        metrics: what the argument `metric` may be, the default first; empty if there is no such argument.
        metric_of: the metric of a name that is not among `metrics`, such as `error_at_33`; raises for an unknown one.
        options: which other arguments can be set: names that `uqprism.cli.tasks.OPTIONS` describes.
        section: of the report, present where there is all that the task reads; None for none.
        page: of the documentation, with an anchor if it is part of one.
        place: where the task stands in lists; equal ones by name.
    """

    name: str
    command: str
    function: Callable[..., Any]
    title: str
    summary: str = ""
    reads: Mapping[str, Kind] | None = None
    metrics: tuple[Metric, ...] = ()
    metric_of: Callable[[str], Metric] | None = None
    options: tuple[str, ...] = ()
    section: ReportSection | None = None
    page: str = ""
    place: int = 50

    @property
    def help(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    def metric(self, name: str) -> Metric:
        """The metric of this name."""
        found = next((each for each in self.metrics if each.name == name), None)
        return found or (self.metric_of(name) if self.metric_of is not None else Metric(name=name))


TASKS: Registry[Task] = Registry("task", "uqprism.tasks")


def register(task: Task) -> Task:
    """Add a task under its name."""
    return TASKS.register(task.name)(task)


def all_tasks() -> list[Task]:
    """All tasks, in the order in which people meet them."""
    return sorted((task for _, task in TASKS.items()), key=lambda task: (task.place, task.name))


def metric_of(task: str, name: str) -> Metric:
    """A metric of a task; its name alone where the task or the metric is not registered."""
    try:
        return TASKS.get(task).metric(name)
    except UnknownNameError:
        return Metric(name=name)

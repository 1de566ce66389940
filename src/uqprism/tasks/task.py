"""What a task is to the rest of the package: one description, from which API, command, report section and documentation follow.

A module of this package that calls `register(Task(...))` adds a task; nothing else has to be written.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from uqprism.errors import UnknownNameError
from uqprism.measures import published
from uqprism.registry import Registry, unknown
from uqprism.support.optional import require

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
class Evidence:
    """A number of the paper.

    Attributes:
        measure: whose.
        value: the mean over the paper's data sets.
        spread: its standard deviation over runs.
    """

    measure: str
    value: float
    spread: float


@dataclass(frozen=True)
class Recommendation:
    """What to use for a task, and why.

    Attributes:
        measure: the one to begin with.
        alternatives: measures that did as well or nearly so.
        reason: a paragraph.
        metric: what the evidence is in, and where in the paper it stands.
        evidence: numbers of the paper, the best first; `printed` reads them.
        task: which task.
    """

    measure: str
    alternatives: tuple[str, ...]
    reason: str
    metric: str
    evidence: tuple[Evidence, ...]
    task: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """The evidence, one row per measure."""
        return [{"measure": each.measure, "paper": each.value, "spread": each.spread} for each in self.evidence]

    def to_pandas(self) -> Any:
        """The evidence as a `pandas.DataFrame`, a row per measure."""
        return require("pandas", extra="pandas").DataFrame(self.rows()).set_index("measure")

    def to_json(self) -> str:
        """All of it as JSON text."""
        about = {"task": self.task, "measure": self.measure, "alternatives": self.alternatives, "reason": self.reason}
        return json.dumps({**about, "metric": self.metric, "evidence": self.rows()}, indent=2)

    def __str__(self) -> str:
        width = max(len(each.measure) for each in self.evidence)
        numbers = [f"  {each.measure:<{width}}  {each.value:.3f} +- {each.spread:.3f}" for each in self.evidence]
        head = [f"{self.task}: {self.measure}", *(f"  or {name}" for name in self.alternatives)]
        return "\n".join([*head, "", textwrap.fill(self.reason, 100), "", f"{self.metric}:", *numbers])


def printed(table: str, *measures: str) -> tuple[Evidence, ...]:
    """The numbers of these measures in a table of the paper."""
    cells = published.table(table)
    return tuple(Evidence(name, *cells[name]) for name in measures)


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
        function: computes the result; the first line of its docstring is the help of the command.
        title: a few words for people.
        summary: a line in the list of commands.
        reads: which arguments of the function come from files: `table` (measures of points), `tables` (one or several tables by
            name) or `error` (of each point), with a question mark where it may be left out. Empty for a task whose command is
            written by hand.
        metrics: what the argument `metric` may be, the default first; empty if there is no such argument.
        metric_of: the metric of a name that is not among `metrics`, such as `error_at_33`; raises for an unknown one.
        options: which other arguments can be set: names that `uqprism.cli.tasks.OPTIONS` describes.
        advice: which measure the paper advises for it, or None.
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
    advice: Recommendation | None = None
    section: ReportSection | None = None
    page: str = ""
    place: int = 50

    def __post_init__(self) -> None:
        if self.advice is not None:
            object.__setattr__(self, "advice", replace(self.advice, task=self.name))  # so that a task's name is written once

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
    except UnknownNameError:  # a result may be of a task that is not registered
        return Metric(name=name)


def recommend(task: str) -> Recommendation:
    """The paper's advice for a task: `selective_prediction`, `ood_detection` or `active_learning`.

    It is a starting point; `select_measure` compares measures on your own validation data.
    """
    advice = {each.name: each.advice for each in all_tasks() if each.advice is not None}
    name = {each.command: each.name for each in all_tasks()}.get(task, task)  # the names of commands are understood too
    if name not in advice:
        raise unknown("task", task, advice)
    return advice[name]

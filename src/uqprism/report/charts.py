"""The figures of a report, drawn at the size of a phone's screen, of which two stand side by side on a wide one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism import plots
from uqprism.measures.vocabulary import measure_in_words, told_unit
from uqprism.plots.svg import marks, places, render
from uqprism.report.findings import Findings
from uqprism.report.steps import lead
from uqprism.report.subject import Subject
from uqprism.report.tables import details
from uqprism.report.words import SPACE, count, number
from uqprism.tasks.rank_correlation import RankCorrelation
from uqprism.tasks.task import Task

WIDTH = 4.4  # inches
BEST_OF_EACH = (
    "Shown are the measure that is advised and the best of each kind (total, noise, removable part), unless they look the same."
)
MOST_OUTSIDE = 1_000  # rows drawn of each file from outside


@dataclass(frozen=True)
class Chart:
    """A figure of the page.

    Attributes:
        name: of its own.
        title: above it.
        caption: below it.
        svg: the drawing.
        wide: whether it needs the width of the page.
        data: what the page's script knows of its points, as JSON; empty if it has none.
    """

    name: str
    title: str
    caption: str
    svg: str
    wide: bool = False
    data: str = ""


def chart(
    name: str, title: str, caption: str, draw: Callable[[Any], Any], *, height: float, width: float = WIDTH, wide: bool = False
) -> Chart:
    """One figure."""
    return Chart(name, title, caption, render(draw, name=name, width=width, height=height)[0], wide)


def scatter(subject: Subject) -> Chart:
    """Noise against what more data would remove: all rows as a density, some as dots that tell which they are."""
    noise, removable, others = subject.noise, subject.removable, subject.elsewhere
    drawn = plots.sample(noise, removable)
    places_of = {name: plots.sample(each.noise, each.removable, MOST_OUTSIDE) for name, each in others.items()}
    how: dict[str, Any] = {"rule": subject.split.rule, "unit": subject.unit, "drawn": [], "density": len(drawn) < subject.n_rows}
    how["outside"] = {name: (each.noise, each.removable) for name, each in others.items()}
    svg, axes = render(
        lambda ax: plots.noise_and_disagreement(noise, removable, **how, ax=ax),
        name="scatter",
        width=WIDTH,
        height=4.0 + 0.1 * len(others),
    )
    spots = [places(axes, noise[drawn], removable[drawn]).round(1)]
    found = "".join(f"M{x:g} {y:g}h0" for x, y in spots[0])
    added = f'<path class="dots" d="{found}"/>'
    for place, (name, each) in enumerate(others.items()):
        spots.append(places(axes, each.noise[places_of[name]], each.removable[places_of[name]]).round(1))
        colour, marker = plots.kind_of(place)
        added += marks(spots[-1], marker, colour)
    svg = svg.replace("</svg>", f'{added}<circle class="ring" r="4.5" cx="-9" cy="-9"/></svg>')
    data = _dots(subject, drawn, places_of, np.concatenate(spots))
    caption = _scatter_caption(subject, len(drawn), {name: len(rows) for name, rows in places_of.items()})
    return Chart("scatter", "Each row, by the two kinds of uncertainty", caption, svg, data=data)


def _scatter_caption(subject: Subject, drawn: int, outside: Mapping[str, int]) -> str:
    """What is drawn, and of what it is a sample."""
    told = (
        "Each dot is a row."
        if drawn == subject.n_rows
        else (
            f"Grey shows all {subject.n_rows:,} rows, the stronger the more; {drawn:,} of them, sampled for drawing with the "
            "most uncertain of either kind always among them, are dots."
        )
    )
    some = [
        f"{n:,} of {len(subject.elsewhere[name].noise):,} from “{name}”"
        for name, n in outside.items()
        if n < len(subject.elsewhere[name].noise)
    ]
    told += f" Of the rows from outside a sample is drawn, likewise: {', '.join(some)}." if some else ""
    return f"{told} Point at one, or tap it, to see which row it is."


def _dots(subject: Subject, drawn: np.ndarray, outside: Mapping[str, np.ndarray], spots: np.ndarray) -> str:
    """Where the dots are and what they are, for the script; nothing in it can end the script's element."""
    columns = {
        "file": ["known rows"] * len(drawn),
        "row": [str(row) for row in subject.numbers[drawn]],
        **details(subject, drawn, in_columns=False),
        "noise": [number(float(x)) for x in subject.noise[drawn]],
        "removable part": [number(float(x)) for x in subject.removable[drawn]],
    }
    for name, rows in outside.items():
        each = subject.elsewhere[name]
        more = {
            "file": [name] * len(rows),
            "row": [str(row) for row in each.numbers[rows]],
            "noise": [number(float(x)) for x in each.noise[rows]],
            "removable part": [number(float(x)) for x in each.removable[rows]],
        }
        columns = {column: [*cells, *more.get(column, [""] * len(rows))] for column, cells in columns.items()}
    if not outside:
        del columns["file"]
    found = {"x": spots[:, 0].tolist(), "y": spots[:, 1].tolist(), "names": list(columns), "values": list(columns.values())}
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def distributions(subject: Subject) -> Chart:
    """How both kinds are distributed."""
    how = {"rule": subject.split.rule, "unit": subject.unit}
    return chart(
        "distributions",
        "How both are distributed over the rows",
        f"All {count(subject.n_rows, 'row')}{', without those from outside' if subject.elsewhere else ''}. The "
        "higher, the more rows have that much of it.",
        lambda ax: plots.distributions(subject.noise, subject.removable, **how, ax=ax),
        height=3.2,
    )


def of_result(task: Task, result: Any, subject: Subject) -> Chart:
    """What a task found, as the result draws itself."""
    words = subject.error_words
    if task.name == "selective_prediction":
        return chart(
            "retention",
            "The error of the rows that are kept",
            f"Read it from right to left: the most uncertain rows are handed over first. All rows count. {BEST_OF_EACH}",
            lambda ax: plots.retention_curves(result, ax=ax, error=words.mean_axis),
            height=5.0,
        )
    if isinstance(result, RankCorrelation):
        named = len(result.names) <= plots.MOST_NAMES
        size = {"width": 7.2, "height": 5.4} if named else {"width": 5.4, "height": 4.0}
        return chart(
            task.command, "Kendall's tau between all pairs of measures", "", lambda ax: result.plot(ax=ax), wide=named, **size
        )
    title = "Rows from outside found, for each share of false alarms" if task.name == "ood_detection" else ""
    return chart(task.command, title, BEST_OF_EACH if title else "", lambda ax: result.plot(ax=ax), height=5.4)


def errors(subject: Subject, findings: Findings) -> Chart:
    """The error where the uncertainty is low, and where it is high."""
    measure = lead(findings.results["selective_prediction"], subject)
    groups = plots.group_count(subject.n_rows)
    told = measure_in_words(measure)
    how: dict[str, Any] = {
        "kind": subject.error_words,
        "label": ": ".join(filter(None, (told or measure, told_unit(measure.split(".")[0], subject.unit) if told else ""))),
    }
    return chart(
        "errors",
        "The error against the uncertainty",
        f"The rows, sorted by {told or measure}, in {count(groups, 'group')} of equal size; bars are 95{SPACE}% intervals of "
        "a group's mean (Student's t). Where the uncertainty knows which errors are large, the dots rise from left to right.",
        lambda ax: plots.error_against_uncertainty(subject.measures[measure], subject.error, **how, ax=ax),
        height=3.6,
    )


def calibration(findings: Findings) -> list[Chart]:
    """Where targets fell, and how many intervals hold."""
    found = findings.calibration
    assert found is not None  # noqa: S101 (asked for only where there is one)
    bins = int(np.clip(found.n_points // 20, 5, 20))
    return [
        chart(
            "coverage",
            "Do intervals hold what they promise?",
            "Below the dashed line intervals are too narrow, above it too wide.",
            lambda ax: plots.coverage(found, ax=ax),
            height=4.2,
        ),
        chart(
            "pit",
            "Where in the predicted range did the targets fall?",
            "Level bars are right. High ends: the predictions are too sure. High middle: not sure enough. A slope: they are "
            "too high or too low.",
            lambda ax: plots.pit_histogram(found, bins, ax=ax),
            height=3.6,
        ),
    ]

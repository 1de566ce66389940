"""The figures of a report, in the size of a phone's screen; a wide screen shows two side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism import plots
from uqprism.measures.vocabulary import is_square, measure_in_words, risk_unit, rule_words, unit_in_words
from uqprism.plots.svg import marks, places, render
from uqprism.plots.words import from_set
from uqprism.report.findings import OOD, SELECTIVE, ReportFindings
from uqprism.report.formatting import SPACE, amount, count
from uqprism.report.subject import Rows, Subject
from uqprism.report.tables import details
from uqprism.tasks.audit.result import Promise
from uqprism.tasks.rank_correlation import RankCorrelation
from uqprism.tasks.task import Task

WIDTH = 4.4  # inches
BEST_OF_EACH = (
    "Shown are the measure that is advised and the best of each kind (total, noise, disagreement), unless they look the same."
)
MOST_OOD = 1_000  # rows drawn of each file of unfamiliar inputs


@dataclass(frozen=True)
class Chart:
    """A figure of the page.

    Attributes:
        name: its anchor, unique on the page.
        title: the heading.
        caption: the text below.
        svg: the drawing.
        wide: whether it takes the width of the page.
        data: its points as JSON for the script of the page; empty for none.
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
    """Noise against disagreement: all rows as a density, a sample as dots that name their row."""
    others = subject.ood_pairs
    noise, disagreement = subject.shown_parts
    drawn = plots.sample(noise, disagreement)
    pairs = {name: rows.shown_parts for name, rows in others.items()}
    sampled = {name: plots.sample(*pair, MOST_OOD) for name, pair in pairs.items()}
    # The page draws the dots itself, at places that its script also knows.
    how: dict[str, Any] = {"rule": subject.pair.rule, "unit": subject.unit, "drawn": [], "density": len(drawn) < subject.n_rows}
    how |= {"ood": pairs, "label": counted_in(subject)}
    svg, axes = render(
        lambda ax: plots.noise_and_disagreement(noise, disagreement, **how, ax=ax),
        name="scatter",
        width=WIDTH,
        height=4.0 + 0.1 * len(others),
    )
    spots = [places(axes, noise[drawn], disagreement[drawn]).round(1)]  # tenths of a unit are too small to see
    # Lines of no length with round ends: one element, where thousands of circles would be slow.
    path = "".join(f"M{x:g} {y:g}h0" for x, y in spots[0])
    added = f'<path class="dots" d="{path}"/>'
    for place, (name, pair) in enumerate(pairs.items()):
        spots.append(places(axes, *(part[sampled[name]] for part in pair)).round(1))
        colour, marker = plots.kind_of(place)
        added += marks(spots[-1], marker, colour)
    # The ring around the dot that is pointed at waits out of sight.
    svg = svg.replace("</svg>", f'{added}<circle class="ring" r="4.5" cx="-9" cy="-9"/></svg>')
    data = _dots(subject, drawn, sampled, np.concatenate(spots))
    caption = _scatter_caption(subject, len(drawn), {name: len(rows) for name, rows in sampled.items()})
    return Chart("scatter", "Each row, by the two kinds of uncertainty", caption, svg, data=data)


def _scatter_caption(subject: Subject, drawn: int, ood: Mapping[str, int]) -> str:
    """What is drawn, and from how many rows it is a sample."""
    text = "Each dot is a row."
    if drawn < subject.n_rows:
        text = (
            f"The darker the grey, the more of all {subject.n_rows:,} rows lie there; the dots are a sample of {drawn:,} that "
            "includes the most uncertain of either kind."
        )
    others = subject.ood_pairs
    some = [f"{n:,} of {others[name].n_rows:,} rows {from_set(name)}" for name, n in ood.items() if n < others[name].n_rows]
    text += f" Samples are also drawn of unfamiliar rows: {', '.join(some)}." if some else ""
    return f"{text} Point at one, or tap it, to see which row it is."


def _dots(subject: Subject, drawn: np.ndarray, ood: Mapping[str, np.ndarray], spots: np.ndarray) -> str:
    """Places and details of the dots as JSON, in which `<` is escaped so that it cannot end the script element."""
    columns = {"file": ["known rows"] * len(drawn)}
    columns |= {subject.id_name: subject.names_of(drawn)} if subject.id_name else {}
    columns |= _details(subject, drawn, details(subject, drawn, in_columns=False), subject.unit)
    for name, places_of in ood.items():
        more = {"file": [name] * len(places_of), **_details(subject.ood[name], places_of, {}, subject.unit)}
        # Rows of other files lack the further columns.
        columns = {column: [*cells, *more.get(column, [""] * len(places_of))] for column, cells in columns.items()}
    if not ood:
        del columns["file"]
    data = {"x": spots[:, 0].tolist(), "y": spots[:, 1].tolist(), "names": list(columns), "values": list(columns.values())}
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _details(rows: Rows, places_of: np.ndarray, known: Mapping[str, list[str]], unit: str) -> dict[str, list[str]]:
    """What the page says of each of these rows."""
    unit = unit if is_square(rows.pair.rule) else risk_unit(rows.pair.rule, unit)
    parts = dict(zip(("noise", "disagreement"), rows.shown_parts, strict=True))
    shown = {name: [amount(float(value), unit) for value in values[places_of]] for name, values in parts.items()}
    return {"row": [str(row) for row in rows.numbers[places_of]], **known, **shown}


def distributions(subject: Subject) -> Chart:
    """How noise and disagreement are distributed."""
    how: dict[str, Any] = {"rule": subject.pair.rule, "unit": subject.unit, "label": counted_in(subject), "plain": True}
    return chart(
        "distributions",
        "How both are distributed over the rows",
        f"All {count(subject.n_rows, 'row')}{', without unfamiliar ones' if subject.ood_pairs else ''}. The "
        "higher, the more rows have that much of it.",
        lambda ax: plots.distributions(*subject.shown_parts, **how, ax=ax),
        height=4.0 + 0.1 * len(subject.ood_pairs),
    )


def counted_in(subject: Subject) -> str:
    """What noise and disagreement are counted in, where it is not the rule's own unit; empty otherwise."""
    if not is_square(subject.pair.rule):
        return ""
    return f"root of the {rule_words(subject.pair.rule).name}{f', {subject.unit}' if subject.unit else ''}"


def of_result(task: Task, result: Any, subject: Subject) -> Chart:
    """The figure of a task."""
    if task.name == SELECTIVE:
        return chart(
            "retention",
            "The error of the rows that are kept",
            f"Read it from right to left: the most uncertain rows are handed over first. All rows count. {BEST_OF_EACH}",
            lambda ax: plots.retention_curves(result, ax=ax, error=subject.error_words, plain=True),
            height=4.6,
        )
    if isinstance(result, RankCorrelation):
        named = len(result.names) <= plots.MOST_NAMES  # names need the width of the page
        size = {"width": 7.2, "height": 5.4} if named else {"width": 5.4, "height": 4.0}
        title = "Kendall's tau between all pairs of measures"
        return chart(task.command, title, "", lambda ax: plots.rank_correlation(result, ax=ax, plain=True), wide=named, **size)
    if task.name == OOD:
        title = "Unfamiliar rows found, for each share of false alarms"
        return chart(task.command, title, BEST_OF_EACH, lambda ax: plots.roc_curves(result, ax=ax, plain=True), height=5.0)
    wide = result.figure == "intervals"  # the names of the measures stand beside the axis
    size = {"width": 7.2, "height": 5.4} if wide else {"height": 5.4}
    return chart(task.command, "", "", lambda ax: result.plot(ax=ax), wide=wide, **size)


def errors(subject: Subject, findings: ReportFindings) -> Chart:
    """The error of groups of rows from the least to the most uncertain."""
    measure = findings.leads[SELECTIVE]
    groups = plots.group_count(subject.n_rows)
    words = measure_in_words(measure)
    unit = unit_in_words(measure.split(".")[0], subject.unit) if words else ""
    how: dict[str, Any] = {"kind": subject.error_words, "label": f"{words or measure}{f': {unit}' if unit else ''}"}
    return chart(
        "errors",
        "The error against the uncertainty",
        f"The rows, sorted by {words or measure}, in {count(groups, 'group')} of equal size; bars are 95{SPACE}% intervals of "
        "a group's mean (Student's t). Where the uncertainty finds the large errors, the dots rise from left to right.",
        lambda ax: plots.error_against_uncertainty(subject.measures[measure], subject.error, **how, ax=ax),
        height=4.2,
    )


def audited(promise: Promise) -> Chart:
    """The penalty by size of the training set, and what is expected of more."""
    return chart(
        "promise",
        "The penalty with more and more rows, and what the models said",
        "An arrow goes as far down as the models of that size said the penalty could fall with ever more data like theirs; the "
        "line shows how far it fell. Shaded are 95\u00a0% intervals.",
        lambda ax: plots.promise(promise, ax=ax),
        height=5.2,
    )


def calibration(findings: ReportFindings) -> list[Chart]:
    """How many targets intervals hold, and where in the predicted distributions targets fell."""
    found = findings.calibration
    assert found is not None  # noqa: S101 (called only where there is one)
    bins = int(np.clip(found.n_points // 20, 5, 20))  # about 20 targets to a bar
    return [
        chart(
            "coverage",
            "Do intervals hold what they promise?",
            "Below the dashed line intervals are too narrow, above it too wide.",
            lambda ax: plots.coverage(found, ax=ax),
            height=4.0,
        ),
        chart(
            "pit",
            "Where in the predicted range did the targets fall?",
            "Level bars are right. High ends: the predictions are too sure. High middle: not sure enough. A slope: they are "
            "too high or too low.",
            lambda ax: plots.pit_histogram(found, bins, ax=ax),
            height=4.0,
        ),
    ]

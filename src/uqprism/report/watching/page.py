"""A page that says what changed in a stream, since when, which rows show it, and what to do."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism import plots
from uqprism.measures.vocabulary import rule_words
from uqprism.report.charts import Chart, chart
from uqprism.report.formatting import count
from uqprism.report.page import environment, text_of
from uqprism.support.numbers import number
from uqprism.support.optional import require
from uqprism.support.storage import PAGES as ENDINGS
from uqprism.support.storage import check_ending, write_text
from uqprism.support.versions import __version__
from uqprism.tasks.watch.watch import PAGES, Watch

if TYPE_CHECKING:
    import numpy as np

LATEST = 20  # windows in the table
WIDTH, HEIGHT = 7.2, 3.6  # inches


@dataclass(frozen=True)
class WatchPage:
    """A page that was written.

    Attributes:
        path: the file.
        headline: its first sentence.
    """

    path: Path
    headline: str

    def __str__(self) -> str:
        return f"{self.path}: {self.headline}"


@PAGES.register("watch")
def write_watch(watch: Watch, output: str | os.PathLike[str] = "watch.html", *, title: str = "") -> WatchPage:
    """Write the page of a watch: one file, no network.

    Args:
        watch: the watch.
        output: the file to write.
        title: of the page.
    """
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report")
    check_ending(output, ENDINGS, "output")
    jinja = environment()
    jinja.filters["code"] = _code
    headline = headline_of(watch)
    html = jinja.get_template("watch.html").render(
        version=__version__,
        title=title or "predictions under watch",
        subtitle=_subtitle(watch),
        css=text_of(jinja, "report.css"),
        headline=headline,
        penalty=_penalty(watch),
        alarms=watch.alarms,
        charts=_charts(watch),
        tests=_tests(watch),
        windows=_windows(watch.history),
        rule=rule_words(watch.rule).name,
        guarantee=watch.guarantee,
    )
    write_text(output, html)
    return WatchPage(Path(output), headline)


def _code(text: str) -> Any:
    """The text for the page, with what stands between backticks as code."""
    markup = require("markupsafe", extra="report")
    parts = text.split("`")
    return markup.Markup("").join(
        markup.Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)
    )


def headline_of(watch: Watch) -> str:
    """The first sentence: what has changed, or that nothing has, as far as can be told."""
    if not watch.windows:
        return "No rows have come yet."
    if not watch.alarms:
        return f"No change was found in {count(watch.rows, 'row')}."
    told = list(dict.fromkeys(alarm.brief for alarm in watch.alarms))
    text = "; ".join(told)
    return f"{text[0].upper()}{text[1:]}."


def _subtitle(watch: Watch) -> str:
    waiting = f"; {count(watch.waiting, 'row')} wait for their window to be full" if watch.waiting else ""
    return f"{count(watch.rows, 'row')} in {count(watch.windows, 'window')}, {count(len(watch.tests), 'test')}{waiting}"


def _penalty(watch: Watch) -> str:
    """What predictions cost now, in a sentence; empty before the first window."""
    found, words = watch.estimate, rule_words(watch.rule)
    if found is None or math.isnan(found.value):
        return ""
    how = (
        f"corrected by {count(watch.correction.rows, 'outcome')} of the reference"
        if found.corrected
        else "as far as the models know; outcomes of the reference would correct it"
    )
    return (
        f"In the latest window a prediction costs {number(found.value)} on average ({words.name}; 95 % interval "
        f"{number(found.low)} to {number(found.high)}), {how}."
    )


def _charts(watch: Watch) -> list[Chart]:
    if not watch.windows:
        return []
    size: dict[str, Any] = {"width": WIDTH, "height": HEIGHT, "wide": True}
    return [
        chart(
            "evidence",
            "Evidence of a change",
            "Where a line reaches the dashed one, there is an alarm (red). If nothing changes, evidence seldom grows.",
            lambda ax: plots.evidence(watch, ax=ax),
            **size,
        ),
        chart(
            "penalty",
            "What predictions cost",
            "The estimate needs no outcomes; dots are means over the rows whose outcomes are known. The band is a 95 % interval.",
            lambda ax: plots.penalties(watch, ax=ax),
            **size,
        ),
    ]


def _tests(watch: Watch) -> list[tuple[str, str, str, str]]:
    raised = {alarm.test: alarm for alarm in watch.alarms}
    return [
        (name, number(evidence), number(watch.thresholds[name]), f"window {raised[name].window:,}" if name in raised else "")
        for name, evidence in watch.evidence.items()
    ]


def _windows(history: Mapping[str, np.ndarray]) -> list[list[str]]:
    """The latest windows, the last first."""
    shown = slice(None, -LATEST - 1, -1)
    names = ("bayes", "excess", "estimate", "penalty")
    return [
        [f"{int(window):,}", f"{int(rows):,}", *("" if math.isnan(value) else number(value) for value in values)]
        for window, rows, *values in zip(*(history[name][shown].tolist() for name in ("window", "rows", *names)), strict=True)
    ]

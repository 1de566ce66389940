"""The report: one HTML file with everything in it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.approximations import approximations
from uqprism.ensemble.columns import Columns
from uqprism.report.doors import subject_of
from uqprism.report.findings import Findings, Tell, find
from uqprism.report.request import Request
from uqprism.report.sections import all_sections
from uqprism.report.sentences import Parts, penalty
from uqprism.report.subject import Subject
from uqprism.report.words import SPACE, amounts, count, number, percent
from uqprism.support.optional import require
from uqprism.support.storage import write_text
from uqprism.support.versions import __version__
from uqprism.tasks.resampling import RESAMPLES

DEFINITIONS = {
    "noise": "Noise (aleatoric uncertainty) would remain however much data there were: with the same inputs, outcomes still "
    "differ.",
    "removable": "What more data would remove (epistemic uncertainty) is there because the models have seen too little: they "
    "disagree.",
}

TOLD = (("split",), ("errors",), ("elsewhere", "outside"))  # in a terminal, a paragraph each


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Attributes:
        path: where.
        size: of the file, in bytes.
        sentences: its summary, by what each is about: `split`, `happened`, `kinds`, `rows`, `errors`, `calibration`, `elsewhere`,
            `outside`, `missed`, `left_out`.
        findings: all numbers in it.
    """

    path: Path
    size: int
    sentences: Mapping[str, str]
    findings: Findings

    def told(self, width: int = 100) -> str:
        """What matters most of the summary, for a terminal: up to three paragraphs."""
        known = self.sentences
        found = [" ".join(known[name] for name in names if name in known) for names in TOLD if set(names) & set(known)]
        return "\n".join(textwrap.fill(each, width, initial_indent="- ", subsequent_indent="  ") for each in found)

    def __str__(self) -> str:
        return f"{self.path} ({self.size / 1e6:.2f} MB)"


def write_report(
    source: Any,
    output: str | os.PathLike[str] = "report.html",
    *,
    target: Any = None,
    prediction: Any = None,
    error: Any = "squared",
    error_column: str | None = None,
    ood: Any = None,
    measures: str | Sequence[str] | None = None,
    rule: str = "crps",
    unit: str = "",
    title: str | None = None,
    show: Sequence[str] | None = None,
    columns: Columns | None = None,
    on_bad: str = "error",
    resamples: int = RESAMPLES,
    seed: int = 0,
    command: str = "",
    tell: Tell = lambda _: None,
) -> Report:
    """Write a page that shows how uncertain predictions are and why, for people who never read the paper; one file, no network.

    Which parts it has follows from what is given: the split into noise and what more data would remove always; with targets
    whether the uncertainty finds the errors, and calibration; with points from outside how well they are noticed.

    Args:
        source: a Parquet, CSV or NPZ file (or several, a folder, a pattern) with members or measures; an `EnsemblePrediction`;
            or a table of measures.
        output: the file to write, whole or not at all.
        target: what happened: the name of a column for a file, else an array.
        prediction: what was predicted, likewise; by default the members' mean, which it always is for an ensemble.
        error: `squared`, `absolute`, `nll` or `crps`, made from target and prediction; for an ensemble or a table also an
            array.
        error_column: of a file, the error of each point, in place of a target.
        ood: points from outside: a file or several; an ensemble or table, or several by name.
        measures: names or patterns; by default total, noise and removable part under four rules, or what a scored file has.
        rule: under which the uncertainty is split.
        unit: of the target, for the page.
        title: for the page; by default the name of the file.
        show: columns of the file to tell rows apart by; by default the first four that are nothing else.
        columns: which columns of a file hold the members.
        on_bad: `error`, or `drop` for leaving out rows that lack a number or have bad members.
        resamples: for intervals; 0 for none.
        seed: of the resamples.
        command: how the page was asked for, to be told on it.
        tell: hears what is being done.
    """
    require("jinja2", extra="report")
    tell("reading")
    request = Request(
        target, prediction, error, error_column, ood, measures, rule, unit, title, show, columns or Columns(), on_bad
    )
    subject = subject_of(source, request)
    findings = find(subject, resamples=resamples, seed=seed, tell=tell)
    tell("drawing")
    html = render(subject, findings, resamples=resamples, seed=seed, command=command)
    write_text(output, html)
    return Report(Path(output), len(html.encode()), findings.sentences, findings)


def render(subject: Subject, findings: Findings, *, resamples: int, seed: int, command: str = "") -> str:
    """The page."""
    jinja = require("jinja2", extra="report")
    loader = jinja.PackageLoader("uqprism.report", "templates")
    environment = jinja.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    parts = findings.parts
    return environment.get_template("report.html").render(
        version=__version__,
        title=subject.title,
        subtitle=_subtitle(subject),
        css=_text(environment, "report.css"),
        script=_text(environment, "report.js"),
        sections=all_sections(subject, findings, resamples=resamples, seed=seed, command=command),
        tiles=_tiles(parts, findings, subject.split.prediction),
        share=100.0 * parts.noise / parts.total if parts.has_shares else None,
        share_told=f"{percent(parts.noise / parts.total)} noise" if parts.has_shares else "",
        sentences=list(findings.sentences.values()),
        steps=findings.steps,
        definitions=_definitions(parts),
        penalty=penalty(parts, subject.split.prediction, findings.average, intervals=findings.calibration is not None),
    )


def _definitions(parts: Parts) -> list[tuple[str, str]]:
    """Of both kinds; with one model nobody sees the second."""
    return list(DEFINITIONS.items())[: 1 if parts.n_members == 1 else 2]


def _text(environment: Any, name: str) -> str:
    return str(environment.loader.get_source(environment, name)[0])


def _subtitle(subject: Subject) -> str:
    models = "" if subject.ensemble is None else f", {count(subject.ensemble.n_members, 'model')}"
    lacking = subject.n_given - subject.n_rows
    given = [count(subject.n_rows, "row") + models + (f" ({lacking:,} of {subject.n_given:,} rows left out)" if lacking else "")]
    given += ["targets known"] if subject.target is not None else ["errors known"] if subject.error is not None else []
    given += [f"{count(len(next(iter(table.values()))), 'row')} from “{name}”" for name, table in subject.outside.items()]
    return "; ".join(given)


@dataclass(frozen=True)
class Tile:
    """A number that stands out."""

    value: str
    meaning: str
    unit: str = ""


def _tiles(parts: Parts, findings: Findings, prediction: str) -> list[Tile]:
    unit = parts.risk_unit
    alone = parts.n_members == 1 or prediction not in approximations
    whose = "" if alone else f" of predicting with {approximations.get(prediction).prediction}"
    found = [Tile(number(parts.total), f"expected penalty{whose}; mean over the rows", unit)]
    if parts.has_shares and parts.n_members != 1:
        found.append(Tile(percent(parts.noise / parts.total), "of it is noise"))
        found.append(Tile(percent(parts.removable / parts.total), "of it more data would remove"))
    elif parts.n_members != 1:
        found += [
            Tile(number(parts.noise), "of it is noise", unit),
            Tile(number(parts.removable), "of it more data would remove", unit),
        ]
    if findings.happened is not None:
        expected, came = amounts([findings.happened.expected, findings.happened.came], "")
        who = "the model" if parts.n_members == 1 else "the average of the models"
        found.append(Tile(came, f"is what {who} really cost; {expected} was expected", unit))
    if findings.calibration is not None:
        found.append(
            Tile(
                f"{100.0 * float(findings.calibration.coverage(0.9)[0]):.1f}{SPACE}%",
                f"of the targets lie in 90{SPACE}% intervals",
            )
        )
    return found

"""The report: one HTML file with everything in it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.approximations import approximations
from uqprism.ensemble.columns import Columns
from uqprism.measures import MeasuresLike
from uqprism.plots.words import from_set
from uqprism.report import sentences
from uqprism.report.findings import Parts, ReportFindings, find
from uqprism.report.formatting import SPACE, amounts, count, number, percent
from uqprism.report.readers import read_subject
from uqprism.report.sections import all_sections
from uqprism.report.subject import Subject
from uqprism.support.optional import require
from uqprism.support.storage import PAGES, check_ending, write_text
from uqprism.support.versions import __version__
from uqprism.tasks.resampling import RESAMPLES

DEFINITIONS = {
    "noise": "Noise (aleatoric uncertainty) stays however much data there is: with the same inputs, outcomes still differ.",
    "disagreement": "Disagreement between the models (epistemic uncertainty) shows where they have seen too little: according "
    "to these models, it is what more data could reduce.",
}

TERMINAL = (("split",), ("errors",), ("ood", "detection"))  # the sentences of each paragraph


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Attributes:
        path: the file.
        size: of the file, in bytes.
        sentences: the summary by subject: `split`, `realised`, `kinds`, `rows`, `errors`, `calibration`, `ood`, `detection`,
            `missed`, `left_out`.
        advice: what to do next.
        findings: all numbers in it.
    """

    path: Path
    size: int
    sentences: Mapping[str, str]
    advice: Sequence[str]
    findings: ReportFindings

    def summary(self, width: int = 100) -> str:
        """The most important sentences for a terminal, in up to three paragraphs."""
        known = self.sentences
        found = [" ".join(known[name] for name in names if name in known) for names in TERMINAL if set(names) & set(known)]
        return "\n".join(textwrap.fill(each, width, initial_indent="- ", subsequent_indent="  ") for each in found)

    def __str__(self) -> str:
        return f"{self.path} ({self.size / 1e6:.2f} MB)"


def write_report(
    source: Any,
    output: str | os.PathLike[str] = "report.html",
    *,
    target: Any = None,
    prediction: Any = None,
    error: Any = None,
    ood: Any = None,
    columns: Columns | None = None,
    measures: MeasuresLike = None,
    rule: str = "crps",
    unit: str = "",
    title: str | None = None,
    show: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Report:
    """Write a page that shows how uncertain predictions are and why, for people who never read the paper; one file, no network.

    The split into noise and disagreement is always shown. Targets add whether the uncertainty finds the errors, and calibration;
    unfamiliar inputs (`ood`) add how well they are noticed.

    Args:
        source: an `EnsemblePrediction`; a table of measures; a data frame with columns of members or measures; a Parquet, CSV or
            NPZ file, several, a folder or a pattern; or `uqprism.files.points.Points`, which also say how bad rows are treated.
        output: the file to write.
        target: what happened: an array, or the name of a column of the file or frame.
        prediction: what was predicted, given as the target is; by default the members' mean.
        error: with a target the kind of error: `squared` (the default), `absolute`, `nll` or `crps`. Otherwise the errors
            themselves: an array, or the name of their column.
        ood: predictions for unfamiliar inputs, of the same kind as the source; or several: files in a list, others by name.
        columns: which columns of a file or frame hold the members.
        measures: names or patterns; by default the usual twelve, or the measures that are there.
        rule: the rule under which the uncertainty is split.
        unit: of the target.
        title: of the page; by default the name of the file.
        show: columns that tell rows apart; by default the first four that have no other use.
        resamples: how many the intervals are made from; 0 for none.
        seed: of the resamples.
    """
    require("jinja2", extra="report")
    check_ending(output, PAGES, "output")
    subject = read_subject(
        source,
        target=target,
        prediction=prediction,
        error=error,
        ood=ood,
        columns=columns,
        measures=measures,
        rule=rule,
        unit=unit,
        title=title,
        show=show,
    )
    return write_page(subject, output, resamples=resamples, seed=seed)


def write_page(
    subject: Subject,
    output: str | os.PathLike[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    command: str = "",
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Write the report of a subject that was read.

    Args:
        subject: from `read_subject`.
        output: the file to write.
        resamples: how many the intervals are made from; 0 for none.
        seed: of the resamples.
        command: the shell command to show on the page; empty for none.
        progress: receives the name of each step.
    """
    findings = find(subject, resamples=resamples, seed=seed, progress=progress)
    progress("drawing")
    text, advice = sentences.summary(subject, findings), sentences.advice(subject, findings)
    jinja = require("jinja2", extra="report")
    loader = jinja.PackageLoader("uqprism.report", "templates")
    # Texts come from files: they are escaped, and a name that the template misspells is an error.
    environment = jinja.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    parts = findings.parts
    html = environment.get_template("report.html").render(
        version=__version__,
        title=subject.title,
        subtitle=_subtitle(subject),
        css=_text(environment, "report.css"),
        script=_text(environment, "report.js"),
        sections=all_sections(subject, findings, resamples=resamples, seed=seed, command=command),
        tiles=_tiles(findings, subject.pair.prediction),
        noise_percent=100.0 * parts.bayes / parts.total if parts.has_shares else None,
        noise_text=f"{percent(parts.bayes / parts.total)} noise" if parts.has_shares else "",
        sentences=list(text.values()),
        advice=advice,
        definitions=list(DEFINITIONS.items())[: 1 if parts.is_one_model else 2],  # one model has no disagreement to define
        penalty=sentences.penalty(parts, subject.pair.prediction, findings.average, intervals=findings.calibration is not None),
    )
    write_text(output, html)
    return Report(Path(output), len(html.encode()), text, advice, findings)


def _text(environment: Any, name: str) -> str:
    return str(environment.loader.get_source(environment, name)[0])  # as it is, not as a template


def _subtitle(subject: Subject) -> str:
    models = "" if subject.n_members is None else f", {count(subject.n_members, 'model')}"
    lacking = subject.n_given - subject.n_rows
    given = [count(subject.n_rows, "row") + models + (f" ({lacking:,} of {subject.n_given:,} rows left out)" if lacking else "")]
    given += ["targets known"] if subject.target is not None else ["errors known"] if subject.error is not None else []
    given += [f"{count(rows.n_rows, 'row')} {from_set(name)}" for name, rows in subject.ood.items()]
    return "; ".join(given)


@dataclass(frozen=True)
class Tile:
    """A number in large print, with its meaning and unit."""

    value: str
    meaning: str
    unit: str = ""


def _tiles(findings: ReportFindings, prediction: str) -> list[Tile]:
    parts = findings.parts
    unit = parts.risk_unit
    known = not parts.is_one_model and prediction in approximations
    whose = f" of predicting with {approximations.get(prediction).prediction}" if known else ""
    found = [Tile(number(parts.total), f"expected penalty{whose}; mean over the rows", unit)]
    if not parts.is_one_model:
        found += _part_tiles(parts, unit)
    if findings.realised is not None:
        expected, came = amounts([findings.realised.expected, findings.realised.realised], "")
        who = "the model" if parts.is_one_model else "the average of the models"
        found.append(Tile(came, f"is what {who} really cost; {expected} was expected", unit))
    if findings.calibration is not None:
        inside = f"{100.0 * float(findings.calibration.coverage(0.9)[0]):.1f}{SPACE}%"
        found.append(Tile(inside, f"of the targets lie in 90{SPACE}% intervals"))
    return found


def _part_tiles(parts: Parts, unit: str) -> list[Tile]:
    """Noise and disagreement, as shares where they are shares of a whole."""
    meanings = ("of it is noise", "of it is disagreement between the models")
    values = [parts.bayes, parts.excess]
    shown = [percent(value / parts.total) if parts.has_shares else number(value) for value in values]
    return [Tile(value, meaning, "" if parts.has_shares else unit) for value, meaning in zip(shown, meanings, strict=True)]

"""The report: one HTML file with everything in it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uqprism.ensemble.columns import Columns
from uqprism.measures import MeasuresLike
from uqprism.plots.words import from_set
from uqprism.report import sentences
from uqprism.report.actions import Action, actions
from uqprism.report.findings import ReportFindings, find
from uqprism.report.formatting import count
from uqprism.report.readers import read_subject
from uqprism.report.sections import all_sections
from uqprism.report.split import split_picture
from uqprism.report.subject import Subject
from uqprism.support.optional import require
from uqprism.support.storage import PAGES, check_ending, write_text
from uqprism.support.versions import __version__
from uqprism.tasks.resampling import RESAMPLES

SHORT = 24  # characters that surely fit on a line of a phone
FIRST = {"split", "claim"}  # the sentences of the first screen
TERMINAL = (("split", "claim"), ("errors",), ("ood", "detection"))  # the sentences of each paragraph


@dataclass(frozen=True)
class Report:
    """A report that was written.

    Attributes:
        path: the file.
        size: of the file, in bytes.
        sentences: the summary by subject: `split`, `claim` (how far that holds for more data), `realised`, `kinds`, `rows`,
            `errors`, `calibration`, `ood`, `detection`, `missed`, `left_out`.
        advice: what to do next, the most important first.
        findings: all numbers in it.
    """

    path: Path
    size: int
    sentences: Mapping[str, str]
    advice: Sequence[Action]
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
    unit: str | None = None,
    title: str | None = None,
    show: Sequence[str] | None = None,
    id: Any = None,
    audit: Any = None,
    models: str | None = None,
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
        unit: of the target; by default the one in the name of its column, such as `price ($)` or `load [kWh]`.
        title: of the page; by default the name of the file.
        show: further columns beside the rows; by default the first four that have no other use.
        id: what the rows are called: a column, or for other sources an array; by default the named index of a frame, or a
            column such as `id`, `name` or `house_id` that has another value in each row.
        audit: of such models on such data: the result of `uqprism.audit`, or a file of it. The page then says what more data
            did there.
        models: what the members are, where the source does not say it, as CSV files cannot: `networks` (from several seeds),
            `resampled` (networks on resampled rows), `forest`, `boosting`, `dropout`, `evidential`, `process` or `posterior`.
        resamples: how many the intervals are made from; 0 for none.
        seed: of the resamples.
    """
    for package in ("jinja2", "matplotlib"):
        require(package, extra="report")  # now, not after the work
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
        id=id,
        audit=audit,
        models=models,
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
    text, todo = sentences.summary(subject, findings), actions(subject, findings)
    jinja = environment()
    found = [sentence for name, sentence in text.items() if name not in FIRST]  # which is the first on the page
    script = text_of(jinja, "report.js")
    html = jinja.get_template("report.html").render(
        version=__version__,
        title=subject.title,
        subtitle=_subtitle(subject),
        css=text_of(jinja, "report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        headline=text["split"],
        claim=text.get("claim", ""),
        split=split_picture(findings),
        actions=todo,
        sections=all_sections(subject, findings, found, resamples=resamples, seed=seed, command=command),
    )
    write_text(output, html)
    return Report(Path(output), Path(output).stat().st_size, text, todo, findings)


def environment() -> Any:
    """Where the templates of pages are found."""
    jinja = require("jinja2", extra="report")
    loader = jinja.PackageLoader("uqprism.report", "templates")
    # Texts come from files: they are escaped, and a name that the template misspells is an error.
    found = jinja.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    found.filters["whole"] = whole
    return found


def whole(text: str) -> Any:
    """The text for the page, in which lines do not break within short words that have a hyphen, such as identifiers."""
    markup = require("markupsafe", extra="report")
    words = ((markup.escape(word), "-" in word and len(word) <= SHORT) for word in re.split(r"(\s+)", text))
    return markup.Markup("").join(markup.Markup(f"<span>{word}</span>") if short else word for word, short in words)


def text_of(environment: Any, name: str) -> str:
    """A file beside the templates."""
    return str(environment.loader.get_source(environment, name)[0])  # as it is, not as a template


def _subtitle(subject: Subject) -> str:
    models = "" if subject.n_members is None else f", {count(subject.n_members, 'model')}"
    lacking = subject.n_given - subject.n_rows
    given = [count(subject.n_rows, "row") + models + (f" ({lacking:,} of {subject.n_given:,} rows left out)" if lacking else "")]
    given += ["targets known"] if subject.target is not None else ["errors known"] if subject.error is not None else []
    given += [f"{count(rows.n_rows, 'row')} {from_set(name)}" for name, rows in subject.ood.items()]
    return "; ".join(given)

"""What the first screen says of a file: the sentence, the split and the actions of the report, from the same functions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from uqprism.app.inputs import Comparison, ScoringChoice, Upload
from uqprism.app.scored import ScoredFile
from uqprism.errors import UqprismError
from uqprism.files.points import Points
from uqprism.measures import Measure
from uqprism.report import sentences
from uqprism.report.actions import Action, actions
from uqprism.report.findings import Parts, find
from uqprism.report.naming import identifier, split_unit
from uqprism.report.readers import read_subject
from uqprism.report.subject import MeasurePair, Subject

TARGETS = re.compile(r"(?i)y|target|outcome|label|(y|target)?_?(true|actual|observed)_?(y|target|values?)?")
EXPLAINED = 0.3  # a column of which the predictions explain this share of the variance is what they predict
CANDIDATES = 20  # columns to look at
ONE_DISTRIBUTION = (
    "Prediction and truth are each one distribution here, so these measures do not show how far the models disagree; under "
    "Settings, choose each model in one of the roles."
)
CHECK = "Check the rows in the table below first"
FOR_THE_SHELL = re.compile(r" \(--[a-z-]+\)")
CODE = re.compile(r" [^.:]*\bup\.\w+[^.]*\.")  # a sentence about Python


@dataclass(frozen=True)
class Overview:
    """The first screen.

    Attributes:
        headline: how uncertain the predictions are, and why, in a sentence.
        claim: how far that can be trusted about more data.
        parts: noise and disagreement, for the picture of the split; None where they are not to be compared.
        actions: what to do next: each in a few words, with a reason.
        about: how uncertainty is counted.
        kinds: in how many rows which part is the larger.
        identifier: the column that identifies the rows; empty if there is none.
        unit: of the numbers.
        target_unit: of the target.
    """

    headline: str
    claim: str
    parts: Parts | None
    actions: tuple[tuple[str, str], ...]
    about: str
    kinds: str
    identifier: str
    unit: str
    target_unit: str


@dataclass(frozen=True)
class Shown:
    """A file and how it is shown."""

    upload: Upload
    choice: ScoringChoice
    scored: ScoredFile
    comparison: Comparison
    overview: Overview


def overview(upload: Upload, scored: ScoredFile, choice: ScoringChoice, target: str | None, unit: str | None) -> Overview:
    """What the report finds first about these rows."""
    pair = MeasurePair(choice.rule, choice.measures["noise"], choice.measures["disagreement"])
    named_by = identifier_of(scored)
    if not Measure.parse(pair.excess).shows_disagreement:
        return Overview(ONE_DISTRIBUTION, "", None, (), "", "", named_by, "", unit or "")
    with upload.on_disk() as path:
        points = Points.of(path, choice.columns, "drop")

        def read(compared: str | None) -> Subject:
            found = read_subject(points, target=compared, rule=choice.rule, unit=unit, measures=list(choice.measures.values()))
            return replace(found, pair=pair).without_missing()

        # Rows without a target count in the split, too.
        everything = read(None) if target is None or scored.has_gaps(target) else None
        compared = everything if target is None else read(target)
        assert compared is not None  # noqa: S101 (one of the two is read)
        findings = find(compared, resamples=0, seed=0)
        parts = findings.parts if everything is None else _parts(everything, compared)
        return Overview(
            headline=sentences.split(parts, findings.claim),
            claim="" if parts.is_one_model or parts.agree else for_a_page(findings.claim.withheld or findings.claim.caveat),
            parts=parts if parts.has_shares and not parts.is_one_model and not parts.agree else None,
            actions=tuple((_do(each), for_a_page(each.why)) for each in actions(compared, findings)),
            about=sentences.penalty(parts, pair.prediction, findings.average, intervals=False),
            kinds=sentences.rows_of_each_kind(parts),
            identifier=named_by,
            unit=parts.shown_unit,
            target_unit=parts.unit,
        )


def _parts(rows: Subject, named: Subject) -> Parts:
    return Parts.of(rows, unit=named.unit, target=named.target_name, n_members=rows.n_members)


def _do(action: Action) -> str:
    """What to do, in a few words; the page has one table of rows to check, of any length."""
    return CHECK if action.section == "check" and action.do.startswith("Check") else for_a_page(action.do)


def for_a_page(text: str) -> str:
    """A sentence of the report without what is for a shell or for Python."""
    return FOR_THE_SHELL.sub("", CODE.sub("", text)).strip()


def identifier_of(scored: ScoredFile) -> str:
    """The column that identifies the rows; empty if there is none."""
    frame = scored.frame
    names = [name for name in frame.columns if name not in scored.measured]
    return identifier(names, lambda name: bool(frame[name].notna().all() and frame[name].astype(str).is_unique))


def target_of(upload: Upload, scored: ScoredFile, choice: ScoringChoice) -> str | None:
    """The column of the target: one with a usual name, or the only one whose values the models predict."""
    usual = [name for name in scored.targets if TARGETS.fullmatch(split_unit(name)[0])]
    if usual:
        return usual[0]
    named_by = identifier_of(scored)
    candidates = [name for name in scored.targets if name != named_by]
    if len(candidates) > CANDIDATES:
        return None
    fitting = [name for name in candidates if _explained(upload, choice, name) > EXPLAINED]
    return fitting[0] if len(fitting) == 1 else None


def _explained(upload: Upload, choice: ScoringChoice, name: str) -> float:
    """The share of the variance of a column that the predictions explain; negative if they are worse than its mean."""
    with upload.on_disk() as path:
        points = Points.of(path, choice.columns, "drop")
        try:
            error = points.error(column=None, target=name, prediction=None)
            values = points.read([name])[name]
        except UqprismError:
            return -np.inf
    known = np.isfinite(error) & np.isfinite(values)
    if known.sum() < 3:
        return -np.inf
    with np.errstate(all="ignore"):
        share = 1.0 - error[known].mean() / values[known].var()
    return float(share) if np.isfinite(share) else -np.inf

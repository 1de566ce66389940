"""What to do next: the three actions of the first screen, each about rows of this file."""

from __future__ import annotations

import math
from dataclasses import dataclass

from uqprism.ensemble.origin import KINDS, UNKNOWN_KIND
from uqprism.measures.vocabulary import measure_in_words, risk_unit
from uqprism.plots.words import from_set
from uqprism.report.findings import SELECTIVE, Example, Missed, Parts, ReportFindings
from uqprism.report.formatting import amount, amounts, between, count, exact, percent, with_unit
from uqprism.report.sentences import LITTLE, named
from uqprism.report.subject import Subject
from uqprism.tasks.audit.result import Promise
from uqprism.tasks.calibration import Calibration

SHOWN = 3
AUDIT = "Audit before you collect data"
LEVEL = 0.9


@dataclass(frozen=True)
class Action:
    """Something to do.

    Attributes:
        do: what, in a few words.
        why: about which rows, and what it is good for.
        section: where the page says more.
    """

    do: str
    why: str
    section: str

    def __str__(self) -> str:
        return f"{self.do}. {self.why}"


def actions(subject: Subject, findings: ReportFindings) -> list[Action]:
    """What to do next, the most important first."""
    found = [
        _check(subject, findings),
        _collect(subject, findings),
        *([_notice(findings.missed[0])] if findings.missed else []),
        _intervals(subject, findings),
        _targets(subject),
        _threshold(subject, findings),
    ]
    return [action for action in found if action is not None][:SHOWN]


def _check(subject: Subject, findings: ReportFindings) -> Action | None:
    """Hand the most uncertain rows to somebody, if that finds errors."""
    if subject.n_rows < 2 or findings.is_level:
        return None
    first = subject.called(findings.first[:3])
    if findings.tenth is None:
        return Action(f"Check {subject.called(findings.first[:1])} first", "It is the most uncertain of these rows.", "rows")
    do = f"Check these {count(len(findings.first), 'row')} first"
    result = findings.results.get(SELECTIVE)
    if result is None:
        return Action(do, f"They are the most uncertain. Begin with {first}.", "check")
    words, measure = subject.error_words, findings.leads[SELECTIVE]
    before = float(words.shown(float(result.settings["mean_error"])))
    after = float(words.shown(result.metrics["error_at_90"][measure]))
    shown = amounts([before, after], words.unit)
    if not after < before or shown[0] == shown[1]:  # a gain that does not show is none
        came = f"is {shown[1]}, not {shown[0]}" if shown[0] != shown[1] else f"stays at {shown[0]}"
        why = f"Here it does not find the errors: without the most uncertain tenth the {words.name} {came}."
        return Action("Do not pick rows to check by uncertainty alone", why, "selective")
    tenth = f"Without the most uncertain tenth the {words.name} is {shown[1]}, not {shown[0]}"
    return Action(do, f"Begin with {first}. {tenth}.", "check")


def _collect(subject: Subject, findings: ReportFindings) -> Action:
    parts = findings.parts
    if parts.is_one_model:
        why = "Other seeds, or other samples of the data. How far they disagree shows what more data could reduce."
        return Action("Train several models that differ", why, "rows")
    if parts.agree:
        return Action("Make sure that the models differ", "They agree in every row, as copies of one model would.", "rows")
    like, claim = subject.called(findings.collect), findings.claim
    place = "most-disagreement" if subject.n_rows > 1 else "rows"
    if claim.audit is not None:
        return _audited(claim.audit, parts, like, place)
    if not claim.stands:
        who = "these models" if claim.kind == UNKNOWN_KIND else KINDS[claim.kind]
        why = f"How far {who} disagree does not tell what more data brings. They differ most in {like}."
        if claim.contradiction is not None:
            why = f"These models cannot tell what more data brings: {claim.contradiction.what}."
        return Action(AUDIT, why, place)
    if parts.has_shares and parts.shares[1] < LITTLE:
        why = (
            f"According to these models {percent(parts.shares[0])} is noise, and more data like these would change little. They "
            f"disagree most in {like}."
        )
        return Action("Look for inputs that explain the noise", why, "most-noise")
    where = f"{count(parts.half, 'row')} ({percent(parts.half / parts.n_rows)})"
    why = (
        f"There the models disagree most, so by their estimate such data could help most. Half of all disagreement is in {where}."
    )
    return Action(
        f"Collect more data like {like}",
        why if subject.n_rows > 1 else "According to these models, more data like it could help.",
        place,
    )


def _audited(promise: Promise, parts: Parts, like: str, place: str) -> Action:
    """Collect more data, or not, by what an audit expects of it."""
    last = float(promise.penalty[-1])
    falls = [max(last - each, 0.0) for each in promise.expected(2.0)]  # the ends of the interval are NaN without resamples
    fall, high, low = [percent(each / last) for each in falls] if parts.has_shares else amounts(falls, parts.shown_unit)
    ends = f" ({low} to {high})" if math.isfinite(falls[1]) else ""
    why = f"By the audit, twice the rows lower the penalty by {fall}{ends}."
    if parts.has_shares and max(falls) < LITTLE * last:
        return Action("Do not expect much of more data", why, "audit")
    return Action(f"Collect more data like {like}", f"{why} There the models disagree most.", place)


def _notice(missed: Missed) -> Action:
    """Use another measure against unfamiliar inputs, or none."""
    head = f"A threshold on {named(missed.by)} finds {percent(missed.caught)} of the rows {from_set(missed.name)};"
    if missed.caught_instead > 0.5:
        why = f"{head} one on {named(missed.instead)} finds {percent(missed.caught_instead)}."
        return Action("Find unfamiliar rows by another measure", why, "threshold")
    return Action("Do not count on noticing unfamiliar rows", f"{head} no other measure here does much better.", "ood")


def _intervals(subject: Subject, findings: ReportFindings) -> Action | None:
    found, example = findings.calibration, findings.example
    if example is None:
        return None
    if found is not None and (verdict := found.verdict(LEVEL)) != "about right":
        change = "Widen" if verdict == "too narrow" else "Narrow"
        why = f"{_held(found)}: {verdict}. From rows with known targets, uqprism intervals makes ones that hold what they state."
        return Action(f"{change} the intervals before you use them", why, "calibration")
    known = (
        f" {_held(found)}."
        if found is not None
        else ""
        if subject.target is not None
        else " Known targets (--target) would tell whether such intervals hold."
    )
    return Action(
        "Use intervals, not the number alone", _between(example, subject.unit) + known, "calibration" if found else "check"
    )


def _held(found: Calibration) -> str:
    inside = 100.0 * float(found.coverage(LEVEL)[0])
    return f"Intervals for {percent(LEVEL)} of the targets hold {inside:.1f}\u00a0%"


def _between(example: Example, unit: str) -> str:
    name = f"{example.name[:1].upper()}{example.name[1:]}"
    interval = between(example.low, example.high, unit)
    return f"{name}: the prediction is {amount(example.prediction, unit)}, the models' 90\u00a0% interval {interval}."


def _targets(subject: Subject) -> Action | None:
    if subject.target is not None or subject.error is not None:
        return None
    why = "With what happened in some rows (--target), this page tells whether the uncertainty finds the errors."
    return Action("Add the targets that are known", why, "methods")


def _threshold(subject: Subject, findings: ReportFindings) -> Action | None:
    """Treat new rows alike."""
    if findings.tenth is None or findings.is_level:
        return None
    measure = findings.leads[SELECTIVE]
    unit = risk_unit(measure.partition(".")[0], subject.unit) if measure_in_words(measure) else ""
    why = f"Those in which {named(measure)} is {with_unit(exact(findings.tenth.shortest), unit)} or more."
    return Action("Hand over such rows when new ones come", why, "threshold")

"""The sections of a report; which of them there are depends on what is known of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqprism import plots
from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import measure_in_words, rule_words
from uqprism.report import charts, tables
from uqprism.report.charts import Chart
from uqprism.report.claims import Claim
from uqprism.report.findings import FEWEST_TO_HAND_OVER, OOD, SELECTIVE, ReportFindings
from uqprism.report.formatting import MINUS, SPACE, count, number
from uqprism.report.sentences import penalty
from uqprism.report.subject import Subject
from uqprism.report.tables import Column, Name, PageTable
from uqprism.support.citation import citation
from uqprism.support.versions import versions
from uqprism.tasks.task import Task, all_tasks, recommend

NOT_FROM_THESE = "Whether the predicted intervals hold as many targets as they promise cannot be told from {}: that needs {}."
DEFINITIONS = {
    "noise": "(aleatoric uncertainty) is what the models take for chance: by their account, outcomes with the same inputs would "
    "still differ, however much data there is.",
    "disagreement": "between the models (epistemic uncertainty) shows how far their predictions differ. How much of it "
    "more data removes depends on the models; an audit measures it.",
}
RANKS = "rank_correlation"
KEPT = "the columns of the members, which uqprism score keeps with --keep-members"


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    Attributes:
        name: its anchor.
        short: its name in the list of sections.
        title: its heading.
        about: paragraphs.
        charts: figures.
        tables: tables.
        facts: terms with their texts.
        verbatim: text to copy.
        folded: what unfolds the figures and tables, which are hidden until asked for; empty if they are shown.
        sentences: a list of findings.
    """

    name: str
    short: str
    title: str
    about: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[PageTable] = ()
    facts: Sequence[tuple[str, str]] = ()
    verbatim: str = ""
    folded: str = ""
    sentences: Sequence[str] = ()


def all_sections(
    subject: Subject, findings: ReportFindings, found: Sequence[str], *, resamples: int, seed: int, command: str
) -> list[PageSection]:
    """All sections below the first screen, in the order of the page: what was found, then how it was found."""
    several = [
        _summary(subject, findings, found),
        *_audit(findings.claim),
        _rows(subject, findings),
        *_handing_over(subject, findings),
    ]
    for task in all_tasks():
        if task.name in {*findings.results, *findings.missing} and task.name != RANKS:
            several.append(_of_task(task, subject, findings))
        if task.name == SELECTIVE:
            several += _calibration(subject, findings)
    several.append(_advice(findings))
    several += [_of_task(task, subject, findings) for task in all_tasks() if task.name == RANKS and RANKS in findings.results]
    several.append(_methods(subject, findings, resamples=resamples, seed=seed, command=command))
    return several


def _summary(subject: Subject, findings: ReportFindings, found: Sequence[str]) -> PageSection:
    parts = findings.parts
    words = list(DEFINITIONS.items())[: 1 if parts.is_one_model else 2]  # one model has no disagreement to define
    how = penalty(parts, subject.pair.prediction, findings.average, intervals=findings.calibration is not None)
    return PageSection("summary", "Findings", "What was found", sentences=found, facts=[*words, ("uncertainty", how)])


def _audit(claim: Claim) -> list[PageSection]:
    """What more data did, where that was measured."""
    if claim.audit is None:
        return []
    about = "An audit trained such models on more and more of the training data, and judged them on rows they had not seen."
    said = claim.audit.sentence().replace("-", MINUS)
    drawn = [charts.audited(claim.audit)]
    return [PageSection("audit", "More data", "What more data brings", [about, said], drawn)]


def _rows(subject: Subject, findings: ReportFindings) -> PageSection:
    parts = findings.parts
    about = "Each row of the file is a point in the figures. Rows that the models take for noisy are on the right."
    if not parts.is_one_model:
        about += " Rows on which the models disagree are at the top"
        about += "; according to these models, more data like them could help." if findings.claim.stands else "."
    about += " Rows have the numbers they have in the file; the first is row 0."
    if parts.is_square:
        about += " Noise and disagreement are shown as roots of the squared error."
    found = [tables.by_origin(subject, shares=parts.has_shares)] if subject.ood_pairs else []
    kinds = ["bayes"] if parts.is_one_model or parts.agree else ["excess", "bayes"]  # disagreement is then zero in every row
    if subject.n_rows > 1:
        found += [tables.to_check(subject, findings.first, findings.leads[SELECTIVE])]
        found += [tables.most_uncertain(subject, by) for by in kinds]
    drawn = [charts.scatter(subject), charts.distributions(subject)]
    return PageSection("rows", "Rows", "Which rows are uncertain, and why", [about], drawn, found)


def _handing_over(subject: Subject, findings: ReportFindings) -> list[PageSection]:
    """Thresholds for production: to find errors, and where there are unfamiliar inputs to notice those."""
    if subject.n_rows < FEWEST_TO_HAND_OVER:
        return []
    about = (
        "To hand over uncertain rows as they come, to a person or a better model, compute the measure for each new row and "
        "hand over those at or above a threshold. The given share of the known rows reaches these thresholds; new rows of the "
        "same kind will reach them about as often."
    )
    python = "In Python, up.flag(table, share=0.1) gives the threshold and the rows."
    found = [tables.thresholds(subject, findings.leads[SELECTIVE], "To avoid large errors", subject.error_words)]
    if subject.ood:
        found.append(tables.thresholds(subject, findings.leads[OOD], "To notice unfamiliar inputs", None))
    return [PageSection("threshold", "Thresholds", "Which rows to hand over", [f"{about} {python}"], tables=found)]


def _of_task(task: Task, subject: Subject, findings: ReportFindings) -> PageSection:
    section = task.section
    assert section is not None  # noqa: S101 (tasks without a section have no result here)
    name, short, title = task.command, section.short or section.title, section.title
    if task.name in findings.missing:
        return PageSection(name, short, title, [section.about, f"Not for these rows: {findings.missing[task.name]}."])
    result = findings.results[task.name]
    drawn = [charts.of_result(task, result, subject)]
    if task.name == SELECTIVE and plots.group_count(subject.n_rows) > 1:  # one group would be one dot
        drawn.append(charts.errors(subject, findings))
    table = tables.of_result(result, subject)
    shown = [table] if table is not None else []
    folded = "Show the map of all pairs, and which measures are alike" if task.name == RANKS else ""
    return PageSection(name, short, title, [section.about], drawn, shown, folded=folded)


def _calibration(subject: Subject, findings: ReportFindings) -> list[PageSection]:
    title = "Can the intervals be trusted?"
    if findings.calibration is None:
        why = _why_not(subject)
        known = subject.error is not None and subject.n_rows > 1
        return [PageSection("calibration", "Intervals", title, [why])] if known else []
    about = (
        "The models together predict a distribution for each row (their mixture). A central interval of 90\u00a0% should "
        "hold nine targets in ten; grey is what chance allows if the rows are independent of each other."
    )
    return [PageSection("calibration", "Intervals", title, [about], charts.calibration(findings))]


def _why_not(subject: Subject) -> str:
    """Why there is no calibration: the targets, the members, or both are not known."""
    if subject.ensemble is not None:
        return NOT_FROM_THESE.format("errors alone", "the targets (--target)")
    if subject.target is not None:
        return NOT_FROM_THESE.format("measures alone", KEPT)
    return NOT_FROM_THESE.format("measures and errors alone", f"the targets (--target) and {KEPT}")


PURPOSES = {
    SELECTIVE: "hand the least certain rows to a person or a better model",
    OOD: "notice rows with unfamiliar inputs",
    "active_learning": "decide which rows to label next",
}
TO_LABEL = "crps.excess.members.members"
LABELLING = (
    "A label is worth most where it reduces disagreement, so the disagreement says which rows to label. Pick rows by their "
    'rank (scores="rank"), and compare on your own data with: uqprism active.'
)
NOT_WITH_ONE = (
    "One model cannot disagree with itself, so no measure here finds unfamiliar inputs or rows worth a label: that takes "
    "several models that were trained to differ."
)


def _advice(findings: ReportFindings) -> PageSection:
    alone = findings.parts.is_one_model
    rows, reasons = [], []
    for task, purpose in PURPOSES.items():
        if alone and task != SELECTIVE:
            continue
        name, why, reason = _advised(task, findings)
        rows.append((purpose, Name.of(name), why))
        reasons.append((f"to {purpose}", reason))
    columns = tuple(Column(title, numeric=False) for title in ("to", "use", "chosen"))
    about = (
        "A measure chosen on these rows is the simplest of those that are not significantly worse than the best. Where these "
        "rows cannot tell, it is the one that the paper's experiments advise. The reasons are below the table."
    )
    table = PageTable("", columns, tuple(rows))
    paragraphs = [about, NOT_WITH_ONE] if alone else [about]
    return PageSection("advice", "Which measure", "Which measure to use", paragraphs, tables=[table], facts=reasons)


def _advised(task: str, findings: ReportFindings) -> tuple[str, str, str]:
    """The measure for a task, who chose it, and why."""
    if task == "active_learning":
        return TO_LABEL, "by advice, with scores by rank", LABELLING
    choice = findings.choices.get(task)
    if choice is not None:
        return choice.measure, "on these rows", _readable(choice.reason, list(choice.result))
    return recommend(task).measure, "by the paper", _readable(recommend(task).reason)


def _readable(reason: str, measures: Sequence[str] = ()) -> str:
    for name in sorted(measures, key=len, reverse=True):  # the name of one may begin that of another
        reason = reason.replace(name, f"“{measure_in_words(name) or name}”")
    for code, word in (  # the same reasons appear in Python, with its names
        ("prr_paper", "paper's PRR"),
        ("auroc", "AUROC"),
        ("+-", "±"),
        ("95%", f"95{SPACE}%"),
        ("rank the points", "order the rows"),
    ):
        reason = reason.replace(code, word)
    return reason


def _methods(subject: Subject, findings: ReportFindings, *, resamples: int, seed: int, command: str) -> PageSection:
    names = list(subject.measures)
    rules = dict.fromkeys(name.split(".")[0] for name in names if measure_in_words(name))
    roles = dict.fromkeys(role for name in names if measure_in_words(name) for role in name.split(".")[2:])
    lacking = subject.n_given - subject.n_rows
    left_out = f"{lacking:,} left out because they lack a number" if lacking else "none left out"
    facts = [
        ("rows", f"{count(subject.n_rows, 'row')} used, {left_out}"),
        ("numbers", "from all rows used; figures say where they draw a sample"),
        (
            "measures",
            f"{len(names)}, under {', '.join(rule_words(rule).name for rule in rules)}; their technical names are "
            "rule.risk.prediction.truth",
        ),
        (
            "risks",
            "total: the expected penalty. bayes: the part that is noise. excess: the part that is disagreement between the "
            "models. total = bayes + excess",
        ),
        ("prediction, truth", "which distribution is judged, and which is taken as the truth; both are approximations"),
        *((f"{role} (approximation)", approximations.get(role).meaning) for role in roles),
        (
            "shown by",
            f"noise by {subject.pair.bayes}, disagreement by {subject.pair.excess}, rows to check by {findings.leads[SELECTIVE]}",
        ),
        ("exactness", _exactness(subject)),
        (
            "intervals",
            f"95{SPACE}% of {resamples:,} resamples of the rows, seed {seed}"
            if resamples
            else "none: no resamples were asked for",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
    ]
    facts += [("command", command)] if command else []
    return PageSection("methods", "Methods", "How it was made, and how to cite it", facts=facts, verbatim=citation())


def _exactness(subject: Subject) -> str:
    if not subject.exactness:
        return "unknown: the measures were read, not computed"
    found: dict[tuple[str, float], int] = {}
    for name in subject.measures:
        if name in subject.exactness:
            method, tolerance = subject.exactness[name]
            found[method, tolerance] = found.get((method, tolerance), 0) + 1
    return "; ".join(
        f"{count(n, 'measure')} by {method}, relative error up to {number(tolerance)}" for (method, tolerance), n in found.items()
    )

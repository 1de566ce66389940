"""The sections of a report: which there are follows from what is known of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uqprism import plots
from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import measure_in_words, rule_words
from uqprism.report import charts, tables
from uqprism.report.charts import Chart
from uqprism.report.findings import Findings
from uqprism.report.steps import FEWEST_TO_HAND_OVER, lead_for
from uqprism.report.subject import Subject
from uqprism.report.tables import Column, Name, Table
from uqprism.report.words import count
from uqprism.support.citation import citation
from uqprism.support.versions import versions
from uqprism.tasks.task import Task, all_tasks, recommend

NOT_FROM_THESE = "Whether the predicted intervals hold as many targets as they say cannot be told from {}: that needs {}."
KEPT = "the columns of the members, which uqprism score keeps with --keep-members"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        name: its anchor.
        short: its name in the list of sections.
        title: its heading.
        about: paragraphs.
        charts: figures.
        tables: tables.
        facts: words and what stands for them.
        verbatim: text to copy.
        minor: whether a small screen shows no more of it than its paragraphs until asked.
    """

    name: str
    short: str
    title: str
    about: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    facts: Sequence[tuple[str, str]] = ()
    verbatim: str = ""
    minor: bool = False


def all_sections(subject: Subject, findings: Findings, *, resamples: int, seed: int, command: str) -> list[Section]:
    """In the order of the page."""
    found = [Section("summary", "Summary", "In short"), _split(subject, findings)]
    for task in all_tasks():
        found += _handing_over(subject, findings) if task.name == "rank_correlation" else []
        if task.name in findings.results or task.name in findings.missing:
            found.append(_of_task(task, subject, findings))
        if task.name == "selective_prediction":
            found += _calibration(subject, findings)
    found.append(_advice(findings))
    found.append(_methods(subject, resamples=resamples, seed=seed, command=command))
    return found


def _split(subject: Subject, findings: Findings) -> Section:
    about = (
        "Each row of the file is a point in the figures. To the right lie rows that are noisy, which no amount of data changes"
    )
    alone = findings.parts.n_members == 1
    about += "." if alone else "; at the top rows on which the models disagree, which data like them would change."
    numbered = "Rows have the numbers they have in the file; the first is row 0."
    found = [tables.by_origin(subject, shares=findings.parts.has_shares)] if subject.elsewhere else []
    kinds = ["noise"] if alone or findings.parts.agree else ["removable", "noise"]  # nobody can say where data would help
    found += [tables.most_uncertain(subject, by) for by in kinds] if subject.n_rows > 1 else []
    return Section(
        "rows",
        "Rows",
        "Which rows are uncertain, and why",
        [f"{about} {numbered}"],
        [charts.scatter(subject), charts.distributions(subject)],
        found,
    )


def _handing_over(subject: Subject, findings: Findings) -> list[Section]:
    """Thresholds for production: for finding errors, and with rows from outside for noticing those."""
    if subject.n_rows < FEWEST_TO_HAND_OVER:
        return []
    about = (
        "To hand over uncertain rows as they come, to a person or a better model, compute the measure for each new row and "
        "hand over those at or above a threshold. These thresholds are the values that the given share of the known rows "
        "reaches; new rows of the same kind will reach them about as often."
    )
    python = "In Python, up.flag(table, share=0.1) gives the threshold and the rows."
    by = lead_for("selective_prediction", subject, findings.results)
    found = [tables.thresholds(subject, by, "To avoid large errors", subject.error_words)]
    if subject.outside:
        by = lead_for("ood_detection", subject, findings.results)
        found.append(tables.thresholds(subject, by, "To notice rows from outside", None))
    return [Section("threshold", "Thresholds", "Which rows to hand over", [f"{about} {python}"], tables=found)]


def _of_task(task: Task, subject: Subject, findings: Findings) -> Section:
    section = task.section
    assert section is not None  # noqa: S101 (only tasks with a section have results here)
    name, short = task.command, section.short or section.title
    if task.name in findings.missing:
        return Section(name, short, section.title, [section.about, f"Not for these rows: {findings.missing[task.name]}."])
    result = findings.results[task.name]
    drawn = [charts.of_result(task, result, subject)]
    if task.name == "selective_prediction" and plots.group_count(subject.n_rows) > 1:
        drawn.append(charts.errors(subject, findings))
    table = tables.of_result(result, subject)
    shown = [table] if table is not None else []
    return Section(name, short, section.title, [section.about], drawn, shown, minor=task.name == "rank_correlation")


def _calibration(subject: Subject, findings: Findings) -> list[Section]:
    title = "Can the intervals be trusted?"
    if findings.calibration is None:
        why = _why_not(subject)
        known = subject.error is not None and subject.n_rows > 1
        return [Section("calibration", "Intervals", title, [why])] if known else []
    about = (
        "The models together predict a distribution for each row (their mixture). A central interval of 90 % should hold nine "
        "targets in ten; grey is what chance allows if the rows are independent of each other."
    )
    return [Section("calibration", "Intervals", title, [about], charts.calibration(findings))]


def _why_not(subject: Subject) -> str:
    """What calibration lacks: the targets, the members, or both."""
    if subject.ensemble is not None:
        return NOT_FROM_THESE.format("errors alone", "the targets (--target)")
    if subject.target is not None:
        return NOT_FROM_THESE.format("measures alone", KEPT)
    return NOT_FROM_THESE.format("measures and errors alone", f"the targets (--target) and {KEPT}")


PURPOSES = {
    "selective_prediction": "hand the least certain rows to a person or a better model",
    "ood_detection": "notice rows of a kind the models never saw",
    "active_learning": "decide which rows to label next",
}
TO_LABEL = "crps.excess.members.members"
LABELLING = (
    "A label is worth most where it removes ignorance, so the removable part says which. Pick rows by their rank under it "
    '(scores="rank"), and compare on your own data with: uqprism active.'
)
NOT_WITH_ONE = (
    "One model cannot disagree with itself, so no measure here tells rows of a kind it never saw, or rows worth a label: that "
    "takes several models that were trained to differ."
)


def _advice(findings: Findings) -> Section:
    alone = findings.parts.n_members == 1
    rows, reasons = [], []
    for task, purpose in PURPOSES.items():
        if alone and task != "selective_prediction":
            continue
        name, why, reason = _advised(task, findings)
        rows.append((purpose, Name.of(name), why))
        reasons.append((f"to {purpose}", reason))
    columns = tuple(Column(title, numeric=False) for title in ("to", "use", "which was"))
    about = (
        "A measure chosen on these rows is the simplest of those that are not significantly worse than the best; without rows "
        "to choose on, it is what experiments advise. The reasons stand below the table."
    )
    table = Table("", columns, tuple(rows))
    paragraphs = [about, NOT_WITH_ONE] if alone else [about]
    return Section("advice", "Which measure", "Which measure to use", paragraphs, tables=[table], facts=reasons)


def _advised(task: str, findings: Findings) -> tuple[str, str, str]:
    """The measure for a task, where it is from, and why."""
    if task == "active_learning":
        return TO_LABEL, "advised with scores by rank", LABELLING
    choice = findings.choices.get(task)
    if choice is not None:
        return choice.measure, "chosen on these rows", _readable(choice.reason)
    return recommend(task).measure, "advised by the paper", _readable(recommend(task).reason)


def _readable(reason: str) -> str:
    for code, word in (
        ("prr_paper", "paper's PRR"),
        ("auroc", "AUROC"),
        ("+-", "±"),
        ("95%", "95 %"),
        ("rank the points", "order the rows"),
    ):
        reason = reason.replace(code, word)
    return reason


def _methods(subject: Subject, *, resamples: int, seed: int, command: str) -> Section:
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
            f"{len(names)}, under {', '.join(rule_words(rule).name for rule in rules)}; named rule.risk.prediction.truth",
        ),
        (
            "risks",
            "total: the expected penalty. bayes: the part that is noise. excess: the part that more data would remove. total = "
            "bayes + excess",
        ),
        (
            "prediction, truth",
            "which distribution is judged, and which is taken for what happens; both are approximated",
        ),
        *((f"{role} (approximation)", approximations.get(role).meaning) for role in roles if role in approximations),
        *([("variant", "a measure with another approximation than each model in turn")] if set(roles) - {"members"} else []),
        ("exactness", _exactness(subject)),
        (
            "intervals",
            f"95 % of {resamples} resamples of the rows, seed {seed}" if resamples else "none, since no resamples were asked for",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
    ]
    facts += [("command", command)] if command else []
    return Section("methods", "Methods", "How it was made, and how to cite it", facts=facts, verbatim=citation(), minor=True)


def _exactness(subject: Subject) -> str:
    if not subject.exactness:
        return "the measures were read, not computed; whoever computed them knows"
    found: dict[tuple[str, float], int] = {}
    for name in subject.measures:
        if name in subject.exactness:
            method, tolerance = subject.exactness[name]
            found[method, tolerance] = found.get((method, tolerance), 0) + 1
    return "; ".join(
        f"{count(n, 'measure')} by {method}, relative error up to {tolerance:.0e}" for (method, tolerance), n in found.items()
    )

"""The report of an experiment as Markdown: claims beside the paper's sentences, pictures, tables, notes, how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uqprism.paper.agreement import Agreement
from uqprism.paper.base import Claim, Experiment, Result


def page(experiment: Experiment[Any], result: Result, record: Mapping[str, Any], captions: Mapping[str, str]) -> str:
    """The whole of report.md."""
    parts = [f"# {experiment.name}", experiment.summary, claims_table(result.claims)]
    if result.agreements:
        parts += ["## Agreement with the paper's tables", agreements_table(result.agreements)]
    parts += [f"![{caption}]({name}.png)\n\n*{caption}*" for name, caption in captions.items()]
    for title, rows in result.tables.items():
        parts += [f"## {title}", rows_table(rows)]
    if result.notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in result.notes)]
    parts += ["## How it was made", _provenance(record)]
    return "\n\n".join(parts) + "\n"


def claims_table(claims: Sequence[Claim]) -> str:
    """What the paper says, whether it holds here, and the numbers."""
    rows = [
        {"the paper": claim.paper, "here": "holds" if claim.holds else "**does not hold**", "measured": claim.measured}
        for claim in claims
    ]
    return rows_table(rows)


def agreements_table(agreements: Mapping[str, Agreement]) -> str:
    """How well the numbers agree with the paper's, a row for each that was compared."""
    rows = [
        {
            "compared": name,
            "measures": each.n_measures,
            "Spearman correlation": round(each.spearman, 3),
            "mean absolute difference": each.mean_absolute_difference,
            "largest": each.largest_difference,
        }
        for name, each in agreements.items()
    ]
    return rows_table(rows)


def rows_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_shown(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _provenance(record: Mapping[str, Any]) -> str:
    machine = record["hardware"]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    devices = {name: seconds for name, seconds in record.get("devices", {}).items() if name != "none"}
    accelerator = "".join(f", and {seconds:.0f} s of work on {name}" for name, seconds in devices.items())
    jobs = record["jobs"]
    earlier = f", {jobs['found done']} of them by an earlier run" if jobs["found done"] else ""
    lines = [
        f"`uqprism reproduce {record['experiment']} --preset {record['preset']}`: {record['seconds']:.0f} s on "
        f"{machine['processor']}, {machine['cores']} cores{accelerator}, finished {record['finished']}; {jobs['count']} jobs "
        f"with {jobs['seconds of work']:.0f} s of work{earlier}; {versions}.",
        rows_table([{"setting": f"`{name}`", "value": value} for name, value in record["config"].items()]),
    ]
    if record["data"]:
        lines.append(rows_table([{"data": name, "SHA-256": f"`{digest}`"} for name, digest in record["data"].items()]))
    return "\n\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else str(value).replace("|", "\\|")

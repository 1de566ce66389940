"""Reports in Markdown: of one experiment, and an overview of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uqprism.paper.comparison import Agreement
from uqprism.paper.experiment import Claim, Experiment, Result
from uqprism.paper.jobs import duration


def page(experiment: Experiment[Any], result: Result, record: Mapping[str, Any], captions: Mapping[str, str]) -> str:
    """The report of one experiment: claims, pictures, tables, notes, and how it was made."""
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
    """A table of the paper's sentences, whether each holds, and our numbers."""
    rows = [
        {"the paper": claim.paper, "here": "holds" if claim.holds else "**does not hold**", "measured": claim.measured}
        for claim in claims
    ]
    return rows_table(rows)


def agreements_table(agreements: Mapping[str, Agreement]) -> str:
    """A table of agreements with the paper, a row for each comparison."""
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
    """A Markdown table of rows with the same columns."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(_shown(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)


def _provenance(record: Mapping[str, Any]) -> str:
    machine = record["hardware"]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    devices = {name: seconds for name, seconds in record.get("devices", {}).items() if name != "none"}  # older results have none
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
    # A bar would end the cell of the table.
    return ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else str(value).replace("|", "\\|")


READING = (
    "How to read it: a sentence holds if our numbers pass a threshold that the experiment states in its module of claims; "
    "where the paper gives no number, the threshold is ours. *Does not hold* may be close or far: the page of the experiment "
    "says by how much, and why as far as we know. Labels such as R_tot^{3a,2} are the paper's, by (truth, prediction): 1 is "
    "the members, 2 their mixture, 3a the matched and 3b the pooled Gaussian. Street scenes are from CamVid instead of "
    "Cityscapes, which may not be redistributed; `dots` and `arrow` are generated anew, since the paper does not give its "
    "constants. Time on the device is that of all jobs one after the other, even if some ran at once. Versions in a "
    "result.json are those of the machine that gathered the results; those of the H200 were not recorded."
)
APPENDIX = frozenset(  # claims whose sentence is only in the paper's appendix
    {
        "most settings improve on random",
        "quadratic total and Bayes are poor",
        "similar across sources",
        "SVHN as well",
        "upper left most reliably",
        "by positional significance",
        "more gradient steps",
        "much more stable losses",
        "variance away from data",
        "mean away from data",
        "patterns alike across rules",
        "magnitudes vary slightly",
    }
)


def overview(records: Mapping[str, Mapping[str, Any]]) -> str:
    """A page over several experiments, in Markdown.

    Args:
        records: the contents of each experiment's result.json, by its name; links lead to the page NAME.md.
    """
    claims = {name: [Claim(**claim) for claim in record["claims"]] for name, record in records.items()}
    every = [claim for found in claims.values() for claim in found]
    main, appendix = ([claim for claim in every if (claim.name in APPENDIX) == aside] for aside in (False, True))
    agreements = {
        f"[{name}]({name}.md), {what}": Agreement(**each)
        for name, record in records.items()
        for what, each in record.get("agreements", {}).items()
    }
    parts = [
        "# Results",
        "Written by `docs/generate.py` from the result.json of each experiment.",
        READING,
        f"Of {len(every)} sentences of the paper that were compared with our numbers, {_held(every)} hold: {_held(main)} of "
        f"the {len(main)} in its Sections 5.1 to 5.6, and {_held(appendix)} of the {len(appendix)} in its appendix.",
        rows_table([_line(name, record, claims[name]) for name, record in records.items()]),
    ]
    if agreements:
        parts += ["## Agreement with the paper's tables", agreements_table(agreements)]
    parts += ["## Every sentence"]
    for name, found in claims.items():
        parts += [f"### [{name}]({name}.md)", claims_table(found)]
    return "\n\n".join(parts) + "\n"


def _line(name: str, record: Mapping[str, Any], claims: list[Claim]) -> dict[str, Any]:
    machine = record["hardware"]
    device = machine["accelerator"] if machine["accelerator"] != "none" else f"{machine['processor']}, {machine['cores']} cores"
    return {
        "experiment": f"[{name}]({name}.md)",
        "sentences that hold": f"{_held(claims)} of {len(claims)}",
        "preset": record["preset"],
        "device": device,
        # A run that only gathered took seconds: its jobs' time is in their records.
        "time on the device": duration(max(record["seconds"], *record.get("devices", {}).values(), 0.0)),
        "date": record["finished"].split("T")[0],
    }


def _held(claims: list[Claim]) -> int:
    return sum(claim.holds for claim in claims)

"""A page over the results of several experiments: what holds, how well numbers agree, when and where each was run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from uqprism.paper.agreement import Agreement
from uqprism.paper.base import Claim
from uqprism.paper.files import read_record
from uqprism.paper.jobs import duration
from uqprism.paper.report import agreements_table, claims_table, rows_table

READING = (
    "How to read it: a sentence holds if our numbers pass a threshold that the experiment states in its module `claims`; where "
    "the paper gives no number, the threshold is ours. *Does not hold* may be close or far: the page of the experiment says by "
    "how much, and why as far as we know. Labels such as R_tot^{3a,2} are the paper's, (truth, prediction): 1 the members, 2 "
    "their mixture, 3a the matched and 3b the pooled Gaussian. Street scenes are CamVid's, in place of Cityscapes, which may "
    "not be passed on; `dots` and `arrow` are generated anew, since the paper does not give its constants. Time on the device "
    "is that of all jobs one after the other, also where some ran at once. Versions in a result.json are those of the machine "
    "that gathered the results; of the H200 they were not recorded."
)
APPENDIX = frozenset(  # names of claims whose sentence stands in the paper's appendix alone
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


def overview(folders: Iterable[Path]) -> str:
    """Markdown, from the records in these folders; links lead to the page NAME.md beside each."""
    records = {folder.name: read_record(folder) for folder in folders}
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
        f"Of {len(every)} sentences of the paper that were held against our numbers, {_held(every)} hold: {_held(main)} of the "
        f"{len(main)} in its Sections 5.1 to 5.6, and {_held(appendix)} of the {len(appendix)} in its appendix.",
        rows_table([_line(name, record, claims[name]) for name, record in records.items()]),
    ]
    if agreements:
        parts += ["## Agreement with the paper's tables", agreements_table(agreements)]
    parts += ["## Every sentence"]
    for name, found in claims.items():
        parts += [f"### [{name}]({name}.md)", claims_table(found)]
    return "\n\n".join(parts) + "\n"


def _line(name: str, record: dict[str, Any], claims: list[Claim]) -> dict[str, Any]:
    machine = record["hardware"]
    device = machine["accelerator"] if machine["accelerator"] != "none" else f"{machine['processor']}, {machine['cores']} cores"
    return {
        "experiment": f"[{name}]({name}.md)",
        "sentences that hold": f"{_held(claims)} of {len(claims)}",
        "preset": record["preset"],
        "device": device,
        "time on the device": duration(max(record["seconds"], *record.get("devices", {}).values(), 0.0)),
        "date": record["finished"].split("T")[0],
    }


def _held(claims: list[Claim]) -> int:
    return sum(claim.holds for claim in claims)

"""What to type in the shell and in Python for what the page shows, and the report that such a command writes."""

from __future__ import annotations

import html
import re
import shlex
from contextlib import ExitStack

from uqprism.app.inputs import Comparison, ScoringChoice, Upload, without_folder
from uqprism.app.problems import explained
from uqprism.app.scored import ScoredFile
from uqprism.errors import UqprismError
from uqprism.files.options import OnBad
from uqprism.files.points import Points
from uqprism.report.page import write_page
from uqprism.report.readers import read_subject

OUTPUT = "scored.parquet"
USUAL_MEANS = "^mean_[0-9]+$"
REFUSED = "<!doctype html><meta charset='utf-8'><title>No report</title><h1>No report could be written</h1><p>{}</p>"
NOTHING = Comparison()
RETENTION = (
    "result = up.selective_prediction(known[measures], error=error)",
    "result.to_pandas()  # 0: finds all large errors first, 1: no better than chance",
)


def shell(
    name: str, choice: ScoringChoice, comparison: Comparison = NOTHING, ood: str | None = None, *, keep_members: bool = False
) -> str:
    """The commands that score, that compute the retention curve if there is a target, and that write the report."""
    measures = ",".join(choice.measures.values())
    keep = ["--keep-members"] if keep_members else []
    lines = [shlex.join(["uqprism", "score", name, "-o", OUTPUT, "--measures", measures, *_how(choice, None), *keep])]
    if (target := comparison.target) is not None:
        how = _how(choice, target)
        lines.append(shlex.join(["uqprism", "selective", name, "--target", target, "--measures", measures, *how]))
    return "\n".join([*lines, report(name, choice, comparison, ood)])


def report(name: str, choice: ScoringChoice, comparison: Comparison = NOTHING, ood: str | None = None) -> str:
    """The command that writes the report."""
    rule = [] if choice.rule == ScoringChoice.rule else ["--rule", choice.rule]
    known = [] if comparison.target is None else ["--target", comparison.target]
    unit = [] if comparison.unit is None else ["--unit", comparison.unit]
    unfamiliar = [] if ood is None else ["--ood", ood]
    how = _how(choice, comparison.target)
    return shlex.join(["uqprism", "report", name, *known, *unit, *unfamiliar, *rule, *how])  # a name may have spaces


def on_bad(choice: ScoringChoice, target: str | None) -> OnBad:
    """How bad rows are treated; with a target, rows without one are left out."""
    return choice.on_bad if target is None else "drop"


def _how(choice: ScoringChoice, target: str | None) -> list[str]:
    """The options for other column names and for bad rows."""
    columns = [text for option, given in choice.named_columns.items() for text in (f"--{option.replace('_', '-')}", given)]
    bad = on_bad(choice, target)
    return columns if bad == "error" else [*columns, "--on-bad", bad]


def python(name: str, choice: ScoringChoice, scored: ScoredFile, *, by: str, percent: int, target: str | None = None) -> str:
    """The lines that make a frame with measures and flags, and with a target the prediction rejection ratio of each measure.

    Args:
        name: the path of the file.
        choice: how it is scored.
        scored: the scored file.
        by: the part that rows are flagged by.
        percent: how many rows are flagged.
        target: the column of the target.
    """
    arguments = {"measures": "measures", "keep_members": "True"}
    arguments |= {} if choice.on_bad == "error" else {"on_bad": repr(choice.on_bad)}
    arguments |= {option: repr(text) for option, text in choice.named_columns.items()}
    given = ", ".join(f"{option}={text}" for option, text in arguments.items())
    lines = [
        "import pandas as pd",
        "import uqprism as up",
        "from uqprism import files",
        "",
        f"measures = {list(choice.measures.values())!r}",
        f"files.score({name!r}, {OUTPUT!r}, {given})",
        f"scored = pd.read_parquet({OUTPUT!r})",
        f"scored['flagged'] = up.flag(scored[{choice.measures[by]!r}], {percent / 100}).rows",
    ]
    if target is not None and not scored.layout.lists:  # a frame does not have what describes lists
        lines += ["", *_retention(scored, target, choice.family)]
    return "\n".join(lines)


def _retention(scored: ScoredFile, target: str, family: str | None) -> list[str]:
    if not scored.layout.centres:
        named = "" if family is None else f", family={family!r}"
        weighted = "" if scored.weights is None else f", weights={list(scored.weights)!r}"
        return [
            f"known = scored.dropna(subset=[{target!r}])",
            f"error = up.prediction_error(up.from_frame(known{named}{weighted}), known[{target!r}])",
            *RETENTION,
        ]
    usual = all(re.fullmatch(USUAL_MEANS, name) for name in scored.layout.centres)
    means = f"known.filter(regex={USUAL_MEANS!r})" if usual else f"known[{list(scored.layout.centres)!r}]"
    predicted = f"{means}.mean(axis=1)" if scored.weights is None else f"{means} @ {list(scored.weights)!r}"
    return [
        f"known = scored.dropna(subset=[{target!r}])",
        f"error = ({predicted} - known[{target!r}]) ** 2",
        *RETENTION,
    ]


def report_page(upload: Upload, choice: ScoringChoice, comparison: Comparison = NOTHING, ood: Upload | None = None) -> bytes:
    """The HTML page that `uqprism report` writes; where the command would fail, a page with its message.

    Args:
        upload: the file.
        choice: how it is scored; the page splits by its rule, with the models in both roles.
        comparison: the column of the target, and its unit.
        ood: predictions for unfamiliar inputs.
    """
    target = comparison.target
    with ExitStack() as stack:
        try:
            # The same functions as in the shell, which read files.
            path = stack.enter_context(upload.on_disk())
            unfamiliar = None if ood is None else stack.enter_context(ood.on_disk())
            output = path.parent / "out.html"
            points = Points.of(path, choice.columns, on_bad(choice, target))
            subject = read_subject(points, target=target, ood=unfamiliar, rule=choice.rule, unit=comparison.unit)
            command = report(upload.path, choice, comparison, ood.path if ood else None)
            write_page(subject, output, command=command)
            return output.read_bytes()
        except UqprismError as error:  # it runs when the button is pressed, and its result is downloaded
            # Messages quote the file.
            return REFUSED.format(html.escape(without_folder(explained(error)))).encode()

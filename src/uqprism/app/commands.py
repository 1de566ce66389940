"""The same from the shell and in Python: what to type for what is on the screen."""

from __future__ import annotations

import re
import shlex

from uqprism.app.choices import Choice
from uqprism.app.scored import Scored
from uqprism.files.options import OnBad

OUTPUT = "scored.parquet"
USUAL_MEANS = "^mean_[0-9]+$"


def shell(name: str, choice: Choice, target: str | None = None, outside: str | None = None, *, keep_members: bool = False) -> str:
    """The commands: one that scores, with a target one for the retention curve, and one for the report."""
    measures = ",".join(choice.measures.values())
    keep = ["--keep-members"] if keep_members else []
    lines = [shlex.join(["uqprism", "score", name, "-o", OUTPUT, "--measures", measures, *_how(choice, None), *keep])]
    if target is not None:
        how = _how(choice, target)
        lines.append(shlex.join(["uqprism", "selective", name, "--target", target, "--measures", measures, *how]))
    return "\n".join([*lines, report(name, choice, target, outside)])


def report(name: str, choice: Choice, target: str | None = None, outside: str | None = None) -> str:
    """The command that writes the report."""
    rule = [] if choice.rule == Choice.rule else ["--rule", choice.rule]
    known = [] if target is None else ["--target", target]
    ood = [] if outside is None else ["--ood", outside]
    return shlex.join(["uqprism", "report", name, *known, *ood, *rule, *_how(choice, target)])


def on_bad(choice: Choice, target: str | None) -> OnBad:
    """What is done with rows that lack something; with a target those without one are left out."""
    return choice.on_bad if target is None else "drop"


def _how(choice: Choice, target: str | None) -> list[str]:
    """The options for columns with other names and for bad rows."""
    columns = [text for option, given in choice.named_columns.items() for text in (f"--{option.replace('_', '-')}", given)]
    bad = on_bad(choice, target)
    return columns if bad == "error" else [*columns, "--on-bad", bad]


def python(name: str, choice: Choice, scored: Scored, *, by: str, percent: int, target: str | None = None) -> str:
    """The lines: a frame with the measures and flags, and with a target the retention ratio of each measure.

    Args:
        name: of the file, with the folders it was given with.
        choice: how it is scored.
        scored: what came out.
        by: the part that rows are flagged by.
        percent: how many rows are flagged.
        target: the column of what happened.
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
    if target is not None:
        lines += ["", *_retention(scored, target)]
    return "\n".join(lines)


def _retention(scored: Scored, target: str) -> list[str]:
    usual = all(re.fullmatch(USUAL_MEANS, name) for name in scored.layout.mean)
    means = f"known.filter(regex={USUAL_MEANS!r})" if usual else f"known[{list(scored.layout.mean)!r}]"
    predicted = f"{means}.mean(axis=1)" if scored.weights is None else f"{means} @ {list(scored.weights)!r}"
    return [
        f"known = scored.dropna(subset=[{target!r}])",
        f"error = ({predicted} - known[{target!r}]) ** 2",
        "result = up.selective_prediction(known[measures], error=error)",
        "result.to_pandas()  # 0: finds all large errors first, 1: no better than chance",
    ]

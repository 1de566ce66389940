"""`uqprism demo`: an ensemble that is trained first, or five models that predict four deliveries."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from uqprism.cli.application import Quiet, command, interruptible, say
from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.support.storage import PAGES, check_ending

DEMOS = ("trained", "deliveries")
PARTS = ("total.members.members", "bayes.members", "excess.members.members")
WHICH = "trained: train ten networks and write a report (extras deep and report). deliveries: print a table of an example."
OUTPUT = "The report of `trained`, an .html file; the predictions are written beside it."
Which = Annotated[str, typer.Argument(metavar="|".join(DEMOS), help=WHICH)]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help=OUTPUT)]


@command(-50, "See it at work: train an ensemble, write a report on it.")
def demo(which: Which = "trained", output: Output = "demo/report.html", quiet: Quiet = False) -> None:
    """Train an ensemble on the paper's synthetic set and write a report on it, within a minute; or print a smaller example."""
    if which == "deliveries":
        print(deliveries())
    elif which == "trained":
        from uqprism.cli import demo_trained  # it imports the data sets of the paper

        check_ending(output, PAGES, "--output")
        with interruptible("finished files stay"):
            made = demo_trained.run(Path(output), progress=lambda step: None if quiet else say(f"{step} ..."))
        print(made.report if quiet else made)  # the path alone, for scripts
    else:
        raise ArgumentError(str(unknown("demo", which, DEMOS)))


def deliveries() -> str:
    """The four trips of the example under the usual measures, with what the numbers mean."""
    from uqprism.app.example import TRIPS, trips
    from uqprism.evaluation import evaluate
    from uqprism.rules import PAPER

    table = evaluate(trips(), "usual")
    lines = ["Five models predict the minutes of four deliveries.", "Expected penalty (total) = noise + disagreement:", ""]
    lines.append(f"{'rule':<15}{'trip':<26}{'total':>9}{'noise':>9}{'disagreement':>14}")
    for rule in PAPER:
        parts = [table[f"{rule}.{name}"] for name in PARTS]
        for i, (trip, total, noise, disagreement) in enumerate(zip(TRIPS, *parts, strict=True)):
            lines.append(f"{'' if i else rule:<15}{trip:<26}{total:>9.3f}{noise:>9.3f}{disagreement:>14.3f}")
    total, noise, disagreement = (table[f"crps.{name}"] for name in PARTS)
    meaning = (
        f"In the storm {noise[1] / total[1]:.1%} of the expected CRPS is noise: the models agree, and by their account more data "
        f"would hardly help. In the unvisited district {disagreement[2] / total[2]:.1%} is disagreement between the models: "
        "according to them, that is what a few deliveries there could reduce."
    )
    return "\n".join([*lines, "", textwrap.fill(meaning, width=70)])

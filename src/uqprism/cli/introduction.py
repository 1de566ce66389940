"""Commands to begin with: the demos, and the list of all measures."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from uqprism.cli.application import app, interruptible
from uqprism.errors import ArgumentError
from uqprism.registry import unknown

DEMOS = ("trained", "deliveries")
WHICH = "trained: train ten networks and write a report (extras deep and report). deliveries: an embedded example, on the screen."
Which = Annotated[str, typer.Argument(metavar="trained|deliveries", help=WHICH)]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The report of the trained ones; files beside it.")]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No steps and no summary, only the path of the report.")]


@app.command()
def demo(which: Which = "trained", output: Output = "demo/report.html", quiet: Quiet = False) -> None:
    """Train an ensemble on the paper's synthetic set and write a report on it, within a minute or so; or a smaller example."""
    if which == "deliveries":
        _deliveries()
    elif which == "trained":
        from uqprism.cli.demo import trained

        if Path(output).suffix != ".html":
            raise ArgumentError(f"--output must end in .html, got {output!r}")
        with interruptible("the files that are there are whole"):
            made = trained.run(Path(output), tell=lambda step: None if quiet else print(f"uqprism: {step} ...", file=sys.stderr))
        print(made.report if quiet else made)
    else:
        raise ArgumentError(str(unknown("demo", which, DEMOS)))


def _deliveries() -> None:
    from uqprism.cli import demo as example

    print("Five models predict the minutes of four deliveries.")
    print("Expected penalty (total) = noise + what more data would remove:\n")
    print(f"{'rule':<15}{'trip':<26}{'total':>9}{'noise':>9}{'removable':>11}")
    previous = ""
    for finding in example.findings():
        rule = "" if finding.rule == previous else finding.rule
        previous = finding.rule
        values = f"{finding.total:>9.3f}{finding.bayes:>9.3f}{finding.excess:>11.3f}"
        print(f"{rule:<15}{finding.trip:<26}{values}")
    print("\n" + textwrap.fill(example.meaning(), width=70))


@app.command()
def catalogue(
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="A rule to list the measures of; may be repeated. By default the paper's four."),
    ] = None,
) -> None:
    """List the measures with their labels in the paper, in both orders of its indices."""
    from uqprism import measures
    from uqprism.rules import PAPER

    found = measures.catalogue(rule or PAPER)
    print(f"{'measure':<40}{'paper, by ' + measures.ORDERS[0]:<30}by {measures.ORDERS[1]}")
    for measure in found:
        first, second = (measure.paper_label(order=order) for order in measures.ORDERS)
        print(f"{measure.name:<40}{first:<30}{second}")

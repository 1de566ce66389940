"""Two commands to begin with: the demo, and the list of all measures."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from uqprism.cli.application import app


@app.command()
def demo() -> None:
    """Split the uncertainty of an embedded ensemble under all four rules, and say what it means."""
    from uqprism import demo as example

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

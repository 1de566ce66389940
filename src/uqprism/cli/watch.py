"""Watch files of new predictions for changes."""

from __future__ import annotations

from typing import Annotated

import typer

from uqprism.cli.application import (
    Progress,
    Quiet,
    command,
    default_of,
    exit_codes,
    interruptible,
    say,
    shows_bar,
    with_columns,
)
from uqprism.cli.output import check_place
from uqprism.ensemble.columns import Columns
from uqprism.errors import ExitCode
from uqprism.support.storage import PAGES, check_ending
from uqprism.tasks.watch import Watch

WINDOW = 1_000
RULE, LEVEL = (default_of(Watch.__init__, name) for name in ("rule", "level"))
KNOWN = "Predictions or measures of usual rows that the models were not trained on: a file, a folder or a pattern."
STATE = "A folder for the state. The next run reads only what is new, also after a run that was killed."
TARGET = "The column of the outcomes, empty where not known yet; penalty and calibration are then watched too."
OUTCOMES = "Files of rows that were seen before and whose outcomes are known now; may be repeated. With --target."
Reference = Annotated[str, typer.Argument(metavar="REFERENCE", help=KNOWN)]
New = Annotated[list[str], typer.Argument(metavar="NEW", help="New rows: files, folders or patterns, read in this order.")]
State = Annotated[str | None, typer.Option(metavar="DIR", help=STATE)]
Rule = Annotated[str, typer.Option(metavar="RULE", help="The scoring rule for noise and disagreement.")]
Level = Annotated[float, typer.Option(metavar="SHARE", help="The probability of any alarm, ever, if nothing changes.")]
Window = Annotated[int, typer.Option(min=1, help="Rows in a window.")]
Group = Annotated[str | None, typer.Option(metavar="COLUMN", help="Also test each group of rows by itself.")]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help=TARGET)]
Outcomes = Annotated[list[str] | None, typer.Option(metavar="FILE", help=OUTCOMES)]
Factors = Annotated[
    str | None, typer.Option(metavar="FILE.json", help="First apply the factors that `uqprism recalibrate --save` wrote.")
]
Page = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE.html", help="Write a page with alarms and history.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE.jsonl", help="Append a line of JSON for each window.")]
Prometheus = Annotated[str | None, typer.Option(metavar="FILE.prom", help="Write evidence and alarms for Prometheus.")]


@command(
    -31, "Watch new predictions for changes, without outcomes.", epilog=exit_codes(ExitCode.BAD_ROWS, done="done, and no alarm")
)
@with_columns
def watch(
    *,
    reference: Reference,
    new: New,
    state: State = None,
    rule: Rule = RULE,
    level: Level = LEVEL,
    window: Window = WINDOW,
    group: Group = None,
    target: Target = None,
    outcomes: Outcomes = None,
    recalibration: Factors = None,
    columns: Columns,
    output: Page = None,
    json: Json = None,
    prometheus: Prometheus = None,
    progress: Progress = False,
    quiet: Quiet = False,
) -> None:
    """Watch new predictions for changes: "the world got noisier" and "inputs are unfamiliar" are different alarms."""
    from uqprism.files import watch as run

    if output is not None:
        check_ending(output, PAGES, "--output")
        check_place("--output", output)
    with interruptible("the same command continues from the state" if state else "nothing was kept; --state DIR keeps a state"):
        report = run(
            reference,
            new,
            state=state,
            rule=rule,
            level=level,
            window=window,
            groups=group,
            target=target,
            outcomes=outcomes,
            recalibration=recalibration,
            columns=columns,
            log=json,
            prometheus=prometheus,
            progress=shows_bar(progress, quiet),
        )
        if output is not None:
            report.watch.report(output)
    if not quiet:
        print(report)
    for path, reason in report.bad_files.items():
        say(f"{path}: {reason}; the next run reads it again")
    if report.alarms or report.bad_files:
        raise typer.Exit(ExitCode.ALARM if report.alarms else ExitCode.BAD_FILES)

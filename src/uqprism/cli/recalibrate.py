"""Learn from outcomes, and apply it to new predictions: recalibrated members, and intervals with a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from uqprism.cli.application import (
    Overwrite,
    Quiet,
    command,
    default_of,
    interruptible,
    with_columns,
)
from uqprism.cli.output import check_place
from uqprism.ensemble.columns import Columns
from uqprism.tasks.conformal import Method, conformal_intervals
from uqprism.tasks.recalibration import recalibrate as fit

if TYPE_CHECKING:
    from pathlib import Path

    from uqprism.files.points import Points

RULE, SEED = (default_of(fit, name) for name in ("rule", "seed"))
COVERAGE, METHOD, MEASURE = (default_of(conformal_intervals, name) for name in ("coverage", "method", "measure"))
MAP = (
    "Also fit a map of levels, for distributions of the wrong shape, and keep it if the test finds it better than the factors "
    "alone. The members become quantiles then."
)
KNOWN = "A file of predictions with outcomes, for rows that the models were not trained on."
HOW = "How intervals are made: in proportion to --measure, from quantiles, or all equally wide."
Known = Annotated[str, typer.Argument(metavar="CAL", help=KNOWN)]
New = Annotated[str, typer.Argument(metavar="NEW", help="A file of new predictions of the same models.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .parquet or .csv file.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The outcomes, a column of CAL.")]
Rule = Annotated[str, typer.Option(metavar="RULE", help="The scoring rule to minimise, such as crps or log.")]
Save = Annotated[
    str | None,
    typer.Option(metavar="FILE.json", help="Also write the factors to this file, for `uqprism watch --recalibration`."),
]
Map = Annotated[bool, typer.Option("--map", help=MAP)]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the folds.")]
Coverage = Annotated[float, typer.Option(metavar="SHARE", help="The share of outcomes that the intervals should contain.")]
How = Annotated[str, typer.Option("--method", metavar="|".join(get_args(Method)), help=HOW)]
Measure = Annotated[str, typer.Option(metavar="NAME", help="The measure of --method measure.")]
Group = Annotated[str | None, typer.Option(metavar="COLUMN", help="Reach the share within each group; a column of both files.")]


@command(-33, "Correct noise and disagreement of new predictions by outcomes.")
@with_columns
def recalibrate(
    *,
    known: Known,
    new: New,
    target: Target,
    output: Output,
    rule: Rule = RULE,
    level_map: Map = False,
    save: Save = None,
    seed: Seed = SEED,
    columns: Columns,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write new predictions with one factor for noise and one for disagreement, if outcomes show that this is better."""
    from uqprism.files.deriving import outcomes, write_ensemble

    with interruptible("nothing was written"):
        points = _points((known, new), columns)
        path = _checked(output, points, overwrite=overwrite)
        if save is not None:
            check_place("--save", save)
        how: dict[str, Any] = {"rule": rule, "level_map": level_map, "seed": seed, "progress": False if quiet else None}
        found = fit(points[0].ensemble(), outcomes(points[0], target), **how)
        write_ensemble(points[1], found.apply(points[1].ensemble()), path)
        if save is not None:
            found.save(save)
    if not quiet:
        print(f"{found.sentence}\n{path}: {points[1].ensemble().n_points:,} rows")


@command(-32, "Add intervals that hold a stated share of outcomes.")
@with_columns
def intervals(
    *,
    known: Known,
    new: New,
    target: Target,
    output: Output,
    coverage: Coverage = COVERAGE,
    method: How = METHOD,
    measure: Measure = MEASURE,
    group: Group = None,
    columns: Columns,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Add columns `lower` and `upper` to new predictions: conformal intervals, from the outcomes of others."""
    from uqprism.files.deriving import LOWER, UPPER, outcomes, write_beside

    with interruptible("nothing was written"):
        points = _points((known, new), columns)
        path = _checked(output, points, overwrite=overwrite)
        groups = [None if group is None else each.column(group).to_pylist() for each in points]
        found = conformal_intervals(
            points[0].ensemble(),
            outcomes(points[0], target),
            points[1].ensemble(),
            coverage,
            method=method,  # type: ignore[arg-type]
            measure=measure,
            groups_calibration=groups[0],
            groups=groups[1],
        )
        write_beside(points[1], {LOWER: found.lower, UPPER: found.upper}, path)
    if not quiet:
        print(f"{found.guarantee}\n{path}: {len(found.lower):,} rows")


def _checked(output: str, points: list[Points], *, overwrite: bool) -> Path:
    """The path to write, before any work is done."""
    from uqprism.files.deriving import check_output

    check_place("--output", output)
    return check_output(output, *points, overwrite=overwrite)


def _points(files: tuple[str, str], columns: Columns) -> list[Points]:
    from uqprism.files.points import Points

    return [Points.of(path, columns) for path in files]

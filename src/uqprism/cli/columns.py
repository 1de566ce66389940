"""Options that say what a file holds: members, measures, targets, errors."""

from __future__ import annotations

from typing import Annotated

import typer

FILE = "A Parquet, CSV or NPZ file, a folder or a pattern: with columns of measures (uqprism score), or of members."
OUTSIDE = "Files of points from outside, each a data set of its own."
MEASURES = "Measures or columns to use, or patterns such as 'crps.*'; may be repeated or have commas. By default all measures."
ON_BAD = "What to do with rows that lack a number or have bad members."

MeanColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of means, such as mu{i} or a,b,c. By default mean_{i}.")
]
VarianceColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of variances, likewise. By default variance_{i}.")
]
ScaleColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of standard deviations, likewise. By default scale_{i}.")
]
OnBad = Annotated[str, typer.Option(metavar="error|drop", help=ON_BAD)]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="What happened, to make errors from.")]
Prediction = Annotated[str | None, typer.Option(metavar="COLUMN", help="What was predicted. By default the members' mean.")]
ErrorColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="The error of each point.")]
ErrorKind = Annotated[
    str, typer.Option(metavar="squared|absolute|nll|crps", help="Which error to make; nll and crps need members.")
]
File = Annotated[str, typer.Argument(metavar="FILE", help=FILE)]
Outside = Annotated[list[str] | None, typer.Option(metavar="FILE", help=OUTSIDE + " May be repeated.")]
Resamples = Annotated[int, typer.Option(min=0, help="Of the points, for spreads; 0 for none.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the resamples.")]

"""Options that say which columns of a file hold members."""

from __future__ import annotations

from typing import Annotated

import typer

MeanColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of means, such as mu{i} or a,b,c. By default mean_{i}.")
]
VarianceColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of variances, likewise. By default variance_{i}.")
]
ScaleColumns = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Columns of standard deviations, likewise. By default scale_{i}.")
]

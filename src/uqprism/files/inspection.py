"""What a file of predictions holds, as every command reads it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from uqprism.ensemble.columns import Columns, NoMembersError
from uqprism.ensemble.layout import Layout
from uqprism.files.paths import Span
from uqprism.files.points import Points
from uqprism.files.read import open_input
from uqprism.measures import is_measure

SHOWN = 6  # columns in a line


@dataclass(frozen=True)
class Inspection:
    """What was found in one file.

    Attributes:
        path: the file.
        n_rows: how many rows it has.
        n_bad: how many of them have bad members.
        layout: the columns of the members; None if there are none.
        weights: of the members, if the file states some.
        measures: the columns that hold measures.
        others: all other columns.
    """

    path: Path
    n_rows: int
    n_bad: int
    layout: Layout | None
    weights: tuple[float, ...] | None
    measures: tuple[str, ...]
    others: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.n_rows:,} rows"]
        if self.layout is None:
            lines.append("  no members")
        else:
            lines += _lines(self.layout)
            lines.append(f"  weights: {'equal' if self.weights is None else _listed(self.weights)}")
            lines.append(f"  bad rows: {self.n_bad:,}")
        lines += [f"  measures: {_listed(self.measures)}"] if self.measures else []
        return "\n".join([*lines, f"  other columns: {_listed(self.others) or 'none'}"])


def _lines(layout: Layout) -> list[str]:
    lines = [f"  members: {layout.n_members} {layout.family}"]
    lines += [f"  {parameter}: {_listed(names)}{' (lists)' if layout.lists else ''}" for parameter, names in layout.columns]
    lines += [f"  {name}: {len(values):,} numbers, shared by all" for name, values in layout.shared]
    return lines + [f"  {name}: {_listed(x) if isinstance(x, tuple) else x}" for name, x in layout.options]


def _listed(values: tuple[object, ...]) -> str:
    texts = [f"{x:g}" if isinstance(x, float) else str(x) for x in values]
    if len(texts) <= SHOWN:
        return ", ".join(texts)
    return f"{', '.join(texts[: SHOWN - 2])}, ..., {texts[-1]} ({len(texts):,})"


def inspected(span: Span, columns: Columns | None = None) -> Inspection:
    """Read a file and say what it holds.

    Raises:
        InvalidValueError: columns of members that do not fit together.
        BadFileError: a file that cannot be read.
    """
    points = Points((span.path,), columns or Columns(), "drop")
    with closing(open_input(span, points.columns)) as file:
        names, weights = file.names, file.weights
        try:
            layout = file.layout
        except NoMembersError:
            layout = None
    taken = () if layout is None else layout.names
    others = [name for name in names if name not in taken]
    measures = tuple(name for name in others if is_measure(name))
    good = None if layout is None else points.good
    n_rows = len(points.column(names[0])) if good is None else len(good)
    return Inspection(
        span.path,
        n_rows,
        0 if good is None else int((~good).sum()),
        layout,
        weights,
        measures,
        tuple(name for name in others if name not in measures),
    )

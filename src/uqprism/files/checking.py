"""Checking the inputs before anything is written: a bad file should show now, not after hours of scoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.ensemble.layout import Layout
from uqprism.errors import ArgumentError, BadFileError, UqprismError
from uqprism.files.numbers import as_cells
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Span, ending
from uqprism.files.read import open_input
from uqprism.files.rows import Scorer
from uqprism.files.source import SAMPLE
from uqprism.files.state import blaming, state_of
from uqprism.measures import Measure, only_defined
from uqprism.support.optional import require

pa = require("pyarrow", extra="cli")

Columns = tuple[Layout, tuple[str, ...]]  # of the members, and all of them if they matter


def check_inputs(
    spans: Iterable[Span],
    options: ScoreOptions,
    refuse: Callable[[BadFileError], None],
    *,
    expected: dict[str, Any] | None,
    together: bool,
) -> None:
    """Find inputs that cannot be read, or whose columns are not those of the others.

    Args:
        spans: the inputs that are to be read.
        options: of the run.
        refuse: called with the error of each bad file.
        expected: the members of the parts that are there already, as in their records; by default those that most inputs have.
        together: whether all inputs become one file, and so must have all columns in common.

    Raises:
        ArgumentError: options that fit none of the files, such as weights for another number of members.
    """
    found: dict[Path, Columns] = {}
    wrong: dict[Path, ArgumentError] = {}
    for span in {span.path: span for span in spans}.values():
        try:
            # Each CSV file is read here as far as its types are guessed from; one shows whether the options fit.
            columns, error = _columns(
                span, options, deep=not ending(span.path).startswith(".csv") or not found, together=together
            )
        except BadFileError as bad:
            refuse(bad)
            continue
        found[span.path] = columns
        if error is not None:
            wrong[span.path] = error
    if not found:
        return
    # The columns of most are right: the odd file is one of many. Among equals it is the first.
    usual = Counter(found.values()).most_common(1)[0][0]
    example = next(path for path, columns in found.items() if columns == usual)
    for path, columns in found.items():
        if expected is not None and columns[0].record() != expected:
            refuse(BadFileError(path, _odd(columns[0], "the finished parts have others")))
        elif expected is None and columns[0] != usual[0]:
            refuse(BadFileError(path, _odd(columns[0], f"{example} has {usual[0].n_members} by {usual[0].shape}")))
        elif columns[1] != usual[1]:
            difference = _difference(columns[1], usual[1])
            refuse(BadFileError(path, f"its columns are not those of {example}: {difference}; name a folder for the output"))
        elif path in wrong:
            raise wrong[path]


def measures_of(spans: Iterable[Span], options: ScoreOptions) -> tuple[Measure, ...]:
    """The measures that the members of the first good input have; a warning says which they do not have."""
    for span in spans:
        try:
            with closing(open_input(span, options.columns)) as file:
                batch = next((batch for batch, _ in file.batches(SAMPLE)), None)
                if batch is None or not batch.num_rows:
                    continue
                layout = file.layout
                arrays = layout.arrays(lambda name, batch=batch: as_cells(batch.column(name), name), crossed=[])  # type: ignore[misc]
            good = layout.good(arrays, dense=True)
            good = layout.good(arrays) if good is not None and not good.any() else good  # none may have a density
            rows = slice(0, 1) if good is None else np.flatnonzero(good)[:1]
            members = layout.members({name: x[..., rows] for name, x in arrays.items()})
        except (UqprismError, OSError, pa.ArrowException):  # said when the file is checked
            continue
        if members.batch_shape[-1]:
            return tuple(only_defined(options.measures, members, f"the {layout.family} members"))
    return options.measures


def _columns(span: Span, options: ScoreOptions, *, deep: bool, together: bool) -> tuple[Columns, ArgumentError | None]:
    """The columns of an input, and the error if the options do not fit it."""
    state_of(span.path)  # the clearest error of one that cannot be opened
    with blaming(span.path), closing(open_input(span, options.columns)) as file:
        columns = file.layout, tuple(file.names) if together else ()
        try:
            if deep:
                Scorer(file, options)
        except ArgumentError as error:
            return columns, error
        return columns, None


def _odd(layout: Layout, others: str) -> str:
    return f"has {layout.n_members} members by {layout.shape}, but {others}, or their columns differ; score them separately"


def _difference(names: tuple[str, ...], usual: tuple[str, ...]) -> str:
    lacking = [name for name in usual if name not in names]
    further = [name for name in names if name not in usual]
    if not (lacking or further):
        return "their order differs"
    return "; ".join(f"{what} {', '.join(each[:5])}" for what, each in (("lacks", lacking), ("also has", further)) if each)

"""Train an ensemble on the paper's synthetic set, predict inside and outside of its inputs, and write files and a report."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqprism.errors import MissingExtraError
from uqprism.paper.data.synthetic import TWO_CURVES_REGION, two_curves
from uqprism.paper.ensembles import trained_now
from uqprism.paper.experiments.synthetic import OUTSIDE, Config, jobs
from uqprism.support.optional import require
from uqprism.support.storage import atomic, check_writable, make_folder

if TYPE_CHECKING:
    from uqprism import EnsemblePrediction
    from uqprism.report.page import Report

REGIONS = {"predictions": TWO_CURVES_REGION, "left": OUTSIDE[0], "right": OUTSIDE[1]}


@dataclass(frozen=True)
class Sizes:
    """The sizes of data and networks: rows to train on, rows to predict in each region, networks, passes over the rows."""

    n_training: int = 1200
    n_test: int = 750
    n_ood: int = 250
    n_members: int = 10
    epochs: int = 100


@dataclass(frozen=True)
class Demo:
    """The files that were written.

    Attributes:
        report: the page.
        files: the predictions, to try other commands on.
        sizes: of data and networks.
    """

    report: Report
    files: tuple[Path, ...]
    sizes: Sizes

    def __str__(self) -> str:
        sizes = self.sizes
        head = (
            f"{sizes.n_members} small networks learned {sizes.n_training:,} points between x = -4 and 4, then predicted new "
            "points there, and points to the left and right, where they had seen none."
        )
        others = ", ".join(path.name for path in self.files)
        lines = [textwrap.fill(head, 100), "", self.report.summary(), ""]
        return "\n".join([*lines, f"The report is in {self.report}", f"Beside it, to try other commands on: {others}"])


def run(
    output: Path, *, sizes: Sizes | None = None, measures: str | None = "all", progress: Callable[[str], None] = lambda _: None
) -> Demo:
    """Train, predict, evaluate and write; this takes a minute at most on two cores.

    Args:
        output: the page; the predictions are written beside it.
        sizes: of data and networks.
        measures: to compare on the page, by default all 144.
        progress: receives the name of each step.
    """
    # All extras before the training, which takes most of the time.
    for package, extra in (("torch", "deep"), ("pyarrow", "cli"), ("jinja2", "report"), ("matplotlib", "report")):
        _require(package, extra)
    from uqprism.report.page import write_page
    from uqprism.report.readers import read_subject

    sizes = sizes or Sizes()
    make_folder(output.parent)
    for path in (output, *(output.parent / f"{name}.csv" for name in REGIONS)):
        check_writable(path)
    files = _files(output.parent, sizes, progress)
    known, *ood = map(str, files)
    arguments = ["report", known, "--target", "y", *(part for file in ood for part in ("--ood", file))]
    command = shlex.join(["uqprism", *arguments, *(("--measures", measures) if measures else ())])
    progress("reading")
    subject = read_subject(known, target="y", ood=ood, measures=measures, title="the paper's synthetic set")
    page = write_page(subject, output, command=command, progress=progress)
    return Demo(page, files, sizes)


def _require(package: str, extra: str) -> None:
    try:
        require(package, extra=extra)
    except MissingExtraError:
        raise MissingDemoError(package, extra) from None


class MissingDemoError(MissingExtraError):
    """The same error, with a demo that needs no extra."""

    def __str__(self) -> str:
        return f"{self.args[0]}; or run the demo that needs no extra: uqprism demo deliveries"


def _files(folder: Path, sizes: Sizes, progress: Callable[[str], None]) -> tuple[Path, ...]:
    """Write the predictions of one ensemble in each region to CSV files."""
    trial = jobs(Config())[0].key  # the first data set of `uqprism reproduce synthetic`
    trial = replace(
        trial, config=replace(trial.config, n_training=sizes.n_training, n_members=sizes.n_members, epochs=sizes.epochs)
    )
    progress(f"training {sizes.n_members} networks on {sizes.n_training} points")
    model = trained_now(*trial.training_data(), **trial.settings())
    progress("predicting")
    found = []
    for number, (name, region) in enumerate(REGIONS.items()):
        count = sizes.n_test if name == "predictions" else sizes.n_ood
        inputs, targets = two_curves(count, trial.seeds.test + number, regions=(region,))  # each region has a seed of its own
        path = folder / f"{name}.csv"
        _write(path, inputs[:, 0], model.predict_ensemble(inputs), targets)
        found.append(path)
    return tuple(found)


def _write(path: Path, x: Any, prediction: EnsemblePrediction, y: Any) -> None:
    """Write the columns x, mean_0 ..., variance_0 ..., y, as a user of any model would have, and what the members are."""
    import pyarrow as pa
    from pyarrow import csv

    from uqprism.files.described import describe

    members = prediction.members
    columns = {"x": x}
    for kind in ("mean", "variance"):
        columns |= {f"{kind}_{i}": row for i, row in enumerate(getattr(members, kind))}
    with atomic(path) as file:
        csv.write_csv(pa.table({**columns, "y": y}), file)
    describe(path, prediction.to_arrow().schema)

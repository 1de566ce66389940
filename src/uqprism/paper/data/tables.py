"""Tables: the paper's six for active learning, and two more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset, Samples
from uqprism.paper.data.formats.archives import tar_member, zip_member
from uqprism.paper.data.formats.compact import read_parquet
from uqprism.paper.data.formats.table import Table, read_csv
from uqprism.paper.data.formats.xlsx import read_xlsx
from uqprism.paper.data.remotes import BLOG, CALIFORNIA, CASP, CCPP, NEWS, SGEMM, YMSD, Remote
from uqprism.paper.data.root import Root
from uqprism.paper.data.splits import split
from uqprism.support.optional import require

TEST, VALIDATION = 0.2, 0.1  # fractions; the paper gives the first


@dataclass(frozen=True)
class Source:
    """Where a table is, and what in it is predicted from what.

    Attributes:
        name: of the data set.
        summary: one sentence.
        compact: the name of its compact file.
        remote: its official archive.
        member: the file in that archive.
        targets: columns whose mean is the target.
        log: whether the target is the logarithm of that.
        skipped: columns that are neither inputs nor target.
        names: of all columns, where the official file has none.
    """

    name: str
    summary: str
    compact: str
    remote: Remote
    member: str
    targets: tuple[str, ...]
    log: bool = False
    skipped: tuple[str, ...] = ()
    names: Sequence[str] | None = None

    def load(self, root: Root, seed: int, *, test_fraction: float = TEST, validation_fraction: float = VALIDATION) -> Dataset:
        """The rows in a seeded split; both fractions are of all rows."""
        table = self.read(root)
        targets = table.columns(self.targets).mean(axis=1)
        if self.log:
            if targets.min() <= 0.0:
                raise FileError(f"{table.source} must have positive {' and '.join(self.targets)}, got {targets.min()}")
            targets = np.log(targets)
        inputs = table.columns([name for name in table.names if name not in self.targets])
        return split(self.name, Samples(inputs, targets), seed, test_fraction, validation_fraction)

    def files(self, root: Root) -> list[Path]:
        """What it is read from."""
        return root.files(self.compact, self.remote)

    def read(self, root: Root) -> Table:
        """The table without what is skipped, from the compact file if there is one."""
        [path] = self.files(root)
        if path.suffix == ".parquet":
            return read_parquet(path, self.skipped)
        member = (zip_member if path.suffix == ".zip" else tar_member)(path, self.member)
        source = f"{self.member} in {path}"
        if self.member.endswith(".xlsx"):
            return read_xlsx(member, source)
        return read_csv(member, source, names=self.names, skipped=self.skipped)


RUNS = tuple(f"Run{i} (ms)" for i in range(1, 5))
TIMBRE = [f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)]
HOUSING = ("longitude", "latitude", "housingMedianAge", "totalRooms", "totalBedrooms", "population", "households", "medianIncome")

SOURCES = (
    Source(
        "ccpp",
        "Combined Cycle Power Plant: electrical output from weather, 9,568 x 4",
        "ccpp.parquet",
        CCPP,
        "Folds5x2_pp.xlsx",
        targets=("PE",),
    ),
    Source(
        "casp",
        "Protein tertiary structure: deviation of a decoy from nine physicochemical properties, 45,730 x 9",
        "casp.parquet",
        CASP,
        "CASP.csv",
        targets=("RMSD",),
    ),
    Source(
        "sgemm",
        "SGEMM GPU kernels: log of the mean run time of four runs from 14 parameters, 241,600 x 14",
        "sgemm.parquet",
        SGEMM,
        "sgemm_product.csv",
        targets=RUNS,
        log=True,
        skipped=("run_mean_ms",),
    ),
    Source(
        "news",
        "Online News Popularity: log of an article's shares, 39,644 x 58",
        "online_news.parquet",
        NEWS,
        "OnlineNewsPopularity.csv",
        targets=("shares",),
        log=True,
        skipped=("url", "timedelta"),
    ),
    Source(
        "blog",
        "BlogFeedback, its training file: comments that a blog post gets within a day, 52,397 x 280",
        "blogfeedback.parquet",
        BLOG,
        "blogData_train.csv",
        targets=("target",),
        names=[*(f"f{i}" for i in range(280)), "target"],
    ),
    Source(
        "ymsd",
        "YearPredictionMSD: a song's year from its timbre, 515,345 x 90",
        "ymsd.parquet",
        YMSD,
        "YearPredictionMSD.txt",
        targets=("year",),
        names=["year", *TIMBRE],
    ),
    Source(
        "california",
        "California housing: a district's median house value, 20,640 x 8",
        "california_housing.parquet",
        CALIFORNIA,
        "cal_housing.data",
        targets=("medianHouseValue",),
        names=[*HOUSING, "medianHouseValue"],
    ),
)
for _source in SOURCES:
    register(_source.name, _source.summary, files=_source.files)(_source.load)


@register("diabetes", "Diabetes progression from scikit-learn, without any download, 442 x 10")
def diabetes(seed: int, *, test_fraction: float = TEST, validation_fraction: float = VALIDATION) -> Dataset:
    """The rows in a seeded split; both fractions are of all rows."""
    require("sklearn", extra="sklearn")
    from sklearn.datasets import load_diabetes

    inputs, targets = load_diabetes(return_X_y=True)
    return split("diabetes", Samples(inputs, targets), seed, test_fraction, validation_fraction)

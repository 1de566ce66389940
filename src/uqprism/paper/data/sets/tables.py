"""Tables: the paper's six for active learning, and two more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.catalogue import register
from uqprism.paper.data.dataset import Dataset, Samples, split
from uqprism.paper.data.formats import read_csv, read_parquet, read_xlsx, tar_member, zip_member
from uqprism.paper.data.root import Remote, Root
from uqprism.support.optional import require

DataFrame = Any
TEST, VALIDATION = 0.2, 0.1  # fractions of the rows; the paper states the first


@dataclass(frozen=True)
class Source:
    """The files of a table, and which columns are the target.

    Attributes:
        name: of the data set.
        summary: one sentence.
        compact: the name of its compact copy.
        url: the address of its official archive.
        sha256: the archive's checksum.
        member: the file in that archive.
        targets: columns whose mean is the target.
        log: whether the target is the logarithm of that mean.
        skipped: columns that are neither inputs nor target.
        names: of all columns, if the official file does not name them.
        size: of the archive in bytes, None where it is not known.
        alias: the archive's name under the data root, where that is not the end of the address.
    """

    name: str
    summary: str
    compact: str
    url: str
    sha256: str
    member: str
    targets: tuple[str, ...]
    log: bool = False
    skipped: tuple[str, ...] = ()
    names: Sequence[str] | None = None
    size: int | None = None
    alias: str = ""

    @property
    def remote(self) -> Remote:
        """Its official archive."""
        return Remote(self.name, self.url, self.sha256, self.size, self.alias)

    def load(self, root: Root, seed: int, *, test_fraction: float = TEST, validation_fraction: float = VALIDATION) -> Dataset:
        """The rows in a random split; both fractions are of all rows."""
        [path] = self.files(root)
        table = self.read(path)
        if absent := [name for name in self.targets if name not in table]:
            raise FileError(f"{path} must have the columns {', '.join(absent)}, got {', '.join(table)}")
        targets = table[list(self.targets)].to_numpy().mean(axis=1)
        if self.log:
            if targets.min() <= 0.0:
                raise FileError(f"{path} must have positive {' and '.join(self.targets)}, got {targets.min()}")
            targets = np.log(targets)
        inputs = table.drop(columns=list(self.targets)).to_numpy()
        return split(self.name, Samples(inputs, targets), seed, test_fraction, validation_fraction)

    def files(self, root: Root) -> list[Path]:
        """The one file that it is read from."""
        return root.files(self.compact, self.remote)

    def read(self, path: Path) -> DataFrame:
        """The table in this compact copy or official archive, without the skipped columns."""
        if path.suffix == ".parquet":
            return read_parquet(path, self.skipped)
        data = (zip_member if path.suffix == ".zip" else tar_member)(path, self.member)
        source = f"{self.member} in {path}"
        if self.member.endswith(".xlsx"):
            return read_xlsx(data, source)
        return read_csv(data, source, names=self.names, skipped=self.skipped)


# The checksums of the UCI archives agree in at least two independent public repositories each.
_UCI = "https://archive.ics.uci.edu/static/public/"
RUNS = tuple(f"Run{i} (ms)" for i in range(1, 5))
TIMBRE = [f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)]
HOUSING = ("longitude", "latitude", "housingMedianAge", "totalRooms", "totalBedrooms", "population", "households", "medianIncome")

SOURCES = (
    Source(
        "ccpp",
        "Combined Cycle Power Plant: electrical output from weather, 9,568 x 4",
        "ccpp.parquet",
        _UCI + "294/combined+cycle+power+plant.zip",
        "cc7b2a4977c0a44e8221c91d9a7e5746b3c68186cff7e5c61c70af6432b98c7a",
        "Folds5x2_pp.xlsx",
        targets=("PE",),
        size=3_674_852,
    ),
    Source(
        "casp",
        "Protein tertiary structure: deviation of a decoy from nine physicochemical properties, 45,730 x 9",
        "casp.parquet",
        _UCI + "265/physicochemical+properties+of+protein+tertiary+structure.zip",
        "ee6536c8cc415dc50d66bd247af7c9bc95c187ab8a4ea0f1f546b127206c1100",
        "CASP.csv",
        targets=("RMSD",),
    ),
    Source(
        "sgemm",
        "SGEMM GPU kernels: log of the mean run time of four runs from 14 parameters, 241,600 x 14",
        "sgemm.parquet",
        _UCI + "440/sgemm+gpu+kernel+performance.zip",
        "8d3ee0d82708df11b54debc6a4fbade77c604a047f019fa7940413032eb7b096",
        "sgemm_product.csv",
        targets=RUNS,
        log=True,
        skipped=("run_mean_ms",),  # the target itself, in the compact copy
        size=3_186_088,
    ),
    Source(
        "news",
        "Online News Popularity: log of an article's shares, 39,644 x 58",
        "online_news.parquet",
        _UCI + "332/online+news+popularity.zip",
        "dba2ae526f62ccef6f2f8efb53b0268319f4d0d2719bb98d88958cfe31d58a22",
        "OnlineNewsPopularity.csv",
        targets=("shares",),
        log=True,
        skipped=("url", "timedelta"),  # not predictive, as the set's description says
    ),
    Source(
        "blog",
        "BlogFeedback, its training file: comments that a blog post gets within a day, 52,397 x 280",
        "blogfeedback.parquet",
        _UCI + "304/blogfeedback.zip",
        "1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf",
        "blogData_train.csv",
        targets=("target",),
        names=[*(f"f{i}" for i in range(280)), "target"],
    ),
    Source(
        "ymsd",
        "YearPredictionMSD: a song's year from its timbre, 515,345 x 90",
        "ymsd.parquet",
        _UCI + "203/yearpredictionmsd.zip",
        "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
        "YearPredictionMSD.txt",
        targets=("year",),
        names=["year", *TIMBRE],
        size=211_011_981,
    ),
    Source(
        "california",
        "California housing: a district's median house value, 20,640 x 8",
        "california_housing.parquet",
        "https://ndownloader.figshare.com/files/5976036",
        "aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",  # as scikit-learn publishes it
        "cal_housing.data",
        targets=("medianHouseValue",),
        names=[*HOUSING, "medianHouseValue"],
        alias="cal_housing.tgz",
    ),
)
for _source in SOURCES:
    register(_source.name, _source.summary, files=_source.files)(_source.load)


@register("diabetes", "Diabetes progression from scikit-learn, without any download, 442 x 10")
def diabetes(seed: int, *, test_fraction: float = TEST, validation_fraction: float = VALIDATION) -> Dataset:
    """The rows in a random split; both fractions are of all rows."""
    require("sklearn", extra="sklearn")
    from sklearn.datasets import load_diabetes

    inputs, targets = load_diabetes(return_X_y=True)
    return split("diabetes", Samples(inputs, targets), seed, test_fraction, validation_fraction)

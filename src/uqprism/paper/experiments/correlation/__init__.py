"""Rank correlation between measures: Kendall's tau-b between approximations and between scoring rules.

The paper (Section 5.6) uses "the same datasets and models as for selective prediction" and averages over the data sets. So does
this: its settings are those of `selective`, whose measures are read from the folder beside this one where they are there; else
the ensembles are trained here. Tau-b is taken over the test images of one ensemble, averaged over seeds, then over data sets.

The paper shows the correlations as pictures without numbers. What its sentences are held against is in `claims`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uqprism.paper.artefacts import Artefact, Findings, Store, as_data
from uqprism.paper.base import Experiment, Picture, Result, first_line
from uqprism.paper.experiments.correlation.claims import all_claims
from uqprism.paper.experiments.correlation.tables import notes, tables
from uqprism.paper.experiments.selective import PRESETS, WANTS_GPU, Config, expected, needs, selections
from uqprism.paper.fits import Fit, Fitted
from uqprism.paper.jobs import Job
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation


@dataclass(frozen=True)
class Ranking:
    """A job: the correlations on one data set with one ensemble."""

    name: str
    fit: Fit


def jobs(config: Config) -> list[Job]:
    """One for each ensemble of `selective`."""
    return [
        Job(
            f"{each.name}, seed {each.fit.seed}",
            Artefact("findings", Ranking(each.name, each.fit)),
            seconds=expected(each.fit),
            shared=each.fit.predictions(),
        )
        for each in selections(config)
    ]


def work(job: Job, store: Store) -> Findings:
    """The matrix of all measures that have a column in the paper's tables."""
    fitted = Fitted(job.key.fit, store)
    found = rank_correlation(fitted.measures())
    return Findings({"names": list(found.names), "record": fitted.record().data}, {"matrix": found.matrix})


def gather(config: Config, store: Store) -> Result:
    """Average, and hold the paper's sentences against it."""
    found: dict[str, list[RankCorrelation]] = {}
    records = {}
    for job in jobs(config):
        value = store.get(job.artefact)
        records[job.name] = value.data["record"]
        found.setdefault(job.key.name, []).append(RankCorrelation(tuple(value.data["names"]), value.arrays["matrix"]))
    by_data = {name: RankCorrelation.average(each) for name, each in found.items()}
    mean = RankCorrelation.average(by_data.values())
    return Result(
        config=as_data(config),
        seeds={"members": {name: record["member seeds"] for name, record in records.items()}},
        claims=all_claims(mean),
        tables=tables(mean, by_data),
        notes=notes(mean),
        arrays={"measures": np.array(mean.names), "tau": mean.matrix},
        data={name: record["data"] for name, record in records.items()},
    )


def draw(result: Result) -> dict[str, Picture]:
    """The paper's figure: approximations by rule above, rules by approximation below."""
    from uqprism.paper.experiments.correlation import figures

    return figures.pictures(result)


EXPERIMENT = Experiment(
    name="correlation",
    summary=first_line(__doc__),
    presets=PRESETS,
    jobs=jobs,
    work=work,
    gather=gather,
    draw=draw,
    wants_gpu=WANTS_GPU,
    needs=needs,
    reads=("selective",),
)

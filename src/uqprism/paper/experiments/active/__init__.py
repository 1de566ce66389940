"""Active learning on six tables: which measure picks the points that teach most.

The paper (Section 5.5 and its appendix) says: six UCI tables, a fifth of each to test on, the rest split into validation and
pool; about 200 points to start from; in each iteration points are drawn without replacement from a softmax over the scores of the
pool; ensembles of three-layer MLPs with ReLU and hidden sizes of 100; the mean over iterations of the test NLL, ranked; five
seeds. The rest is ours:

- data: `paper.data` (NEWS and SGEMM with the logarithm of their target); a tenth of the rows to validate on. Of the pool the
  first 20,000 rows count, of the validation rows 1,000, of the test rows 5,000. Seeds differ in the points to start from, the
  networks and the draws, not in the split;
- scores: as they are, at temperature 1, of targets in standard deviations of the pool's. A softmax depends on the units of the
  scores, and the paper does not give its own. The preset `standardised` is the same with each score in standard deviations over
  the pool, where no unit counts and no softmax is flat, for the cells that the paper fills;
- networks: 10 members with the natural head, Adam with 1e-3, batches of 64, at most 100 epochs, of which each member keeps that
  with the lowest validation loss and stops 20 epochs after it; trained from scratch in each iteration, on inputs and targets
  standardised by the labelled points. Without validation rows 100 epochs on 200 points overfit: the NLL on NEWS and YMSD is then
  near 37 instead of 1.3;
- 10 iterations of 50 picks, so 11 models from 200 to 700 points, the first of them shared by all acquisitions;
- loops of one seed draw with the same random numbers: acquisitions differ by their scores and by nothing else. Cells of the table
  that are the same number for every ensemble share a loop (`acquisitions.loop_of`).

What counts as holding is in `claims`, how ranks are made in `ranks`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from uqprism.paper.artefacts import Artefact, Findings, Store
from uqprism.paper.base import Experiment, Picture, Result, first_line
from uqprism.paper.experiments.active.acquisitions import filled, not_printed, printed
from uqprism.paper.jobs import Job
from uqprism.tasks.active_learning.scaling import Scaling


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        datasets: by their names in `uqprism.paper.data`.
        measures: to compare, with `random`; none given are all that have a column in the paper.
        scores: how softmax takes them, see `ActiveLearner`.
        n_seeds: runs of each loop.
        n_members: networks of an ensemble.
        hidden: widths of their hidden layers.
        epochs: of each training, at most.
        patience: epochs without a lower validation loss after which a member stops.
        n_initial: points to start from.
        batch_size: points to pick in each iteration.
        iterations: how often points are picked.
        n_pool: rows to pick from, at most.
        n_validation: rows that networks are validated on, at most.
        n_test: rows that they are tested on, at most.
        seed: of the split; the loops' are this and the following numbers.
    """

    datasets: tuple[str, ...] = ("ccpp", "casp", "sgemm", "news", "blog", "ymsd")
    measures: tuple[str, ...] = ()
    scores: Scaling = "raw"
    n_seeds: int = 5
    n_members: int = 10
    hidden: tuple[int, ...] = (100, 100, 100)
    epochs: int = 100
    patience: int = 20
    n_initial: int = 200
    batch_size: int = 50
    iterations: int = 10
    n_pool: int = 20_000
    n_validation: int = 1_000
    n_test: int = 5_000
    seed: int = 0

    @property
    def seeds(self) -> list[int]:
        """Of the loops."""
        return [self.seed + i for i in range(self.n_seeds)]


@dataclass(frozen=True)
class Rows:
    """What decides the rows of a data set."""

    dataset: str
    n_pool: int
    n_validation: int
    n_test: int
    seed: int


@dataclass(frozen=True)
class Comparison:
    """A job: these acquisitions on one data set, in lockstep, and the settings that they share with the others."""

    dataset: str
    acquisitions: tuple[str, ...]
    config: Config

    @property
    def rows(self) -> Artefact:
        """The data set's."""
        config = self.config
        return Artefact("findings", Rows(self.dataset, config.n_pool, config.n_validation, config.n_test, config.seed))


def jobs(config: Config) -> list[Job]:
    """For each data set the loops behind the paper's numbers; then those of the cells that it leaves blank."""
    return [job for pair in paired_jobs(config).values() for job in pair]


def paired_jobs(config: Config) -> dict[str, list[Job]]:
    """The jobs of each data set."""
    found: dict[str, list[Job]] = {name: [] for name in config.datasets}
    # A loop does not depend on which others there are.
    shared = replace(config, datasets=(), measures=())
    for ending, acquisitions in (("", printed(config.measures)), (", not in the paper", not_printed(config.measures))):
        for name in config.datasets if acquisitions else ():
            key = Comparison(name, acquisitions, shared)
            found[name].append(Job(name + ending, Artefact("findings", key), seconds=3.0 * len(acquisitions)))
    return found


def read_rows(config: Config, store: Store) -> None:
    """Put the rows of all data sets into the store: a machine that cannot read their files can then do the jobs."""
    from uqprism.paper.experiments.active import learning

    for job in jobs(config):
        store.get(job.key.rows, partial(learning.read, job.key.rows.key, store))


def work(job: Job, store: Store) -> Findings:
    """All loops of a job, round by round; finished rounds survive an interruption."""
    from uqprism.paper.experiments.active import learning

    rows = store.get(job.key.rows, partial(learning.read, job.key.rows.key, store))
    return learning.compare(rows, job.key, store.unfinished(job.artefact))


def gather(config: Config, store: Store) -> Result:
    """Rank the loops, and hold the paper's table and sentences against the ranks."""
    from uqprism.paper.experiments.active import results

    jobs_of = paired_jobs(config)
    found = {name: [store.get(job.artefact) for job in pair] for name, pair in jobs_of.items()}
    return results.gathered(config, found, [job.key.acquisitions for job in next(iter(jobs_of.values()))])


def draw(result: Result) -> dict[str, Picture]:
    """The paper's figure, and its table beside ours."""
    from uqprism.paper.experiments.active import figures

    return {"curves": figures.curves(result), "ranks": figures.ranks(result)}


QUICK = Config(
    datasets=("diabetes",),
    measures=tuple(
        f"{rule}.{rest}"
        for rule in ("crps", "log", "squared_error", "quadratic")
        for rest in ("total.members.members", "bayes.members", "bayes.pooled", "excess.members.members", "excess.members.matched")
    ),
    n_seeds=3,
    n_members=5,
    hidden=(50, 50),
    epochs=50,
    n_initial=40,
    batch_size=10,
    iterations=5,
)
STANDARDISED = Config(scores="standardised", measures=filled())
EXPERIMENT = Experiment(
    name="active",
    summary=first_line(__doc__),
    presets={"quick": QUICK, "paper": Config(), "standardised": STANDARDISED},
    jobs=jobs,
    work=work,
    gather=gather,
    draw=draw,
    wants_gpu=("paper", "standardised"),
    needs=lambda config: config.datasets,
)

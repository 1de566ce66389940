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
  that are the same number for every ensemble share a loop (`ranks.loop_of`).

The thresholds of the claims are in `claims`; `ranks` computes the average ranks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.evaluation import evaluate
from uqprism.measures import Measure, published
from uqprism.paper import inputs
from uqprism.paper.ensembles import TRAINING
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.active.claims import gathered
from uqprism.paper.experiments.active.ranks import RANDOM, filled, not_printed, printed
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Bundle, Store, checksum
from uqprism.plots.style import GREY, RISK_COLOURS, new_figure, styled
from uqprism.tasks.active_learning import LoopSettings, Pool, compare_acquisitions, scaled
from uqprism.tasks.active_learning.picking import Scaling

if TYPE_CHECKING:
    from uqprism.training import StackedFit


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        datasets: by their names in `uqprism.paper.data`.
        measures: to compare with `random`; by default all that have a column in the paper.
        scores: how the softmax scales them, see `ActiveLearner`.
        n_seeds: runs of each acquisition.
        n_members: number of networks in an ensemble.
        hidden: widths of the hidden layers.
        epochs: most epochs of a training.
        patience: epochs without a lower validation loss after which a member stops.
        n_initial: number of points to start from.
        batch_size: number of points to pick in each iteration.
        iterations: number of times that points are picked.
        n_pool: most rows to pick from.
        n_validation: most rows to validate on.
        n_test: most rows to test on.
        seed: seed of the split; the loops have this and the following seeds.
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
        """The seeds of the loops."""
        return [self.seed + i for i in range(self.n_seeds)]


@dataclass(frozen=True)
class TableRows:
    """Everything that decides the rows of a data set."""

    dataset: str
    n_pool: int
    n_validation: int
    n_test: int
    seed: int


@dataclass(frozen=True)
class Loops:
    """A job: the loops of these acquisitions on one data set, run together, with the settings that all jobs share."""

    dataset: str
    acquisitions: tuple[str, ...]
    config: Config

    @property
    def rows(self) -> Artefact:
        """The rows of the data set."""
        config = self.config
        return Artefact("bundle", TableRows(self.dataset, config.n_pool, config.n_validation, config.n_test, config.seed))


def jobs(config: Config) -> list[Job]:
    """For each data set a job of the loops behind the paper's numbers, then one of the cells that it leaves blank."""
    return [job for pair in paired_jobs(config).values() for job in pair]


def paired_jobs(config: Config) -> dict[str, list[Job]]:
    """The jobs of each data set."""
    found: dict[str, list[Job]] = {name: [] for name in config.datasets}
    # A loop does not depend on the other data sets and measures, so they are not in its key.
    shared = replace(config, datasets=(), measures=())
    for ending, acquisitions in (("", printed(config.measures)), (", not in the paper", not_printed(config.measures))):
        for name in config.datasets if acquisitions else ():
            key = Loops(name, acquisitions, shared)
            found[name].append(Job(name + ending, Artefact("bundle", key), seconds=3.0 * len(acquisitions)))
    return found


def read_rows(config: Config, store: Store) -> None:
    """Store the rows of all data sets, so that a machine without their files can do the jobs."""
    for job in jobs(config):
        store.get(job.key.rows, partial(read, job.key.rows.key, store))


def work(job: Job, store: Store) -> Bundle:
    """Run all loops of a job, round by round; finished rounds survive an interruption."""
    rows = store.get(job.key.rows, partial(read, job.key.rows.key, store))
    return compare(rows, job.key, store.unfinished(job.artefact))


def gather(config: Config, store: Store) -> Result:
    """Rank the loops, and compare the ranks with the paper's table and sentences."""
    jobs_of = paired_jobs(config)
    found = {name: [store.get(job.artefact) for job in pair] for name, pair in jobs_of.items()}
    return gathered(config, found, [job.key.acquisitions for job in next(iter(jobs_of.values()))])


def draw(result: Result) -> dict[str, Picture]:
    """The learning curves, and our ranks against the paper's."""
    return {"curves": _curves_figure(result), "ranks": _ranks_figure(result)}


Data = dict[str, Any]
PARTS = {"pool": "train", "validation": "validation", "test": "test"}


def read(key: TableRows, store: Store) -> Bundle:
    """The rows of a data set: inputs in single precision, targets in standard deviations of the pool's."""
    dataset = inputs.load(store, key.dataset, seed=key.seed)
    most = {"pool": key.n_pool, "validation": key.n_validation, "test": key.n_test}
    # The rows are in random order, so the first are a random sample.
    parts = {part: getattr(dataset, name).take(slice(most[part])) for part, name in PARTS.items()}
    mean, scale = parts["pool"].targets.mean(), parts["pool"].targets.std()
    arrays = {f"{part}_inputs": samples.inputs.astype(np.float32) for part, samples in parts.items()}
    arrays |= {f"{part}_targets": (samples.targets - mean) / scale for part, samples in parts.items()}
    return Bundle(data={"mean": float(mean), "scale": float(scale)}, arrays=arrays)


def compare(rows: Bundle, key: Loops, folder: Path) -> Bundle:
    """Test errors of every loop: `nll` (acquisitions, seeds, models), means over models of `rmse` and `crps`, and `share`.

    `share` (acquisitions, seeds) is the part of the pool that a softmax of the scores effectively chooses from, for a model
    trained on as many points as at the start.
    """
    from uqprism.training import TrainingWarning

    config, data = key.config, _on_device(rows.arrays)
    fit = _fit(key, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # restarts of diverged members
        result = compare_acquisitions(
            fit,
            Pool.of(data["pool_inputs"], data["pool_targets"], (data["test_inputs"], data["test_targets"])),
            key.acquisitions,
            # The model of the first points is a round, too.
            LoopSettings(
                initial=config.n_initial, batch_size=config.batch_size, rounds=config.iterations + 1, scores=config.scores
            ),
            seeds=config.seeds,
            folder=folder,
            # Scores of every point would take space and are not used.
            keep="picks",
            progress=False,
        )
        share = _shares(fit, key, data)
    runs = list(result.parts.values())
    arrays = {"nll": np.array([[run.curves[name] for run in runs] for name in key.acquisitions])}
    for metric in ("rmse", "crps"):
        arrays[metric] = np.array([[run.metrics[metric][name] for run in runs] for name in key.acquisitions])
    facts = {
        "sizes": {part: len(rows.arrays[f"{part}_targets"]) for part in PARTS},
        "n_features": rows.arrays["pool_inputs"].shape[1],
        "checksum": checksum(*(rows.arrays[name] for name in sorted(rows.arrays))),
    }
    return Bundle(data={**rows.data, **facts}, arrays={**arrays, "share": share})


def _on_device(arrays: Any) -> Data:
    """Move the arrays to the GPU if there is one, so that predictions and scores stay there."""
    import torch

    if not torch.cuda.is_available():
        return dict(arrays)
    return {name: torch.as_tensor(values, device="cuda") for name, values in arrays.items()}


def _fit(key: Loops, data: Data) -> StackedFit:
    from uqprism.training import MLP, StackedFit

    settings: dict[str, Any] = {
        "n_members": key.config.n_members,
        "network": MLP(hidden=key.config.hidden),
        "validation": (data["validation_inputs"], data["validation_targets"]),
        "max_epochs": key.config.epochs,
        "patience": key.config.patience,
        "progress": False,
    }
    return StackedFit(**{**TRAINING, **settings})


def _shares(fit: StackedFit, key: Loops, data: Data) -> np.ndarray:
    """1 / (n_points * sum of squared probabilities), (acquisitions, seeds), for one model per seed on random points."""
    config, count = key.config, len(data["pool_targets"])
    rng = np.random.default_rng(config.seed)
    rows = np.array([rng.choice(count, size=config.n_initial, replace=False) for _ in config.seeds])
    measures = [name for name in key.acquisitions if name != RANDOM]
    found = []
    for model in fit.many(data["pool_inputs"], data["pool_targets"], rows, config.seeds):
        table = evaluate(model.predict_ensemble(data["pool_inputs"]), measures)
        # Equal scores for `random`, of which a softmax is uniform.
        scores = [to_numpy(table[name]) if name != RANDOM else np.zeros(count) for name in key.acquisitions]
        found.append([_share(scaled(each, config.scores)) for each in scores])
    return np.array(found).T


def _share(scores: np.ndarray) -> float:
    weights = np.exp(scores - scores.max())  # which does not overflow
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))


MARKERS = {"crps": "o", "log": "s", "squared_error": "^", "quadratic": "D"}
DASHED = (0, (4, 3))
RULES = {name: short for short, name in published.RULES.items()}


def _curves_figure(result: Result) -> Picture:
    """The test NLL by labelled points: a row for each data set, a column for each rule, a line for each acquisition."""
    from matplotlib.lines import Line2D

    datasets, loops = result.arrays["datasets"].tolist(), result.arrays["loops"].tolist()
    nll, labelled = result.arrays["nll"].mean(axis=2), result.arrays["labelled"]
    with styled():
        figure, axes = new_figure(
            1.0 + 1.35 * len(datasets), nrows=len(datasets), ncols=len(RULES), sharex=True, sharey="row", squeeze=False
        )
        for row, name, errors in zip(axes, datasets, nll, strict=True):
            for ax, rule in zip(row, RULES, strict=True):
                for loop, curve in zip(loops, errors, strict=True):
                    if loop.startswith(f"{rule}."):
                        ax.plot(labelled, curve, color=RISK_COLOURS[Measure.parse(loop).risk], linewidth=0.7, alpha=0.8)
                ax.plot(labelled, errors[loops.index(RANDOM)], color="black", linestyle=DASHED, linewidth=1.0)
            row[0].set_ylabel(f"{name}: NLL")
            row[0].set_ylim(*_limits(errors))
        for ax, rule in zip(axes[0], RULES, strict=True):
            ax.set_title(RULES[rule])
        for ax in axes[-1]:
            ax.set_xlabel("labelled points")
        lines: list[Any] = [Line2D([], [], color=colour, label=f"{risk} risks") for risk, colour in RISK_COLOURS.items()]
        lines.append(Line2D([], [], color="black", linestyle=DASHED, label="random"))
        figure.legend(handles=lines, loc="outside lower center", ncols=4)
    caption = (
        "Test NLL, in standard deviations of the target, by labelled points: a row for each data set, a column for each scoring "
        f"rule, a line for each acquisition, mean of {result.arrays['nll'].shape[2]} seeds; dashed: random picks. Spikes are cut."
    )
    return Picture(figure, caption)


def _limits(curves: Any) -> tuple[float, float]:
    """Limits that cut off single spikes."""
    low, high = float(curves.min()), float(np.quantile(curves, 0.98))
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _ranks_figure(result: Result) -> Picture:
    """A scatter of our average ranks against the paper's."""
    from matplotlib.lines import Line2D

    rows = next(iter(result.tables.values()))
    spreads = {row["measure"]: row["our spread"] for row in rows}
    shown = [row for row in rows if row["paper"] is not None and row["ours, as printed"] is not None]
    with styled():
        figure, ax = new_figure(4.6)
        for row in shown:
            name = row["measure"]
            measure = Measure.parse(name) if name != RANDOM else None
            look = (
                {"color": "black", "marker": "*"}
                if measure is None
                else {"color": RISK_COLOURS[measure.risk], "marker": MARKERS[measure.rule]}
            )
            ax.errorbar(
                row["paper"],
                row["ours, as printed"],
                xerr=row["paper's spread"],
                yerr=spreads.get(published.printed_as(name)),
                linestyle="none",
                markersize=9 if measure is None else 5,
                elinewidth=0.4,
                ecolor=GREY,
                **look,
            )
        ax.set(xlabel="average rank in the paper", ylabel="average rank here")
        marks: list[Any] = [
            Line2D([], [], color=colour, marker="o", linestyle="none", label=risk) for risk, colour in RISK_COLOURS.items()
        ]
        marks += [Line2D([], [], color=GREY, marker=mark, linestyle="none", label=RULES[rule]) for rule, mark in MARKERS.items()]
        marks.append(Line2D([], [], color="black", marker="*", markersize=9, linestyle="none", label="random"))
        figure.legend(handles=marks, loc="outside lower center", ncols=8)
    caption = (
        f"Average ranks of {len(shown)} cells of the paper's table against ours, lower is better; bars: one standard deviation, "
        "ours between seeds."
    )
    return Picture(figure, caption)


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
EXPERIMENT = register(
    Experiment(
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
)

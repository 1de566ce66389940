"""Out-of-distribution detection on mosaics of four digits: AUROC of every measure, for eight kinds of other mosaics.

The paper (appendix, Out-of-Distribution Detection) trains "ensembles of 10 models on the in-distribution MNIST-mosaic task", "the
same small CNN as in the selective prediction setup", Adam with learning rate 1e-3 and batches of 64, and gives neither sizes nor
epochs. Ours, in the preset `paper`:

- data: `data.load("mnist_mosaic")`: 50,000 mosaics to train on, as many as there are digits to make them of, 5,000 to
  stop on, 2,000 to test on, made anew for each of five seeds. The 50,000 were chosen with the paper's table in view, see
  docs/results/ood.md. As many OOD mosaics of each kind, by `uqprism.paper.data.ood_mosaics`; 2,000 because the smallest of the
  compact files has 2,098 letters (the official files have more; tiles of the other sets are drawn with replacement);
- networks: the small CNN with 16, 32 and 64 channels and 128 hidden units, natural head; each member stops when its validation
  loss has not improved for 5 epochs, after 40 at the latest. Some 5 s per epoch on an H200: about a minute for each seed;
- preset `smaller`: 20,000 mosaics to train on, to see what their number does;
- preset `quick`: mosaics of scikit-learn's 8x8 digits, 16x16 pixels, fewer and smaller networks; OOD tiles are pieces of
  photographs, the same mosaics black on white, and a quadrant of the former in place of EMNIST's letters.

The thresholds of the claims are in `claims`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from uqprism.ensemble import EnsemblePrediction
from uqprism.evaluation import evaluate
from uqprism.measures import RISKS, MeasureTable, published
from uqprism.paper import data, inputs
from uqprism.paper.comparison import (
    CONSTANT,
    LIKE_WITH_LIKE,
    NEAR,
    RULES,
    Cells,
    against_paper,
    agreements,
    beside,
    column,
    of_risk,
    short_label,
    slip,
    wide,
)
from uqprism.paper.ensembles import EnsembleSpec, StoredEnsemble, Training, measured, predict_all
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.ood.claims import PLACES, Aurocs, all_claims
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Store, as_data
from uqprism.plots.style import RISK_COLOURS, new_figure, styled
from uqprism.tasks.ood_detection import ood_detection
from uqprism.tasks.result import TaskResult

Array = Any
EQUAL = "R_exc^{1,1} with the members' own variances and with equal ones"
PAPER_ROWS = {
    "cifar10": "CIFAR-10",
    "svhn": "SVHN",
    "fashion_mnist": "Fashion-MNIST",
    "mixture": "Mixture (C,S,F)",
    **{f"emnist_{place}": f"EMNIST ({place})" for place in PLACES},
}


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        data: name of the data set of mosaics.
        sizes: numbers of mosaics to train on, to stop on and to test on; the last is also the number of OOD mosaics of each kind.
        tile: pixels along a quadrant's side, for data sets with this option.
        whole: sources of OOD tiles that fill all four quadrants.
        single: source of OOD tiles that fill one quadrant, each of the four in turn.
        n_seeds: number of ensembles.
        training: options of each ensemble.
        seed: the first seed.
    """

    data: str = "mnist_mosaic"
    sizes: tuple[int, int, int] = (50_000, 5_000, 2_000)
    tile: int | None = None
    whole: tuple[str, ...] = ("cifar10", "svhn", "fashion_mnist", "mixture")
    single: str = "emnist"
    n_seeds: int = 5
    training: Training = Training(max_epochs=40, patience=5)  # noqa: RUF009  frozen
    seed: int = 0

    def ood_names(self) -> tuple[str, ...]:
        """The names of all kinds of OOD mosaics."""
        return (*self.whole, *(f"{self.single}_{place}" for place in PLACES))


@dataclass(frozen=True)
class Detection:
    """A job: one ensemble, and the OOD mosaics to detect."""

    fit: EnsembleSpec
    ood: tuple[str, ...]


def fits(config: Config) -> list[EnsembleSpec]:
    """The ensembles of these settings."""
    # An option that a data set does not have is refused, so `tile` is given only where it is set.
    options = {"sizes": config.sizes} if config.tile is None else {"sizes": config.sizes, "tile": config.tile}
    return [EnsembleSpec(config.data, config.seed + i, config.training, options) for i in range(config.n_seeds)]


def jobs(config: Config) -> list[Job]:
    """One job for each seed."""
    seconds = config.sizes[0] * (1.3e-3 if config.sizes[0] >= Config.sizes[0] else 8e-3)  # measured on a GPU and on two cores
    return [Job(f"seed {fit.seed}", Artefact("result", Detection(fit, config.ood_names())), seconds) for fit in fits(config)]


def needs(config: Config) -> tuple[str, ...]:
    """The data set and the OOD mosaics whose files are read."""
    known = (name for name in config.ood_names() if name in data.ood_names())  # `photographs_tl` and the like are made here
    return (config.data, *dict.fromkeys(known))


def work(job: Job, store: Store) -> TaskResult:
    """The AUROC of every measure for each kind of OOD mosaics; measures are not stored, they take seconds to compute."""
    fitted = StoredEnsemble(job.key.fit, store)
    known, ood = fitted.predictions(), _predictions(fitted, job.key.ood)
    found = ood_detection(measured(known), {name: measured(each) for name, each in ood.items()}, resamples=0)
    settings = {**found.settings, "record": fitted.record().data, "equal variances": equal_variances(known, ood)}
    return dataclasses.replace(found, settings=settings)


def equal_variances(known: EnsemblePrediction, ood: Mapping[str, EnsemblePrediction]) -> dict[str, dict[str, float]]:
    """The AUROC of R_exc^{1,1} if all members had one variance, by kind of OOD mosaics and rule."""
    # Excess risks also depend on how wide members are; with one variance the means alone count.
    variance = np.median(known.members.variance)

    def measures(prediction: EnsemblePrediction) -> MeasureTable:
        means = prediction.members.mean
        equal = EnsemblePrediction.gaussian(mean=means, variance=np.full_like(means, variance))
        return evaluate(equal, [column(rule, "excess 1,1") for rule in RULES])

    found = ood_detection(measures(known), {name: measures(each) for name, each in ood.items()}, resamples=0)
    return {name: {rule: part[column(rule, "excess 1,1")] for rule in RULES} for name, part in found.parts.items()}


def predict(config: Config, store: Store) -> None:
    """Train, and predict for all sets: the part that needs a GPU. The jobs continue from the store."""
    predict_all(fits(config), store, lambda fitted: _predictions(fitted, config.ood_names()))


def _predictions(fitted: StoredEnsemble, names: tuple[str, ...]) -> dict[str, Any]:
    def images(name: str) -> Array:
        return ood_mosaics(name, fitted.data.test.inputs, fitted.store, fitted.fit.seed)

    return {name: fitted.predictions(name, partial(images, name)) for name in names}


def ood_mosaics(name: str, mosaics: Array, store: Store, seed: int) -> Array:
    """OOD mosaics of this name; `photographs_tl` and so on are the mosaics with one quadrant replaced."""
    if name in data.ood_names():
        return inputs.ood_mosaics(store, name, mosaics, seed=seed)
    source, place = name.rsplit("_", 1)
    others, half = inputs.ood_mosaics(store, source, mosaics, seed=seed), mosaics.shape[-1] // 2
    row, across = divmod(PLACES.index(place), 2)
    quadrant = np.s_[:, :, row * half : (row + 1) * half, across * half : (across + 1) * half]
    result = mosaics.copy()
    result[quadrant] = others[quadrant]
    return result


def gather(config: Config, store: Store) -> Result:
    """Compare the paper's tables and sentences with our numbers."""
    found = {job.key.fit.seed: store.get(job.artefact) for job in jobs(config)}
    mean = Cells.over_seeds([each.measured for each in found.values()])
    rows = {_row(name): Cells.over_seeds([each.parts[name].measured for each in found.values()]) for name in config.ood_names()}
    whole, single = [_row(name) for name in config.whole], [_row(f"{config.single}_{place}") for place in PLACES]
    ours = Aurocs(mean, rows, tuple(whole), tuple(single))
    papers = {row: published.table("ood_detection_full", row) for row in rows if row in published.rows("ood_detection_full")}
    # The paper's mean is over its eight sets, and says nothing about a part of them.
    averages = published.table("ood_detection_mean") if len(papers) == len(rows) else {}
    records = {seed: each.settings["record"] for seed, each in found.items()}
    return Result(
        config=as_data(config),
        seeds={"data and networks": list(found), "members": {str(seed): each["member seeds"] for seed, each in records.items()}},
        claims=all_claims(ours),
        tables={**_tables(ours, papers, averages, records), EQUAL: _equal(config, ours, found)},
        notes=notes(ours, papers, records),
        arrays=_arrays(found, rows),
        data={f"seed {seed}": each["data"] for seed, each in records.items()},
        agreements=agreements({"mean": mean, **rows}, {"mean": averages, **papers} if papers else {}),
    )


def _row(name: str) -> str:
    """The paper's name of a kind of OOD mosaics."""
    return PAPER_ROWS.get(name, name)


def _equal(config: Config, ours: Aurocs, found: Mapping[int, TaskResult]) -> list[dict[str, Any]]:
    """AUROC of R_exc^{1,1}, means over seeds, with the members' own variances and with equal ones."""
    rows = []
    for name in config.ood_names():
        for whose in ("own", "equal"):
            numbers = {
                rule: ours.rows[_row(name)][column(rule, "excess 1,1")]
                if whose == "own"
                else float(np.mean([each.settings["equal variances"][name][rule] for each in found.values()]))
                for rule in RULES
            }
            rows.append({"data": _row(name), "variances": whose, **numbers})
    return rows


def _tables(
    ours: Aurocs, papers: Mapping[str, published.Table], averages: published.Table, records: Mapping[int, Any]
) -> dict[str, Any]:
    tables = {"AUROC, mean over the sets": beside(ours.mean, averages)}
    tables["AUROC by set"] = [row for name, cells in ours.rows.items() for row in wide(name, cells, papers.get(name, {}))]
    shown = ("best epochs", "epochs", "restarts", "error", "spread of targets")
    tables["Training"] = [{"seed": seed, **{name: record[name] for name in shown}} for seed, record in records.items()]
    return tables


def _arrays(found: Mapping[int, TaskResult], rows: Mapping[str, Cells]) -> dict[str, Array]:
    """`auroc` (seeds, rows, measures), with the names of rows and measures."""
    names = list(rows)
    parts = [[part.measured for part in each.parts.values()] for each in found.values()]
    measures = list(parts[0][0])
    return {
        "rows": np.array(names),
        "measures": np.array(measures),
        "auroc": np.array([[[part[name] for name in measures] for part in each] for each in parts]),
    }


def notes(ours: Aurocs, papers: Mapping[str, published.Table], records: Mapping[int, Any]) -> tuple[str, ...]:
    """Notes on the paper's column 2,1, blank cells, training, and differences from the paper."""
    found = [slip("AUROC"), f"{CONSTANT} Their AUROC is 0.5.", _trained(records)]
    if papers:
        found += [_near(ours, papers), *_by_risk(ours, papers)]
    return tuple(found)


def _trained(records: Mapping[int, Any]) -> str:
    best = np.concatenate([record["best epochs"] for record in records.values()])
    errors = np.mean([record["error"] for record in records.values()])
    spread = np.mean([record["spread of targets"] for record in records.values()])
    restarts = sum(record["restarts"] for record in records.values())
    return (
        f"Members stopped with the weights of epoch {np.median(best):.0f} (median; {best.min()} to {best.max()}); the "
        f"mixture's mean is off by {errors:.0f} (root mean square) on the known test mosaics, whose targets have a standard "
        f"deviation of {spread:.0f}; {restarts} members diverged and were started again."
    )


def _near(ours: Aurocs, papers: Mapping[str, published.Table]) -> str:
    """How many excess cells of the rows with OOD tiles in all quadrants are near the paper's."""
    differences = {
        (row, name): ours.rows[row][published.printed_as(name)] - papers[row][name].value
        for row in ours.whole
        for name in of_risk("excess")
        if name in papers[row]
    }
    far = {key: each for key, each in differences.items() if abs(each) > NEAR}
    worst = max(differences, key=lambda key: abs(differences[key]))
    text = (
        f"Of the {len(differences)} excess cells of the rows with outliers in all quadrants, {len(differences) - len(far)} are "
        f"within {NEAR:g} of the paper's; the farthest is {worst[1]} on {worst[0]}, {differences[worst]:+.3f}"
    )
    listed = ", ".join(f"{name} on {row} {each:+.3f}" for (row, name), each in far.items())
    return f"{text}. Not within: {listed}." if far else f"{text}."


def _by_risk(ours: Aurocs, papers: Mapping[str, published.Table]) -> list[str]:
    """Mean differences from the paper, by risk."""
    sentences = []
    for rows, where in ((ours.whole, "in all quadrants"), (ours.single, "in one quadrant")):
        means = [f"{_mean_difference(ours.rows, papers, rows, risk):+.3f} for {risk} risks" for risk in RISKS]
        sentences.append(f"Mean difference from the paper with outliers {where}: {', '.join(means)}.")
    return sentences


def _mean_difference(ours: Mapping[str, Cells], papers: Mapping[str, published.Table], rows: tuple[str, ...], risk: str) -> float:
    pairs = [(ours[row][published.printed_as(name)], papers[row][name].value) for row in rows for name in of_risk(risk)]
    return float(np.mean([a - b for a, b in pairs]))


SHOWN = dict(zip(("total 1,1", "bayes 1", "excess 1,1"), RISK_COLOURS.values(), strict=True))


def draw(result: Result) -> dict[str, Picture]:
    """AUROC by set, and all cells beside the paper's."""
    arrays = result.arrays
    rows, measures = [list(map(str, arrays[name])) for name in ("rows", "measures")]
    values = {row: dict(zip(measures, arrays["auroc"][:, i].T, strict=True)) for i, row in enumerate(rows)}
    papers = {row: published.table("ood_detection_full", row) for row in rows if row in published.rows("ood_detection_full")}
    found = {"by_set": _by_set(values, papers)}
    if papers:
        means = {row: {name: float(x.mean()) for name, x in each.items()} for row, each in values.items()}
        found["cells"] = Picture(against_paper(means, papers, "AUROC"), LIKE_WITH_LIKE)
    return found


def _by_set(values: dict[str, dict[str, Any]], papers: dict[str, published.Table]) -> Picture:
    """A panel per rule: a dot for each seed, a bar for the paper."""
    rows = list(values)
    with styled():
        figure, axes = new_figure(4.8, nrows=2, ncols=2, sharex=True, sharey=True)
        for ax, rule in zip(axes.flat, RULES, strict=True):
            for shift, (name, colour) in zip((-0.2, 0.0, 0.2), SHOWN.items(), strict=True):
                measure = column(rule, name)
                for i, row in enumerate(rows):
                    seeds = values[row][measure]
                    ax.plot(np.full(len(seeds), i + shift), seeds, "o", color=colour, markersize=2.5, alpha=0.7)
                    if row in papers:
                        ax.plot(i + shift, papers[row][measure].value, "_", color="black", markersize=9)
                ax.plot([], [], "o", color=colour, markersize=4, label=short_label(measure))
            ax.axhline(0.5, color="black", linewidth=0.6, linestyle=(0, (4, 3)))
            ax.set(title=RULES[rule], ylabel="AUROC")
            ax.set_xticks(range(len(rows)), rows, rotation=40, ha="right", fontsize=7)
        if papers:
            axes[0, 0].plot([], [], "_", color="black", markersize=9, label="paper")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    caption = "AUROC by kind of outliers: a dot for each seed"
    return Picture(figure, f"{caption}, a bar for the paper's mean." if papers else f"{caption}; dashed: chance.")


QUICK = Config(
    data="digits_mosaic",
    sizes=(3_000, 400, 500),
    tile=8,
    whole=("photographs", "inverted"),
    single="photographs",
    n_seeds=2,
    training=Training(channels=(8, 16, 32), hidden=64, n_members=5, max_epochs=12, patience=4),
)
EXPERIMENT = register(
    Experiment(
        name="ood",
        summary=first_line(__doc__),
        presets={"quick": QUICK, "paper": Config(), "smaller": Config(sizes=(20_000, 5_000, 2_000))},
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
        wants_gpu=("paper", "smaller"),
        needs=needs,
    )
)

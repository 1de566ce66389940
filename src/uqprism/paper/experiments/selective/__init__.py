"""Selective prediction on images: how well every measure finds large errors, by the prediction-rejection ratio.

The paper (appendix, Selective Prediction) has seven data sets, ensembles of 10, Adam with learning rate 1e-3 and batches of 64, a
small CNN for `dots` and `arrow` and ResNet-18 for street scenes; PRR on the squared error over retentions from 0.5 to 1. It gives
neither sizes nor epochs. Ours, in the preset `paper`:

- `dots` and `arrow`: `data.load`, which documents every constant of the generators: 10,000 images to train on, 2,000 to
  stop on, 5,000 to test on, five seeds of data and networks; small CNN, natural head; a member stops when its validation loss
  has not improved for 10 epochs, after 100 at the latest. Some 0.3 s per epoch on an H200;
- street scenes: pixel counts of street, building, sky, car and vegetation in the 90x120 tiles of CamVid, in its official parts,
  in place of Cityscapes, which may not be redistributed; ResNet-18, two seeds of networks, at most 30 epochs, patience 8: some
  2 s per epoch. These five rows are compared with the paper's, but are of other pictures. The preset `cityscapes` takes 224x224
  tiles of up to 500 training and 500 validation pictures of Cityscapes, from your own folder;
- the error is that of the mixture's mean, squared; PRR is `selective_prediction(metric="prr_paper")`;
- preset `longer`: two of these rows, first seed, with up to 100 epochs: whether the training of `paper` was too short;
- preset `quick`: `dots` and `arrow` with fewer images and smaller networks.

The thresholds of the claims are in `claims`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures import published
from uqprism.paper.comparison import (
    CONSTANT,
    LIKE_WITH_LIKE,
    RULES,
    Cells,
    against_paper,
    agreement,
    agreements,
    beside,
    column,
    of_risk,
    short_label,
    slip,
    wide,
)
from uqprism.paper.ensembles import LARGE, EnsembleSpec, StoredEnsemble, Training, predict_all
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.selective.claims import all_claims
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Store, as_data
from uqprism.plots.style import BLUE, GREEN, ORANGE, PURPLE, RED, new_figure, styled
from uqprism.tasks.prediction_error import prediction_error
from uqprism.tasks.result import TaskResult
from uqprism.tasks.selective_prediction import selective_prediction

Array = Any
CURVES = {"retention": "retention", "oracle": "oracle order", "random": "random order"}  # ours, and the task's
PIXELS = {"camvid": 1_468 * 90 * 120, "cityscapes": 16_200 * 224 * 224}  # to train on, of street scenes
Found = Mapping[str, Mapping[int, TaskResult]]  # by data set and seed


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        generated: data sets that are generated for each seed.
        sizes: their numbers of images to train on, to stop on and to test on.
        n_seeds: number of ensembles on each of these.
        training: options of these ensembles.
        scenes: name of a data set of street scenes, or None.
        targets: classes whose pixels are counted; each is a row of the table.
        n_scene_seeds: number of ensembles on each of these.
        scene_training: options of these ensembles.
        seed: the first seed; the constants of the generators were chosen with seed 0.
    """

    generated: tuple[str, ...] = ("dots", "arrow")
    sizes: tuple[int, int, int] = (10_000, 2_000, 5_000)
    n_seeds: int = 5
    training: Training = Training(max_epochs=100, patience=10)  # noqa: RUF009  frozen
    scenes: str | None = "camvid"
    targets: tuple[str, ...] = ("street", "building", "sky", "car", "vegetation")
    n_scene_seeds: int = 2
    scene_training: Training = Training(network=LARGE, max_epochs=30, patience=8)  # noqa: RUF009  frozen
    seed: int = 1


@dataclass(frozen=True)
class SelectiveFit:
    """A job: one ensemble on one data set, with the paper's name of the data set."""

    name: str
    fit: EnsembleSpec


def selections(config: Config) -> list[SelectiveFit]:
    """All ensembles of these settings."""
    seeds, scene_seeds = (range(config.seed, config.seed + n) for n in (config.n_seeds, config.n_scene_seeds))
    options = {"sizes": config.sizes}
    found = [
        SelectiveFit(name, EnsembleSpec(name, seed, config.training, options)) for name in config.generated for seed in seeds
    ]
    if config.scenes is not None:
        found += [
            SelectiveFit(target, EnsembleSpec(config.scenes, seed, config.scene_training, {"target": target}))
            for target in config.targets
            for seed in scene_seeds
        ]
    return found


def jobs(config: Config) -> list[Job]:
    """One job for each data set and seed."""
    return [
        Job(
            f"{each.name}, seed {each.fit.seed}",
            Artefact("result", each),
            seconds=expected(each.fit),
            shared=each.fit.predictions(),
        )
        for each in selections(config)
    ]


def expected(fit: EnsembleSpec) -> float:
    """Expected seconds of a training: at the paper's size on a GPU, at smaller sizes on two cores."""
    if fit.training.network == LARGE:  # it seldom stops before its last epoch
        return 2.4 * fit.training.max_epochs * PIXELS[fit.data] / PIXELS["camvid"]
    size = fit.options["sizes"][0]
    return size * (1.4e-3 if size >= Config.sizes[0] else 2e-2)


def needs(config: Config) -> tuple[str, ...]:
    """The data sets that are read from files."""
    return () if config.scenes is None else (config.scenes,)


def work(job: Job, store: Store) -> TaskResult:
    """PRR of every measure, from the measures of the test images and the squared error of the mixture's mean."""
    fitted = StoredEnsemble(job.key.fit, store)
    record = fitted.record()
    error = prediction_error(fitted.predictions(), record.arrays["targets"])
    found = selective_prediction(fitted.measures(), error=error, metric="prr_paper", resamples=0)  # seeds show the spread
    # 1 if the predicted variance is right on average.
    spread = float(np.mean(error / fitted.predictions().matched.variance))
    largest = {
        "share of ten largest": float(np.sort(error)[-10:].sum() / error.sum()),
        "largest error": float(np.sqrt(error.max())),
        "its target": float(record.arrays["targets"][error.argmax()]),
    }
    facts = {**record.data, "error over variance": spread, **largest, **unlike(fitted)}
    return dataclasses.replace(found, settings={**found.settings, "record": facts})


def unlike(fitted: StoredEnsemble) -> dict[str, float]:
    """NLL on the validation and the test images: how different they are, since early stopping uses the former.

    The NLL is the mean of the members', in standard deviations of the training targets, as in training.
    """
    record, members = fitted.record(), fitted.predictions().members
    best = np.array(record.data["best epochs"]) - 1
    stopped = record.arrays["validation_loss"][best, np.arange(len(best))]
    tested = -members.log_density(record.arrays["targets"]) - np.log(record.data["spread of training targets"])
    return {"validation NLL": float(stopped.mean()), "test NLL": float(tested.mean())}


def predict(config: Config, store: Store) -> None:
    """Train and predict: the part that needs a GPU. The jobs continue from the store."""
    predict_all((each.fit for each in selections(config)), store)


def gather(config: Config, store: Store) -> Result:
    """Compare the paper's tables and sentences with our numbers."""
    found: dict[str, dict[int, TaskResult]] = {}
    for job in jobs(config):
        found.setdefault(job.key.name, {})[job.key.fit.seed] = store.get(job.artefact)
    rows = {name: Cells.over_seeds([each.measured for each in seeds.values()]) for name, seeds in found.items()}
    mean = Cells.average(rows.values())
    papers = {row: published.table("selective_prediction_full", row) for row in rows}
    # The mean of the paper's rows that we have: the printed one is over all seven.
    averages = published.table("selective_prediction_mean") if len(rows) == 7 else _averaged(papers)
    return Result(
        config=as_data(config),
        seeds={
            "data and networks": {name: list(seeds) for name, seeds in found.items()},
            "members": {
                name: [each.settings["record"]["member seeds"] for each in seeds.values()] for name, seeds in found.items()
            },
        },
        claims=all_claims(mean),
        tables=_tables(found, mean, rows, {"mean": averages, **papers}),
        notes=notes(mean, rows, config.scenes),
        arrays=_arrays(found),
        data={
            f"{name}, seed {seed}": run.settings["record"]["data"] for name, seeds in found.items() for seed, run in seeds.items()
        },
        agreements=agreements({"mean": mean, **rows}, {"mean": averages, **papers}),
    )


def _averaged(papers: Mapping[str, published.Table]) -> published.Table:
    names = next(iter(papers.values()))
    columns = {name: [table[name] for table in papers.values()] for name in names}
    return {name: published.Cell(*map(float, np.mean(cells, axis=0))) for name, cells in columns.items()}


def _tables(found: Found, mean: Cells, rows: Mapping[str, Cells], papers: Mapping[str, published.Table]) -> dict[str, Any]:
    shown = ["best epochs", "epochs", "restarts", "error", "error over variance", "spread of targets"]
    shown += ["spread of validation targets", "validation NLL", "test NLL"]
    trained = [
        {"data": name, "seed": seed, **{key: run.settings["record"][key] for key in shown}}
        for name, seeds in found.items()
        for seed, run in seeds.items()
    ]
    return {
        "PRR (lower is better), mean over the data sets": beside(mean, papers["mean"]),
        "PRR (lower is better) by data set": [row for name, cells in rows.items() for row in wide(name, cells, papers[name])],
        "Training": trained,
        "Seeds": _seeds(found, papers),
    }


def _seeds(found: Found, papers: Mapping[str, published.Table]) -> list[dict[str, Any]]:
    """Rank correlation of each seed's measures with the paper's, and with the mean of the other seeds."""
    shown = ("share of ten largest", "largest error", "its target")
    rows = []
    for name, seeds in found.items():
        for seed, run in seeds.items():
            others = Cells.over_seeds([each.measured for other, each in seeds.items() if other != seed] or [run.measured]).value
            theirs = {measure: published.Cell(others[published.printed_as(measure)], 0.0) for measure in papers[name]}
            rows.append(
                {
                    "data": name,
                    "seed": seed,
                    "Spearman with the paper": agreement(run.measured, papers[name]).spearman,
                    "with our other seeds": agreement(run.measured, theirs).spearman if len(seeds) > 1 else None,
                    **{key: run.settings["record"][key] for key in shown},
                }
            )
    return rows


def _arrays(found: Found) -> dict[str, Array]:
    """PRR by seed and measure of each data set, and the retention curves of the first seed."""
    first = next(iter(next(iter(found.values())).values()))
    arrays = {"rows": np.array(list(found)), "measures": np.array(list(first.measured))}
    for name, seeds in found.items():
        arrays[f"{name}_prr"] = np.array([list(run.measured.values()) for run in seeds.values()])
        run = next(iter(seeds.values()))
        arrays |= {f"{name}_{ours}": np.asarray(run.curves[theirs]) for ours, theirs in CURVES.items()}
        arrays[f"{name}_curves"] = np.array([run.curves[measure] for measure in run.measured])
    return arrays


SCENES = (
    "The rows street, building, sky, car and vegetation are of CamVid, with a tenth of the pictures of Cityscapes, at a "
    "sixth to an eighth of its resolution; a tile of 90x120 is a quarter of a scene, where 224x224 pixels of Cityscapes are less "
    "than a fortieth. How much of the error a measure finds there need not be what it is in Cityscapes."
)


def notes(mean: Cells, rows: Mapping[str, Cells], scenes: str | None) -> tuple[str, ...]:
    """Notes on the paper's column 2,1, on the data, and on which data sets each sentence holds."""
    found = [slip("PRR"), f"{CONSTANT} An order of equals is random: PRR 1 (lower is better)."]
    if scenes == "camvid":
        found.append(SCENES)
    by_row = {row: all_claims(cells) for row, cells in rows.items()}
    for i, claim in enumerate(all_claims(mean)):
        held = [row for row, claims in by_row.items() if claims[i].holds]
        found.append(f"'{claim.name}' holds on {len(held)} of {len(rows)} data sets by themselves: {', '.join(held) or 'none'}.")
    best = {
        risk: {row: min(cells[name] for name in of_risk(risk)) for row, cells in rows.items()} for risk in ("total", "excess")
    }
    ahead = [row for row in rows if best["excess"][row] < best["total"][row]]
    found.append(f"The best excess risk is ahead of the best total risk on: {', '.join(ahead) or 'no data set'}.")
    return tuple(found)


SHOWN = {"total 1,1": BLUE, "bayes 1": GREEN, "bayes 3a": PURPLE, "excess 1,1": ORANGE, "excess 3a,2": RED}
FROM = 50  # per cent: retentions from 0.5 to 1, as in the paper
LIKE_PAPER = "street"  # the paper's figure shows it


def draw(result: Result) -> dict[str, Picture]:
    """The paper's retention curves, and all cells beside the paper's."""
    arrays = result.arrays
    rows, measures = [list(map(str, arrays[name])) for name in ("rows", "measures")]
    means = {row: dict(zip(measures, arrays[f"{row}_prr"].mean(axis=0).tolist(), strict=True)) for row in rows}
    papers = {row: published.table("selective_prediction_full", row) for row in rows}
    return {
        "retention": _retention(arrays, measures, LIKE_PAPER if LIKE_PAPER in rows else rows[0]),
        "cells": Picture(against_paper(means, papers, "PRR"), LIKE_WITH_LIKE),
    }


def _retention(arrays: Any, measures: list[str], row: str) -> Picture:
    """Retention curves, a panel per rule."""
    kept = 100.0 * arrays[f"{row}_retention"]
    shown = kept >= FROM
    prr, curves = arrays[f"{row}_prr"][0], arrays[f"{row}_curves"]
    with styled():
        figure, axes = new_figure(5.2, nrows=2, ncols=2, sharex=True, sharey=True)
        for ax, rule in zip(axes.flat, RULES, strict=True):
            for name, colour in SHOWN.items():
                at = measures.index(column(rule, name))
                if np.ptp(curves[at]) <= 1e-9 * abs(curves[at][0]):
                    continue  # a measure that is constant
                label = f"{short_label(measures[at])}  {prr[at]:.3f}"
                ax.plot(kept[shown], curves[at][shown], color=colour, linewidth=1.2, label=label)
            ax.plot(kept[shown], arrays[f"{row}_oracle"][shown], color="black", linewidth=1.0)
            ax.plot(kept[shown], arrays[f"{row}_random"][shown], color="black", linewidth=1.0, linestyle=(0, (5, 3)))
            ax.set_title(RULES[rule])
            ax.legend(
                title="PRR (lower is better)", loc="upper left", fontsize=6.5, title_fontsize=6.5, ncols=2, alignment="left"
            )
        axes[0, 0].set_ylim(top=1.45 * arrays[f"{row}_random"][shown].max())  # room for the legend above all curves
        for ax in axes[1]:
            ax.set_xlabel("points kept, the most certain first (%)")
        for ax in axes[:, 0]:
            ax.set_ylabel("mean squared error")
    caption = (
        f"Retention curves of {row}, first seed, with PRR: the mean squared error of the points kept. Black: the oracle, which "
        "hands on the largest errors first; dashed: a random order."
    )
    return Picture(figure, caption)


QUICK = Config(
    sizes=(1_000, 300, 800),
    n_seeds=2,
    training=Training(channels=(8, 16, 16), hidden=32, n_members=4, max_epochs=16, patience=4),
    scenes=None,
)
LONGER = Config(
    generated=(),
    targets=("sky", "car"),
    n_scene_seeds=1,
    scene_training=Training(network=LARGE, max_epochs=100, patience=15),
)
PRESETS = {"quick": QUICK, "paper": Config(), "cityscapes": Config(scenes="cityscapes"), "longer": LONGER}
WANTS_GPU = tuple(name for name in PRESETS if name != "quick")
EXPERIMENT = register(
    Experiment(
        name="selective",
        summary=first_line(__doc__),
        presets=PRESETS,
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
        wants_gpu=WANTS_GPU,
        needs=needs,
        reads=("correlation",),  # which has the same ensembles, whichever of the two is run first
    )
)

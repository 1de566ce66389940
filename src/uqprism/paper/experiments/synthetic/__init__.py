"""Bayes and excess risk on a synthetic set: where two curves mix, and where there were no training data.

The paper (Synthetic Datasets, and the appendix Synthetic Experiment) draws 1200 pairs from a mixture of two noisy curves, trains
ten networks with two hidden layers of 8 SiLU units and the natural parameterisation for 100 epochs with Adam, and looks at test
inputs in "several disjoint input regions". It gives no inputs, no batch size and no learning rate. Ours:

- inputs: training ones uniform on [-4, 4] (`uqprism.paper.data.synthetic.two_curves`); test ones on [-4, 4], [-8, -5.5] and
  [5.5, 8], where there are no training data;
- training: batches of 64, learning rate 1e-2, no early stopping, no weight decay; all of it again with 3e-3 and 1e-3, to see
  what depends on it: at 1e-3, 100 epochs are too few for so small a network;
- ten data sets, each with an ensemble of its own; pictures show the first.

Measurements and thresholds are in `claims`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.measures import Measure, published
from uqprism.paper.data.synthetic import TWO_CURVES_REGION, two_curves, two_curves_truth
from uqprism.paper.ensembles import trained
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.synthetic.claims import Trials, all_claims, notes, summarised, tables
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Bundle, Store, as_data, checksum
from uqprism.plots.style import BLUE, GREY, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from uqprism import EnsemblePrediction, MeasureTable


OUTSIDE = ((-8.0, -5.5), (5.5, 8.0))
TEST_REGIONS = (OUTSIDE[0], TWO_CURVES_REGION, OUTSIDE[1])


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        n_trials: number of data sets, with an ensemble for each.
        n_training: number of rows to train on.
        n_test: number of rows to predict, in all regions together.
        n_members: number of networks in an ensemble.
        hidden: widths of the hidden layers.
        epochs: passes over the training rows.
        batch_size: rows per step.
        learning_rate: of Adam.
        other_rates: learning rates to repeat everything with.
        seed: of data and networks.
    """

    n_trials: int = 10
    n_training: int = 1200
    n_test: int = 1200
    n_members: int = 10
    hidden: tuple[int, ...] = (8, 8)
    epochs: int = 100
    batch_size: int = 64
    learning_rate: float = 1e-2
    other_rates: tuple[float, ...] = (3e-3, 1e-3)
    seed: int = 0


@dataclass(frozen=True)
class Seeds:
    """The seeds of one trial."""

    training: int
    test: int
    networks: int


@dataclass(frozen=True)
class Trial:
    """A job: an ensemble on its own data set, and how its measures depend on where the test inputs lie."""

    seeds: Seeds
    config: Config

    @property
    def members(self) -> Artefact:
        """The networks, which do not depend on the test data."""
        return Artefact("members", replace(self, config=replace(self.config, n_test=0), seeds=replace(self.seeds, test=0)))

    @property
    def predictions(self) -> Artefact:
        """The predictions at the test inputs."""
        return Artefact(
            "predictions", {"n": self.config.n_test, "seed": self.seeds.test, "regions": TEST_REGIONS}, (self.members,)
        )

    @property
    def measures(self) -> Artefact:
        """All measures at the test inputs."""
        return Artefact("measures", "all", (self.predictions,))

    def training_data(self) -> tuple[Any, Any]:
        """Training inputs and targets."""
        return two_curves(self.config.n_training, self.seeds.training)

    def test_data(self) -> tuple[Any, Any]:
        """Test inputs and targets, in all regions."""
        return two_curves(self.config.n_test, self.seeds.test, regions=TEST_REGIONS)

    def settings(self) -> dict[str, Any]:
        """The options of training."""
        from uqprism.training import MLP

        return {
            "n_members": self.config.n_members,
            "network": MLP(hidden=self.config.hidden, activation="silu"),
            "head": "natural",
            "seed": self.seeds.networks,
            "max_epochs": self.config.epochs,
            "batch_size": self.config.batch_size,
            "learning_rate": self.config.learning_rate,
            "patience": None,
            "validation_fraction": 0.0,
        }


def jobs(config: Config) -> list[Job]:
    """One job for every trial at every learning rate."""
    return [job for trials in _jobs(config).values() for job in trials]


def _jobs(config: Config) -> dict[float, list[Job]]:
    # A row per trial, so that more trials leave the seeds of the first as they are.
    states = np.random.SeedSequence(config.seed).generate_state(3 * config.n_trials).reshape(-1, 3)
    seconds = 2.0 + 3e-3 * config.epochs * math.ceil(config.n_training / config.batch_size)
    found = {}
    for rate in (config.learning_rate, *config.other_rates):
        # A trial does not depend on the number of trials or on the other rates, so they are not in its key.
        own = replace(config, learning_rate=rate, other_rates=(), n_trials=1, seed=0)
        trials = [Trial(Seeds(*map(int, row)), own) for row in states]
        found[rate] = [
            Job(f"data set {i}, learning rate {rate:g}", Artefact("bundle", trial, (trial.measures,)), seconds)
            for i, trial in enumerate(trials, start=1)
        ]
    return found


def work(job: Job, store: Store) -> Bundle:
    """Train, predict, evaluate, and summarise the measures."""
    trial: Trial = job.key
    return summarised(_measures(trial, store), trial.test_data()[0][:, 0])


def _measures(trial: Trial, store: Store) -> MeasureTable:
    from uqprism import evaluate

    return store.get(trial.measures, lambda: evaluate(_predictions(trial, store)))


def _predictions(trial: Trial, store: Store) -> EnsemblePrediction:
    return store.get(trial.predictions, lambda: _members(trial, store).predict_ensemble(trial.test_data()[0]))


def _members(trial: Trial, store: Store) -> Any:
    return trained(store, trial.members, *trial.training_data(), **trial.settings())


def gather(config: Config, store: Store) -> Result:
    """Compare the paper's sentences with medians over trials, at every learning rate."""
    found = {rate: Trials.of([store.get(job.artefact) for job in each]) for rate, each in _jobs(config).items()}
    claims = {rate: all_claims(trials) for rate, trials in found.items()}
    trials = [job.key for job in _jobs(config)[config.learning_rate]]
    first: Trial = trials[0]
    prediction, table = store.get(first.predictions), store.get(first.measures)
    training, test = first.training_data(), first.test_data()
    arrays = {"training_inputs": training[0][:, 0], "training_targets": training[1]}
    arrays |= {"test_inputs": test[0][:, 0], "test_targets": test[1], "mean": prediction.mixture.mean}
    return Result(
        config=as_data(config),
        seeds={name: [getattr(trial.seeds, name) for trial in trials] for name in ("training", "test", "networks")},
        claims=claims[config.learning_rate],
        tables=tables(found, claims),
        notes=notes(found, claims),
        arrays={**arrays, **{name: np.asarray(table[name]) for name in table}},
        data={
            "training": checksum(*(part for trial in trials for part in trial.training_data())),
            "test": checksum(*(part for trial in trials for part in trial.test_data())),
        },
    )


def draw(result: Result) -> dict[str, Picture]:
    """The paper's four figures."""
    return {
        "data": _data_figure(result),
        "log": log_figure(result),
        "crps_and_squared_error": _extended_figure(result, ("crps", "squared_error")),
        "quadratic_and_log": _extended_figure(result, ("quadratic", "log")),
    }


RISKS = {"total": "Total", "bayes": "Bayes", "excess": "Excess"}
RULES = {"crps": "CRPS", "squared_error": "Squared error", "quadratic": "Quadratic", "log": "Log"}
COLOURS = "viridis"
REACH = (-8.5, 8.5)
CLIPPED = 98.0  # percentile of the values; the colour is the same above it


def _data_figure(result: Result) -> Picture:
    """The two curves, drawn as thick as they are probable, and the samples."""
    arrays = result.arrays
    with styled():
        figure, (left, right) = new_figure(2.9, ncols=2, sharex=True, sharey=True)
        _curves(left)
        for name, colour, label in (("test", ORANGE, "test"), ("training", BLUE, "training")):
            right.scatter(
                arrays[f"{name}_inputs"], arrays[f"{name}_targets"], s=2.0, color=colour, alpha=0.6, linewidths=0, label=label
            )
        for ax, title in ((left, "True distribution"), (right, "Samples")):
            ax.axvspan(*TWO_CURVES_REGION, color=GREY, alpha=0.12, linewidth=0)
            ax.set(xlabel="x", xlim=REACH, title=title)
        left.set_ylabel("y")
        left.legend(loc="upper left")
        right.legend(loc="upper left", markerscale=3)
    caption = (
        "Left: the two curves that the truth is a mixture of, as thick as they are likely, with bands of two standard "
        "deviations. Right: training and test samples of the first trial; shaded: the region of the training inputs."
    )
    return Picture(figure, caption)


def _curves(ax: Any) -> None:
    from matplotlib.collections import LineCollection

    x = np.linspace(-8.0, 8.0, 400)
    weight, means, scale = two_curves_truth(x)
    for mean, share, colour, label in zip(means, (weight, 1.0 - weight), (BLUE, ORANGE), ("first", "second"), strict=True):
        points = np.column_stack([x, mean])
        lines = LineCollection(list(np.stack([points[:-1], points[1:]], axis=1)), linewidths=0.3 + 4.0 * share[1:], color=colour)
        ax.add_collection(lines)
        ax.fill_between(x, mean - 2 * scale, mean + 2 * scale, color=colour, alpha=0.12, linewidth=0)
        ax.plot([], [], color=colour, linewidth=2.5, label=f"{label} curve")


def log_figure(result: Result) -> Picture:
    """Total, Bayes and excess risk of the log score with members in both roles."""
    names = ("log.total.members.members", "log.bayes.members", "log.excess.members.members")
    with styled():
        figure, axes = new_figure(2.4, ncols=3, sharex=True, sharey=True)
        for ax, name in zip(axes, names, strict=True):
            dots = _dots(ax, result, name)
            figure.colorbar(dots, ax=ax, orientation="horizontal", pad=0.02, aspect=30, extend="max").outline.set_linewidth(0.4)
            ax.set(title=f"{RISKS[name.split('.')[1]]} risk", xlabel="x", xlim=REACH)
        axes[0].set_ylabel("mean prediction")
    return Picture(figure, "Risks under the log score, members in both roles. " + _caption())


def _extended_figure(result: Result, rules: tuple[str, str]) -> Picture:
    """Bayes and excess risks under two rules, a row each, with every approximation that has a column in the paper."""
    rows = [(rule, risk) for rule in rules for risk in ("bayes", "excess")]
    columns = max(len(_columns(*row)) for row in rows)
    with styled():
        figure, axes = new_figure(6.2, nrows=4, ncols=columns, sharex=True, sharey=True)
        for line, (rule, risk) in zip(axes, rows, strict=True):
            shown = _columns(rule, risk)
            for ax, measure in zip(line, shown, strict=False):
                _dots(ax, result, measure.name, logarithmic=risk == "excess")
                ax.set(xlim=REACH, xticks=(-6, 0, 6))
                ax.set_title(_title(measure.name, result.arrays[measure.name]), fontsize=6.5)
                ax.tick_params(labelsize=6.5)
            for ax in line[len(shown) :]:
                ax.set_axis_off()
            line[0].set_ylabel(f"{RULES[rule]}\n{RISKS[risk]} risk", fontsize=8)
    names = " and ".join(RULES[rule] for rule in rules)
    caption = (
        f"Bayes and excess risks under {names}, by the paper's labels (truth, prediction), with the range of the values; each "
        f"panel has colours of its own, those of excess risks are logarithmic. {_caption()}"
    )
    return Picture(figure, caption)


def _columns(rule: str, risk: str) -> list[Measure]:
    return [measure for measure in published.measures((rule,)) if measure.risk == risk]


def _dots(ax: Any, result: Result, name: str, *, logarithmic: bool = False) -> Any:
    """Test inputs at their mean prediction, coloured by a measure, the highest on top."""
    from matplotlib.colors import LogNorm, Normalize

    arrays = result.arrays
    values = arrays[name]
    low, high = float(values.min()), float(np.percentile(values, CLIPPED))
    scaled = LogNorm(max(low, 1e-4 * high), high) if logarithmic and high > 0.0 else Normalize(low, high)
    order = np.argsort(values, kind="stable")
    ax.axvspan(*TWO_CURVES_REGION, color=GREY, alpha=0.12, linewidth=0)
    # Pixels, because thousands of dots make a large SVG.
    shown = {"s": 3.0, "cmap": COLOURS, "norm": scaled, "linewidths": 0, "rasterized": True}
    return ax.scatter(arrays["test_inputs"][order], arrays["mean"][order], c=values[order], **shown)


def _title(name: str, values: Any) -> str:
    superscript = published.label(name).split("{")[1].removesuffix("}")
    return f"{superscript}\n{'always 0' if not np.any(values) else f'{values.min():.2g} to {values.max():.2g}'}"


def _caption() -> str:
    return (
        "Test inputs of the first trial at their ensemble-averaged mean, coloured by the risk, bright is high; shaded: where the "
        "training inputs lie."
    )


EXPERIMENT = register(
    Experiment(
        name="synthetic",
        summary=first_line(__doc__),
        presets={"quick": Config(n_trials=2, other_rates=()), "paper": Config()},
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
    )
)

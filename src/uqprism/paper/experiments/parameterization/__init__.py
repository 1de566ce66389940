"""Natural against standard parameterisation of a Gaussian: how training goes, and what is predicted away from data.

The paper (appendix, Training Objective) compares them on "a sine function with larger noise in the right open half-plane" with
"three layer neural networks consisting of feed-forward layers with hidden dimension 32 and ReLU activation", and gives no other
number. Ours:

- data: `synthetic.sine`: 10 training sets of 1000 rows and 1000 rows to validate all on, x uniform on [-3, 3], y =
  sin(2 x) plus Gaussian noise with standard deviation 0.1 for x <= 0 and 0.5 for x > 0; inputs and targets are standardised by
  each training set. Several sets and networks, because what is predicted away from data differs between both;
- networks: three hidden layers of width 32, then a linear layer to two outputs; standard: mean f1, variance softplus(f2) + 1e-6;
  natural: precision softplus(f2) + 1e-8, mean f1 / precision; two networks of each for each training set, from other weights;
  a standard network has a natural partner that starts from the same weights and sees the same batches;
- optimiser: Adam, learning rate 1e-3 and batches of 64 as in the paper's other experiments, 1000 epochs, no weight decay, no
  clipping; each network keeps the weights of its epoch with the lowest validation loss (the paper's "best model"); the same again
  with learning rates 3e-3 and 1e-2, to see what depends on it;
- away from data: up to |x| = 12, four times as far out as the data.

Losses are negative log-likelihoods in nats per row, with their constant, in the units of y. Thresholds are in `claims`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.paper.data.synthetic import SINE_REGION, sine, sine_mean, sine_scale
from uqprism.paper.ensembles import TRAINING, refuse_interrupted
from uqprism.paper.experiment import Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments.parameterization.claims import Baseline, Networks, all_claims, notes, tables
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Bundle, Store, as_data, checksum
from uqprism.plots.style import BLUE, GREY, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from uqprism.training import DeepEnsemble

HEADS = {"standard": "mean_variance", "natural": "natural"}
CURVES = ("training", "validation", "mean", "scale")
POINTS = 481  # of the grid of predictions: steps of 0.05, so that edge, middle and far end are on it


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        n_sets: number of training sets.
        n_networks: number of networks of each parameterisation on each training set.
        n_training: number of rows of a training set.
        n_validation: number of rows that all networks are validated on.
        hidden: widths of the hidden layers.
        learning_rate: of Adam.
        other_rates: learning rates to repeat everything with.
        batch_size: rows per step.
        epochs: passes over the training rows.
        reach: largest |x| of predictions, in multiples of the largest |x| of the data.
        seed: of data and networks.
    """

    n_sets: int = 10
    n_networks: int = 2
    n_training: int = 1000
    n_validation: int = 1000
    hidden: tuple[int, ...] = (32, 32, 32)
    learning_rate: float = 1e-3
    other_rates: tuple[float, ...] = (3e-3, 1e-2)
    batch_size: int = 64
    epochs: int = 1000
    reach: float = 4.0
    seed: int = 0


@dataclass(frozen=True)
class Parameterised:
    """A job: the networks of one parameterisation at one learning rate, with the settings that all jobs share."""

    head: str
    rate: float
    config: Config


def jobs(config: Config) -> list[Job]:
    """One job for each parameterisation and learning rate; it trains its networks as one stack."""
    return [job for pair in _jobs(config).values() for job in pair.values()]


def _jobs(config: Config) -> dict[float, dict[str, Job]]:
    # A job does not depend on the other learning rates, so they are not in its key.
    shared = replace(config, other_rates=())
    # Seconds per step on a busy core; an idle one takes half, the run in docs/results took four times as long.
    step = 2e-3 + 2e-4 * config.n_sets * config.n_networks
    seconds = step * config.epochs * math.ceil(config.n_training / config.batch_size)
    return {
        rate: {
            name: Job(f"{name}, learning rate {rate:g}", Artefact("bundle", Parameterised(name, rate, shared)), seconds)
            for name in HEADS
        }
        for rate in (config.learning_rate, *config.other_rates)
    }


def gather(config: Config, store: Store) -> Result:
    """Compare the paper's sentences with the networks at every learning rate."""
    data = _data(config)
    edge = SINE_REGION[1]
    baseline = Baseline(
        steps_per_epoch=math.ceil(config.n_training / config.batch_size),
        true_loss=_true_loss(*data.validation),
        edge=edge,
        far=config.reach * edge,
        spread=float(data.targets.std()),
    )
    found = {rate: {name: store.get(job.artefact) for name, job in pair.items()} for rate, pair in _jobs(config).items()}
    runs = {
        rate: {name: Networks(**each.arrays, restarts=each.data["restarts"]) for name, each in pair.items()}
        for rate, pair in found.items()
    }
    claims = {rate: all_claims(**pair, baseline=baseline) for rate, pair in runs.items()}
    main = runs[config.learning_rate]
    arrays = {f"{name}_{what}": getattr(each, what) for name, each in main.items() for what in CURVES}
    arrays |= {"grid": main["natural"].grid, "true_loss": np.array(baseline.true_loss)}
    first = slice(config.n_training)
    members = found[config.learning_rate]["natural"].data["seeds"]
    return Result(
        config=as_data(config),
        seeds={"validation data": data.seeds[0], "training data": data.seeds[1:], "networks": members},
        claims=claims[config.learning_rate],
        tables=tables(runs, claims, baseline),
        notes=notes(runs, claims, baseline),
        arrays={**arrays, "inputs": data.inputs[first, 0], "targets": data.targets[first]},
        data={"training": checksum(data.inputs, data.targets), "validation": checksum(*data.validation)},
    )


@dataclass(frozen=True)
class TrainingSets:
    """All training sets, concatenated, and the validation rows."""

    inputs: Any
    targets: Any
    validation: tuple[Any, Any]
    seeds: list[int]


def _data(config: Config) -> TrainingSets:
    # The first is for validation, so that more training sets leave its rows as they are.
    seeds = [int(seed) for seed in np.random.SeedSequence(config.seed).generate_state(1 + config.n_sets)]
    inputs, targets = zip(*(sine(config.n_training, seed) for seed in seeds[1:]), strict=True)
    return TrainingSets(np.concatenate(inputs), np.concatenate(targets), sine(config.n_validation, seeds[0]), seeds)


def work(job: Job, store: Store) -> Bundle:
    """Train the networks of a job; returns their losses and their predictions on a wide grid."""
    from uqprism.training import MLP, TrainingWarning, train_many

    config = job.key.config
    data = _data(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # restarts are counted
        ensembles = train_many(
            data.inputs,
            data.targets,
            np.arange(len(data.targets)).reshape(config.n_sets, -1),
            **TRAINING
            | {
                "validation": data.validation,
                "head": HEADS[job.key.head],
                "network": MLP(hidden=config.hidden),
                "n_members": config.n_networks,
                # The same for both parameterisations: partners start from the same weights.
                "seed": config.seed,
                "learning_rate": job.key.rate,
                "batch_size": config.batch_size,
                "max_epochs": config.epochs,
                "patience": None,
                "checkpoint": store.unfinished(job.artefact),
                "checkpoint_every": 100,
                "progress": False,
            },
        )
    refuse_interrupted([ensemble.history for ensemble in ensembles])
    return _measured(ensembles, config.reach * SINE_REGION[1])


def _measured(ensembles: list[DeepEnsemble], far: float) -> Bundle:
    """The losses of trained networks, and their predictions between -far and far."""
    histories = [ensemble.history for ensemble in ensembles]
    # Losses are of standardised targets; this adds their scale.
    units = [math.log(float(ensemble.target_scaling.scale)) for ensemble in ensembles]
    grid = np.linspace(-far, far, POINTS)
    predicted = [ensemble.predict_ensemble(grid[:, None]).members for ensemble in ensembles]
    return Bundle(
        data={
            "restarts": sum(event.kind == "restarted" for history in histories for event in history.events),
            "seeds": list(histories[0].seeds),
        },
        arrays={
            "training": np.hstack([history.training_loss + unit for history, unit in zip(histories, units, strict=True)]),
            "validation": np.hstack([history.validation_loss + unit for history, unit in zip(histories, units, strict=True)]),
            "grid": grid,
            "mean": np.concatenate([each.mean for each in predicted]),
            "scale": np.sqrt(np.concatenate([each.variance for each in predicted])),
        },
    )


def _true_loss(inputs: Any, targets: Any) -> float:
    """The loss of the distribution that the rows were drawn from."""
    x = inputs[:, 0]
    scale = sine_scale(x)
    return float(np.mean(0.5 * ((targets - sine_mean(x)) / scale) ** 2 + np.log(scale) + 0.5 * math.log(2.0 * math.pi)))


def draw(result: Result) -> dict[str, Picture]:
    """The paper's two figures."""
    return {"loss": _loss_figure(result), "prediction": _prediction_figure(result)}


PANELS = {"standard": "Standard: mean and variance", "natural": "Natural parameters"}
THIN = {"linewidth": 0.3, "alpha": 0.2}
DASHED = (0, (4, 3))


def _loss_figure(result: Result) -> Picture:
    """Training and validation loss by epoch, left standard, right natural."""
    arrays = result.arrays
    with styled():
        figure, axes = new_figure(3.2, ncols=2, sharey=True, sharex=True)
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            curves = {"training": (arrays[f"{name}_training"], BLUE), "validation": (arrays[f"{name}_validation"], ORANGE)}
            epochs = np.arange(1, len(curves["training"][0]) + 1)
            shown = _shown(result, name)
            for values, colour in curves.values():
                ax.plot(epochs, np.delete(values, shown, axis=1), color=colour, **THIN)
            for label, (values, colour) in curves.items():
                ax.plot(epochs, values[:, shown], color=colour, linewidth=1.0, label=label)
            ax.axhline(float(arrays["true_loss"]), color="black", linewidth=0.8, linestyle=DASHED, label="true distribution")
            ax.set(title=title, xlabel="epoch", xscale="log", xlim=(1, len(epochs)))
        axes[0].set_ylabel("negative log-likelihood per row")
        axes[0].set_ylim(*_loss_limits(arrays))
        axes[1].legend(loc="upper right")
    count = arrays["natural_training"].shape[1]
    caption = (
        f"Training and validation loss with the standard (left) and the natural (right) parameterisation: {count} networks each; "
        "bold: the best of the first training set; dashed: the validation loss of the distribution that the data come from."
    )
    return Picture(figure, caption)


def _shown(result: Result, name: str) -> int:
    """The index of the best network of the first training set, so that both panels show the same data."""
    return int(result.arrays[f"{name}_validation"][:, : result.config["n_networks"]].min(0).argmin())


def _loss_limits(arrays: Any) -> tuple[float, float]:
    """Limits from the lowest loss to the losses at the start; higher spikes are cut off."""
    curves = [arrays[f"{name}_{part}"] for name in PANELS for part in ("training", "validation")]
    low = min(float(each.min()) for each in curves)
    start = max(float(np.median(each[0])) for each in curves)
    return low - 0.05 * (start - low), start


def _prediction_figure(result: Result) -> Picture:
    """Mean and two standard deviations of the best network, far beyond the data; left standard, right natural."""
    arrays = result.arrays
    grid = arrays["grid"]
    inside = np.linspace(*SINE_REGION, 301)
    with styled():
        figure, axes = new_figure(2.9, ncols=2, sharey=True, sharex=True)
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            mean, scale = arrays[f"{name}_mean"], arrays[f"{name}_scale"]
            best = _shown(result, name)
            ax.axvspan(*SINE_REGION, color=GREY, alpha=0.12, linewidth=0)
            ax.scatter(arrays["inputs"], arrays["targets"], s=1.5, color=GREY, linewidths=0, rasterized=True, label="data")
            ax.plot(grid, np.delete(mean, best, axis=0).T, color=BLUE, linewidth=0.5, alpha=0.4)
            ax.fill_between(
                grid,
                mean[best] - 2 * scale[best],
                mean[best] + 2 * scale[best],
                color=ORANGE,
                alpha=0.35,
                linewidth=0,
                label="± 2 standard deviations",
            )
            ax.plot(grid, mean[best], color=BLUE, linewidth=1.4, label="mean of the best network")
            ax.plot(inside, sine_mean(inside), color="black", linewidth=0.8, linestyle=DASHED, label="true mean")
            ax.set(title=title, xlabel="x", xlim=(grid[0], grid[-1]))
        axes[0].set_ylabel("y")
        axes[0].set_ylim(*_prediction_limits(result))
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, markerscale=3)
    caption = (
        "Predictions far beyond the data (shaded), standard (left) and natural (right): mean and two standard deviations of the "
        "best network of the first training set, whose rows are shown; thin: the means of the networks of all training sets, "
        "some of which leave the panel."
    )
    return Picture(figure, caption)


def _prediction_limits(result: Result) -> tuple[float, float]:
    """Limits for the data and the bold means; a mean that grows exponentially would hide the others."""
    arrays = result.arrays
    shown = np.concatenate([arrays["targets"], *(arrays[f"{name}_mean"][_shown(result, name)] for name in PANELS)])
    low, high = float(shown.min()), float(shown.max())
    return low - 0.5 * (high - low), high + 0.5 * (high - low)


QUICK = Config(n_sets=3, n_training=500, n_validation=500, other_rates=(), epochs=300)
EXPERIMENT = register(
    Experiment(
        name="parameterization",
        summary=first_line(__doc__),
        presets={"quick": QUICK, "paper": Config()},
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
    )
)

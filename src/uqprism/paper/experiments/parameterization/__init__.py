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

Losses are negative log-likelihoods in nats per row, with their constant, in the units of y. What is measured is in `claims`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uqprism.paper.artefacts import Artefact, Findings, Store, as_data, checksum
from uqprism.paper.base import Experiment, Picture, Result, first_line
from uqprism.paper.data.synthetic import SINE_REGION, sine, sine_mean, sine_scale
from uqprism.paper.experiments.parameterization.claims import Networks, Setting, all_claims
from uqprism.paper.experiments.parameterization.tables import notes, tables
from uqprism.paper.jobs import Job
from uqprism.paper.training import refuse_interrupted

HEADS = {"standard": "mean_variance", "natural": "natural"}
CURVES = ("training", "validation", "mean", "scale")
POINTS = 481  # of the grid that predictions are drawn on


@dataclass(frozen=True)
class Config:
    """The settings; the defaults are the preset `paper`.

    Attributes:
        n_sets: training sets.
        n_networks: of each parameterisation, on each training set.
        n_training: rows of a training set.
        n_validation: rows that all networks are validated on.
        hidden: widths of the hidden layers.
        learning_rate: of Adam.
        other_rates: learning rates to repeat all of it with.
        batch_size: rows per step.
        epochs: passes over the training rows.
        reach: how far out to predict, in multiples of the largest |x| of the data.
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
class Training:
    """A job: the networks of one parameterisation at one learning rate, and the settings that they share with the others."""

    head: str
    rate: float
    config: Config


def jobs(config: Config) -> list[Job]:
    """Both parameterisations at every learning rate; each trains its networks as one stack."""
    return [job for pair in _jobs(config).values() for job in pair.values()]


def _jobs(config: Config) -> dict[float, dict[str, Job]]:
    # What is trained at one learning rate does not depend on which others are tried.
    shared = replace(config, other_rates=())
    # Of a step on a core with other work to do; one with none takes half of it, the run in docs/results took four times of it.
    step = 2e-3 + 2e-4 * config.n_sets * config.n_networks
    seconds = step * config.epochs * math.ceil(config.n_training / config.batch_size)
    return {
        rate: {
            name: Job(f"{name}, learning rate {rate:g}", Artefact("findings", Training(name, rate, shared)), seconds)
            for name in HEADS
        }
        for rate in (config.learning_rate, *config.other_rates)
    }


def gather(config: Config, store: Store) -> Result:
    """Hold the paper's sentences against what came out at every learning rate."""
    data = _data(config)
    edge = SINE_REGION[1]
    setting = Setting(
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
    claims = {rate: all_claims(**pair, setting=setting) for rate, pair in runs.items()}
    main = runs[config.learning_rate]
    arrays = {f"{name}_{what}": getattr(each, what) for name, each in main.items() for what in CURVES}
    arrays |= {"grid": main["natural"].grid, "true_loss": np.array(setting.true_loss)}
    first = slice(config.n_training)
    members = found[config.learning_rate]["natural"].data["seeds"]
    return Result(
        config=as_data(config),
        seeds={"validation data": data.seeds[0], "training data": data.seeds[1:], "networks": members},
        claims=claims[config.learning_rate],
        tables=tables(runs, claims, setting),
        notes=notes(runs, claims, setting),
        arrays={**arrays, "inputs": data.inputs[first, 0], "targets": data.targets[first]},
        data={"training": checksum(data.inputs, data.targets), "validation": checksum(*data.validation)},
    )


@dataclass(frozen=True)
class Data:
    """All training sets, one after the other, and the validation rows."""

    inputs: Any
    targets: Any
    validation: tuple[Any, Any]
    seeds: list[int]


def _data(config: Config) -> Data:
    seeds = [int(seed) for seed in np.random.SeedSequence(config.seed).generate_state(1 + config.n_sets)]
    inputs, targets = zip(*(sine(config.n_training, seed) for seed in seeds[1:]), strict=True)
    return Data(np.concatenate(inputs), np.concatenate(targets), sine(config.n_validation, seeds[0]), seeds)


def work(job: Job, store: Store) -> Findings:
    """All networks of one parameterisation at one learning rate: their curves, and what they predict far out."""
    from uqprism.training import MLP, TrainingWarning, train_many

    config = job.key.config
    data = _data(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # restarts are counted
        ensembles = train_many(
            data.inputs,
            data.targets,
            np.arange(len(data.targets)).reshape(config.n_sets, -1),
            validation=data.validation,
            head=HEADS[job.key.head],
            network=MLP(hidden=config.hidden),
            n_members=config.n_networks,
            seed=config.seed,
            learning_rate=job.key.rate,
            batch_size=config.batch_size,
            max_epochs=config.epochs,
            patience=None,
            checkpoint=store.unfinished(job.artefact),
            checkpoint_every=100,
            progress=False,
        )
    histories = [ensemble.history for ensemble in ensembles]
    refuse_interrupted(histories)
    # From standardised targets to those of the data.
    units = [math.log(float(ensemble.target_scaling.scale)) for ensemble in ensembles]
    far = config.reach * SINE_REGION[1]
    grid = np.linspace(-far, far, POINTS)
    predicted = [ensemble.predict_ensemble(grid[:, None]).members for ensemble in ensembles]
    return Findings(
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
    from uqprism.paper.experiments.parameterization import figures

    return {"loss": figures.loss(result), "prediction": figures.prediction(result)}


QUICK = Config(n_sets=3, n_training=500, n_validation=500, other_rates=(), epochs=300)
EXPERIMENT = Experiment(
    name="parameterization",
    summary=first_line(__doc__),
    presets={"quick": QUICK, "paper": Config()},
    jobs=jobs,
    work=work,
    gather=gather,
    draw=draw,
)

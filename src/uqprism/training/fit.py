"""`train` for one ensemble, `train_many` for one ensemble per training set, and `StackedFit` for active learning."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training import heads, networks
from uqprism.training.checkpoints import Checkpoints, State, fingerprint
from uqprism.training.data import TrainingData, as_tensor, feature_names, prepare
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.device import full_precision, training_device
from uqprism.training.heads import Head
from uqprism.training.history import progress_of
from uqprism.training.networks import Factory
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import keep_generators, member_seeds
from uqprism.training.stack import Stack
from uqprism.training.trainer import Trainer

torch = require("torch", extra="deep")

Tensor = Any
SEEDS = ("seed", "member_seeds")


def train(inputs: Any, targets: Any, options: TrainingOptions | None = None, **settings: Any) -> DeepEnsemble:
    """Train an ensemble.

    Args:
        inputs: a table, array or tensor of finite numbers, (rows, features) or (rows, channels, height, width).
        targets: one finite number per row, (rows,).
        options: see `TrainingOptions`, which has the defaults.
        settings: options by name, such as `n_members`, `network`, `head` or `max_epochs`; they replace those in `options`.
    """
    with torch.inference_mode(False), torch.enable_grad():  # the caller may have switched gradients off
        return _train(inputs, targets, None, (options or TrainingOptions()).replace(settings))[0]


def train_many(
    inputs: Any, targets: Any, rows: Any, options: TrainingOptions | None = None, **settings: Any
) -> list[DeepEnsemble]:
    """Train one ensemble for each of several training sets, all in one stack.

    Each ensemble is standardised by its own rows and equals what `train` gives on these rows, up to rounding.

    Args:
        inputs: the data that the training sets share, as for `train`.
        targets: (rows,).
        rows: row numbers (experiments, n): the training set of each experiment, all of the same size.
        options: see `TrainingOptions`.
        settings: options by name; they replace those in `options`.
    """
    with torch.inference_mode(False), torch.enable_grad():
        return _train(inputs, targets, rows, (options or TrainingOptions()).replace(settings))


class StackedFit:
    """A `fit` function for active learning: `fit(inputs, targets)` calls `train`, `fit.many(...)` calls `train_many`.

    Args:
        settings: options of `TrainingOptions` by name, except the seeds: those come with each call.
    """

    def __init__(self, **settings: Any) -> None:
        for name in SEEDS:
            if name in settings:
                raise ArgumentError(f"{name} is no option of StackedFit: its caller, such as ActiveLearner, gives the seeds")
        self.options, self.settings = TrainingOptions().replace(settings), settings

    def __call__(self, inputs: Any, targets: Any, seed: int = 0) -> DeepEnsemble:
        """An ensemble trained on all rows."""
        return train(inputs, targets, self.options, seed=seed)

    def many(self, inputs: Any, targets: Any, rows: Any, seeds: Sequence[int]) -> list[DeepEnsemble]:
        """An ensemble for each training set `rows` (experiments, n) with its own seed.

        Each equals what a call on these rows with this seed gives, up to rounding.
        """
        return train_many(inputs, targets, rows, self.options, seed=list(seeds))

    def __repr__(self) -> str:
        return f"StackedFit({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"


def _train(inputs: Any, targets: Any, rows: Any, options: TrainingOptions) -> list[DeepEnsemble]:
    found = _run(inputs, targets, rows, options)
    if not options.refit:
        return found
    lengths = [epoch for ensemble in found for epoch in ensemble.history.best_epochs]
    again = options.replace({"refit": False, "validation_fraction": 0.0, "patience": None})
    return _run(inputs, targets, rows, again, lengths)


def _run(
    inputs: Any, targets: Any, rows: Any, options: TrainingOptions, lengths: list[int] | None = None
) -> list[DeepEnsemble]:
    factory, head = networks.resolve(options.network), heads.resolve(options.head)
    n_experiments = 1 if rows is None else len(as_tensor(rows, "rows"))
    seeds = _seeds(options, n_experiments).flatten()
    device = training_device(options.device)
    data = prepare(inputs, targets, rows, seeds=seeds, n_experiments=n_experiments, options=options, device=device)
    example = data.inputs[:2].to(getattr(torch, options.dtype))
    with keep_generators(device), full_precision(device):  # training seeds PyTorch's generators, which belong to the user
        stack = Stack.build(factory, example, head.n_outputs, seeds.tolist(), options.technique)
        for place, rows_of_one in enumerate(data.sets):
            own = slice(place * options.n_members, (place + 1) * options.n_members)
            first = torch.tensor([own.start], device=data.training.device)
            stack.observe(own, data.batch(rows_of_one[None].to(first.device), first)[0][0])
        state = State.of(stack, seeds.tolist())
        checkpoints = _checkpoints(data, factory, head, options, stack, lengths)
        checkpoints.restore(state)
        # The file holds a restarted member's seed, from which its rows follow.
        for member in (i for i, restarts in enumerate(state.restarts) if restarts):
            data.split_again(member, state.seeds[member], options)
        trainer = Trainer(data, factory, head, options, checkpoints, stack, state, lengths)
        with progress_of(options.max_epochs, options.progress) as show:
            trained, history = trainer.run(show)
    ensembles = []
    for i, scalings in enumerate(data.scalings):
        part = slice(i * options.n_members, (i + 1) * options.n_members)
        own = trained.take(range(*part.indices(len(trained))))
        ensembles.append(DeepEnsemble(own, head, *scalings, factory, history.part(part), feature_names(inputs)))
    return ensembles


def _checkpoints(
    data: TrainingData, factory: Factory, head: Head, options: TrainingOptions, stack: Stack, lengths: list[int] | None
) -> Checkpoints:
    """The checkpoints of this run: the name of the file follows from everything that determines the result."""
    name = ""  # not computed without a folder, since it hashes all data
    if options.checkpoint is not None:
        parts = [networks.to_dict(factory), heads.to_dict(head), options.deciding(), data.inputs, data.targets, data.training]
        parts += [part for part in (data.validation, lengths) if part is not None]
        # A function of the user has no description: initial weights and sample outputs identify its networks.
        name = fingerprint(*parts, stack.technique, stack.signature(), stack.rows, stack.sample())
    return Checkpoints(options.checkpoint, options.checkpoint_every, name)


def _seeds(options: TrainingOptions, n_experiments: int) -> Tensor:
    """The seed of each member, (experiments, members)."""
    shape, given = (n_experiments, options.n_members), options.member_seeds
    seed: Any = options.seed
    if given is None:
        each = list(seed) if isinstance(seed, Sequence | np.ndarray) else [seed]
        if len(each) not in {1, n_experiments} or not all(isinstance(one, numbers.Integral) and int(one) >= 0 for one in each):
            raise ArgumentError(
                f"seed must be an integer that is not negative, or one for each of {n_experiments} experiments, got {seed!r}"
            )
        return torch.stack([member_seeds(int(one), shape[1]) for one in each]).expand(shape)
    seeds = torch.as_tensor(given, dtype=torch.int64)
    if tuple(seeds.shape) not in {shape, shape[1:]} or bool((seeds < 0).any()):
        raise ArgumentError(
            f"member_seeds must be {shape[1]} integers that are not negative, for all or for each experiment, got {given!r}"
        )
    return seeds.expand(shape)

"""`train` for one ensemble, `train_many` for one ensemble per training set, and `StackedFit` for active learning."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.support.optional import require
from uqprism.training import heads, networks, transforms
from uqprism.training.checkpoints import Checkpoints, State, fingerprint
from uqprism.training.columns import Columns, is_frame
from uqprism.training.data import TrainingData, as_tensor, check_finite, prepare
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.device import full_precision, training_device
from uqprism.training.heads import Head
from uqprism.training.heads.joined import Joined
from uqprism.training.history import progress_of
from uqprism.training.networks import Factory
from uqprism.training.networks.shared import SharedMLP
from uqprism.training.options import TrainingOptions
from uqprism.training.posterior import Posterior, draw, prior_scales
from uqprism.training.randomness import keep_generators, member_seeds
from uqprism.training.stack import Stack
from uqprism.training.trainer import Trainer
from uqprism.training.transforms import TargetTransform

torch = require("torch", extra="deep")

Tensor = Any
SEEDS = ("seed", "member_seeds")


def train(
    inputs: Any,
    targets: Any,
    options: TrainingOptions | None = None,
    *,
    weights: Any = None,
    start: DeepEnsemble | None = None,
    **settings: Any,
) -> DeepEnsemble:
    """Train an ensemble.

    Args:
        inputs: an array or tensor of finite numbers, (rows, features) or (rows, channels, height, width); or a pandas or Polars
            data frame or an Arrow table, whose categories, booleans and missing values become numbers.
        targets: one finite number per row, (rows,).
        options: see `TrainingOptions`, which has the defaults.
        weights: of the rows in the loss, (rows,); None means equal.
        start: an ensemble to train further, with its networks, head, columns and standardisation. The optimiser starts anew.
        settings: options by name, such as `n_members`, `network`, `head` or `max_epochs`; they replace those in `options`.
    """
    with torch.inference_mode(False), torch.enable_grad():  # the caller may have switched gradients off
        return _train(inputs, targets, None, (options or TrainingOptions()).replace(settings), weights=weights, start=start)[0]


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


def _train(
    inputs: Any, targets: Any, rows: Any, options: TrainingOptions, *, weights: Any = None, start: DeepEnsemble | None = None
) -> list[DeepEnsemble]:
    if not options.refit:
        return _run(inputs, targets, rows, options, weights=weights, start=start)
    found = _run(inputs, targets, rows, options.replace({"posterior_samples": None}), weights=weights, start=start)
    lengths = [epoch for ensemble in found for epoch in ensemble.history.best_epochs]
    again = options.replace({"refit": False, "validation_fraction": 0.0, "patience": None})
    return _run(inputs, targets, rows, again, weights=weights, start=start, lengths=lengths)


def _run(
    inputs: Any,
    targets: Any,
    rows: Any,
    options: TrainingOptions,
    *,
    weights: Any,
    start: DeepEnsemble | None,
    lengths: list[int] | None = None,
) -> list[DeepEnsemble]:
    factory = networks.resolve(options.network) if start is None else start.network
    shared = start.shared if start is not None else options.n_members if options.shared else None
    if shared is not None:  # one network to train, with the outputs of all members
        factory = factory if start is not None else SharedMLP.of(factory, shared)
        options = options.replace({"n_members": 1, "shared": False})
    columns = (Columns.of(inputs) if is_frame(inputs) else None) if start is None else start.columns
    inputs, options = _encoded(columns, inputs, options)
    n_experiments = 1 if rows is None else len(as_tensor(rows, "rows"))
    transform = _transform(options, targets, n_experiments) if start is None else start.transform
    targets, options = _transformed(transform, targets, options)
    options = options.settled(len(inputs) if rows is None else int(np.size(rows)) // n_experiments)
    seeds = _seeds(options, n_experiments).flatten()
    device = training_device(options.device)
    data = prepare(
        inputs,
        targets,
        rows,
        seeds=seeds,
        n_experiments=n_experiments,
        options=options,
        device=device,
        weights=weights,
        switches=None if columns is None else columns.switches,
        scaling=None if start is None else (start.input_scaling, start.target_scaling),
    )
    head = heads.resolve(options.head) if start is None else start.head
    # Sets with a standardisation of their own have no targets in common.
    head = head if data.own_scaling is not None else head.fitted(data.targets[: len(targets)])
    trained_head = head if shared is None else Joined(head, shared)
    example = data.inputs[:2].to(getattr(torch, options.dtype))
    with keep_generators(device), full_precision(device):  # training seeds PyTorch's generators, which belong to the user
        stack = Stack.build(factory, example, trained_head.n_outputs, seeds.tolist(), options.technique)
        if start is None:
            _observe(stack, data, options.n_members)
        else:
            stack = _continued(stack, start)
        state = State.of(stack, seeds.tolist())
        checkpoints = _checkpoints(data, factory, head, options, stack=stack, lengths=lengths)
        checkpoints.restore(state)
        # The file holds a restarted member's seed, from which its rows follow.
        for member in (i for i, restarts in enumerate(state.restarts) if restarts):
            data.split_again(member, state.seeds[member], options)
        trainer = Trainer(data, factory, trained_head, options, checkpoints, stack, state, lengths)
        with progress_of(options.max_epochs, options.progress) as show:
            trained, history = trainer.run(show)
        judged: Sequence[Posterior | None] = [None] * len(data.scalings)
        if options.posterior_samples is not None:
            prior = prior_scales(factory, tuple(example.shape[1:]), head.n_outputs)
            walkers = torch.tensor(state.seeds, device=device)
            trained, judged = draw(trained, data, head, prior, options, seeds=walkers)
    ensembles = []
    for i, (scalings, posterior) in enumerate(zip(data.scalings, judged, strict=True)):
        members, count = slice(i * options.n_members, (i + 1) * options.n_members), len(trained) // len(judged)
        own = trained.take(range(i * count, (i + 1) * count))
        event = None if posterior is None else posterior.event()
        record = history.part(members) if event is None else history.part(members).with_event(event)
        parts = own, head, *scalings, factory, record, columns, transform
        ensembles.append(DeepEnsemble(*parts, bootstrap=options.bootstrap, shared=shared, posterior=posterior))
    return ensembles


def _transform(options: TrainingOptions, targets: Any, n_experiments: int) -> TargetTransform | None:
    """The transform of the targets, learnt from them."""
    if options.target_transform is None:
        return None
    return transforms.fitted(options.target_transform, _finite(targets, "targets"), n_experiments)


def _transformed(transform: TargetTransform | None, targets: Any, options: TrainingOptions) -> tuple[Any, TrainingOptions]:
    """The transformed targets, and those for validation."""
    if transform is None:
        return targets, options
    if options.validation is not None:
        inputs, given = options.validation
        options = options.replace({"validation": (inputs, transform.apply(_finite(given, "validation targets")))})
    moved = torch.from_numpy(transform.apply(_finite(targets, "targets")))
    return moved.to(getattr(targets, "device", "cpu")), options


def _finite(targets: Any, name: str) -> Any:
    values = as_tensor(targets, name)
    check_finite(values, name)
    return values.cpu().double().numpy()


def _observe(stack: Stack, data: TrainingData, n_members: int) -> None:
    """Show each experiment's rows to the layers that look at them before training."""
    for place, rows in enumerate(data.sets):
        members = slice(place * n_members, (place + 1) * n_members)
        first = torch.tensor([members.start], device=data.training.device)
        inputs, targets = data.batch(rows[None].to(first.device), first)
        stack.observe(members, inputs[0], targets[0])


def _encoded(columns: Columns | None, inputs: Any, options: TrainingOptions) -> tuple[Any, TrainingOptions]:
    """The rows of a table, and those for validation, as numbers."""
    if columns is None:
        return inputs, options
    if options.validation is not None:
        options = options.replace({"validation": (columns.apply(options.validation[0]), options.validation[1])})
    return columns.apply(inputs), options


def _continued(stack: Stack, start: DeepEnsemble) -> Stack:
    """The networks of an earlier training in place of fresh ones."""
    if start.posterior is not None:
        raise ArgumentError("start holds draws of a posterior, which cannot be trained further: train without posterior_samples")
    if len(stack) != len(start.stack) or stack.rows.shape != start.stack.rows.shape:
        raise ArgumentError(
            f"start has {start.n_members} networks for rows of shape {start.stack.input_shape}: the options differ"
        )
    # Copies: the earlier ensemble stays what it is.
    rows, buffers = start.stack.rows.to(stack.rows, copy=True), start.stack.buffers
    return stack.with_rows(rows, {name: value.to(stack.buffers[name], copy=True) for name, value in buffers.items()})


def _checkpoints(
    data: TrainingData, factory: Factory, head: Head, options: TrainingOptions, *, stack: Stack, lengths: list[int] | None
) -> Checkpoints:
    """The checkpoints of this run: the name of the file follows from everything that determines the result."""
    name = ""  # not computed without a folder, since it hashes all data
    if options.checkpoint is not None:
        parts = [networks.to_dict(factory), heads.to_dict(head), options.deciding(), data.inputs, data.targets, data.training]
        parts += [x for x in (data.validation, data.weights, lengths) if x is not None]
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

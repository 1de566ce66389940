"""The doors of training: `train` for one ensemble, `train_many` for many on training sets of their own, as one stack."""

from __future__ import annotations

import dataclasses
import numbers
import os
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from uqprism.errors import ArgumentError
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training import heads, networks
from uqprism.training.checkpoints import Checkpoints
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.heads import Head
from uqprism.training.networks.base import Factory
from uqprism.training.options import TrainingOptions, positive_integer
from uqprism.training.plan import Plan
from uqprism.training.problem import as_tensor, feature_names, prepare
from uqprism.training.progress import bar
from uqprism.training.randomness import member_seeds, own_generator
from uqprism.training.settings import Settings
from uqprism.training.stack import Stack
from uqprism.training.state import State
from uqprism.training.step import full_precision
from uqprism.training.trainer import Run

torch = require("torch", extra="deep")


def train(inputs: Any, targets: Any, **settings: Unpack[Settings]) -> DeepEnsemble:
    """Train an ensemble on inputs (rows, features) or (rows, channels, height, width) and one target per row.

    Args:
        inputs: a table, an array or a tensor of numbers, all finite.
        targets: likewise, (rows,).
        settings: see `Settings`: `n_members`, `network`, `head`, `seed`, `device`, `checkpoint`, `max_epochs`, ...
    """
    with torch.inference_mode(False), torch.enable_grad():
        return _train(inputs, targets, rows=None, **settings)[0]


def train_many(inputs: Any, targets: Any, rows: Any, **settings: Unpack[Settings]) -> list[DeepEnsemble]:
    """Train one ensemble for each training set, all as one stack.

    Args:
        inputs: the shared data, (rows, ...).
        targets: (rows,).
        rows: indices into them, (experiments, n): the training set of each experiment, all of one length. Each experiment is
            standardised by its own rows, and equals what `train` gives on them, up to rounding.
        settings: see `Settings`.
    """
    with torch.inference_mode(False), torch.enable_grad():
        return _train(inputs, targets, rows=rows, **settings)


def _train(
    inputs: Any,
    targets: Any,
    *,
    rows: Any,
    n_members: int = 10,
    network: str | Factory = "mlp",
    head: str | Head = "natural",
    validation: tuple[Any, Any] | None = None,
    seed: int | Sequence[int] = 0,
    member_seeds: Any = None,
    device: Any = None,
    dtype: str = "float32",
    technique: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    progress: bool | None = None,
    **options: Any,
) -> list[DeepEnsemble]:
    given = _options(options)
    n_members = positive_integer("n_members", n_members)
    if dtype not in {"float32", "float64"}:
        raise ArgumentError(f"dtype must be float32 or float64, got {dtype!r}")
    factory, means = networks.resolve(network), heads.resolve(head)
    n_experiments = 1 if rows is None else len(as_tensor(rows, "rows"))
    seeds = _seeds(seed, member_seeds, (n_experiments, n_members)).flatten()
    where = _device(device)
    problem = prepare(
        inputs,
        targets,
        validation=validation,
        rows=rows,
        seeds=seeds,
        n_experiments=n_experiments,
        options=given,
        device=where,
        dtype=getattr(torch, dtype),
    )
    example = problem.inputs[:2].to(getattr(torch, dtype))
    with own_generator(where), full_precision(where):
        stack = Stack.build(factory, example, means.n_outputs, seeds.tolist(), technique)
        state = State.of(stack, seeds.tolist())
        plan = Plan(problem, factory, means, given)
        name = "" if checkpoint is None else plan.fingerprint(stack.technique, stack.signature(), stack.rows, stack.sample())
        checkpoints = Checkpoints(checkpoint, positive_integer("checkpoint_every", checkpoint_every), name)
        checkpoints.restore(state)
        for member in (i for i, restarts in enumerate(state.restarts) if restarts):
            problem.split_again(member, state.seeds[member], given)
        run = Run(plan, checkpoints, stack, state)
        with bar(given.max_epochs, progress) as tell:
            trained, history = run.finish(tell)
    ensembles = []
    for i, scalings in enumerate(problem.scalings):
        part = slice(i * n_members, (i + 1) * n_members)
        own = trained.take(range(*part.indices(len(trained))))
        ensembles.append(DeepEnsemble(own, means, *scalings, factory, history.part(part), feature_names(inputs)))
    return ensembles


def _device(name: Any) -> Any:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ArgumentError(f"device must be 'cpu' or 'cuda', got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError(f"device {name!r} was asked for, but PyTorch finds no CUDA device here")
    return device


def _options(given: dict[str, Any]) -> TrainingOptions:
    known = {field.name for field in dataclasses.fields(TrainingOptions)}
    for name in given:
        if name not in known:
            raise unknown("training setting", name, Settings.__annotations__)
    return TrainingOptions(**given)


def _seeds(seed: Any, given: Any, shape: tuple[int, int]) -> Any:
    """The seed of each member, (experiments, members)."""
    if given is None:
        each = list(seed) if isinstance(seed, Sequence | np.ndarray) else [seed]
        right = all(isinstance(one, numbers.Integral) and int(one) >= 0 for one in each)
        if not right or len(each) not in {1, shape[0]}:
            raise ArgumentError(
                f"seed must be an integer that is not negative, or one for each of {shape[0]} experiments, got {seed!r}"
            )
        return torch.stack([member_seeds(int(one), shape[1]) for one in each]).expand(shape)
    seeds = torch.as_tensor(given, dtype=torch.int64)
    if tuple(seeds.shape) not in {shape, shape[1:]} or bool((seeds < 0).any()):
        raise ArgumentError(
            f"member_seeds must be {shape[1]} integers that are not negative, for all or for each experiment, got {given!r}"
        )
    return seeds.expand(shape)

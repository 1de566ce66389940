"""The options of training, described and checked in one place."""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqprism.errors import ArgumentError
from uqprism.registry import unknown

if TYPE_CHECKING:
    from uqprism.training.heads import Head
    from uqprism.training.networks import Factory


Adapted = Any  # a number, or "auto" for one that follows from the number of rows
AUTO = "auto"
COUNTS = ("n_members", "max_epochs", "batch_size", "checkpoint_every", "patience", "posterior_samples", "posterior_steps")
NULLABLE = ("patience", "posterior_samples")
ADAPTED = ("max_epochs", "batch_size", "patience")
STEPS, STEPS_PER_ROW, MOST_STEPS = 6000, 2.4, 24_000
FEWEST_EPOCHS, MOST_EPOCHS = 40, 600
SMALL, FEWEST_ROWS, MOST_ROWS = 700, 64, 256  # rows of a table whose batches are half as large; rows per step
PATIENCE, LEAST_PATIENCE = 0.15, 20  # a share of the epochs
STOPPING = ("member", "ensemble")
SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How an ensemble is trained.

    `train` and `train_many` take these options as keyword arguments or as one object; the estimators have arguments of the
    same names and defaults.

    Attributes:
        n_members: networks per ensemble.
        network: the name of a network such as `tabular`, a specification such as `MLP(hidden=(50,))`, or a function
            (input_shape, n_outputs) or () that returns a `torch.nn.Module` with fresh weights.
        head: what the networks predict, and the loss: the name of a head such as `natural` or `mixture`, or a `Head`.
        target_transform: `log`, `yeo_johnson` or `quantile_normal`, for skewed targets: networks learn the transformed targets,
            and predict the distributions of the targets that follow. None for no transform.
        validation: (inputs, targets) for early stopping; by default each member keeps `validation_fraction` of its rows.
        shared: whether the members share the matrices of one network, with scalings and output layers of their own (see
            `SharedMLP`); for a `TabularMLP` or an `MLP`. They see the same rows, and stop together.
        posterior_samples: draws from the posterior of each member's weights, each of which is a member of the prediction; None
            for the trained networks themselves. For small tables and small networks, see `Posterior`.
        posterior_steps: of sampling, each a pass over all training rows; the first half are for tuning.
        seed: a number from which the members' seeds follow, or one for each experiment. Experiments with the same seed start
            from the same weights.
        member_seeds: the seeds of the members, (n_members,) or (experiments, n_members), in place of `seed`.
        device: `cpu` or `cuda`; by default CUDA if there is a device.
        dtype: `float32` or `float64`, the precision of the networks.
        technique: how the members run together: `auto`, `matmul`, `vmap` or `loop`.
        checkpoint: a folder for checkpoints; an interrupted run continues from its checkpoint in this folder.
        checkpoint_every: epochs between two checkpoints.
        progress: whether to show a progress bar; by default on a terminal only.
        max_epochs: passes over the training rows, at most; by default as many as make 2.4 steps for each row, within limits.
        batch_size: rows per step and member, at most; the rows are divided evenly, so that no batch is much smaller. By default
            it grows with the number of rows.
        learning_rate: of Adam; of a cosine schedule the first and largest.
        schedule: of the learning rate: `constant`, or `cosine`, which falls to zero at `max_epochs`.
        weight_decay: decoupled from the gradient, as in AdamW.
        patience: epochs without a better validation loss after which a member stops; by default a share of `max_epochs`. None
            trains all epochs.
        stopping: whose validation loss decides about the best epoch and the end: each `member`'s, or the `ensemble`'s mean.
        refit: whether to train again, on all rows, from the same weights and for as many epochs as were best.
        validation_fraction: share of the rows that each member keeps out of training for early stopping; 0 for none.
        bootstrap: whether each member draws its training rows with replacement.
        max_gradient: largest norm of the gradient of a member's mean loss; longer gradients are scaled down. None for no limit.
    """

    n_members: int = 10
    network: str | Factory = "tabular"
    head: str | Head = "natural"
    target_transform: str | None = None
    validation: tuple[Any, Any] | None = None
    shared: bool = False
    posterior_samples: int | None = None
    posterior_steps: int = 2000
    seed: int | Sequence[int] = 0
    member_seeds: Any = None
    device: Any = None
    dtype: str = "float32"
    technique: str = "auto"
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 10
    progress: bool | None = None
    max_epochs: Adapted = AUTO  # from here on, options determine the result: `deciding` puts them into the name of a checkpoint
    batch_size: Adapted = AUTO
    learning_rate: float = 3e-3
    schedule: str = "cosine"
    weight_decay: float = 0.0
    patience: Adapted = AUTO
    stopping: str = "member"
    refit: bool = False
    validation_fraction: float = 0.1
    bootstrap: bool = False
    max_gradient: float | None = None

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if not (value is None and name in NULLABLE) and not (value == AUTO and name in ADAPTED):
                object.__setattr__(self, name, positive_integer(name, value))
        self._check_combinations()
        if self.dtype not in {"float32", "float64"}:
            raise ArgumentError(f"dtype must be float32 or float64, got {self.dtype!r}")
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        if self.stopping not in STOPPING:
            raise unknown("stopping", self.stopping, STOPPING)
        for name in ("learning_rate", "max_gradient"):
            if (value := getattr(self, name)) is None and name == "max_gradient":
                continue
            if not _is_real(value) or not 0 < value < float("inf"):
                raise ArgumentError(f"{name} must be positive and finite, got {value!r}")
        if not _is_real(self.weight_decay) or not 0 <= self.weight_decay < float("inf"):
            raise ArgumentError(f"weight_decay must not be negative, got {self.weight_decay!r}")
        if not _is_real(self.validation_fraction) or not 0 <= self.validation_fraction < 1:
            raise ArgumentError(f"validation_fraction must lie in [0, 1), got {self.validation_fraction!r}")

    def _check_combinations(self) -> None:
        if self.posterior_samples is not None and (self.shared or self.bootstrap):
            raise ArgumentError("posterior_samples needs independent members that learn from all rows: no shared, no bootstrap")
        if self.posterior_samples is not None and self.posterior_steps < 2 * self.posterior_samples:
            raise ArgumentError(
                f"posterior_steps must be at least {2 * self.posterior_samples}, twice the posterior_samples, since the first "
                f"half are for tuning; got {self.posterior_steps}"
            )
        if self.shared and self.bootstrap:
            raise ArgumentError("shared members learn from the same rows: set bootstrap=False, or shared=False")
        if self.refit and (self.validation is not None or not self.validation_fraction):
            raise ArgumentError("refit adds the rows that were kept for validation: it needs validation_fraction, not validation")

    def settled(self, rows: int) -> TrainingOptions:
        """These options with numbers in place of "auto", for a training set of so many rows (benchmarks/RESULTS-defaults.md)."""
        found: dict[str, Any] = {}
        batch = self.batch_size
        if isinstance(batch, str):
            # More for large tables, on which epochs have steps enough: a power of two near a three-hundredth of the rows.
            share = min(max(2 ** round(math.log2(max(rows, 2) / 300)), FEWEST_ROWS), MOST_ROWS)
            batch = found["batch_size"] = share if rows >= SMALL else FEWEST_ROWS // 2
        epochs = self.max_epochs
        if isinstance(epochs, str):
            budget = min(max(round(STEPS_PER_ROW * rows), STEPS), MOST_STEPS)
            steps = max(-(-int(rows * (1.0 - self.validation_fraction)) // batch), 1)
            epochs = found["max_epochs"] = min(max(-(-budget // steps), FEWEST_EPOCHS), MOST_EPOCHS)
        if isinstance(self.patience, str):
            found["patience"] = max(round(PATIENCE * epochs), LEAST_PATIENCE)
        return self.replace(found)

    def replace(self, settings: dict[str, Any]) -> TrainingOptions:
        """These options with some of them replaced; an unknown name is an error that suggests the nearest."""
        for name in settings:
            if name not in OPTIONS:
                raise unknown("training option", name, OPTIONS)
        return dataclasses.replace(self, **settings)

    def deciding(self) -> dict[str, Any]:
        """The options from `max_epochs` on, which determine the result together with data, network, head and seeds."""
        return {name: getattr(self, name) for name in OPTIONS[OPTIONS.index("max_epochs") :]}


OPTIONS = tuple(field.name for field in dataclasses.fields(TrainingOptions))


def positive_integer(name: str, value: Any) -> int:
    """The value as an int; anything else is an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a positive integer, got {value!r}") from None
    if number < 1:
        raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
    return number


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real)

"""Training data: checked, standardised, on the device, and divided into training and validation rows of each member."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.arrays import is_traced
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.support.optional import require
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import SPLIT, drawn_rows, orders
from uqprism.training.stack import Stack

torch = require("torch", extra="deep")

Tensor = Any
ENCODED_BYTES = 2**28
ROWS_AT_ONCE = 4096  # rows that are converted to double precision together, to bound the memory
CONSTANT = 1e-6  # the relative spread that constant targets are given
SMALLEST, LARGEST = 1e-140, 1e140  # limits of the spread of targets, whose squares must not overflow


@dataclass(frozen=True)
class Scaling:
    """The standardisation x -> (x - mean) / scale, computed in double precision.

    Attributes:
        mean: of each column of a table, of each channel of images (rows, channels, ...), or of the targets.
        scale: the standard deviation; for constant values a share of their size, or of 1 if they are zero.
    """

    mean: Tensor
    scale: Tensor

    @classmethod
    def of(cls, values: Tensor, constant_spread: float = 1.0) -> Scaling:
        """Fit to rows (n, *features); constant values get the scale `constant_spread` times their size."""
        axes = (0,) if values.ndim <= 2 else (0, *range(2, values.ndim))
        count = values.shape[0] * math.prod(values.shape[2:])
        # Relative to the first value and the largest distance from it, so that a constant column has a spread of exactly zero
        # and squares neither overflow nor underflow.
        origin = values[0].double() if values.ndim <= 2 else values[0].double().flatten(1)[:, 0]
        blocks = values.split(ROWS_AT_ONCE)
        span = torch.zeros_like(origin)
        for block in blocks:
            span = torch.maximum(span, (block.double() - _aligned(origin, values.ndim)).abs().amax(axes))
        unit = torch.where(span > 0, span, torch.ones_like(span))

        def mean_of(function: Callable[[Tensor], Tensor]) -> Tensor:
            parts = [function((b.double() - _aligned(origin, b.ndim)) / _aligned(unit, b.ndim)).sum(axes) for b in blocks]
            return torch.stack(parts).sum(0) / count

        mean = mean_of(lambda x: x)
        # In a second pass: the mean square less the squared mean would cancel.
        variance = mean_of(lambda x: (x - _aligned(mean, values.ndim)) ** 2)
        # A spread of a few rounding errors counts as constant.
        constant = span <= 4 * torch.finfo(torch.float64).eps * origin.abs()
        size = constant_spread * torch.where(origin == 0, torch.ones_like(origin), origin.abs())
        return cls((origin + unit * mean).cpu(), torch.where(constant, size, unit * variance.sqrt()).cpu())

    def unscaled(self, columns: Sequence[bool] | None) -> Scaling:
        """The same, but these columns keep their unit: zeros and ones of a rare category, standardised, would lie far apart."""
        if columns is None or not any(columns):
            return self
        kept = torch.tensor(columns, device=self.scale.device)
        return Scaling(self.mean, self.scale.masked_fill(kept, 1.0))

    def apply(self, values: Tensor, dtype: Any) -> Tensor:
        """The standardised values, in this precision."""
        mean, scale = (_aligned(x.to(values.device), values.ndim) for x in (self.mean, self.scale))
        parts = [values] if is_traced(values) else values.split(ROWS_AT_ONCE)  # of which there is no known number of rows
        blocks = [((block.double() - mean) / scale).to(dtype) for block in parts]
        return torch.cat(blocks) if len(blocks) != 1 else blocks[0]  # `cat` would copy a single block

    def to(self, device: Any) -> Scaling:
        """The same on another device."""
        return Scaling(self.mean.to(device), self.scale.to(device))


@dataclass(frozen=True)
class TrainingData:
    """Data on its device, and the rows that each member uses. A stack has experiments * n_members members.

    Attributes:
        inputs: (rows, ...), standardised over all rows; in double precision if there is an `own_scaling`.
        targets: (rows,), standardised over all rows, in the same precision.
        training: row numbers, (members, n).
        validation: row numbers, (members, n), or (1, n) for all members; None without validation.
        own_scaling: each member's standardisation on top of the shared one, if experiments have different training sets.
        scalings: the standardisation of inputs and of targets from the user's units, one pair per experiment.
        sets: the rows that each experiment may learn from, (experiments, n), for `split_again`.
        validation_given: whether the user gave the validation rows.
        weights: of the rows in the loss, (rows,), with a mean of one; None means equal.
        encoded: whether `inputs` are what the networks' first layer makes of them.
    """

    inputs: Tensor
    targets: Tensor
    training: Tensor
    validation: Tensor | None
    own_scaling: OwnScaling | None
    scalings: list[tuple[Scaling, Scaling]]
    sets: Tensor
    validation_given: bool = False
    weights: Tensor | None = None
    encoded: bool = False

    def encode(self, stack: Stack) -> TrainingData:
        """The data after the networks' first layer, where this has nothing to train and is the same in all members.

        It then runs once and not in every step. Itself for other networks, and where the result would take too much memory.
        """
        chain, buffers = stack.chain, stack.buffers
        if self.own_scaling is not None or chain is None or not chain.encodes:
            return self
        with torch.no_grad():
            first = {name: value[:1] for name, value in buffers.items()}
            row = chain.encode(first, self.inputs[None, :1])
            if len(self.inputs) * row.numel() * row.element_size() > ENCODED_BYTES:
                return self
            blocks = [chain.encode(first, block[None])[0] for block in self.inputs.split(ROWS_AT_ONCE)]
        return dataclasses.replace(self, inputs=torch.cat(blocks), encoded=True)

    def weighted(self, losses: Tensor, rows: Tensor) -> Tensor:
        """Losses (members, n) of these rows times their weights."""
        return losses if self.weights is None else losses * self.weights[rows]

    def batch(self, rows: Tensor, members: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Inputs (members, n, ...) and targets (members, n) for row numbers (members, n)."""
        flat = rows.reshape(-1)  # `index_select` takes a quarter of the time of an index
        inputs = self.inputs.index_select(0, flat).view(*rows.shape, *self.inputs.shape[1:])
        targets = self.targets.index_select(0, flat).view(rows.shape)
        return (inputs, targets) if self.own_scaling is None else self.own_scaling.apply(inputs, targets, members)

    def split_again(self, member: int, seed: int, options: TrainingOptions) -> None:
        """Divide a member's rows into training and validation by another seed."""
        own = self.sets[member * len(self.sets) // len(self.training)][None]  # the members of an experiment are neighbours
        training, kept = _split(own, torch.tensor([seed]), options, self.validation_given)
        self.training[member] = training[0].to(self.training.device)
        if kept is not None and self.validation is not None:
            self.validation[member] = kept[0].to(self.validation.device)


@dataclass(frozen=True)
class OwnScaling:
    """The members' own standardisation on top of the shared one, in double precision; the first axis is the members."""

    input_mean: Tensor
    input_scale: Tensor
    target_mean: Tensor
    target_scale: Tensor
    dtype: Any

    def apply(self, inputs: Tensor, targets: Tensor, members: Tensor | None) -> tuple[Tensor, Tensor]:
        """Batches in each member's units."""
        chosen = [x if members is None else x[members] for x in (self.input_mean, self.input_scale)]
        mean, scale = (x.view(x.shape[0], 1, x.shape[1], *(1,) * (inputs.ndim - 3)) for x in chosen)
        own = [x if members is None else x[members] for x in (self.target_mean, self.target_scale)]
        moved = (targets - own[0][:, None]) / own[1][:, None]
        return ((inputs - mean) / scale).to(self.dtype), moved.to(self.dtype)


def prepare(
    inputs: Any,
    targets: Any,
    rows: Any,
    *,
    seeds: Tensor,
    n_experiments: int,
    options: TrainingOptions,
    device: Any,
    weights: Any = None,
    switches: Sequence[bool] | None = None,
    scaling: tuple[Scaling, Scaling] | None = None,
) -> TrainingData:
    """Check the data, divide it for each member, standardise it and move it to the device.

    Args:
        inputs: (rows, ...).
        targets: (rows,).
        rows: the training sets, (experiments, n), or None for one of all rows.
        seeds: of the members.
        n_experiments: how many training sets there are.
        options: of training.
        device: where to train.
        weights: of the rows in the loss, (rows,), or None.
        switches: columns that are zero or one, which keep their unit.
        scaling: an earlier standardisation, of inputs and targets, in place of that of these rows.
    """
    x, y = checked(inputs, targets, "")
    validation, dtype = options.validation, getattr(torch, options.dtype)
    count = len(y)
    if validation is not None:
        x_kept, y_kept = checked(*validation, "validation ")
        if x_kept.shape[1:] != x.shape[1:]:
            raise ShapeError(f"validation inputs must have rows of shape {tuple(x.shape[1:])}, got {tuple(x_kept.shape[1:])}")
        x, y = _joined(x, x_kept), _joined(y, y_kept)
    sets = _training_sets(rows, count, n_experiments)
    if sets.shape[1] < 2 and scaling is None:
        raise InvalidValueError(f"cannot learn a spread from n_samples={sets.shape[1]}: give at least 2 rows")
    training, kept = _split(sets.repeat_interleave(len(seeds) // n_experiments, 0), seeds, options, validation is not None)
    if validation is not None:
        kept = torch.arange(count, len(y))[None]  # one row of numbers serves all members
    # Validation rows that the user gave do not enter the standardisation.
    shared = scaling or (Scaling.of(x[:count]).unscaled(switches), Scaling.of(y[:count], CONSTANT))
    scalings, own_scaling = [shared], None
    if rows is not None:
        scalings = [(Scaling.of(x[each]).unscaled(switches), Scaling.of(y[each], CONSTANT)) for each in sets]
        own_scaling = _relative(shared, scalings, len(seeds) // n_experiments, device, dtype)
    for _, of_targets in scalings:
        _check_size(float(of_targets.scale))
    # In float32, sets far from the others would lose their digits before they get their own units.
    precision = dtype if own_scaling is None else torch.float64
    return TrainingData(
        inputs=shared[0].apply(x.to(device), precision),
        targets=shared[1].apply(y.to(device), precision),
        training=training.to(device).contiguous(),
        validation=None if kept is None else kept.to(device),
        own_scaling=own_scaling,
        scalings=scalings,
        sets=sets,
        validation_given=validation is not None,
        weights=None if weights is None else _row_weights(weights, count, len(y)).to(device, dtype),
    )


def _row_weights(given: Any, count: int, rows: int) -> Tensor:
    """Weights of mean one of the training rows, and of one for validation rows that the user gave, (rows,)."""
    weights = as_tensor(given, "weights").double().cpu()
    if tuple(weights.shape) != (count,):
        raise ShapeError(f"weights must be one per row, ({count},), got shape {tuple(weights.shape)}")
    if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()) or not bool((weights > 0).any()):
        raise InvalidValueError("weights must be finite and not negative, and not all zero")
    return torch.cat([weights / weights.mean(), torch.ones(rows - count, dtype=torch.float64)])


def as_tensor(values: Any, name: str) -> Tensor:
    """A table, list or array as a tensor on the CPU; a tensor stays on its device."""
    if isinstance(values, torch.Tensor):
        if values.is_complex() or values.layout != torch.strided:
            raise InvalidValueError(f"{name} must be real numbers in a dense tensor, got {values.dtype}, {values.layout}")
        return values.detach()
    if np.ma.is_masked(values):
        raise InvalidValueError(f"{name} must not be masked: drop or impute the masked rows")
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(each, str) for each in array.flat):
            raise TypeError  # astype would turn text such as "1.5" into numbers
        wide = array.dtype.kind == "f" and array.dtype.itemsize > 8  # long doubles, which PyTorch does not have
        array = array.astype(np.float64) if array.dtype == object or wide else array
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} must be an array of numbers, all rows of one length") from None
    if array.dtype.kind not in "fiub":
        raise InvalidValueError(f"{name} must be numbers, got dtype {array.dtype}")
    # Copied, because the user's array may be read-only; in native byte order, the only one that PyTorch reads.
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def checked(inputs: Any, targets: Any, which: str) -> tuple[Tensor, Tensor]:
    """Finite inputs (rows, ...) and targets (rows,), as tensors."""
    x, y = as_tensor(inputs, f"{which}inputs"), as_tensor(targets, f"{which}targets").to(getattr(inputs, "device", "cpu"))
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ShapeError(f"{which}targets must be one number per row, got shape {tuple(y.shape)}")
    if x.ndim == 1:
        raise ShapeError(f"{which}inputs must be (rows, features), got shape {tuple(x.shape)}; for one feature use x[:, None]")
    if len(x) != len(y):
        raise ShapeError(f"{which}inputs and targets must have as many rows, got {len(x)} and {len(y)}")
    if len(y) == 0:
        raise InvalidValueError(f"{which}inputs have no rows")
    for name, values in (("inputs", x), ("targets", y)):
        check_finite(values, which + name)
    return x, y


def check_finite(values: Tensor, name: str) -> None:
    """Raise an error that names the first row with NaN or infinity, if there is one."""
    if values.is_floating_point() and not bool(torch.isfinite(values).all()):
        bad = (~torch.isfinite(values)).flatten(1).any(1) if values.ndim > 1 else ~torch.isfinite(values)
        row = int(bad.nonzero()[0])
        raise InvalidValueError(
            f"{name} must be finite: {int(bad.sum())} of {len(values)} rows hold NaN or infinity, the first is row {row}; "
            "drop or impute them"
        )


def _training_sets(rows: Any, count: int, n_experiments: int) -> Tensor:
    """The rows that each experiment may learn from, (experiments, n)."""
    if rows is None:
        return torch.arange(count).expand(n_experiments, count)
    sets = as_tensor(rows, "rows").cpu()
    if sets.is_floating_point() or sets.dtype == torch.bool:
        raise ArgumentError(f"rows must be row numbers, got {sets.dtype}; use np.flatnonzero on a mask")
    sets = sets.long()
    if sets.ndim != 2 or len(sets) != n_experiments:
        raise ShapeError(f"rows must be row numbers (experiments, n), got shape {tuple(sets.shape)}")
    if sets.numel() and (int(sets.min()) < 0 or int(sets.max()) >= count):
        raise ArgumentError(f"rows must lie between 0 and {count - 1}, got {int(sets.min())} to {int(sets.max())}")
    return sets


def _split(sets: Tensor, seeds: Tensor, options: TrainingOptions, given: bool) -> tuple[Tensor, Tensor | None]:
    """Training and validation rows of each member, by its seed."""
    length = sets.shape[1]
    kept = 0 if given else round(options.validation_fraction * length)
    if options.validation_fraction and not given:
        kept = min(max(kept, 1), length - 1)  # a small share of few rows still leaves a row on either side
    # Without validation nothing is divided, and each epoch draws an order of its own.
    order = torch.gather(sets, 1, orders(seeds, SPLIT, 0, length)) if kept else sets
    training, validation = order[:, kept:], order[:, :kept] if kept else None
    if options.bootstrap:
        # After the division, so that no validation row is trained on.
        training = torch.gather(training, 1, drawn_rows(seeds, training.shape[1]))
    return training, validation


def _relative(
    shared: tuple[Scaling, Scaling], own: list[tuple[Scaling, Scaling]], members: int, device: Any, dtype: Any
) -> OwnScaling:
    """Each member's standardisation, in units of the shared one."""
    parts = []
    for which, common in enumerate(shared):
        means = torch.stack([(pair[which].mean - common.mean) / common.scale for pair in own])
        scales = torch.stack([pair[which].scale / common.scale for pair in own])
        parts += [x.repeat_interleave(members, 0).to(device) for x in (means, scales)]
    return OwnScaling(parts[0], parts[1], parts[2], parts[3], dtype)


def _joined(first: Tensor, second: Tensor) -> Tensor:
    """Both in a dtype that holds both: integer training targets must not truncate the validation targets."""
    dtype = torch.promote_types(first.dtype, second.dtype)
    return torch.cat([first.to(dtype), second.to(first.device, dtype)])


def _check_size(scale: float) -> None:
    if not SMALLEST < scale < LARGEST:
        raise InvalidValueError(f"targets spread over {scale:.2g}, and their squares leave double precision; change their units")


def _aligned(statistic: Tensor, ndim: int) -> Tensor:
    """Numbers per column or channel, shaped to broadcast against rows (n, columns) or (n, channels, ...)."""
    return statistic.reshape(statistic.shape + (1,) * (ndim - 2)) if ndim > 2 else statistic

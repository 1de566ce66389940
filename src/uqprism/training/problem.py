"""What is trained on: one shared data tensor, standardised, and for each model the rows it learns from and stops on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError, ShapeError
from uqprism.support.optional import require
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import SPLIT, drawn_rows, orders
from uqprism.training.scaling import Scaling

torch = require("torch", extra="deep")

Tensor = Any
CONSTANT = 1e-6  # the relative spread with which constant targets are learned: next to none
SMALLEST, LARGEST = 1e-140, 1e140  # spreads of targets whose squares are ordinary numbers


@dataclass(frozen=True)
class Problem:
    """Data on its device, and who uses which part of it.

    Attributes:
        inputs: (rows, ...), standardised over all rows; in double precision where models have a standardisation of their own.
        targets: (rows,), likewise.
        training: row indices, (models, n).
        validation: row indices, (models, n) or (1, n) for all; None where nothing is kept out.
        shift: per model, what remains to be subtracted from inputs and targets and divided by, where models have training
            sets of their own; None where the shared standardisation is theirs.
        scalings: inputs' and targets' standardisation in the user's units, one pair per experiment.
        sets: the rows that each experiment may learn from, (experiments, n), for `split_again`.
        validation_given: whether the validation rows are the user's own.
    """

    inputs: Tensor
    targets: Tensor
    training: Tensor
    validation: Tensor | None
    shift: Shift | None
    scalings: list[tuple[Scaling, Scaling]]
    sets: Tensor
    validation_given: bool = False

    def batch(self, rows: Tensor, models: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Inputs (models, n, ...) and targets (models, n) for row indices (models, n)."""
        inputs, targets = self.inputs[rows], self.targets[rows]
        return (inputs, targets) if self.shift is None else self.shift.apply(inputs, targets, models)

    def split_again(self, model: int, seed: int, options: TrainingOptions) -> None:
        """Give a model the rows that another seed would have given it."""
        own = self.sets[model * len(self.sets) // len(self.training)][None]
        training, kept = _split(own, torch.tensor([seed]), options, self.validation_given)
        self.training[model] = training[0].to(self.training.device)
        if kept is not None and self.validation is not None:
            self.validation[model] = kept[0].to(self.validation.device)


@dataclass(frozen=True)
class Shift:
    """A model's own standardisation on top of the shared one, in double precision; each array starts with the models."""

    input_mean: Tensor
    input_scale: Tensor
    target_mean: Tensor
    target_scale: Tensor
    dtype: Any

    def apply(self, inputs: Tensor, targets: Tensor, models: Tensor | None) -> tuple[Tensor, Tensor]:
        """Batches in each model's own units."""
        chosen = [x if models is None else x[models] for x in (self.input_mean, self.input_scale)]
        mean, scale = (x.view(x.shape[0], 1, x.shape[1], *(1,) * (inputs.ndim - 3)) for x in chosen)
        own = [x if models is None else x[models] for x in (self.target_mean, self.target_scale)]
        moved = (targets - own[0][:, None]) / own[1][:, None]
        return ((inputs - mean) / scale).to(self.dtype), moved.to(self.dtype)


def prepare(
    inputs: Any,
    targets: Any,
    *,
    validation: tuple[Any, Any] | None,
    rows: Any,
    seeds: Tensor,
    n_experiments: int,
    options: TrainingOptions,
    device: Any,
    dtype: Any,
) -> Problem:
    """Check the data once, split it for each member, standardise it and put it on the device."""
    x, y = checked(inputs, targets, "")
    count = len(y)
    if validation is not None:
        held_x, held_y = checked(*validation, "validation ")
        if held_x.shape[1:] != x.shape[1:]:
            raise ShapeError(f"validation inputs must have rows of shape {tuple(x.shape[1:])}, got {tuple(held_x.shape[1:])}")
        x, y = _joined(x, held_x), _joined(y, held_y)
    sets = _training_sets(rows, count, n_experiments)
    if sets.shape[1] < 2:
        raise InvalidValueError(f"cannot learn a spread from n_samples={sets.shape[1]}: give at least 2 rows")
    training, kept = _split(sets.repeat_interleave(len(seeds) // n_experiments, 0), seeds, options, validation is not None)
    if validation is not None:
        kept = torch.arange(count, len(y))[None]
    # Statistics of what may be learned from: a set of one's own where sets differ, without validation rows given apart.
    shared = Scaling.of(x[:count]), Scaling.of(y[:count], CONSTANT)
    scalings, shift = [shared], None
    if rows is not None:
        scalings = [(Scaling.of(x[each]), Scaling.of(y[each], CONSTANT)) for each in sets]
        shift = _relative(shared, scalings, len(seeds) // n_experiments, device, dtype)
    for _, scaling in scalings:
        _check_size(float(scaling.scale))
    precision = dtype if shift is None else torch.float64
    return Problem(
        inputs=shared[0].apply(x.to(device), precision),
        targets=shared[1].apply(y.to(device), precision),
        training=training.to(device).contiguous(),
        validation=None if kept is None else kept.to(device),
        shift=shift,
        scalings=scalings,
        sets=sets,
        validation_given=validation is not None,
    )


def as_tensor(values: Any, name: str) -> Tensor:
    """Tables, lists and arrays as a tensor; a tensor stays where it is."""
    if isinstance(values, torch.Tensor):
        if values.is_complex() or values.layout != torch.strided:
            raise InvalidValueError(f"{name} must be real numbers in a dense tensor, got {values.dtype}, {values.layout}")
        return values.detach()
    if np.ma.is_masked(values):
        raise InvalidValueError(f"{name} must not be masked: drop or impute the masked rows")
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(each, str) for each in array.flat):
            raise TypeError
        wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
        array = array.astype(np.float64) if array.dtype == object or wide else array
    except (TypeError, ValueError):
        raise InvalidValueError(f"{name} must be an array of numbers, all rows of one length{_not_numbers(values)}") from None
    if array.dtype.kind not in "fiub":
        raise InvalidValueError(f"{name} must be numbers, got dtype {array.dtype}{_not_numbers(values)}")
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))  # a copy: theirs may be read-only


def _not_numbers(values: Any) -> str:
    """The columns of a table that hold something else, to be told in an error."""
    dtypes: Any = getattr(values, "dtypes", None)
    odd = [str(c) for c, kind in dtypes.items() if getattr(kind, "kind", "O") not in "fiub"] if hasattr(dtypes, "items") else []
    return f"; columns {', '.join(odd)} are not: encode or drop them" if odd else ""


def feature_names(values: Any) -> tuple[str, ...] | None:
    """The names of a table's columns, None for an array or for columns without names."""
    names = tuple(getattr(values, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


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
    """An error that says where the first number is that is none."""
    if values.is_floating_point() and not bool(torch.isfinite(values).all()):
        bad = (~torch.isfinite(values)).flatten(1).any(1) if values.ndim > 1 else ~torch.isfinite(values)
        row = int(bad.nonzero()[0])
        raise InvalidValueError(
            f"{name} must be finite: {int(bad.sum())} of {len(values)} rows hold NaN or infinity, the first is row {row}; "
            "drop or impute them"
        )


def _training_sets(rows: Any, count: int, n_experiments: int) -> Tensor:
    """The rows each experiment may learn from, (experiments, n)."""
    if rows is None:
        return torch.arange(count).expand(n_experiments, count)
    sets = as_tensor(rows, "rows").cpu()
    if sets.is_floating_point() or sets.dtype == torch.bool:
        raise ArgumentError(f"rows must be row numbers, got {sets.dtype}; of a mask, take np.flatnonzero")
    sets = sets.long()
    if sets.ndim != 2 or len(sets) != n_experiments:
        raise ShapeError(f"rows must be row indices (experiments, n), got shape {tuple(sets.shape)}")
    if sets.numel() and (int(sets.min()) < 0 or int(sets.max()) >= count):
        raise ArgumentError(f"rows must lie between 0 and {count - 1}, got {int(sets.min())} to {int(sets.max())}")
    return sets


def _split(sets: Tensor, seeds: Tensor, options: TrainingOptions, given: bool) -> tuple[Tensor, Tensor | None]:
    """Training and validation rows of each member, by its own seed."""
    length = sets.shape[1]
    kept = 0 if given else round(options.validation_fraction * length)
    if options.validation_fraction and not given:
        kept = min(max(kept, 1), length - 1)
    order = torch.gather(sets, 1, orders(seeds, SPLIT, 0, length)) if kept else sets
    training, validation = order[:, kept:], order[:, :kept] if kept else None
    if options.bootstrap:
        training = torch.gather(training, 1, drawn_rows(seeds, training.shape[1]))
    return training, validation


def _relative(
    shared: tuple[Scaling, Scaling], own: list[tuple[Scaling, Scaling]], members: int, device: Any, dtype: Any
) -> Shift:
    parts = []
    for which, common in enumerate(shared):
        means = torch.stack([(pair[which].mean - common.mean) / common.scale for pair in own])
        scales = torch.stack([pair[which].scale / common.scale for pair in own])
        parts += [x.repeat_interleave(members, 0).to(device) for x in (means, scales)]
    return Shift(parts[0], parts[1], parts[2], parts[3], dtype)


def _joined(first: Tensor, second: Tensor) -> Tensor:
    """Both in the precision that holds both: integers must not cut off what validation has behind the point."""
    dtype = torch.promote_types(first.dtype, second.dtype)
    return torch.cat([first.to(dtype), second.to(first.device, dtype)])


def _check_size(scale: float) -> None:
    if not SMALLEST < scale < LARGEST:
        raise InvalidValueError(f"targets spread over {scale:.2g}, and their squares leave double precision; change their units")

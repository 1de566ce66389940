"""The computation that is exported, as a module of PyTorch: columns, standardisation, networks, head, units and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from uqprism.errors import UnsupportedError
from uqprism.families import Family
from uqprism.registry import unknown
from uqprism.support.optional import require
from uqprism.training.deep_ensemble import DeepEnsemble
from uqprism.training.exporting.inputs import Input, Numbers, inputs_of
from uqprism.training.exporting.split import Split, choose
from uqprism.training.randomness import DropoutMasks, member_seeds
from uqprism.training.transforms import LogTransform

torch = require("torch", extra="deep")

Tensor = Any
Precision = Literal["float64", "float32"]
OUTPUTS = ("mean", "variance", "bayes", "excess", "total")


@dataclass(frozen=True)
class Wanted:
    """What to export.

    Attributes:
        rule: of the split.
        prediction: the approximation for the prediction.
        truth: the approximation for the truth.
        precision: of inputs, outputs and networks.
        passes: of MC dropout; None for none.
        seed: of its masks.
    """

    rule: Any
    prediction: Any
    truth: Any
    precision: Precision
    passes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise unknown("precision", self.precision, get_args(Precision))


class Program(torch.nn.Module):  # type: ignore[name-defined]  # PyTorch is loaded by name
    """From inputs to the mean, the variance and the three risks of each row.

    Attributes:
        inputs: what it takes.
        split: the closed form of the risks.
    """

    def __init__(self, ensemble: DeepEnsemble, wanted: Wanted) -> None:
        super().__init__()
        _check(ensemble)
        ensemble = ensemble.to("cpu")
        narrow = wanted.precision == "float32"
        self._ensemble, self._dtype = ensemble, getattr(torch, wanted.precision)
        stack = ensemble.stack.float() if narrow else ensemble.stack
        if stack.technique == "matmul" and not narrow:  # as `predict_ensemble` does
            stack = stack.double()
        self._masks = None
        if wanted.passes is not None:
            stack, self._masks = _passes(stack, wanted.passes, wanted.seed)
        stack.parameters = {name: value.detach() for name, value in stack.parameters.items()}
        self._stack = stack
        self.inputs: tuple[Input, ...] = inputs_of(ensemble.columns, stack.input_shape, wanted.precision, OUTPUTS)
        self._numbers = None if ensemble.columns is None else Numbers(ensemble.columns, self.inputs)
        with torch.no_grad():
            members = self._members(self._numbers_of(*self.example()))
            self.split: Split = choose(members, wanted.rule, wanted.prediction, wanted.truth)

    def example(self) -> tuple[Tensor, ...]:
        """Inputs of three rows."""
        kinds = [torch.int64 if each.kind == "category" else self._dtype for each in self.inputs]
        steps = torch.tensor([0.0, 1.0, 3.0])
        if self._numbers is not None:
            return tuple(torch.zeros(3, dtype=kind) if kind == torch.int64 else steps.to(kind) for kind in kinds)
        scaling, row = self._ensemble.input_scaling, self._stack.input_shape
        around = [x.reshape(x.shape + (1,) * (len(row) - x.ndim)) for x in (scaling.mean, scaling.scale)]
        return ((around[0] + around[1] * steps.reshape(3, *(1,) * len(row)).expand(3, *row)).to(kinds[0]),)

    def forward(self, *given: Tensor) -> dict[str, Tensor]:
        """Each output (rows,) by name."""
        found = self.split(self._members(self._numbers_of(*given)))
        return {name: found[name].to(self._dtype) for name in OUTPUTS}

    def _numbers_of(self, *given: Tensor) -> Tensor:
        return given[0] if self._numbers is None else self._numbers(*given)

    def _members(self, values: Tensor) -> Family:
        """The members' distributions, in the units of the target."""
        ensemble, stack = self._ensemble, self._stack
        inputs = ensemble.input_scaling.apply(values, stack.rows.dtype)
        raw = stack(inputs.expand(len(stack), *inputs.shape), masks=self._masks)
        parameters = ensemble.in_units(raw)
        members = ensemble.head.distribution(parameters)
        return members if ensemble.transform is None else ensemble.transform.distribution(members)


def _check(ensemble: DeepEnsemble) -> None:
    """Refuse what has no members in closed form."""
    if ensemble.head.family == "evidential":
        raise UnsupportedError(
            "an evidential network has no members of its own to export: they are drawn from its distribution; train a "
            "DeepEnsembleRegressor, with head='natural' or 'mixture'"
        )
    gaussian = ensemble.head.family in ("gaussian", "mixture")
    if ensemble.transform is not None and not (isinstance(ensemble.transform, LogTransform) and gaussian):
        raise UnsupportedError(
            f"target_transform={ensemble.transform.name!r} with the {ensemble.head.name} head has no closed form, which export "
            "needs; train with target_transform=None, or with 'log' and a head of Gaussians such as 'natural' or 'mixture'"
        )


class _Fixed:
    """The masks of the passes, drawn once, as constants: a pass is a smaller network."""

    def __init__(self, masks: DropoutMasks) -> None:
        self._masks = masks
        self._known: dict[int, Tensor] = {}

    def apply(self, x: Tensor, probability: float, layer: int) -> Tensor:
        """Units (members, rows, units) with a share set to zero and the rest scaled up."""
        if layer not in self._known:  # in the trial run, before the program is recorded
            self._known[layer] = self._masks.apply(torch.ones(len(x), 1, x.shape[2], dtype=x.dtype), probability, layer)
        return x * self._known[layer]


def _passes(stack: Any, passes: int, seed: int) -> tuple[Any, Any]:
    """Each pass as a network of its own, and their masks."""
    if stack.technique != "matmul":
        raise UnsupportedError(
            "MC dropout in a network of your own draws PyTorch's masks, which depend on the batch and cannot be exported; use "
            "MCDropoutRegressor without network=, or DeepEnsembleRegressor"
        )
    count = len(stack)
    members = [member for _ in range(passes) for member in range(count)]
    seeds = member_seeds(seed, count).repeat(passes)
    counts = torch.arange(passes).repeat_interleave(count).to(seeds.dtype)
    return stack.take(members), _Fixed(DropoutMasks(seeds, counts, per_row=False))

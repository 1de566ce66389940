"""PyTorch networks as an ensemble: a list of modules, or one module with stacked parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.ensemble import EnsemblePrediction
from uqprism.errors import ArgumentError, ArrayTypeError, ShapeError
from uqprism.support.optional import require

DICTIONARIES = [{"mean", "variance"}, {"mean", "scale"}, {"location", "scale"}]
Stacked = tuple[dict[str, Any], dict[str, Any]]


@adapters.register("torch")
class Torch(Adapter):
    """PyTorch modules, alone or in a list."""

    supports = "PyTorch modules, alone or in a list"
    priority = 5

    def matches(self, model: Any) -> bool:
        """Whether it is a module, or a list of modules."""
        models = model if isinstance(model, list | tuple) and model else [model]
        return all(is_a(each, "torch", "Module") for each in models)

    def predict(
        self,
        model: Any,
        X: Any,
        *,
        head: Any = None,
        parameters: Any = None,
        buffers: Any = None,
        rows_at_once: int | None = None,
    ) -> EnsemblePrediction:
        """One member per module."""
        # A ModuleList has no forward of its own.
        alone = parameters is None and is_a(model, "torch", "Module") and not is_a(model, "torch", "ModuleList")
        networks = [model] if alone else model
        return from_torch(networks, X, head=head, parameters=parameters, buffers=buffers, rows_at_once=rows_at_once)


def from_torch(
    networks: Any,
    inputs: Any,
    *,
    head: Any = None,
    parameters: Any = None,
    buffers: Any = None,
    rows_at_once: int | None = None,
) -> EnsemblePrediction:
    """One member for each PyTorch network, predicting for inputs (rows, ...).

    The networks run in evaluation mode, on their device. The result has gradients unless `torch.no_grad` is on.

    Args:
        networks: a list of modules; or one module, whose stacked `parameters` and `buffers` are those of
            `torch.func.stack_module_state`.
        inputs: a tensor, given to each of them.
        head: what their outputs (rows, n) mean, such as `natural`, by the names of `uqprism.training`. By default they
            return (mean, variance), a tensor (rows, 2) of the two, a dictionary of parameters such as
            `{"mean": ..., "scale": ...}`, or a `torch.distributions` Normal or Laplace.
        parameters: stacked parameters by name, each (members, ...).
        buffers: stacked buffers by name, each (members, ...).
        rows_at_once: predict this many rows at a time, to bound memory; all at once unless given.
    """
    torch = require("torch", extra="deep")
    if not isinstance(inputs, torch.Tensor):
        raise ArrayTypeError(f"inputs must be a torch tensor, which the networks take, got {type(inputs).__name__}")
    networks = networks if isinstance(networks, torch.nn.Module) else list(networks)
    run = _runner(networks, None if parameters is None else (dict(parameters), dict(buffers or {})))
    parts = [inputs] if rows_at_once is None else list(inputs.split(rows_at_once))
    with _evaluating(networks):
        outputs = [_parameters(run(part), head) for part in parts]
    joined = {name: torch.cat([part[name] for part in outputs], dim=1) for name in outputs[0]}  # along the rows
    family = "laplace" if "location" in joined else "gaussian"
    return getattr(EnsemblePrediction, family)(**joined)


def _runner(networks: Any, stacked: Stacked | None) -> Any:
    """A function from inputs to the outputs of all members, a list or already stacked."""
    torch = require("torch", extra="deep")
    if stacked is not None:
        if not isinstance(networks, torch.nn.Module):
            raise ArgumentError("with stacked parameters, networks must be the one module they belong to")

        def one(own: Any, held: Any, x: Any) -> Any:
            return torch.func.functional_call(networks, (own, held), (x,))

        # Without `randomness`, vmap refuses layers that draw numbers.
        together = torch.func.vmap(one, in_dims=(0, 0, None), randomness="different")
        return lambda x: [together(*stacked, x)]
    if isinstance(networks, torch.nn.Module) and not isinstance(networks, torch.nn.ModuleList):
        raise ArgumentError("networks must be a list of modules, or one module with its stacked parameters in parameters=")
    members = list(networks)
    if not members:
        raise ShapeError("networks must hold at least one module, got none")
    return lambda x: [_alone(output) for output in (member(x) for member in members)]


@contextmanager
def _evaluating(networks: Any) -> Iterator[None]:
    """Dropout off and batch norm at its running statistics; afterwards every module is in the mode it was in."""
    torch = require("torch", extra="deep")
    roots = [networks] if isinstance(networks, torch.nn.Module) else list(networks)
    modules = [module for root in roots if isinstance(root, torch.nn.Module) for module in root.modules()]
    modes = [module.training for module in modules]
    for module in modules:
        module.training = False  # module by module: `train(True)` afterwards would wake parts that were frozen before
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def _alone(output: Any) -> Any:
    """One member's output with a first axis of members."""
    if isinstance(output, tuple | list):
        return tuple(part[None] for part in output)
    if isinstance(output, Mapping):
        return {name: part[None] for name, part in output.items()}
    return output[None] if hasattr(output, "ndim") else output


def _parameters(outputs: Sequence[Any], head: Any) -> dict[str, Any]:
    """The parameters by name, (members, rows), of what the members returned."""
    torch = require("torch", extra="deep")
    read = [_read(output, head) for output in outputs]
    if len({frozenset(part) for part in read}) > 1:
        raise ArgumentError("networks must all predict the same parameters")
    return {name: torch.cat([part[name] for part in read]) for name in read[0]}


def _read(output: Any, head: Any) -> dict[str, Any]:
    torch = require("torch", extra="deep")
    if head is not None:
        from uqprism.training import heads  # imports torch

        means = heads.resolve(head)
        if means.family == "evidential":
            raise ArgumentError("evidential outputs are no ensemble yet: use EvidentialPrediction(...).as_ensemble()")
        if not hasattr(output, "shape") or output.shape[-1] != means.n_outputs:
            raise ShapeError(
                f"the {means.name} head reads tensors (rows, {means.n_outputs}), the network returned {_described(output)}"
            )
        return means.parameters(output)
    if isinstance(output, torch.distributions.Distribution):
        return _of_distribution(output)
    if isinstance(output, Mapping):
        if set(output) not in DICTIONARIES:
            raise ArgumentError(
                f"a dictionary of parameters must have mean and variance or scale, or location and scale; got {list(output)}"
            )
        return {name: _column(part) for name, part in output.items()}
    if isinstance(output, tuple | list) and len(output) == 2:
        return {"mean": _column(output[0]), "variance": _column(output[1])}
    if hasattr(output, "shape") and output.ndim == 3 and output.shape[-1] == 2:
        return {"mean": output[..., 0], "variance": output[..., 1]}
    raise ArgumentError(
        "without head=, networks must return (mean, variance), a tensor (rows, 2) of them, a dictionary such as "
        f"{{'mean': ..., 'scale': ...}}, or a torch.distributions Normal or Laplace; got {_described(output)}"
    )


def _of_distribution(output: Any) -> dict[str, Any]:
    torch = require("torch", extra="deep")
    base = output.base_dist if isinstance(output, torch.distributions.Independent) else output
    names = {torch.distributions.Normal: "mean", torch.distributions.Laplace: "location"}
    if type(base) not in names:
        raise ArgumentError(f"networks may return Normal or Laplace distributions, got {type(base).__name__}")
    return {names[type(base)]: _column(base.loc[None]), "scale": _column(base.scale[None])}


def _column(values: Any) -> Any:
    """(members, rows, 1), which is what linear layers of one output return, as (members, rows)."""
    return values[..., 0] if values.ndim > 2 and values.shape[-1] == 1 else values


def _described(output: Any) -> str:
    return f"shape {tuple(output.shape)}" if hasattr(output, "shape") else type(output).__name__

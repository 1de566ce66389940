"""PyTorch networks as an ensemble: a list of modules, one module with stacked parameters, or passes with dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from uqprism.adapters.base import Adapter, adapters, is_a
from uqprism.adapters.torch_outputs import Outputs
from uqprism.ensemble import EnsemblePrediction
from uqprism.ensemble.origin import Origin
from uqprism.errors import ArgumentError, ArrayTypeError, ShapeError
from uqprism.support.optional import require

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
        outputs: Any = None,
        family: str | None = None,
        variance: Any = None,
        head: Any = None,
        passes: int | None = None,
        seed: int | None = None,
        member_axis: int | None = None,
        levels: Any = None,
        gradients: bool = False,
        parameters: Any = None,
        buffers: Any = None,
        rows_at_once: int | None = None,
    ) -> EnsemblePrediction:
        """One member per module, or per module and pass."""
        # A ModuleList has no forward of its own.
        alone = parameters is None and is_a(model, "torch", "Module") and not is_a(model, "torch", "ModuleList")
        return from_torch(
            [model] if alone else model,
            X,
            outputs=outputs,
            family=family,
            variance=variance,
            head=head,
            passes=passes,
            seed=seed,
            member_axis=member_axis,
            levels=levels,
            gradients=gradients,
            parameters=parameters,
            buffers=buffers,
            rows_at_once=rows_at_once,
        )


def from_torch(
    networks: Any,
    inputs: Any,
    *,
    outputs: Any = None,
    family: str | None = None,
    variance: Any = None,
    head: Any = None,
    passes: int | None = None,
    seed: int | None = None,
    member_axis: int | None = None,
    levels: Any = None,
    gradients: bool = False,
    parameters: Any = None,
    buffers: Any = None,
    rows_at_once: int | None = None,
) -> EnsemblePrediction:
    """One member for each PyTorch network, predicting for inputs (rows, ...).

    The networks run in evaluation mode, on their device.

    What the outputs mean must be named, unless they name it themselves, as dictionaries with the names below as keys and
    `torch.distributions` do: a log-variance reads like a variance wherever it is positive. The names are `mean` with
    `variance`, `log_variance`, `scale` (the standard deviation) or `log_scale`; `eta1, eta2` (natural parameters, eta1 = mean /
    variance and eta2 = -1 / (2 variance)); with `family="laplace"` or `"logistic"` `location` and `scale` or `log_scale`,
    with `family="student_t"` also `df`; for mixture density networks also `shares` or `logits` of the components, where each
    output is (rows, components), or all are a tensor (rows, components, 3); and `quantiles`, (rows, levels), with `levels=`.

    Args:
        networks: a list of modules; or one module, whose stacked `parameters` and `buffers` are those of
            `torch.func.stack_module_state`.
        inputs: a tensor or a NumPy array, given to each of them; or a `DataLoader` that does not shuffle, or another
            iterable of batches. A batch that is a pair is (inputs, targets).
        outputs: names with commas between, in the order of a tuple or of the last axis of a tensor, as in
            `"mean, log_variance"`; or a mapping from these names to the keys of a dictionary. `"mean"` alone takes `variance`.
        family: of the members, where the names do not say it.
        variance: of the noise, where the networks predict means only: a number, or one per member.
        head: what raw outputs (rows, n) of networks mean that were made for a head of `uqprism.training`, such as `natural`.
        passes: run each network so many times with its dropout layers on; each pass is a member.
        seed: of the dropout; PyTorch's own generator goes on unless given.
        member_axis: the axis of a network's outputs along which it has several members, 1 for TabM's.
        levels: of outputs that are quantiles.
        gradients: whether the result has gradients.
        parameters: stacked parameters by name, each (members, ...).
        buffers: stacked buffers by name, each (members, ...).
        rows_at_once: predict this many rows at a time, to bound memory; all at once unless given.
    """
    torch = require("torch", extra="deep")
    reader = Outputs.of(outputs, family=family, variance=variance, head=head, member_axis=member_axis, levels=levels)
    networks = networks if isinstance(networks, torch.nn.Module) else list(networks)
    run = _runner(networks, None if parameters is None else (dict(parameters), dict(buffers or {})))
    if passes is not None:
        run = _repeated(run, passes)
    with _evaluating(networks, dropout=passes is not None), _seeded(seed), nullcontext() if gradients else torch.no_grad():
        parts = [reader.read(run(batch)) for batch in batches(inputs, networks, rows_at_once)]
    if not parts:
        raise ShapeError("inputs must hold at least one batch, got none")
    (name, first), rows = parts[0], 1
    values = {key: torch.cat([part[key] for _, part in parts], dim=rows) for key in first}
    if passes is not None and passes > 1 and all(bool((x == x[:1]).all()) for x in values.values()):
        raise ArgumentError(
            "all passes predict the same; passes= needs networks with layers such as torch.nn.Dropout, at a rate above zero, or "
            "with dropout(x, training=True)"
        )
    found = reader.ensemble(name, values)
    return found.made_by(Origin("from_torch", "networks" if passes is None else "dropout", found.n_members))


def batches(inputs: Any, networks: Any, rows_at_once: int | None) -> Iterator[Any]:
    """Tensors of rows, on the networks' device."""
    torch = require("torch", extra="deep")
    if isinstance(inputs, np.ndarray):
        inputs = _as_tensor(inputs, networks)
    if isinstance(inputs, torch.Tensor):
        yield from [inputs] if rows_at_once is None else inputs.split(rows_at_once)
        return
    if not isinstance(inputs, Iterable) or hasattr(inputs, "columns") or isinstance(inputs, dict):
        kind = type(inputs).__name__
        way_out = (
            "; pass its to_numpy()"
            if hasattr(inputs, "columns")
            else "; pass [inputs], a list of batches" * isinstance(inputs, dict)
        )
        raise ArrayTypeError(
            f"inputs must be a torch tensor, a NumPy array or a DataLoader, which the networks take, got {kind}{way_out}"
        )
    if rows_at_once is not None:
        raise ArgumentError("rows_at_once is for arrays; a DataLoader has a batch_size")
    if isinstance(inputs, torch.utils.data.DataLoader):
        _check_order(inputs)
    device = next((p.device for p in _parameters_of(networks)), None)
    for given in inputs:
        batch = given
        if isinstance(given, tuple | list):
            if not 1 <= len(given) <= 2:
                raise ArgumentError(
                    f"a batch must be a tensor or a pair of inputs and targets, got {len(given)} parts; pass "
                    "(batch[0] for batch in loader), or whatever of it the networks take"
                )
            batch = given[0]
        if isinstance(batch, Mapping):  # for networks that take a dictionary
            yield {key: x if device is None or not hasattr(x, "to") else x.to(device) for key, x in batch.items()}
            continue
        if not isinstance(batch, torch.Tensor):
            raise ArrayTypeError(
                f"a batch must be a tensor or a pair of inputs and targets, got {type(batch).__name__}; pass "
                "(batch[0] for batch in loader), or whatever of it the networks take"
            )
        yield batch if device is None else batch.to(device)


def _check_order(loader: Any) -> None:
    """Refuse a loader whose batches do not hold all rows in the order of its data set."""
    data = require("torch", extra="deep").utils.data
    if isinstance(loader.dataset, data.IterableDataset):
        return
    plain = type(loader.batch_sampler) in {data.BatchSampler, type(None)}
    if not plain or not isinstance(loader.sampler, data.SequentialSampler):
        raise ArgumentError(
            "the DataLoader shuffles or samples, so that predictions would not be in the order of its data set; pass one made "
            "with shuffle=False, or (inputs for inputs, _ in loader) to keep the order that it happens to have"
        )
    if loader.drop_last and len(loader.dataset) % loader.batch_size:
        raise ArgumentError("the DataLoader leaves out the last rows of its data set; pass one made with drop_last=False")


def _parameters_of(networks: Any) -> Iterator[Any]:
    torch = require("torch", extra="deep")
    for root in [networks] if isinstance(networks, torch.nn.Module) else networks:
        if isinstance(root, torch.nn.Module):
            yield from root.parameters()


def _as_tensor(array: np.ndarray[Any, Any], networks: Any) -> Any:
    """A tensor on the networks' device; floating numbers in their precision."""
    torch = require("torch", extra="deep")
    like = next((p for p in _parameters_of(networks) if p.is_floating_point()), torch.empty(0))
    tensor = torch.as_tensor(array, device=like.device)
    return tensor.to(like.dtype) if tensor.is_floating_point() else tensor


def _runner(networks: Any, stacked: Stacked | None) -> Callable[[Any], list[Any]]:
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
    return lambda x: [_alone(_given(member, x)) for member in members]


def _given(member: Any, x: Any) -> Any:
    """What a network returns for a batch; one that fails on a dictionary takes a part of it."""
    if not isinstance(x, Mapping):
        return member(x)
    try:
        return member(x)
    except (TypeError, AttributeError) as error:
        raise ArrayTypeError(
            f"the network does not take a batch that is a dictionary of {', '.join(map(str, x))} ({error}). Pass a part of it, "
            f"as in (batch[{next(iter(x), 'inputs')!r}] for batch in loader), or networks that take the dictionary"
        ) from error


def _repeated(run: Callable[[Any], list[Any]], passes: int) -> Callable[[Any], list[Any]]:
    if passes < 1:
        raise ArgumentError(f"passes must be at least 1, got {passes}")
    return lambda x: [output for _ in range(passes) for output in run(x)]


def _modules(networks: Any) -> list[Any]:
    torch = require("torch", extra="deep")
    roots = [networks] if isinstance(networks, torch.nn.Module) else networks
    return [module for root in roots if isinstance(root, torch.nn.Module) for module in root.modules()]


def _draws(module: Any) -> bool:
    """Whether it drops at random in training mode, and does nothing else there: dropout, attention and recurrent layers."""
    if is_a(module, "torch", "_DropoutNd"):
        return True
    if type(module).__module__.startswith("torch.nn.modules."):
        return not is_a(module, "torch", "_NormBase")
    # A module of one's own that calls dropout(x, training=self.training), read from the names in its code.
    names = getattr(getattr(getattr(type(module), "forward", None), "__code__", None), "co_names", ())
    return "training" in names and any("drop" in each for each in names)


@contextmanager
def _evaluating(networks: Any, *, dropout: bool) -> Iterator[None]:
    """Batch norm at its running statistics, dropout as asked; afterwards every module is in the mode it was in."""
    modules = _modules(networks)
    modes = [module.training for module in modules]
    for module in modules:
        module.training = dropout and _draws(module)  # one by one: `train(True)` afterwards would wake frozen parts
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """PyTorch's generators at this seed; afterwards they are where they were."""
    torch = require("torch", extra="deep")
    if seed is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _alone(output: Any) -> Any:
    """One member's output with a first axis of members."""
    if isinstance(output, tuple) and hasattr(output, "_asdict"):
        output = output._asdict()
    if isinstance(output, tuple | list):
        return tuple(part[None] for part in output)
    if is_dataclass(output):
        output = {each.name: getattr(output, each.name) for each in fields(output)}
    if isinstance(output, dict) or hasattr(output, "items"):
        return {name: part[None] for name, part in output.items()}
    return output[None] if hasattr(output, "ndim") else output

"""Networks of one architecture as the rows of one matrix.

All parameters of member i are row i of `rows`; each layer's stacked parameter is a view of this matrix. The optimiser updates
one tensor, keeping a member's best epoch copies one row, and a checkpoint consists of a few matrices.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from uqprism.errors import ArgumentError, ShapeError
from uqprism.support.optional import require
from uqprism.training import techniques
from uqprism.training.chain import Chain
from uqprism.training.networks import Factory
from uqprism.training.randomness import DropoutMasks, keep_generators, seed_generator

torch = require("torch", extra="deep")

Tensor = Any


class Stack:
    """Networks of one architecture that run together.

    Attributes:
        template: one network, for its structure; its parameters are not used.
        rows: the parameters, (members, parameters of one).
        buffers: such as batch norm's running statistics, and parameters that are not trained, by name, each (members, ...).
        technique: how the members run together: matmul, vmap or loop.
    """

    def __init__(self, template: Any, rows: Tensor, buffers: dict[str, Tensor], example: Tensor, technique: str = "auto") -> None:
        self.template, self.rows, self.buffers, self._example = template, rows, buffers, example
        self.parameters = {name: view.requires_grad_() for name, view in self.views(rows).items()}
        self.technique, self._run = techniques.choose(technique, template, example, self.parameters, buffers)

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """The stacked parameters, by name, each (members, ...), as views of a matrix like `rows`."""
        parameters = trained(self.template)
        parts = rows.detach().split([parameter.numel() for parameter in parameters.values()], dim=1)
        return {name: part.view(len(rows), *parameters[name].shape) for name, part in zip(parameters, parts, strict=True)}

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one row of inputs."""
        return tuple(self._example.shape[1:])

    @classmethod
    def build(cls, factory: Factory, example: Tensor, n_outputs: int, seeds: Sequence[int], technique: str = "auto") -> Stack:
        """Initialise one member per seed, with the device, precision and input shape of `example` (rows, ...)."""
        distinct = {seed: place for place, seed in enumerate(dict.fromkeys(seeds))}  # experiments often share seeds
        modules = [initialised(factory, tuple(example.shape[1:]), n_outputs, seed).to(example) for seed in distinct]
        at = torch.tensor([distinct[seed] for seed in seeds], device=example.device)
        template = copy.deepcopy(modules[0])
        if not trained(template):
            raise ArgumentError("the network has no parameters to train")
        try:
            rows = torch.stack([row_of(module) for module in modules])[at]
            states = [buffers_of(module) for module in modules]
            buffers = {name: torch.stack([state[name] for state in states])[at] for name in states[0]}
        except (RuntimeError, KeyError):
            raise ShapeError("members must be networks of one architecture, with parameters of the same shapes") from None
        stack = cls(template, rows, buffers, example, technique)
        _check_outputs(stack, example, n_outputs)
        return stack

    def observe(self, members: slice, inputs: Tensor, targets: Tensor) -> None:
        """Show these members' rows and targets to the layers with `observe`, which returns buffers such as the edges of bins."""
        for layer, module in observers(self.template):
            for name, value in module.observe(inputs.flatten(1), targets).items():
                self.buffers[f"{layer}.{name}"][members] = value.to(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, x: Tensor, *, training: bool = False, masks: DropoutMasks | None = None, encoded: bool = False) -> Tensor:
        """Outputs (members, rows, outputs) for inputs (members, rows, ...); outside training, dropout only with `masks`.

        With `encoded`, the inputs are what `chain.encode` made of them.
        """
        if self.chain is not None:  # which reads only the layers' settings: switching modes would take a tenth of a step
            return self.chain(self.parameters, self.buffers, x, masks, encoded=encoded)
        self.template.train(training)
        if not training and masks is not None:
            for module in self.template.modules():
                if isinstance(module, techniques.DROPOUT):
                    module.train()  # only dropout: batch norm keeps its running statistics
        return self._run(self.parameters, self.buffers, x, masks)

    @property
    def chain(self) -> Chain | None:
        """The passes of a stack that runs by stacked matrices."""
        return self._run if isinstance(self._run, Chain) else None

    def take(self, members: Sequence[int]) -> Stack:
        """A copy of some of the members."""
        index = torch.as_tensor(members, device=self.rows.device)
        buffers = {name: value[index] for name, value in self.buffers.items()}
        return Stack(self.template, self.rows[index], buffers, self._example, self.technique)

    def to(self, device: Any) -> Stack:
        """The same members on another device, with the technique that is best there."""
        template = copy.deepcopy(self.template).to(device)
        buffers = {name: value.to(device) for name, value in self.buffers.items()}
        return Stack(template, self.rows.to(device), buffers, self._example.to(device))

    def double(self) -> Stack:
        """The same members in double precision."""
        return self._in(torch.float64)

    def float(self) -> Stack:
        """The same members in single precision."""
        return self._in(torch.float32)

    def _in(self, dtype: Any) -> Stack:
        example = self._example.to(dtype)
        buffers = {name: value.to(example) if value.is_floating_point() else value for name, value in self.buffers.items()}
        # For matmul the template gives only the layers; copying it would cost more than a small prediction.
        template = self.template if self.technique == "matmul" else copy.deepcopy(self.template).to(dtype)
        return Stack(template, self.rows.to(dtype), buffers, example, self.technique)

    def with_rows(self, rows: Tensor, buffers: dict[str, Tensor]) -> Stack:
        """The same architecture with other parameters and buffers."""
        return Stack(self.template, rows, buffers, self._example, self.technique)

    def signature(self) -> dict[str, Any]:
        """A description that tells architectures apart: the printed layers, and the shapes of parameters and buffers."""
        shapes = {name: list(value.shape[1:]) for name, value in (self.parameters | self.buffers).items()}
        return {"layers": str(self.template), "shapes": shapes}

    def sample(self) -> Tensor:
        """Outputs for two fixed rows, (members, 2, outputs), which tell forward passes apart."""
        size = self._example[:1].numel()
        rows = torch.linspace(-1.0, 1.0, 2 * size).view(2, *self.input_shape).to(self.rows)
        with torch.no_grad():
            return self(rows.expand(len(self), *rows.shape))

    def module(self, member: int) -> Any:
        """One member as a `torch.nn.Module`, with standardised inputs and outputs."""
        module = copy.deepcopy(self.template)
        state = self.parameters | self.buffers
        with torch.no_grad():
            for name, value in [*module.named_parameters(), *module.named_buffers()]:
                value.copy_(state[name][member])
        return module.eval()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out views and closures, which `__setstate__` makes again, so that estimators can be pickled and copied."""
        here = self.to("cpu")  # a model from a machine with a GPU must open on one without
        return {name: getattr(here, name) for name in ("template", "rows", "buffers", "_example", "technique")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*(state[name] for name in ("template", "rows", "buffers", "_example", "technique")))  # type: ignore[misc]


def initialised(factory: Factory, input_shape: tuple[int, ...], n_outputs: int, seed: int) -> Any:
    """A network whose initial weights depend only on the seed, on every device."""
    # Initialised on the CPU for every device, because a GPU's generator draws other numbers from the same seed.
    with keep_generators("cpu"):
        seed_generator("cpu", seed)
        module = factory(input_shape, n_outputs)
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"network must build a torch.nn.Module, it built a {type(module).__name__}")
    if any(isinstance(p, torch.nn.UninitializedParameter) for p in module.parameters()):
        raise ArgumentError("network must not build lazy modules; it is called with the input shape")
    return module


def observers(module: Any) -> list[tuple[str, Any]]:
    """The layers that look at the training rows before training, by name."""
    return [(name, layer) for name, layer in module.named_modules() if hasattr(layer, "observe")]


def row_of(module: Any) -> Tensor:
    """All trained parameters of a network as one vector."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in trained(module).values()])


def trained(module: Any) -> dict[str, Any]:
    """The parameters of a network that are trained, by name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def buffers_of(module: Any) -> dict[str, Tensor]:
    """The buffers of a network, and its parameters that are not trained."""
    frozen = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
    return frozen | dict(module.named_buffers())


def _check_outputs(stack: Stack, example: Tensor, n_outputs: int) -> None:
    try:
        with torch.no_grad():
            shape = tuple(stack(example.expand(len(stack), *example.shape)).shape)
    except RuntimeError as error:
        raise ShapeError(f"network cannot take rows of shape {tuple(example.shape[1:])}: {error}") from error
    if shape != (len(stack), len(example), n_outputs):
        raise ShapeError(
            f"network must return (rows, {n_outputs}) for this head, it returned {shape[1:]} for {len(example)} rows"
        )

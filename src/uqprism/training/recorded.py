"""Steps on a CPU that are recorded once and replayed, as CUDA graphs are on a GPU, by several threads where there are cores.

A step of small networks is some hundred operations of a few microseconds, and Python starts one at a time, whatever the number
of threads. A recording by `torch.jit.trace` runs without Python, so that threads, each with a part of the members, hardly wait
for each other.

A member's numbers do not depend on the part that it is in. Products of matrices of odd sizes round by where in a line of the
cache their operands begin: here each member has its place in matrices of all members, whichever thread works on it. Operations
by element round the last few numbers in another way than the others: parameters and losses are padded to whole blocks.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any

from uqprism.support.optional import require
from uqprism.training.data import TrainingData
from uqprism.training.heads import Head
from uqprism.training.options import TrainingOptions
from uqprism.training.recorded_layers import Shape, Tensors, layers_of
from uqprism.training.stack import Stack
from uqprism.training.step import VALIDATED, Moments, Stepper

torch = require("torch", extra="deep")
nn = torch.nn

Tensor = Any
LINE, BLOCK = 16, 64  # numbers in single precision in a line of the cache; that operations take at a time, at most
_tracing = threading.Lock()  # filters of warnings belong to the process
LEAST_WORK = 500_000  # products of a weight and a number in a step: with fewer, a thread costs more than it brings


class RecordedStepper(Stepper):
    """A `Stepper` that replays recordings. Parameters and moments are its own until `settle` writes them back."""

    def __init__(self, stack: Stack, moments: Moments, **given: Any) -> None:
        super().__init__(stack, moments, **given)
        self._layers = layers_of(stack, self._data.encoded) or []
        self._shapes = {name: tuple(value.shape[1:]) for name, value in stack.parameters.items()}
        # Of parameters, gradients and moments, a matrix for each parameter, with a row for each member.
        self._values, self._first, self._second = ([_aligned(x) for x in stack.views(rows).values()] for rows in self._common())
        self._slopes = [torch.zeros_like(x) for x in self._values]
        self._totals = torch.zeros_like(self.losses)  # of validation
        self._spaces: dict[int, list[Tensor]] = {}  # by batch size: what layers write
        self._recordings: dict[tuple[Any, int, int], Any] = {}  # by what, for how many members and rows
        self._given: dict[tuple[int, int, int], list[Tensor]] = {}  # by part and batch size: what a recording takes

    @classmethod
    def suits(cls, stack: Stack, data: TrainingData, head: Head, options: TrainingOptions) -> bool:
        """Whether steps can be recorded: on a CPU, of networks with ReLU and a head that knows its gradient."""
        plain = options.max_gradient is None and not options.weight_decay and data.own_scaling is None
        plain = plain and hasattr(torch.jit, "trace")  # which is deprecated: PyTorch may drop it
        return plain and not stack.rows.is_cuda and head.knows_gradient and layers_of(stack, data.encoded) is not None

    def __call__(self, rows: Tensor) -> None:
        """Make one step on row numbers (members, batch)."""
        self._steps([rows], [self._next_rate()], slice(0, len(rows)), threading.Event())

    def together(self, batches: Sequence[Tensor], threads: int, pool: Executor) -> None:
        """Make a step on each of these row numbers, with a part of the members on each of at most so many threads."""
        rates = [self._next_rate() for _ in batches]
        self._divided(self._gradients, batches, threads, pool, lambda *where: self._steps(batches, rates, *where))

    def validated(self, rows: Tensor, threads: int, pool: Executor) -> list[float]:
        """Each member's mean validation loss on row numbers (members, n)."""
        self._totals.zero_()
        batches = rows.split(max(VALIDATED // len(rows), 64), dim=1)
        self._divided(self._judged, batches, threads, pool, lambda *where: self._replay(self._judged, batches, *where))
        return (self._totals / rows.shape[1]).tolist()

    def settle(self, *, moments: bool = False) -> None:
        """Write parameters to the rows of the stack, and moments to those that were given."""
        with torch.no_grad():
            each = list(zip(self._common(), (self._values, self._first, self._second), strict=True))
            for rows, own in each if moments else each[:1]:
                for view, value in zip(self._stack.views(rows).values(), own, strict=True):
                    view.copy_(_cut(value, tuple(view.shape[1:])))

    def _common(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._stack.rows, self._moments.first, self._moments.second

    def _next_rate(self) -> float:
        """The rate of the next step, the same for all members."""
        return float(self._coming.pop()[0]) if isinstance(self._rate, torch.Tensor) else self._rate

    def _divided(
        self,
        what: Callable[..., Tensor],
        batches: Sequence[Tensor],
        threads: int,
        pool: Executor,
        run: Callable[[slice, threading.Event], None],
    ) -> None:
        """Run parts of the members in threads; this one takes the first."""
        members, stop = len(self._stack), threading.Event()
        work = members * batches[0].shape[1] * sum(value[0].numel() for value in self._values)
        count = max(1, min(threads, members, work // LEAST_WORK))
        parts = [slice(members * place // count, members * (place + 1) // count) for place in range(count)]
        for part in parts:  # recorded before the threads start
            for batch in {each.shape[1]: each for each in batches}.values():
                self._recorded(what, batch[part], part)
        others = [pool.submit(run, part, stop) for part in parts[1:]]
        try:
            run(parts[0], stop)
            for other in others:
                other.result()
        except BaseException:  # also Ctrl-C: no thread may go on once this one has left
            stop.set()
            wait(others)
            raise

    def _steps(self, batches: Sequence[Tensor], rates: Sequence[float], part: slice, stop: threading.Event) -> None:
        """Make steps of some members."""
        own = [[x[part] for x in each] for each in (self._values, self._slopes, self._first, self._second)]
        counts = self._moments.steps[part]
        settings = {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
        with torch.no_grad():
            for batch, rate in zip(batches, rates, strict=True):
                self._replay(self._gradients, [batch], part, stop)
                if stop.is_set():
                    return
                counts += 1
                torch._fused_adam_(*own, [], [counts[0]] * len(own[0]), lr=rate, **settings)

    def _replay(self, what: Callable[..., Tensor], batches: Sequence[Tensor], part: slice, stop: threading.Event) -> None:
        """Replay the recording of a method for some members, unless another thread has stopped."""
        # Settings of a thread. Optimisation would take longer than it saves.
        with torch.no_grad(), torch.jit.optimized_execution(False):
            for batch in batches:
                if stop.is_set():
                    return
                recording, given = self._recorded(what, batch[part], part)
                recording(batch[part], *given)

    def _recorded(self, what: Callable[..., Tensor], batch: Tensor, part: slice) -> tuple[Any, list[Tensor]]:
        """The recording, and what it takes after row numbers (members, batch)."""
        members, size = batch.shape
        where, key = (part.start, part.stop, size), (what, members, size)
        if where not in self._given:
            self._given[where] = self._arguments(part, size)
        if key not in self._recordings:
            self._recordings[key] = self._traced(what, [batch, *self._given[where]])
        return self._recordings[key], self._given[where]

    def _arguments(self, part: slice, size: int) -> list[Tensor]:
        """What recordings take after the row numbers: the data, and what belongs to some members."""
        if size not in self._spaces:
            written = [shape for layer in self._layers for shape in layer.spaces(size)]
            written += [(size, self._data.inputs.shape[1]), (size, self._head.n_outputs)]
            self._spaces[size] = [self._values[0].new_zeros(len(self._stack), *shape) for shape in written]
        data = [self._data.inputs, self._data.targets]
        data += [] if self._data.weights is None else [self._data.weights]
        shapes = self._shapes.values()
        views = [_cut(x[part], shape) for each in (self._values, self._slopes) for x, shape in zip(each, shapes, strict=True)]
        return [*data, self.losses[part], self._totals[part], *views, *(space[part] for space in self._spaces[size])]

    def _traced(self, what: Callable[..., Tensor], given: list[Tensor]) -> Any:
        """Record a method, on copies of what it changes."""
        common = {id(x) for x in (self._data.inputs, self._data.targets, self._data.weights)}
        copies = [x if id(x) in common else x.clone() for x in given]
        shape = tuple(given[0].shape)

        def step(*arguments: Tensor) -> Tensor:
            return what(shape, *arguments)

        with _tracing, torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`torch.jit.trace` is deprecated", DeprecationWarning)
            step(*copies)  # which makes what a head makes once, such as constants
            return torch.jit.trace(step, tuple(copies), check_trace=False)

    def _gradients(self, shape: Shape, rows: Tensor, *given: Tensor) -> Tensor:
        """Write the gradients of some members on rows of this shape, and add their losses."""
        (inputs, targets, weights), (losses, _), values, into, spaces = self._named(given)
        *spaces, x, slope = spaces
        flat = rows.reshape(-1)
        torch.index_select(inputs, 0, flat, out=x.flatten(0, 1))
        passed, raw = self._passed(x, values, spaces)
        found, gradient = _in_blocks(self._head.with_gradient, math.prod(shape), raw.flatten(0, 1), targets.index_select(0, flat))
        found, shares = found.view(shape), torch.full(shape, 1.0 / shape[1], dtype=raw.dtype)
        if weights is not None:
            each = weights.index_select(0, flat).view(shape)
            found, shares = found * each, shares * each
        losses += found.double().sum(1)
        torch.mul(gradient.view_as(raw), shares.unsqueeze(-1), out=slope)
        for layer, x, space in reversed(passed):
            slope = layer.backward(values, into, x, slope, space)
        return losses

    def _judged(self, shape: Shape, rows: Tensor, *given: Tensor) -> Tensor:
        """Add the validation losses of some members."""
        (inputs, targets, weights), (_, totals), values, _, spaces = self._named(given)
        *spaces, x, _ = spaces
        flat = rows.reshape(-1)
        torch.index_select(inputs, 0, flat, out=x.flatten(0, 1))
        _, raw = self._passed(x, values, spaces)
        (found,) = _in_blocks(
            lambda *both: (self._head.validation_loss(*both),), math.prod(shape), raw.flatten(0, 1), targets.index_select(0, flat)
        )
        if weights is not None:
            found = found * weights.index_select(0, flat)
        totals += found.view(shape).double().sum(1)
        return totals

    def _named(self, given: Sequence[Tensor]) -> tuple[list[Any], Sequence[Tensor], Tensors, Tensors, Sequence[Tensor]]:
        """The arguments of a recording: data, sums, parameters, gradients, spaces."""
        start, count = 2 + (self._data.weights is not None), len(self._shapes)
        data, sums, rest = [*given[:start], None][:3], given[start : start + 2], given[start + 2 :]
        values, into = (dict(zip(self._shapes, part, strict=True)) for part in (rest[:count], rest[count : 2 * count]))
        return data, sums, values, into, rest[2 * count :]

    def _passed(self, x: Tensor, values: Tensors, spaces: Sequence[Tensor]) -> tuple[list[tuple[Any, Tensor, Any]], Tensor]:
        """The layers with what they were given and their spaces, and the outputs."""
        left, passed = list(spaces), []
        for layer in self._layers:
            own = [left.pop(0) for _ in layer.spaces(1)]
            passed.append((layer, x, own))
            x = layer.forward(values, x, own)
        return passed, x


def _in_blocks(function: Callable[..., tuple[Tensor, ...]], count: int, raw: Tensor, targets: Tensor) -> list[Tensor]:
    """What a function makes of so many outputs and targets, with as many more as fill blocks."""
    short = -count % BLOCK
    padded = nn.functional.pad(raw, (0, 0, 0, short)), nn.functional.pad(targets, (0, short))
    return [found[:count] for found in function(*padded)]


def _aligned(values: Tensor) -> Tensor:
    """A copy of (members, ...) as a matrix whose rows begin with a line of the cache."""
    flat = values.detach().flatten(1)
    padded = flat.new_zeros(len(flat), -(-flat.shape[1] // LINE) * LINE)
    padded[:, : flat.shape[1]] = flat
    return padded


def _cut(padded: Tensor, shape: Shape) -> Tensor:
    """The values of this shape that `_aligned` has padded."""
    return padded[:, : math.prod(shape)].unflatten(1, shape)

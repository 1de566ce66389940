"""One optimisation step of all members: eager on a CPU, a recorded CUDA graph on a GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.support.optional import require
from uqprism.training.optimiser import Moments, adam_step, shorten
from uqprism.training.plan import Plan
from uqprism.training.stack import Stack
from uqprism.training.techniques import Draw

torch = require("torch", extra="deep")

Tensor = Any
WARM_UP = 3  # steps before a recording, in which libraries allocate and choose their kernels


class Stepper:
    """Trains a stack on batches of rows.

    The loss is the sum over members of each one's mean, so that no member's gradient knows of the others.

    Attributes:
        losses: each member's loss, summed over the rows seen since `begin`.
    """

    def __init__(self, stack: Stack, moments: Moments, models: Tensor, seeds: Tensor, plan: Plan) -> None:
        self._stack, self._moments = stack, moments
        self._problem, self._head, self._options = plan.problem, plan.head, plan.options
        self._models = models if plan.problem.shift is not None else None
        self._draw = Draw(seeds, torch.zeros_like(seeds))
        self._together = bool((moments.steps == moments.steps[0]).all())
        self._gradient = torch.zeros_like(stack.rows)
        self._views = list(stack.views(self._gradient).values())
        self.losses = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
        self._ages = torch.zeros(len(stack), 1, device=stack.rows.device)
        self._graphs: dict[int, tuple[Any, Tensor] | None] = {}

    def begin(self, ages: Tensor) -> None:
        """A new epoch, of members that have finished so many."""
        self.losses.zero_()
        self._ages.copy_(ages[:, None])

    def __call__(self, rows: Tensor) -> None:
        """One step on row indices (members, batch)."""
        batch = rows.shape[1]
        if rows.is_cuda and batch not in self._graphs:
            self._graphs[batch] = self._record(rows)
        recorded = self._graphs.get(batch)
        if recorded is None:  # a CPU, or a network that looks at its numbers
            self._step(rows)
            return
        graph, slot = recorded
        slot.copy_(rows)
        graph.replay()

    def _step(self, rows: Tensor) -> None:
        stack, options = self._stack, self._options
        inputs, targets = self._problem.batch(rows, self._models)
        self._draw.counts.copy_(self._moments.steps)
        raw = stack(inputs, training=True, draw=self._draw)
        losses = self._head.loss(raw, targets, self._ages)
        gradients = torch.autograd.grad(losses.mean(1).sum(), list(stack.parameters.values()), allow_unused=True)
        with torch.no_grad():
            for view, gradient in zip(self._views, gradients, strict=True):
                if gradient is not None:
                    view.copy_(gradient)
            self.losses += losses.sum(1)
            if options.max_gradient is not None:
                shorten(self._gradient, options.max_gradient)
            adam_step(
                stack.rows,
                self._gradient,
                self._moments,
                learning_rate=options.learning_rate,
                weight_decay=options.weight_decay,
                together=self._together,
            )

    def _record(self, rows: Tensor) -> tuple[Any, Tensor] | None:
        """A graph of one step, and the slot that its row indices are read from; leaves everything as it was.

        None for a network that cannot be recorded, because it asks the device for a number.
        """
        slot = rows.clone()
        changing = [self._stack.rows, self._moments.first, self._moments.second, self._moments.steps, self.losses]
        changing += list(self._stack.buffers.values())
        before = [x.clone() for x in changing]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self._step(slot)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step(slot)
        except RuntimeError:
            torch.cuda.synchronize()
            graph = None
        for x, kept in zip(changing, before, strict=True):
            x.copy_(kept)
        return None if graph is None else (graph, slot)


def validation_losses(stack: Stack, models: Tensor, plan: Plan, rows_at_once: int = 2048) -> list[float] | None:
    """Each member's mean loss on its validation rows; None where there are none."""
    problem, head = plan.problem, plan.head
    if problem.validation is None:
        return None
    rows = problem.validation.expand(len(problem.training), -1)[models]
    total = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
    with torch.no_grad():
        for part in rows.split(max(rows_at_once // len(stack), 64), dim=1):
            inputs, targets = problem.batch(part, models if problem.shift is not None else None)
            total += head.validation_loss(stack(inputs), targets).double().sum(1)
    return (total / rows.shape[1]).tolist()


_in_use, _lock = [0], threading.Lock()
_before: list[tuple[Any, str, Any]] = []


@contextmanager
def full_precision(device: Any) -> Iterator[None]:
    """No TF32 in matrix products or convolutions on a GPU, whatever the process has set, until the last such block ends."""
    if torch.device(device).type != "cuda":
        yield
        return
    with _lock:
        _in_use[0] += 1
        if _in_use[0] == 1:
            _before.extend((where, name, getattr(where, name)) for where, name in _precisions())
            for where, name, _ in _before:
                setattr(where, name, "ieee" if name == "fp32_precision" else False)
    try:
        yield
    finally:
        with _lock:
            _in_use[0] -= 1
            if _in_use[0] == 0:
                for where, name, value in _before:
                    setattr(where, name, value)
                _before.clear()


def _precisions() -> list[tuple[Any, str]]:
    """Where PyTorch keeps these settings: each operator has its own since 2.9, which must not be mixed with the older ones."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if hasattr(matmul, "fp32_precision") and hasattr(cudnn, "conv"):
        return [(matmul, "fp32_precision"), (cudnn.conv, "fp32_precision")]
    return [(matmul, "allow_tf32"), (cudnn, "allow_tf32")]

"""One optimisation step of all members: eager on a CPU, a recorded CUDA graph on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uqprism.storage import require
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
        self._views, start = [], 0
        for parameter in stack.parameters.values():
            stop = start + parameter[0].numel()
            self._views.append(self._gradient[:, start:stop].view(parameter.shape))
            start = stop
        self.losses = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
        self._ages = torch.zeros(len(stack), 1, device=stack.rows.device)
        self._graphs: dict[int, tuple[Any, Tensor]] = {}

    def begin(self, ages: Tensor) -> None:
        """A new epoch, of members that have finished so many."""
        self.losses.zero_()
        self._ages.copy_(ages[:, None])

    def __call__(self, rows: Tensor) -> None:
        """One step on row indices (members, batch)."""
        if rows.device.type != "cuda":
            self._step(rows)
            return
        batch = rows.shape[1]
        if batch not in self._graphs:
            self._graphs[batch] = self._record(rows)
        graph, slot = self._graphs[batch]
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

    def _record(self, rows: Tensor) -> tuple[Any, Tensor]:
        """A graph of one step, and the slot that its row indices are read from; leaves everything as it was."""
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
        with torch.cuda.graph(graph):
            self._step(slot)
        for x, kept in zip(changing, before, strict=True):
            x.copy_(kept)
        return graph, slot


def validation_losses(stack: Stack, models: Tensor, plan: Plan, rows_at_once: int = 2048) -> Tensor:
    """Each member's mean loss on its validation rows, float64."""
    problem, head = plan.problem, plan.head
    assert problem.validation is not None  # noqa: S101  the caller looks
    rows = problem.validation.expand(len(problem.training), -1)[models]
    total = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
    with torch.no_grad():
        for part in rows.split(max(rows_at_once // len(stack), 64), dim=1):
            inputs, targets = problem.batch(part, models if problem.shift is not None else None)
            total += head.validation_loss(stack(inputs), targets).double().sum(1)
    return total / rows.shape[1]


@contextmanager
def full_precision() -> Iterator[None]:
    """No TF32 in matrix products or convolutions, whatever the process has set, until the end of the block."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before

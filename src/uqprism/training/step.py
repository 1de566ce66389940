"""One optimisation step of all members with Adam: eager on a CPU, a recorded CUDA graph on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uqprism.support.optional import require
from uqprism.training.data import TrainingData
from uqprism.training.heads import Head
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import DropoutMasks
from uqprism.training.stack import Stack

torch = require("torch", extra="deep")
# The function behind `torch.optim.Adam`: it takes rows of matrices as parameters, and steps by member.
adam = require("torch.optim.adam", extra="deep").adam

Tensor = Any
VALIDATED = 2048  # rows of all members at a time
WARM_UP = 3  # steps before a graph is recorded, in which libraries allocate memory and choose kernels


@dataclass
class Moments:
    """Adam's running means, in the shape of the rows.

    Attributes:
        first: of the gradients.
        second: of their squares.
        steps: the steps that each member has made, float32 as PyTorch's fused kernel requires.
    """

    first: Tensor
    second: Tensor
    steps: Tensor

    @classmethod
    def zeros(cls, rows: Tensor) -> Moments:
        """The moments before the first step."""
        return cls(torch.zeros_like(rows), torch.zeros_like(rows), torch.zeros(len(rows), device=rows.device))

    def take(self, members: Tensor) -> Moments:
        """A copy of the moments of some members."""
        return Moments(self.first[members], self.second[members], self.steps[members])


def adam_step(
    rows: Tensor, gradient: Tensor, moments: Moments, *, learning_rate: float | Tensor, weight_decay: float, together: bool
) -> None:
    """Update the rows in place.

    All operations are by element and the bias correction uses the member's own steps: each row moves as if it were alone.
    With `together`, all members have made the same number of steps, and one call updates all of them. A tensor of learning
    rates has one for each member.
    """
    if weight_decay:
        # Before Adam, as in AdamW (Loshchilov and Hutter 2019); Adam's own decay would pass through the moments.
        rate = learning_rate[:, None] if isinstance(learning_rate, torch.Tensor) else learning_rate
        rows.mul_(1.0 - rate * weight_decay)
    every = (rows, gradient, moments.first, moments.second)
    if together:
        rate = learning_rate[0] if isinstance(learning_rate, torch.Tensor) else learning_rate
        _adam([[x] for x in every], [moments.steps[0]], rate)
        moments.steps[1:] = moments.steps[0]  # Adam has counted the first member's step only
    elif isinstance(learning_rate, torch.Tensor):
        for i, rate in enumerate(learning_rate):
            _adam([[x[i]] for x in every], [moments.steps[i]], rate)
    else:
        _adam([list(x) for x in every], list(moments.steps), learning_rate)


def _adam(tensors: list[list[Tensor]], steps: list[Tensor], rate: float | Tensor) -> None:
    adam(
        *tensors,
        [],
        steps,
        fused=True,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )


def clip_gradients(gradient: Tensor, longest: float) -> None:
    """Scale each row that is longer than this down to this length."""
    lengths = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
    gradient.mul_((longest / lengths.clamp_min(1e-30)).clamp_max(1.0))


class Stepper:
    """Trains a stack on batches of rows.

    The loss is the sum over members of each one's mean, so that a member's gradient does not depend on the others.

    Attributes:
        losses: each member's loss, summed over the rows since `begin`.
    """

    def __init__(
        self,
        stack: Stack,
        moments: Moments,
        *,
        members: Tensor,
        seeds: Tensor,
        data: TrainingData,
        head: Head,
        options: TrainingOptions,
    ) -> None:
        self._stack, self._moments = stack, moments
        self._data, self._head, self._options = data, head, options
        self._members = members if data.own_scaling is not None else None
        self._masks = DropoutMasks(seeds, torch.zeros_like(seeds))
        self._together = bool((moments.steps == moments.steps[0]).all())  # a restart sets one member's steps back to zero
        self._gradient = torch.zeros_like(stack.rows)
        # One matrix in the layout of the rows, which Adam updates at once.
        self._views = stack.views(self._gradient)
        # Kept on the device: reading a loss at every step would make the CPU wait for the GPU.
        self.losses = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
        self._ages = torch.zeros(len(stack), 1, device=stack.rows.device)
        self._graphs: dict[int, tuple[Any, Tensor] | None] = {}  # by batch size, because a graph has fixed shapes
        # The members' rates in this step, a tensor that a graph can read; a constant rate is a number.
        constant = options.schedule == "constant"
        precision = torch.float32 if stack.rows.is_cuda else stack.rows.dtype  # PyTorch's kernel on a device takes no other
        self._rate: float | Tensor = (
            options.learning_rate if constant else torch.zeros(len(stack), device=stack.rows.device, dtype=precision)
        )
        self._coming: list[Tensor] = []  # the rates of the steps to come in this epoch, the next one last

    def begin(self, ages: Tensor, steps: int) -> None:
        """Start an epoch of so many steps, of members that have finished `ages` epochs."""
        self.losses.zero_()
        self._ages.copy_(ages[:, None])
        if isinstance(self._rate, torch.Tensor):
            within = torch.arange(steps, device=ages.device, dtype=torch.float64)[:, None] / steps
            done = (ages + within) / self._options.max_epochs
            rates = self._options.learning_rate * 0.5 * (1.0 + torch.cos(math.pi * done))
            self._coming = list(rates.to(self._rate).flip(0))

    def settle(self, *, moments: bool = False) -> None:
        """Write parameters that a subclass keeps of its own to the stack's rows, and moments if that is asked."""

    def __call__(self, rows: Tensor) -> None:
        """Make one step on row numbers (members, batch)."""
        batch = rows.shape[1]
        if isinstance(self._rate, torch.Tensor):
            self._rate.copy_(self._coming.pop())
        if rows.is_cuda and batch not in self._graphs:
            self._graphs[batch] = self._record(rows)
        recorded = self._graphs.get(batch)
        if recorded is None:  # on a CPU, or for a network that cannot be recorded
            self._step(rows)
            return
        graph, slot = recorded
        slot.copy_(rows)
        graph.replay()

    def _step(self, rows: Tensor) -> None:
        stack, options = self._stack, self._options
        inputs, targets = self._data.batch(rows, self._members)
        self._masks.counts.copy_(self._moments.steps)  # the member's own steps: its masks are those that it would have alone
        losses = self._backward(inputs, targets, rows)
        with torch.no_grad():
            self.losses += losses.sum(1)
            if options.max_gradient is not None:
                clip_gradients(self._gradient, options.max_gradient)
            adam_step(
                stack.rows,
                self._gradient,
                self._moments,
                learning_rate=self._rate,
                weight_decay=options.weight_decay,
                together=self._together,
            )

    def _backward(self, inputs: Tensor, targets: Tensor, rows: Tensor) -> Tensor:
        """Each member's losses (members, batch); their gradients go where Adam reads them."""
        stack, chain, encoded = self._stack, self._stack.chain, self._data.encoded
        if chain is not None and self._head.knows_gradient:
            raw = chain.training(stack.parameters, stack.buffers, inputs, self._masks, encoded=encoded)
            losses, gradient = self._head.with_gradient(raw, targets)
            shares = self._data.weighted(torch.full_like(losses, 1.0 / rows.shape[1]), rows)
            chain.backward(gradient.mul_(shares.unsqueeze(-1)), self._views)
            return self._data.weighted(losses, rows)
        found: list[Tensor] = []

        def total(raw: Tensor) -> Tensor:
            found.append(self._data.weighted(self._head.loss(raw, targets, self._ages), rows))
            return found[0].mean(1).sum()

        backward(stack, inputs, total, self._views, masks=self._masks, encoded=encoded)
        return found[0].detach()

    def _record(self, rows: Tensor) -> tuple[Any, Tensor] | None:
        """The graph of one step and the tensor that it reads row numbers from; changes nothing else.

        None for a network that cannot be recorded because it reads a number from the device.
        """
        slot = rows.clone()
        changing = [self._stack.rows, self._moments.first, self._moments.second, self._moments.steps, self.losses]
        changing += list(self._stack.buffers.values())
        before = [x.clone() for x in changing]  # the steps of the warm-up really train; what they change is put back
        side = torch.cuda.Stream()  # PyTorch asks for a warm-up on a stream other than the default one
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._step(slot)
        torch.cuda.current_stream().wait_stream(side)
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


def backward(
    stack: Stack,
    inputs: Tensor,
    loss: Callable[[Tensor], Tensor],
    into: dict[str, Tensor],
    *,
    masks: DropoutMasks | None = None,
    encoded: bool = False,
) -> None:
    """Write the gradients for the stacked parameters, by name, of `loss`, which makes one number of raw outputs.

    With `masks` as in training, otherwise as in prediction.
    """
    if (chain := stack.chain) is not None:
        raw = chain.training(stack.parameters, stack.buffers, inputs, masks, encoded=encoded).requires_grad_()
        chain.backward(torch.autograd.grad(loss(raw), raw)[0], into)
        return
    parameters = list(stack.parameters.values())
    total = loss(stack(inputs, training=masks is not None, masks=masks))
    gradients = torch.autograd.grad(total, parameters, allow_unused=True)
    with torch.no_grad():
        for view, gradient in zip(into.values(), gradients, strict=True):
            # A parameter that the outputs do not depend on keeps its gradient of zero.
            if gradient is not None:
                view.copy_(gradient)


def validation_losses(
    stack: Stack, members: Tensor, data: TrainingData, head: Head, rows_at_once: int = VALIDATED
) -> list[float] | None:
    """Each member's mean loss on its validation rows; None without validation rows."""
    if data.validation is None:
        return None
    rows = data.validation.expand(len(data.training), -1)[members]
    total = torch.zeros(len(stack), device=stack.rows.device, dtype=torch.float64)
    with torch.no_grad():
        # The activations of all members are in memory together.
        for part in rows.split(max(rows_at_once // len(stack), 64), dim=1):
            inputs, targets = data.batch(part, members if data.own_scaling is not None else None)
            total += data.weighted(head.validation_loss(stack(inputs, encoded=data.encoded), targets), part).double().sum(1)
    return (total / rows.shape[1]).tolist()

"""Everything that changes in training, for all members: what a checkpoint holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from uqprism.support.optional import require
from uqprism.training.history import Curves, Event
from uqprism.training.optimiser import Moments
from uqprism.training.stack import Stack

torch = require("torch", extra="deep")

Tensor = Any
Tensors = dict[str, Tensor]


@dataclass
class State:
    """Members by row; lists have one entry per member.

    Attributes:
        rows, buffers, moments: the members as they are now.
        best_rows, best_buffers: as they were in their best epoch.
        best_losses: validation loss of that epoch.
        best_epochs: which it was, from 1; 0 before the first.
        ages: epochs that each member has finished since it (re)started.
        seeds: each member's own.
        restarts: how often it started again.
        waiting: epochs since its best.
        learning: whether it still is.
        running: the members in the stack at work; some of them may have stopped learning.
        curves: losses by epoch.
        events: what did not go as planned.
        epoch: of the run.
    """

    rows: Tensor
    buffers: Tensors
    moments: Moments
    best_rows: Tensor
    best_buffers: Tensors
    seeds: list[int]
    best_losses: list[float] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    learning: list[bool] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    epoch: int = 0

    @classmethod
    def of(cls, stack: Stack, seeds: list[int]) -> State:
        """Before the first epoch."""
        count = len(stack)
        return cls(
            rows=stack.rows.clone(),
            buffers=_copied(stack.buffers),
            moments=Moments.zeros(stack.rows),
            best_rows=stack.rows.clone(),
            best_buffers=_copied(stack.buffers),
            seeds=list(seeds),
            best_losses=[float("inf")] * count,
            best_epochs=[0] * count,
            ages=[0] * count,
            restarts=[0] * count,
            waiting=[0] * count,
            learning=[True] * count,
            running=list(range(count)),
            curves=[Curves() for _ in range(count)],
        )

    def keep(self, stack: Stack, moments: Moments) -> None:
        """Take over the numbers of the stack at work."""
        at = torch.tensor(self.running, device=self.rows.device)
        self.rows[at] = stack.rows
        self.moments.first[at], self.moments.second[at] = moments.first, moments.second
        self.moments.steps[at] = moments.steps
        for name, value in stack.buffers.items():
            self.buffers[name][at] = value

    def keep_best(self, stack: Stack, members: list[int]) -> None:
        """Remember the numbers of these members, as they are in the stack at work, as their best."""
        if not members:
            return
        at = torch.tensor(members, device=self.rows.device)
        places = {member: place for place, member in enumerate(self.running)}
        inside = torch.tensor([places[member] for member in members], device=self.rows.device)
        self.best_rows[at] = stack.rows[inside]
        for name, value in stack.buffers.items():
            self.best_buffers[name][at] = value[inside]

    def begin_again(self, member: int, seed: int, row: Tensor, buffers: Tensors) -> None:
        """A member from fresh weights; the stack at work must have been kept before.

        Its best weights stay until an epoch of its new life has ended, in case none ever does.
        """
        self.rows[member] = row
        for name, value in buffers.items():
            self.buffers[name][member] = value
        for moment in (self.moments.first, self.moments.second, self.moments.steps):
            moment[member] = 0
        self.seeds[member] = seed
        self.restarts[member] += 1
        self.ages[member] = self.waiting[member] = 0
        self.best_losses[member] = float("inf")
        self.learning[member] = True
        self.curves[member] = Curves()

    def tensors(self) -> Tensors:
        """The arrays, by name."""
        found = {"rows": self.rows, "best_rows": self.best_rows, "first": self.moments.first}
        found |= {"second": self.moments.second, "steps": self.moments.steps}
        for kind, buffers in (("buffer", self.buffers), ("best_buffer", self.best_buffers)):
            found |= {f"{kind}.{name}": value for name, value in buffers.items()}
        return found

    def restore(self, tensors: Tensors) -> None:
        """Overwrite the arrays by those of a file."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])


COUNTERS = ("seeds", "best_losses", "best_epochs", "ages", "restarts", "waiting", "learning", "running", "epoch")


def _copied(buffers: Tensors) -> Tensors:
    return {name: value.clone() for name, value in buffers.items()}

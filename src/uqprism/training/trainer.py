"""Training all members together: epochs, early stopping, restarts, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uqprism.errors import TrainingError
from uqprism.support.optional import require
from uqprism.training.checkpoints import Checkpoints
from uqprism.training.history import Event, History
from uqprism.training.optimiser import Moments
from uqprism.training.plan import Plan
from uqprism.training.randomness import ORDER, fresh_seed, hashed, orders, seed_generator
from uqprism.training.stack import Stack, held, initialised, row_of
from uqprism.training.state import State
from uqprism.training.step import Stepper, validation_losses
from uqprism.training.threads import Threads, kept

torch = require("torch", extra="deep")

Tensor = Any
MOST_RESTARTS = 5
REPACK = 0.75  # when this part of the stack or less is still learning, the others leave it


@dataclass
class Run:
    """One training run: the state of all members, and the stack of those at work."""

    plan: Plan
    checkpoints: Checkpoints
    stack: Stack
    state: State

    def __post_init__(self) -> None:
        self._template, self.threads = self.stack, Threads(self.stack.technique)
        self._pack()

    def finish(self, tell: Callable[[State], None]) -> tuple[Stack, History]:
        """Train until every member has stopped; Ctrl-C keeps the best so far."""
        state = self.state
        try:
            with kept():
                while any(state.learning):
                    self._epoch()
                    tell(state)
                    self._save()
        except KeyboardInterrupt:
            self._interrupted()
        technique = self.stack.technique
        history = History(tuple(state.seeds), tuple(state.curves), tuple(state.best_epochs), tuple(state.events), technique)
        return self._template.with_rows(state.best_rows, state.best_buffers), history

    def _save(self) -> None:
        """A checkpoint after every so many epochs, and at the end."""
        if self.checkpoints.due(self.state.epoch) or not any(self.state.learning):
            self.state.keep(self.stack, self.moments)
            self.checkpoints.save(self.state)

    def _pack(self) -> None:
        """Put the members that are running into one stack of their own."""
        state = self.state
        at = torch.tensor(state.running, device=state.rows.device)
        buffers = {name: value[at] for name, value in state.buffers.items()}
        self.stack = self._template.with_rows(state.rows[at].clone(), buffers)
        self.moments: Moments = state.moments.take(at)
        self.models = at
        self.seeds = torch.tensor([state.seeds[i] for i in state.running], device=at.device)
        self.stepper = Stepper(self.stack, self.moments, at, self.seeds, self.plan)

    def _epoch(self) -> None:
        """One pass over each member's rows, in an order of its own, and what follows from the losses."""
        state, running = self.state, self.state.running
        ages = torch.tensor([state.ages[i] for i in running], device=self.models.device)
        rows = self.plan.problem.training[self.models]
        order = torch.gather(rows, 1, orders(self.seeds, ORDER, ages, rows.shape[1]))
        # PyTorch's own dropout draws from its generator: a resumed run must find it as the first one did.
        seed_generator(self.models.device, int(hashed(self.seeds, ORDER, ages).sum()) & (2**63 - 1))
        self.stepper.begin(ages)
        for batch in order.tensor_split(-(-rows.shape[1] // self.plan.options.batch_size), dim=1):
            self.threads(self.stepper, batch)
        training = (self.stepper.losses / rows.shape[1]).tolist()
        validation = validation_losses(self.stack, self.models, self.plan)
        finite = torch.isfinite(self.stack.rows).all(1).tolist()
        state.epoch += 1
        self._judge(training, validation, finite)

    def _judge(self, training: list[float], validation: list[float] | None, finite: list[bool]) -> None:
        """Which members improved, stopped or diverged."""
        state = self.state
        losses = training if validation is None else validation
        places = {member: place for place, member in enumerate(state.running) if state.learning[member]}
        sound = {m: p for m, p in places.items() if finite[p] and math.isfinite(training[p]) and math.isfinite(losses[p])}
        warming = {m for m in sound if state.ages[m] < self.plan.head.warm_up_epochs}
        better = {m for m, p in sound.items() if validation is None or m in warming or losses[p] < state.best_losses[m]}
        state.keep_best(self.stack, sorted(better))  # before it is noted: Ctrl-C may come between
        for member, place in sound.items():
            state.ages[member] += 1
            state.curves[member].training.append(training[place])
            if validation is not None:
                state.curves[member].validation.append(validation[place])
            state.waiting[member] += 1
            if member in better:
                state.best_losses[member] = math.inf if member in warming else losses[place]
                state.best_epochs[member], state.waiting[member] = state.ages[member], 0
            state.learning[member] = not self._finished(member, validation is not None)
        self._repack([member for member in places if member not in sound])

    def _finished(self, member: int, validated: bool) -> bool:
        """True after the last epoch, or without progress for too long."""
        state, options = self.state, self.plan.options
        tired = validated and options.patience is not None and state.waiting[member] >= options.patience
        return tired or state.ages[member] >= options.max_epochs

    def _repack(self, diverged: list[int]) -> None:
        """Start the diverged again; once enough members have stopped, leave them out."""
        state = self.state
        still = [member for member in state.running if state.learning[member]]
        if diverged or (still and len(still) <= REPACK * len(state.running)):
            state.keep(self.stack, self.moments)
            for member in diverged:
                self._restart(member)
            state.running = still
            self._pack()

    def _restart(self, member: int) -> None:
        """Fresh weights and another seed for a member whose loss is no longer a number."""
        state = self.state
        if state.restarts[member] >= MOST_RESTARTS:
            raise TrainingError(
                f"member {member} diverged {MOST_RESTARTS + 1} times, each time from fresh weights; lower learning_rate "
                f"(now {self.plan.options.learning_rate:g}), set max_gradient, or look for extreme rows in the data"
            )
        epoch = state.ages[member] + 1
        seed = fresh_seed(state.seeds[member], state.restarts[member])
        shape = tuple(self.plan.problem.inputs.shape[1:])
        module = initialised(self.plan.factory, shape, self.plan.head.n_outputs, seed).to(state.rows)
        state.begin_again(member, seed, row_of(module), held(module))
        self.plan.problem.split_again(member, seed, self.plan.options)
        message = f"member {member} diverged in epoch {epoch} (its loss was not finite) and was restarted with a fresh seed"
        state.events.append(Event("restarted", member, epoch, message).warn())

    def _interrupted(self) -> None:
        """Keep what was reached; where a member has finished no epoch there is nothing to keep, and the interrupt goes on."""
        state = self.state
        if 0 in state.best_epochs:
            raise KeyboardInterrupt from None
        message = f"training was interrupted after {state.epoch} epochs: each member has its best weights so far"
        state.events.append(Event("interrupted", None, state.epoch, message).warn())

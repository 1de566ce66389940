"""The training loop of all members: epochs, early stopping, restarts, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from uqprism.errors import TrainingError
from uqprism.support.optional import require
from uqprism.training.checkpoints import Checkpoints, State
from uqprism.training.data import TrainingData
from uqprism.training.device import Threads, share_of_cores, torch_threads
from uqprism.training.heads import Head
from uqprism.training.history import Event, History
from uqprism.training.networks import Factory
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import ORDER, fresh_seed, hashed, orders, seed_generator
from uqprism.training.recorded import RecordedStepper
from uqprism.training.stack import Stack, buffers_of, initialised, observers, row_of
from uqprism.training.step import Moments, Stepper, validation_losses

torch = require("torch", extra="deep")

Tensor = Any
MOST_RESTARTS = 5  # of one member; after that the options or the data are at fault, not a seed
LATE = 0.1  # a best epoch in the last tenth is a sign that more epochs would help
REPACK = 0.75  # once this share of the stack or less is still learning, the other members are removed from it


@dataclass
class Trainer:
    """One training run: the state of all members, and the stack of those that are running.

    Attributes:
        data: the data and each member's rows.
        factory: the function that builds a network.
        head: what the networks predict, and the loss.
        options: the options of training.
        checkpoints: where checkpoints are written.
        stack: the members that are running.
        state: the state of all members.
        lengths: epochs that each member trains; None for `max_epochs`, or fewer with early stopping.
    """

    data: TrainingData
    factory: Factory
    head: Head
    options: TrainingOptions
    checkpoints: Checkpoints
    stack: Stack
    state: State
    lengths: list[int] | None = None

    def __post_init__(self) -> None:
        self._template, self.threads = self.stack, Threads(self.stack.technique)
        self._passed = self.data.encode(self.stack)
        # A single network may have several threads for each of its operations instead.
        self._recorded = len(self.stack) > 1 and RecordedStepper.suits(self.stack, self._passed, self.head, self.options)
        self._pack()

    def run(self, show: Callable[[State], None]) -> tuple[Stack, History]:
        """Train until every member has stopped; Ctrl-C keeps the best epochs so far."""
        state = self.state
        try:
            # The number of PyTorch's threads, which changes in here, belongs to the process.
            with torch_threads(), share_of_cores() as self._cores, ThreadPoolExecutor(initializer=_single) as self._pool:
                while any(state.learning):
                    self._epoch()
                    show(state)
                    self._save()
        except KeyboardInterrupt:
            self._interrupted()
        self._tell_capped()
        technique = self.stack.technique
        history = History(tuple(state.seeds), tuple(state.curves), tuple(state.best_epochs), tuple(state.events), technique)
        # The template has all members, the stack only those that still run.
        return self._template.with_rows(state.best_rows, state.best_buffers), history

    def _tell_capped(self) -> None:
        """Warn if members were still improving when they reached `max_epochs`; the end of a cosine schedule is no cap."""
        state, options = self.state, self.options
        if options.patience is None or options.patience > options.max_epochs or options.schedule != "constant":
            return
        late = (1.0 - LATE) * options.max_epochs
        capped = [
            member
            for member, curve in enumerate(state.curves)
            if curve.validation and state.ages[member] >= options.max_epochs and state.best_epochs[member] > late
        ]
        if 2 * len(capped) >= len(state.curves):
            message = (
                f"{len(capped)} of {len(state.curves)} members were still improving when they reached max_epochs="
                f"{options.max_epochs}: raise it, or choose schedule='cosine', which ends at max_epochs"
            )
            state.events.append(Event("capped", None, state.epoch, message).warn())

    def _save(self) -> None:
        """Write a checkpoint if one is due, and at the end."""
        if self.checkpoints.due(self.state.epoch) or not any(self.state.learning):
            self._keep()  # the state is not updated at every step, only where it is needed
            self.checkpoints.save(self.state)

    def _keep(self) -> None:
        self.stepper.settle(moments=True)
        self.state.keep(self.stack, self.moments)

    def _pack(self) -> None:
        """Put the running members into a stack of their own."""
        state = self.state
        at = torch.tensor(state.running, device=state.rows.device)
        buffers = {name: value[at] for name, value in state.buffers.items()}
        self.stack = self._template.with_rows(state.rows[at], buffers)
        self.moments: Moments = state.moments.take(at)
        # After a restart members have made different numbers of steps.
        recorded = self._recorded and bool((self.moments.steps == self.moments.steps[0]).all())
        self.members = at
        self.seeds = torch.tensor([state.seeds[i] for i in state.running], device=at.device)
        self.stepper = (RecordedStepper if recorded else Stepper)(
            self.stack, self.moments, members=at, seeds=self.seeds, data=self._passed, head=self.head, options=self.options
        )

    def _epoch(self) -> None:
        """Pass once over each member's rows, in its own order, and act on the losses."""
        state, running = self.state, self.state.running
        ages = torch.tensor([state.ages[i] for i in running], device=self.members.device)
        rows = self.data.training[self.members]
        order = torch.gather(rows, 1, orders(self.seeds, ORDER, ages, rows.shape[1]))
        # PyTorch's own dropout draws from this generator: a resumed run must draw what the first one drew.
        seed_generator(self.members.device, int(hashed(self.seeds, ORDER, ages).sum()) & (2**63 - 1))
        # Of nearly equal size: a small last batch would have a noisy gradient.
        batches = order.tensor_split(-(-rows.shape[1] // self.options.batch_size), dim=1)
        self.stepper.begin(ages, len(batches))
        self._steps(batches)
        training = (self.stepper.losses / rows.shape[1]).tolist()
        validation = self._validation()
        self.stepper.settle()
        # The loss was computed before the step, which may have ruined the weights.
        finite = torch.isfinite(self.stack.rows.sum(1)).tolist()
        state.epoch += 1
        self._judge(training, validation, finite)

    def _steps(self, batches: Sequence[Tensor]) -> None:
        """Make a step on each batch, with as many threads as this training may use now."""
        threads = self._cores()
        if isinstance(self.stepper, RecordedStepper):
            torch.set_num_threads(1)
            self.stepper.together(batches, threads, self._pool)
        else:
            for batch in batches:
                self.threads(self.stepper, batch, threads)

    def _validation(self) -> list[float] | None:
        """Each member's mean loss on its validation rows; None without validation rows."""
        if not isinstance(self.stepper, RecordedStepper) or self.data.validation is None:
            return validation_losses(self.stack, self.members, self._passed, self.head)
        kept = self.data.validation.expand(len(self.data.training), -1)[self.members]
        return self.stepper.validated(kept, self._cores(), self._pool)

    def _judge(self, training: list[float], validation: list[float] | None, finite: list[bool]) -> None:
        """Note which members improved, stopped or diverged."""
        state = self.state
        losses = training if validation is None else validation
        # Members that have stopped stay in the stack until it is packed anew; their losses do not count.
        places = {member: place for place, member in enumerate(state.running) if state.learning[member]}
        sound = {m: p for m, p in places.items() if finite[p] and math.isfinite(training[p]) and math.isfinite(losses[p])}
        if validation is not None and self.options.stopping == "ensemble":
            losses = self._shared(losses, sound)
        warming = {m for m in sound if state.ages[m] < self.head.warm_up_epochs}
        # Without validation the latest epoch counts as the best.
        better = {m for m, p in sound.items() if validation is None or m in warming or losses[p] < state.best_losses[m]}
        state.keep_best(self.stack, sorted(better))  # before the state says so, in case of Ctrl-C in between
        for member, place in sound.items():
            state.ages[member] += 1
            state.curves[member].training.append(training[place])
            if validation is not None:
                state.curves[member].validation.append(validation[place])
            state.waiting[member] += 1
            if member in better:
                # The first epoch after the warm-up always counts as better, since the warm-up does not train the variance.
                state.best_losses[member] = math.inf if member in warming else losses[place]
                state.best_epochs[member], state.waiting[member] = state.ages[member], 0
            state.learning[member] = not self._finished(member, validation is not None)
        self._repack([member for member in places if member not in sound])

    def _shared(self, losses: list[float], sound: dict[int, int]) -> list[float]:
        """The mean loss of each member's ensemble, in place of its own."""
        together: dict[int, list[int]] = {}
        for member, place in sound.items():
            together.setdefault(member // self.options.n_members, []).append(place)
        shared = list(losses)
        for places in together.values():
            mean = sum(losses[place] for place in places) / len(places)
            for place in places:
                shared[place] = mean
        return shared

    def _finished(self, member: int, validated: bool) -> bool:
        """Whether a member has trained all epochs, or has not improved for `patience` epochs."""
        state, options = self.state, self.options
        stopped = validated and options.patience is not None and state.waiting[member] >= options.patience
        return stopped or state.ages[member] >= (options.max_epochs if self.lengths is None else self.lengths[member])

    def _repack(self, diverged: list[int]) -> None:
        """Restart the diverged members, and remove stopped members from the stack once they are many."""
        state = self.state
        still = [member for member in state.running if state.learning[member]]
        # Not for every member that stops: a new stack costs copies, and on a GPU new graphs.
        if diverged or (still and len(still) <= REPACK * len(state.running)):
            self._keep()
            for member in diverged:
                self._restart(member)
            state.running = still
            self._pack()

    def _restart(self, member: int) -> None:
        """Restart a member whose loss is not finite, with fresh weights and another seed."""
        state = self.state
        if state.restarts[member] >= MOST_RESTARTS:
            raise TrainingError(
                f"member {member} diverged {MOST_RESTARTS + 1} times, each time from fresh weights; lower learning_rate "
                f"(now {self.options.learning_rate:g}), set max_gradient, or look for extreme rows in the data"
            )
        epoch = state.ages[member] + 1
        seed = fresh_seed(state.seeds[member], state.restarts[member])
        shape = tuple(self.data.inputs.shape[1:])
        module = initialised(self.factory, shape, self.head.n_outputs, seed).to(state.rows)
        # What layers have observed in the data stays.
        seen = tuple(f"{name}." for name, _ in observers(module))
        buffers = {name: value for name, value in buffers_of(module).items() if not name.startswith(seen)}
        state.restart(member, seed, row_of(module), buffers)
        # Everything about a member follows from its seed, its validation rows too.
        self.data.split_again(member, seed, self.options)
        message = f"member {member} diverged in epoch {epoch} (its loss was not finite) and was restarted with a fresh seed"
        state.events.append(Event("restarted", member, epoch, message).warn())

    def _interrupted(self) -> None:
        """Record the interruption; if a member has not finished an epoch, raise it again."""
        state = self.state
        if 0 in state.best_epochs:
            raise KeyboardInterrupt from None
        message = f"training was interrupted after {state.epoch} epochs: each member keeps its best epoch so far"
        state.events.append(Event("interrupted", None, state.epoch, message).warn())


def _single() -> None:
    """In a thread that works beside others, let PyTorch use no more."""
    torch.set_num_threads(1)

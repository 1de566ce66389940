"""Draws from the posterior of all members at once by microcanonical Langevin dynamics (Robnik et al. 2023, MCLMC).

Every member starts from its trained weights and moves on its own: a velocity of constant length is turned by the gradient of
the energy, minus the log posterior, and a little at random. The energy is that of all training rows, so that a step costs a pass
over the table: this is for small tables. Weights have independent Gaussian priors, as wide as their layer's initial weights.

No step is accepted or rejected. The step size is tuned so that the energy is conserved well enough, and the rate of the random
turns so that the velocity forgets its direction over the width of the posterior.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from uqprism.support.optional import require
from uqprism.support.progress import progress_bar
from uqprism.training.data import TrainingData
from uqprism.training.heads import Head
from uqprism.training.history import Event
from uqprism.training.networks import Factory
from uqprism.training.options import TrainingOptions
from uqprism.training.randomness import DRAWS, hashed
from uqprism.training.stack import Stack, initialised, trained
from uqprism.training.step import backward

torch = require("torch", extra="deep")

Tensor = Any
Floats = np.ndarray[Any, np.dtype[np.float64]]
WIDTH = 2.5  # of a prior: linear layers begin with 0.58 / sqrt(inputs), activations keep their size with 1.41 / sqrt(inputs)
FRESH = 8  # networks that say how wide a prior is
ERROR = 5e-4  # of the energy in a step: its variance for each parameter (Robnik et al. 2023)
MEMORY, TRUST = 150.0, 1.5  # of the step size's average, in steps; spread of the logarithm of errors that it believes
BLOCK = 4096  # rows of all members that pass the networks together
ROWS, SHARE = 256, 0.9  # rows whose predictions are judged, and the share of them that must be as good as said
GOOD = 1.1  # the largest R-hat without a warning


@dataclass(frozen=True)
class Posterior:
    """How the draws of a posterior were made, and how far they can be trusted.

    Attributes:
        draws: from each member.
        steps: that each member made.
        r_hat: the split R-hat of the predicted means (Vehtari et al. 2021), which nine in ten of the rows do not exceed. Above
            1.1, members do not explore the same posterior.
        effective: independent draws that all together are worth for the predicted means, in nine of ten rows at least.
    """

    draws: int
    steps: int
    r_hat: float
    effective: float

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self) | {"r_hat": None if math.isinf(self.r_hat) else self.r_hat}  # JSON has no infinity

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Posterior:
        """What `to_dict` gave."""
        return cls(**{**data, "r_hat": math.inf if data["r_hat"] is None else float(data["r_hat"])})

    def event(self) -> Event | None:
        """What to warn of."""
        if self.r_hat <= GOOD:
            return None
        if math.isinf(self.r_hat):
            message = (
                f"{self.draws} draws of each member cannot tell whether they have converged: take 4 posterior_samples or more"
            )
            return Event("unconverged", None, self.steps, message).warn()
        message = (
            f"the draws have not converged: split R-hat of the predictions reaches {self.r_hat:.2f} (up to {GOOD} is good), and "
            f"they are worth {self.effective:.0f} independent ones; take more posterior_steps or a smaller network, such as "
            "hidden=(16, 16)"
        )
        return Event("unconverged", None, self.steps, message).warn()


def prior_scales(factory: Factory, input_shape: tuple[int, ...], n_outputs: int) -> Tensor:
    """The standard deviation of each parameter's prior, (parameters,), from networks with fresh weights."""
    # Seeds of their own: a member's prior does not depend on the other members.
    modules = [initialised(factory, input_shape, n_outputs, seed) for seed in range(FRESH)]
    parts = []
    for each in zip(*(trained(module).values() for module in modules), strict=True):
        size = torch.stack([parameter.detach() for parameter in each]).square().mean().sqrt()
        # A layer that begins at zero has a unit of its own.
        parts.append(torch.full((each[0].numel(),), float(size) or 1.0))
    return WIDTH * torch.cat(parts)


def draw(
    stack: Stack, data: TrainingData, head: Head, prior: Tensor, options: TrainingOptions, *, seeds: Tensor
) -> tuple[Stack, list[Posterior]]:
    """Sample from trained members.

    Args:
        stack: the trained members.
        data: the training rows.
        head: what the networks predict.
        prior: the standard deviation of each parameter, from `prior_scales`.
        options: how many draws and steps, the first half of which are for tuning.
        seeds: of the members.

    Returns:
        The draws as one stack, those of a member one after the other, and for each experiment what is known of its draws.
    """
    draws, steps = options.posterior_samples or 1, options.posterior_steps
    walk = Walk(stack, Energy(stack, data, head, prior), seeds)
    tuned = steps // 2
    at = set(np.linspace(tuned, steps, draws + 1).round().astype(int)[1:].tolist())
    kept: list[Tensor] = []
    step = 0
    try:
        with progress_bar("sampling step", steps, shown=options.progress, extra="deep") as bar:
            for step in range(1, steps + 1):
                walk.step(tuning=1 if step <= tuned // 2 else 2 if step <= tuned else 0)
                if step in at:
                    kept.append(walk.rows())
                bar.update(completed=step, text=f"mean energy {float(walk.energy.mean()):.4g}")
    except KeyboardInterrupt:
        if not kept:
            raise
        message = f"sampling was interrupted in step {step} of {steps}: each member keeps its {len(kept)} draws so far"
        Event("interrupted", None, step, message).warn()
    rows = torch.stack(kept, 1)
    means = _predicted(stack, data, head, rows)
    judged = [Posterior(len(kept), step, *judge(part)) for part in np.split(means, len(data.sets))]
    buffers = {name: value.repeat_interleave(len(kept), 0) for name, value in stack.buffers.items()}
    return stack.with_rows(rows.flatten(0, 1), buffers), judged


class Energy:
    """Minus the log posterior of each member, and its gradient, for weights in units of their prior."""

    def __init__(self, stack: Stack, data: TrainingData, head: Head, scales: Tensor) -> None:
        self._data, self._head = data.encode(stack), head
        self.stack, self.scales = stack.with_rows(stack.rows.clone(), stack.buffers), scales.to(stack.rows)
        self._gradient = torch.zeros_like(stack.rows)
        self._views = stack.views(self._gradient)
        count = len(stack)
        self._members = torch.arange(count, device=stack.rows.device) if data.own_scaling is not None else None
        rows = data.sets.repeat_interleave(count // len(data.sets), 0).to(stack.rows.device)
        blocks = rows.split(max(BLOCK // count, 32), dim=1)
        self._blocks = [(*self._data.batch(block, self._members), block) for block in blocks]

    def __call__(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The energies (members,) and their gradients, like the weights (members, parameters)."""
        stack = self.stack
        stack.rows.copy_(weights * self.scales)
        energy = 0.5 * weights.double().square().sum(1)
        gradient = weights.clone()
        for inputs, targets, rows in self._blocks:
            parts: list[Tensor] = []

            def total(raw: Tensor, targets: Tensor = targets, rows: Tensor = rows, parts: list[Tensor] = parts) -> Tensor:
                losses = self._data.weighted(self._head.log_loss(raw, targets), rows)
                parts.append(losses.detach().double().sum(1))
                return losses.sum()

            backward(stack, inputs, total, self._views, encoded=self._data.encoded)
            energy += parts[0]
            gradient.addcmul_(self._gradient, self.scales.expand_as(gradient))
        return energy, gradient


class Walk:
    """The dynamics: positions, in units of the prior, and velocities of length one."""

    def __init__(self, stack: Stack, energy: Energy, seeds: Tensor) -> None:
        self._energy, self._seeds, self._count = energy, seeds, 0
        self._weights = (stack.rows / energy.scales).clone()
        members, self._size = self._weights.shape
        self._velocity = _unit(self._noise())
        self.energy, self._gradient = energy(self._weights)
        # A step small enough to begin with; it grows by itself.
        self._length = torch.full((members, 1), 0.01 * math.sqrt(self._size), dtype=torch.float64, device=seeds.device)
        self._forget = torch.full_like(self._length, math.sqrt(self._size))  # the way over which the velocity forgets itself
        self._errors, self._weight = torch.zeros_like(self._length), torch.zeros_like(self._length)
        self._sum, self._squares, self._seen = torch.zeros_like(self._weights), torch.zeros_like(self._weights), 0

    def rows(self) -> Tensor:
        """The parameters as they are now."""
        return self._weights * self._energy.scales

    def step(self, tuning: int = 0) -> None:
        """Move; `tuning` is 1 for the step size, and 2 for the random turns too."""
        length = self._length.to(self._weights)
        before = self._weights.clone(), self._velocity.clone(), self._gradient.clone(), self.energy.clone()
        turned = self._turn(0.5 * length)
        self._weights = self._weights + length * self._velocity
        self.energy, self._gradient = self._energy(self._weights)
        turned = turned + self._turn(0.5 * length)
        error = (self.energy - before[3])[:, None] + turned
        sound = torch.isfinite(error) & torch.isfinite(self._gradient).all(1, keepdim=True)
        if not bool(sound.all()):  # a member whose numbers overflowed goes back, to smaller steps
            places = sound[:, 0]
            self._weights[~places], self._velocity[~places] = before[0][~places], before[1][~places]
            self._gradient[~places], self.energy[~places] = before[2][~places], before[3][~places]
            self._length[~places] *= 0.5
        if tuning:
            self._tune(error, sound)
        if tuning == 2:
            self._widen()
        share = torch.sqrt(torch.expm1(2.0 * self._length / self._forget) / self._size).to(self._weights)
        self._velocity = _unit(self._velocity + share * self._noise())

    def _turn(self, length: Tensor) -> Tensor:
        """Turn the velocity by the gradient, without changing its length; the change of the kinetic energy (members, 1)."""
        size = torch.linalg.vector_norm(self._gradient, dim=1, keepdim=True)
        downhill = -self._gradient / size.clamp_min(1e-30)
        along = (downhill * self._velocity).sum(1, keepdim=True)
        delta = length * size / (self._size - 1)
        zeta = torch.exp(-delta)
        self._velocity = _unit(downhill * (1.0 - zeta) * (1.0 + zeta + along * (1.0 - zeta)) + 2.0 * zeta * self._velocity)
        delta, zeta, along = delta.double(), zeta.double(), along.double().clamp(-1.0, 1.0)
        return (self._size - 1) * (delta - math.log(2.0) + torch.log1p(along + (1.0 - along) * zeta**2))

    def _tune(self, error: Tensor, sound: Tensor) -> None:
        """Move the step sizes to where the energy's error is what it may be; it grows with their sixth power."""
        relative = torch.where(sound, error, torch.ones_like(error)).square() / (self._size * ERROR) + 1e-8
        trusted = torch.exp(-0.5 * (relative.log() / (6.0 * TRUST)) ** 2) * sound
        decay = (MEMORY - 1.0) / (MEMORY + 1.0)
        self._errors = decay * self._errors + trusted * relative / self._length**6
        self._weight = decay * self._weight + trusted
        found = (self._errors / self._weight.clamp_min(1e-30)).clamp_min(1e-60) ** (-1.0 / 6.0)
        self._length = torch.where(sound, torch.minimum(found, 2.0 * self._length), self._length)

    def _widen(self) -> None:
        """Set the way over which velocities forget themselves to the width of what was visited."""
        self._sum += self._weights
        self._squares += self._weights**2
        self._seen += 1
        if self._seen > 1:
            variance = (self._squares / self._seen - (self._sum / self._seen) ** 2).clamp_min(0.0)
            self._forget = torch.maximum(variance.double().sum(1, keepdim=True).sqrt(), 2.0 * self._length)

    def _noise(self) -> Tensor:
        """Standard Gaussians from each member's own seed."""
        self._count += 1
        found = []
        for seed in hashed(self._seeds, DRAWS, self._count).tolist():
            generator = torch.Generator().manual_seed(seed & (2**63 - 1))
            found.append(torch.randn(self._weights.shape[1], generator=generator))
        return torch.stack(found).to(self._weights)


def _unit(x: Tensor) -> Tensor:
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def _predicted(stack: Stack, data: TrainingData, head: Head, rows: Tensor) -> Floats:
    """The predicted means of some training rows, standardised, (members, draws, rows)."""
    count = len(stack)
    chosen = data.sets[:, :: -(-data.sets.shape[1] // ROWS)].repeat_interleave(count // len(data.sets), 0)
    members = torch.arange(count, device=stack.rows.device)
    found = []
    with torch.no_grad():
        inputs, _ = data.batch(chosen.to(stack.rows.device), members)
        for draw_of in rows.unbind(1):
            raw = stack.with_rows(draw_of.contiguous(), stack.buffers)(inputs)
            found.append(head.distribution(head.parameters(raw.double())).mean.cpu().numpy())
    return np.stack(found, 1)


def judge(values: Floats) -> tuple[float, float]:
    """Split R-hat and effective draws of values (chains, draws, rows), as good as in nine of ten rows at least."""
    half = values.shape[1] // 2
    if half < 2:
        return math.inf, 1.0
    chains = np.concatenate([values[:, :half], values[:, -half:]])
    within = chains.var(1, ddof=1).mean(0)
    pooled = within * (half - 1) / half + chains.mean(1).var(0, ddof=1)
    tiny = np.finfo(np.float64).tiny
    r_hat = np.sqrt((pooled + tiny) / (within + tiny))
    return float(np.quantile(r_hat, SHARE)), float(np.quantile(_effective(chains, pooled + tiny), 1.0 - SHARE))


def _effective(chains: Floats, pooled: Floats) -> Floats:
    """Effective draws by Geyer's initial positive sequence, with autocorrelations of all chains (Vehtari et al. 2021)."""
    count, length = chains.shape[:2]
    moved = chains - chains.mean(1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(moved, 2 * length, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :length] / (length - 1)
    correlation = 1.0 - (covariance[:, :1].mean(0) - covariance.mean(0)) / pooled
    even = length - length % 2
    pairs = correlation[0:even:2] + correlation[1:even:2]
    positive = np.logical_and.accumulate(pairs > 0.0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * falling.sum(0) - 1.0, 1.0 / math.log10(max(count * length, 10)))
    return count * length / time

"""Random numbers as hashes of (seed, purpose, position), as in counter-based generators.

A member trained in a stack therefore has the data order and the dropout masks that it would have alone, a resumed run has
those of the interrupted one, and no generator state is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.support.optional import require

torch = require("torch", extra="deep")

Tensor = Any
# Multipliers of splitmix64 (Steele, Lea and Flood 2014), as signed integers because PyTorch has no others of 64 bits.
GOLDEN, FIRST, SECOND = (value - 2**64 for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
ORDER, MASK, SPLIT, BOOTSTRAP, RESTART, DRAWS = range(6)  # purposes: the first coordinate of a hash


def member_seeds(seed: int, n_members: int) -> Tensor:
    """Seeds of the members from one seed; the first ones stay the same when members are added."""
    state = np.random.SeedSequence(seed).generate_state(n_members, np.uint64)
    return torch.from_numpy((state >> np.uint64(1)).astype(np.int64))  # `torch.manual_seed` wants them positive


def hashed(seeds: Tensor, *where: Tensor | int) -> Tensor:
    """64 random bits for each element of the arguments, which broadcast."""
    value = _mixed(seeds)  # mixed first, or seeds that differ by a multiple of GOLDEN would give shifted copies of one sequence
    for coordinate in where:
        # + 1, because the mixing maps zero to zero: seed 0 at coordinates 0 would stay there.
        value = _mixed(value + _wrapped((coordinate + 1) * GOLDEN))
    return value


def fresh_seed(seed: int, restart: int) -> int:
    """The seed of a member for its restart of this number."""
    return int(hashed(torch.tensor(seed), RESTART, restart)) & (2**63 - 1)


def orders(seeds: Tensor, purpose: int, ages: Tensor | int, length: int) -> Tensor:
    """A permutation of 0..length-1 for each seed and age, (seeds, length)."""
    positions = torch.arange(length, device=seeds.device)
    ages = ages[:, None] if isinstance(ages, torch.Tensor) else ages
    # Two equal keys, of which the sort would choose an order, have a chance below length^2 / 2^64.
    return hashed(seeds[:, None], purpose, ages, positions).argsort(dim=1)


def drawn_rows(seeds: Tensor, length: int) -> Tensor:
    """For each seed, `length` draws with replacement from 0..length-1, (seeds, length)."""
    positions = torch.arange(length, device=seeds.device)
    # The remainder favours low rows by a share of at most length / 2^63, which no sample can show.
    return (hashed(seeds[:, None], BOOTSTRAP, positions) & (2**63 - 1)) % length


def uniform(seeds: Tensor, *where: Tensor | int) -> Tensor:
    """Uniform numbers in [0, 1) with 24 bits."""
    # 24 bits, as many as float32 holds exactly; more could round up to 1.
    return ((hashed(seeds, *where) >> 40) & 0xFFFFFF).float() * 2.0**-24


@dataclass(frozen=True)
class DropoutMasks:
    """The dropout masks that follow from each member's seed and count.

    Attributes:
        seeds: one per member.
        counts: one per member: its optimiser step, or the number of a stochastic pass.
        per_row: a mask for every row, as in training; otherwise one for all rows, so that a pass is one smaller network.
    """

    seeds: Tensor
    counts: Tensor
    per_row: bool = True

    def apply(self, x: Tensor, probability: float, layer: int) -> Tensor:
        """Units (members, rows, units) with a share set to zero and the rest scaled up."""
        rows = x.shape[1] if self.per_row else 1
        positions = torch.arange(rows * x.shape[2], device=x.device).view(rows, x.shape[2])
        # The coordinates that all units share are hashed once, not once per unit.
        keys = hashed(self.seeds, MASK, self.counts, layer)[:, None, None]
        kept = (uniform(keys, positions) >= probability).to(x.dtype)
        # A probability of 1 would divide zero by zero; PyTorch's dropout gives zeros.
        return x * kept / (1.0 - probability) if probability < 1.0 else torch.zeros_like(x)

    def generator_seed(self) -> int:
        """One seed for all masks, for networks with PyTorch's own dropout."""
        return int(hashed(self.seeds, MASK, self.counts).sum()) & (2**63 - 1)


@contextmanager
def keep_generators(device: Any) -> Iterator[None]:
    """Restore PyTorch's generators of the CPU and of this device after the block."""
    # Without a list of devices, PyTorch would save and restore the generators of every GPU.
    with torch.random.fork_rng(devices=[device] if torch.device(device).type == "cuda" else []):
        yield


def seed_generator(device: Any, seed: int) -> None:
    """Seed PyTorch's generators of the CPU and of this device; `torch.manual_seed` would seed all devices."""
    torch.default_generator.manual_seed(seed)
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _wrapped(x: Tensor | int) -> Tensor | int:
    """Wrap Python integers to 64 bits, as tensors do."""
    return (x + 2**63) % 2**64 - 2**63 if isinstance(x, int) else x


def _mixed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)) * FIRST
    z = (z ^ _shifted(z, 27)) * SECOND
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """Shift right and fill with zeros; PyTorch's shift copies the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)

"""Random numbers by counting: a member's numbers depend on its own seed and on where they are used, not on who trains beside it.

Each number is a hash of (seed, where, position), so that a member trained in a stack sees the data order and the dropout
masks that it would see alone, a resumed run sees those of the run that was cut off, and nothing needs to be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from uqprism.support.optional import require

torch = require("torch", extra="deep")

Tensor = Any
# Multipliers of splitmix64 (Steele, Lea and Flood 2014), as the signed integers that PyTorch has.
GOLDEN, FIRST, SECOND = (value - 2**64 for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
ORDER, MASK, SPLIT, BOOTSTRAP, RESTART = range(5)  # what numbers are used for: the first coordinate


def member_seeds(seed: int, n_members: int) -> Tensor:
    """One seed per member from one for all; the first members keep theirs when more are added."""
    state = np.random.SeedSequence(seed).generate_state(n_members, np.uint64)
    return torch.from_numpy((state >> np.uint64(1)).astype(np.int64))  # `torch.manual_seed` wants them positive


def hashed(seeds: Tensor, *where: Tensor | int) -> Tensor:
    """64 random bits per element of the arguments broadcast together."""
    value = _mixed(seeds)
    for coordinate in where:
        value = _mixed(value + _wrapped((coordinate + 1) * GOLDEN))
    return value


def fresh_seed(seed: int, restart: int) -> int:
    """The seed of a member that starts again, for the so-manieth time."""
    return int(hashed(torch.tensor(seed), RESTART, restart)) & (2**63 - 1)


def orders(seeds: Tensor, purpose: int, ages: Tensor | int, length: int) -> Tensor:
    """A permutation of 0..length-1 for each seed, another for each age: (seeds, length)."""
    positions = torch.arange(length, device=seeds.device)
    ages = ages[:, None] if isinstance(ages, torch.Tensor) else ages
    return hashed(seeds[:, None], purpose, ages, positions).argsort(dim=1)


def drawn_rows(seeds: Tensor, length: int) -> Tensor:
    """For each seed as many draws with replacement from 0..length-1: (seeds, length)."""
    positions = torch.arange(length, device=seeds.device)
    return (hashed(seeds[:, None], BOOTSTRAP, positions) & (2**63 - 1)) % length


def uniform(seeds: Tensor, *where: Tensor | int) -> Tensor:
    """Numbers from [0, 1) with 24 bits."""
    return ((hashed(seeds, *where) >> 40) & 0xFFFFFF).float() * 2.0**-24


@contextmanager
def own_generator(device: Any) -> Iterator[None]:
    """A block that leaves PyTorch's generators, of the processor and of this device, as they were."""
    with torch.random.fork_rng(devices=[device] if torch.device(device).type == "cuda" else []):
        yield


def seed_generator(device: Any, seed: int) -> None:
    """Seed PyTorch's generators of the processor and of this device; `torch.manual_seed` would seed all devices."""
    torch.default_generator.manual_seed(seed)
    if torch.device(device).type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _wrapped(x: Tensor | int) -> Tensor | int:
    """Python's integers as 64-bit ones, as tensors do by themselves."""
    return (x + 2**63) % 2**64 - 2**63 if isinstance(x, int) else x


def _mixed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)) * FIRST
    z = (z ^ _shifted(z, 27)) * SECOND
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """To the right with zeros moving in; PyTorch's own shift copies the sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)

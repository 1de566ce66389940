"""Sets of known truth for audits: data that can be drawn again, with as many rows as an audit asks for.

They differ in the number of inputs (1 to 20), in shape (smooth, with steps, with interactions, additive) and in noise (even,
growing, heavy-tailed, in two branches, a hundredth to nearly all of the variance).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uqprism.paper.data.synthetic import sine, two_curves

Draw = Callable[[int, int], tuple[Any, Any]]


def waves(n: int, seed: int) -> tuple[Any, Any]:
    """Two inputs that act together, with noise of 0.3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 2))
    return x, np.sin(3.0 * x[:, 0]) * np.cos(4.0 * x[:, 1]) + 0.3 * rng.standard_normal(n)


def friedman(n: int, seed: int) -> tuple[Any, Any]:
    """Five inputs (Friedman 1991), with noise that grows from 0.5 to 2.5 along the first."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 5))
    mean = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2 + 10.0 * x[:, 3] + 5.0 * x[:, 4]
    return x, mean + (0.5 + 2.0 * x[:, 0]) * rng.standard_normal(n)


def ridges(n: int, seed: int) -> tuple[Any, Any]:
    """Five inputs whose smooth parts add up, with noise of a hundredth of the variance."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 5))
    mean = np.exp(x[:, 0]) + x[:, 1] ** 2 + np.sin(2.0 * x[:, 2]) + 0.5 * x[:, 3] - np.abs(x[:, 4])
    return x, mean + 0.1 * rng.standard_normal(n)


def faint(n: int, seed: int) -> tuple[Any, Any]:
    """Five inputs that explain a tenth of the variance."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 5))
    return x, 0.3 * x[:, 0] + 0.2 * np.tanh(x[:, 1] * x[:, 2]) + rng.standard_normal(n)


def hills(n: int, seed: int) -> tuple[Any, Any]:
    """Six inputs, of which five count, one of them as a step, and the sixth governs the noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 6))
    mean = 2.0 * np.sin(np.pi * x[:, 0]) + 3.0 * x[:, 1] * x[:, 2] + 2.0 / (1.0 + np.exp(-8.0 * x[:, 3])) + x[:, 4]
    return x, mean + (0.3 + 0.3 * np.abs(x[:, 5])) * rng.standard_normal(n)


def tails(n: int, seed: int) -> tuple[Any, Any]:
    """Six inputs, of which three count, with noise from a Student t distribution with four degrees of freedom."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 6))
    return x, 2.0 * x[:, 0] + np.cos(3.0 * x[:, 1]) + x[:, 1] * x[:, 2] + 0.4 * rng.standard_t(4, size=n)


def plane(n: int, seed: int) -> tuple[Any, Any]:
    """Eight inputs, of which three bend the target, with noise of 0.5."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 8))
    mean = x @ np.linspace(1.0, 0.0, 8) + np.tanh(2.0 * x[:, 0] * x[:, 1]) + np.abs(x[:, 2])
    return x, mean + 0.5 * rng.standard_normal(n)


def steps(n: int, seed: int) -> tuple[Any, Any]:
    """Eight inputs, of which three make steps, with noise of 0.3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 8))
    mean = 1.0 * (x[:, 0] > 0.0) + 1.5 * ((x[:, 1] > 0.3) & (x[:, 2] < 0.2)) - 1.0 * (x[:, 2] > 0.6)
    return x, mean + 0.3 * rng.standard_normal(n)


def wide(n: int, seed: int) -> tuple[Any, Any]:
    """Twenty inputs, of which ten count and four act in pairs, with noise of 1."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 20))
    mean = x[:, :10] @ np.linspace(1.0, 0.1, 10) + x[:, 0] * x[:, 1] + 0.5 * x[:, 2] * x[:, 3]
    return x, mean + rng.standard_normal(n)


KNOWN: dict[str, Draw] = {
    "sine": sine,
    "two_curves": two_curves,
    "waves": waves,
    "friedman": friedman,
    "ridges": ridges,
    "faint": faint,
    "hills": hills,
    "tails": tails,
    "plane": plane,
    "steps": steps,
    "wide": wide,
}

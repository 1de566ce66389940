"""Sets of known truth for audits: data that can be drawn again, with as many rows as an audit asks for.

They differ in the number of inputs (1 to 20), in shape (smooth, with steps, with interactions, additive) and in noise (even,
growing, heavy-tailed, in two branches, a hundredth to nearly all of the variance). `KNOWN` were in view while the rule of the
audit was made, `FRESH` were not.
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


def bumps(n: int, seed: int) -> tuple[Any, Any]:
    """Three inputs, two smooth bumps and a slope, with noise of 0.2."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 3))
    first, second = (np.exp(-4.0 * ((x[:, :2] - centre) ** 2).sum(axis=1)) for centre in (-0.4, 0.5))
    return x, 2.0 * first - 1.5 * second + 0.5 * x[:, 2] + 0.2 * rng.standard_normal(n)


def funnel(n: int, seed: int) -> tuple[Any, Any]:
    """Three inputs, a gentle curve, and noise whose logarithm is a curve as well, from 0.1 to 2."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 3))
    scale = np.exp(-0.8 + 1.5 * np.sin(2.0 * x[:, 0]) * x[:, 1])
    return x, np.sin(2.0 * x[:, 0]) + x[:, 2] ** 2 + scale * rng.standard_normal(n)


def products(n: int, seed: int) -> tuple[Any, Any]:
    """Six inputs that count in products of two and three only, with noise of 0.3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 6))
    mean = 2.0 * x[:, 0] * x[:, 1] - 1.5 * x[:, 2] * x[:, 3] + 2.0 * x[:, 0] * x[:, 4] * x[:, 5]
    return x, mean + 0.3 * rng.standard_normal(n)


def sparse(n: int, seed: int) -> tuple[Any, Any]:
    """Fifteen inputs, of which three count, with noise of 0.7."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 15))
    return x, x[:, 0] + np.sin(1.5 * x[:, 1]) * (1.0 + 0.5 * x[:, 2]) + 0.7 * rng.standard_normal(n)


def groups(n: int, seed: int) -> tuple[Any, Any]:
    """Two categories of five and four values as zeros and ones, with levels of their own, and a slope that the first decides."""
    rng = np.random.default_rng(seed)
    first, second, x = rng.integers(5, size=n), rng.integers(4, size=n), rng.standard_normal(n)
    levels = np.array([0.0, 1.0, -0.5, 2.0, 0.3])[first] + np.array([0.0, 0.8, -1.0, 0.4])[second]
    slopes = np.array([1.0, -1.0, 0.2, 0.5, 0.0])[first]
    jump = 1.2 * ((first == 3) & (second == 2))
    inputs = np.column_stack([np.eye(5)[first], np.eye(4)[second], x])
    return inputs, levels + slopes * x + jump + 0.5 * rng.standard_normal(n)


def skewed(n: int, seed: int) -> tuple[Any, Any]:
    """Four inputs, noise from a shifted exponential distribution, whose scale depends on an input."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 4))
    mean = np.sin(3.0 * x[:, 0]) + np.abs(x[:, 1]) * x[:, 2]
    return x, mean + (0.3 + 0.2 * x[:, 3]) * (rng.exponential(size=n) - 1.0)


def kinks(n: int, seed: int) -> tuple[Any, Any]:
    """Ten inputs, of which six bend in straight pieces, with noise of 0.4."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size=(n, 10))
    mean = np.maximum(x[:, 0], 0.5) + np.abs(x[:, 1] - x[:, 2]) - np.maximum(x[:, 3] + x[:, 4], 0.0) + 0.5 * np.abs(x[:, 5])
    return x, mean + 0.4 * rng.standard_normal(n)


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

FRESH: dict[str, Draw] = {
    "bumps": bumps,
    "funnel": funnel,
    "products": products,
    "sparse": sparse,
    "groups": groups,
    "skewed": skewed,
    "kinks": kinks,
}

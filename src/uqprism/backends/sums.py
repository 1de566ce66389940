"""Rules for sums over counts, where those for integrals take panels: panels of 12 counts, and longer ones of fixed sizes.

Twelve counts are summed one by one. The nodes of a longer panel are those of `uqprism.families.lattice`, and sums up to each of
them are those of the polynomial through the nodes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from uqprism.families.lattice import PER_PANEL, gauss_sum
from uqprism.families.quadrature import gauss_legendre

Floats = np.ndarray[Any, Any]

SUM_ROWS = 16  # the sum over a panel, those to its nodes, and zeros that fill vector registers
GROWTH, SIZES = 1.25, 130  # of panels; the longest has 4e13 counts


class Sums(NamedTuple):
    """For each size of a panel its nodes and weights, and how values at the nodes become sums.

    Attributes:
        sizes: how many counts (sizes,).
        nodes: relative to the first count, (sizes, PER_PANEL).
        weights: for how many counts each stands, (sizes, PER_PANEL).
        from_left: (sizes, PER_PANEL, SUM_ROWS), from values at the nodes to the sum over the panel, and those up to each node.
        from_right: the same beyond each node.
        parts: the lengths of three Gauss rules on (0, 1), for integrals from a count to the next.
        places: their nodes, (3, PER_PANEL).
        shares: their weights.
    """

    sizes: Floats
    nodes: Floats
    weights: Floats
    from_left: Floats
    from_right: Floats
    parts: np.ndarray[Any, np.dtype[np.int64]]
    places: Floats
    shares: Floats


@cache
def sums() -> Sums:
    """The rules."""
    sizes = np.unique(np.floor(PER_PANEL * GROWTH ** np.arange(SIZES)))
    nodes, weights = gauss_sum(sizes)
    up_to = np.stack([running_sums(n, x, w) for n, x, w in zip(sizes, nodes, weights, strict=True)])
    beyond = up_to[:, ::-1, ::-1] - np.eye(PER_PANEL)
    nothing = np.zeros((len(sizes), SUM_ROWS - 1 - PER_PANEL, PER_PANEL))
    whole = weights[:, None]
    left, right = (np.concatenate([whole, x, nothing], axis=1).swapaxes(1, 2) for x in (up_to, beyond))
    parts = np.array([PER_PANEL, 4, 2])
    rules = np.array([[np.pad(x, (0, PER_PANEL - count)) for x in gauss_legendre(count)] for count in parts])
    places, shares = (np.ascontiguousarray(x) for x in rules.swapaxes(0, 1))
    return Sums(sizes, nodes, weights, np.ascontiguousarray(left), np.ascontiguousarray(right), parts, places, shares)


def running_sums(count: float, nodes: Floats, weights: Floats) -> Floats:
    """The matrix (nodes, nodes) that takes values at the nodes of a panel to the sums over 0, 1 ... up to each node."""
    # Discrete Chebyshev polynomials t_n, orthonormal over the counts. Their sums follow from the difference equation
    # n (n + 1) t_n(x) = d[x (x - N) (t_n(x) - t_n(x - 1))], and the differences of t_n from the recurrence, without cancelling.
    middle = 0.5 * (count - 1.0)
    value, step = np.full_like(nodes, count**-0.5), np.zeros_like(nodes)
    before, step_before, beta = 0.0 * value, 0.0 * value, 0.0
    matrix = np.outer((nodes + 1.0) * value, weights * value)
    for n in range(1, PER_PANEL):
        last, beta = beta, 0.5 * n * np.sqrt((count - n) * (count + n) / (4.0 * n * n - 1.0))
        following = ((nodes - middle) * value - last * before) / beta
        step_following = ((nodes + 1.0 - middle) * step + value - last * step_before) / beta
        value, before, step, step_before = following, value, step_following, step
        matrix += np.outer((nodes + 1.0) * (nodes + 1.0 - count) * step / (n * (n + 1.0)), weights * value)
    return matrix

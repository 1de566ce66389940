"""Sums over counts, as quadrature: panels of few counts are summed, longer ones have nodes that stand for all in them.

The nodes are those of Gauss's rule for the sum over N equally spaced values: like Gauss-Legendre nodes they are exact for
polynomials of degree 23, of functions that are continued between counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uqprism.arrays import merged

Floats = np.ndarray[Any, np.dtype[np.float64]]

PER_PANEL = 12  # nodes


def gauss_sum(counts: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights (panels, PER_PANEL) for sums over 0, 1 ... N - 1, for each N."""
    position = np.arange(PER_PANEL, dtype=np.float64)
    few = counts <= PER_PANEL
    nodes = np.broadcast_to(position, (len(counts), PER_PANEL)).copy()
    weights = (position < counts[:, None]).astype(np.float64)
    nodes[weights == 0.0] = 0.0
    if not few.all():
        # The eigenvalues of the three-term recurrence of the discrete Chebyshev polynomials (Golub and Welsch).
        many, n = counts[~few][:, None], np.arange(1, PER_PANEL, dtype=np.float64)
        off = 0.5 * n * np.sqrt((many - n) * (many + n) / (4.0 * n * n - 1.0))
        matrix = np.zeros((len(many), PER_PANEL, PER_PANEL))
        matrix[:, np.arange(1, PER_PANEL), np.arange(PER_PANEL - 1)] = off
        values, vectors = np.linalg.eigh(matrix)
        nodes[~few] = values + 0.5 * (many - 1.0)
        weights[~few] = many * vectors[:, 0, :] ** 2
    return nodes, weights


def counted(edges: Floats, first: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Counts (nodes, *shape) in the panels between these edges, and how many each node stands for."""
    bounds = np.maximum(np.ceil((edges - first) / step - 1e-9), 0.0)
    bounds[-1] = np.maximum(bounds[-1], bounds[0]) + 1.0  # the last edge may be a count
    numbers = np.diff(bounds, axis=0)
    unique, where = np.unique(numbers, return_inverse=True)
    nodes, weights = (np.moveaxis(x[where.reshape(numbers.shape)], -1, 1) for x in gauss_sum(unique))
    return merged(bounds[:-1, None] + nodes, edges.ndim - 1), merged(weights, edges.ndim - 1)

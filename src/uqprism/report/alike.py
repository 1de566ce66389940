"""Which measures put the rows in the very same order, so that a table need not say the same thing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

ROUNDING = 1e-9  # relative: measures that are equal on paper differ by less, and what differs by less has no order
A_LOOK = 1_000  # rows that tell most pairs of orders apart


def same_orders(columns: Mapping[str, np.ndarray], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The names in groups that order all rows alike, up to rounding; groups and names stay in the order given.

    Args:
        columns: of numbers, (rows,), by name.
        names: of columns.
    """
    orders = {name: _orders(columns[name]) for name in names}
    groups: list[list[str]] = []
    for name in names:
        group = next((group for group in groups if _alike(name, group[0], columns, orders)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return [tuple(group) for group in groups]


def _orders(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places from the lowest to the highest, with ties as they stand and with ties the other way round."""
    return np.argsort(values, kind="stable"), len(values) - 1 - np.argsort(values[::-1], kind="stable")


def _alike(name: str, other: str, columns: Mapping[str, np.ndarray], orders: Mapping[str, tuple[np.ndarray, ...]]) -> bool:
    """Whether each rises in the order of the other, whichever way round the other's ties are: so its ties are ties there too."""
    pairs = [(columns[first], order) for first, second in ((name, other), (other, name)) for order in orders[second]]
    few = max(1, len(columns[name]) // A_LOOK)
    return all(_rises(values[order[::few]]) for values, order in pairs) and all(_rises(values[order]) for values, order in pairs)


def _rises(values: np.ndarray) -> bool:
    """Whether none is lower than one before it, but for rounding."""
    highest = np.maximum.accumulate(values)
    low = values < highest
    return bool((highest[low] - values[low] <= ROUNDING * np.maximum(np.abs(highest[low]), np.abs(values[low]))).all())

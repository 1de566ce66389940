"""Measures are alike if they order every pair of rows alike, up to rounding, and not otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from uqprism.report.alike import same_orders


def by_pairs(columns: dict[str, np.ndarray]) -> list[tuple[str, ...]]:
    """The same by looking at every pair of rows."""
    signs = {name: np.sign(np.subtract.outer(column, column)).tobytes() for name, column in columns.items()}
    return [tuple(name for name in columns if signs[name] == each) for each in dict.fromkeys(signs.values())]


@pytest.mark.parametrize("levels", [2, 4, 40])
def test_groups_are_those_that_every_pair_of_rows_gives(levels: int) -> None:
    rng = np.random.default_rng(levels)
    first = rng.integers(0, levels, 30).astype(float)
    swapped = first.copy()
    swapped[[3, 7]] = swapped[[7, 3]]
    columns = {"first": first, "other": rng.normal(size=30), "cubed": first**3 - 5.0, "swapped": swapped}
    columns |= {"constant": np.ones(30), "zero": np.zeros(30), "opposite": -first, "sorted": np.arange(30.0)}
    columns |= {"finer": first + 1e-3 * np.arange(30)}
    assert same_orders(columns, list(columns)) == by_pairs(columns)


def test_rounding_is_no_difference_and_one_pair_is() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=20_000))
    values[1000:1010] = values[1000]
    columns = {"a": values, "rounded": values * (1.0 + 1e-13 * rng.normal(size=20_000)), "b": values.copy()}
    columns["b"][[5000, 5001]] = columns["b"][[5001, 5000]] + np.array([1e-3, -1e-3])
    assert same_orders(columns, ["rounded", "b", "a"]) == [("rounded", "a"), ("b",)]


def test_infinite_values_have_their_place() -> None:
    columns = {
        "a": np.array([1.0, np.inf, 2.0, np.inf]),
        "b": np.array([0.0, 9.0, 3.0, 9.0]),
        "c": np.array([0.0, 9.0, 3.0, 8.0]),
    }
    assert same_orders(columns, list(columns)) == [("a", "b"), ("c",)]

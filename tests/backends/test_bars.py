"""The kernel for bars and quantiles against 50-digit sums (`tests/oracles/bars.py`), the reference, and theory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import uqprism as up

pytest.importorskip("numba")

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "bars.json").read_text())
LEVELS = np.linspace(0.05, 0.95, 10)


def ensemble(case: dict, dtype: str = "float64") -> up.EnsemblePrediction:
    """The case at one point."""
    given = case["given"]
    if case["family"] == "quantiles":
        values = np.array(given["values"], dtype)[..., None]
        return up.EnsemblePrediction.quantiles(**{**given, "values": values}, weights=case["weights"])
    edges, mass = (np.array(given[name], dtype) for name in ("edges", "probabilities"))
    edges = edges if edges.ndim == 1 else edges[..., None]
    arrays = {"edges": edges, "probabilities": mass[..., None], "outer": given["outer"]}
    return up.EnsemblePrediction.histogram(**arrays, weights=case["weights"])


def errors(table: up.MeasureTable, values: dict[str, str]) -> dict[str, float]:
    """Relative errors; of totals that cross zero relative to what they are made of."""
    found = {}
    for name, text in values.items():
        truth, value = float(text), float(table[name][0])
        size = max(abs(truth), 1.0) if name.startswith("log.") and ".excess." not in name else abs(truth)
        if name.startswith("quadratic.total"):
            size = max(size, abs(float(values[f"quadratic.bayes.{name.rsplit('.', maxsplit=1)[-1]}"])))
        found[name] = 0.0 if value == truth or abs(truth) < 1e-30 > abs(value) else abs(value - truth) / size
    return found


def identifier(case: dict) -> str:
    kind = case["given"].get("outer", case["given"].get("tails"))
    return f"{case['family']} {kind} {case['kind']}"


@pytest.mark.parametrize("case", CASES, ids=identifier)
def test_all_measures_are_the_sums_with_fifty_digits(case: dict) -> None:
    found = errors(up.evaluate(ensemble(case), backend="fused"), case["values"])
    assert {name: error for name, error in found.items() if not error <= 1e-10} == {}

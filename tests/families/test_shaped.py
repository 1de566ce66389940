"""Families with bounds: all measures of random ensembles, against integrals of the definitions that `oracles/shaped.py` took."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.test_exactness import error

MAKE = up.EnsemblePrediction
CASES = json.loads((Path(__file__).parents[1] / "oracles" / "shaped.json").read_text())


def given(case: dict) -> dict[str, np.ndarray]:
    """The parameters of the case's members at one point."""
    scale, shape = np.array(case["scale"])[:, None], np.array(case["shape"])
    first, second = shape[:, :1], shape[:, -1:]
    return {
        "lognormal": {"log_mean": np.log(scale), "log_scale": first},
        "gamma": {"shape": first, "scale": scale},
        "weibull": {"shape": first, "scale": scale},
        "beta": {"a": first, "b": second, "high": scale},
        "truncated_gaussian": {"location": first * scale, "scale": second * scale, "low": 0.0, "high": 4.0 * scale},
    }[case["family"]]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: f"{CASES[i]['family']}-{CASES[i]['kind']}-{i}")
def test_stated_tolerances_hold(number: int) -> None:
    """Every measure, near agreement included."""
    case = CASES[number]
    table = up.evaluate(getattr(MAKE, case["family"])(**given(case), weights=case["weights"]), list(case["values"]))
    values = case["values"]
    ratios = {n: error(n, float(table[n][0]), truth, values) / table.exactness[n].tolerance for n, truth in values.items()}
    assert {name: ratio for name, ratio in ratios.items() if not ratio <= 1.0} == {}

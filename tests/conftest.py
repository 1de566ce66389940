"""Fixtures that every test may use: the array libraries and the 50-digit reference values."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before libraries start their pools: threads of two processes on two cores spin

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
ORACLE = json.loads((Path(__file__).parent / "oracle_cases.json").read_text())["cases"]


def as_array(library: str, values: object, dtype: str = "float64") -> object:
    """The values as an array of this library and precision."""
    if library == "torch":
        import torch

        return torch.tensor(np.asarray(values), dtype=getattr(torch, dtype))
    if library == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.numpy.asarray(np.asarray(values), dtype=dtype)
    return np.asarray(values, dtype=dtype)


def run_python(code: str, *arguments: object, **environment: str) -> str:
    """What this code prints in an interpreter of its own, where warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["numpy", "torch", pytest.param("jax", marks=pytest.mark.slow)])
def library(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """No figures left open for the tests after: once any test has loaded pyplot, it keeps every figure that is drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Pages without their drawings, which take most of the time, for tests that look at the rest."""
    monkeypatch.setattr("uqprism.report.charts.render", lambda *_, **__: ("<svg></svg>", None))
    monkeypatch.setattr("uqprism.report.charts.places", lambda _, x, __: np.zeros((len(x), 2)))


def is_hard(name: str) -> bool:
    """True for measures without a closed form: log with a mixture, and surrogates against the mixture."""
    rule, risk, *roles = name.split(".")
    if risk == "total" and roles[-1] == "mixture":
        return rule == "log" and roles[0] == "mixture"
    surrogate = {"matched", "pooled"} & set(roles)
    if rule == "log":
        return "mixture" in roles and roles != ["mixture", "mixture"] if risk == "excess" else "mixture" in roles
    return rule != "squared_error" and bool(surrogate) and "mixture" in roles and risk != "bayes"


def error_of(name: str, value: float, reference: str) -> float:
    """Relative error; absolute where the truth is zero, and relative to at least one for log totals and Bayes risks."""
    from mpmath import mp, mpf

    with mp.workdps(40):
        truth = mpf(reference)
        size = abs(truth)
        if name.startswith("log.") and ".excess." not in name:
            size = max(size, mpf(1))
        gap = abs(mpf(float(value)) - truth)
        result = float(gap / size) if size else float(gap)
    return math.inf if math.isnan(result) else result

"""The package as a whole: what importing it loads, what it holds in memory, what its files promise."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import uqprism as up

HEAVY = ["torch", "numba", "scipy", "matplotlib", "sklearn", "pyarrow", "dask", "pandas", "jax", "typer", "streamlit"]


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_public_names_agree() -> None:
    """`dir`, `__all__`, attribute access, and the imports that type checkers see offer the same names for the same things."""
    body = ast.parse(Path(up.__file__).read_text()).body
    checked = next(node.body for node in body if isinstance(node, ast.If))
    seen = {(name.asname or name.name): node.module for node in checked for name in node.names}
    eager = {name.name for node in body if isinstance(node, ast.ImportFrom) for name in node.names} - {"annotations"}
    public = {*eager, *seen} - {"TYPE_CHECKING", "Any"}
    assert set(dir(up)) == public
    assert set(up.__all__) < public
    for name, module in seen.items():
        there = importlib.import_module(f"{module}.{name}" if module == "uqprism" else module)
        assert getattr(up, name) is (there if module == "uqprism" else getattr(there, name))
    with pytest.raises(AttributeError, match="has no attribute 'from_sklearn'"):
        _ = up.from_sklearn
    assert "sklearn" not in run("import sys; from uqprism import *; print(*sys.modules)").split()


def test_import_loads_nothing_heavy() -> None:
    loaded = json.loads(run(f"import sys, json, uqprism; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"))
    assert loaded == []


def test_numpy_users_never_load_torch_or_jax() -> None:
    code = """
import sys, json, numpy as np, uqprism as up
up.evaluate(up.EnsemblePrediction.gaussian(mean=np.zeros((2, 3)), scale=np.ones((2, 3))))
print(json.dumps([m for m in ("torch", "jax") if m in sys.modules]))
"""
    assert json.loads(run(code)) == []


@pytest.mark.parametrize(("package", "extra", "call"), [("pandas", "pandas", "to_pandas"), ("pyarrow", "cli", "to_arrow")])
def test_missing_packages_name_their_extra(package: str, extra: str, call: str) -> None:
    code = f"""
import sys; sys.modules[{package!r}] = None
import uqprism as up
table = up.evaluate(up.EnsemblePrediction.gaussian(mean=[[0.0]], scale=[[1.0]]), ["crps.bayes.members"])
try:
    table.{call}()
except ImportError as error:
    assert isinstance(error, up.UqprismError)
    print(error)
"""
    assert f"pip install 'uqprism[{extra}]'" in run(code)


LATER = [
    ("torch", "DeepEnsembleRegressor", "deep"),
    ("sklearn", "DeepEnsembleRegressor", "sklearn"),
    ("torch", "DeepEnsemble", "deep"),
    ("matplotlib", "write_report", "report"),
]


@pytest.mark.parametrize(("package", "name", "extra"), LATER)
def test_missing_packages_of_later_parts_name_their_extra(package: str, name: str, extra: str) -> None:
    code = f"""
import sys; sys.modules[{package!r}] = None
from uqprism import *
import uqprism as up
assert {name!r} in dir(up)
try:
    up.{name}
except ImportError as error:
    assert isinstance(error, up.UqprismError)
    print(error)
"""
    assert f"pip install 'uqprism[{extra}]'" in run(code)


def test_training_loads_nothing_it_does_not_need() -> None:
    code = """
import sys, json, uqprism as up
up.training.train([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], n_members=2, max_epochs=1).predict_ensemble([[0.5]])
print(json.dumps([m for m in ("sklearn", "pandas", "matplotlib", "rich", "safetensors", "numba") if m in sys.modules]))
"""
    assert json.loads(run(code)) == []


def test_evaluate_stays_within_a_gigabyte() -> None:
    """200,000 points x 20 members, all closed forms and the results of all 144 measures, in a process of its own."""
    code = """
import re, numpy as np, uqprism as up
rng = np.random.default_rng(0)
mean = (rng.normal(size=(20, 200_000)) * 0.02).astype(np.float64)
scale = np.exp(0.01 * rng.normal(size=(20, 200_000)))
mean[:, :4000] *= 50.0
table = up.evaluate(up.EnsemblePrediction.gaussian(mean=mean, scale=scale))
assert len(table) == 144
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
    assert int(run(code)) < 1_000_000  # kilobytes


def test_nothing_is_held_once_a_result_is_gone() -> None:
    """No cache and no reference cycle keeps a chunk's arrays alive: without the garbage collector, memory does not grow."""
    code = """
import gc, re, numpy as np, uqprism as up
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
gc.disable()
rng = np.random.default_rng(0)
ens = up.EnsemblePrediction.gaussian(mean=rng.normal(size=(10, 1500)), scale=np.exp(0.3 * rng.normal(size=(10, 1500))))
up.evaluate(ens)
before = peak()
for _ in range(4):
    up.evaluate(ens)
print(peak() - before)
"""
    assert int(run(code)) < 30_000  # kilobytes; one evaluation holds more than twice that


def test_extras_are_those_of_the_design() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = set(extras) - {"all", "bench", "docs", "test"}
    assert users == {"fast", "deep", "sklearn", "cli", "scale", "report", "pandas", "paper", "app", "jax"}
    assert set(extras["all"][0].removeprefix("uqprism[").removesuffix("]").split(",")) == users

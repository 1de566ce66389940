"""The package as a whole: what importing it loads, what it holds in memory, what its files promise."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import uqprism as up
from tests.conftest import run_python
from uqprism.errors import install_command


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
    assert "sklearn" not in run_python("import sys; from uqprism import *; print(*sys.modules)").split()


HEAVY = {"torch", "numba", "scipy", "matplotlib", "sklearn", "pyarrow", "dask", "pandas", "jax", "typer", "streamlit", "rich"}
FILES = {"pyarrow", "dask", "distributed", "xarray", "pandas", "rich", "typer"}
PLAIN = """
class Mine:
    def predict(self, X, return_std=False):
        return X[:, 0], np.ones(len(X))
up.from_model([Mine(), Mine()], np.zeros((3, 2)))
"""
TRAIN = "up.training.train([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], n_members=2, max_epochs=1).predict_ensemble([[0.5]])"
SETS = """
from uqprism.paper import data
data.load("dots", sizes=(2, 2, 2)); data.load("arrow", sizes=(2, 2, 2))
"""


@pytest.mark.parametrize(
    ("code", "unneeded"),
    [
        ("", HEAVY),
        ("up.evaluate(up.EnsemblePrediction.gaussian(mean=np.zeros((2, 3)), scale=np.ones((2, 3))))", {"torch", "jax"}),
        ("import uqprism.files; uqprism.files.score", FILES),
        ('up.from_frame({"mean_0": [1.0], "variance_0": [2.0]})', {"uqprism.files"}),
        (PLAIN, {"sklearn", "torch", "ngboost", "xarray", "pandas", "pyarrow"}),
        (TRAIN, {"sklearn", "pandas", "matplotlib", "rich", "safetensors", "numba"}),
        (SETS, {"torch", "scipy", "sklearn", "pyarrow", "pandas", "PIL", "rich", "matplotlib", "pooch", "openpyxl"}),
    ],
    ids=["import", "evaluate", "files", "from_frame", "from_model", "train", "paper data"],
)
def test_only_what_is_used_is_loaded(code: str, unneeded: set[str]) -> None:
    loaded = run_python(f"import sys, numpy as np, uqprism as up\n{code}\nprint(*sys.modules)").split()
    assert unneeded.isdisjoint(loaded)


TABLE = 'up.evaluate(up.EnsemblePrediction.gaussian(mean=[[0.0]], scale=[[1.0]]), ["crps.bayes.members"])'


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pandas", "pandas", f"{TABLE}.to_pandas()"),
        ("pyarrow", "cli", f"{TABLE}.to_arrow()"),
        ("torch", "deep", "up.DeepEnsembleRegressor"),
        ("sklearn", "sklearn", "up.DeepEnsembleRegressor"),
        ("torch", "deep", "up.DeepEnsemble"),
        ("matplotlib", "report", "up.write_report('absent.csv', 'page.html')"),
        ("pyarrow", "cli", "files.score('in.csv', 'out.csv')"),
        ("distributed", "scale", "files.score('in.csv', 'out', dask='tcp://localhost:1')"),
        ("dask", "scale", "files.evaluate(mean=[[1.0]], variance=[[1.0]])"),
    ],
)
def test_missing_packages_name_their_extra(package: str, extra: str, call: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("mean_0,scale_0\n1,1\n")
    code = f"""
import os, sys; os.chdir(sys.argv[1]); sys.modules[{package!r}] = None
from uqprism import *
import uqprism as up
from uqprism import files
assert {{"DeepEnsembleRegressor", "DeepEnsemble", "write_report"}} < set(dir(up))
try:
    {call}
except ImportError as error:
    assert isinstance(error, up.UqprismError)
    print(error)
"""
    assert f"[{extra}]'" in run_python(code, tmp_path)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "'uqprism[deep]'"),
        ({"url": "file:///src/my%20uqprism", "dir_info": {"editable": True}}, "-e '/src/my uqprism[deep]'"),
        ({"url": "file:///src/uqprism", "dir_info": {}}, "'/src/uqprism[deep]'"),
        ({"url": "file:///x/uqprism-0.1.0.whl", "archive_info": {}}, "'uqprism[deep] @ file:///x/uqprism-0.1.0.whl'"),
        ({"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "ab1"}}, "'uqprism[deep] @ git+https://x/y@ab1'"),
    ],
    ids=["index", "editable checkout", "checkout", "wheel", "repository"],
)
def test_extras_are_installed_from_where_the_package_came_from(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    assert install_command("deep") == f"pip install {command}"


def test_in_the_checkout_itself_the_path_is_a_dot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    monkeypatch.chdir(tmp_path)
    assert install_command("deep") == "pip install -e '.[deep]'"


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
    assert int(run_python(code)) < 1_000_000  # kilobytes


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
    assert int(run_python(code)) < 30_000  # kilobytes; one evaluation holds more than twice that


def test_extras_are_those_of_the_design() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    users = set(extras) - {"adapters", "all", "bench", "docs", "release", "test"}
    assert users == {"fast", "deep", "sklearn", "cli", "scale", "report", "pandas", "paper", "app", "jax", "export", "mlflow"}
    assert set(extras["all"][0].removeprefix("uqprism[").removesuffix("]").split(",")) == users

"""What importing loads, and what is said when a package is missing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["pyarrow", "dask", "distributed", "xarray", "pandas", "rich", "typer"]


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_scale_loads_nothing_heavy() -> None:
    code = f"import sys, json, uqprism.files; uqprism.files.score; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    assert json.loads(run(code)) == []


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pyarrow", "cli", "score('in.csv', 'out.csv')"),
        ("distributed", "scale", "score('in.csv', 'out', dask='tcp://localhost:1')"),
        ("dask", "scale", "evaluate(mean=[[1.0]], variance=[[1.0]])"),
    ],
)
def test_missing_packages_name_their_extra(package: str, extra: str, call: str, tmp_path: object) -> None:
    code = f"""
import os, sys
os.chdir({str(tmp_path)!r})
open("in.csv", "w").write("mean_0,scale_0\\n1,1\\n")
sys.modules[{package!r}] = None
import uqprism.files
try:
    uqprism.files.{call}
except ImportError as error:
    print(error)
"""
    assert f"pip install 'uqprism[{extra}]'" in run(code)

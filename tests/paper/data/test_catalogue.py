"""Data sets are found by name, say what they are, and load nothing heavy until they are asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from uqprism.errors import ArgumentError, UnknownNameError
from uqprism.paper import data


def test_every_name_has_a_sentence() -> None:
    assert list(data.summaries()) == data.names()
    assert all(20 < len(sentence) < 130 for sentence in data.summaries().values())
    paper = {"dots", "arrow", "cityscapes", "mnist_mosaic", "ccpp", "casp", "sgemm", "news", "blog", "ymsd"}
    assert paper | {"camvid", "california", "diabetes", "digits_mosaic"} == set(data.names())


def test_unknown_names_and_options_say_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="unknown data set 'cpp'; did you mean 'ccpp'"):
        data.load("cpp")
    with pytest.raises(ArgumentError, match="dots takes the options sizes, noise, got test_fraction"):
        data.load("dots", test_fraction=0.1)
    with pytest.raises(ArgumentError, match="camvid takes the options target, got sizes"):
        data.load("camvid", sizes=(1, 1, 1))


def test_generated_sets_load_numpy_only() -> None:
    code = """
import sys, json
from uqprism.paper import data
data.load("dots", sizes=(2, 2, 2)); data.load("arrow", sizes=(2, 2, 2))
heavy = ["torch", "scipy", "sklearn", "pyarrow", "pandas", "PIL", "rich", "matplotlib", "pooch", "openpyxl"]
print(json.dumps([name for name in heavy if name in sys.modules]))
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("sklearn", "sklearn", 'data.load("diabetes")'),
        ("sklearn", "sklearn", 'data.load("digits_mosaic")'),
        ("PIL", "deep", 'data.ood_mosaics("photographs", numpy.zeros((2, 1, 16, 16), numpy.uint8))'),
        ("pyarrow", "paper", 'data.load("ccpp", root=".")'),
        ("pandas", "paper", 'data.load("ccpp", root=".")'),
        ("openpyxl", "paper", 'from uqprism.paper.data import formats; formats.read_xlsx(b"", "b.xlsx")'),
        ("pooch", "paper", "from uqprism.paper.data.root import Root; Root.of()"),
    ],
)
def test_missing_packages_name_their_extra(package: str, extra: str, call: str, tmp_path) -> None:
    (tmp_path / "ccpp.parquet").touch()
    code = f"""
import sys; sys.modules[{package!r}] = None
import numpy
from uqprism.paper import data
try:
    {call}
except ImportError as error:
    print(error)
"""
    clean = {name: value for name, value in os.environ.items() if name != "UQPRISM_DATA"}
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=clean)
    assert f"pip install 'uqprism[{extra}]'" in result.stdout, result.stderr


def test_a_new_file_is_found_by_itself(tmp_path) -> None:
    """The only step to add a data set is to write one file into the folder `sets`."""
    (tmp_path / "line.py").write_text("""
import numpy as np
from uqprism.paper import data

@data.register("line", "Points on a noisy line")
def line(seed, *, n=100):
    x = np.linspace(0.0, 1.0, n)
    y = x + np.random.default_rng(seed).normal(size=n)
    return data.split("line", data.Samples(x[:, None], y), seed, 0.2, 0.1)
""")
    code = f"""
from uqprism.paper import data
from uqprism.paper.data import sets
sets.__path__.append({str(tmp_path)!r})
print(len(data.load("line", n=50).train), "line" in data.summaries())
"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "35 True\n", result.stderr


def test_constants_are_the_numbers_that_a_generator_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.constants("arrow").items() >= {"ANGLE": (-90.0, 90.0), "LENGTH": 16.0, "NOISE": 0.4}.items()
    monkeypatch.setattr("uqprism.paper.data.sets.arrow_images.LENGTH", 12.0)
    assert data.constants("arrow")["LENGTH"] == 12.0
    assert "LENGTH" not in data.constants("dots")

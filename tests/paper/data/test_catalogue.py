"""Data sets are found by name, say what they are, and load nothing heavy until they are asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from uqprism.errors import ArgumentError, MissingExtraError, UnknownNameError, install_command
from uqprism.paper import data
from uqprism.paper.data.formats import read_csv, read_parquet, read_xlsx
from uqprism.paper.data.inventory import presence


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


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("sklearn", "sklearn", lambda: data.load("diabetes")),
        ("sklearn", "sklearn", lambda: data.load("digits_mosaic")),
        ("PIL", "deep", lambda: data.ood_mosaics("photographs", np.zeros((2, 1, 16, 16), np.uint8))),
        ("pyarrow", "paper", lambda: read_parquet(Path("t.parquet"))),
        ("pandas", "paper", lambda: read_csv(b"", "t.csv")),
        ("openpyxl", "paper", lambda: read_xlsx(b"", "b.xlsx")),
        ("pooch", "paper", lambda: data.load("casp")),
    ],
)
def test_missing_packages_name_their_extra(package: str, extra: str, call: Callable[[], object], monkeypatch) -> None:
    monkeypatch.delenv("UQPRISM_DATA", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"it comes with: {re.escape(install_command(extra))}$"):
        call()
    if package == "pooch":
        assert install_command("paper") in " ".join(presence("casp").absent)


def test_constants_are_the_numbers_that_a_generator_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.constants("arrow").items() >= {"ANGLE": (-90.0, 90.0), "LENGTH": 16.0, "NOISE": 0.4}.items()
    monkeypatch.setattr("uqprism.paper.data.sets.arrow_images.LENGTH", 12.0)
    assert data.constants("arrow")["LENGTH"] == 12.0
    assert "LENGTH" not in data.constants("dots")

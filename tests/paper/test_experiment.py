"""Experiments are found by their registry."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.paper.toy import EXPERIMENT
from uqprism import paper
from uqprism.errors import InvalidValueError, UnknownNameError
from uqprism.paper.experiment import EXPERIMENTS


@pytest.fixture
def registered() -> Iterator[None]:
    paper.register(EXPERIMENT)
    yield
    EXPERIMENTS.remove("toy")


@pytest.mark.usefixtures("registered")
def test_a_registered_experiment_is_listed_and_its_name_is_taken() -> None:
    assert paper.summaries()["toy"] == "A toy."
    assert paper.presets()["toy"] == ("tiny", "slow")
    assert paper.having("slow")[0] == ["toy"]
    with pytest.raises(InvalidValueError, match="'toy' is taken"):
        paper.register(dataclasses.replace(EXPERIMENT, summary="Another."))


def test_unknown_names_and_presets_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'shift'; did you mean 'shifts'"):
        paper.get("shift")
    with pytest.raises(UnknownNameError, match="'longest'; did you mean 'longer'"):
        paper.having("longest")


def test_listing_imports_neither_torch_nor_matplotlib() -> None:
    heavy = ("torch", "matplotlib", "scipy", "sklearn", "pandas", "pyarrow", "numba")
    code = f"import sys; from uqprism import paper; paper.presets(); print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"

"""Each library has a page whose code runs: fit, decompose, report in at most six lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import uqprism as up

FOLDER = Path(__file__).parents[3] / "docs" / "libraries"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")
HEAVY = {"arviz", "autogluon", "bde", "catboost", "darts", "gluonts", "laplace", "nixtla", "numpyro", "pymc", "pytabkit"}
HEAVY |= {"sktime", "tabm", "tfp", "xgboost"}
PAGES = [pytest.param(name, marks=pytest.mark.libraries) if name in HEAVY else name for name in NAMES]

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, and of quantiles that cross


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs(name: str, page: Callable) -> None:
    assert isinstance(page(name)["ens"], up.EnsemblePrediction)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_decomposes_and_reports_in_six_lines(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text()
    examples = [block for block in re.findall(r"```py(?:thon)?\n(.*?)```", text, flags=re.DOTALL) if "up.write_report(" in block]
    assert examples
    for block in examples:
        lines = [line for line in block.splitlines() if line]
        assert len(lines) <= 6, block
        assert max(map(len, lines)) <= 130, block
        assert "up.decompose(" in block or "up.files.evaluate(" in block


def test_the_index_leads_to_every_page() -> None:
    index = (FOLDER / "index.md").read_text()
    assert [name for name in NAMES if f"({name}.md)" not in index] == []

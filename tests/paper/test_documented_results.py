"""The results in the documentation are those of the stored run, and the stored run is of the present settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uqprism.paper import get
from uqprism.paper.experiment import Claim
from uqprism.paper.report import APPENDIX, claims_table
from uqprism.paper.store import as_data

DOCS = Path(__file__).parent.parent.parent / "docs"
STORED = sorted(path.parent for path in DOCS.glob("results/*/result.json"))
ASIDE = sorted(path.parent for path in DOCS.glob("results/*/*/result.json"))  # other presets, run to find a cause


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_the_page_shows_the_stored_claims(folder: Path) -> None:
    record = json.loads((folder / "result.json").read_text())
    table = claims_table([Claim(**claim) for claim in record["claims"]])
    assert table in folder.with_suffix(".md").read_text()
    assert table in (folder / "report.md").read_text()
    assert table in (DOCS / "results" / "README.md").read_text()


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_the_stored_run_is_of_the_present_settings(folder: Path) -> None:
    record = json.loads((folder / "result.json").read_text())
    assert record["config"] == as_data(get(folder.name).presets[record["preset"]])


def test_every_sentence_of_the_appendix_is_among_the_stored_ones() -> None:
    names = {claim["name"] for folder in STORED for claim in json.loads((folder / "result.json").read_text())["claims"]}
    assert names >= APPENDIX


@pytest.mark.parametrize("folder", ASIDE, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_a_run_aside_is_of_its_present_preset_and_linked(folder: Path) -> None:
    record = json.loads((folder / "result.json").read_text())
    assert record["preset"] == folder.name
    assert record["config"] == as_data(get(folder.parent.name).presets[folder.name])
    assert f"({folder.parent.name}/{folder.name}/report.md)" in folder.parent.with_suffix(".md").read_text()


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_pictures_are_small_and_on_the_page(folder: Path) -> None:
    pictures = sorted(folder.glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 150_000
        assert f"({folder.name}/{picture.name})" in folder.with_suffix(".md").read_text()

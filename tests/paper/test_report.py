"""The report of a run, the overview of several, and the stored results in the documentation."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.paper.toy import EXPERIMENT, LOG, gather
from uqprism.measures.published import Cell
from uqprism.paper import get
from uqprism.paper.comparison import agreement
from uqprism.paper.experiment import Claim, Result
from uqprism.paper.report import APPENDIX, claims_table, overview
from uqprism.paper.results import load, read_record
from uqprism.paper.runner import produce
from uqprism.paper.store import Store, as_data

AGREEMENT = agreement(
    {"crps.bayes.members": 1.5, "crps.bayes.pooled": 2.5, "log.bayes.pooled": 2.0},
    {"crps.bayes.members": Cell(1.0, 0.0), "crps.bayes.pooled": Cell(2.0, 0.0), "log.bayes.pooled": Cell(3.0, 0.0)},
)


def agreeing(config: object, store: Store) -> Result:
    found = gather(config, store)  # type: ignore[arg-type]
    false = dataclasses.replace(found.claims[0], name="other", paper="The mean is one.", holds=False)
    return dataclasses.replace(found, claims=(*found.claims, false), agreements={"the mean": AGREEMENT})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    where = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG, str(where / "log"))
        produce(EXPERIMENT, "tiny", out=where / "first")
        produce(dataclasses.replace(EXPERIMENT, gather=agreeing), "tiny", out=where / "second")
    return [where / "first", where / "second"]


def records(folders: list[Path]) -> dict[str, dict]:
    return {folder.name: read_record(folder) for folder in folders}


def test_the_overview_counts_the_sentences_that_hold(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqprism.paper.report.APPENDIX", {"other"})
    text = overview(records(folders))
    assert (
        "Of 3 sentences of the paper that were compared with our numbers, 2 hold: 2 of the 2 in its Sections 5.1 to 5.6, " in text
    )
    assert "and 0 of the 1 in its appendix." in text
    assert "| [first](first.md) | 1 of 1 | tiny |" in text
    assert "| [second](second.md) | 1 of 2 | tiny |" in text
    assert "| The mean is one. | **does not hold** | it is |" in text


def test_agreement_is_in_the_record_the_report_and_the_overview(folders: list[Path]) -> None:
    assert load(folders[1])[0].agreements == {"the mean": AGREEMENT}
    assert load(folders[0])[0].agreements == {}
    row = "| 3 | 0.5 | 0.667 | 1 |"
    assert f"| the mean {row}" in (folders[1] / "report.md").read_text()
    assert f"| [second](second.md), the mean {row}" in overview(records(folders))
    assert "Agreement" not in overview(records(folders[:1]))


DOCS = Path(__file__).parents[2] / "docs"
STORED = sorted(path.parent for path in DOCS.glob("results/*/result.json"))
ASIDE = sorted(path.parent for path in DOCS.glob("results/*/*/result.json"))  # other presets, run to find a cause


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_the_page_shows_the_stored_claims_and_small_pictures_of_the_present_settings(folder: Path) -> None:
    record = read_record(folder)
    assert record["config"] == as_data(get(folder.name).presets[record["preset"]])
    table, page = claims_table([Claim(**claim) for claim in record["claims"]]), folder.with_suffix(".md").read_text()
    for text in (page, (folder / "report.md").read_text(), (DOCS / "results" / "README.md").read_text()):
        assert table in text
    pictures = sorted(folder.glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 150_000
        assert f"({folder.name}/{picture.name})" in page


def test_every_sentence_of_the_appendix_is_among_the_stored_ones() -> None:
    assert {claim["name"] for folder in STORED for claim in read_record(folder)["claims"]} >= APPENDIX


@pytest.mark.parametrize("folder", ASIDE, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_a_run_of_another_preset_is_of_its_present_settings_and_linked(folder: Path) -> None:
    record = read_record(folder)
    assert record["preset"] == folder.name
    assert record["config"] == as_data(get(folder.parent.name).presets[folder.name])
    assert f"({folder.parent.name}/{folder.name}/report.md)" in folder.parent.with_suffix(".md").read_text()

"""The page as a person sees it: `uqprism app` in a real browser."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.app.browser import browser, finished, found_browser, page_in, served
from tests.app.files import BAD, ROWS, TABLE
from uqprism.app.inputs import ScoringChoice
from uqprism.app.scored import score
from uqprism.errors import UqprismError

pytest.importorskip("streamlit", reason="Streamlit is not installed (extra app)")
pytest.importorskip("playwright", reason="Playwright is not installed (extra test)")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(found_browser() is None, reason="no Chromium here: apt-get install chromium"),
]


def saved(page, label: str, folder: Path) -> Path:
    """The file behind a download button."""
    finished(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def metric(page, label: str) -> str:
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue").inner_text()


def watched(page) -> set[str]:
    """The machines that the page asks for anything, as they are asked."""
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname or "localhost"))  # none: the page holds it
    return asked


def drop(page, path: Path) -> None:
    page.locator("input[type=file]").first.set_input_files(path)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A page that was started on a file."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "first.csv").write_bytes(TABLE.csv())
    with served("first.csv", folder=folder) as address:
        yield address


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def test_from_a_dropped_file_to_its_scores(chromium, url: str, tmp_path: Path) -> None:
    """Drop a file, change the rule, download: the numbers are those of `decompose`."""
    (tmp_path / "mine.csv").write_bytes(TABLE.csv())
    split = up.decompose(TABLE.ensemble, "squared_error")
    with page_in(chromium) as page:
        asked = watched(page)
        page.goto(url)
        page.get_by_text("4 models in first.csv").wait_for()
        drop(page, tmp_path / "mine.csv")
        page.get_by_text("4 models in mine.csv").wait_for()
        assert metric(page, "Rows") == str(ROWS)
        page.get_by_role("combobox", name=re.compile("What a wrong prediction costs")).click()
        page.get_by_role("option", name="Squared error").click()
        page.get_by_text("squared_error.excess.members.members").first.wait_for()
        assert metric(page, "Mean disagreement") == f"{split.excess.mean():.4g}"

        with saved(page, "Scored file as CSV", tmp_path).open(newline="") as file:
            rows = list(csv.DictReader(file))
        for name, values in (("total.members.members", split.total), ("bayes.members", split.bayes)):
            np.testing.assert_allclose([float(row[f"squared_error.{name}"]) for row in rows], values, rtol=1e-12)
        flagged = np.array([row["flagged"] == "true" for row in rows])
        assert flagged.sum() == ROWS // 10
        assert split.total[flagged].min() > split.total[~flagged].max()
        table = pq.read_table(saved(page, "Scored file as Parquet", tmp_path))
        np.testing.assert_allclose(table.column("squared_error.excess.members.members"), split.excess, rtol=1e-12)
    assert asked == {"localhost"}  # nothing leaves the machine


def test_a_bad_file_is_refused_on_a_phone_in_the_words_of_the_command(chromium, url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(BAD["a bad row"].content)
    with pytest.raises(UqprismError) as refused:
        score(BAD["a bad row"], ScoringChoice())
    with page_in(chromium, color_scheme="dark", viewport={"width": 390, "height": 800}) as page:
        page.goto(url)
        page.get_by_text("4 models in first.csv").wait_for()
        assert metric(page, "Mean total") == f"{up.decompose(TABLE.ensemble).total.mean():.4g}"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390  # nothing hangs over the edge
        drop(page, tmp_path / "mine.csv")
        page.get_by_text(str(refused.value), exact=True).wait_for()

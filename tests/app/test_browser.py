"""The page as a person sees it: `uqprism app` in a real browser."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.app.browser import browser, finished, found_browser, page_in, served
from tests.app.files import BAD, ROWS, TABLE
from uqprism.report.formatting import amounts

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


def watched(page) -> set[str]:
    """The machines that the page asks for anything, as they are asked."""
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).hostname or "localhost"))  # none: the page holds it
    return asked


def drop(page, files: Any, seen: Any) -> None:
    """Open another file by the button at the top, and wait for what is then seen."""
    page.get_by_role("button", name="Another file").click()
    page.locator("[data-testid=stPopoverBody] input[type=file]").set_input_files(files)
    seen.wait_for()
    finished(page)
    page.keyboard.press("Escape")


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
        page.get_by_text("rows · 4 models").wait_for()
        drop(page, tmp_path / "mine.csv", page.locator(".file", has_text="mine.csv"))
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("combobox", name=re.compile("What a wrong prediction costs")).click()
        page.get_by_role("option", name="Squared error").click()
        page.get_by_text("of the squared error is noise").wait_for()
        page.keyboard.press("Escape")
        shown = amounts([split.bayes.mean() ** 0.5, split.excess.mean() ** 0.5], "")
        assert page.locator(".parts dd:not(.quiet)").all_inner_texts() == shown

        with saved(page, "Scores as CSV", tmp_path).open(newline="") as file:
            rows = list(csv.DictReader(file))
        for name, values in (("total.members.members", split.total), ("bayes.members", split.bayes)):
            np.testing.assert_allclose([float(row[f"squared_error.{name}"]) for row in rows], values, rtol=1e-12)
        flagged = np.array([row["flagged"] == "true" for row in rows])
        assert flagged.sum() == ROWS // 10
        assert split.total[flagged].min() > split.total[~flagged].max()
        table = pq.read_table(saved(page, "Scores as Parquet", tmp_path))
        np.testing.assert_allclose(table.column("squared_error.excess.members.members"), split.excess, rtol=1e-12)
    assert asked == {"localhost"}  # nothing leaves the machine


def test_a_bad_file_is_refused_on_a_phone_and_nothing_is_cut_off(chromium, url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(BAD["no members"].content)
    with page_in(chromium, color_scheme="dark", viewport={"width": 390, "height": 844}) as page:
        page.goto(url)
        page.get_by_text("rows · 4 models").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390  # nothing hangs over the edge
        clipped = "[...document.querySelectorAll('.uq *')].filter(each => each.scrollWidth > each.clientWidth + 1).length"
        assert page.evaluate(f"{clipped} - document.querySelectorAll('.uq span, .uq b, .uq i').length") <= 0
        assert page.locator(".actions").bounding_box()["y"] < 844  # the first screen has the sentence, the split and the actions
        said = page.get_by_text("no columns like mean_{i}, the columns are a, b. Under Settings, say which")
        drop(page, tmp_path / "mine.csv", said)


HOSTILE = {
    "image": "![x](http://evil.example/a.png)",
    "html": "<img src=http://evil.example/b.png onerror=fetch('http://evil.example/c')>",
    "link": "[here](http://evil.example/d)",
    "bare": "http://evil.example/e.png",
    "latex": r"$\frac{1}{2}$",
    "colour": ":red[alarm]",
    "emoji": ":smile:",
    "icon": ":material/skull:",
    "style": "<style>*{background:url(http://evil.example/f)}</style>",
}


def test_names_and_cells_are_text(chromium, url: str, tmp_path: Path) -> None:
    """Of the file, its columns, its rows and its target; in the sentence, tables, choices, pictures, messages and commands."""
    every = " ".join(HOSTILE.values())
    cells = [f"{text} {i}" for i in range(ROWS // len(HOSTILE) + 1) for text in HOSTILE.values()][:ROWS]
    columns = {
        f"{every} id": cells,
        every: cells,
        **dict.fromkeys(HOSTILE.values(), cells),
        f"{HOSTILE['image']} [$x^2$]": list(TABLE.target),
    }
    content = TABLE.upload(**columns).content.replace(b"id,y,", b"nothing,empty,", 1)
    given = {"name": f"{every}.csv".replace("/", ":"), "mimeType": "text/csv", "buffer": content}
    bad = {
        "name": "![bad](http:evil.example).csv",
        "mimeType": "text/csv",
        "buffer": f'"{HOSTILE["image"]}",mean_0\n1,{HOSTILE["emoji"]}\n'.encode(),
    }
    with page_in(chromium, viewport={"width": 1400, "height": 2400}) as page:
        asked = watched(page)
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.goto(url)
        page.get_by_text("rows · 4 models").wait_for()
        drop(page, given, page.locator(".file", has_text="evil.example"))
        page.get_by_role("button", name="Settings").click()
        chosen = page.get_by_role("combobox", name=re.compile("^(?!Which|Predict|Truth|What).*Target"))
        chosen.click()
        page.get_by_role("option").first.wait_for()
        page.get_by_role("option", name=HOSTILE["image"]).first.click()
        page.locator("h1", has_text=HOSTILE["image"]).wait_for()
        page.keyboard.press("Escape")
        finished(page)
        for place in ("[data-testid=stDataFrame]", "[data-testid=stVegaLiteChart]"):
            box = page.locator(place).first.bounding_box()
            for part in (0.15, 0.3, 0.5, 0.7, 0.9):  # what is shown when it is pointed at
                page.mouse.move(box["x"] + part * box["width"], box["y"] + part * box["height"])
                page.wait_for_timeout(120)
        page.get_by_text("The same in a terminal and in Python").click()
        page.get_by_text("uqprism selective").wait_for()
        formatted = "main img, main a[href*=evil], .katex, [class*=stMarkdownColored], main [onerror], main style"
        assert page.locator(formatted).count() == 0
        drop(page, bad, page.locator(".problem", has_text="![bad]"))
        assert page.locator(formatted).count() == 0
    assert asked == {"localhost"}

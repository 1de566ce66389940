"""The page in a real browser: what is on its first screen, that nothing runs over its width, and what its buttons do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import uqprism as up
from tests.app.browser import browser, found_browser, page_in
from tests.report.pages import frame
from uqprism.report.page import Report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(found_browser() is None, reason="no Chromium here: apt-get install chromium"),
]
FIRST = ("#short .headline", "#short .split", "#short .actions li:last-child")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_holds_a_sentence_a_picture_and_three_actions(
    written: Report, chromium: Any, width: int, height: int, scheme: str
) -> None:
    heard: list[str] = []
    with page_in(chromium, viewport={"width": width, "height": height}, color_scheme=scheme) as page:
        page.on("console", lambda message: heard.append(message.text))
        page.on("request", lambda request: heard.append(request.url))
        page.goto(written.path.as_uri())
        assert page.locator("#short .actions li").count() == 3
        for part in FIRST:
            box = page.locator(part).bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height, part
        page.evaluate("for (const each of document.querySelectorAll('details')) { each.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert heard == [written.path.as_uri()]  # nothing else was loaded, and nothing was refused


def test_long_names_do_not_run_over_the_width(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    long = "x" * 300
    source = frame().rename(columns={"y": long}).assign(id=[f"{long}{i}" for i in range(40)])
    how: dict[str, Any] = {"target": long, "title": long, "unit": "u" * 40, "ood": {long: source}, "resamples": 0}
    found = up.write_report(source, tmp_path_factory.mktemp("long") / "page.html", **how)
    with page_in(chromium, viewport={"width": 390, "height": 844}) as page:
        page.goto(found.path.as_uri())
        page.evaluate("for (const each of document.querySelectorAll('details')) { each.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_links_open_what_is_folded_and_names_show_on_request(written: Report, chromium: Any) -> None:
    with page_in(chromium, viewport={"width": 1000, "height": 900}) as page:
        page.goto(written.path.as_uri())
        folded, name = page.locator("#most-disagreement table"), page.locator("#selective code.technical").first
        assert (folded.is_visible(), name.is_visible()) == (False, False)
        page.get_by_role("link", name="Audit before").click()
        page.get_by_role("button", name="Technical names").click()
        folded.wait_for()
        name.wait_for()
        page.get_by_role("button", name="Dark").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 28)"


def test_a_dot_tells_its_row(written: Report, chromium: Any) -> None:
    with page_in(chromium, viewport={"width": 1000, "height": 900}) as page:
        page.goto(written.path.as_uri())
        page.locator("#figure-scatter").scroll_into_view_if_needed()
        at = page.evaluate(
            """() => {
                const dots = JSON.parse(document.querySelector("script[data-dots]").textContent);
                const svg = document.querySelector("#figure-scatter svg"), point = svg.createSVGPoint();
                [point.x, point.y] = [dots.x[0], dots.y[0]];
                const spot = point.matrixTransform(svg.getScreenCTM());
                return [spot.x, spot.y];
            }"""
        )
        page.mouse.move(*at)
        assert "noise: " in page.locator("#figure-scatter .tip").inner_text()


def test_the_page_reads_without_its_script(written: Report, chromium: Any) -> None:
    with page_in(chromium, java_script_enabled=False) as page:
        page.goto(written.path.as_uri())
        assert page.locator("#methods").is_visible()
        assert page.locator("#short .actions li").count() == 3
        assert page.locator("tbody.more tr").first.is_visible()

"""The page: its numbers are the API's, it loads nothing, it is well formed, and nothing in a file can break out of it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.errors import ArgumentError, InvalidValueError, UqprismError
from uqprism.report.page import Report
from uqprism.tasks import ood_detection, prediction_error, rank_correlation, selective_prediction

VOID = {"meta", "br", "hr", "img", "input", "link"}
RESAMPLES = 20


class Page(HTMLParser):
    """What a page holds; fails where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.open and self.open[-1] not in {"style", "script"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Report:
    return write(tmp_path_factory.mktemp("report") / "report.html")


def write(path: Path) -> Report:
    (ens, y), (near, _), (far, _) = ensemble(150), ensemble(60, shift=1.0, seed=2), ensemble(50, shift=3.0, seed=3)
    return up.write_report(ens, path, target=y, ood={"near": near, "far": far}, unit="minutes", resamples=RESAMPLES)


@pytest.fixture(scope="module")
def page(written: Report) -> Page:
    return Page(written.path.read_text())


def test_the_page_is_well_formed_with_names_that_are_once(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    links = [value for name, value in page.attributes if name in {"href", "xlink:href"}]
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(page.ids)
    assert page.tags.count("svg") == 8


def test_the_page_loads_nothing(written: Report, page: Page) -> None:
    text = written.path.read_text()
    assert "http" not in text
    assert "@import" not in text
    assert {
        value.split(",")[0] for name, value in page.attributes if name in {"src", "href", "xlink:href"} if value[0] != "#"
    } <= {"data:image/png;base64"}
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", text))
    assert written.size == written.path.stat().st_size < 1_000_000


def test_the_same_input_gives_the_same_page(written: Report, tmp_path: Path) -> None:
    again = write(tmp_path / "page")
    assert again.path.read_bytes() == written.path.read_bytes()


def test_the_numbers_are_those_of_the_functions(written: Report, page: Page) -> None:
    ens, y = ensemble(150)
    d = up.decompose(ens)
    noise, removable = d.aleatoric.mean(), d.epistemic.mean()
    assert f"{noise:.3g} minutes of it ({100 * noise / (noise + removable):.0f} %) is noise" in page.text
    measures = list(written.findings.results["selective"])
    table = up.evaluate(ens, measures)
    selective = selective_prediction(table, error=prediction_error(ens, y), resamples=RESAMPLES)
    assert written.findings.results["selective"].rows() == selective.rows()
    best = selective.best()
    assert f"{best} total uncertainty" in page.text or best.split(".")[1] != "total"
    low, high = selective.interval()[best]
    assert f"{selective[best]:.3f} {low:.3f} to {high:.3f} yes" in page.text
    outside = {
        name: up.evaluate(ensemble(n, shift=s, seed=i)[0], measures)
        for name, n, s, i in (("near", 60, 1.0, 2), ("far", 50, 3.0, 3))
    }
    detection = ood_detection(table, outside, resamples=RESAMPLES)
    assert f"{detection[detection.best()]:.3f}" in page.text
    assert written.findings.results["ood"].rows() == detection.rows()
    np.testing.assert_array_equal(written.findings.results["correlation"].matrix, rank_correlation(table).matrix)
    assert f"hold {100 * up.calibration(ens, y).coverage(0.9)[0]:.1f} %" in page.text
    chosen = up.select_measure(table, error=prediction_error(ens, y), resamples=RESAMPLES)
    assert written.findings.choices["selective"].measure == chosen.measure


def test_the_most_uncertain_rows_are_in_the_tables(page: Page) -> None:
    ens, y = ensemble(150)
    d = up.decompose(ens)
    row = int(np.argmax(d.epistemic))
    low, high = (ens[row : row + 1].mixture.quantile(level)[0] for level in (0.05, 0.95))
    mean = ens.mixture.mean[row]
    expected = f"{row} {d.epistemic[row]:.3g} {d.aleatoric[row]:.3g} {mean:.3g} {low:.3g} to {high:.3g} {y[row]:.3g}"
    assert f"90 % interval target {expected}" in page.text


def test_dots_lie_where_the_axes_say_and_know_their_rows(written: Report) -> None:
    (data,) = re.findall(r"data-dots>(.*?)</script>", written.path.read_text())
    dots = json.loads(data)
    d = up.decompose(ensemble(150)[0])
    assert dots["names"] == ["row", "prediction", "target", "noise", "removable part"]
    assert dots["values"][0] == [str(row) for row in range(150)]
    # On a logarithmic axis places are affine in the logarithm.
    for places, values in ((dots["x"], d.aleatoric), (dots["y"], d.epistemic)):
        slope, start = np.polyfit(np.log(values), places, 1)
        np.testing.assert_allclose(places, start + slope * np.log(values), atol=0.06)
    (x, y) = re.findall(r'd="M([\d.]+) ([\d.]+)h0', written.path.read_text())[0]
    assert (float(x), float(y)) == (dots["x"][0], dots["y"][0])


def test_figures_follow_the_theme(written: Report) -> None:
    drawings = re.findall(r"<svg.*?</svg>", written.path.read_text(), flags=re.DOTALL)
    for drawing in drawings:
        assert "var(--ink)" in drawing
        assert not re.search(r"#(000000|0072b2|ffffff)\b", drawing)
        assert "DejaVu" not in drawing


def test_the_methods_box_tells_how_it_was_made(page: Page) -> None:
    assert "150 rows used, none left out" in page.text
    assert "12 measures by closed form, relative error up to 1e-10" in page.text
    assert f"95 % of {RESAMPLES} resamples of the rows, seed 0" in page.text
    assert f"uqprism {up.__version__}, python" in page.text
    assert "Fishkov, Alexander" in page.text


# Other sources --------------------------------------------------------------------------------------------------------


def test_nothing_in_a_table_can_break_out_of_the_page(undrawn: None, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    ens, y = ensemble(40)
    table = {**up.evaluate(ens, ["crps.bayes.members", "crps.excess.members.members"]), evil: np.arange(40.0)}
    how = {"title": evil, "unit": evil, "ood": {evil: {name: x + 1.0 for name, x in table.items()}}, "resamples": RESAMPLES}
    up.write_report(table, tmp_path / "page", target=y, prediction=y + np.arange(40.0), **how)
    page = Page((tmp_path / "page").read_text())
    assert page.tags.count("script") == 2
    assert "alert(1)" in page.text


def test_a_table_of_measures_has_no_calibration_and_says_why(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(60)
    found = up.write_report(up.evaluate(ens), tmp_path / "page", error=prediction_error(ens, y), resamples=0)
    page = Page(found.path.read_text())
    assert found.findings.calibration is None
    assert "needs the columns of the members" in page.text
    assert "none, since no resamples were asked for" in page.text
    assert len(found.findings.results["selective"]) == 144


def test_without_targets_there_are_neither_errors_nor_intervals(undrawn: None, tmp_path: Path) -> None:
    found = up.write_report(ensemble(60)[0], tmp_path / "page")
    assert set(found.findings.results) == {"correlation"}
    assert list(found.sentences) == ["split", "kinds", "rows"]
    page = Page(found.path.read_text())
    assert {"summary", "rows", "correlation", "advice", "methods"} <= set(page.ids)
    assert not {"selective", "calibration", "ood"} & set(page.ids)
    assert "log.excess.members.members" in page.text


@pytest.mark.parametrize(
    "ens",
    [
        up.EnsemblePrediction.gaussian(mean=np.arange(30.0)[None], scale=np.ones((1, 30))),
        up.EnsemblePrediction.gaussian(mean=np.zeros((3, 30)), scale=np.ones((3, 30))),
        up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [1.0]]),
        up.EnsemblePrediction.samples(np.random.default_rng(0).normal(size=(3, 20, 30))),
        up.EnsemblePrediction.student_t(location=np.eye(3, 30), scale=np.ones((3, 30)), df=1.5),
        up.EnsemblePrediction.gaussian(mean=np.zeros((2, 5, 6)), scale=1.0 + np.arange(60.0).reshape(2, 5, 6)),
    ],
    ids=["one member", "equal members", "one row", "samples", "infinite variance", "two axes of points"],
)
def test_unusual_ensembles_have_a_page_too(ens: up.EnsemblePrediction, tmp_path: Path) -> None:
    y = None if ens.n_points == 1 else np.linspace(-1.0, 1.0, ens.n_points).reshape(ens.points_shape)
    found = up.write_report(ens, tmp_path / "page", target=y, resamples=RESAMPLES)
    text = Page(found.path.read_text()).text
    assert not re.search(r"\b(nan|inf)\b", text.lower())
    assert found.sentences["split"].replace("\u00a0", " ") in text


@pytest.mark.parametrize("rule", ["log", "quadratic", "squared_error"])
def test_the_split_can_be_by_another_rule(undrawn: None, rule: str, tmp_path: Path) -> None:
    ens, _ = ensemble(40)
    found = up.write_report(ens, tmp_path / "page", rule=rule, unit="km")
    d = up.decompose(ens, rule=rule)
    assert found.findings.parts.noise == pytest.approx(d.aleatoric.mean())
    assert ('class="bar"' in found.path.read_text()) == (rule == "squared_error")


def test_equal_errors_leave_a_section_that_says_so(undrawn: None, tmp_path: Path) -> None:
    ens, _ = ensemble(30)
    found = up.write_report(up.evaluate(ens), tmp_path / "page", error=np.ones(30))
    assert "Not for these rows: error must differ between points" in Page(found.path.read_text()).text


@pytest.mark.parametrize(
    ("source", "how", "error", "message"),
    [
        (lambda _: 3, {}, ArgumentError, "source must be a file, an EnsemblePrediction or a table"),
        (lambda _: {"a": np.ones(9)}, {}, InvalidValueError, "needs a noise and a removable part under one rule"),
        (lambda ens: ens, {"ood": 3}, ArgumentError, "ood must be of the kind of the source"),
        (lambda ens: ens, {"rule": "crsp"}, UqprismError, "did you mean 'crps'"),
        (up.evaluate, {"target": np.ones(30)}, ArgumentError, "give prediction= beside target="),
        (
            up.evaluate,
            {"target": np.ones(30), "prediction": np.ones(30), "error": "nll"},
            ArgumentError,
            "members",
        ),
        (lambda ens: ens, {"target": np.full(30, np.nan)}, InvalidValueError, "target must not be NaN"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_written(source, how, error, message, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        up.write_report(source(ensemble(30)[0]), tmp_path / "page", **how)
    assert not list(tmp_path.iterdir())

"""The page: it says what the golden page says, loads nothing, is well formed, and no text of a file can break out of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.report.pages import GOLDEN, KNOWN, OOD, RESAMPLES, Page, plain, write
from tests.tasks.problems import ensemble
from uqprism.report.page import Report
from uqprism.tasks import prediction_error


@pytest.fixture(scope="module")
def page(written: Report) -> Page:
    return Page(written.path.read_text())


def test_the_page_says_what_the_golden_page_says(page: Page) -> None:
    assert page.outline == GOLDEN.read_text(), "if this is meant: python -m tests.report.pages"


def test_the_page_is_well_formed_with_unique_names(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    links = [value for name, value in page.attributes if name in {"href", "xlink:href"}]
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(page.ids)
    assert page.tags.count("svg") == 8


def test_the_page_loads_nothing(written: Report, page: Page) -> None:
    assert "http" not in page.source.replace("http-equiv", "")
    assert "@import" not in page.source
    sources = {value for name, value in page.attributes if name in {"src", "href", "xlink:href"} and value[0] != "#"}
    assert {source.split(",")[0] for source in sources} <= {"data:image/png;base64"}
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", page.source))
    assert written.size == written.path.stat().st_size < 1_000_000


def test_the_same_input_gives_the_same_page(written: Report, tmp_path: Path) -> None:
    assert write(tmp_path / "page").path.read_bytes() == written.path.read_bytes()


def test_all_sentences_and_versions_are_on_the_page(written: Report, page: Page) -> None:
    advice = [text for each in written.advice for text in (each.do, each.why)]
    for sentence in (*written.sentences.values(), *advice, f"uqprism {up.__version__}, python", "Fishkov, Alexander"):
        assert plain(sentence) in page.text


def test_dots_lie_where_the_axes_say_and_know_their_rows(page: Page) -> None:
    dots, parts = page.dots, [up.decompose(ens) for ens in (KNOWN, *OOD.values())]
    aleatoric, epistemic = (np.concatenate([getattr(d, part) for d in parts]) for part in ("aleatoric", "epistemic"))
    assert dots["names"] == ["file", "row", "prediction", "target", "noise", "disagreement"]
    assert dots["values"][0] == ["known rows"] * 150 + ["near"] * 60 + ["far"] * 50
    assert dots["values"][1] == [str(row) for n in (150, 60, 50) for row in range(n)]
    assert dots["values"][2][149:151] == [f"{KNOWN.mixture.mean[149]:.3g}\u00a0minutes".replace("-", "\u2212"), ""]
    assert dots["values"][5][-1] == f"{epistemic[-1]:.3g}\u00a0minutes"
    # On a logarithmic axis places are affine in the logarithm.
    for places, values in ((dots["x"], aleatoric), (dots["y"], epistemic)):
        slope, start = np.polyfit(np.log(values), places, 1)
        np.testing.assert_allclose(places, start + slope * np.log(values), atol=0.06)
    (x, y) = re.findall(r'd="M([\d.]+) ([\d.]+)h0', page.source)[0]
    assert (float(x), float(y)) == (dots["x"][0], dots["y"][0])
    marks = re.findall(r'<path class="marks" fill="var\(--(\w+)\)" d="M([\d.]+) ([\d.]+)(m[^M]*)', page.source)
    assert [(float(x), float(y)) for _, x, y, _ in marks] == [(dots["x"][i], dots["y"][i]) for i in (150, 210)]
    assert len({colour for colour, *_ in marks}) == len({shape for *_, shape in marks}) == 2


def test_figures_follow_the_theme_with_green_noise_and_orange_disagreement(page: Page) -> None:
    for drawing in re.findall(r"<svg.*?</svg>", page.source, flags=re.DOTALL):
        assert "var(--ink)" in drawing
        assert not re.search(r"#(000000|0072b2|ffffff)\b", drawing)
        assert "DejaVu" not in drawing
    assert ".noise { background: var(--green); } .disagreement { background: var(--orange); }" in page.source
    (drawing,) = re.findall(r'id="figure-distributions">.*?</svg>', page.source, flags=re.DOTALL)
    assert set(re.findall(r"var\(--(blue|green|orange)\)", drawing)) == {"green", "orange"}


def test_no_text_can_break_out_of_the_page(made) -> None:
    evil = "</script><script>alert(1)</script>"
    ens, y = ensemble(40)
    table = {**up.evaluate(ens, ["crps.bayes.members", "crps.excess.members.members"]), evil: np.arange(40.0)}
    how = {"title": evil, "unit": evil, "ood": {evil: {name: x + 1.0 for name, x in table.items()}}, "resamples": RESAMPLES}
    _, page = made(table, target=y, prediction=y + np.arange(40.0), **how)
    assert page.tags.count("script") == 2
    assert "alert(1)" in page.text


SECTIONS = {"summary", "rows", "selective", "calibration", "ood", "threshold", "correlation", "advice", "methods"}
OF_SEVERAL = {"selective", "calibration", "ood", "threshold", "correlation"}  # rows
ENS, Y = ensemble(60)
TABLE, ERROR = up.evaluate(ENS), prediction_error(ENS, Y)
ONE_ROW = {name: TABLE[name][:1] for name in ("crps.bayes.members", "crps.excess.members.members")}


@pytest.mark.parametrize(
    ("source", "how", "absent", "why"),
    [
        (ENS, {"target": Y, "ood": ENS[:20]}, set(), ""),
        (ENS, {}, {"selective", "calibration", "ood"}, ""),
        (ENS, {"error": ERROR}, {"ood"}, "errors alone: that needs the targets (--target)."),
        (TABLE, {"error": ERROR}, {"ood"}, "that needs the targets (--target) and the columns of the members"),
        (TABLE, {"target": Y, "prediction": Y + 1.0 / (1.0 + Y**2)}, {"ood"}, "that needs the columns of the members"),
        (ENS[:1], {"target": Y[:1]}, OF_SEVERAL, "takes more rows"),
        (ONE_ROW, {"target": Y[:1], "prediction": Y[:1]}, OF_SEVERAL, "takes more"),
    ],
)
def test_sections_appear_by_what_is_known(made, source, how, absent: set[str], why: str) -> None:
    found, page = made(source, **how)
    assert SECTIONS & set(page.ids) == SECTIONS - absent
    assert why in page.text
    results = {"selective_prediction": "selective", "ood_detection": "ood", "rank_correlation": "correlation"}
    assert {results[name] for name in found.findings.results} == set(results.values()) - absent
    assert (found.findings.calibration is None) == (source is not ENS or "target" not in how)
    assert ("targets known" in page.text) == ("target" in how)
    assert ("errors known" in page.text) == ("error" in how)


def test_equal_errors_leave_a_section_that_says_so(made) -> None:
    _, page = made(TABLE, error=np.ones(60))
    assert "Not for these rows: error must differ between points" in page.text


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
    y = np.linspace(-1.0, 1.0, ens.n_points).reshape(ens.points_shape)
    found = up.write_report(ens, tmp_path / "page", target=y, resamples=RESAMPLES)
    text = Page(found.path.read_text()).text
    assert not re.search(r"\b(nan|inf)\b", text.lower())
    assert plain(found.sentences["split"]) in text


@pytest.mark.parametrize("rule", ["log", "quadratic", "squared_error"])
def test_the_split_can_be_by_another_rule(made, rule: str) -> None:
    found, page = made(ENS, rule=rule, unit="km")
    assert found.findings.parts.bayes == pytest.approx(up.decompose(ENS, rule=rule).aleatoric.mean())
    assert (("class", "bar") in page.attributes) == (rule == "squared_error")


def test_the_page_of_one_model_advises_nothing_that_takes_several(made) -> None:
    one = up.EnsemblePrediction.gaussian(mean=ENS.members.mean[:1], scale=ENS.members.scale[:1])
    found, page = made(one, target=Y, ood=one[:20], resamples=RESAMPLES)
    assert "One model cannot disagree with itself" in page.text
    assert "The rows with the most disagreement" not in page.text
    assert "To notice unfamiliar inputs, by total uncertainty" in page.text
    assert "Train several models that differ" in [each.do for each in found.advice]
    assert not re.search(r"\b1 ways", page.text)


def test_an_ensemble_with_gradients_gives_the_page_of_its_numbers(tmp_path: Path) -> None:
    import torch

    rng = np.random.default_rng(0)
    mean, target = rng.normal(size=(3, 40)), rng.normal(size=40)
    pages = []
    for given, y in ((mean, target), (torch.tensor(mean, requires_grad=True), torch.tensor(target, requires_grad=True))):
        ens = up.EnsemblePrediction.gaussian(mean=given, scale=1.0)
        pages.append(up.write_report(ens, tmp_path / "page.html", target=y).path.read_text())
    assert pages[0] == pages[1]

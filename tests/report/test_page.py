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
from uqprism.errors import ArgumentError, InvalidValueError, ShapeError, UqprismError
from uqprism.report.page import Report
from uqprism.report.subject import Split, split_among
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


def near() -> tuple[up.EnsemblePrediction, np.ndarray]:
    return ensemble(60, shift=1.0, seed=2)


def far() -> tuple[up.EnsemblePrediction, np.ndarray]:
    return ensemble(50, shift=3.0, seed=3)


def write(path: Path) -> Report:
    ens, y = ensemble(150)
    outside = {"near": near()[0], "far": far()[0]}
    return up.write_report(ens, path, target=y, ood=outside, unit="minutes", resamples=RESAMPLES)


def table(report: Report, caption: str) -> list[list[str]]:
    """The cells of the table of this name, its headings first."""
    text = report.path.read_text()
    found = re.search(rf'<table aria-label="{re.escape(caption)}">(.*?)</table>', text, flags=re.DOTALL)
    assert found, caption
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], flags=re.DOTALL)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return [[cell.replace("\u00a0", " ") for cell in row] for row in cells]


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
    assert f"{noise:.2f} minutes of it ({100 * noise / (noise + removable):.0f} %) is noise" in page.text
    measures = list(written.findings.results["selective_prediction"])
    table = up.evaluate(ens, measures)
    selective = selective_prediction(table, error=prediction_error(ens, y), resamples=RESAMPLES)
    assert written.findings.results["selective_prediction"].rows() == selective.rows()
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
    assert written.findings.results["ood_detection"].rows() == detection.rows()
    np.testing.assert_array_equal(written.findings.results["rank_correlation"].matrix, rank_correlation(table).matrix)
    assert f"hold {100 * up.calibration(ens, y).coverage(0.9)[0]:.1f} %" in page.text
    chosen = up.select_measure(table, error=prediction_error(ens, y), resamples=RESAMPLES)
    assert written.findings.choices["selective_prediction"].measure == chosen.measure


def test_the_most_uncertain_rows_are_in_the_tables(written: Report) -> None:
    ens, y = ensemble(150)
    d = up.decompose(ens)
    row = int(np.argmax(d.epistemic))
    low, high = (ens[row : row + 1].mixture.quantile(level)[0] for level in (0.05, 0.95))
    mean = ens.mixture.mean[row]
    cells = table(written, "Where more data would help most")
    assert cells[0] == ["row", "removable part", "noise", "prediction", "90 % interval", "target"]
    ends = cells[1][4].split(" to ")
    shown = [float(text.replace("\u2212", "-")) for text in (*cells[1][:4], *ends, cells[1][5])]
    np.testing.assert_allclose(shown, [row, d.epistemic[row], d.aleatoric[row], mean, low, high, y[row]], atol=0.06)
    assert "-" not in "".join(cells[1])


def test_numbers_of_a_column_have_as_many_decimals_each(written: Report) -> None:
    for caption in ("Where more data would help most", "The noisiest rows", "Known rows and rows from outside"):
        columns = list(zip(*table(written, caption)[1:], strict=True))[1:]
        for column in columns:
            numbers = [number for cell in column if "%" not in cell for number in cell.split(" to ")]
            assert len({len(number.partition(".")[2]) for number in numbers}) <= 1, column


def test_rows_from_outside_stand_beside_the_known_ones(written: Report, page: Page) -> None:
    everything = {"known rows": ensemble(150)[0], "from “near”": near()[0], "from “far”": far()[0]}
    split = {name: up.decompose(ens) for name, ens in everything.items()}
    share = {name: f"{100 * d.epistemic.mean() / d.total.mean():.0f} %" for name, d in split.items()}
    cells = table(written, "Known rows and rows from outside")
    assert [(row[0], row[2]) for row in cells[1:]] == list(share.items())
    known, *others = share.values()
    assert written.sentences["elsewhere"].replace("\u00a0", " ") == (
        f"In rows from “near” more data like them would remove {others[0]} of the expected penalty, in rows from “far” "
        f"{others[1]}; in the known rows {known}."
    )
    assert written.findings.outside["far"].removable == pytest.approx(split["from “far”"].epistemic.mean())


def test_a_threshold_is_the_value_that_a_share_of_the_rows_reaches(written: Report) -> None:
    (ens, y), name = ensemble(150), "crps.total.members.members"
    total, far_total = (up.evaluate(each, [name])[name] for each in (ens, far()[0]))
    error = prediction_error(ens, y)
    cells = table(written, f"To avoid large errors, by total uncertainty, CRPS ({name})")
    assert [row[:3:2] for row in cells[1:]] == [["10 %", "15"], ["5 %", "8"], ["1 %", "2"]]
    for row, count in zip(cells[1:], (15, 8, 2), strict=True):
        least = np.sort(total)[-count]
        kept, handed = (np.sqrt(error[rows].mean()) for rows in (total < least, total >= least))
        np.testing.assert_allclose([float(cell) for cell in (row[1], *row[3:5])], [least, kept, handed], atol=0.01)
        assert row[-1].startswith(f"{100 * (far_total >= least).mean():.3g}"[:2])


def test_each_line_of_a_table_of_measures_is_another_order(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(60)
    measures = up.evaluate(ens)
    found = up.write_report(measures, tmp_path / "page", error=prediction_error(ens, y), resamples=0)
    alike = r'<details class="alike"><summary>[^<]*</summary>([^<]*)</details>'
    line = rf'<td><code>([\w.]+)</code><small>[^<]*</small>(?:{alike})?</td><td class="n">'
    listed = re.findall(line, found.path.read_text())
    groups = [[first, *filter(None, others.split(", "))] for first, others in listed]
    assert sorted(name for group in groups for name in group) == sorted(measures)
    ranks = {name: np.unique(column.round(12), return_inverse=True)[1].tobytes() for name, column in measures.items()}
    assert len(groups) == len(set(ranks.values())) < len(measures)
    for group in groups:
        assert len({ranks[name] for name in group}) == 1, group


def test_dots_lie_where_the_axes_say_and_know_their_rows(written: Report) -> None:
    (data,) = re.findall(r"data-dots>(.*?)</script>", written.path.read_text())
    dots = json.loads(data)
    parts = [up.decompose(ens) for ens in (ensemble(150)[0], near()[0], far()[0])]
    aleatoric, epistemic = (np.concatenate([getattr(d, part) for d in parts]) for part in ("aleatoric", "epistemic"))
    assert dots["names"] == ["file", "row", "prediction", "target", "noise", "removable part"]
    assert dots["values"][0] == ["known rows"] * 150 + ["near"] * 60 + ["far"] * 50
    assert dots["values"][1] == [str(row) for n in (150, 60, 50) for row in range(n)]
    assert dots["values"][2][149:151] == [f"{ensemble(150)[0].mixture.mean[149]:.3g}".replace("-", "\u2212"), ""]
    assert dots["values"][5][-1] == f"{epistemic[-1]:.3g}"
    # On a logarithmic axis places are affine in the logarithm.
    for places, values in ((dots["x"], aleatoric), (dots["y"], epistemic)):
        slope, start = np.polyfit(np.log(values), places, 1)
        np.testing.assert_allclose(places, start + slope * np.log(values), atol=0.06)
    (x, y) = re.findall(r'd="M([\d.]+) ([\d.]+)h0', written.path.read_text())[0]
    assert (float(x), float(y)) == (dots["x"][0], dots["y"][0])
    marks = re.findall(r'<path class="marks" fill="var\(--(\w+)\)" d="M([\d.]+) ([\d.]+)(m[^M]*)', written.path.read_text())
    assert [(float(x), float(y)) for _, x, y, _ in marks] == [(dots["x"][i], dots["y"][i]) for i in (150, 210)]
    assert len({colour for colour, *_ in marks}) == len({shape for *_, shape in marks}) == 2


def test_figures_follow_the_theme(written: Report) -> None:
    drawings = re.findall(r"<svg.*?</svg>", written.path.read_text(), flags=re.DOTALL)
    for drawing in drawings:
        assert "var(--ink)" in drawing
        assert not re.search(r"#(000000|0072b2|ffffff)\b", drawing)
        assert "DejaVu" not in drawing


def test_noise_is_green_and_what_more_data_would_remove_orange_everywhere(written: Report) -> None:
    text = written.path.read_text()
    assert ".noise { background: var(--green); } .removable { background: var(--orange); }" in text
    drawing = re.search(r'id="figure-distributions">.*?</svg>', text, flags=re.DOTALL)
    assert drawing
    assert set(re.findall(r"var\(--(blue|green|orange)\)", drawing[0])) == {"green", "orange"}


def test_the_methods_box_tells_how_it_was_made(page: Page) -> None:
    assert "150 rows used, none left out" in page.text
    assert "12 measures by closed form, relative error up to 1e-10" in page.text
    assert f"95 % of {RESAMPLES} resamples of the rows, seed 0" in page.text
    assert f"uqprism {up.__version__}, python" in page.text
    assert "Fishkov, Alexander" in page.text


def test_only_a_pair_that_sees_disagreement_divides_the_uncertainty() -> None:
    """Between two stand-ins that are one distribution each there is none, and a stand-in is like itself."""
    rule = ["crps.bayes.mixture", "crps.bayes.pooled", "crps.excess.mixture.mixture", "crps.excess.matched.pooled"]
    with pytest.raises(InvalidValueError, match="needs a noise and a removable part"):
        split_among(rule, "crps", "source")
    other = ["log.bayes.matched", "log.excess.members.matched"]
    assert split_among([*rule, *other], "crps", "source") == Split("log", *other)
    assert split_among([*rule, "crps.excess.members.mixture"], "crps", "x").excess == "crps.excess.members.mixture"
    members = ["crps.bayes.members", "crps.excess.members.members"]
    assert split_among([*rule, *members], "crps", "source") == Split.of("crps")


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


def test_the_penalty_of_the_average_is_told_where_the_penalty_is_defined(written: Report, page: Page) -> None:
    ens, _ = ensemble(150)
    average, one = (up.decompose(ens, prediction=role).total.mean() for role in ("mixture", "members"))
    assert average < one
    assert f"costs less, {average:.3g} minutes in place of {one:.3g} minutes" in page.text
    assert "expected penalty of predicting with one of the models, picked at random" in page.text
    assert written.findings.average == pytest.approx(average)


def test_the_penalty_of_the_average_is_read_or_left_out_where_it_is_not_known(undrawn: None, tmp_path: Path) -> None:
    ens, _ = ensemble(60)
    table, few = up.evaluate(ens), ["log.bayes.members", "log.excess.members.members"]
    told = up.write_report(table, tmp_path / "page", rule="log", resamples=0)
    assert told.findings.average == pytest.approx(table["log.total.mixture.members"].mean())
    assert up.write_report({name: table[name] for name in few}, tmp_path / "page", rule="log").findings.average is None


def test_measures_of_a_table_are_named_by_patterns(undrawn: None, tmp_path: Path) -> None:
    table = {**up.evaluate(ensemble(40)[0]), "mine, too": np.arange(40.0)}
    found = up.write_report(table, tmp_path / "page", measures=["crps.*.members", "mine, too"], resamples=0)
    names = {name for name in table if name.startswith("crps.") and name.endswith(".members")} | {"mine, too"}
    assert set(found.findings.results["rank_correlation"].names) == names


def test_errors_of_an_ensemble_may_be_given(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(60)
    own = np.abs(ens.mixture.mean - y) ** 3
    found = up.write_report(ens, tmp_path / "page", error=own, resamples=0)
    measures = up.evaluate(ens, list(found.findings.results["selective_prediction"]))
    assert found.findings.results["selective_prediction"].rows() == selective_prediction(measures, error=own, resamples=0).rows()
    page = Page(found.path.read_text())
    assert "errors known" in page.text
    assert "targets known" not in page.text
    assert "cannot be told from errors alone: that needs the targets (--target)." in page.text


def test_one_row_has_neither_ranks_nor_calibration_and_says_so(undrawn: None, tmp_path: Path) -> None:
    ens = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [1.0]])
    both = {name: up.evaluate(ens)[name] for name in ("crps.bayes.members", "crps.excess.members.members")}
    for source, more in ((ens, {}), (both, {"prediction": [0.5]})):
        found = up.write_report(source, tmp_path / "page", target=[0.25], **more)
        assert found.findings.calibration is None
        assert found.findings.results == {}
        assert found.sentences["errors"].startswith("What happened is known of one row only")
        assert "targets known" in Page(found.path.read_text()).text


def test_a_table_of_measures_has_no_calibration_and_says_why(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(60)
    found = up.write_report(up.evaluate(ens), tmp_path / "page", error=prediction_error(ens, y), resamples=0)
    page = Page(found.path.read_text())
    assert found.findings.calibration is None
    assert "needs the targets (--target) and the columns of the members" in page.text
    assert "none, since no resamples were asked for" in page.text
    assert len(found.findings.results["selective_prediction"]) == 144


def test_without_targets_there_are_neither_errors_nor_intervals(undrawn: None, tmp_path: Path) -> None:
    found = up.write_report(ensemble(60)[0], tmp_path / "page")
    assert set(found.findings.results) == {"rank_correlation"}
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
    y = np.linspace(-1.0, 1.0, ens.n_points).reshape(ens.points_shape)
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
        (up.evaluate, {"measures": "crsp.*"}, InvalidValueError, "source: unknown measure or column 'crsp"),
        (lambda ens: ens, {"prediction": np.ones(30)}, ArgumentError, "prediction must be left out for an ensemble"),
        (lambda ens: ens, {"error_column": "e"}, ArgumentError, "give the errors themselves as error="),
        (lambda ens: ens, {"show": ["id"]}, ArgumentError, "a file has columns to show"),
        (up.evaluate, {"error_column": "e"}, ArgumentError, "error_column must be left out for a table"),
        (lambda ens: ens, {"error": np.ones(29)}, ShapeError, "each of the table's 30 points, got 29"),
        (lambda ens: ens, {"target": np.ones(29)}, ShapeError, "each of the 30 rows, got 29"),
        (lambda _: "mine.csv", {"target": np.ones(30)}, ArgumentError, "name a column of the file"),
        (lambda _: "mine.csv", {"error": np.ones(30)}, ArgumentError, "name a column of errors with error_column"),
        (lambda ens: ens, {"target": np.full(30, np.nan)}, InvalidValueError, "target must not be NaN"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_written(source, how, error, message, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        up.write_report(source(ensemble(30)[0]), tmp_path / "page", **how)
    assert not list(tmp_path.iterdir())


def test_thresholds_say_what_ties_allow(undrawn: None, tmp_path: Path) -> None:
    noise = np.repeat([1.0, 2.0], [54, 46])
    both = {"crps.bayes.members": noise, "crps.excess.members.members": 0.1 * noise, "crps.total.members.members": 1.1 * noise}
    found = up.write_report(both, tmp_path / "page", unit="km", resamples=0)
    cells = table(found, "To avoid large errors, by total uncertainty, CRPS (crps.total.members.members)")
    assert cells == [["hand over", "threshold, km", "rows"], ["46 %", "2.2", "46"]]
    text = Page(found.path.read_text()).text
    assert "To hand over 1 % is not possible" in text
    assert "46 rows share the last value; the first 10 of them in the file stand here." in text


def test_printed_thresholds_hand_over_the_rows_they_say(undrawn: None, tmp_path: Path) -> None:
    noise = 1.66 + np.arange(5000) * 1e-6
    both = {"crps.bayes.members": noise, "crps.excess.members.members": 0.0 * noise, "crps.total.members.members": noise}
    cells = table(
        up.write_report(both, tmp_path / "page", resamples=0),
        "To avoid large errors, by total uncertainty, CRPS (crps.total.members.members)",
    )
    assert [(noise >= float(row[1])).sum() for row in cells[1:]] == [500, 250, 50]


def test_the_penalty_that_came_stands_beside_the_expected_one(written: Report, page: Page) -> None:
    ens, y = ensemble(150)
    came, found = prediction_error(ens, y, "crps").mean(), written.findings.happened
    assert found.came == pytest.approx(came)
    assert found.expected == pytest.approx(up.decompose(ens, prediction="mixture").total.mean())
    assert f"the average of the models cost {came:.2f}"[:-1] in page.text
    assert "really cost" in page.text


def test_the_page_of_one_model_advises_nothing_that_takes_several(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(60)
    one = up.EnsemblePrediction.gaussian(mean=ens.members.mean[:1], scale=ens.members.scale[:1])
    found = up.write_report(one, tmp_path / "page", target=y, ood=one[:20], resamples=RESAMPLES)
    text = Page(found.path.read_text()).text
    assert "disagree" not in text.split("Which measure to use")[0].replace("disagreement", "")
    assert "Where more data would help most" not in text
    assert "One model cannot disagree with itself" in text
    assert "To notice rows from outside, by total uncertainty" in text
    assert found.findings.steps[0].startswith("Train several models that differ")
    assert " 1 ways" not in text


def test_a_threshold_that_lets_rows_from_outside_through_is_told(undrawn: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def rows(noise: float, removable: float) -> dict[str, np.ndarray]:
        parts = [noise + 0.1 * rng.random(50), removable + 0.1 * rng.random(50)]
        names = ("crps.bayes.members", "crps.excess.members.members", "crps.total.members.members")
        return dict(zip(names, [*parts, sum(parts)], strict=True))

    found = up.write_report(rows(5.0, 0.0), tmp_path / "page", ood=rows(1.0, 1.0), resamples=0)
    assert found.sentences["missed"].replace("\u00a0", " ") == (
        "A threshold on the total uncertainty, CRPS, that hands over 10 % of the known rows catches 0 % of the rows from "
        "outside; one on the disagreement, CRPS, does (100 %)."
    )


def test_what_to_do_next_follows_from_the_findings(undrawn: None, tmp_path: Path) -> None:
    ens, y = ensemble(150)
    found = up.write_report(
        ens, tmp_path / "page", target=ens.mixture.mean + 3.0 * (y - ens.mixture.mean), unit="km", resamples=0
    )
    collect, hand_over, recalibrate = found.findings.steps
    first = np.argsort(-up.decompose(ens).epistemic)[:3]
    assert collect == f"Collect data like rows {first[0]}, {first[1]} and {first[2]}, where more of it would help most."
    flagged = up.flag(up.evaluate(ens, ["crps.total.members.members"]))
    assert f"is {flagged.shortest} km or more (10 % of the known rows)." in hand_over.replace("\u00a0", " ")
    assert "they are too narrow, so widen them" in recalibrate
    assert recalibrate in Page(found.path.read_text()).text


def test_a_tenth_that_a_threshold_cannot_hand_over_is_told(undrawn: None, tmp_path: Path) -> None:
    noise = np.repeat([1.0, 2.0], [54, 46])
    both = {"crps.bayes.members": noise, "crps.excess.members.members": 0.1 * noise, "crps.total.members.members": 1.1 * noise}
    found = up.write_report(both, tmp_path / "page", error=noise + np.arange(100.0) % 3, resamples=0)
    assert "so a threshold hands over 46 % at least" in found.sentences["errors"].replace("\u00a0", " ")
    assert "or more (46 % of the known rows, and ties allow no fewer)" in found.findings.steps[-1].replace("\u00a0", " ")

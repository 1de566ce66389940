"""The page as Streamlit runs it, without a browser."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.app.files import BAD, TABLE, Table
from uqprism.app.example import deliveries
from uqprism.app.inputs import PARTS, ScoringChoice, Upload
from uqprism.app.problems import explained
from uqprism.app.scored import score
from uqprism.errors import UqprismError
from uqprism.report.formatting import amounts

testing = pytest.importorskip("streamlit.testing.v1", reason="Streamlit is not installed (extra app)")
PAGE = Path(up.__file__).parent / "app" / "page.py"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr("sys.argv", ["page.py"])  # the page takes a file from there
    found = testing.AppTest.from_file(str(PAGE), default_timeout=60).run()
    assert not found.exception
    return found


@pytest.fixture
def filled(page):
    """The page with its example."""
    page.button(key="example").click().run()
    assert not page.exception
    return page


def text(page) -> str:
    """What the page says, without its tags."""
    found = " ".join(each.proto.body for each in page.get("html") if not each.proto.body.startswith("<style"))
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", found))).replace("\xa0", " ")


def refusal(upload: Upload) -> str:
    """What the page says of a file that the library refuses."""
    with pytest.raises(UqprismError) as refused:
        score(upload, ScoringChoice(on_bad="drop"))
    return explained(refused.value)


def drop(page, name: str, content: bytes, key: str = "file") -> None:
    page.file_uploader(key=key).set_value((name, content, "text/csv")).run()
    assert not page.exception


def test_an_empty_page_asks_for_a_file_and_offers_the_example(page) -> None:
    assert "Drop a file" in text(page)
    assert len(page.dataframe) == 2  # those of the explorer
    page.button(key="example").click().run()
    assert "600 rows · 5 models · target “duration [min]”" in text(page)


def test_where_the_columns_do_not_tell_the_kind_is_chosen(page) -> None:
    """Laplace and logistic members have the same columns: the page asks, and takes the answer."""
    rng = np.random.default_rng(0)
    place = rng.normal(size=(2, 40))
    columns = {f"location_{i}": place[i] for i in range(2)} | {f"scale_{i}": np.exp(0.3 * place[i]) for i in range(2)}
    lines = [",".join(columns), *(",".join(f"{x}" for x in row) for row in zip(*columns.values(), strict=True))]
    drop(page, "mine.csv", "\n".join(lines).encode())
    assert "may be those of laplace or logistic members. Under Settings, choose the kind of distribution." in text(page)
    choice = page.selectbox(key="family")
    assert {"found automatically", "Laplace", "logistic", "Student t", "quantiles, no tails"} <= {*choice.options}
    choice.set_value("laplace").run()
    assert not page.exception
    assert "40 rows · 2 models" in text(page)
    split = up.decompose(up.from_frame(columns, family="laplace"))
    assert all(value in text(page) for value in amounts([split.bayes.mean(), split.excess.mean()], ""))
    assert "--family laplace" in page.code[0].value


def test_what_is_shown_follows_the_rule(filled) -> None:
    for rule in ("crps", "log", "squared_error"):
        filled.selectbox(key="rule").set_value(rule).run()
        frame = score(deliveries(), ScoringChoice(rule)).frame
        means = frame[["noise", "disagreement"]].mean().to_numpy()
        if rule == "squared_error":
            means = np.sqrt(means)  # in minutes, as the target
        if rule != "log":  # it has no natural zero, so its parts are not drawn
            assert all(f"{value} min" in text(filled) for value in amounts(means, "")), rule
        assert f"{rule}.excess.members.members" in filled.code[0].value
    assert "uqprism score deliveries.csv" in filled.code[0].value


def test_a_dropped_file_takes_the_place_of_the_example(filled) -> None:
    """Other roles give its other measures, and its table holds the flagged rows, the highest first."""
    drop(filled, "mine.csv", TABLE.csv())
    filled.selectbox(key="prediction").set_value("mixture")
    filled.selectbox(key="by").set_value("disagreement")
    filled.slider(key="percent").set_value(5).run()
    expected = up.decompose(TABLE.ensemble, "crps", prediction="mixture")
    assert "200 rows · 4 models · target “y”" in text(filled)
    assert amounts([expected.bayes.mean(), expected.excess.mean()], "")[1] in text(filled)
    rows = filled.dataframe[0].value
    assert list(rows.index) == list(np.argsort(-expected.excess)[:10])
    assert list(rows.columns[:4]) == ["id", "total", "noise", "disagreement"]


def test_bad_rows_are_left_out_and_the_page_says_so(page) -> None:
    upload = BAD["a bad row"]
    drop(page, upload.name, upload.content)
    assert "199 rows · 4 models · 1 bad row left out" in text(page)
    assert "--on-bad drop" in page.code[0].value
    drop(page, "all.csv", b"mean_0,variance_0\n1,-1\n2,0\n")
    assert "all.csv: every row lacks a mean or a variance" in text(page)


@pytest.mark.parametrize("name", [name for name in BAD if name != "a bad row"])
def test_a_file_that_cannot_be_used_is_answered_in_a_sentence(page, name: str) -> None:
    """Without options of the shell or code; the same page takes a good file afterwards."""
    drop(page, BAD[name].name, BAD[name].content)
    said = text(page)
    assert refusal(BAD[name]) in said
    assert not re.search(r"--\w|_columns|\bon_bad\b|`", said.split("This file cannot be used as it is.")[1])
    drop(page, "mine.csv", TABLE.csv())
    assert "200 rows" in text(page)


def test_an_unexpected_error_is_a_sentence_and_its_traceback_is_logged(filled, monkeypatch, caplog) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("in the --depths of `the app`")

    monkeypatch.setattr("uqprism.app.scored.score", fails)
    monkeypatch.setattr("uqprism.app.charts.densities", fails)
    drop(filled, "other.csv", TABLE.csv())
    assert "The app made a mistake here" in text(filled)
    assert "depths" not in text(filled)
    assert "ZeroDivisionError: in the --depths" in caplog.text


@pytest.mark.parametrize("name", ["when", "none"])
def test_without_a_target_there_is_no_curve_and_no_command_for_it(page, name: str) -> None:
    drop(page, "mine.csv", b"mean_0,mean_1,variance_0,variance_1,%b\n1,2,1,1,5\n0,0,1,2,7\n2,1,3,1,9\n" % name.encode())
    assert "selective" not in page.code[0].value
    next(each for each in page.selectbox if each.label == "Target").set_value(name).run()
    assert not page.exception
    assert f"--target {name}" in page.code[0].value


def test_commands_name_the_file_as_it_was_given(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "p.csv").write_bytes(TABLE.csv())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["page.py", "data/p.csv"])
    page = testing.AppTest.from_file(str(PAGE), default_timeout=60).run()
    assert "uqprism score data/p.csv" in page.code[0].value
    assert "files.score('data/p.csv'" in page.code[1].value


def test_rows_as_high_as_the_last_are_flagged_too(page) -> None:
    """The threshold decides, as in `up.flag`, also of a single row."""
    drop(page, "mine.csv", b"mean_0,variance_0\n" + b"1,4\n" * 3 + b"1,1\n" * 7)
    assert len(page.dataframe[0].value) == 3
    drop(page, "one.csv", b"mean_0,variance_0\n1,4\n")
    assert len(page.dataframe[0].value) == 1
    assert "as far as one model can tell" in text(page)


def test_the_explorer_answers_to_its_buttons(page) -> None:
    page.button(key="shift means spread").click().run()
    assert page.slider(key="mean_spread").value == 2.0
    changes = page.dataframe[0].value.set_index("measure")
    assert changes["now"]["squared_error.excess.members.members"] == pytest.approx(2.0 * 2.0**2 / 3.0)
    assert changes["change"]["squared_error.bayes.members"] == "stays"
    assert changes["change"]["squared_error.excess.members.members"] == "▲ +300%"


def test_a_file_from_outside_is_part_of_the_report_unless_it_is_bad(filled) -> None:
    assert "uqprism report deliveries.csv" in filled.code[0].value
    drop(filled, "odd.csv", TABLE.csv(), key="ood")
    assert "--ood odd.csv" in filled.code[0].value
    for bad in (BAD["an unknown ending"], Upload("all.csv", b"mean_0,variance_0\n1,-1\n2,0\n")):
        drop(filled, bad.name, bad.content, key="ood")
        assert "This file is left out of the report." in text(filled)
        assert "--ood" not in filled.code[0].value


def test_many_rows_are_drawn_in_part_with_the_highest_of_each_kind() -> None:
    from uqprism.app.charts import drawn_rows

    frame = score(Table.drawn(500).upload(), ScoringChoice()).frame
    drawn = drawn_rows(frame, most=120)
    assert len(drawn) == len(set(drawn)) == 120
    for part in PARTS:
        assert int(frame[part].to_numpy().argmax()) in drawn
    assert list(drawn_rows(frame)) == list(range(500))


def test_flags_say_what_share_they_reach(page) -> None:
    drop(page, "mine.csv", b"mean_0,variance_0\n" + b"1,4\n" * 46 + b"1,1\n" * 54)
    page.slider(key="percent").set_value(1).run()
    assert re.search(r"46 rows of 100 \(46 %\): those whose total is 1.13 or more. .*fewer are not possible", text(page))

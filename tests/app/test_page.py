"""The page as Streamlit runs it, without a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.app.files import BAD, TABLE, Table
from uqprism.app.example import deliveries
from uqprism.app.inputs import PARTS, ScoringChoice, Upload
from uqprism.app.scored import score
from uqprism.errors import UqprismError

testing = pytest.importorskip("streamlit.testing.v1", reason="Streamlit is not installed (extra app)")
PAGE = Path(up.__file__).parent / "app" / "page.py"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr("sys.argv", ["page.py"])  # the page takes a file from there
    found = testing.AppTest.from_file(str(PAGE), default_timeout=60).run()
    assert not found.exception
    return found


def metrics(page) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def refusal(upload: Upload) -> str:
    """Why the library refuses this file."""
    with pytest.raises(UqprismError) as refused:
        score(upload, ScoringChoice())
    return str(refused.value)


def drop(page, name: str, content: bytes, key: str = "file") -> None:
    page.file_uploader(key=key).set_value((name, content, "text/csv")).run()
    assert not page.exception


def test_the_example_is_shown_and_follows_the_rule(page) -> None:
    for rule in ("crps", "log"):
        page.selectbox(key="rule").set_value(rule).run()
        frame = score(deliveries(), ScoringChoice(rule)).frame
        assert metrics(page) == {"Rows": "600"} | {f"Mean {part}": f"{frame[part].mean():.4g}" for part in PARTS}
    assert "uqprism score deliveries.csv" in page.code[0].value
    assert "log.excess.members.members" in page.code[0].value


def test_a_dropped_file_takes_the_place_of_the_example(page) -> None:
    """Other roles give its other measures, and its table holds the flagged rows, the highest first."""
    drop(page, "mine.csv", TABLE.csv())
    page.selectbox(key="prediction").set_value("mixture")
    page.selectbox(key="by").set_value("disagreement")
    page.slider(key="percent").set_value(5).run()
    expected = up.decompose(TABLE.ensemble, "crps", prediction="mixture")
    assert metrics(page)["Rows"] == "200"
    assert metrics(page)["Mean disagreement"] == f"{expected.excess.mean():.4g}"
    rows = page.dataframe[0].value
    assert list(rows.index) == list(np.argsort(-expected.excess)[:10])
    assert rows["flagged"].all()


def test_a_bad_file_is_answered_in_the_words_of_the_command_and_its_bad_rows_can_be_left_out(page) -> None:
    upload = BAD["a bad row"]
    drop(page, upload.name, upload.content)
    assert page.code[0].value == refusal(upload)
    assert not page.metric
    page.checkbox(key="drop").check().run()
    assert metrics(page)["Rows"] == "199"
    assert page.metric[0].delta == "1 bad left out"
    assert "--on-bad drop" in page.code[0].value


@pytest.mark.parametrize("name", ["when", "none"])
def test_without_a_target_there_is_no_curve_and_no_command_for_it(page, name: str) -> None:
    drop(page, "mine.csv", b"mean_0,mean_1,variance_0,variance_1,%b\n1,2,1,1,5\n0,0,1,2,7\n2,1,3,1,9\n" % name.encode())
    assert "selective" not in page.code[0].value
    page.selectbox(key="target of mine.csv").set_value(name).run()
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


def test_the_explorer_answers_to_its_buttons(page) -> None:
    page.button(key="shift means spread").click().run()
    assert page.slider(key="mean_spread").value == 2.0
    changes = page.dataframe[1].value.set_index("measure")
    assert changes["now"]["squared_error.excess.members.members"] == pytest.approx(2.0 * 2.0**2 / 3.0)
    assert changes["change"]["squared_error.bayes.members"] == "stays"
    assert changes["change"]["squared_error.excess.members.members"] == "▲ +300%"


def test_a_file_from_outside_is_part_of_the_report_unless_it_is_bad(page) -> None:
    assert "uqprism report deliveries.csv" in page.code[0].value
    drop(page, "odd.csv", TABLE.csv(), key="ood")
    assert "--ood odd.csv" in page.code[0].value
    bad = BAD["an unknown ending"]
    drop(page, bad.name, bad.content, key="ood")
    assert page.code[0].value == refusal(bad)
    assert "--ood" not in page.code[1].value


def test_rows_from_outside_are_taken_as_the_command_shown_takes_them(page) -> None:
    """With a target bad rows are left out; a file of nothing else is not taken."""
    drop(page, "mine.csv", TABLE.csv())
    assert "--target y" in page.code[0].value
    drop(page, "odd.csv", BAD["a bad row"].content, key="ood")
    assert "--ood odd.csv" in page.code[0].value
    drop(page, "all.csv", b"mean_0,variance_0\n1,-1\n2,0\n", key="ood")
    assert page.code[0].value == "all.csv: all its rows are bad"
    assert "--ood" not in page.code[1].value


def test_many_rows_are_drawn_in_part_with_the_highest_of_each_kind() -> None:
    from uqprism.app.charts import drawn_rows

    frame = score(Table.drawn(500).upload(), ScoringChoice()).frame
    drawn = drawn_rows(frame, most=120)
    assert len(drawn) == len(set(drawn)) == 120
    for part in PARTS:
        assert int(frame[part].to_numpy().argmax()) in drawn
    assert list(drawn_rows(frame)) == list(range(500))


def test_flags_say_what_share_they_reach() -> None:
    from uqprism.app.predictions import flagged_sentence

    text = flagged_sentence(up.flag([2.0] * 46 + [1.0] * 54, 0.01))
    assert text.startswith("46 of 100 rows (46.0%) are flagged: those at 2 or above.")
    assert "fewer are not possible" in text
    assert "fewer" not in flagged_sentence(up.flag(np.arange(10.0)))

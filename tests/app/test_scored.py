"""What the page makes of a file, without the page."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.app.files import BAD, RENAMED, ROWS, TABLE, WEIGHTED, WEIGHTS
from tests.cli.command import printed
from uqprism.app.inputs import PARTS, ScoringChoice, Upload
from uqprism.app.scored import error, retention, score, scored_file
from uqprism.errors import UqprismError

SPLIT, MEASURES = up.decompose(TABLE.ensemble), ",".join(ScoringChoice().measures.values())
CHOICES = [ScoringChoice(), ScoringChoice("log", "mixture", "members"), ScoringChoice("squared_error", "members", "pooled")]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.measures["total"])
def test_the_parts_of_each_row_are_those_of_decompose_also_with_other_names_of_columns(choice: ScoringChoice) -> None:
    expected = up.decompose(TABLE.ensemble, choice.rule, prediction=choice.prediction, truth=choice.truth)
    named = dataclasses.replace(choice, mean_columns="mu{i}", variance_columns="v{i}")
    for frame in (score(TABLE.upload(), choice).frame, score(RENAMED, named).frame):
        for part, values in zip(PARTS, (expected.total, expected.bayes, expected.excess), strict=True):
            np.testing.assert_allclose(frame[part], values, rtol=1e-12)


@pytest.mark.parametrize("upload", BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_in_the_words_of_the_command(upload: Upload, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / upload.name).write_bytes(upload.content)
    with pytest.raises(UqprismError) as told:
        printed("score", upload.name, "-o", "out.parquet", "--measures", MEASURES)
    with pytest.raises(told.type) as refused:
        score(upload, ScoringChoice())
    assert str(refused.value) == str(told.value)


def test_a_file_without_rows_is_refused() -> None:
    with pytest.raises(UqprismError, match=r"^mine\.csv: has no rows"):
        score(Upload("mine.csv", b"mean_0,variance_0\n"), ScoringChoice())


def test_bad_rows_are_left_out_and_the_others_keep_their_numbers() -> None:
    found = score(TABLE.with_bad_variance(17), ScoringChoice(on_bad="drop"))
    assert (found.n_rows, found.bad_rows) == (ROWS, 1)
    assert list(found.frame.index) == [row for row in range(ROWS) if row != 17]
    np.testing.assert_allclose(found.frame["total"], np.delete(SPLIT.total, 17), rtol=1e-12)


def test_members_and_text_are_no_targets() -> None:
    bare = score(Upload("mine.csv", b"mean_0,variance_0,name,outcome\n1,2,a,3\n"), ScoringChoice())
    assert bare.targets == ("outcome",)


def test_columns_of_the_file_that_are_named_like_ours_are_kept() -> None:
    own = {"total": [1.0] * ROWS, "noise": ["loud"] * ROWS, "noise (file)": ["mine"] * ROWS, "flagged": [2] * ROWS}
    frame = score(TABLE.upload(**own), ScoringChoice()).frame
    marked = ("total (file)", "noise (file) (file)", "noise (file)", "flagged (file)")
    assert [frame[name].iloc[0] for name in marked] == [1.0, "loud", "mine", 2]
    for part, values in (("total", SPLIT.total), ("noise", SPLIT.bayes)):
        np.testing.assert_allclose(frame[part], values, rtol=1e-12)


def test_parquet_and_npz_give_the_same_with_the_weights_they_state(tmp_path: Path) -> None:
    pq.write_table(WEIGHTED.to_arrow(), tmp_path / "mine.parquet")
    WEIGHTED.save(tmp_path / "mine.npz")
    for path in (tmp_path / "mine.parquet", tmp_path / "mine.npz"):
        found = score(Upload(path.name, path.read_bytes()), ScoringChoice())
        assert found.weights == pytest.approx(WEIGHTS)
        np.testing.assert_allclose(found.frame["total"], up.decompose(WEIGHTED).total, rtol=1e-12)


def test_errors_are_the_squared_distance_to_the_mean_of_the_members_where_there_is_a_target() -> None:
    expected = (TABLE.mean.mean(axis=0) - TABLE.target) ** 2
    np.testing.assert_allclose(error(TABLE.upload(), ScoringChoice(), "y"), expected, rtol=1e-9)
    upload = TABLE.upload(y=["", *TABLE.target[1:]])
    missing = error(upload, ScoringChoice(), "y")
    np.testing.assert_allclose(missing, [np.nan, *expected[1:]], rtol=1e-9)
    found = retention(score(upload, ScoringChoice()), missing)
    assert (found.n_rows, found.without_target) == (ROWS - 1, 1)
    assert found.curves["total"][-1] == pytest.approx(expected[1:].mean() ** 0.5)


def test_the_scored_csv_file_is_that_of_the_command_with_flags(tmp_path: Path, monkeypatch) -> None:
    """Also names and text that look like numbers, or have commas, quotes and line ends."""
    monkeypatch.chdir(tmp_path)
    upload = TABLE.upload(**{'note,\n"or" not': ['say "no", twice', "two\nlines", *[""] * (ROWS - 2)]})
    Path(upload.name).write_bytes(upload.content)
    printed("score", upload.name, "-o", "out.csv", "--measures", MEASURES)
    flagged = np.arange(ROWS) % 7 == 0
    made = list(csv.DictReader(io.StringIO(scored_file(upload, ScoringChoice(), flagged, ".csv").decode())))
    commanded = list(csv.DictReader(io.StringIO(Path("out.csv").read_bytes().decode(), newline="")))
    assert [row.pop("flagged") for row in made] == ["true" if flag else "false" for flag in flagged]
    assert made == commanded
    assert made[0]["id"] == "0000"
    assert "mean_0" not in made[0]


def test_the_scored_parquet_file_may_keep_the_members() -> None:
    made = scored_file(TABLE.upload(), ScoringChoice(), np.ones(ROWS, dtype=bool), ".parquet", keep_members=True)
    table = pq.read_table(pa.BufferReader(made))
    assert table.column("flagged").to_pylist() == [True] * ROWS
    np.testing.assert_array_equal(table.column("mean_2"), TABLE.mean[2])
    np.testing.assert_allclose(table.column("crps.total.members.members"), SPLIT.total, rtol=1e-12)


def test_rows_left_out_are_left_out_of_the_file_too() -> None:
    made = scored_file(TABLE.with_bad_variance(0), ScoringChoice(on_bad="drop"), np.zeros(ROWS - 1, dtype=bool), ".parquet")
    assert pq.read_table(pa.BufferReader(made)).column("y").to_pylist() == list(TABLE.target[1:])


def test_what_cannot_be_written_says_so_beforehand(tmp_path: Path) -> None:
    assert score(TABLE.upload(), ScoringChoice()).refusal(".csv") is None
    taken = score(TABLE.upload(flagged=[1] * ROWS), ScoringChoice())
    assert taken.refusal(".parquet") == "column 'flagged' is there already; rename it"
    pq.write_table(pa.table({"mean_0": [1.0], "variance_0": [1.0], "tags": [["a", "b"]]}), tmp_path / "mine.parquet")
    nested = score(Upload("mine.parquet", (tmp_path / "mine.parquet").read_bytes()), ScoringChoice())
    assert nested.refusal(".csv") == "column 'tags' is nested, which CSV cannot hold"
    assert nested.refusal(".parquet") is None

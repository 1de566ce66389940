"""Files are flagged as tables in memory are, whatever their size, and say why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import uqprism as up
from tests.files.tables import ensemble, table
from uqprism import files
from uqprism.errors import ArgumentError, BadFileError, UqprismError
from uqprism.files import marking, spool

TOTAL, NOISE, DISAGREEMENT = (f"crps.{part}" for part in ("total.members.members", "bayes.members", "excess.members.members"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few hundred rows are as large files are: many batches and many chunks."""
    monkeypatch.setattr(marking, "MOST_ROWS", 100)
    monkeypatch.setattr(spool, "CHUNK", 64)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("how", [{}, {"share": 0.03}, {"above": 1.0}, {"budget": 17}])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_file_is_flagged_as_its_table_in_memory_is(how, suffix, tmp_path: Path) -> None:
    given = table(777)
    pq.write_table(given, tmp_path / "in.parquet")
    wanted = up.flag(up.evaluate(ensemble(given)), **how)
    report = files.flag(tmp_path / "in.parquet", tmp_path / f"out{suffix}", **how)
    found = pq.read_table(tmp_path / "out.parquet") if suffix == ".parquet" else pyarrow.csv.read_csv(tmp_path / "out.csv")
    assert found.column_names == ["key", TOTAL, NOISE, DISAGREEMENT, "flagged", "reason"]
    assert found["key"].to_pylist() == given["key"].to_pylist()
    np.testing.assert_array_equal(found["flagged"].to_numpy(zero_copy_only=False), wanted.rows)
    assert [text or "" for text in found["reason"].to_pylist()] == wanted.reasons.tolist()
    assert (report.rows, report.flagged, report.measure) == (777, wanted.count, TOTAL)
    np.testing.assert_allclose(report.threshold, wanted.threshold, rtol=1e-12)
    assert dict(report.reasons) == wanted.counts
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("small")
def test_several_scored_files_share_one_threshold_and_ties_at_a_budget_go_to_the_first(tmp_path: Path) -> None:
    for name in "ab":
        pq.write_table(pa.table({"key": [name] * 150, TOTAL: np.r_[np.ones(75), np.zeros(75)]}), tmp_path / f"{name}.parquet")
    out = tmp_path / "out.parquet"
    report = files.flag([tmp_path / "a.parquet", tmp_path / "b.parquet"], out, budget=80, only=True)
    found = pq.read_table(out)
    assert report.flagged == found.num_rows == 80
    assert found["key"].to_pylist() == ["a"] * 75 + ["b"] * 5
    assert "reason" not in found.column_names  # there are no columns to tell it from
    assert report.reasons == {}
    assert files.flag(tmp_path / "a.parquet", out, share=0.1, overwrite=True).flagged == 75


def test_rows_without_a_measure_are_not_flagged_and_counted(tmp_path: Path) -> None:
    given = table(40).to_pandas()
    given.loc[3, "variance_0"] = -1.0
    given.to_parquet(tmp_path / "in.parquet")
    report = files.flag(tmp_path / "in.parquet", tmp_path / "out.parquet", share=1.0, on_bad="null")
    assert (report.rows, report.flagged, report.missing) == (40, 39, 1)
    assert f"not flagged, without {TOTAL}: 1 row" in str(report)
    assert pq.read_table(tmp_path / "out.parquet")["flagged"].to_pylist()[3] is False


def test_the_report_counts_ties_and_rows_that_were_left_out(tmp_path: Path) -> None:
    given = table(40).to_pandas()
    given.loc[[3, 5], "variance_0"] = -1.0
    given.to_parquet(tmp_path / "in.parquet")
    report = files.flag(tmp_path / "in.parquet", tmp_path / "out.parquet", budget=5, on_bad="drop")
    assert (report.rows, report.flagged, report.dropped, report.asked) == (38, 5, 2, None)
    assert "left out, with bad members: 2 rows" in str(report)
    pq.write_table(pa.table({TOTAL: [2.0, 2.0, 2.0, 1.0]}), tmp_path / "ties.parquet")
    report = files.flag(tmp_path / "ties.parquet", tmp_path / "two.parquet", share=0.5)
    assert (report.flagged, report.asked) == (3, 2)
    assert "2 rows were asked for; those that equal the last one are flagged too" in str(report)
    assert "asked for" not in str(files.flag(tmp_path / "ties.parquet", tmp_path / "three.parquet", share=0.75))


def test_errors_name_the_files_that_were_given_and_no_temporary_ones(tmp_path: Path) -> None:
    pq.write_table(table(20).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(BadFileError, match=r"empty\.parquet: has no rows"):
        files.flag(tmp_path / "empty.parquet", tmp_path / "out.csv")
    draws = up.EnsemblePrediction.samples(np.random.default_rng(0).normal(size=(2, 3, 4)))
    pq.write_table(draws.to_arrow(), tmp_path / "draws.parquet")
    with pytest.raises(ArgumentError, match=r"output .*out\.csv: column 'draws_0' is nested") as caught:
        files.flag(tmp_path / "draws.parquet", tmp_path / "out.csv", keep_members=True)
    assert "scored.parquet" not in str(caught.value)


def test_weights_decide_which_rows_are_flagged(tmp_path: Path) -> None:
    """Two members, one of which is noisy in the first row, the other in the second."""
    columns = {"mean_0": [0.0, 0.0], "mean_1": [0.0, 0.0], "scale_0": [9.0, 1.0], "scale_1": [1.0, 8.0]}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    for weights, row in ((None, [True, False]), ((0.1, 0.9), [False, True])):
        files.flag(tmp_path / "in.parquet", tmp_path / "out.parquet", budget=1, weights=weights, overwrite=True)
        assert pq.read_table(tmp_path / "out.parquet")["flagged"].to_pylist() == row


@pytest.mark.parametrize(
    ("measure", "never"), [(NOISE, "disagreement"), (DISAGREEMENT, "noise"), ("log.excess.members.members", "noise")]
)
def test_rows_flagged_by_one_part_have_that_part_as_the_reason(measure: str, never: str, tmp_path: Path) -> None:
    given = table(200)
    pq.write_table(given, tmp_path / "in.parquet")
    report = files.flag(tmp_path / "in.parquet", tmp_path / "out.parquet", measure=measure, share=0.5)
    assert report.reasons[never] == 0
    assert sum(report.reasons.values()) == 100
    scores = up.evaluate(ensemble(given), [measure, NOISE, DISAGREEMENT])
    assert up.flag(scores, 0.5, measure=measure).counts == dict(report.reasons)


def test_what_cannot_be_flagged_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    pq.write_table(table(20), tmp_path / "in.parquet")
    pq.write_table(pa.table({TOTAL: [1.0], "flagged": [True]}), tmp_path / "done.parquet")
    pq.write_table(pa.table({NOISE: [1.0]}), tmp_path / "noise.parquet")
    pq.write_table(pa.table({TOTAL: pa.array([], pa.float64())}), tmp_path / "empty.parquet")
    pq.write_table(pa.table({TOTAL: ["much"]}), tmp_path / "words.parquet")
    cases = [
        ("in", "out.npz", {}, ArgumentError, "one .parquet or .csv file"),
        ("in", "in.parquet", {}, ArgumentError, "is an input"),
        ("in", "done.parquet", {}, ArgumentError, "exists already"),
        ("in", "out.csv", {"share": 0.1, "budget": 3}, ArgumentError, r"got share and budget"),
        ("in", "out.csv", {"budget": 0}, UqprismError, "budget must be a whole number of rows"),
        ("in", "out.csv", {"measure": "crps.totl.members.members"}, UqprismError, "did you mean 'total'"),
        ("noise", "out.csv", {}, BadFileError, f"has measures but not {TOTAL}; name one of {NOISE}"),
        ("done", "out.csv", {}, BadFileError, "has a column 'flagged' already"),
        ("empty", "out.csv", {}, BadFileError, "has no rows"),
        ("words", "out.csv", {}, BadFileError, "has no numbers in column"),
    ]
    before = sorted(path.name for path in tmp_path.iterdir())
    for source, out, how, error, message in cases:
        with pytest.raises(error, match=message):
            files.flag(tmp_path / f"{source}.parquet", tmp_path / out, **how)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    """Not the file that is written on the way."""
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({name: pa.array([], pa.float64()) for name in ("mean_0", "scale_0", "mean_1", "scale_1")}), path)
    with pytest.raises(BadFileError, match=r"none.parquet: has no rows"):
        files.flag(path, tmp_path / "flagged.parquet")

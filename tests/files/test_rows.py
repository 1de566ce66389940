"""Bad rows: refused with file, row and column, left without measures, or left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.tables import FEW, assert_scored, read_table, refused, table, write_table
from uqprism.errors import InvalidValueError
from uqprism.files import score

BAD = {3: ("mean_1", np.nan), 7: ("variance_0", 0.0), 8: ("variance_2", -1.0), 11: ("mean_0", np.inf), 19: ("variance_1", np.inf)}


def spoiled(*, nulls: bool) -> pa.Table:
    """Twenty rows, five of them bad; with nulls, a sixth."""
    frame = table(20, note=[f"n{i}" for i in range(20)]).to_pydict()
    for row, (name, value) in BAD.items():
        frame[name][row] = value
    if nulls:
        frame["mean_2"][5] = None
    return pa.table(frame)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_the_first_bad_row_is_named(tmp_path: Path, suffix: str) -> None:
    path = write_table(spoiled(nulls=False), tmp_path / f"in.{suffix}")
    place = r"row 3 \(line 5\)" if suffix == "csv" else "row 3"
    message = rf"in\.{suffix}: {place}: mean_1 must be finite, got (nan|null) \(5 bad rows among rows 0 to 19\); .*--on-bad null"
    refused(InvalidValueError, message, path, tmp_path / "out.parquet")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("mean_1", None, "mean_1 must be finite, got null"),
        ("variance_1", None, "variance_1 must be finite and greater than zero, got null"),
        ("variance_2", 0.0, "variance_2 must be finite and greater than zero, got 0.0"),
        ("mean_0", -np.inf, "mean_0 must be finite, got -inf"),
    ],
)
def test_the_row_is_counted_in_the_file(tmp_path: Path, name: str, value: float | None, shown: str) -> None:
    """Also in the middle of a file that is cut into parts."""
    frame = table(20).to_pydict()
    frame[name][15] = value
    pq.write_table(pa.table(frame), tmp_path / "in.parquet", row_group_size=4)
    for cut in ({}, {"part_rows": 8}):
        with pytest.raises(InvalidValueError, match=f"row 15: {shown}; "):
            score(tmp_path / "in.parquet", tmp_path / "out", measures=FEW, overwrite=True, **cut)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
@pytest.mark.parametrize("target", ["parquet", "csv", "npz"])
@pytest.mark.parametrize("on_bad", ["null", "drop"])
def test_bad_rows_are_left_empty_or_out(tmp_path: Path, suffix: str, target: str, on_bad: str) -> None:
    given = spoiled(nulls=suffix != "npz")
    path = write_table(given, tmp_path / f"in.{suffix}")
    report = score(path, tmp_path / f"out.{target}", measures=FEW, on_bad=on_bad)
    bad = [*BAD, *([5] if suffix != "npz" else [])]
    assert (report.rows, report.bad_rows) == (20, len(bad))
    scored = read_table(tmp_path / f"out.{target}")
    good = np.array([row not in bad for row in range(20)])
    keys = given.column("key").to_numpy()
    assert scored.column("key").to_pylist() == (keys if on_bad == "null" else keys[good]).tolist()
    if on_bad == "null":
        if target != "npz":
            for name in FEW:
                assert [row for row in range(20) if not scored.column(name)[row].is_valid] == sorted(bad)
        scored = scored.filter(pa.array(good))
    assert_scored(scored, given.filter(pa.array(good)), FEW)


@pytest.mark.parametrize("on_bad", ["null", "drop"])
def test_a_file_of_bad_rows_only(tmp_path: Path, on_bad: str) -> None:
    pq.write_table(pa.table({"mean_0": [np.nan, 1.0], "scale_0": [1.0, 0.0]}), tmp_path / "in.parquet")
    report = score(tmp_path / "in.parquet", tmp_path / "out.parquet", measures=FEW, on_bad=on_bad)
    assert report.bad_rows == 2
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {name: [None, None] if on_bad == "null" else [] for name in FEW}


def test_single_precision_is_computed_in_double_precision(tmp_path: Path) -> None:
    """Also where the limits of rows are compared, which a single number cannot hold."""
    given = {
        "mean_0": [3e38, 0.0, 1.0],
        "mean_1": [-3e38, 0.0, 1.0],
        "variance_0": [1e-45, 0.0, 1.0],
        "variance_1": [1.0, 1.0, 2.0],
    }
    path = write_table(pa.table({name: pa.array(x, pa.float32()) for name, x in given.items()}), tmp_path / "in.parquet")
    refused(InvalidValueError, "row 1: variance_0 must be finite and greater than zero, got 0", path, tmp_path / "out.parquet")
    assert score(path, tmp_path / "out.parquet", measures=["log.bayes.members"], on_bad="drop").bad_rows == 1
    wanted = np.log(2.0 * np.pi * np.e) / 2.0 + np.log(np.float32([[1e-45, 1.0], [1.0, 2.0]]).astype(float)).mean(axis=1) / 2.0
    np.testing.assert_allclose(read_table(tmp_path / "out.parquet").column("log.bayes.members").to_numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["scale", "variance"])
def test_a_member_too_narrow_to_be_squared_is_bad(tmp_path: Path, kind: str) -> None:
    """Computing with it gave a noise that was wrong in the third digit, and NaN."""
    power = 2 if kind == "variance" else 1
    rows = [
        (1.0, 2.0, 1e-149, 1.0),
        (1.0, 2.0, 1e-155, 1.0),
        (0.0, 0.0, 1e-80, 1e80),
        (1e100, 0.0, 1e-60, 1e-60),
        (0.0, 1.0, 1.0, 2.0),
    ]
    given = {"mean_0": [row[0] for row in rows], "mean_1": [row[1] for row in rows]}
    given |= {f"{kind}_{i}": [row[2 + i] ** power for row in rows] for i in range(2)}
    path = write_table(pa.table(given), tmp_path / "in.parquet")
    message = rf"row 1: {kind}_0 must be at least 1e-{150 * power}, got [\d.e-]+ \(3 bad rows"
    refused(InvalidValueError, message, path, tmp_path / "out.parquet")
    given = {name: values[2:] for name, values in given.items()}
    message = rf"row 0: {kind}_0 must be wider: a scale is at least 2e-154 of the others .*, got 1e-{80 * power} \(2 bad rows"
    refused(InvalidValueError, message, write_table(pa.table(given), tmp_path / "b.parquet"), tmp_path / "out.parquet")
    measure = "log.bayes.members"
    assert score(path, tmp_path / "out.parquet", measures=[measure], on_bad="drop").bad_rows == 3
    entropies = [np.log(2.0 * np.pi * np.e) / 2.0 + np.log(row[2:]).mean() for row in (rows[0], rows[4])]
    np.testing.assert_allclose(read_table(tmp_path / "out.parquet").column(measure).to_numpy(), entropies, rtol=1e-12)


@pytest.mark.parametrize(("name", "value", "size"), [("mean_1", 1e308, "1e\\+150"), ("variance_1", 1e308, "1e\\+300")])
def test_a_value_whose_square_is_infinite_is_bad(tmp_path: Path, name: str, value: float, size: str) -> None:
    """Computing with it would give 0 or NaN without a word."""
    frame = table(20).to_pydict()
    frame[name][4] = value
    path = write_table(pa.table(frame), tmp_path / "in.parquet")
    refused(InvalidValueError, rf"row 4: {name} must be at most {size} in size, got 1e\+308", path, tmp_path / "out.parquet")
    assert score(path, tmp_path / "out.parquet", on_bad="drop").bad_rows == 1

"""`uqprism report` and `uqprism cite`, as people use them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import uqprism as up
from tests.cli.command import printed, run
from tests.report.pages import Page
from tests.tasks.problems import ensemble
from uqprism.errors import UqprismError

FEW = ["--resamples", "20"]


def frame(n: int, **how) -> pd.DataFrame:
    """Columns mean_0 ... mean_9, variance_0 ... variance_9, y: what a user of any model has."""
    ens, y = ensemble(n, **how)
    members = {"mean": ens.members.mean, "variance": ens.members.variance}
    return pd.DataFrame({f"{name}_{i}": row for name, rows in members.items() for i, row in enumerate(rows)} | {"y": y})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    frame(80).to_csv(folder / "predictions.csv", index=False)
    frame(40, shift=1.0, seed=2).to_parquet(folder / "elsewhere.parquet")
    return folder


def test_from_a_csv_to_a_report_with_one_command(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = printed("report", folder / "predictions.csv", "--target", "y", *FEW)
    assert "is noise" in told
    assert re.search(r"The report is in report\.html \(0\.\d\d MB\)", told)
    page = Page((tmp_path / "report.html").read_text())
    assert {"summary", "rows", "selective", "calibration", "correlation", "advice", "methods"} <= set(page.ids)
    assert "Uncertainty of predictions.csv" in page.text


def test_scoring_first_gives_the_same_numbers(undrawn: None, folder: Path, tmp_path: Path) -> None:
    scored = tmp_path / "scored.parquet"
    printed("score", folder / "predictions.csv", "-o", scored, "--keep-members", "-q")
    for source, name in ((folder / "predictions.csv", "a.html"), (scored, "b.html")):
        printed("report", source, "--target", "y", "--title", "t", "-o", tmp_path / name, "-q", *FEW)
    first, second = (Page((tmp_path / name).read_text()).text.split("How it was made")[0] for name in ("a.html", "b.html"))
    assert first == second
    assert "the measures were read, not computed" in (tmp_path / "b.html").read_text()


def test_a_scored_file_without_members_needs_the_prediction(undrawn: None, folder: Path, tmp_path: Path) -> None:
    printed("score", folder / "predictions.csv", "-o", tmp_path / "scored.csv", "-q")
    with pytest.raises(UqprismError, match=r"has measures but no members; score with --keep-members, or .* --prediction"):
        printed("report", tmp_path / "scored.csv", "--target", "y", "-o", tmp_path / "page.html")
    table = pd.read_csv(tmp_path / "scored.csv")
    table.assign(best=frame(80).filter(like="mean_").mean(axis=1)).to_csv(tmp_path / "scored.csv", index=False)
    printed("report", tmp_path / "scored.csv", "--target", "y", "--prediction", "best", "-o", tmp_path / "page.html", *FEW)
    text = Page((tmp_path / "page.html").read_text()).text
    expected = np.sqrt(up.tasks.prediction_error(*ensemble(80)).mean())
    assert f"The root mean squared error is {expected:.3g}." in text
    assert "needs the columns of the members" in text


def test_a_column_of_errors_may_have_the_name_of_a_kind_it_is_not(undrawn: None, folder: Path, tmp_path: Path) -> None:
    table = frame(80).assign(squared=np.arange(80.0))
    table.to_csv(tmp_path / "mine.csv", index=False)
    printed("report", tmp_path / "mine.csv", "--error-column", "squared", "--unit", "km", "-o", tmp_path / "page.html", *FEW)
    page = Page((tmp_path / "page.html").read_text())
    assert "The mean squared is 39.5." in page.text
    assert "80 rows, 10 models; errors known" in page.text
    assert "needs the targets (--target)." in page.text


def test_a_file_of_one_row_may_have_a_target(undrawn: None, tmp_path: Path) -> None:
    frame(80).iloc[[7]].to_csv(tmp_path / "mine.csv", index=False)
    told = printed("report", tmp_path / "mine.csv", "--target", "y", "-o", tmp_path / "page.html")
    assert "of the only row" in told
    assert "takes more rows" in (tmp_path / "page.html").read_text()


def test_points_from_outside_and_columns_of_the_file(undrawn: None, folder: Path, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    table = frame(60)
    table.insert(0, evil, [f"<b>trip {i}</b>" for i in range(60)])
    table.to_csv(tmp_path / "named.csv", index=False)
    page = tmp_path / "page.html"
    printed("report", tmp_path / "named.csv", "--ood", folder / "elsewhere.parquet", "--unit", "km", "-o", page, *FEW)
    parsed = Page(page.read_text())
    assert parsed.tags.count("script") == 2
    assert parsed.tags.count("b") < 10  # of the page itself
    assert f"noise {evil} y prediction" in parsed.text
    assert "<b>trip " in parsed.text
    assert "A row from “elsewhere” (40 rows) looks more uncertain" in parsed.text
    assert "km" in parsed.text


def test_scored_files_without_members_tell_the_same_of_rows_from_outside(undrawn: None, folder: Path, tmp_path: Path) -> None:
    told = []
    for name in ("predictions.csv", "elsewhere.parquet"):
        printed("score", folder / name, "-o", tmp_path / name, "-q")
    for place in (folder, tmp_path):
        page = tmp_path / "page.html"
        printed("report", place / "predictions.csv", "--ood", place / "elsewhere.parquet", "-o", page, "-q", *FEW)
        text = Page(page.read_text()).text
        told.append(re.search(r"Disagreement makes up .*? in rows from “elsewhere”, and .*? % in the known rows\.", text)[0])
        assert "Known rows and rows with unfamiliar inputs" in text
        assert json.loads(re.findall(r"data-dots>(.*?)</script>", page.read_text())[0])["values"][0][-1] == "elsewhere"
    assert told[0] == told[1]


def test_rows_from_outside_keep_their_numbers_where_bad_ones_are_left_out(undrawn: None, folder: Path, tmp_path: Path) -> None:
    table = frame(20, shift=1.0)
    table.loc[[0, 7], "mean_3"] = np.nan
    table.to_csv(tmp_path / "far.csv", index=False)
    page = tmp_path / "page.html"
    printed("report", folder / "predictions.csv", "--ood", tmp_path / "far.csv", "--on-bad", "drop", "-o", page, "-q", *FEW)
    dots = json.loads(re.findall(r"data-dots>(.*?)</script>", page.read_text())[0])
    rows = [row for file, row in zip(*dots["values"][:2], strict=True) if file == "far"]
    assert rows == [str(i) for i in range(20) if i not in {0, 7}]


def test_a_file_from_outside_without_a_good_row_is_refused(folder: Path, tmp_path: Path) -> None:
    far, page = tmp_path / "far.csv", tmp_path / "page.html"
    frame(5).assign(mean_3=np.nan).to_csv(far, index=False)
    with pytest.raises(UqprismError, match=r"far\.csv: must have a row that can be used"):
        printed("report", folder / "predictions.csv", "--ood", far, "--on-bad", "drop", "-o", page, "-q", *FEW)
    assert not page.exists()


def test_bad_rows_are_named_or_left_out(undrawn: None, folder: Path, tmp_path: Path) -> None:
    table = frame(60)
    table.loc[17, "mean_3"] = np.nan
    table.loc[40, "variance_7"] = -1.0
    table.loc[50, "y"] = np.nan
    table.insert(0, "id", [f"trip {i}" for i in range(60)])
    table.to_csv(tmp_path / "bad.csv", index=False)
    arguments = ["report", tmp_path / "bad.csv", "--target", "y", "--title", "t", *FEW]
    with pytest.raises(
        UqprismError, match=r"bad.csv: row 17: mean_3 must be finite, got null \(2 bad rows among rows 0 to 59\).*--on-bad drop"
    ):
        printed(*arguments, "-o", tmp_path / "page.html")
    result = run(*arguments, "--on-bad", "drop", "-o", tmp_path / "bad.html")
    assert max(map(len, (result.stderr + result.stdout).splitlines())) <= 120
    table.drop([17, 40, 50]).to_csv(tmp_path / "good.csv", index=False)
    arguments[1] = tmp_path / "good.csv"
    printed(*arguments, "-o", tmp_path / "good.html")
    bad, good = (Page((tmp_path / name).read_text()).text for name in ("bad.html", "good.html"))
    assert "57 rows used, 3 left out because they lack a number" in bad
    assert "57 rows, 10 models (3 of 60 rows left out)" in bad
    assert "3 of 60 rows are left out, because of missing" in result.stderr.replace("\u00a0", " ")
    assert "left out" not in good.split("How it was made")[0]
    # The same numbers, but rows keep the numbers they have in their file.
    trips = [re.findall(r"(\d+) [^ ]+ [^ ]+ trip (\d+)", text) for text in (bad, good)]
    assert [trip for _, trip in trips[0]] == [trip for _, trip in trips[1]]
    assert all(row == trip for row, trip in trips[0])
    assert bad.split("Handing over")[1].split("%")[1] == good.split("Handing over")[1].split("%")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "z"], "unknown column 'z'"),
        (["-o", "page.pdf"], "must end in .html"),
        (["-o", "nowhere/page.html"], "folder that does not exist"),
        (["--ood", "missing.csv"], "missing.csv: no such file"),
        (["--measures", "crps.exces.*"], "no measure matches 'crps.exces.*'"),
        (["--rule", "crsp"], "did you mean 'crps'"),
        (["--show", "nothing"], "unknown column 'nothing'"),
        (["--mean-columns", "mu{i}"], "no columns like mu{i}"),
    ],
)
def test_wrong_usage_is_one_clear_line(folder: Path, tmp_path: Path, monkeypatch, arguments, message) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UqprismError, match=re.escape(message)):
        printed("report", folder / "predictions.csv", *arguments)
    assert not list(tmp_path.iterdir())


def test_cite_prints_what_the_citation_file_says() -> None:
    told, root = printed("cite"), Path(__file__).parent.parent.parent
    cited = (root / "CITATION.cff").read_text()
    assert told.count("@") == 2
    authors = re.findall(r"given-names: (.*)\n\s+family-names: (.*)", cited)
    assert len(authors) == 6
    assert " and ".join(f"{family}, {given}" for given, family in authors) in told
    for title in re.findall(r"title: \"?([^\"\n]*)", cited):
        assert f"{{{title}}}" in told
    assert f"version: {up.__version__}\n" in cited
    assert f"version = {{{up.__version__}}}" in told

"""`uqprism report` and `uqprism cite`, as people use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import uqprism as up
from tests.cli.command import printed, run
from tests.report.pages import Page, frame, plain
from tests.tasks.problems import ensemble
from uqprism.errors import UqprismError

FEW = ["--resamples", "20"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    frame(80).to_csv(folder / "predictions.csv", index=False)
    frame(40, shift=1.0, seed=2).to_parquet(folder / "elsewhere.parquet")
    return folder


@pytest.fixture
def report(undrawn: None, tmp_path: Path) -> Callable[..., Page]:
    """Write a report on a frame or file and read the page."""

    def made(source: Path | pd.DataFrame, *options: object) -> Page:
        if isinstance(source, pd.DataFrame):
            source.to_csv(tmp_path / "mine.csv", index=False)
            source = tmp_path / "mine.csv"
        printed("report", source, "-o", tmp_path / "page.html", "-q", *FEW, *options)
        return Page((tmp_path / "page.html").read_text())

    return made


def test_from_a_csv_to_a_report_with_one_command(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = printed("report", folder / "predictions.csv", "--target", "y", *FEW)
    assert "is noise" in told
    assert re.search(r"The report is in report\.html \(0\.\d\d MB\)", told)
    page = Page((tmp_path / "report.html").read_text())
    assert {"summary", "rows", "selective", "calibration", "correlation", "advice", "methods"} <= set(page.ids)
    assert "Uncertainty of predictions.csv" in page.text


def test_scoring_first_gives_the_same_numbers(report, folder: Path, tmp_path: Path) -> None:
    scored, options = tmp_path / "scored.parquet", ["--target", "y", "--title", "t"]
    printed("score", folder / "predictions.csv", "-o", scored, "--keep-members", "-q")
    first, second = (report(source, *options).text.split("How it was made") for source in (folder / "predictions.csv", scored))
    assert first[0] == second[0]
    assert "the measures were read, not computed" in second[1]


def test_a_scored_file_without_members_needs_the_prediction(report, folder: Path, tmp_path: Path) -> None:
    printed("score", folder / "predictions.csv", "-o", tmp_path / "scored.csv", "-q")
    with pytest.raises(UqprismError, match=r"has measures but no members; score with --keep-members, or .* --prediction"):
        report(tmp_path / "scored.csv", "--target", "y")
    best = frame(80).filter(like="mean_").mean(axis=1)
    text = report(pd.read_csv(tmp_path / "scored.csv").assign(best=best), "--target", "y", "--prediction", "best").text
    expected = np.sqrt(up.tasks.prediction_error(*ensemble(80)).mean())
    assert f"The root mean squared error is {expected:.3g}." in text
    assert "needs the columns of the members" in text


def test_what_the_members_are_can_be_said_beside_a_csv(report) -> None:
    about = "trees of a forest, which disagree however many rows there are"
    assert about in " ".join(report(frame(40), "--models", "forest").words)
    assert about not in " ".join(report(frame(40)).words)


def test_a_column_of_errors_may_have_the_name_of_a_kind_it_is_not(report) -> None:
    text = report(frame(80).assign(squared=np.arange(80.0)), "--error-column", "squared", "--unit", "km").text
    assert "The mean squared is 39.5." in text
    assert "80 rows, 10 models; errors known" in text
    assert "needs the targets (--target)." in text


def test_a_file_of_one_row_may_have_a_target(undrawn: None, tmp_path: Path) -> None:
    frame(80).iloc[[7]].to_csv(tmp_path / "mine.csv", index=False)
    told = printed("report", tmp_path / "mine.csv", "--target", "y", "-o", tmp_path / "page.html")
    assert "in the only row" in told
    assert "takes more rows" in (tmp_path / "page.html").read_text()


def test_points_from_outside_and_columns_of_the_file(report, folder: Path) -> None:
    evil = "<script>alert(1)</script>"
    table = frame(60).rename(columns={"id": evil})
    page = report(table.assign(**{evil: "<b>" + table[evil] + "</b>"}), "--ood", folder / "elsewhere.parquet", "--unit", "km")
    assert page.tags.count("script") == 2
    assert page.tags.count("b") < 10  # of the page itself
    assert f"noise (km) {evil} y prediction (km)" in page.text
    assert "<b>trip " in page.text
    assert "A row from “elsewhere” (40 rows) looks more uncertain" in page.text
    assert "km" in page.text


def test_scored_files_without_members_tell_the_same_of_rows_from_outside(report, folder: Path, tmp_path: Path) -> None:
    told = []
    for name in ("predictions.csv", "elsewhere.parquet"):
        printed("score", folder / name, "-o", tmp_path / name, "-q")
    for place in (folder, tmp_path):
        page = report(place / "predictions.csv", "--ood", place / "elsewhere.parquet")
        pattern = r"Disagreement makes up .*? in rows from “elsewhere”, and .*? % in the known rows\."
        told.append(re.search(pattern, page.text)[0])
        assert "Known rows and rows with unfamiliar inputs" in page.text
        assert page.dots["values"][0][-1] == "elsewhere"
    assert told[0] == told[1]


def test_rows_from_outside_keep_their_numbers_and_some_must_be_good(report, folder: Path, tmp_path: Path) -> None:
    table, options = frame(20, shift=1.0), ["--ood", tmp_path / "far.csv", "--on-bad", "drop"]
    table.assign(mean_3=np.nan).to_csv(tmp_path / "far.csv", index=False)
    with pytest.raises(UqprismError, match=r"far\.csv: must have a row that can be used"):
        report(folder / "predictions.csv", *options)
    assert not (tmp_path / "page.html").exists()
    table.loc[[0, 7], "mean_3"] = np.nan
    table.to_csv(tmp_path / "far.csv", index=False)
    dots = report(folder / "predictions.csv", *options).dots
    column = dict(zip(dots["names"], dots["values"], strict=True))
    far = [row for file, row in zip(column["file"], column["row"], strict=True) if file == "far"]
    assert far == [str(i) for i in range(20) if i not in {0, 7}]


def test_bad_rows_are_named_or_left_out(report, tmp_path: Path) -> None:
    table = frame(60)
    table.loc[17, "mean_3"] = np.nan
    table.loc[40, "variance_7"] = -1.0
    table.loc[50, "y"] = np.nan
    options = ["--target", "y", "--title", "t"]
    message = r"mine.csv: row 17 \(line 19\): mean_3 must be finite, got null \(2 bad rows among rows 0 to 59\).*--on-bad drop"
    with pytest.raises(UqprismError, match=message):
        report(table, *options)
    result = run("report", tmp_path / "mine.csv", "--on-bad", "drop", "-o", tmp_path / "bad.html", *options, *FEW)
    assert max(map(len, (result.stderr + result.stdout).splitlines())) <= 120
    assert "3 of 60 rows are left out, because of missing" in plain(result.stderr)
    bad, good = Page((tmp_path / "bad.html").read_text()).text, report(table.drop([17, 40, 50]), *options).text
    assert "57 rows used, 3 left out because they lack a number" in bad
    assert "57 rows, 10 models (3 of 60 rows left out)" in bad
    assert "left out" not in good.split("How it was made")[0]
    # The same numbers, but rows keep the numbers they have in their file.
    trips = [re.findall(r"(\d+) [^ ]+ [^ ]+ trip (\d+)", text) for text in (bad, good)]
    assert [trip for _, trip in trips[0]] == [trip for _, trip in trips[1]]
    assert all(row == trip for row, trip in trips[0])
    assert bad.split("Handing over")[1].split("%")[1] == good.split("Handing over")[1].split("%")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target z", "unknown column 'z'"),
        ("-o page.pdf", "must end in .html"),
        ("-o nowhere/page.html", "folder that does not exist"),
        ("--ood missing.csv", "missing.csv: no such file"),
        ("--measures crps.exces.*", "no measure matches 'crps.exces.*'"),
        ("--rule crsp", "did you mean 'crps'"),
        ("--show nothing", "unknown column 'nothing'"),
        ("--mean-columns mu{i}", "no columns like mu{i}"),
    ],
)
def test_wrong_usage_is_one_clear_line(folder: Path, tmp_path: Path, monkeypatch, options: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UqprismError, match=re.escape(message)):
        printed("report", folder / "predictions.csv", *options.split())
    assert not list(tmp_path.iterdir())


def test_cite_prints_what_the_citation_file_says() -> None:
    told, root = printed("cite"), Path(__file__).parents[2]
    cited = (root / "CITATION.cff").read_text()
    assert told.count("@") == 2
    authors = re.findall(r"given-names: (.*)\n\s+family-names: (.*)", cited)
    assert len(authors) == 6
    assert " and ".join(f"{family}, {given}" for given, family in authors) in told
    for title in re.findall(r"title: \"?([^\"\n]*)", cited):
        assert f"{{{title}}}" in told
    assert f"version: {up.__version__}\n" in cited
    assert f"version = {{{up.__version__}}}" in told

"""The tasks on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import uqprism as up
from tests.cli.command import printed, run
from tests.tasks.problems import ensemble
from uqprism import tasks
from uqprism.errors import UqprismError

FEW = ["crps.total.members.members", "log.excess.members.members", "crps.bayes.members"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Scored points with errors, points from outside, and members with targets."""
    folder = tmp_path_factory.mktemp("files")
    ens, target = ensemble(200)
    error = tasks.prediction_error(ens, target)
    columns = {name: np.asarray(column) for name, column in up.evaluate(ens, FEW).items()}
    pq.write_table(pa.table({**columns, "e": error}), folder / "scored.parquet")
    for name, shift in (("near", 1.0), ("far", 3.0)):
        outside, _ = ensemble(150, shift=shift, seed=1)
        pq.write_table(pa.table(dict(up.evaluate(outside, FEW).items())), folder / f"{name}.parquet")
    pq.write_table(ens.to_arrow().append_column("y", pa.array(target)), folder / "members.parquet")
    return {path.stem: path for path in folder.iterdir()}


def test_selective_gives_what_the_function_gives(files) -> None:
    found = json.loads(printed("selective", files["scored"], "--error-column", "e", "--format", "json"))
    table = pq.read_table(files["scored"]).to_pandas()
    expected = tasks.selective_prediction(table[FEW], error=table["e"])
    assert found == json.loads(expected.to_json())
    assert found["best"] == "crps.total.members.members"


def test_csv_has_a_row_per_measure(files, tmp_path) -> None:
    printed("selective", files["scored"], "--error-column", "e", "-f", "csv", "--metric", "prr", "-o", tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert {row["measure"] for row in rows} == set(FEW)
    values = [float(row["prr"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert rows[0]["not_worse"] == "True"


def test_the_table_is_for_people(files) -> None:
    lines = printed("selective", files["scored"], "--error-column", "e", "--resamples", "0").splitlines()
    assert lines[0].startswith("selective_prediction: prr_paper (lower is better), 3 measures, 200 points with mean error ")
    assert lines[2].split() == ["measure", "prr", "paper"]
    assert lines[3].startswith("crps.total.members.members")
    shown = printed("selective", files["scored"], "--error-column", "e", "--top", "1", "--resamples", "0")
    assert shown.endswith("1 of 3 shown, --top 0 shows all.\n")


def test_the_ending_of_the_output_decides_its_format(files, tmp_path) -> None:
    text = printed("select", files["scored"], "--error-column", "e", "-o", tmp_path / "out.json")
    assert text.startswith("Use crps.total.members.members. Of 3 measures")
    assert json.loads((tmp_path / "out.json").read_text())["measure"] == "crps.total.members.members"
    printed("select", files["scored"], "--error-column", "e", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("measure,prr_paper,spread")


def test_bad_rows_are_named_or_left_out(files, tmp_path) -> None:
    table = pq.read_table(files["members"]).to_pandas()
    table.loc[17, "mean_3"] = np.nan
    table.loc[40, "scale_7"] = -1.0
    table.loc[60, "y"] = np.nan
    table.to_csv(tmp_path / "bad.csv", index=False)
    arguments = ["selective", tmp_path / "bad.csv", "--target", "y", "--measures", FEW[0], "--resamples", 0, "-f", "json"]
    with pytest.raises(
        UqprismError, match=r"bad.csv: row 17: mean_3 must be finite, got null \(2 bad rows among rows 0 to 199\).*--on-bad drop"
    ):
        printed(*arguments)
    found = json.loads(printed(*arguments, "--on-bad", "drop"))
    assert found["settings"]["points"] == 197
    table.drop([17, 40, 60]).to_csv(tmp_path / "good.csv", index=False)
    arguments[1] = tmp_path / "good.csv"
    assert json.loads(printed(*arguments)) == found


def test_a_column_of_ones_own_beside_measures_that_are_computed(files, tmp_path) -> None:
    table = pq.read_table(files["members"]).to_pandas()
    table["mine"] = table["scale_0"]
    table["id"] = "x"
    table.rename(columns=lambda name: name.replace("mean_", "mu")).to_csv(tmp_path / "mine.csv", index=False)
    arguments = ["selective", tmp_path / "mine.csv", "--target", "y", "--mean-columns", "mu{i}", "--resamples", 0, "-f", "json"]
    found = json.loads(printed(*arguments, "--measures", "mine,crps.total.members.*"))
    assert {row["measure"] for row in found["measures"]} == {
        "mine",
        *(f"crps.total.members.{truth}" for truth in ("members", "mixture", "matched", "pooled")),
    }


def test_members_and_targets_need_no_scoring_first(files) -> None:
    arguments = ["selective", files["members"], "--target", "y", "-f", "json", "--resamples", 0]
    found = json.loads(printed(*arguments, "--measures", "crps.*"))
    assert len(found["measures"]) == 36
    nll = json.loads(printed(*arguments, "--error", "nll", "--measures", FEW[0]))
    assert nll["settings"]["mean_error"] != found["settings"]["mean_error"]


def test_ood_takes_several_sets(files) -> None:
    found = json.loads(printed("ood", files["scored"], files["near"], files["far"], "-f", "json"))
    assert found["best"] == "log.excess.members.members"
    assert {"auroc.near", "auroc.far"} <= set(found["measures"][0])
    one = json.loads(printed("ood", files["scored"], files["far"], "-f", "json"))
    assert one["measures"][0]["auroc"] == found["measures"][0]["auroc.far"]


def test_a_set_from_outside_counts_once(files) -> None:
    with pytest.raises(UqprismError, match="the OOD files must differ"):
        printed("ood", files["scored"], files["far"], files["far"])


def test_a_long_comparison_says_what_it_does(files, monkeypatch) -> None:
    monkeypatch.setattr("uqprism.cli.tasks.MANY", 3 * 200)
    result = run("correlation", files["scored"])
    assert "uqprism: comparing 3 measures on 200 rows ..." in result.stderr
    assert result.stdout.startswith("rank correlation")
    assert "comparing" not in run("correlation", files["scored"], "--measures", FEW[0]).stderr


def test_correlation_prints_groups_and_writes_the_matrix(files) -> None:
    text = printed("correlation", files["scored"])
    assert f"tau with {FEW[0]}" in text
    table = pq.read_table(files["scored"])
    for name in FEW[1:]:
        tau = kendalltau(table.column(FEW[0]), table.column(name)).statistic
        (line,) = (line for line in text.splitlines() if line.startswith(f"{name} "))
        assert line.split()[1:] == ["1", f"{tau:.4g}"]
    grouped = printed("correlation", files["members"], "--measures", "squared_error.*").splitlines()
    assert [line.split()[1] for line in grouped if line.startswith("squared_error.total.members.members")] == ["3"]
    rows = list(csv.DictReader(io.StringIO(printed("correlation", files["scored"], "-f", "csv"))))
    assert [row["measure"] for row in rows] == FEW
    assert float(rows[0][FEW[0]]) == 1.0
    assert float(rows[0][FEW[1]]) == pytest.approx(float(rows[1][FEW[0]]))


def test_select_says_which_and_why(files) -> None:
    by_error = json.loads(printed("select", files["scored"], "--error-column", "e", "-f", "json"))
    assert by_error["measure"] == "crps.total.members.members"
    text = printed("select", files["scored"], "--ood", files["far"])
    assert text.startswith("Use log.excess.members.members. ")
    assert text.splitlines()[3].split()[0] == "log.excess.members.members"
    found = json.loads(printed("select", files["scored"], "--ood", files["far"], "--metric", "fpr95", "-f", "json"))
    assert found["metric"] == "fpr95"
    with pytest.raises(UqprismError, match=r"either --target \(or --error-column.*or --ood.*got neither"):
        printed("select", files["scored"])


def test_recommend_prints_advice_and_evidence() -> None:
    text = printed("recommend", "ood")
    assert text.startswith("ood_detection: log.excess.members.members\n")
    assert "0.827 +- 0.011" in text
    assert json.loads(printed("recommend", "selective_prediction", "-f", "json"))["measure"] == "crps.total.members.members"
    with pytest.raises(UqprismError, match="unknown task 'ood_detecton'; did you mean 'ood_detection'"):
        printed("recommend", "ood_detecton")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn_on_request(files, ending, tmp_path) -> None:
    printed("ood", files["scored"], files["far"], "--plot", tmp_path / f"roc.{ending}", "-o", tmp_path / "x.json", "-f", "json")
    head = (tmp_path / f"roc.{ending}").read_bytes()[:5]
    assert head.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "yaml"], r"unknown format \(--format\) 'yaml'"),
        (["--plot", "x.gif"], r"--plot must end in .png, .svg, .pdf, got 'x.gif'"),
        (["--error-column", "ee"], r"unknown column 'ee'; did you mean 'e'"),
        ([], r"the error of each point is missing"),
        (["--error-column", "e", "--metric", "prrr"], r"unknown metric 'prrr'"),
        (["--error-column", "e", "-o", "missing/x.json"], r"--output missing/x.json: lies in a folder that does not exist"),
        (["--error-column", "e", "-o", "."], r"--output \.: is a folder"),
        (["--error-column", "e", "-o", "x.csv", "-f", "json"], r"--format json and the ending of --output x.csv contradict"),
        (["--error-column", "e", "--on-bad", "null"], r"unknown on_bad \(--on-bad\) 'null'"),
    ],
)
def test_bad_usage_is_one_clear_line(files, arguments, message) -> None:
    with pytest.raises(UqprismError, match=message):
        printed("selective", files["scored"], *arguments)


@pytest.mark.parametrize("name", ["selective", "ood", "correlation", "select", "recommend", "active"])
def test_every_command_has_formats(name: str) -> None:
    assert "--format" in printed(name, "--help")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    """A table whose targets are known."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (150, 2))
    path = tmp_path_factory.mktemp("labelled") / "table.parquet"
    columns = {"a": x[:, 0], "b": x[:, 1], "note": ["x"] * 150, "y": x[:, 0] + 0.1 * rng.normal(size=150)}
    pq.write_table(pa.table(columns), path)
    return path


def test_active_compares_acquisitions_and_goes_on_from_its_folder(labelled, tmp_path) -> None:
    how = ["--target", "y", "--initial", 20, "--batch-size", 5, "--rounds", 2, "--seeds", 2, "--format", "json"]
    how += ["--acquisition", "random,crps.excess.members.members"]
    arguments = ["active", labelled, *how, "--folder", tmp_path / "kept"]
    found = json.loads(printed(*arguments))
    assert {row["measure"] for row in found["measures"]} == {"random", "crps.excess.members.members"}
    assert {"nll", "rmse", "crps", "rank"} <= set(found["measures"][0])
    assert len(list((tmp_path / "kept").rglob("*.npz"))) == 8
    again = json.loads(printed(*arguments))
    assert again == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "z"], r"unknown column 'z'"),
        (["--target", "y", "--model", "tree"], r"unknown model \(--model\) 'tree'"),
        (["--target", "y", "--inputs", "note"], r"column 'note' must hold numbers"),
        (["--target", "y", "--initial", "110"], r"pool"),
        (["--target", "y", "-a", "crps.exces.members.members"], r"did you mean 'excess'"),
    ],
)
def test_bad_usage_of_active_is_one_clear_line(labelled, arguments, message) -> None:
    with pytest.raises(UqprismError, match=message):
        printed("active", labelled, *arguments)

"""The tasks on the command line."""

from __future__ import annotations

import csv
import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import uqprism as up
from tests.cli.command import printed, run
from tests.tasks.problems import ensemble
from uqprism import tasks
from uqprism.errors import UqprismError, UqprismWarning

FEW = ["crps.total.members.members", "log.excess.members.members", "crps.bayes.members"]


def found(*arguments: object) -> dict[str, Any]:
    """The result that a command prints as JSON."""
    return json.loads(printed(*arguments, "--format", "json"))


def rows(text: str) -> list[dict[str, str]]:
    """The rows of a table in CSV."""
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Scored points with errors, points from outside, members with targets, and inputs with targets."""
    folder, (ens, target) = tmp_path_factory.mktemp("files"), ensemble(200)
    error = tasks.prediction_error(ens, target)
    up.evaluate(ens, FEW).to_pandas().assign(e=error).to_parquet(folder / "scored.parquet")
    for name, shift in (("near", 1.0), ("far", 3.0)):
        up.evaluate(ensemble(150, shift=shift, seed=1)[0], FEW).to_pandas().to_parquet(folder / f"{name}.parquet")
    pq.write_table(ens.to_arrow().append_column("y", pa.array(target)), folder / "members.parquet")
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 150))
    labelled = pa.table({"a": a, "b": b, "note": ["x"] * 150, "y": a + 0.1 * rng.normal(size=150)})
    pq.write_table(labelled, folder / "labelled.parquet")
    return {path.stem: path for path in folder.iterdir()}


def test_selective_gives_what_the_function_gives(files) -> None:
    given = found("selective", files["scored"], "--error-column", "e")
    table = pq.read_table(files["scored"]).to_pandas()
    assert given == json.loads(tasks.selective_prediction(table[FEW], error=table["e"]).to_json())
    assert given["best"] == "crps.total.members.members"


def test_csv_has_a_row_per_measure(files, tmp_path) -> None:
    printed("selective", files["scored"], "--error-column", "e", "-f", "csv", "--metric", "prr", "-o", tmp_path / "out.csv")
    given = rows((tmp_path / "out.csv").read_text())
    assert {row["measure"] for row in given} == set(FEW)
    values = [float(row["prr"]) for row in given]
    assert values == sorted(values, reverse=True)
    assert given[0]["not_worse"] == "True"


def test_the_table_is_for_people(files) -> None:
    arguments = ["selective", files["scored"], "--error-column", "e", "--resamples", "0"]
    lines = printed(*arguments).splitlines()
    assert lines[0].startswith("selective_prediction: prr_paper (lower is better), 3 measures, 200 points with mean error ")
    assert lines[2].split() == ["measure", "prr", "paper"]
    assert lines[3].startswith("crps.total.members.members")
    assert printed(*arguments, "--top", "1").endswith("1 of 3 shown, --top 0 shows all.\n")


def test_the_ending_of_the_output_decides_its_format(files, tmp_path) -> None:
    for ending in ("json", "csv"):
        text = printed("select", files["scored"], "--error-column", "e", "-o", tmp_path / f"out.{ending}")
        assert text.startswith("Use crps.total.members.members. Of 3 measures")
    assert json.loads((tmp_path / "out.json").read_text())["measure"] == "crps.total.members.members"
    assert (tmp_path / "out.csv").read_text().startswith("measure,prr_paper,spread")


def test_bad_rows_are_named_or_left_out(files, tmp_path) -> None:
    table = pq.read_table(files["members"]).to_pandas()
    table.loc[17, "mean_3"] = np.nan
    table.loc[40, "scale_7"] = -1.0
    table.loc[60, "y"] = np.nan
    table.to_csv(tmp_path / "bad.csv", index=False)
    table.drop([17, 40, 60]).to_csv(tmp_path / "good.csv", index=False)
    arguments = ["--target", "y", "--measures", FEW[0], "--resamples", 0]
    message = r"bad.csv: row 17 \(line 19\): mean_3 must be finite, got null \(2 bad rows among rows 0 to 199\).*--on-bad drop"
    with pytest.raises(UqprismError, match=message):
        printed("selective", tmp_path / "bad.csv", *arguments)
    given = found("selective", tmp_path / "bad.csv", *arguments, "--on-bad", "drop")
    assert given["settings"]["points"] == 197
    assert given == found("selective", tmp_path / "good.csv", *arguments)


def test_a_column_of_ones_own_beside_measures_that_are_computed(files, tmp_path) -> None:
    table = pq.read_table(files["members"]).to_pandas().rename(columns=lambda name: name.replace("mean_", "mu"))
    table.assign(mine=table["scale_0"], id="x").to_csv(tmp_path / "mine.csv", index=False)
    options = ["--target", "y", "--mean-columns", "mu{i}", "--resamples", 0, "--measures", "mine,crps.total.members.*"]
    names = {row["measure"] for row in found("selective", tmp_path / "mine.csv", *options)["measures"]}
    assert names == {"mine", *(f"crps.total.members.{truth}" for truth in ("members", "mixture", "matched", "pooled"))}


def test_members_and_targets_need_no_scoring_first(files) -> None:
    arguments = ["selective", files["members"], "--target", "y", "--resamples", 0, "--measures"]
    given = found(*arguments, "crps.*")
    assert len(given["measures"]) == 36
    assert found(*arguments, FEW[0], "--error", "nll")["settings"]["mean_error"] != given["settings"]["mean_error"]


def test_ood_takes_several_sets_that_differ(files) -> None:
    both, far = found("ood", files["scored"], files["near"], files["far"]), found("ood", files["scored"], files["far"])
    assert both["best"] == "log.excess.members.members"
    assert {"auroc.near", "auroc.far"} <= set(both["measures"][0])
    assert far["measures"][0]["auroc"] == both["measures"][0]["auroc.far"]
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
    matrix = rows(printed("correlation", files["scored"], "-f", "csv"))
    assert [row["measure"] for row in matrix] == FEW
    assert float(matrix[0][FEW[0]]) == 1.0
    assert float(matrix[0][FEW[1]]) == pytest.approx(float(matrix[1][FEW[0]]))


def test_select_says_which_and_why(files) -> None:
    assert found("select", files["scored"], "--error-column", "e")["measure"] == "crps.total.members.members"
    text = printed("select", files["scored"], "--ood", files["far"])
    assert text.startswith("Use log.excess.members.members. ")
    assert text.splitlines()[3].split()[0] == "log.excess.members.members"
    assert found("select", files["scored"], "--ood", files["far"], "--metric", "fpr95")["metric"] == "fpr95"
    with pytest.raises(UqprismError, match=r"either --target \(or --error-column.*or --ood.*got neither"):
        printed("select", files["scored"])


def test_recommend_prints_advice_and_evidence() -> None:
    text = printed("recommend", "ood")
    assert text.startswith("ood_detection: log.excess.members.members\n")
    assert "0.827 +- 0.011" in text
    assert found("recommend", "selective_prediction")["measure"] == "crps.total.members.members"
    with pytest.raises(UqprismError, match="unknown task 'ood_detecton'; did you mean 'ood_detection'"):
        printed("recommend", "ood_detecton")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_drawn_on_request(files, ending, tmp_path) -> None:
    printed("ood", files["scored"], files["far"], "--plot", tmp_path / f"roc.{ending}", "-o", tmp_path / "x.json", "-f", "json")
    head = (tmp_path / f"roc.{ending}").read_bytes()[:5]
    assert head.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])


def test_active_compares_acquisitions_and_goes_on_from_its_folder(files, tmp_path, monkeypatch) -> None:
    model = importlib.import_module("uqprism.cli.active")._model
    monkeypatch.setattr("uqprism.cli.active._model", lambda name: model(name).set_params(n_estimators=10, n_jobs=1))
    sizes = ["--initial", 20, "--batch-size", 5, "--rounds", 2, "--seeds", 2, "--folder", tmp_path / "kept"]
    arguments = ["active", files["labelled"], "--target", "y", *sizes, "--acquisition", "random,crps.excess.members.members"]
    given = found(*arguments)
    assert {row["measure"] for row in given["measures"]} == {"random", "crps.excess.members.members"}
    assert {"nll", "rmse", "crps", "rank"} <= set(given["measures"][0])
    assert len(list((tmp_path / "kept").rglob("*.npz"))) == 8
    assert found(*arguments) == given


def test_audit_gives_what_the_function_gives_and_a_report_reads_it(files, tmp_path) -> None:
    measure = "crps.excess.members.members"
    sizes = ["--parts", 2, "--repeats", 2, "--resamples", 20, "--measures", measure, "--model", "forest"]
    where = ["--save", tmp_path / "audit.npz", "--folder", tmp_path / "kept"]
    arguments = ["audit", files["labelled"], "--target", "y", *sizes, *where]
    given, audit = found(*arguments), up.Audit.load(tmp_path / "audit.npz")
    assert given == json.loads(audit.to_json())
    assert [row["measure"] for row in given["factors"]] == [measure]
    assert len(list((tmp_path / "kept").glob("*.npz"))) == 4
    assert found(*arguments) == given
    assert str(audit) in printed(*arguments)
    page = tmp_path / "page.html"
    printed("report", files["members"], "--audit", tmp_path / "audit.npz", "-o", page, "--resamples", 0)
    assert f"twice the rows remove {audit.first.factor:.2f}" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("audit labelled --target y --model tree", r"unknown model \(--model\) 'tree'"),
        ("audit labelled --target y --save x.csv", r"--save must end in .npz"),
        ("audit labelled --target y --measures crps.total.members.members", r"measures must have an excess risk"),
        ("selective scored --format yaml", r"unknown format \(--format\) 'yaml'"),
        ("selective scored --plot x.gif", r"--plot must end in .png, .svg, .pdf, got 'x.gif'"),
        ("selective scored --error-column ee", r"unknown column 'ee'; did you mean 'e'"),
        ("selective scored", r"the error of each point is missing"),
        ("selective scored --error-column e --metric prrr", r"unknown metric 'prrr'"),
        ("selective scored --error-column e -o missing/x.json", r"--output missing/x.json: lies in a folder that does not exist"),
        ("selective scored --error-column e -o .", r"--output \.: is a folder"),
        ("selective scored --error-column e -o x.csv -f json", r"--format json and the ending of --output x.csv contradict"),
        ("selective scored --error-column e --on-bad null", r"unknown on_bad \(--on-bad\) 'null'"),
        ("active labelled --target z", r"unknown column 'z'"),
        ("active labelled --target y --model tree", r"unknown model \(--model\) 'tree'"),
        ("active labelled --target y --inputs note", r"column 'note' must hold numbers"),
        ("active labelled --target y --initial 110", r"pool"),
        ("active labelled --target y -a crps.exces.members.members", r"did you mean 'excess'"),
    ],
)
def test_bad_usage_is_one_clear_line(files, arguments: str, message: str) -> None:
    command, file, *options = arguments.split()
    with pytest.raises(UqprismError, match=message):
        printed(command, files[file], *options)


@pytest.mark.parametrize("family", ["poisson", "censored_gaussian", "samples"])
def test_tasks_leave_out_measures_that_members_do_not_have(family: str, tmp_path: Path) -> None:
    """As `evaluate` does; a measure that is named is an error."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1.0, 4.0, size=(2, 30))
    made = {
        "poisson": {"rate": x},
        "censored_gaussian": {"location": x, "scale": 1.0, "low": 0.0, "high": 3.0},
        "samples": {"draws": rng.normal(size=(2, 9, 30))},
    }[family]
    table = getattr(up.EnsemblePrediction, family)(**made).to_arrow()
    path = tmp_path / "members.parquet"
    pq.write_table(table.append_column("y", pa.array(np.round(x[0]))), path)
    with pytest.warns(UqprismWarning, match="measures are left out"):
        ranked = run("selective", path, "--target", "y")
    assert ranked.returncode == 0
    assert "crps." in ranked.stdout
    assert "log.excess.members.matched" not in ranked.stdout
    asked = run("selective", path, "--target", "y", "--measures", "log.excess.members.matched")
    assert asked.returncode == 1

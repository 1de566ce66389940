"""What the pages say of the comparison on public tables was measured, and the measured lines say it."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark() -> Any:
    """`benchmarks/tabular.py`, as it imports its neighbours when it runs."""
    folder, before = str(ROOT / "benchmarks"), set(sys.modules)
    sys.path.insert(0, folder)
    try:
        import tabular

        yield tabular
    finally:
        sys.path.remove(folder)
        for name in {"tabular", "tabular_report", "peers", "public"} - before:
            sys.modules.pop(name, None)


def test_the_report_is_that_of_the_stored_lines(benchmark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = benchmark.tabular_report
    stored = report.REPORT.read_text()
    monkeypatch.setattr(report, "REPORT", tmp_path / "page.md")
    report.write(benchmark.finished())
    assert (tmp_path / "page.md").read_text() == stored


def test_training_md_quotes_what_was_measured(benchmark: Any) -> None:
    results = benchmark.tabular_report.Results(benchmark.finished())
    complete = results.complete()
    ranks = sorted((rank, model) for model, (rank, _) in results.ranks(complete).items())
    (first, ours), (second, boosted), (third, forest) = ranks[:3]
    assert (ours, boosted, forest) == ("uqprism", "LightGBM quantiles", "random forest")
    table, model, share, splits = results.lower()[0]
    assert (len(results.tables), results.splits, len(complete)) == (15, 3, 8)
    split = {1: "one split", 2: "two splits", 3: "three splits"}[splits]
    sentence = (
        f"By CRPS, on three splits each, their mean rank is {first:.2f} among eight models that have every split "
        f"(LightGBM's quantiles {second:.2f}, a random forest {third:.2f}). No model is better by more than 10 % on any table; "
        f"the largest gap is {100 * (1 - share):.1f} %, of {model} on {table}, on {split}."
    )
    words = " ".join((ROOT / "docs" / "training.md").read_text().split())
    assert sentence in words
    assert not results.lost()


def test_a_rank_compares_with_ours_on_the_splits_that_both_have(benchmark: Any) -> None:
    def cell(model: str, split: int, crps: float) -> dict[str, Any]:
        return {"table": "airfoil", "split": split, "model": model, "crps": crps}

    # The second split is hard. A mean over different splits would put the forest, which lacks it, first.
    cells = [cell("uqprism", 0, 1.0), cell("uqprism", 1, 3.0), cell("random forest", 0, 1.2), cell("CatBoost", 0, 0.5)]
    results = benchmark.tabular_report.Results([*cells, cell("CatBoost", 1, 3.1), {**cell("bde", 0, 0.1), "error": "no"}])
    assert results.relative("airfoil") == pytest.approx({"uqprism": 1.0, "random forest": 1.2, "CatBoost": 0.9})
    assert results.ranks(results.models) == {"uqprism": (2.0, 1), "random forest": (3.0, 1), "CatBoost": (1.0, 1)}
    assert results.complete() == ["CatBoost", "uqprism"]
    assert [model for _, model, _, _ in results.lower()] == ["CatBoost"]
    for share, lost in ((0.92, 0), (0.90, 1)):  # ours is 8.7 % and 11.1 % above
        pair = [cell("uqprism", 0, 1.0), cell("CatBoost", 0, share)]
        assert len(benchmark.tabular_report.Results(pair).lost()) == lost


def test_scores_are_those_of_the_formulas(benchmark: Any) -> None:
    import uqprism as up

    ens = up.EnsemblePrediction.gaussian(mean=np.array([[0.0, 1.0]]), scale=np.array([[1.0, 2.0]]))
    found = benchmark.scores(ens, np.array([0.0, 5.0]))
    # Gneiting and Raftery 2007: s (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)), here for s, z of 1, 0 and 2, 2.
    crps = [
        s * (z * math.erf(z / math.sqrt(2)) + (math.sqrt(2) * math.exp(-z * z / 2) - 1) / math.sqrt(math.pi))
        for s, z in ((1, 0), (2, 2))
    ]
    assert found["crps"] == pytest.approx(sum(crps) / 2, abs=1e-9)
    assert found["rmse"] == pytest.approx(np.sqrt(8.0))
    assert (found["coverage"], found["width"]) == (0.5, pytest.approx(3 * 1.6448536))
    assert "noise" not in found


def test_prepared_rows_are_those_of_the_tables_and_cells_are_resumed(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    monkeypatch.setattr(benchmark.public, "load", lambda _: (x, y))
    sizes = benchmark.Sizes(training=40, test=20)
    benchmark.prepare(["airfoil"], 1, sizes, tmp_path / "rows")
    prepared = benchmark.Sizes(training=40, test=20, prepared=tmp_path / "rows")
    for one, other in zip(sizes.rows("airfoil", 0), prepared.rows("airfoil", 0), strict=True):
        np.testing.assert_array_equal(one, other)
    path, tasks = tmp_path / "cells.jsonl", [("airfoil", 0, "random forest"), ("airfoil", 0, "broken")]
    monkeypatch.setitem(benchmark.peers.MODELS, "broken", lambda *_: 1 / 0)
    monkeypatch.setitem(benchmark.peers.IMPORTED, "broken", "sklearn")
    for _ in range(2):  # the second finds both done
        benchmark.run(tasks, prepared, jobs=1, path=path)
    cells = [json.loads(line) for line in path.read_text().splitlines()]
    assert [cell["model"] for cell in cells] == ["random forest", "broken"]
    assert cells[1]["error"].startswith("ZeroDivisionError")
    assert {"crps", "fit", "fit_processor", "machine", "version"} <= cells[0].keys()

"""Active learning on the paper's tables: which cells share a loop, ranks, claims, and all of it at smoke size."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata, spearmanr

import uqprism as up
from uqprism.errors import UnknownNameError
from uqprism.measures import published
from uqprism.paper.ensembles import TRAINING
from uqprism.paper.experiments.active import EXPERIMENT, QUICK, Config, Loops, _share, jobs, ranks, read_rows, work
from uqprism.paper.experiments.active.claims import all_claims, papers
from uqprism.paper.experiments.active.ranks import ERRORS, Learned, LoopRanks, columns, loop_of, not_printed, printed
from uqprism.paper.runner import Outcome, produce
from uqprism.paper.store import Bundle, Store
from uqprism.training import MLP, StackedFit

MEASURES = ("log.excess.members.members", "log.bayes.pooled", "quadratic.bayes.members", "quadratic.total.members.members")
MORE = ("crps.excess.members.mixture", "crps.excess.members.members", "squared_error.total.members.members")
TINY = dataclasses.replace(
    QUICK,
    measures=MEASURES + MORE,
    n_seeds=2,
    n_members=2,
    hidden=(8,),
    epochs=3,
    n_initial=12,
    batch_size=5,
    iterations=2,
    n_test=40,
)
SMOKE = dataclasses.replace(EXPERIMENT, presets={"tiny": TINY})


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return produce(SMOKE, "tiny", out=tmp_path_factory.mktemp("runs") / "active", progress=False)


def found(outcome: Outcome) -> dict[str, Bundle]:
    return {job.name: Store(outcome.folder / "_work").get(job.artefact) for job in jobs(TINY)}


def test_cells_that_are_the_same_number_for_every_ensemble_share_a_loop() -> None:
    """By algebra: an expected score is linear in the truth; the log score of a Gaussian sees mean and variance of the truth."""
    for rule in ("crps", "log", "squared_error", "quadratic"):
        assert loop_of(f"{rule}.total.members.mixture") == loop_of(f"{rule}.total.members.members")
    assert loop_of("log.total.members.matched") == loop_of("log.total.members.members")
    variance = ("total.members.pooled", "total.mixture.matched", "bayes.mixture", "bayes.matched")
    for group in (variance, ("total.mixture.pooled", "bayes.members", "bayes.pooled")):
        assert len({loop_of(f"squared_error.{each}") for each in group}) == 1
    assert loop_of("squared_error.excess.mixture.matched") == loop_of("random") == "random"
    assert loop_of("squared_error.excess.members.members") != loop_of("squared_error.excess.members.mixture")


def test_loops_that_are_kept_apart_have_different_scores() -> None:
    rng = np.random.default_rng(5)
    ensemble = up.EnsemblePrediction.gaussian(mean=rng.normal(size=(4, 6)), variance=rng.uniform(0.5, 2.0, size=(4, 6)))
    names = [name for name in (*printed(), *not_printed()) if name != "random"]
    table = np.array([up.evaluate(ensemble, names)[name] for name in names])
    apart = np.abs(table[:, None] - table[None]).max(axis=-1) + np.eye(len(names))
    assert apart.min() > 1e-6
    assert np.abs(table).max(axis=1).min() > 1e-6


def test_every_cell_of_the_paper_has_its_loop() -> None:
    """57 numbers from 41 loops; what the paper leaves blank, or fills with another measure, are the others."""
    assert len(published.table(ranks.TABLE)) == 57 + 1
    assert len(columns()) == 64
    assert (len(printed()), len(not_printed())) == (41 + 1, 8)
    assert {loop_of(published.printed_as(name)) for name in published.table(ranks.TABLE)} == set(printed())
    assert {loop_of(name) for name in columns()} | {"random"} == {*printed(), *not_printed()}
    assert set(not_printed()) == {name for name in columns() if name.startswith("log.") and "mixture" in name} - {
        "log.total.members.mixture"
    } | {f"{rule}.excess.members.mixture" for rule in ("crps", "quadratic")}


def learned(seed: int = 0, **changed: Any) -> Learned:
    rng = np.random.default_rng(seed)
    loops = (*printed(), *not_printed())
    nll = rng.normal(size=(3, len(loops), 4, 5)).round(1)  # rounded, so that some tie
    scores = {name: rng.uniform(size=nll.shape[:3]) for name in ("crps", "rmse", "share")}
    return Learned(("a", "b", "c"), loops, len(printed()), nll, **scores, **changed)


@pytest.mark.parametrize("by", list(ERRORS))
def test_average_ranks_are_those_of_scipy(by: str) -> None:
    have = learned()
    found, errors = ranks.ranked(have, by), ERRORS[by](have)
    places = rankdata(errors[:, : have.n_printed], axis=1)
    for i, name in enumerate(printed()):
        assert found.mean[name] == pytest.approx(places[:, i].mean())
        assert found.spread[name] == pytest.approx(places[:, i].mean(axis=0).std(ddof=1))
    for i, name in enumerate(not_printed(), start=have.n_printed):
        joined = np.concatenate([errors[:, : have.n_printed], errors[:, [i]]], axis=1)
        assert found.mean[name] == pytest.approx(rankdata(joined, axis=1)[:, -1].mean())
    assert np.mean([found.mean[name] for name in printed()]) == pytest.approx((have.n_printed + 1) / 2)


def test_the_part_of_runs_won_counts_ties_half() -> None:
    nll = np.array([[[1.0], [2.0], [0.0], [5.0]], [[1.0], [3.0], [1.0], [4.0]]])[None]  # (1, loops, seeds, 1)
    have = Learned(("a",), ("random", "log.bayes.members"), 2, nll, nll[..., 0], nll[..., 0], nll[..., 0])
    assert ranks.runs_won(have) == {"random": 0.5, "log.bayes.members": (0.5 + 0 + 0 + 1) / 4}


def test_repeatability_is_one_if_seeds_agree_and_zero_if_they_have_nothing_in_common() -> None:
    names = [str(i) for i in range(200)]
    same = {name: np.array([i, 2.0 * i, i**2]) for i, name in enumerate(names)}
    assert ranks.repeatability(LoopRanks({}, {}, same), names) == pytest.approx(1.0)
    chance = dict(zip(names, np.random.default_rng(0).normal(size=(200, 3)), strict=True))
    assert abs(ranks.repeatability(LoopRanks({}, {}, chance), names)) < 0.1


def from_cells(cells: dict[str, float], spread: float) -> tuple[Learned, LoopRanks]:
    """Results whose ranks are these, and whose errors are in the same order."""
    have = learned()
    mean = {loop: float(np.mean([cells[name] for name, each in have.cells.items() if each == loop])) for loop in printed()}
    errors = np.array([mean.get(loop, 0.0) for loop in have.loops])
    nll = np.broadcast_to(errors[None, :, None, None], have.nll.shape)
    return dataclasses.replace(have, nll=nll), LoopRanks(mean, dict.fromkeys(mean, spread), {})


def test_the_papers_sentences_hold_for_the_papers_numbers_and_not_for_the_opposite() -> None:
    claims = all_claims(*from_cells(papers(), spread=2.19))
    assert [claim.name for claim in claims if not claim.holds] == []
    numbers, theirs = {claim.name: claim.numbers for claim in claims}, papers()
    assert len(numbers) == 7
    assert numbers["excess risks are best"]["best"] == 12.6
    excess = np.mean([theirs[name] for name in theirs if ".excess." in name])
    assert numbers["excess risks are best"]["excess"] == pytest.approx(excess, abs=0.01)
    assert numbers["most outperform random"] == {"better": 46.0, "cells": 57.0, "random": 20.5}
    assert numbers["exception of the log score"] == {"rank": 21.47, "random": 20.5}
    assert numbers["exceptions of the quadratic score"]["worse"] == 10
    opposite = all_claims(*from_cells({name: -rank for name, rank in theirs.items()}, spread=0.0))
    assert [claim.name for claim in opposite if claim.holds] == []


def test_there_are_no_exceptions_where_nothing_beats_random_and_no_poor_rule_within_the_spread() -> None:
    found = {claim.name: claim for claim in all_claims(*from_cells({**papers(), "random": 1.0}, spread=2.19))}
    for name in ("most outperform random", "exceptions of the quadratic score", "exception of the log score"):
        assert not found[name].holds
    assert "0 of the 46 cells that are no exception" in found["exception of the log score"].measured
    assert found["quadratic total and Bayes are poor"].holds
    for spread, holds in ((13.0, True), (14.0, False)):  # the paper's are 13.3 places behind those of CRPS, the next
        claims = {claim.name: claim.holds for claim in all_claims(*from_cells(papers(), spread))}
        assert claims["quadratic total and Bayes are poor"] == holds


def test_the_folder_has_the_paper_s_table_beside_ours(outcome: Outcome) -> None:
    names = {path.name for path in outcome.folder.iterdir()}
    assert {"result.json", "report.md", "curves.png", "ranks.svg", "arrays.npz"} <= names
    record = json.loads((outcome.folder / "result.json").read_text())
    cells = {row["measure"]: row for row in record["tables"]["Average ranks, ours beside the paper's"]}
    assert cells["log.bayes.pooled"]["paper"] == 21.47
    by_definition = cells["crps.excess.members.mixture"]
    assert by_definition["ours, as printed"] == cells["crps.excess.members.members"]["ours"]
    assert by_definition["difference"] == pytest.approx(by_definition["ours, as printed"] - 17.2)
    assert cells["squared_error.excess.mixture.matched"]["same loop as"] == "random"
    assert record["seeds"] == {"split": 0, "loops": [0, 1]}
    assert [len(digest) for digest in record["data"].values()] == [64]
    first = record["tables"]["What the ranks are made from"][0]
    pairs = [(row["ours, as printed"], papers()[name]) for name, row in cells.items() if row["difference"] is not None]
    assert first["Spearman with the paper"] == pytest.approx(spearmanr(*np.transpose(pairs)).statistic)


def test_a_loop_is_what_an_active_learner_does_alone(outcome: Outcome) -> None:
    """With the same rows and settings, one acquisition and one seed, trained by itself."""
    data = Store(outcome.folder / "_work").get(jobs(TINY)[0].key.rows).arrays
    validation = data["validation_inputs"], data["validation_targets"]
    settings = {"n_members": 2, "network": MLP(hidden=(8,)), "validation": validation, "max_epochs": 3, "progress": False}
    fit = StackedFit(**{**TRAINING, **settings})
    name = "log.excess.members.members"
    learner = up.ActiveLearner(
        fit,
        data["pool_inputs"],
        data["pool_targets"],
        initial=12,
        acquisition=name,
        scores="raw",
        batch_size=5,
        rounds=3,
        test=(data["test_inputs"], data["test_targets"]),
        random_state=1,
    )
    alone = [state.metrics["nll"] for state in learner]
    together = found(outcome)["diabetes"].arrays["nll"][jobs(TINY)[0].key.acquisitions.index(name), 1]
    assert_allclose(together, alone, rtol=1e-4)


def test_all_loops_of_a_seed_start_alike_and_then_part(outcome: Outcome) -> None:
    every = np.concatenate([each.arrays["nll"] for each in found(outcome).values()])  # (loops, seeds, models)
    assert_allclose(every[:, :, 0], np.broadcast_to(every[:1, :, 0], every.shape[:2]), rtol=1e-5)
    assert every[0, 0, 0] != every[0, 1, 0]
    assert len(np.unique(every[:, 0, -1].round(6))) > 1


def test_a_job_that_was_stopped_goes_on_with_the_rounds_that_are_left(
    tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    many = StackedFit.many

    def counted(self: StackedFit, inputs: Any, targets: Any, rows: Any, seeds: Any) -> Any:
        sizes.append(rows.shape[1])
        if len(sizes) == 3:
            raise KeyboardInterrupt
        return many(self, inputs, targets, rows, seeds)

    monkeypatch.setattr(StackedFit, "many", counted)
    job, store = jobs(TINY)[0], Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        work(job, store)
    again = work(job, store)
    assert sizes == [12, 17, 22, 22, 12]  # the last: for the shares
    assert_array_equal(again.arrays["nll"], found(outcome)["diabetes"].arrays["nll"])


def test_rows_are_capped_and_targets_in_units_of_the_pool(tmp_path: Path) -> None:
    config = dataclasses.replace(TINY, n_pool=100, n_validation=20, n_test=30)
    store = Store(tmp_path)
    read_rows(config, store)
    rows = store.get(jobs(config)[0].key.rows)
    assert [len(rows.arrays[f"{part}_targets"]) for part in ("pool", "validation", "test")] == [100, 20, 30]
    assert rows.arrays["pool_targets"].mean() == pytest.approx(0.0, abs=1e-12)
    assert rows.arrays["pool_targets"].std() == pytest.approx(1.0)
    raw = rows.data["mean"] + rows.data["scale"] * rows.arrays["test_targets"]
    assert_allclose(raw, raw.round(), atol=1e-9)  # the data set's targets are whole numbers
    assert rows.arrays["pool_inputs"].dtype == np.float32


def test_the_share_of_the_pool_is_one_for_equal_scores_and_one_point_for_a_single_high_one(outcome: Outcome) -> None:
    assert _share(np.full(50, 1e9)) == pytest.approx(1.0)
    assert _share(np.array([1e4] + [0.0] * 49)) == pytest.approx(1 / 50)
    assert _share(np.log([1.0, 1.0, 2.0])) == pytest.approx(16 / 6 / 3)
    shares = found(outcome)["diabetes"].arrays["share"]
    assert_allclose(shares[jobs(TINY)[0].key.acquisitions.index("random")], 1.0)
    assert np.all((shares > 0) & (shares <= 1 + 1e-12))


def test_a_loop_does_not_depend_on_which_others_there_are() -> None:
    keys = {job.name: job.key for job in jobs(Config())}
    assert keys["ccpp"] == Loops("ccpp", printed(), Config(datasets=()))
    assert jobs(Config(datasets=("ccpp",)))[0].artefact.digest == jobs(Config())[0].artefact.digest
    assert list(keys) == [f"{name}{ending}" for name in Config().datasets for ending in ("", ", not in the paper")]


def test_another_way_to_take_scores_is_another_preset() -> None:
    """And of the same loops, but for those of cells that the paper leaves blank."""
    paper, standardised = EXPERIMENT.config("paper"), EXPERIMENT.config("standardised")
    assert standardised == dataclasses.replace(paper, scores="standardised", measures=standardised.measures)
    assert [job.key.acquisitions for job in jobs(standardised)] == [printed()] * len(paper.datasets)
    with pytest.raises(UnknownNameError, match="preset"):
        EXPERIMENT.config("standardized")


def test_standardised_scores_decide_what_is_picked(tmp_path: Path, outcome: Outcome) -> None:
    job = jobs(dataclasses.replace(TINY, scores="standardised", iterations=1))[0]
    nll, raw = work(job, Store(tmp_path)).arrays["nll"], found(outcome)["diabetes"].arrays["nll"]
    assert_array_equal(nll[..., 0], raw[..., 0])
    assert (nll[:-1, :, 1] != raw[:-1, :, 1]).any()
    assert_array_equal(nll[-1, :, 1], raw[-1, :, 1])  # random picks know no scores

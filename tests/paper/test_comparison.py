"""Our numbers beside the paper's: by definition, as the paper printed them, over seeds, and how well they agree."""

from __future__ import annotations

import numpy as np
import pytest

from tests.paper.experiments.test_images import changed, papers
from uqprism.errors import ArgumentError
from uqprism.measures import published
from uqprism.measures.published import Cell
from uqprism.paper.comparison import AS_PRINTED, Cells, agreement, agreements, beside, comparison, wide


def test_a_comparison_is_by_definition_and_like_with_like() -> None:
    ours = {"log.excess.members.members": 0.8, "log.excess.members.mixture": 0.7, "log.bayes.mixture": 0.6, "random": 0.5}
    bayes, first, second, random = comparison(ours, published.table("ood_detection_mean"))
    assert (first["label"], first["ours"], first["ours, as printed"], first["paper"]) == ("R_exc^{1,1}", 0.8, 0.8, 0.827)
    assert (second["ours"], second["ours, as printed"], second["paper"]) == (0.7, 0.8, 0.827)
    assert second["difference"] == pytest.approx(-0.027)
    assert (bayes["label"], bayes["paper"], bayes["difference"]) == ("R_Bayes^{2}", None, None)
    assert random["label"] == "random"


def test_agreement_is_perfect_with_oneself_and_counts_differences() -> None:
    theirs = published.table("ood_detection_mean")
    same = agreement({name: cell.value for name, cell in theirs.items()}, theirs)
    assert (same.n_measures, same.spearman, same.mean_absolute_difference) == (57, pytest.approx(1.0), 0.0)
    cells = {"crps.bayes.members": Cell(1.0, 0.0), "crps.bayes.matched": Cell(2.0, 0.0), "crps.bayes.pooled": Cell(4.0, 0.0)}
    turned = agreement({"crps.bayes.members": 3.0, "crps.bayes.matched": 2.5, "crps.bayes.pooled": 1.0}, cells)
    assert turned.spearman == pytest.approx(-1.0)
    assert turned.mean_absolute_difference == pytest.approx((2.0 + 0.5 + 3.0) / 3)
    assert turned.largest_difference == 3.0
    assert "-1.000" in str(turned)
    with pytest.raises(ArgumentError, match="at least two measures"):
        agreement({"crps.bayes.members": 3.0}, cells)


def test_a_table_agrees_with_itself_and_prints_like_with_like() -> None:
    mean = changed(papers("ood_detection_mean"), log__excess__members__mixture=0.1)
    found = agreements({"mean": mean}, {"mean": published.table("ood_detection_mean")})["mean"]
    assert found.spearman == pytest.approx(1.0)
    assert found.largest_difference == 0.0
    assert found.n_measures == 57
    rows = {each["measure"]: each for each in beside(mean, published.table("ood_detection_mean"))}
    printed = rows["log.excess.members.mixture"]
    assert (printed["ours"], printed["ours, as printed"], printed["paper"]) == (0.1, 0.827, 0.827)
    ours, _, theirs = wide("mean", mean, published.table("ood_detection_mean"))[3:6]
    assert (ours["rule"], ours["numbers"], theirs["numbers"]) == ("log", "ours", "paper")
    assert (ours["R_exc^{2,1}"], ours[AS_PRINTED], theirs["R_exc^{2,1}"], theirs[AS_PRINTED]) == (0.1, 0.827, None, 0.827)


def test_spreads_are_over_seeds_and_shrink_in_a_mean_of_rows() -> None:
    rows = [Cells.over_seeds([{"a": 1.0}, {"a": 3.0}]), Cells.over_seeds([{"a": 5.0}, {"a": 5.0}])]
    assert (rows[0]["a"], rows[0].spread["a"]) == (2.0, pytest.approx(np.sqrt(2.0)))
    mean = Cells.average(rows)
    assert (mean["a"], mean.spread["a"]) == (3.5, pytest.approx(np.sqrt(2.0) / 2.0))
    assert np.isnan(Cells.over_seeds([{"a": 1.0}]).spread["a"])

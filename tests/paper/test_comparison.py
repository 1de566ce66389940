"""Our numbers beside the paper's: by definition, and as the paper printed them."""

from __future__ import annotations

import pytest

from uqprism.errors import ArgumentError
from uqprism.measures import published
from uqprism.measures.published import Cell
from uqprism.paper.comparison import agreement, comparison


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

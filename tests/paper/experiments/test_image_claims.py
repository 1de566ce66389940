"""The claims of the image experiments on the paper's own numbers, and on numbers that must fail them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from uqprism.measures import published
from uqprism.paper.comparison import Cells, column
from uqprism.paper.experiments import correlation, ood
from uqprism.paper.experiments.ood import claims as ood_claims
from uqprism.paper.experiments.selective import claims as selective_claims
from uqprism.tasks.rank_correlation import RankCorrelation

BLANK = {"auroc": 0.5, "prr": 1.0}


def papers(name: str, row: str | None = None, blank: float = 0.5) -> Cells:
    """The paper's table as if it were ours, with a number in its blank cells."""
    table = published.table(name, row)
    names = [measure.name for measure in published.measures()]
    return Cells(
        {each: table[each].value if each in table else blank for each in names},
        {each: table[each].spread if each in table else 0.0 for each in names},
    )


def papers_rows() -> ood_claims.Aurocs:
    names = published.rows("ood_detection_full")
    rows = {row: papers("ood_detection_full", row) for row in names}
    return ood_claims.Aurocs(papers("ood_detection_mean"), rows, tuple(names[:4]), tuple(names[4:]))


def changed(cells: Cells, **values: float) -> Cells:
    return dataclasses.replace(cells, value={**cells.value, **{name.replace("__", "."): x for name, x in values.items()}})


def test_every_sentence_holds_for_the_numbers_it_was_written_from() -> None:
    """The thresholds are ours; on the paper's own tables they must say what the paper says."""
    assert [claim.name for claim in ood_claims.all_claims(papers_rows()) if not claim.holds] == []
    mean = papers("selective_prediction_mean", blank=1.0)
    assert [claim.name for claim in selective_claims.all_claims(mean) if not claim.holds] == []


def test_the_names_of_our_ood_mosaics_are_the_rows_of_the_paper() -> None:
    assert [ood.PAPER_ROWS[name] for name in ood.Config().ood_names()] == published.rows("ood_detection_full")


def test_mosaics_that_are_detected_by_noise_deny_that_excess_suits_best() -> None:
    mean = changed(papers("ood_detection_mean"), crps__bayes__members=0.9)
    assert not ood_claims.excess_is_best(mean).holds
    claim = ood_claims.pairwise_excess(mean)
    assert not claim.holds
    assert claim.numbers["behind_crps"] == pytest.approx(0.9 - 0.825)


def test_places_in_another_order_deny_the_significance_but_not_the_first_place() -> None:
    ours = papers_rows()
    rows = dict(ours.rows)
    rows["EMNIST (tr)"], rows["EMNIST (br)"] = rows["EMNIST (br)"], rows["EMNIST (tr)"]
    swapped = dataclasses.replace(ours, rows=rows)
    assert ood_claims.upper_left(swapped).holds
    assert not ood_claims.by_significance(swapped).holds


def test_house_numbers_that_pass_as_digits_deny_both_sentences_on_sources() -> None:
    ours = papers_rows()
    hidden = changed(ours.rows["SVHN"], log__excess__members__members=0.7)
    worse = dataclasses.replace(ours, rows={**ours.rows, "SVHN": hidden})
    assert not ood_claims.similar_sources(worse).holds
    assert not ood_claims.house_numbers(worse).holds


@pytest.mark.parametrize(
    ("measure", "value", "denied"),
    [
        ("squared_error__excess__members__members", 0.2, {"squared_excess", "best_totals", "overall_best", "among_the_best"}),
        ("quadratic__excess__mixture__pooled", 0.39, {"poor_excess"}),
        ("log__excess__members__members", 0.33, {"log_excess"}),
        ("log__total__members__members", 0.4, {"best_totals", "among_the_best"}),
    ],
)
def test_one_number_denies_the_sentences_that_are_about_it(measure: str, value: float, denied: set[str]) -> None:
    mean = changed(papers("selective_prediction_mean", blank=1.0), **{measure: value})
    functions = (
        "total_does_well",
        "best_totals",
        "squared_excess",
        "poor_excess",
        "log_excess",
        "overall_best",
        "among_the_best",
    )
    assert {name for name in functions if not getattr(selective_claims, name)(mean).holds} == denied


def correlation_of(pairs: dict[tuple[str, str], float], otherwise: float = 1.0) -> RankCorrelation:
    names = tuple(measure.name for measure in published.measures())
    matrix = np.full((len(names), len(names)), otherwise)
    np.fill_diagonal(matrix, 1.0)
    for (one, other), tau in pairs.items():
        i, j = names.index(one), names.index(other)
        matrix[i, j] = matrix[j, i] = tau
    return RankCorrelation(names, matrix)


def test_correlations_deny_what_they_are_about() -> None:
    slip = {(column("log", "excess 1,1"), column("log", "excess 2,1")): 0.95}
    varied = (column("crps", "excess 3a,1"), column("quadratic", "excess 3a,1"))
    mean = correlation_of({varied: 0.3, **slip})
    claims = {claim.name: claim for claim in correlation.all_claims(mean)}
    denied = [name for name, claim in claims.items() if not claim.holds]
    assert denied == ["R_exc^{1,1} and R_exc^{2,1}"]
    assert claims[denied[0]].numbers == {"crps": 1.0, "log": 0.95, "squared_error": 1.0, "quadratic": 1.0}
    mean = correlation_of({(column("crps", "bayes 1"), column("crps", "bayes 3b")): 0.5})
    denied = [claim.name for claim in correlation.all_claims(mean) if not claim.holds]
    assert denied == ["R_Bayes^{1} and R_Bayes^{3b}", "only excess risks vary"]


def test_the_log_score_counts_only_where_the_paper_could_compute_it() -> None:
    measure = "total 3a,2"
    mean = correlation_of({(column("log", measure), column("crps", measure)): 0.5})
    claim = correlation.all_claims(mean)[5]
    assert claim.holds
    assert "by our integrals: 0.5000" in claim.measured
    assert not correlation.all_claims(correlation_of({(column("quadratic", measure), column("crps", measure)): 0.5}))[5].holds


def test_what_is_within_the_spread_of_the_best_is_among_the_best() -> None:
    """As the paper prints in bold; with one seed there is no spread, and the paper's own takes its place."""
    mean = papers("selective_prediction_mean", blank=1.0)
    behind = changed(mean, crps__bayes__members=0.30)  # now the best, 0.018 ahead of R_tot^{1,1}
    for spread, holds in ((0.03, True), (0.01, False), (np.nan, False)):
        cells = dataclasses.replace(behind, spread=dict.fromkeys(behind.spread, spread))
        assert selective_claims.best_totals(cells).holds == holds
        assert not selective_claims.overall_best(cells).holds
    near = dataclasses.replace(mean, spread=dict.fromkeys(mean.spread, np.nan))
    assert selective_claims.best_totals(near).holds

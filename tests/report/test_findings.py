"""The numbers of a report are those of the functions that compute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uqprism as up
from tests.report.pages import KNOWN, OOD, PAIR, RESAMPLES, TOTAL, Y, plain
from tests.tasks.problems import ensemble
from uqprism.errors import InvalidValueError
from uqprism.plots.words import UNNAMED
from uqprism.report.findings import Parts, RealisedPenalty, find
from uqprism.report.page import Report
from uqprism.report.readers import read_subject
from uqprism.report.subject import MeasurePair, Rows
from uqprism.tasks import ood_detection, prediction_error, rank_correlation, selective_prediction


def parts(bayes, excess, *, rule: str = "crps", unit: str = "min", n_members: int | None = 10) -> Parts:
    """The parts of rows with the numbers 100, 101 and so on."""
    pair = MeasurePair.of(rule)
    columns = {pair.bayes: np.asarray(bayes, float), pair.excess: np.asarray(excess, float)}
    return Parts.of(Rows(columns, pair, 100 + np.arange(len(bayes))), unit=unit, n_members=n_members)


def test_the_numbers_are_those_of_the_functions(written: Report) -> None:
    found, d, error = written.findings, up.decompose(KNOWN), prediction_error(KNOWN, Y)
    assert (found.parts.bayes, found.parts.excess) == pytest.approx((d.aleatoric.mean(), d.epistemic.mean()))
    for name, other in OOD.items():
        assert found.ood[name].excess == pytest.approx(up.decompose(other).epistemic.mean())
    table = up.evaluate(KNOWN, list(found.results["selective_prediction"]))
    selective = selective_prediction(table, error=error, resamples=RESAMPLES)
    assert found.results["selective_prediction"].rows() == selective.rows()
    others = {name: up.evaluate(other, list(table)) for name, other in OOD.items()}
    assert found.results["ood_detection"].rows() == ood_detection(table, others, resamples=RESAMPLES).rows()
    np.testing.assert_array_equal(found.results["rank_correlation"].matrix, rank_correlation(table).matrix)
    np.testing.assert_array_equal(found.calibration.pit, up.calibration(KNOWN, Y).pit)
    chosen = up.select_measure(table, error=error, resamples=RESAMPLES)
    assert found.choices["selective_prediction"].measure == chosen.measure
    assert found.tenth.threshold == up.flag(up.evaluate(KNOWN, [TOTAL])).threshold
    assert found.collect == np.argsort(-d.epistemic)[:3].tolist()


def test_the_penalty_of_the_average_is_expected_and_realised(written: Report) -> None:
    average, one = (up.decompose(KNOWN, prediction=role).total.mean() for role in ("mixture", "members"))
    assert written.findings.average == written.findings.realised.expected == pytest.approx(average)
    assert average < one
    assert written.findings.realised.realised == pytest.approx(prediction_error(KNOWN, Y, "crps").mean())


def test_the_penalty_of_the_average_is_read_or_unknown() -> None:
    table, few = up.evaluate(ensemble(60)[0]), ["log.bayes.members", "log.excess.members.members"]
    found = find(read_subject(table, rule="log"), resamples=0, seed=0)
    assert found.average == pytest.approx(table["log.total.mixture.members"].mean())
    assert find(read_subject({name: table[name] for name in few}, rule="log"), resamples=0, seed=0).average is None


def test_chance_is_twice_the_standard_error() -> None:
    rng, expected = np.random.default_rng(0), np.full(400, 0.25)
    for shift in (0.0, 0.2, -0.2):
        difference = shift + rng.normal(scale=0.3, size=400)
        found = RealisedPenalty.of(expected, expected + difference)
        assert found.error == pytest.approx(difference.std(ddof=1) / 20.0)
        assert found.beyond_chance == (shift != 0.0)


def test_half_of_the_disagreement_is_in_the_fewest_rows() -> None:
    d = up.decompose(ensemble(200)[0])
    found, largest = parts(d.aleatoric, d.epistemic), np.sort(d.epistemic)[::-1]
    assert largest[: found.half].sum() >= 0.5 * d.epistemic.sum() > largest[: found.half - 1].sum()
    assert found.mostly_excess == (d.epistemic > d.aleatoric).sum()
    assert (found.noisiest, found.least_known) == (f"row {100 + np.argmax(d.aleatoric)}", f"row {100 + np.argmax(d.epistemic)}")


def test_models_agree_and_rows_share_the_largest_value_up_to_rounding() -> None:
    assert parts([3.0, 1.0, 3.0 + 1e-15], [1.0, 2.0, 2.0]).as_extreme == (2, 2)
    assert parts([1.0, 2.0], [1e-17, 0.0]).agree
    assert not parts([1.0, 2.0], [1e-6, 0.0]).agree


@pytest.mark.parametrize(
    ("rule", "least", "expected"),
    [
        *((rule, 0.25, True) for rule in ("crps", "gaussian_kernel", "quantile", "bregman", "mine")),
        *(("quadratic", 1.0, False), ("log", 1.0, False), ("log", -2.0, False), ("mine", -1.0, False)),
    ],
)
def test_parts_are_shares_where_zero_is_the_least(rule: str, least: float, expected: bool) -> None:
    assert parts([2.0, least], [0.5, 0.1], rule=rule).has_shares == expected


def test_units_follow_the_rule() -> None:
    for unit, inverse in {"min": "1/min", "$": "per $"}.items():
        rules = ("crps", "squared_error", "log", "quadratic")
        units = {rule: parts([1.0], [1.0], rule=rule, unit=unit).shown_unit for rule in rules}
        assert units == {"crps": unit, "squared_error": unit, "log": "nats", "quadratic": inverse}


def test_squares_are_shown_as_roots() -> None:
    found = parts([9.0], [16.0], rule="squared_error")
    assert [found.shown(risk) for risk in (found.bayes, found.excess, found.total)] == [3.0, 4.0, 5.0]
    assert found.shares == pytest.approx((0.36, 0.64))


def test_means_of_very_large_numbers_are_finite() -> None:
    found = parts([8e307, 8e307, 8e307], [8e307, 4e307, 1.0])
    assert (found.bayes, found.excess) == pytest.approx((8e307, 4e307))
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.half == 1


@pytest.mark.parametrize("rule", ["crps", "squared_error", "log"])
def test_the_largest_variance_that_is_taken_has_a_page(rule: str, tmp_path: Path) -> None:
    mean, variance = np.random.default_rng(0).normal(size=(5, 40)), np.ones((5, 40))
    variance[2, 3] = 1e308
    with pytest.raises(InvalidValueError, match=r"variance must lie between .* got 1e\+308 in entry 83"):
        up.EnsemblePrediction.gaussian(mean=mean, variance=variance)
    variance[2, 3] = 1e306
    ens = up.EnsemblePrediction.gaussian(mean=mean, variance=variance)
    found = up.write_report(ens, tmp_path / "page", rule=rule, unit="$", resamples=0).findings
    assert not found.parts.agree
    assert found.first[0] == 3


def test_a_threshold_that_misses_unfamiliar_rows_is_found() -> None:
    rng = np.random.default_rng(0)

    def rows(bayes: float, excess: float) -> dict[str, np.ndarray]:
        both = [bayes + 0.1 * rng.random(50), excess + 0.1 * rng.random(50)]
        return dict(zip((*PAIR, TOTAL), [*both, sum(both)], strict=True))

    (missed,) = find(read_subject(rows(5.0, 0.0), ood=rows(1.0, 1.0)), resamples=0, seed=0).missed
    assert (missed.name, missed.by, missed.caught) == (UNNAMED, TOTAL, 0.0)
    assert (missed.instead, missed.caught_instead) == (PAIR[1], 1.0)


def test_the_report_says_what_a_wrong_calibration_and_ties_mean(made) -> None:
    wide, _ = made(KNOWN, target=KNOWN.mixture.mean + 3.0 * (Y - KNOWN.mixture.mean))
    assert wide.findings.calibration.verdict(0.9) == "too narrow"
    assert wide.advice[-1].do.startswith("Widen the intervals")
    noise = np.repeat([1.0, 2.0], [54, 46])
    columns = dict(zip((*PAIR, TOTAL), (noise, 0.1 * noise, 1.1 * noise), strict=True))
    tied, _ = made(columns, error=noise + np.arange(100.0) % 3)
    assert (tied.findings.tenth.share, tied.findings.tenth.tied) == (0.46, True)
    assert "46 %" in plain(tied.sentences["errors"])

"""The shifts of a posterior: exact numbers, and claims that follow them."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from uqprism.measures import published
from uqprism.paper.experiment import Claim
from uqprism.paper.experiments.shifts import EXPERIMENT, POSTERIORS, claims
from uqprism.paper.experiments.shifts.claims import FILLED, SHIFTS, Answers
from uqprism.paper.runner import Outcome, produce


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return produce(EXPERIMENT, "quick", out=tmp_path_factory.mktemp("runs") / "shifts")


@pytest.fixture(scope="module")
def answers(outcome: Outcome) -> Answers:
    return Answers({name: values for name, values in outcome.result.arrays.items() if name != "posteriors"})


def uniform_mean(function: Callable[[float], float], interval: tuple[float, float]) -> float:
    return quad(function, *interval, epsabs=0, epsrel=1e-12)[0] / (interval[1] - interval[0])


def triangular(interval: tuple[float, float]) -> Callable[[float], float]:
    """The density of the difference of two draws."""
    width = interval[1] - interval[0]
    return lambda x: (width - abs(x)) / width**2


@pytest.mark.parametrize("place", range(5))
def test_bayes_risks_of_members_are_integrals_over_the_variance(answers: Answers, place: int) -> None:
    variance = list(POSTERIORS.values())[place].variance
    expected = {
        "crps": uniform_mean(lambda v: np.sqrt(v / np.pi), variance),
        "log": uniform_mean(lambda v: 0.5 * np.log(2 * np.pi * np.e * v), variance),
        "quadratic": uniform_mean(lambda v: -0.5 / np.sqrt(np.pi * v), variance),
        "squared_error": sum(variance) / 2,
    }
    for rule, value in expected.items():
        assert answers.values[f"{rule}.bayes.members"][place] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("place", [0, 3])
def test_total_crps_of_members_is_an_integral_over_pairs(answers: Answers, place: int) -> None:
    """E|X - Y| of draws of two members less half that of one; their means differ by, their variances add up to, a triangular."""
    mean, variance = (getattr(list(POSTERIORS.values())[place], name) for name in ("mean", "variance"))
    gap, width = mean[1] - mean[0], variance[1] - variance[0]

    def absolute_difference(d: float, v: float) -> float:
        from scipy.special import erf

        return np.sqrt(2 * v / np.pi) * np.exp(-(d**2) / (2 * v)) + d * erf(d / np.sqrt(2 * v))

    def integrand(d: float, sum_of_two: float) -> float:
        density = triangular(variance)(sum_of_two - 2 * variance[0] - width)
        return 2.0 * triangular(mean)(d) * density * absolute_difference(d, sum_of_two)

    middle = 2 * variance[0] + width
    pairs = sum(dblquad(integrand, low, low + width, 0.0, gap, epsrel=1e-9)[0] for low in (middle - width, middle))
    expected = pairs - uniform_mean(lambda v: np.sqrt(v / np.pi), variance)
    assert answers.values["crps.total.members.members"][place] == pytest.approx(expected, rel=1e-6)


def test_squared_error_is_known_in_closed_form(answers: Answers) -> None:
    spread = np.array([1, 1, 1, 4, 1]) / 3.0  # variance of the means
    noise = np.array([1.5, 1.5, 2.5, 1.5, 1.5])
    np.testing.assert_allclose(answers.values["squared_error.excess.members.members"], 2 * spread, rtol=1e-12)
    np.testing.assert_allclose(answers.values["squared_error.bayes.matched"], noise + spread, rtol=1e-12)
    np.testing.assert_allclose(answers.values["squared_error.total.mixture.pooled"], noise, rtol=1e-12)


def test_all_measures_are_in_the_table_and_two_sentences_fail(outcome: Outcome, answers: Answers) -> None:
    assert EXPERIMENT.config("quick", seed=3) == EXPERIMENT.presets["quick"]  # nothing is drawn
    false = [claim.name for claim in outcome.result.claims if not claim.holds]
    assert false == ["variances move: excess 3a,2 stays", "variances spread: as expected"]
    for rule, fall in (("crps", -0.743), ("quadratic", -0.821)):
        assert answers.change(f"{rule}.excess.mixture.matched", "variances move") == pytest.approx(fall, abs=1e-3)
    record = json.loads((outcome.folder / "result.json").read_text())
    rows = record["tables"]["Relative change of every measure"]
    assert len(rows) == 144
    assert [rows[0]["measure"], rows[0]["label"]] == ["crps.total.members.members", "R_tot^{1,1}"]
    changes = [rows[0][shift] for shift in ("original", *SHIFTS)]
    np.testing.assert_allclose(changes, [0.8391, 0.0, 0.2016, 0.4566, 0.0042], atol=1e-4)
    assert "no number differs by more than" in record["notes"][0]


def flat() -> dict[str, np.ndarray]:
    """Measures that answer to nothing."""
    return {measure.name: np.ones(5) for measure in FILLED} | {
        f"{rule}.{kind}": np.full(5, 0.0 if rule == "squared_error" else 1e-3)
        for rule in published.RULES.values()
        for kind in claims.TINY
    }


@pytest.mark.parametrize(
    ("judge", "measure", "shift", "factor"),
    [
        (claims.nothing_changes, "log.bayes.matched", "means move", 1.02),
        (claims.excess_falls_or_stays, "crps.excess.members.pooled", "variances move", 1.02),
        (claims.tiny_excess_stays, "quadratic.excess.mixture.matched", "variances move", 0.98),
        (claims.squared_error_stays, "squared_error.excess.members.mixture", "variances move", 0.98),
        (claims.invariant_to_spread, "squared_error.total.mixture.pooled", "means spread", 1.02),
        (claims.low_magnitudes, "crps.excess.mixture.pooled", "variances spread", 200.0),
        (claims.low_magnitudes, "log.bayes.members", "means spread", 1e-3),
    ],
)
def test_one_number_turns_a_claim(judge: Callable[[Answers], Claim], measure: str, shift: str, factor: float) -> None:
    values = flat()
    values["crps.excess.members.members"][2] = 0.5  # something falls
    assert judge(Answers(values)).holds
    values[measure][1 + SHIFTS.index(shift)] *= factor
    assert not judge(Answers(values)).holds


@pytest.mark.parametrize("judge", [claims.noise_rises, claims.others_rise, claims.variance_spread, claims.most_by_spread])
def test_what_should_rise_and_does_not_is_false(judge: Callable[[Answers], Claim]) -> None:
    assert not judge(Answers(flat())).holds


def test_the_figure_shows_every_column_of_the_paper(outcome: Outcome) -> None:
    (picture,) = EXPERIMENT.draw(outcome.result).values()
    bars = picture.figure.axes[5].patches
    assert len(bars) == 62  # of 64, two are always zero
    spread = dict(zip([measure.name for measure in published.measures(("crps",))], bars[:16], strict=True))
    assert spread["crps.total.members.members"].get_height() == pytest.approx(0.4566, abs=1e-4)

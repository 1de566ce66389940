"""The sentences of a report are right whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from tests.tasks.problems import ensemble
from uqprism.measures.vocabulary import measure_in_words
from uqprism.plots.words import ErrorWords
from uqprism.report import sentences
from uqprism.report.happened import Happened, as_expected
from uqprism.report.sentences import Parts
from uqprism.report.words import count, number, numbers, percent
from uqprism.tasks import Calibration, TaskResult, ood_detection, selective_prediction

MEASURE = "crps.total.members.members"


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def parts(noise, removable, **how) -> Parts:
    given = {"rule": "crps", "unit": "min", "n_members": 10, **how}
    return Parts.of(np.asarray(noise, float), np.asarray(removable, float), 100 + np.arange(len(noise)), **given)


def test_the_split_names_amounts_shares_and_units() -> None:
    found = parts([1.0, 2.0, 3.0], [0.0, 1.0, 5.0])
    told = plain(sentences.overall(found))
    assert told.startswith("Over 3 rows the models expect a penalty (CRPS) of 4 min on average: 2 min of it (50 %) is noise")
    assert "and 2 min (50 %) is disagreement between 10 models, which more data like these rows would remove." in told
    assert plain(sentences.rows_of_each_kind(found)) == (
        "In 1 row (33 %) more data would remove the larger part of the uncertainty; in the other 2 noise is the larger part. "
        "Half of all that more data would remove lies in 1 row (33 %)."
    )
    assert plain(sentences.rows_to_look_at(found)).startswith(
        "More data would help most at rows like row 102 (removable part 5 min); the noisiest is row 102 (noise 3 min)."
    )


def test_one_model_cannot_disagree() -> None:
    found = parts([1.0, 2.0], [0.0, 0.0], n_members=1)
    told = sentences.overall(found)
    assert plain(told).startswith("Over 2 rows the model expects a penalty (CRPS) of 1.5 min on average, all of it noise")
    assert "takes several models" in told
    assert "%" not in told
    assert sentences.rows_of_each_kind(found) == ""
    assert plain(sentences.rows_to_look_at(found)) == "The noisiest is row 101 (noise 2 min)."


def test_copies_of_a_model_agree_up_to_rounding() -> None:
    found = parts([1.0, 2.0], [1e-17, 0.0])
    assert "they agree everywhere" in sentences.overall(found)
    assert "copies of each other" in sentences.overall(found)
    assert sentences.rows_of_each_kind(found) == ""


@pytest.mark.parametrize("rule", ["quadratic", "log"])
def test_rules_without_a_natural_zero_have_no_shares(rule: str) -> None:
    for noise in ([-2.0, -1.0], [2.0, 1.0]):
        told = plain(sentences.overall(parts(noise, [0.5, 0.1], rule=rule)))
        assert "%" not in told
        assert "no shares of a whole" in told
    kinds = plain(sentences.rows_of_each_kind(parts([-2.0, -1.0], [0.5, 0.1], rule=rule)))
    assert kinds == "Half of all that more data would remove lies in 1 row (50 %)."


def test_rules_that_are_never_negative_have_shares_where_no_row_is() -> None:
    """Also rules that are not the paper's; one of somebody's own may be negative in some rows."""
    for rule in ("gaussian_kernel", "quantile", "bregman", "mine"):
        told = plain(sentences.overall(parts([0.25, 0.25], [0.25, 0.75], rule=rule)))
        assert "(33 %) is noise" in told
    assert "The mine score is negative in some rows, so these" in sentences.overall(parts([2.0, -1.0], [0.5, 0.1], rule="mine"))


def test_the_penalty_is_that_of_one_model_and_the_average_costs_less() -> None:
    found = parts([1.0, 2.0, 3.0], [0.0, 1.0, 5.0])
    told = plain(sentences.penalty(found, "members", 2.75, intervals=True))
    assert told.startswith("The penalty is the CRPS, in min: the continuous ranked probability score")
    assert "expected of predicting with one of the models, picked at random; predicting with their average costs less, " in told
    assert "costs less, 2.75 min in place of 4 min. The intervals shown are those of the average" in told
    assert "costs less. " not in sentences.penalty(found, "members", None, intervals=False)
    assert sentences.penalty(found, "members", None, intervals=False).endswith("their average costs less.")
    assert sentences.penalty(found, "mixture", None, intervals=False).endswith("predicting with the average of all models.")
    alone = sentences.penalty(parts([1.0], [0.0], n_members=1, rule="log"), "members", None, intervals=False)
    assert alone.endswith("Lower is better.")
    assert "in nats" in alone


def test_units_follow_the_rule() -> None:
    units = {rule: parts([1.0], [1.0], rule=rule).risk_unit for rule in ("crps", "squared_error", "log", "quadratic")}
    assert units == {"crps": "min", "squared_error": "min²", "log": "nats", "quadratic": "1/min"}


def test_every_row_may_be_of_one_kind() -> None:
    assert sentences.rows_of_each_kind(parts([1.0, 1.0], [0.1, 0.1])).startswith("Noise is the larger part in every row.")
    assert sentences.rows_of_each_kind(parts([0.1, 0.1], [1.0, 1.0])).startswith("What more data would remove is the larger")


def test_a_single_row_and_an_unknown_number_of_models() -> None:
    found = parts([1.0], [3.0], n_members=None, unit="")
    assert plain(sentences.overall(found)) == (
        "In the only row the models expect a penalty (CRPS) of 4: 1 of it (25 %) is noise, which more data would not remove, "
        "and 3 (75 %) is disagreement between the models, which more data like these rows would remove."
    )
    assert sentences.rows_to_look_at(found) == sentences.rows_of_each_kind(found) == ""


def selective(error, doubt) -> TaskResult:
    return selective_prediction({MEASURE: np.asarray(doubt, float)}, error=np.asarray(error, float), resamples=0)


def test_handing_over_a_tenth_is_what_the_task_says() -> None:
    result = selective(np.arange(20.0) ** 2, np.arange(20.0))
    told = plain(sentences.handing_over(result, MEASURE, ErrorWords.of("squared", "min")))
    before, after = np.sqrt(np.mean(np.arange(20.0) ** 2)), np.sqrt(np.mean(np.arange(18.0) ** 2))
    assert told.startswith(
        f"The root mean squared error is {before:.3g} min. Handing over the 10 % most uncertain rows "
        "(by total uncertainty, CRPS) lowers it to"
    )
    assert f"{after:.3g} min, {100 * (1 - after / before):.0f} % less" in told.replace(".0 ", " ")


def test_uncertainty_that_finds_no_errors_is_called_so() -> None:
    told = sentences.handing_over(selective(np.arange(20.0), -np.arange(20.0)), MEASURE, ErrorWords.of("absolute"))
    assert "does not tell where errors are large" in told
    assert "lowers" not in told


def test_an_error_that_vanishes_or_is_negative_has_no_percentage() -> None:
    zero = plain(sentences.handing_over(selective([0.0] * 9 + [1.0], range(10)), MEASURE, ErrorWords.of("absolute")))
    assert "lowers it to 0;" in zero
    below = plain(sentences.handing_over(selective([-1.0] * 18 + [4.0, 4.0], range(20)), MEASURE, ErrorWords.of("nll")))
    assert "negative log-likelihood is \u22120.5 nats" in below
    assert "lowers it to \u22121 nats;" in below


def test_few_rows_have_no_tenth() -> None:
    told = sentences.handing_over(selective(range(9), range(9)), MEASURE, ErrorWords.of("squared"))
    assert plain(told).endswith("With 9 rows there is no tenth to hand over.")


@pytest.mark.parametrize(
    ("pit", "words"),
    [
        (np.linspace(0.4, 0.6, 200), "hold 100.0 % (chance alone: 85.5 % to 94.0 %): too wide, the predictions are less sure"),
        (np.linspace(0.0, 1.0, 201), "about right, as promised"),
        (np.repeat([0.0, 1.0], 50), "hold 0.0 % (chance alone: 84.0 % to 95.0 %): too narrow, the predictions are surer"),
    ],
)
def test_calibration_in_words(pit: np.ndarray, words: str) -> None:
    assert words in plain(sentences.calibrated(Calibration(pit)))


def test_detection_names_each_data_set() -> None:
    known, near, far = ({MEASURE: np.arange(20.0) + shift} for shift in (0.0, 1.0, 100.0))
    told = plain(sentences.detected(ood_detection(known, {"near": near, "far": far}, resamples=0), MEASURE))
    assert told.startswith(
        "A row from “near” (20 rows) looks more uncertain than a known one 55 % of the time (AUROC 0.549), one from "
    )
    assert "“far” (20 rows) 100 % of the time (AUROC 1.000)." in told
    one = plain(sentences.detected(ood_detection(known, near, resamples=50), MEASURE, "elsewhere"))
    assert one.startswith("A row from “elsewhere” (20 rows) looks more uncertain")
    assert "95 % interval 0." in one
    assert one.endswith(
        "That is judged by the total uncertainty, CRPS; a coin toss would give 50 %. So rows from “elsewhere” are not noticed."
    )
    below = ood_detection(known, {MEASURE: np.arange(20.0) - 15.0}, resamples=50)
    assert "So rows from outside look more certain than known rows" in sentences.detected(below, MEASURE)


def test_numbers_are_short_and_never_rounded_to_all_or_nothing() -> None:
    shown = {
        0.0: "0",
        12345.6: "12,346",
        0.00576: "0.00576",
        1e-7: "1.0\u00d710⁻⁷",
        999.6: "1,000",
        -2.5: "\u22122.5",
        np.inf: "infinite",
    }
    assert {value: number(value) for value in shown} == shown
    shares = {0.0: "0 %", 1.0: "100 %", 1e-5: "less than 0.1 %", 0.9999: "more than 99.9 %", 0.0421: "4.2 %", 0.997: "99.7 %"}
    assert {share: plain(percent(share)) for share in shares} == shares
    assert plain(percent(0.0996)) == "10 %"
    assert [plain(count(n, "row")) for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.4, 0.401, -0.25], ["0.400", "0.401", "\u22120.250"]),
        ([-1.43, 1.0, 0.997], ["\u22121.43", "1.00", "1.00"]),
        ([0.0167, 0.00661, 0.0], ["0.0167", "0.0066", "0.0000"]),
        ([9.999, 1.0], ["10.0", "1.0"]),
        ([12345.6, 3.0], ["12,346", "3"]),
        ([5.0, 0.02, 0.03], ["5.000", "0.020", "0.030"]),
        ([5.0, 2e-4, 3e-4], ["5.0000", "0.0002", "0.0003"]),
        ([5.0, 4.0, 1e-9, -1e-9], ["5.00", "4.00", "< 0.01", "> \u22120.01"]),
        ([3e-8, 2e-9, 0.0], ["3.0\u00d710⁻⁸", "2.0\u00d710⁻⁹", "0"]),
        ([np.nan, np.inf, 2.0], ["unknown", "infinite", "2.00"]),
        ([0.0, 0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_share_their_decimals(values: list[float], shown: list[str]) -> None:
    assert [plain(text) for text in numbers(values)] == shown


def test_rows_from_outside_are_held_against_the_known_ones() -> None:
    known, left, right = parts([1.0, 3.0], [0.0, 0.0]), parts([1.0], [3.0]), parts([1.0], [1.0])
    told = plain(sentences.elsewhere(known, {"left": left, "right": right}))
    assert told == (
        "In rows from “left” more data like them would remove 75 % of the expected penalty, in rows from “right” 50 %; in the "
        "known rows 0 %."
    )
    in_nats = plain(sentences.elsewhere(parts([-1.0], [0.1], rule="log"), {"outside": parts([-2.0], [4.0], rule="log")}))
    assert in_nats == (
        "In rows from outside more data like them would remove 4 nats of the expected penalty; in the known rows 0.1 nats."
    )
    assert sentences.elsewhere(known, {}) == sentences.elsewhere(parts([1.0], [0.0], n_members=1), {"left": left}) == ""


def test_measures_in_words() -> None:
    assert measure_in_words("log.excess.members.members") == "disagreement, log score"
    assert measure_in_words("crps.total.mixture.pooled") == "total uncertainty, CRPS (a variant)"
    assert measure_in_words("mine") == ""


def test_half_of_what_is_removable_lies_in_the_fewest_rows() -> None:
    ens, _ = ensemble(200)
    d = up.decompose(ens)
    found = Parts.of(d.aleatoric, d.epistemic, np.arange(200), rule="crps")
    largest = np.sort(d.epistemic)[::-1]
    assert largest[: found.half].sum() >= 0.5 * d.epistemic.sum() > largest[: found.half - 1].sum()


def test_rows_that_share_the_largest_value_are_counted_in_place_of_naming_one() -> None:
    tied = parts([3.0, 1.0, 3.0 + 1e-15], [1.0, 2.0, 2.0])
    assert plain(sentences.rows_to_look_at(tied)) == (
        "More data would help most at rows like row 101 and 1 as high (removable part 2 min); 2 rows share the largest noise "
        "(3 min)."
    )
    assert (
        plain(sentences.rows_to_look_at(parts([3.0, 3.0], [0.0, 0.0], n_members=1)))
        == "All rows share the largest noise (3 min)."
    )


def test_what_happened_is_held_against_what_was_expected() -> None:
    rng = np.random.default_rng(0)
    expected = np.full(400, 0.25)
    for shift, words in ((0.0, "as expected."), (0.2, "surer than they should be"), (-0.2, "less sure than they could be")):
        found = Happened.of(expected, expected + shift + rng.normal(scale=0.3, size=400))
        told = plain(as_expected(found, parts([1.0], [1.0])))
        assert told.startswith(
            f"What happened: the average of the models cost {found.came:.3f} min a row on average, where 0.250 min"
        )
        assert words in told


def test_the_parts_of_the_split_add_up_in_the_digits_shown() -> None:
    told = plain(sentences.overall(parts([1.104, 1.106], [0.0234, 0.0254])))
    total, noise, removable = (
        float(x) for x in (told.split(" of ")[1].split()[0], told.split(": ")[1].split()[0], told.split("and ")[1].split()[0])
    )
    assert abs(total - noise - removable) < 0.0011
    assert removable == 0.024

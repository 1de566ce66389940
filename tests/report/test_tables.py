"""Tables show the numbers of the rows in few digits, and thresholds that hand over the rows they say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import uqprism as up
from tests.report.pages import KNOWN, OOD, PAIR, TOTAL, Y, plain, table
from tests.tasks.problems import ensemble
from uqprism.report.formatting import count, number, percent, same_decimals
from uqprism.report.page import Report
from uqprism.tasks import prediction_error

THRESHOLDS = "To avoid large errors, by total uncertainty, CRPS"
DISAGREEMENT = "The rows with the most disagreement"
CHECK = "The 12 rows to check first, by total uncertainty, CRPS"
UNFAMILIAR = "Known rows and rows with unfamiliar inputs"


def test_the_most_uncertain_rows_are_in_the_tables(written: Report) -> None:
    d = up.decompose(KNOWN)
    row = int(np.argmax(d.epistemic))
    low, high = (KNOWN[row : row + 1].mixture.quantile(level)[0] for level in (0.05, 0.95))
    cells = table(written, DISAGREEMENT)
    assert cells[0] == [
        "row",
        *(f"{name} (minutes)" for name in ("disagreement", "noise", "prediction", "90 % interval", "target")),
    ]
    shown = [float(text.replace("\u2212", "-")) for text in (*cells[1][:4], *cells[1][4].split(" to "), cells[1][5])]
    expected = [row, d.epistemic[row], d.aleatoric[row], KNOWN.mixture.mean[row], low, high, Y[row]]
    np.testing.assert_allclose(shown, expected, atol=0.06)
    assert "-" not in "".join(cells[1])


def test_numbers_of_a_column_have_as_many_decimals_each(written: Report) -> None:
    for caption in (DISAGREEMENT, "The rows with the most noise", CHECK, UNFAMILIAR):
        for column in list(zip(*table(written, caption)[1:], strict=True))[1:]:
            numbers = [number for cell in column if "%" not in cell for number in cell.split(" to ")]
            assert len({len(number.partition(".")[2]) for number in numbers}) <= 1, column


def test_unfamiliar_rows_stand_beside_the_known_ones(written: Report) -> None:
    split = [up.decompose(ens) for ens in (KNOWN, *OOD.values())]
    shares = [f"{100 * d.epistemic.mean() / d.total.mean():.0f} %" for d in split]
    expected = list(zip(("known rows", "from “near”", "from “far”"), shares, strict=True))
    assert [(row[0], row[2]) for row in table(written, UNFAMILIAR)[1:]] == expected


def test_a_threshold_is_the_value_that_a_share_of_the_rows_reaches(written: Report) -> None:
    total, far_total = (up.evaluate(each, [TOTAL])[TOTAL] for each in (KNOWN, OOD["far"]))
    error = prediction_error(KNOWN, Y)
    cells = table(written, THRESHOLDS)[1:]
    assert [row[:3:2] for row in cells] == [["10 %", "15"], ["5 %", "8"], ["1 %", "2"]]
    for row, n_flagged in zip(cells, (15, 8, 2), strict=True):
        least = np.sort(total)[-n_flagged]
        kept, handed = (np.sqrt(error[rows].mean()) for rows in (total < least, total >= least))
        np.testing.assert_allclose([float(cell) for cell in (row[1], *row[3:5])], [least, kept, handed], atol=0.01)
        assert row[-1].startswith(f"{100 * (far_total >= least).mean():.3g}"[:2])


def test_thresholds_say_what_ties_allow(made) -> None:
    noise = np.repeat([1.0, 2.0], [54, 46])
    found, page = made({**dict(zip(PAIR, (noise, 0.1 * noise), strict=True)), TOTAL: 1.1 * noise}, unit="km")
    assert table(found, THRESHOLDS) == [["hand over", "threshold (km)", "rows"], ["46 %", "2.2", "46"]]
    assert "To hand over 1 % is not possible" in page.text
    assert "46 rows share the last value; the first 10 of them in the file are shown." in page.text


def test_printed_thresholds_hand_over_the_rows_they_say(made) -> None:
    noise = 1.66 + np.arange(5000) * 1e-6
    found, _ = made({**dict(zip(PAIR, (noise, 0.0 * noise), strict=True)), TOTAL: noise})
    assert [(noise >= float(row[1])).sum() for row in table(found, THRESHOLDS)[1:]] == [500, 250, 50]


def test_each_line_of_a_table_of_measures_is_another_order(made) -> None:
    ens, y = ensemble(60)
    measures = up.evaluate(ens)
    _, page = made(measures, error=prediction_error(ens, y))
    selective = page.source.split('id="selective"')[1].split("</section>")[0]
    cells = re.findall(r"<tr><td>(.*?)</td>", selective, flags=re.DOTALL)
    groups = [re.findall(r'<code class="technical">([\w.]+)</code>', cell) for cell in cells]
    assert sorted(name for group in groups for name in group) == sorted(measures)
    ranks = {name: np.unique(column.round(12), return_inverse=True)[1].tobytes() for name, column in measures.items()}
    assert len(groups) == len(set(ranks.values())) < len(measures)
    for group in groups:
        assert len({ranks[name] for name in group}) == 1, group


def test_numbers_are_short_and_never_rounded_to_all_or_nothing() -> None:
    shown = {0.0: "0", 12345.6: "12,350", 0.00576: "0.00576", 1e-7: "1\u00d710⁻⁷", 999.6: "1,000", -2.5: "\u22122.5"}
    shown |= {1.234e-7: "1.23\u00d710⁻⁷", 1987.0: "1,987", 1.2e12: "1.2\u00a0trillion", 1e308: "1\u00d710³⁰⁸"}
    shown[np.inf] = "infinite"
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
        ([12345.6, 3.0], ["12,350", "3"]),
        ([1.2e12, 3.4e11], ["1.20 trillion", "0.34 trillion"]),
        ([5.0, 0.02, 0.03], ["5.000", "0.020", "0.030"]),
        ([5.0, 2e-4, 3e-4], ["5.0000", "0.0002", "0.0003"]),
        ([5.0, 4.0, 1e-9, -1e-9], ["5.00", "4.00", "< 0.01", "> \u22120.01"]),
        ([3e-8, 2e-9, 0.0], ["3.00\u00d710⁻⁸", "2.00\u00d710⁻⁹", "0"]),
        ([np.nan, np.inf, 2.0], ["unknown", "infinite", "2.00"]),
        ([0.0, 0.0], ["0", "0"]),
        ([], []),
    ],
)
def test_numbers_of_a_column_share_their_decimals(values: list[float], shown: list[str]) -> None:
    assert [plain(text) for text in same_decimals(values)] == shown

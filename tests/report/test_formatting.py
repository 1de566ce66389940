"""Numbers are short, and never rounded to all or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.report.pages import plain
from uqprism.report.formatting import count, number, percent, same_decimals


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
    assert [plain(text) for text in same_decimals(values)] == shown

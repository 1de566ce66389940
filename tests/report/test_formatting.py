"""Amounts stand beside their units as people write them."""

from __future__ import annotations

import pytest

from tests.report.pages import plain
from uqprism.report.formatting import amount, amounts, between, exact
from uqprism.support.numbers import tick


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (12345.0, "$", "$ 12,340"),
        (-40099.0, "€", "\u2212€ 40,100"),
        (12345.0, "US$", "US$ 12,340"),
        (12.34, "kWh", "12.3 kWh"),
        (0.12, "$/kWh", "0.12 $/kWh"),
        (1.0, "", "1"),
        (1e12, "$", "$ 1 trillion"),
        (1e-7, "m", "1\u00d710⁻⁷ m"),
    ],
)
def test_signs_of_currencies_stand_first(value: float, unit: str, shown: str) -> None:
    assert plain(amount(value, unit)) == shown


def test_amounts_to_compare_share_their_decimals() -> None:
    assert [plain(text) for text in amounts([57034.0, 999.0], "$")] == ["$ 57,030", "$ 999"]
    assert plain(between(-9.28, 12.5, "min")) == "\u22129.3 to 12.5 min"
    assert plain(between(-9.28, 12.5, "$")) == "\u2212$ 9.3 to $ 12.5"


def test_thresholds_keep_their_digits() -> None:
    shown = {"69800": "69,800", "0.000123": "0.000123", "-1234.5": "\u22121,234.5", "0": "0"}
    shown |= {"0.000000000123": "1.23\u00d710⁻¹⁰", "123" + "0" * 150: "1.23\u00d710¹⁵²"}
    assert {text: exact(text) for text in shown} == shown


def test_ticks_are_separated() -> None:
    shown = {0.0: "0", -0.5: "\u22120.5", 20000.0: "20,000", 0.30000000000000004: "0.3", 1e9: "10⁹", 2e-7: "2\u00d710⁻⁷"}
    assert {value: tick(value) for value in shown} == shown

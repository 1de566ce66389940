"""Amounts, shares and counts as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from uqprism.support.numbers import MINUS, SPACE, exact, is_sign, number, same_decimals

__all__ = ["MINUS", "SPACE", "amount", "amounts", "between", "count", "exact", "number", "percent", "same_decimals", "with_unit"]


def percent(share: float) -> str:
    """A share in percent; only exact shares read 0 % and 100 %."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}{SPACE}%"
    if share < 0.001:
        return f"less than 0.1{SPACE}%"
    if share > 0.999:
        return f"more than 99.9{SPACE}%"
    few = share < 0.0995 or share >= 0.995  # there a whole percent is coarse
    return f"{100 * share:.1f}{SPACE}%" if few else f"{100 * share:.0f}{SPACE}%"


def count(many: int, one: str, several: str = "") -> str:
    """A number of things, such as `1 row` or `1,200 rows`."""
    return f"{many:,}{SPACE}{one if many == 1 else several or one + 's'}"


def with_unit(text: str, unit: str) -> str:
    """A number that is a text already, with its unit: `$ 12,300`, `12.3 kWh`."""
    if not unit:
        return text
    if not is_sign(unit):
        return f"{text}{SPACE}{unit}"
    return f"{MINUS}{unit}{SPACE}{text[1:]}" if text.startswith(MINUS) else f"{unit}{SPACE}{text}"


def amount(value: float, unit: str) -> str:
    """A number with its unit, if it has one."""
    return with_unit(number(value), unit)


def between(low: float, high: float, unit: str) -> str:
    """A range with its unit, which stands once where it follows the numbers."""
    first, last = amounts([low, high], unit if is_sign(unit) else "")
    return f"{first} to {last}" if is_sign(unit) else f"{first} to {with_unit(last, unit)}"


def amounts(values: Sequence[float], unit: str) -> list[str]:
    """Numbers to compare, with one number of decimals and their unit."""
    texts = same_decimals(values, at=0.0)
    while all("." in text and text[-1] in "0." for text in texts):  # zeros at the end of all of them say nothing
        texts = [text[:-1] for text in texts]
    return [with_unit(text, unit) for text in texts]

"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

SPACE = "\u00a0"  # that does not break
MINUS, TIMES = "\u2212", "\u00d7"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SIZES = (1e-5, 1e9)  # that are told without a power of ten
EQUAL = 1e-9  # relative: what differs by less is equal on paper
MORE_DECIMALS, MOST_DECIMALS = 2, 6


def number(value: float) -> str:
    """Three digits, without a power of ten unless it is far from one."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "minus infinite" if value < 0 else "unknown"
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 999.5:
        return _typeset(f"{value:,.0f}") if size < SIZES[1] else _power(value)
    return _typeset(f"{value:.3g}") if size >= 9.995e-5 else _power(value)


def numbers(values: Sequence[float], *, at: float = 0.5) -> list[str]:
    """Those of a column, with as many decimals each: three digits of the largest, and two of the middle one if that is near.

    Args:
        values: of the column.
        at: which has two digits in place of the middle one: 0 for the smallest, up to below 1 for the largest.
    """
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value != 0.0)
    if not sizes:
        return [number(value) for value in values]
    if not SIZES[0] <= sizes[-1] < SIZES[1]:
        return [_power(value) if math.isfinite(value) and value else number(value) for value in values]
    fewest = 2 - _exponent(sizes[-1])
    decimals = max(fewest, min(1 - _exponent(sizes[int(at * len(sizes))]), fewest + MORE_DECIMALS))
    return [_fixed(value, min(max(decimals, 0), MOST_DECIMALS)) for value in values]


def _exponent(size: float) -> int:
    """Of the power of ten, once rounded to three digits."""
    return int(f"{size:.2e}".split("e")[1])


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return number(value)
    if 0.0 < abs(value) < 0.5 * 10.0**-decimals:  # too small to be told, but not nothing
        return f"{'<' if value > 0 else '>'}{SPACE}{_typeset(f'{math.copysign(10.0**-decimals, value):.{decimals}f}')}"
    return _typeset(f"{value:,.{decimals}f}")


def _power(value: float) -> str:
    digits, power = f"{value:.1e}".split("e")
    return f"{_typeset(digits)}{TIMES}10{str(int(power)).translate(SUPERSCRIPTS)}"


def _typeset(text: str) -> str:
    return text.replace("-", MINUS)


def percent(share: float) -> str:
    """A share in percent, never rounded to all or nothing unless it is."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}{SPACE}%"
    if share < 0.001:
        return f"less than 0.1{SPACE}%"
    if share > 0.999:
        return f"more than 99.9{SPACE}%"
    few = share < 0.0995 or share >= 0.995
    return f"{100 * share:.1f}{SPACE}%" if few else f"{100 * share:.0f}{SPACE}%"


def count(many: int, one: str, several: str = "") -> str:
    """A number of things: `1 row`, `1,200 rows`."""
    return f"{many:,}{SPACE}{one if many == 1 else several or one + 's'}"


def tied(values: Any, value: float) -> int:
    """How many numbers of an array are this one, up to rounding."""
    return int((abs(values - value) <= EQUAL * abs(value)).sum())


def amount(value: float, unit: str) -> str:
    """A number with its unit, if it has one."""
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def amounts(values: Sequence[float], unit: str) -> list[str]:
    """Numbers to be held against each other, in as many decimals each, with their unit."""
    told = numbers(values, at=0.0)
    while all("." in text and text[-1] in "0." for text in told):
        told = [text[:-1] for text in told]
    return [f"{text}{SPACE}{unit}" if unit else text for text in told]

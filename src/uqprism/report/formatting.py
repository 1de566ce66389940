"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

SPACE = "\u00a0"  # a space at which lines do not break
MINUS, TIMES = "\u2212", "\u00d7"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SIZES = (1e-5, 1e9)  # numbers of these sizes need no power of ten
MORE_DECIMALS, MOST_DECIMALS = 2, 6


def number(value: float) -> str:
    """The number with three significant digits, and with a power of ten only where it is very small or very large."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "minus infinite" if value < 0 else "unknown"
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 999.5:  # what three digits round to 1,000
        return _typeset(f"{value:,.0f}") if size < SIZES[1] else _power(value)
    return _typeset(f"{value:.3g}") if size >= 9.995e-5 else _power(value)


def same_decimals(values: Sequence[float], *, at: float = 0.5) -> list[str]:
    """The numbers of a column with one number of decimals: three digits of the largest, and two of the middle one if possible.

    Args:
        values: the column.
        at: the quantile that has two digits in place of the middle one: 0 for the smallest, below 1 for the largest.
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
    """The power of ten, once the number is rounded to three digits."""
    return int(f"{size:.2e}".split("e")[1])  # a logarithm would not know of the rounding


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return number(value)
    if 0.0 < abs(value) < 0.5 * 10.0**-decimals:  # too small for these decimals, but not zero
        return f"{'<' if value > 0 else '>'}{SPACE}{_typeset(f'{math.copysign(10.0**-decimals, value):.{decimals}f}')}"
    return _typeset(f"{value:,.{decimals}f}")


def _power(value: float) -> str:
    digits, power = f"{value:.1e}".split("e")
    return f"{_typeset(digits)}{TIMES}10{str(int(power)).translate(SUPERSCRIPTS)}"


def _typeset(text: str) -> str:
    return text.replace("-", MINUS)


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


def amount(value: float, unit: str) -> str:
    """A number with its unit, if it has one."""
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def amounts(values: Sequence[float], unit: str) -> list[str]:
    """Numbers to compare, with one number of decimals and their unit."""
    texts = same_decimals(values, at=0.0)
    while all("." in text and text[-1] in "0." for text in texts):  # zeros at the end of all of them say nothing
        texts = [text[:-1] for text in texts]
    return [f"{text}{SPACE}{unit}" if unit else text for text in texts]

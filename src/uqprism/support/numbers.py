"""Numbers as people read them: separated thousands, three significant digits, or four from 1,000 on."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

SPACE = "\u00a0"  # a space at which lines do not break
MINUS, TIMES = "\u2212", "\u00d7"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
THOUSAND = 999.5  # what three digits round to 1,000
SMALLEST = 1e-5  # of the largest number of a column: below, the column has powers of ten
WORDS = {"billion": 1e9, "trillion": 1e12}
LARGEST = 9.995e14  # beyond, there are no words that everybody knows
MORE_DECIMALS, MOST_DECIMALS = 2, 6


def number(value: float) -> str:
    """The number in few digits, with a power of ten only where it is very small or very large."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "minus infinite" if value < 0 else "unknown"
    size = abs(value)
    if size == 0.0:
        return "0"
    if size < 9.995e-5 or size >= LARGEST:
        return _power(value).replace(f".00{TIMES}", TIMES)
    if size < THOUSAND:
        return _typeset(f"{value:.3g}")
    word = _word(size)
    return f"{_typeset(f'{value / WORDS[word]:.3g}')}{SPACE}{word}" if word else _whole(value)


def same_decimals(values: Sequence[float], *, at: float = 0.5) -> list[str]:
    """The numbers of a column with one number of decimals: three digits of the largest, and two of the middle one if possible.

    Args:
        values: the column.
        at: the quantile that has two digits in place of the middle one: 0 for the smallest, below 1 for the largest.
    """
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value != 0.0)
    if not sizes:
        return [number(value) for value in values]
    if not SMALLEST <= sizes[-1] < LARGEST:
        return [_power(value) if math.isfinite(value) and value else number(value) for value in values]
    if word := _word(sizes[-1]):
        texts = same_decimals([value / WORDS[word] for value in values], at=at)
        return [f"{text}{SPACE}{word}" if math.isfinite(value) else text for text, value in zip(texts, values, strict=True)]
    fewest = 2 - _exponent(sizes[-1])
    decimals = max(fewest, min(1 - _exponent(sizes[int(at * len(sizes))]), fewest + MORE_DECIMALS))
    return [_fixed(value, min(max(decimals, 0), MOST_DECIMALS)) for value in values]


def tick(value: float) -> str:
    """A number beside an axis, which is round already."""
    size = abs(value)
    if size == 0.0 or 1e-4 <= size < WORDS["billion"]:
        text = f"{value:,.10f}".rstrip("0").rstrip(".")
        return _typeset(text) if text != "-0" else "0"
    digits, power = f"{value:.6e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    return f"{'' if digits == '1' else _typeset(digits) + TIMES}10{str(int(power)).translate(SUPERSCRIPTS)}"


def exact(text: str) -> str:
    """A decimal number in all digits that it is given with, separated by thousands or with a power of ten."""
    size = abs(float(text))
    if size != 0.0 and not 1e-6 <= size < LARGEST:
        digits = text.replace("-", "").replace(".", "").strip("0")
        exponent = f"{float(text):.17e}".split("e")[1]
        shown = f"{'-' if text.startswith('-') else ''}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}"
        return f"{_typeset(shown)}{TIMES}10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    whole, point, decimals = text.partition(".")
    return _typeset(f"{'-' if whole.startswith('-') else ''}{abs(int(whole)):,}{point}{decimals}")


def is_sign(unit: str) -> bool:
    """Whether a unit stands before its number: a currency's sign, such as $ or US$."""
    sign = re.sub(r"^[A-Z]{1,3}(?=\W$)", "", unit)
    return len(sign) == 1 and unicodedata.category(sign) == "Sc"


def _word(size: float) -> str:
    """The word for numbers of this size; empty below a billion."""
    return max((word for word, least in WORDS.items() if size >= least * 0.9995), key=WORDS.__getitem__, default="")


def _whole(value: float) -> str:
    return _typeset(f"{float(f'{value:.3e}'):,.0f}")


def _exponent(size: float) -> int:
    """The power of ten, once the number is rounded to three digits."""
    return int(f"{size:.2e}".split("e")[1])  # a logarithm would not know of the rounding


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return number(value)
    if abs(value) >= THOUSAND and decimals == 0:
        return _whole(value)
    if 0.0 < abs(value) < 0.5 * 10.0**-decimals:  # too small for these decimals, but not zero
        return f"{'<' if value > 0 else '>'}{SPACE}{_typeset(f'{math.copysign(10.0**-decimals, value):.{decimals}f}')}"
    return _typeset(f"{value:,.{decimals}f}")


def _power(value: float) -> str:
    digits, power = f"{value:.2e}".split("e")
    return f"{_typeset(digits)}{TIMES}10{str(int(power)).translate(SUPERSCRIPTS)}"


def _typeset(text: str) -> str:
    return text.replace("-", MINUS)

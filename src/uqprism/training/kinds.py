"""What the columns of a table hold, and why some cannot be used."""

from __future__ import annotations

import datetime
import numbers
import re
from typing import Any, Literal

import numpy as np

from uqprism.support.optional import require

Kind = Literal["number", "boolean", "category"]

REPEATED, FEW = 0.5, 32  # text is a category if at most this share of the values, or so many, are different
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}([./-])\d{1,2}\2\d{4}( .*)?")


def kind_of(values: Any) -> Kind:
    """What a `pandas.Series` holds."""
    types = require("pandas", extra="pandas").api.types
    if _is_categorical(values):
        return "category"
    if types.is_bool_dtype(values.dtype):
        return "boolean"
    if types.is_numeric_dtype(values.dtype):
        return "number"
    there = values.dropna()
    if len(there) and all(isinstance(value, bool | np.bool_) for value in there):
        return "boolean"
    return (
        "number" if len(there) and all(isinstance(value, numbers.Number) or _is_decimal(value) for value in there) else "category"
    )


def refusal(name: str, values: Any, *, training: bool = True) -> str | None:
    """Why this column cannot be used, and the way out; None if it can."""
    there = values.dropna()
    if (why := _refused_type(name, values.dtype, there)) is not None:
        return why
    if not len(there):
        return f"column {name!r} is empty: drop it" if training else None
    if kind_of(values) != "category" or _is_categorical(values):
        return None
    return _refused_text(name, there, training)


def _refused_type(name: str, dtype: Any, there: Any) -> str | None:
    """Why a column of this type cannot be used: dates, durations and others that are neither numbers nor categories."""
    types = require("pandas", extra="pandas").api.types
    first = there.iloc[0] if len(there) else None
    if types.is_datetime64_any_dtype(dtype) or isinstance(first, datetime.date):
        return (
            f"column {name!r} holds dates, of which it is open what matters: replace it by numbers such as "
            f"frame[{name!r}].dt.month, .dt.dayofweek, .dt.hour, or the days since a date"
        )
    if types.is_timedelta64_dtype(dtype) or isinstance(first, datetime.timedelta):
        return f"column {name!r} holds durations: replace it by frame[{name!r}].dt.total_seconds()"
    if isinstance(dtype, types.PeriodDtype | types.IntervalDtype) or types.is_complex_dtype(dtype):
        return f"column {name!r} holds {dtype}: replace it by numbers, or drop it"
    return None


def _refused_text(name: str, there: Any, training: bool) -> str | None:
    """Why a column of objects cannot be used: things that are no text, and text that is no category."""
    odd = [value for value in there if not isinstance(value, str | bytes)]
    if odd and len(odd) < len(there):
        return (
            f"column {name!r} holds text and {type(odd[0]).__name__} objects: make all of it numbers with pandas.to_numeric, or "
            f"categories with .astype(str).astype('category')"
        )
    if odd:
        return f"column {name!r} holds {type(odd[0]).__name__} objects: replace it by numbers, or drop it"
    return _refused_categories(name, there) if training else None


def _refused_categories(name: str, texts: Any) -> str | None:
    """Why text is no category, unless the user says so."""
    said = f"say that it is a category with frame[{name!r}].astype('category')"
    if all(DATE.fullmatch(str(value)) for value in texts.unique()):
        return (
            f"column {name!r} holds dates as text: make them dates with pandas.to_datetime(frame[{name!r}]), and these numbers, "
            f"such as .dt.month; or {said}"
        )
    different = texts.nunique()
    if different <= max(REPEATED * len(texts), FEW):
        return None
    if _reads_as_numbers(texts):
        return f"column {name!r} holds numbers as text: replace it by pandas.to_numeric(frame[{name!r}])"
    return (
        f"column {name!r} holds text that hardly repeats ({different:,} different values in {len(texts):,} rows): drop it, "
        f"replace it by numbers that describe it, or {said}"
    )


def _is_categorical(values: Any) -> bool:
    return isinstance(values.dtype, require("pandas", extra="pandas").CategoricalDtype)


def _is_decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"


def _reads_as_numbers(values: Any) -> bool:
    try:
        values.astype(float)
    except (TypeError, ValueError):
        return False
    return True

"""Which columns of a table hold the members."""

from __future__ import annotations

import pytest

from uqprism.ensemble.columns import Columns, described, resolve
from uqprism.errors import ArgumentError, InvalidValueError


def test_variance_is_found_before_scale_is_missed() -> None:
    assert resolve(Columns(), ["mean_1", "x", "variance_1"], "f") == (("mean_1",), "variance", ("variance_1",))
    assert resolve(Columns(), ["scale_2", "mean_2", "mean_10", "scale_10"], "f")[0] == ("mean_2", "mean_10")
    assert resolve(Columns(scale="scale_{i}"), ["mean_1", "variance_1", "scale_1"], "f")[1] == "scale"


@pytest.mark.parametrize(
    ("columns", "found", "message"),
    [
        (Columns(), ["a", "b"], r"f: no columns like mean_\{i\}, the columns are a, b; .*--mean-columns"),
        (Columns(), ["mean_0"], r"f: no columns like variance_\{i\} or scale_\{i\}"),
        (Columns(), ["mean_0", "variance_0", "scale_0"], "both variance"),
        (Columns(), ["mean_0", "mean_1", "variance_0"], "member 1 has a mean but no variance column"),
        (Columns(), ["mean_0", "variance_0", "variance_4"], "member 4 has a variance but no mean column"),
        (Columns(mean="a,b"), ["a", "b", "variance_0"], "2 mean columns but 1 variance columns"),
        (Columns(mean="a,c"), ["a", "b", "variance_0"], "unknown column 'c'"),
        (Columns(), ["mean_0", "mean_00", "variance_0"], "two columns match"),
        (Columns(), ["mean_0", "mean_0", "variance_0"], "appears twice"),
        (Columns(mean="a", scale="a"), ["a"], "both a mean and a scale"),
        (Columns(variance="v{i}"), ["mean_0"], r"no columns like v\{i\}"),
    ],
)
def test_columns_that_make_no_ensemble_are_refused(columns: Columns, found: list[str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        described(columns, found, "f")


def test_contradictions_are_refused() -> None:
    with pytest.raises(ArgumentError, match="not both"):
        Columns(variance="a", scale="b")

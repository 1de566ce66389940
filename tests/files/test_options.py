"""Which options of `score` are valid, and which names patterns match."""

from __future__ import annotations

import pytest

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.files.options import ScoreOptions, matching
from uqprism.measures import select_measures


def test_unknown_options_are_refused() -> None:
    measures = tuple(select_measures("usual"))
    with pytest.raises(ArgumentError, match="did you mean 'drop'"):
        ScoreOptions(measures, on_bad="dropp")
    with pytest.raises(ArgumentError, match="unknown compression"):
        ScoreOptions(measures, compression="rar")


def test_names_are_matched_in_the_order_of_the_patterns() -> None:
    names = ["a", "crps.bayes.members", "crps.bayes.mixture", "log.bayes.members"]
    assert matching(["log.*", "a", "*.members"], names, "f") == ["log.bayes.members", "a", "crps.bayes.members"]
    assert matching(["usual"], names, "f") == ["crps.bayes.members", "log.bayes.members"]
    assert matching(["all"], names, "f") == names
    with pytest.raises(InvalidValueError, match=r"f: unknown measure or column 'b\*'"):
        matching(["b*"], names, "f")

"""What a text may mean that is not the name of a measure."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from uqprism.measures.meaning import always_zero, meanings

ENS = up.EnsemblePrediction.gaussian(mean=np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 0.0]]), scale=np.array([[1.0], [2.0]]))
TABLE = up.evaluate(ENS)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("crps", ["crps.total.members.members", "crps.bayes.members", "crps.excess.members.members"]),
        ("crps.excess", ["crps.excess.members.members"]),
        ("crps_excess", ["crps.excess.members.members"]),
        ("crps.excess.mixture", ["crps.excess.mixture.members"]),
        ("crps.excess.1.1", ["crps.excess.members.members"]),
        ("nll.epistemic", ["log.excess.members.members"]),
        ("mse.aleatoric", ["squared_error.bayes.members"]),
        ("epistemic", ["crps.excess.members.members"]),
        ("Aleatoric", ["crps.bayes.members"]),
        ("uncertainty", ["crps.total.members.members"]),
        ("crps.exess.mebmers", ["crps.excess.members.members"]),
        ("log.excess.mixture.members", ["log.excess.mixture.members"]),
        ("xyzzy", []),
        ("", []),
    ],
)
def test_abbreviations_and_other_words_are_understood(text: str, meant: list[str]) -> None:
    assert meanings(text, TABLE) == meant


@pytest.mark.parametrize(
    "text", ["crps", "crps.excess", "epistemic", "squared_error.excess.mixture", "quadratic.exces", "log.excess.matched"]
)
def test_no_suggestion_is_always_zero(text: str) -> None:
    for look_up in (lambda: TABLE[text], lambda: up.evaluate(ENS, text), lambda: up.flag(TABLE, measure=text)):
        with pytest.raises(up.UqprismError, match="did you mean '") as caught:
            look_up()
        named = [each for each in TABLE if repr(each) in str(caught.value)]
        assert named
        assert not any(always_zero(each) for each in named)


def test_always_zero_is_what_is_zero() -> None:
    assert {name for name in TABLE if always_zero(name)} == {name for name in TABLE if (TABLE[name] == 0.0).all()}
    assert not always_zero("mine")
    assert always_zero("mine.excess.pooled.pooled")

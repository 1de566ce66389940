"""The example that the page shows and `uqprism demo deliveries` prints."""

from __future__ import annotations

import numpy as np

import uqprism as up
from uqprism.app.example import TARGET, deliveries, trips
from uqprism.app.inputs import ScoringChoice
from uqprism.app.overview import identifier_of, target_of
from uqprism.app.scored import error, retention, score


def test_storms_are_noisy_and_models_disagree_in_the_new_district() -> None:
    scored = score(deliveries(), ScoringChoice())
    assert (len(scored.frame), scored.bad_rows) == (600, 0)
    assert target_of(deliveries(), scored, ScoringChoice()) == TARGET
    assert identifier_of(scored) == "delivery_id"
    by_weather, by_district = (scored.frame.groupby(name)[["noise", "disagreement"]].mean() for name in ("weather", "district"))
    assert by_weather["noise"].idxmax() == "storm"
    assert by_district["disagreement"]["new"] > 5 * by_district["disagreement"]["known"]
    assert retention(scored, error(deliveries(), ScoringChoice(), TARGET)).ratios["total"] < 0.5


def test_the_file_begins_with_the_four_trips() -> None:
    np.testing.assert_allclose(score(deliveries(), ScoringChoice()).frame["total"][:4], up.decompose(trips()).total, rtol=1e-12)

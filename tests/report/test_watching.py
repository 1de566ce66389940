"""The page of a watch says what the watch found."""

from __future__ import annotations

import html

import numpy as np

import uqprism as up
from tests.tasks.watch.streams import ensemble, outcomes, scored


def test_the_page_has_each_alarm_with_sentence_advice_and_rows(tmp_path):
    rng = np.random.default_rng(0)
    reference = ensemble(rng, 500)
    watch = up.Watch(reference, target=outcomes(rng, reference))
    watch.update(ensemble(rng, 200), source="<monday>.parquet")
    watch.update(ensemble(rng, 200, spread=0.8), source="<tuesday>.parquet")
    written = watch.report(tmp_path / "watch.html")
    page = (tmp_path / "watch.html").read_text()
    text = html.unescape(page)
    assert written.headline.startswith("Inputs are unfamiliar, and the models are out of their depth")
    assert "<tuesday>.parquet" not in page
    for alarm in watch.alarms:
        assert alarm.advice.replace("`uqprism flag`", "<code>uqprism flag</code>") in text
        assert all(str(row) in text for row in alarm.rows)
    assert watch.guarantee in text
    assert text.count("<svg") == 2
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")  # needs no network


def test_a_page_before_the_first_window_says_so(tmp_path):
    watch = up.Watch(scored(np.random.default_rng(0), 100))
    assert watch.report(tmp_path / "watch.html").headline == "No rows have come yet."
    watch.update(scored(np.random.default_rng(1), 50))
    assert watch.report(tmp_path / "watch.html").headline == "No change was found in 50\u00a0rows."

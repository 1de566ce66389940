"""The watch as it is used: no false alarms, alarms that come at once and say what has changed, and a state that goes on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import uqprism as up
from tests.tasks.watch.streams import DISAGREEMENT, NOISE, ensemble, outcomes, scored
from uqprism.errors import ArgumentError, BadFileError, InvalidValueError, ShapeError
from uqprism.tasks.watch.core import FEWEST
from uqprism.tasks.watch.sources import MOST, Sources
from uqprism.tasks.watch.track import REMEMBERED


def watched(rng: np.random.Generator, *changes: dict[str, float], rows: int = 300, **options: object) -> up.Watch:
    """A watch after five windows as usual, and five after each of the changes."""
    watch = up.Watch(scored(rng, 2_000), **options)
    for change in ({}, *changes):
        for _ in range(5):
            watch.update(scored(rng, rows, **change))
    return watch


def test_false_alarms_are_as_rare_as_stated_also_with_a_small_reference():
    """At most 20 of 100 streams at level 0.2, and their number has a chance below 1e-6 to be above 40 if the level holds."""
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        watch = up.Watch(scored(rng, 40), level=0.2, window=50, seed=seed)
        alarms += bool(watch.update(scored(rng, 1_500)))
    assert alarms <= 40


def test_ranks_among_a_small_reference_alone_would_be_false_alarms():
    """The same streams without a growing pool: what the test above can find."""
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        watch = up.Watch(scored(rng, 40), level=0.2, window=50, seed=seed)
        pools = [(track, track.pool.counts) for track in watch.tests]
        for _ in range(30):
            found = watch.update(scored(rng, 50))
            for track, counts in pools:
                track.pool.counts = counts
        alarms += bool(found)
    assert alarms > 5


@pytest.mark.parametrize(("change", "kind", "words"), [
    ({"noise": 1.2}, "noise", "The world got noisier"),
    ({"noise": 0.8}, "noise", "The world got quieter"),
    ({"disagreement": 1.5}, "unfamiliar", "Inputs are unfamiliar, and the models are out of their depth"),
])  # fmt: skip
def test_the_first_changed_window_raises_an_alarm_that_says_what_changed(rng, change, kind, words):
    watch = watched(rng, change)
    first = watch.alarms[0]
    assert (first.window, first.since, first.kind) == (6, 6, kind)
    assert first.sentence.startswith(f"{words}, since window 6 (batch 5, row 0).")
    assert {alarm.kind for alarm in watch.alarms} == {kind}
    assert f"{1 / first.level:.0f} raises an alarm" in first.sentence
    assert first.evidence >= 1.0 / first.level == watch.thresholds[first.test] == 40.0


def test_a_weak_change_is_found_once_its_evidence_has_added_up(rng):
    watch = up.Watch(scored(rng, 5_000))
    for _ in range(10):
        watch.update(scored(rng, 100))
    while not (found := watch.update(scored(rng, 100, noise=1.06))):
        assert watch.windows < 120
    assert found.new[0].window > 12
    assert abs(found.new[0].since - 11) <= 8


def test_the_rows_that_an_alarm_names_are_the_extreme_ones(rng):
    reference, batch = scored(rng, 1_000), scored(rng, 200)
    batch[DISAGREEMENT][[7, 70, 170]] = [50.0, 60.0, 70.0]
    batch[DISAGREEMENT][100:] *= 3.0
    watch = up.Watch(reference)
    watch.update(scored(rng, 200), source="monday.parquet")
    alarm = watch.update(batch, source="tuesday.parquet").alarms[0]
    assert [(row.source, row.row) for row in alarm.rows] == [("tuesday.parquet", row) for row in (7, 70, 170)]
    assert alarm.began == type(alarm.began)("tuesday.parquet", 0)


def test_a_group_that_changes_is_named(rng):
    def rows(count, north=1.0):
        region = np.where(np.arange(count) % 4 == 0, "north", "south")
        found = scored(rng, count)
        found[DISAGREEMENT] = np.where(region == "north", north, 1.0) * found[DISAGREEMENT]
        return {**found, "region": region}

    watch = up.Watch(rows(2_000), groups="region")
    watch.update(rows(400))
    found = watch.update(rows(400, north=1.8))
    assert watch.groups == ("north", "south")
    assert list(watch.thresholds) == ["excess", "bayes", "excess[north]", "bayes[north]", "excess[south]", "bayes[south]"]
    assert "excess[north]" in [alarm.test for alarm in found.alarms]
    assert not [alarm for alarm in found.alarms if alarm.group == "south"]
    assert next(each for each in found.alarms if each.group).sentence.startswith("In group north, inputs are unfamiliar")


def test_rows_of_a_group_without_reference_are_counted(rng):
    reference, batch = scored(rng, 100), scored(rng, 10)
    watch = up.Watch(reference, groups=np.repeat(["a", "b"], 50))
    assert watch.update(batch, groups=["a"] * 4 + ["c"] * 6).windows[0]["unseen"] == 6


def test_batches_may_be_cut_anywhere_and_the_state_saved_anywhere(rng, tmp_path):
    """One stream in one update, in updates of any size, and with a pause after each: the same evidence to the bit."""
    reference = {**scored(rng, 500), "group": np.arange(500) % 2}
    stream = {**scored(rng, 2_030, disagreement=1.1), "group": np.arange(2_030) % 2}
    stream[NOISE][5] = np.nan
    stream[DISAGREEMENT][100:200] = reference[DISAGREEMENT][3]  # equal values, which need random numbers
    watch = up.Watch(reference, window=100, groups="group")
    whole = watch.update(stream, source="stream")
    for sizes in ([1, 99, 100, 101, 399, 330, 1_000], [650, 690, 690]):
        other = up.Watch(reference, window=100, groups="group")
        start = 0
        for size in sizes:
            part = {name: values[start : start + size] for name, values in stream.items()}
            found = other.take(other.reader.read(part), "stream", start)
            start += size
            other.save(tmp_path / "state")
            other = up.Watch.load(tmp_path / "state")
        assert found.waiting == 30
        assert other.windows == watch.windows == 20
        assert other.evidence == watch.evidence
        assert other.alarms == watch.alarms == whole.alarms
        for name, column in watch.history.items():
            assert_array_equal(other.history[name], column)


def test_memory_does_not_grow_with_the_stream(rng, tmp_path):
    watch = up.Watch(scored(rng, 100), window=2)
    sizes = []
    for _ in range(3):
        watch.update(scored(rng, 3_000))
        watch.save(tmp_path / "state.npz")
        sizes.append((tmp_path / "state.npz").stat().st_size)
    assert max(len(track.history) for track in watch.tests) == REMEMBERED
    assert sizes[2] < 1.1 * sizes[0]
    assert watch.history["window"][-1] == watch.windows == 4_500


def test_outcomes_correct_the_estimate_and_intervals_hold_the_penalty(rng):
    """Outcomes further out than predicted: the mean expectation is too small by a third, the corrected estimate is not."""
    reference = ensemble(rng, 3_000)
    watch = up.Watch(reference, target=outcomes(rng, reference, stretch=1.5))
    inside = 0
    for _ in range(60):
        batch = ensemble(rng, 200)
        window = watch.update(batch, target=outcomes(rng, batch, stretch=1.5)).windows[0]
        inside += window["low"] <= window["penalty"] <= window["high"]
    assert watch.correction.factor == pytest.approx(1.55, abs=0.1)  # (sqrt(2 (1 + 1.5²)) - 1), as Gaussians have it
    assert inside >= 50  # of 57 expected; below 50 with a chance of 0.001
    assert not watch.alarms
    assert watch.estimate.corrected


def test_late_outcomes_raise_alarms_of_penalty_and_calibration(rng):
    reference = ensemble(rng, 1_000)
    watch = up.Watch(reference, target=outcomes(rng, reference))
    batch = ensemble(rng, 300)
    assert not watch.update(batch)
    found = watch.outcomes(batch, outcomes(rng, batch, stretch=2.0))
    assert [(alarm.test, alarm.kind, alarm.direction) for alarm in found.new] == [
        ("penalty", "penalty", "higher"),
        ("calibration", "calibration", "spread"),
    ]
    assert "predictions have become too sure" in found.new[1].sentence.lower()
    assert found.windows[0]["labelled"] == 300


def test_outcomes_that_come_while_rows_wait_leave_their_places_alone(rng):
    reference = ensemble(rng, 1_000)
    watch = up.Watch(reference, target=outcomes(rng, reference), window=200)
    watch.update(ensemble(rng, 150), source="first")
    late = ensemble(rng, 50)
    watch.outcomes(late, outcomes(rng, late), source="late")
    alarm = watch.update(ensemble(rng, 50, spread=2.0), source="second").new[0]
    assert str(alarm.began) == "first, row 0"
    assert {row.source for row in alarm.rows} == {"second"}


def test_recalibrated_predictions_are_what_is_watched(rng):
    labelled = ensemble(rng, 1_000)
    recalibration = up.recalibrate(labelled, outcomes(rng, labelled, stretch=2.0))
    assert recalibration.kept
    reference, batch = ensemble(rng, 500), ensemble(rng, 300)
    watch = up.Watch(reference, recalibration=recalibration)
    expected = up.decompose(recalibration.apply(batch)).bayes.mean()
    assert_allclose(watch.update(batch).windows[0]["bayes"], expected, rtol=1e-12)


def test_a_map_of_levels_is_kept_with_the_state(rng, tmp_path):
    labelled = ensemble(rng, 1_000)
    skewed = labelled.mixture.mean + rng.exponential(size=1_000) - 1.0
    recalibration = up.recalibrate(labelled, skewed, level_map=True)
    assert recalibration.level_map.kept
    watch = up.Watch(ensemble(rng, 100), recalibration=recalibration)
    watch.save(tmp_path / "state")
    again, batch = up.Watch.load(tmp_path / "state"), ensemble(rng, 50)
    assert again.update(batch).windows == watch.update(batch).windows


def test_members_measures_and_frames_are_the_same_rows(rng):
    reference, batch = ensemble(rng, 400), ensemble(rng, 100)
    found = []
    for kind in (lambda x: x, up.evaluate, lambda x: x.to_pandas(), lambda x: up.evaluate(x).to_arrow()):
        watch = up.Watch(kind(reference))
        watch.update(kind(batch))
        found.append(watch.evidence)
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("rule", ["log", "squared_error"])
def test_any_rule_can_be_watched(rng, rule):
    reference = ensemble(rng, 1_000)
    watch = up.Watch(reference, rule)
    assert not watch.update(ensemble(rng, 300))
    assert watch.update(ensemble(rng, 300, spread=0.5)).alarms[0].kind == "unfamiliar"


def test_a_rule_of_ones_own_can_be_watched(rng):
    mine = up.rules.from_score("watched_absolute", lambda p, y: abs(p.quantile(0.5) - y))
    reference, batch = ensemble(rng, 100), ensemble(rng, 20)
    record = up.Watch(reference, mine).update(batch).windows[0]
    assert_allclose(record["excess"], up.decompose(batch, mine).excess.mean(), rtol=1e-9)


def test_places_of_rows_are_remembered_for_the_latest_sources():
    sources = Sources()
    for i in range(3 * MOST):
        sources.add(f"file {i}", 10)
        sources.forget(0)
    assert len(sources.runs) == MOST
    assert sources.place(30 * MOST - 1) == (f"file {3 * MOST - 1}", 9)
    assert sources.place(5) == ("the whole stream", 5)


def test_what_is_wrong_is_said_with_the_way_out(rng, tmp_path):
    reference, rows = ensemble(rng, 50), scored(rng, 50)
    with pytest.raises(InvalidValueError, match="level must be between 0 and 1, got 5"):
        up.Watch(reference, level=5)
    with pytest.raises(InvalidValueError, match=f"at least {FEWEST} rows with numbers, got 5"):
        up.Watch(reference[:5])
    with pytest.raises(InvalidValueError, match="window must be a whole number"):
        up.Watch(reference, window=0)
    with pytest.raises(ArgumentError, match=r"neither members nor the columns crps.bayes.members and"):
        up.Watch({"x": np.ones(50)})
    with pytest.raises(ArgumentError, match="measures but no members, which outcomes and recalibration need"):
        up.Watch(rows, target=np.ones(50))
    with pytest.raises(ArgumentError, match="lacks the groups"):
        up.Watch(rows, groups=np.ones(50)).update(rows)
    with pytest.raises(ShapeError, match="groups must have one value for each of the 50 rows, got 3"):
        up.Watch(rows, groups=["a", "b", "c"])
    with pytest.raises(ArgumentError, match="outcomes need a reference with at least 20 outcomes"):
        up.Watch(reference).outcomes(reference, np.ones(50))
    with pytest.raises(ArgumentError, match="Watch has no argument 'alpha'; use level="):
        up.Watch(reference, alpha=0.05)
    (tmp_path / "state").write_bytes(b"nothing")
    with pytest.raises(BadFileError, match=r"is not a readable .npz file"):
        up.Watch.load(tmp_path / "state")


def test_figures_draw_the_evidence_and_where_estimate_meets_truth(rng):
    reference = ensemble(rng, 300)
    watch = up.Watch(reference, target=outcomes(rng, reference))
    for place in range(4):
        batch = ensemble(rng, 100, spread=0.2 if place < 2 else 0.8)
        watch.update(batch, target=outcomes(rng, batch) if place % 2 else None)
    lines = {line.get_label(): line for line in watch.plot().get_lines()}
    assert_array_equal(lines["disagreement"].get_ydata(), watch.history["evidence.excess"])
    assert_allclose(lines["alarm"].get_ydata(), np.log10(80.0))
    lines = {line.get_label(): line for line in watch.plot_penalty().get_lines()}
    assert_array_equal(lines["estimate without outcomes"].get_ydata(), watch.history["estimate"])
    assert_array_equal(lines["outcomes"].get_xdata(), [2, 4])

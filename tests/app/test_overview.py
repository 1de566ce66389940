"""The first screen, without the page."""

from __future__ import annotations

import numpy as np
import pytest

import uqprism as up
from tests.app.files import ROWS, TABLE
from uqprism.app.inputs import ScoringChoice, Upload
from uqprism.app.overview import for_a_page, identifier_of, overview, target_of
from uqprism.app.scored import score
from uqprism.measures.vocabulary import ONE_MODEL
from uqprism.report.formatting import percent

USUAL = ScoringChoice()
SPLIT = up.decompose(TABLE.ensemble)


def seen(upload: Upload, choice: ScoringChoice = USUAL, target: str | None = None, unit: str | None = None):
    return overview(upload, score(upload, choice), choice, target, unit)


def test_the_sentence_and_the_actions_are_those_of_the_report() -> None:
    found = seen(TABLE.upload(), target="y", unit="$")
    assert f"{percent(SPLIT.bayes.mean() / SPLIT.total.mean())} of this is noise" in found.headline
    assert "$" in found.headline
    assert found.parts is not None
    assert found.parts.excess == pytest.approx(SPLIT.excess.mean())
    assert len(found.actions) == 3
    assert not any("--" in text or "up." in text for action in found.actions for text in action)
    assert (found.unit, found.identifier) == ("$", "id")


def test_rows_without_a_target_count_in_the_split() -> None:
    upload = TABLE.upload(y=[*TABLE.target[:20], *[""] * (ROWS - 20)])
    found = seen(upload, target="y")
    assert found.parts is not None
    assert (found.parts.n_rows, found.parts.target) == (ROWS, "y")
    assert found.parts.bayes == pytest.approx(SPLIT.bayes.mean())


@pytest.mark.parametrize(
    ("upload", "choice", "expected"),
    [
        (TABLE.upload(), ScoringChoice("log"), "disagreement between them"),
        (TABLE.upload(), ScoringChoice(prediction="pooled", truth="matched"), "do not show how far the models disagree"),
        (Upload("one.csv", b"mean_0,variance_0\n0,1\n1,4\n"), ScoringChoice(), ONE_MODEL),
    ],
    ids=["no natural zero", "single distributions", "one model"],
)
def test_without_shares_there_is_a_sentence_and_no_picture(upload: Upload, choice: ScoringChoice, expected: str) -> None:
    found = seen(upload, choice)
    assert expected in found.headline
    assert found.parts is None


def target(**columns: list[object]) -> str | None:
    upload = TABLE.upload(**columns)
    return target_of(upload, score(upload, ScoringChoice()), ScoringChoice())


def test_the_target_is_found_by_its_name_or_because_the_models_predict_it() -> None:
    values: list[object] = list(TABLE.target)
    assert target() == "y"
    bare = TABLE.csv().replace(b"id,y,", b"id,price ($),")
    upload = Upload("mine.csv", bare)
    assert target_of(upload, score(upload, ScoringChoice()), ScoringChoice()) == "price ($)"
    other = Upload("mine.csv", TABLE.upload(copy=values).content.replace(b"id,y,", b"id,price ($),"))
    assert target_of(other, score(other, ScoringChoice()), ScoringChoice()) is None  # which of the two?
    noise = Upload("mine.csv", TABLE.upload(y=list(np.arange(ROWS))).content.replace(b"id,y,", b"id,order,"))
    assert target_of(noise, score(noise, ScoringChoice()), ScoringChoice()) is None


@pytest.mark.parametrize("name", ["y", "Target", "y_true", "actual", "true_value", "target [kW]", "outcome"])
def test_usual_names_of_targets(name: str) -> None:
    upload = Upload("mine.csv", TABLE.csv().replace(b"id,y,", f"id,{name},".encode()))
    assert target_of(upload, score(upload, ScoringChoice()), ScoringChoice()) == name


def test_a_column_identifies_rows_if_it_is_named_so_and_unique() -> None:
    assert identifier_of(score(TABLE.upload(), ScoringChoice())) == "id"
    assert identifier_of(score(TABLE.upload(id=["a"] * ROWS), ScoringChoice())) == ""


def test_what_is_for_a_shell_is_left_out() -> None:
    assert for_a_page("Known targets (--target) tell. Too wide. Call up.flag for them.") == "Known targets tell. Too wide."

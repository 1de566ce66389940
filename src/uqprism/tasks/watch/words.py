"""What an alarm says: what has changed, since when, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqprism.measures.vocabulary import RISK_NAMES
from uqprism.support.numbers import number

if TYPE_CHECKING:
    from uqprism.tasks.watch.result import Alarm

NOISE, UNFAMILIAR, AGREEMENT, PENALTY, CALIBRATION = "noise", "unfamiliar", "agreement", "penalty", "calibration"

WHAT = {
    (NOISE, "higher"): "the world got noisier",
    (NOISE, "lower"): "the world got quieter",
    (NOISE, "spread"): "there are more rows with little noise and more with much noise",
    (NOISE, "narrowed"): "the noise varies less than it did",
    (NOISE, "gathered"): "the noise of many rows is nearly the same",
    (UNFAMILIAR, "higher"): "inputs are unfamiliar, and the models are out of their depth",
    (UNFAMILIAR, "lower"): "inputs are unfamiliar, although the models agree more than they did",
    (UNFAMILIAR, "spread"): "some inputs are unfamiliar, and the models are out of their depth there",
    (UNFAMILIAR, "narrowed"): "inputs vary less than they did, as if a sensor were stuck",
    (UNFAMILIAR, "gathered"): "many inputs are alike, as if a sensor were stuck",
    (AGREEMENT, "lower"): "the models agree more than they did",
    (PENALTY, "higher"): "predictions cost more than they did",
    (PENALTY, "lower"): "predictions cost less than they did",
    (CALIBRATION, "higher"): "outcomes lie higher within the predictions than they did",
    (CALIBRATION, "lower"): "outcomes lie lower within the predictions than they did",
    (CALIBRATION, "spread"): "predictions have become too sure: outcomes lie outside more often",
    (CALIBRATION, "narrowed"): "predictions have become too careful: outcomes lie in the middle more often",
}
OTHERWISE = {
    NOISE: "the noise has changed",
    UNFAMILIAR: "inputs are unfamiliar",
    AGREEMENT: "the disagreement of the models has changed",
    PENALTY: "the cost of predictions has changed",
    CALIBRATION: "where outcomes lie within the predictions has changed",
}
ADVICE = {
    NOISE: (
        "Look at the sensors and at how the data are made. Predictions are right only if the noise that the models state still "
        "is: compare a few outcomes, and recalibrate (`uqprism recalibrate`)."
    ),
    UNFAMILIAR: (
        "Find outcomes for the rows that `uqprism flag` names, add them to the training data, and train again. Until then do not "
        "rely on predictions for such rows."
    ),
    AGREEMENT: "Check that the inputs still vary as they did: a stuck sensor or a default value makes models agree.",
    PENALTY: (
        "Compare noise and disagreement before and after. If neither rose, the models do not know of the change: train again "
        "with new rows."
    ),
    CALIBRATION: "Recalibrate with the new outcomes (`uqprism recalibrate`), or train again if that does not suffice.",
}


LARGEST = 1e300  # evidence is counted up to here


def test_in_words(name: str) -> str:
    """A test in plain words: `disagreement`, `noise in group north`."""
    quantity, _, group = name.partition("[")
    return RISK_NAMES.get(quantity, quantity) + (f" in group {group[:-1]}" if group else "")


def evidence_in_words(evidence: float) -> str:
    """Evidence in few digits."""
    return f"more than {number(LARGEST)}" if evidence >= LARGEST else number(evidence)


def what(kind: str, direction: str) -> str:
    """What has changed, as part of a sentence."""
    return WHAT.get((kind, direction), OTHERWISE[kind])


def advice(kind: str, _direction: str) -> str:
    """What to do about a change of this kind."""
    return ADVICE[kind]


def alarm_sentence(alarm: Alarm) -> str:
    """One or two sentences: what has changed, since when, and how sure that is."""
    told = what(alarm.kind, alarm.direction)
    where = "" if alarm.group is None else f"In group {alarm.group}, "
    told = f"{where}{told}" if where else f"{told[0].upper()}{told[1:]}"
    before = " or earlier" if alarm.earlier else ""
    return (
        f"{told}, since window {alarm.since:,}{before} ({alarm.began}). Evidence of the test of {test_in_words(alarm.test)}: "
        f"{evidence_in_words(alarm.evidence)} in window {alarm.window:,}, where {number(1.0 / alarm.level)} raises an alarm."
    )

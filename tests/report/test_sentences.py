"""Sentences fit the numbers, whatever they are; `golden/sentences.txt` has each sentence in full."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.report.pages import SENTENCES, TOTAL, plain
from tests.report.test_findings import parts
from uqprism.plots.words import UNNAMED, ErrorWords
from uqprism.report import sentences
from uqprism.report.findings import Missed, RealisedPenalty
from uqprism.tasks import Calibration, TaskResult, ood_detection, selective_prediction

SPREAD = parts([1.0, 2.0, 3.0], [0.0, 1.0, 5.0])
ONE_MODEL = parts([1.0, 2.0], [0.0, 0.0], n_members=1)


def selective(error, uncertainty, **how) -> TaskResult:
    return selective_prediction({TOTAL: np.asarray(uncertainty, float)}, error=np.asarray(error, float), resamples=0, **how)


def ood(shifts: dict[str, float], *, resamples: int = 0) -> TaskResult:
    known, *others = ({TOTAL: np.arange(20.0) + shift} for shift in (0.0, *shifts.values()))
    other = dict(zip(shifts, others, strict=True)) if len(others) > 1 else others[0]
    return ood_detection(known, other, resamples=resamples)


def of_rows() -> Iterator[tuple[str, str]]:
    """Sentences about noise and disagreement."""
    rows = {
        "some": SPREAD,
        "one model": ONE_MODEL,
        "copies": parts([1.0, 2.0], [1e-17, 0.0]),
        "one row": parts([1.0], [3.0], n_members=None, unit=""),
        "log": parts([2.0, 1.0], [0.5, 0.1], rule="log"),
        "negative": parts([2.0, -1.0], [0.5, 0.1], rule="mine"),
        "noisy": parts([1.0, 1.0], [0.1, 0.1]),
        "unknown": parts([0.1, 0.1], [1.0, 1.0]),
        "ties": parts([3.0, 1.0, 3.0 + 1e-15], [1.0, 2.0, 2.0]),
        "decimals": parts([1.104, 1.106], [0.0234, 0.0254]),
    }
    for name, each in rows.items():
        yield f"split, {name}", sentences.split(each)
        yield f"kinds, {name}", sentences.rows_of_each_kind(each)
        yield f"rows, {name}", sentences.rows_to_look_at(each)
    yield "penalty, with intervals", sentences.penalty(SPREAD, "members", 2.75, intervals=True)
    yield "penalty, average unknown", sentences.penalty(SPREAD, "members", None, intervals=False)
    yield "penalty, of the average", sentences.penalty(SPREAD, "mixture", None, intervals=False)
    yield "penalty, one model", sentences.penalty(parts([1.0], [0.0], n_members=1, rule="log"), "members", None, intervals=False)
    for name, found in {"same": (0.25, 0.26, 0.01), "more": (0.25, 0.45, 0.01), "less": (0.25, 0.05, 0.01)}.items():
        yield f"realised, {name}", sentences.realised(RealisedPenalty(*found), SPREAD)
    others = {"left": parts([1.0], [3.0]), "right": parts([1.0], [1.0])}
    yield "ood, shares", sentences.disagreement_on_ood(SPREAD, others)
    log = [parts([-1.0], [0.1], rule="log"), parts([-2.0], [4.0], rule="log")]
    yield "ood, amounts", sentences.disagreement_on_ood(log[0], {UNNAMED: log[1]})
    yield "ood, none", sentences.disagreement_on_ood(SPREAD, {})
    yield "ood, one model", sentences.disagreement_on_ood(ONE_MODEL, others)


def of_tasks() -> Iterator[tuple[str, str]]:
    """Sentences about what tasks found."""
    squares, rising = np.arange(20.0) ** 2, np.arange(20.0)
    kinds = {"squared": ErrorWords.of("squared", "min"), "absolute": ErrorWords.of("absolute"), "nll": ErrorWords.of("nll")}
    yield "errors, found", sentences.handing_over(selective(squares, rising), TOTAL, kinds["squared"])
    yield "errors, not found", sentences.handing_over(selective(rising, -rising), TOTAL, kinds["absolute"])
    yield "errors, vanish", sentences.handing_over(selective([0.0] * 9 + [1.0], range(10)), TOTAL, kinds["absolute"])
    scores = selective([-1.0] * 18 + [4.0] * 2, range(20), may_be_negative=True)
    yield "errors, negative", sentences.handing_over(scores, TOTAL, kinds["nll"])
    yield "errors, few rows", sentences.handing_over(selective(range(9), range(9)), TOTAL, kinds["squared"])
    pits = {"wide": np.linspace(0.4, 0.6, 200), "right": np.linspace(0.0, 1.0, 201), "narrow": np.repeat([0.0, 1.0], 50)}
    for name, pit in pits.items():
        yield f"calibration, {name}", sentences.calibrated(Calibration(pit))
    yield "detection, two", sentences.detected(ood({"near": 1.0, "far": 100.0}), TOTAL)
    yield "detection, one", sentences.detected(ood({"elsewhere": 1.0}, resamples=50), TOTAL, "elsewhere")
    yield "detection, below", sentences.detected(ood({UNNAMED: -15.0}, resamples=50), TOTAL)
    other = "log.excess.members.members"
    yield "missed", sentences.missed([Missed(UNNAMED, TOTAL, 0.0, other, 1.0), Missed("far", TOTAL, 0.01, "mine", 0.2)])
    yield "left out", sentences.left_out(1, 60)


def every() -> str:
    """A line for each sentence."""
    return "".join(f"{name}: {plain(text)}\n" for each in (of_rows(), of_tasks()) for name, text in each)


def test_sentences_say_what_the_golden_ones_say() -> None:
    assert every() == SENTENCES.read_text(), "if this is meant: python -m tests.report.pages"


@pytest.mark.parametrize("rule", ["quadratic", "log", "mine"])
@pytest.mark.parametrize("noise", [-2.0, 2.0])
def test_sentences_without_shares_have_no_percentages(rule: str, noise: float) -> None:
    assert "%" not in sentences.split(parts([noise, -1.0], [0.5, 0.1], rule=rule))


def test_the_gain_of_handing_over_is_that_of_the_task() -> None:
    squares = np.arange(20.0) ** 2
    said = sentences.handing_over(selective(squares, np.arange(20.0)), TOTAL, ErrorWords.of("squared", "min"))
    before, after = np.sqrt(squares.mean()), np.sqrt(squares[:18].mean())
    assert f"is {before:.3g} min" in plain(said)
    assert f"to {after:.3g} min, {100 * (1 - after / before):.2g} % less" in plain(said)

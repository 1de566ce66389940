"""What a page may say about more data: what the models say, how far such models were right, or why it says nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqprism.ensemble.origin import UNKNOWN_KIND
from uqprism.report.formatting import MINUS, SPACE, amounts, percent
from uqprism.tasks.audit.evidence import KEPT, Kept
from uqprism.tasks.audit.result import RISING, Promise
from uqprism.tasks.calibration import Calibration

if TYPE_CHECKING:
    from uqprism.report.findings import Parts, RealisedPenalty

LEVEL = 0.9
MATERIAL_PENALTY = 0.1  # relative: a smaller difference leaves the split about right, however significant
MATERIAL_COVERAGE = 0.05  # of the targets
NATURE = {  # what is known of the disagreement of a kind of members, in a sentence
    "forest": "The members are trees of a forest, which disagree however many rows there are.",
    "boosting": "The members are boosted models, which agree also where they are wrong together: little disagreement does not "
    "mean that more data would change little.",
    "dropout": "The members are passes of one network with dropout, whose disagreement follows from the share of units that are "
    "dropped more than from the data.",
    "evidential": "The members are draws of what one evidential network states, and no data fixes how it divides uncertainty.",
    "networks": "The members are networks that differ in their seeds, not in their rows, so they do not show what other rows "
    "would change.",
}
NO_PROMISE = {"forest", "boosting", "dropout", "evidential"}  # of which the page repeats no claim about more data
TOO_SURE = "What they call noise may be error that more data removes."
TOO_UNSURE = "Their noise, their disagreement, or both are larger than they should be; the targets do not tell which."
HOW = "“uqprism audit” measures on the training data what more rows remove."
BARE = (
    "This page does not say what more data would bring, because nothing is known of these models: neither what they are "
    "(--models) nor, without targets (--target), how right they were."
)


@dataclass(frozen=True)
class Contradiction:
    """What happened that the models did not expect.

    Attributes:
        what: as part of a sentence.
        too_sure: whether the models are surer than they should be; otherwise they are less sure than they could be.
    """

    what: str
    too_sure: bool


@dataclass(frozen=True)
class Claim:
    """What may be said about more data.

    Attributes:
        kind: what the members are, one of `uqprism.ensemble.origin.KINDS`.
        contradiction: what happened that the models did not expect, or None.
        audit: promised against realised on data like these, if an audit was given.
        is_checked: whether targets were there to contradict the models.
    """

    kind: str = UNKNOWN_KIND
    contradiction: Contradiction | None = None
    audit: Promise | None = None
    is_checked: bool = True

    @property
    def stands(self) -> bool:
        """Whether the page repeats what the models say about more data."""
        return self.contradiction is None and self.kind not in NO_PROMISE and not self.is_bare

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known of the models: neither what they are, nor what happened."""
        return self.kind == UNKNOWN_KIND and not self.is_checked

    @property
    def withheld(self) -> str:
        """Why the page says nothing about more data; empty if it does."""
        if self.audit is not None:
            return ""
        if self.is_bare:
            return f"{BARE} {HOW}"
        if self.contradiction is None:
            return ""
        return (
            "This page does not say what more data would bring, because the targets contradict the models: "
            f"{self.contradiction.what}. {TOO_SURE if self.contradiction.too_sure else TOO_UNSURE} {HOW}"
        )

    @property
    def caveat(self) -> str:
        """How far the disagreement of such models was right about more data, where it was checked."""
        if self.audit is not None:
            against = "" if self.contradiction is None else f" The targets contradict the models: {self.contradiction.what}."
            return f"{audited(self.audit)}{against}"
        nature, kept = NATURE.get(self.kind, ""), KEPT.get(self.kind)
        if kept is None:
            return f"{nature} {HOW}".strip() if nature else f"Whether more data does what these models say was not checked. {HOW}"
        return f"{nature} {checked(kept)} {HOW}".strip()


def checked(kept: Kept) -> str:
    """What audits of such models on other data found."""
    middle, low, high = (f"{share:.2f}".replace("-", MINUS) for share in (kept.middle, kept.low, kept.high))
    return (
        f"Where such models were audited ({kept.sets} data sets), twice the rows removed {middle} of the disagreement from the "
        f"penalty ({low} to {high})."
    )


def audited(promise: Promise) -> str:
    """What an audit on data like these found."""
    twice, four = (_with_ends(*promise.after(growth)) for growth in (2.0, 4.0))
    gone = percent(max(promise.noise_gone, 0.0))
    rising = "" if promise.settled else f" {RISING}"
    return (
        f"In an audit of such models on {promise.sizes[0]:,} to {promise.sizes[-1]:,} rows, twice the rows remove {twice} of the "
        f"disagreement from the penalty, and four times {four}; of what was called noise at first, {gone} was gone at last."
        f"{rising}"
    )


def _with_ends(value: float, low: float, high: float) -> str:
    text = f"{value:.2f}" if math.isnan(low) else f"{value:.2f} ({low:.2f} to {high:.2f})"
    return text.replace("-", MINUS)


def contradiction(parts: Parts, realised: RealisedPenalty | None, calibration: Calibration | None) -> Contradiction | None:
    """What the targets say against the models; None if they agree, or differ little."""
    if realised is not None and realised.beyond_chance and parts.has_shares and _is_material(realised):
        came, expected = amounts([parts.shown(realised.realised), parts.shown(realised.expected)], parts.shown_unit)
        return Contradiction(
            f"predictions were off by {came} where {expected} was expected", realised.realised > realised.expected
        )
    if calibration is not None and calibration.verdict(LEVEL) != "about right":
        inside = float(calibration.coverage(LEVEL)[0])
        if abs(inside - LEVEL) > MATERIAL_COVERAGE:
            what = f"intervals for {percent(LEVEL)} of the targets hold {100.0 * inside:.1f}{SPACE}%"
            return Contradiction(what, inside < LEVEL)
    return None


def _is_material(found: RealisedPenalty) -> bool:
    return abs(found.realised - found.expected) > MATERIAL_PENALTY * abs(found.expected)

"""Why a row is uncertain, in plain words: noise, disagreement, or an input that may be unfamiliar."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from uqprism.measures import RISKS
from uqprism.measures.vocabulary import rule_words

NOISE, DISAGREEMENT, UNFAMILIAR = "noise", "disagreement", "unfamiliar"
KINDS = (NOISE, DISAGREEMENT, UNFAMILIAR)
FAR = 10.0  # times the median disagreement
RULE = "crps"  # whose parts tell the reason where those of the measure's own rule may be negative


def parts_of(measure: str) -> tuple[str, str]:
    """The measures of noise and of disagreement that tell why this one is large."""
    rule, risk, *roles = [*measure.split("."), ""]
    roles = [role for role in roles if role]
    if not roles or risk not in RISKS or rule_words(rule).may_be_negative:
        rule, roles = RULE, ["members"]
    prediction, truth = roles if len(roles) == 2 else ("members", roles[0])
    return f"{rule}.bayes.{truth}", f"{rule}.excess.{prediction}.{truth}"


def risk_of(measure: str) -> str:
    """The risk of a measure; `total` for another column."""
    found = measure.partition(".")[2].partition(".")[0]
    return found if found in RISKS else "total"


def available_parts(measure: str, names: Collection[str]) -> tuple[str, str] | None:
    """The same if these columns are among the names, otherwise those of the CRPS; None if neither are."""
    for parts in (parts_of(measure), parts_of("")):
        if set(parts) <= set(names):
            return parts
    return None


@dataclass(frozen=True)
class Reasons:
    """What noise and disagreement are usual, which are the medians over all rows, to compare single rows with.

    The reason of a row is

    - `unfamiliar` where the disagreement is both larger than the noise and at least ten times its median: the models contradict
      each other, as they do for inputs unlike their training data;
    - otherwise `noise` or `disagreement`, whichever is further above its median, in the units of the measure.

    A row that is flagged by a Bayes risk is flagged for noise, and by an excess risk never for noise.

    Attributes:
        noise: the median noise.
        disagreement: the median disagreement.
        risk: of the measure that rows are flagged by; `total` also for columns that are no measures.
    """

    noise: float
    disagreement: float
    risk: str = "total"

    def kinds(self, noise: np.ndarray, disagreement: np.ndarray) -> np.ndarray:
        """One of `KINDS` for each row, (rows,)."""
        if self.risk == "bayes":
            return np.full(len(noise), NOISE)
        unfamiliar = (disagreement > noise) & (disagreement >= FAR * self.disagreement)
        # Not by the larger factor: the two add up to what the row is flagged for.
        more_noise = noise - self.noise >= disagreement - self.disagreement
        return np.where(unfamiliar, UNFAMILIAR, np.where(more_noise & (self.risk != "excess"), NOISE, DISAGREEMENT))

    def sentences(self, noise: np.ndarray, disagreement: np.ndarray) -> np.ndarray:
        """The reason of each row in words, (rows,): `noise: 3.2 times what is usual here`."""
        found = np.empty(len(noise), dtype=object)
        kinds = self.kinds(noise, disagreement).tolist()
        of_noise, of_disagreement = _times(noise, self.noise), _times(disagreement, self.disagreement)
        for i, kind in enumerate(kinds):
            if kind == NOISE:
                found[i] = f"noise: {_told(of_noise[i])}"
            elif kind == DISAGREEMENT:
                found[i] = f"disagreement between the models: {_told(of_disagreement[i])}"
            else:
                found[i] = f"unfamiliar: the models contradict each other, disagreement {_told(of_disagreement[i])}"
        return found


def _times(values: np.ndarray, usual: float) -> np.ndarray:
    """How many times the usual value; infinite above a usual value of zero, and one at it."""
    if usual > 0.0:
        return values / usual
    return np.where(values > 0.0, np.inf, 1.0)


def _told(times: float) -> str:
    if np.isinf(times):
        return "where there usually is none"
    return f"{times:.1f} times what is usual here" if times < 10.0 else f"{times:,.0f} times what is usual here"

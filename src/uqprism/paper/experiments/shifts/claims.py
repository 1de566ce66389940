"""The paper's sentences on the shifts, compared with exact numbers.

A change is relative to the size of the number before the shift. As in the paper's figure, less than 1 % counts as none. Words
that the paper gives no number for:

| word | holds if |
|---|---|
| very low magnitudes | below a tenth of the Bayes risk of the members under the same rule: the figure shows both on one axis |
| often much lower | below a quarter of that Bayes risk, in more than half of all excess risks and settings |
| scale most | the largest change of four is that under the means' spread, for every excess risk that changes |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.measures import Measure, published
from uqprism.paper.experiment import Claim

ORIGINAL = "original"
SHIFTS = ("means move", "variances move", "means spread", "variances spread")
NONE = 0.01  # smaller changes count as none, as in the paper's figure
LOW, LOWER = 0.1, 0.25

FILLED = [Measure.parse(name) for name in published.table("ood_detection_mean")]
TINY = ("excess.mixture.matched", "excess.mixture.pooled")


@dataclass(frozen=True)
class Answers:
    """Each measure under the original posterior and its four shifts, (5,)."""

    values: Mapping[str, np.ndarray]

    def change(self, measure: str | Measure, shift: str) -> float:
        """Relative change of a measure under a shift; 0 if it is zero before and after."""
        before, after = self.values[str(measure)][[0, 1 + SHIFTS.index(shift)]]
        return 0.0 if before == after else float((after - before) / abs(before))

    def changes(self, measures: Iterable[str | Measure], shift: str) -> dict[str, float]:
        """The changes of several measures, by name."""
        return {str(measure): self.change(measure, shift) for measure in measures}

    def rows(self) -> list[dict[str, Any]]:
        """A table with a row per measure."""
        return [
            {
                "measure": name,
                "label": published.label(name),
                ORIGINAL: float(values[0]) + 0.0,  # no negative zeros
                **{shift: self.change(name, shift) for shift in SHIFTS},
            }
            for name, values in self.values.items()
        ]


def all_claims(answers: Answers) -> tuple[Claim, ...]:
    """All claims, in the paper's order."""
    return (
        nothing_changes(answers),
        noise_rises(answers),
        excess_falls_or_stays(answers),
        tiny_excess_stays(answers),
        squared_error_stays(answers),
        invariant_to_spread(answers),
        others_rise(answers),
        variance_spread(answers),
        low_magnitudes(answers),
        lower_than_bayes(answers),
        most_by_spread(answers),
    )


def of(*, risks: Iterable[str], rules: Iterable[str] = tuple(published.RULES.values())) -> list[Measure]:
    """The paper's filled cells of these risks and rules."""
    return [measure for measure in FILLED if measure.risk in set(risks) and measure.rule in set(rules)]


def nothing_changes(answers: Answers) -> Claim:
    """No measure changes when all means move."""
    filled, every = (_largest(answers.changes(names, SHIFTS[0])) for names in (FILLED, answers.values))
    return Claim(
        "means move: nothing changes",
        "“None of the measures considered changes under this shift.”",
        filled < NONE,
        f"largest relative change {filled:.1g}, rounding; of all {len(answers.values)} measures {every:.1g}",
        {"largest_change": filled, "largest_change_of_all": every},
    )


def noise_rises(answers: Answers) -> Claim:
    """Total and Bayes risks rise with the variances."""
    changes = answers.changes(of(risks=("total", "bayes")), SHIFTS[1])
    lowest = min(changes.values())
    return Claim(
        "variances move: total and Bayes rise",
        "“It is expected that all uncertainty measures increase under such a shift. However, we observe that excess risk "
        "measures [do not]”",
        lowest > NONE,
        f"total and Bayes risks rise by {lowest:.1%} to {max(changes.values()):.1%}",
        {"lowest_change": lowest, "highest_change": max(changes.values())},
    )


def excess_falls_or_stays(answers: Answers) -> Claim:
    """No excess risk rises with the variances."""
    changes = answers.changes(of(risks=("excess",)), SHIFTS[1])
    highest = max(changes.values())
    falling = sum(change < -NONE for change in changes.values())
    return Claim(
        "variances move: no excess rises",
        "“excess risk measures either decrease or stay the same”",
        highest < NONE,
        f"of {len(changes)} excess risks {falling} fall, by {-max(c for c in changes.values() if c < -NONE):.0%} to "
        f"{-min(changes.values()):.0%}; largest rise {abs(highest):.1g}",
        {"highest_change": highest, "lowest_change": min(changes.values()), "falling": falling, "count": len(changes)},
    )


def tiny_excess_stays(answers: Answers) -> Claim:
    """Excess 3a,2 under CRPS and the quadratic score; the paper's bars are too small to show a change."""
    names = [f"{rule}.excess.mixture.matched" for rule in ("crps", "quadratic")]
    changes = answers.changes(names, SHIFTS[1])
    shown = [
        f"{name.split('.')[0]} from {answers.values[name][0]:.2e} to {answers.values[name][2]:.2e}, by {-change:.0%}"
        for name, change in changes.items()
    ]
    return Claim(
        "variances move: excess 3a,2 stays",
        "“stay the same (for R_exc^{3a,2} under CRPS and Quadratic [...])”",
        _largest(changes) < NONE,
        f"they fall: {'; '.join(shown)}; they only look the same because they are tiny",
        {f"{name}.change": change for name, change in changes.items()},
    )


def squared_error_stays(answers: Answers) -> Claim:
    """Excess risks of squared error depend only on the means."""
    largest = _largest(answers.changes(of(risks=("excess",), rules=("squared_error",)), SHIFTS[1]))
    return Claim(
        "variances move: squared error's excess stays",
        "“stay the same ([...] for all excess risks under SE score)”",
        largest < NONE,
        f"largest relative change {largest:.1g}",
        {"largest_change": largest},
    )


def _unmoved() -> list[str]:
    bayes = [measure.name for measure in of(risks=("bayes",)) if measure.truth in {"members", "pooled"}]
    return [*bayes, "squared_error.total.mixture.pooled"]


def invariant_to_spread(answers: Answers) -> Claim:
    """Bayes risks of members and of the pooled Gaussian do not depend on the means."""
    changes = answers.changes(_unmoved(), SHIFTS[2])
    return Claim(
        "means spread: invariant measures",
        "“R_Bayes^{1} and R_Bayes^{3b} under all scores are invariant under such a shift, the same for R_tot^{3b,2} under SE”",
        _largest(changes) < NONE,
        f"largest relative change of these {len(changes)}: {_largest(changes):.1g}",
        {"largest_change": _largest(changes)},
    )


def others_rise(answers: Answers) -> Claim:
    """All other measures rise when the means spread."""
    unmoved = set(_unmoved())
    changes = answers.changes([measure for measure in FILLED if measure.name not in unmoved], SHIFTS[2])
    lowest = min(changes, key=lambda name: changes[name])
    every = answers.changes(answers.values, SHIFTS[2])
    still = [name for name, change in every.items() if abs(change) < NONE and np.any(answers.values[name])]
    return Claim(
        "means spread: all others rise",
        "“All other measures increase under the scale shift in the predicted means as expected.”",
        changes[lowest] > NONE,
        f"the other {len(changes)} rise by at least {changes[lowest]:.1%} ({lowest}); of all {len(every)} measures none falls by "
        f"more than {abs(min(*every.values(), 0.0)):.1g}, and {len(still)} that are not zero stay",
        {"lowest_change": changes[lowest], "lowest_change_of_all": min(every.values()), "unchanged_of_all": len(still)},
    )


def variance_spread(answers: Answers) -> Claim:
    """Total and excess risks rise and Bayes risks stay when the variances spread, as the paper expects."""
    uncertain = answers.changes(of(risks=("total", "excess")), SHIFTS[3])
    noise = answers.changes(of(risks=("bayes",)), SHIFTS[3])
    rising = sum(change > NONE for change in uncertain.values())
    falling = [name for name, change in uncertain.items() if change < -NONE]
    steady = sum(abs(change) < NONE for change in noise.values())
    return Claim(
        "variances spread: as expected",
        "“It is expected that total and epistemic uncertainty increase under such a shift, but that the aleatoric uncertainty "
        "stays the same.”",
        rising == len(uncertain) and steady == len(noise),
        f"of {len(uncertain)} total and excess risks {rising} rise, {len(falling)} fall ({', '.join(falling)}), the others, "
        f"squared error's among them, change by less than {NONE:.0%}; of {len(noise)} Bayes risks {steady} stay, the others "
        f"fall, by up to {-min(noise.values()):.1%}",
        {"rising": rising, "falling": len(falling), "count": len(uncertain), "bayes_steady": steady, "bayes_count": len(noise)},
    )


def low_magnitudes(answers: Answers) -> Claim:
    """Excess risks between the mixture and its surrogates are very low."""
    ratios, to_excess = {}, {}
    for rule in ("crps", "log", "quadratic"):
        for kind in TINY:
            size = np.abs(answers.values[f"{rule}.{kind}"])
            ratios[f"{rule}.{kind}"] = float(np.max(size / np.abs(answers.values[f"{rule}.bayes.members"])))
            to_excess[f"{rule}.{kind}"] = float(np.max(size / answers.values[f"{rule}.excess.members.members"]))
    zero = max(float(np.abs(answers.values[f"squared_error.{kind}"]).max()) for kind in TINY)
    highest = {kind: max(ratios[name] for name in ratios if name.endswith(kind)) for kind in TINY}
    return Claim(
        "all shifts: excess 3a,2 and 3b,2 are low",
        "“Across all shifts, we observe that R_exc^{3a,2} and R_exc^{3b,2} have very low magnitudes, and for the SE score, they "
        "are equal to zero.”",
        max(ratios.values()) < LOW and zero == 0.0,  # exact: mixture, matched and pooled Gaussian have one mean
        f"at most {highest[TINY[0]]:.1%} (3a,2) and {highest[TINY[1]]:.1%} (3b,2) of the members' Bayes risk under the same rule "
        f"(below {LOW:.0%} counts as very low); of excess 1,1 up to {max(to_excess.values()):.0%}; squared error: {zero:g}",
        {"largest_of_bayes": max(ratios.values()), "largest_of_excess": max(to_excess.values()), "squared_error": zero},
    )


def lower_than_bayes(answers: Answers) -> Claim:
    """Excess risks are often lower than Bayes risks."""
    ratios = np.concatenate(
        [
            # Bayes risks of the quadratic score are negative.
            answers.values[measure.name] / np.abs(answers.values[f"{measure.rule}.bayes.members"])
            for measure in of(risks=("excess",))
        ]
    )
    share = float((ratios < LOWER).mean())
    return Claim(
        "all shifts: excess below Bayes",
        "“the magnitude of the excess risks is often much lower than the Bayes risks”",
        share > 0.5,
        f"median of excess over the members' Bayes risk {np.median(ratios):.2f}; below {LOWER:g} in {share:.0%} of all cases, "
        f"above 1 in {(ratios > 1.0).mean():.0%}",
        {"median_ratio": float(np.median(ratios)), "share_much_lower": share, "share_above": float((ratios > 1.0).mean())},
    )


def most_by_spread(answers: Answers) -> Claim:
    """Excess risks change most when the means spread."""
    names = [measure.name for measure in of(risks=("excess",))]
    most = [name for name in names if _strongest(answers, name) == SHIFTS[2]]
    changes = answers.changes(names, SHIFTS[2])
    return Claim(
        "all shifts: excess answers most to the means' spread",
        "“they scale most with the mean scale shift, which is expected”",
        len(most) == len(names),
        f"for {len(most)} of {len(names)} excess risks; they become {1 + min(changes.values()):.1f} to "
        f"{1 + max(changes.values()):,.0f} times as large, in the median {1 + np.median(list(changes.values())):.1f} times",
        {"count": len(most), "of": len(names), "median_change": float(np.median(list(changes.values())))},
    )


def _strongest(answers: Answers, name: str) -> str:
    return max(SHIFTS, key=lambda shift: abs(answers.change(name, shift)))


def _largest(changes: Mapping[str, float]) -> float:
    return max(map(abs, changes.values()))

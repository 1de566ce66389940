"""The summary in sentences: what the numbers mean, whatever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import (
    ONE_MODEL,
    has_shares,
    measure_in_words,
    risk_unit,
    rule_words,
    told_unit,
)
from uqprism.plots.words import ErrorWords, origin
from uqprism.report.words import SPACE, amount, amounts, count, percent, tied
from uqprism.tasks.calibration import Calibration
from uqprism.tasks.result import TaskResult

NOTHING = 1e-9  # of the total: rounding
HANDED_OVER = 10  # percent
UNNOTICED = 0.6  # an AUROC that is little better than a coin toss


@dataclass(frozen=True)
class Parts:
    """Noise and removable part in the numbers that sentences need.

    Attributes:
        rule: of both.
        unit: of the target.
        n_members: how many models, None if nobody knows.
        noise: its mean over the rows.
        removable: likewise.
        n_rows: how many rows.
        mostly_removable: in how many rows the removable part is the larger one.
        half: how few rows hold half of all that is removable.
        noisiest: the number of that row.
        least_known: the number of the row with the largest removable part.
        as_extreme: how many rows share the largest noise, and how many the largest removable part.
        largest: that row's noise, and that row's removable part.
        has_zero: whether zero is the least that noise can be, as far as these rows tell.
    """

    rule: str
    unit: str
    n_members: int | None
    noise: float
    removable: float
    n_rows: int
    mostly_removable: int
    half: int
    noisiest: int
    least_known: int
    as_extreme: tuple[int, int]
    largest: tuple[float, float]
    has_zero: bool

    @classmethod
    def of(
        cls,
        noise: np.ndarray,
        removable: np.ndarray,
        numbers: np.ndarray,
        *,
        rule: str,
        unit: str = "",
        n_members: int | None = None,
    ) -> Parts:
        """From those of each row, and the rows' numbers."""
        running = np.cumsum(np.sort(removable)[::-1])
        return cls(
            rule=rule,
            unit=unit,
            n_members=n_members,
            noise=float(noise.mean()),
            removable=float(removable.mean()),
            n_rows=len(noise),
            mostly_removable=int((removable > noise).sum()),
            half=int(np.searchsorted(running, 0.5 * running[-1]) + 1),
            noisiest=int(numbers[np.argmax(noise)]),
            least_known=int(numbers[np.argmax(removable)]),
            as_extreme=(tied(noise, float(noise.max())), tied(removable, float(removable.max()))),
            largest=(float(noise.max()), float(removable.max())),
            has_zero=has_shares(rule, noise),
        )

    @property
    def total(self) -> float:
        """Their sum."""
        return self.noise + self.removable

    @property
    def has_shares(self) -> bool:
        """Whether it makes sense to say that so much of the total is noise."""
        return self.has_zero and self.total > 0.0

    @property
    def agree(self) -> bool:
        """Whether the models say the same everywhere, up to rounding."""
        return self.removable <= NOTHING * max(abs(self.noise), abs(self.total))

    def told(self, unit: str) -> list[str]:
        """Total, noise and removable part in as many decimals each, so that they add up but for the last."""
        return amounts([self.total, self.noise, self.removable], unit)

    @property
    def risk_unit(self) -> str:
        """What both are in."""
        return risk_unit(self.rule, self.unit)


def overall(parts: Parts) -> str:
    """How much is noise and how much more data would remove."""
    unit, rule = parts.risk_unit, rule_words(parts.rule).name
    several = parts.n_rows > 1
    head = f"Over {count(parts.n_rows, 'row')}" if several else "In the only row"
    alone = parts.n_members == 1 or parts.agree
    total, noise, removable = parts.told(unit) if not alone else (amount(parts.total, unit), "", "")
    head += f" the model{' expects' if parts.n_members == 1 else 's expect'} a penalty ({rule}) of {total}"
    head += " on average" if several else ""
    if parts.n_members == 1:
        return f"{head}, {ONE_MODEL}"
    who = "the models" if parts.n_members is None else count(parts.n_members, "model")
    if parts.agree:
        return (
            f"{head}, all of it noise as far as {who} can tell: they agree everywhere. Models that are copies of each other "
            "agree too, so make sure that they were trained to differ."
        )
    if not parts.has_shares:
        why = "has no natural zero" if rule_words(parts.rule).may_be_negative else "is negative in some rows"
        return (
            f"{head}: {noise} is noise, and {removable} is disagreement between {who}, which more data like these rows would "
            f"remove. The {rule} {why}, so these are no shares of a whole; the CRPS gives shares."
        )
    share = percent(parts.noise / parts.total), percent(parts.removable / parts.total)
    return (
        f"{head}: {noise} of it ({share[0]}) is noise, which more data would not remove, and {removable} ({share[1]}) is "
        f"disagreement between {who}, which more data like these rows would remove."
    )


def penalty(parts: Parts, prediction: str, average: float | None, *, intervals: bool) -> str:
    """What the penalty is, and of which prediction.

    Args:
        parts: of the rows.
        prediction: what stands in for the prediction.
        average: the mean penalty of predicting with the average of the models, if known.
        intervals: whether intervals are shown, which are those of the average.
    """
    words, unit = rule_words(parts.rule), told_unit(parts.rule, parts.unit)
    told = f"The penalty is the {words.name}{f', in {unit}' if unit else ''}: {words.cost}. Lower is better."
    if parts.n_members == 1 or parts.agree or prediction not in approximations:
        return told
    told += f" It is what is expected of predicting with {approximations.get(prediction).prediction}"
    if prediction == "members":
        told += "; predicting with their average costs less"
        told += f", {amount(average, parts.risk_unit)} in place of {amount(parts.total, parts.risk_unit)}" if average else ""
    shown = " The intervals shown are those of the average, and so are errors, unless predictions were given."
    return f"{told}.{shown if intervals else ''}"


ALONE = "What happened is known of one row only: whether uncertainty finds errors, and whether intervals hold, takes more rows."


def rows_of_each_kind(parts: Parts) -> str:
    """In how many rows which part is the larger, and where what is removable lies."""
    if parts.n_members == 1 or parts.agree or parts.n_rows < 2:
        return ""
    told = f"Half of all that more data would remove lies in {count(parts.half, 'row')} ({percent(parts.half / parts.n_rows)})."
    if not parts.has_shares:
        return told
    many, others = parts.mostly_removable, parts.n_rows - parts.mostly_removable
    if many == 0:
        return f"Noise is the larger part in every row. {told}"
    if others == 0:
        return f"What more data would remove is the larger part in every row. {told}"
    return (
        f"In {count(many, 'row')} ({percent(many / parts.n_rows)}) more data would remove the larger part of the uncertainty; "
        f"in the other {others:,} noise is the larger part. {told}"
    )


def rows_to_look_at(parts: Parts) -> str:
    """Which rows are the most uncertain of each kind."""
    if parts.n_rows < 2:
        return ""
    noise, removable = (amount(value, parts.risk_unit) for value in parts.largest)
    many = parts.as_extreme[0]
    noisiest = f"the noisiest is row {parts.noisiest} (noise {noise})"
    if many > 1:
        noisiest = f"{'all' if many == parts.n_rows else f'{many:,}'} rows share the largest noise ({noise})"
    if parts.n_members == 1 or parts.agree:
        return f"{noisiest[0].upper()}{noisiest[1:]}."
    ties = f" and {parts.as_extreme[1] - 1:,} as high" if parts.as_extreme[1] > 1 else ""
    return f"More data would help most at rows like row {parts.least_known}{ties} (removable part {removable}); {noisiest}."


def handing_over(result: TaskResult, measure: str, words: ErrorWords) -> str:
    """What handing over the most uncertain tenth does to the error."""
    n_rows, mean = int(result.settings["points"]), float(result.settings["mean_error"])
    before = float(words.shown(mean))
    start = f"The {words.name} is {amount(before, words.unit)}."
    if n_rows < HANDED_OVER:
        return f"{start} With {count(n_rows, 'row')} there is no tenth to hand over."
    after = float(words.shown(result.metrics[f"error_at_{100 - HANDED_OVER}"][measure]))
    which = f"the {HANDED_OVER} % most uncertain rows (by {measure_in_words(measure) or measure})"
    if not after < before:
        doubt = "here the uncertainty does not tell where errors are large"
        return f"{start} Without {which} it would be {amount(after, words.unit)}: {doubt}."
    fall = f", {percent(1.0 - after / before)} less" if after > 0.0 else ""
    return (
        f"{start} Handing over {which} lowers it to {amount(after, words.unit)}{fall}; handing over as many at random would "
        "not lower it."
    )


def calibrated(found: Calibration, level: float = 0.9) -> str:
    """Whether intervals hold as many targets as they say."""
    inside, (low, high) = float(found.coverage(level)[0]), found.by_chance(level)
    verdict = found.verdict(level)
    meaning = {
        "too narrow": "the predictions are surer than they should be",
        "too wide": "the predictions are less sure than they could be",
        "about right": "as promised, as far as these rows can tell",
    }[verdict]
    return (
        f"Intervals that should hold {percent(level)} of the targets hold {_exact(inside)} (chance alone: "
        f"{_exact(float(low[0]))} to {_exact(float(high[0]))}): {verdict}, {meaning}."
    )


def _exact(share: float) -> str:
    return f"{100.0 * share:.1f}{SPACE}%"


def detected(result: TaskResult, measure: str, name: str = "outside") -> str:
    """How well rows from outside are told from the known ones, for each data set; `name` is that of a single one."""
    parts: Mapping[str, TaskResult] = result.parts or {name: result}
    told: list[str] = []
    for each, part in parts.items():
        ends = part.interval()[measure] if part.has_spread else None
        between = f", 95 % interval {ends[0]:.3f} to {ends[1]:.3f}" if ends and ends[0] < ends[1] else ""
        rows = count(int(part.settings["points_out"]), "row")
        often = f"{percent(part[measure])} of the time (AUROC {part[measure]:.3f}{between})"
        where = origin(each)
        head = f"one from {where} ({rows})" if told else f"a row from {where} ({rows}) looks more uncertain than a known one"
        told.append(f"{head} {often}")
    what = f"the {measure_in_words(measure)}" if measure_in_words(measure) else measure
    listed = ", ".join(told)
    poor = {each: part for each, part in parts.items() if part[measure] <= UNNOTICED}
    verdicts = "".join(f" {_unnoticed(origin(each), part, measure)}" for each, part in poor.items())
    return f"{listed[0].upper()}{listed[1:]}. That is judged by {what}; a coin toss would give 50{SPACE}%.{verdicts}"


def _unnoticed(where: str, result: TaskResult, measure: str) -> str:
    """What an AUROC near or below a half means."""
    if result[measure] < 0.5 and not (result.has_spread and result.interval()[measure][1] >= 0.5):
        return f"So rows from {where} look more certain than known rows, which is worse than not being noticed."
    return f"So rows from {where} are not noticed."


def elsewhere(known: Parts, outside: Mapping[str, Parts]) -> str:
    """How much more data would remove in rows from outside, against the known ones."""
    if known.n_members == 1 or not outside:
        return ""
    shares = all(each.has_shares for each in (known, *outside.values()))

    def told(each: Parts) -> str:
        return percent(each.removable / each.total) if shares else amount(each.removable, each.risk_unit)

    first, *others = [(f"n rows from {origin(name)}", told(each)) for name, each in outside.items()]
    head = f"I{first[0]} more data like them would remove {first[1]} of the expected penalty"
    return f"{head}{''.join(f', i{where} {much}' for where, much in others)}; in the known rows {told(known)}."


def left_out(lacking: int, given: int) -> str:
    """How many rows the numbers are not of."""
    why = "because they lack a number or have one that cannot be"
    return f"{lacking:,} of {count(given, 'row')} {'is' if lacking == 1 else 'are'} left out, {why}." if lacking else ""

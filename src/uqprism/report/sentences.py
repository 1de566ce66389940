"""What the findings mean, in sentences for people who know nothing about scoring rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uqprism.ensemble.approximations import approximations
from uqprism.measures.vocabulary import ONE_MODEL, measure_in_words, rule_words, unit_in_words
from uqprism.plots.words import UNNAMED, ErrorWords, from_set
from uqprism.report.claims import Claim
from uqprism.report.findings import OOD, SELECTIVE, Missed, Parts, RealisedPenalty, ReportFindings
from uqprism.report.formatting import SPACE, amount, amounts, count, percent
from uqprism.report.subject import Subject
from uqprism.tasks.calibration import Calibration
from uqprism.tasks.flagging import Flagged
from uqprism.tasks.result import TaskResult

HANDED_OVER = 10  # percent
UNNOTICED = 0.6  # an AUROC up to this is little better than guessing
STAYS, COULD_GO = ", which they say more data would not reduce", ", which they say more data like these rows could reduce"
ANY = Claim()  # of models of which nothing is known
LITTLE = 0.05  # of the penalty: below this share, less disagreement would hardly change it
ONE_ROW = "Only one row has a target. Whether uncertainty finds errors, and whether intervals hold, takes more rows."


def summary(subject: Subject, findings: ReportFindings) -> dict[str, str]:
    """The summary of a report, a sentence or two for each subject that there is something to say about."""
    parts, found = findings.parts, {}
    found["split"] = split(parts, findings.claim)
    if not (parts.is_one_model or parts.agree):
        found["claim"] = findings.claim.withheld or findings.claim.caveat
    if findings.realised is not None:
        found["realised"] = realised(findings.realised, parts)
    found["kinds"] = rows_of_each_kind(parts)
    found["rows"] = rows_to_look_at(parts, findings.claim)
    if SELECTIVE in findings.results:
        found["errors"] = handing_over(findings.results[SELECTIVE], findings.leads[SELECTIVE], subject.error_words)
        found["errors"] += tied_tenth(findings.tenth)
    elif subject.n_rows < 2 and subject.target is not None:
        found["errors"] = ONE_ROW
    if findings.calibration is not None:
        found["calibration"] = calibrated(findings.calibration)
    found["ood"] = disagreement_on_ood(parts, findings.ood)
    if OOD in findings.results:
        found["detection"] = detected(findings.results[OOD], findings.leads[OOD], next(iter(subject.ood)))
    found["missed"] = missed(findings.missed)
    found["left_out"] = left_out(subject.n_given - subject.n_rows, subject.n_given)
    return {name: sentence for name, sentence in found.items() if sentence}


def split(parts: Parts, claim: Claim = ANY) -> str:
    """How uncertain the predictions are, and how that divides into noise and disagreement: the first sentence of the page.

    What the models say about more data is repeated only where the claim stands.
    """
    stays, could_go = (STAYS, COULD_GO) if claim.stands else ("", "")
    whose = "this model" if parts.is_one_model else f"these {f'{parts.n_members:,} ' if parts.n_members else ''}models"
    several, unit = parts.n_rows > 1, parts.shown_unit
    size = amount(parts.shown(parts.total), unit)
    of = f" of {parts.target}" if parts.target else ""
    by = " by one of them" if parts.prediction == "members" and not parts.is_one_model and not parts.agree else ""
    what = f"{'' if several else 'in the only row '}a prediction{of}{by} is"
    head = f"According to {whose}, {what} uncertain by {size}{' on average' if several else ''}"
    if parts.total == 0.0:
        return f"According to {whose}, {what} not uncertain at all: no noise, and no disagreement."
    if parts.is_one_model:
        return f"{head}, {ONE_MODEL}"
    if parts.agree:
        return f"{head}, all of it noise: they agree in every row, as copies of one model would."
    if not parts.has_shares:
        total, bayes, excess = amounts([parts.total, parts.bayes, parts.excess], unit)
        rule = rule_words(parts.rule).name
        penalty = (
            f"the expected penalty ({rule}) {'is' if several else 'of the only row is'} {total}{' on average' if several else ''}"
        )
        return f"According to {whose}, {penalty}: {bayes} is noise, and {excess} is disagreement between them{could_go}."
    bayes, excess = map(percent, parts.shares)
    this = "of the squared error" if parts.is_square else "of this"
    return f"{head}: {bayes} {this} is noise{stays}, and {excess} is disagreement between them{could_go}."


def amounts_of(parts: Parts) -> tuple[str, str]:
    """The mean noise and the mean disagreement with their unit, as the page shows them."""
    bayes, excess = amounts([parts.shown(parts.bayes), parts.shown(parts.excess)], parts.shown_unit)
    return bayes, excess


def penalty(parts: Parts, prediction: str, average: float | None, *, intervals: bool) -> str:
    """How uncertainty is counted, and of which prediction.

    Args:
        parts: of the rows.
        prediction: the approximation of the prediction.
        average: the mean penalty of predicting with the average of the models, if known.
        intervals: whether intervals are shown, which are those of the average.
    """
    words, unit = rule_words(parts.rule), unit_in_words(parts.rule, parts.unit)
    counted = f"expected {words.name}{f', in {unit}' if unit else ''}"
    counted = f"root of the expected {words.name}" if parts.is_square else counted
    text = f"Uncertainty is counted as the {counted}: {words.cost}. Lower is better."
    if not parts.has_shares and parts.total != 0.0:
        why = "has no natural zero" if words.may_be_negative else "is negative in some rows"
        text += f" The {words.name} {why}, so the parts are not shares of a whole; the CRPS gives shares."
    if parts.is_square:
        text += " Shares are shares of the squared error; the roots of the parts do not add up."
    if parts.is_one_model or parts.agree or prediction not in approximations:
        return text
    text += f" It is that of predicting with {approximations.get(prediction).prediction}"
    if prediction == "members":
        text += "; with their average it is lower"
        before, after = (amount(parts.shown(each), parts.shown_unit) for each in (parts.total, average or 0.0))
        text += f", {after} instead of {before}" if average else ""
    shown = " The intervals shown are those of the average, and so are the errors, unless predictions were given."
    return f"{text}.{shown if intervals else ''}"


def realised(found: RealisedPenalty, parts: Parts) -> str:
    """Whether the penalty was as large as expected."""
    who = "the model" if parts.is_one_model else "the average of the models"
    expected, came = amounts([parts.shown(found.expected), parts.shown(found.realised)], parts.shown_unit)
    counted = "root mean squared error" if parts.is_square else f"mean {rule_words(parts.rule).name}"
    head = f"With the targets known, {who} turned out to be off by {came} ({counted}), and {expected} was expected"
    if not found.beyond_chance:
        return f"{head}: the difference is within chance."
    sure = "surer than they should be, or off" if found.realised > found.expected else "less sure than they could be"
    return f"{head}: the difference is larger than chance explains, so the predictions are {sure}."


def rows_of_each_kind(parts: Parts) -> str:
    """In how many rows which part is the larger, and how few rows hold half of the disagreement."""
    if parts.is_one_model or parts.agree or parts.n_rows < 2:
        return ""
    half = f"Half of all disagreement is in {count(parts.half, 'row')} ({percent(parts.half / parts.n_rows)})."
    if not parts.has_shares:
        return half
    many, others = parts.mostly_excess, parts.n_rows - parts.mostly_excess
    if many == 0:
        return f"Noise is the larger part in every row. {half}"
    if others == 0:
        return f"Disagreement is the larger part in every row. {half}"
    return (
        f"In {count(many, 'row')} ({percent(many / parts.n_rows)}) disagreement is the larger part of the uncertainty; in the "
        f"other {others:,} noise is the larger part. {half}"
    )


def rows_to_look_at(parts: Parts, claim: Claim = ANY) -> str:
    """Which rows are the most uncertain of each kind."""
    if parts.n_rows < 2:
        return ""
    bayes, excess = (amount(parts.shown(value), parts.shown_unit) for value in parts.largest)
    many = parts.as_extreme[0]
    noisiest = f"The noise is largest in {parts.noisiest} ({bayes})."
    if many > 1:
        noisiest = f"{'All' if many == parts.n_rows else f'{many:,}'} rows share the largest noise ({bayes})."
    if parts.is_one_model or parts.agree:
        return noisiest
    ties = f", and as much in {count(parts.as_extreme[1] - 1, 'other row')}" if parts.as_extreme[1] > 1 else ""
    most = ": by their estimate, more data like it could help most" if claim.stands else ""
    return f"The models disagree most in {parts.least_known}{ties} ({excess}){most}. {noisiest}"


def handing_over(result: TaskResult, measure: str, words: ErrorWords) -> str:
    """What handing over the most uncertain tenth does to the error."""
    n_rows, mean = int(result.settings["points"]), float(result.settings["mean_error"])
    before = float(words.shown(mean))
    start = f"The {words.name} is {amount(before, words.unit)}."
    if n_rows < HANDED_OVER:
        return f"{start} With {count(n_rows, 'row')} there is no tenth to hand over."
    after = float(words.shown(result.metrics[f"error_at_{100 - HANDED_OVER}"][measure]))
    which = f"the {HANDED_OVER}{SPACE}% most uncertain rows (by {measure_in_words(measure) or measure})"
    if not after < before:
        doubt = "here the uncertainty does not tell where errors are large"
        return f"{start} Without {which} it would be {amount(after, words.unit)}: {doubt}."
    fall = f", {percent(1.0 - after / before)} less" if after > 0.0 else ""
    return (
        f"{start} Handing over {which} lowers it to {amount(after, words.unit)}{fall}; handing over as many at random would "
        "not lower it."
    )


def tied_tenth(tenth: Flagged | None) -> str:
    """Why a threshold cannot hand over a tenth, where rows tie."""
    if tenth is None or not tenth.tied:
        return ""
    return (
        f" Many rows share their value, so a threshold hands over {percent(tenth.share)} at least; the "
        f"{HANDED_OVER}{SPACE}% are picked among them at random."
    )


def calibrated(found: Calibration, level: float = 0.9) -> str:
    """Whether intervals hold as many targets as they promise."""
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


def disagreement_on_ood(known: Parts, others: Mapping[str, Parts]) -> str:
    """How much disagreement there is on unfamiliar inputs, beside that in the known rows."""
    if known.is_one_model or not others:
        return ""
    # Shares are compared only where every data set has them.
    shares = all(each.has_shares for each in (known, *others.values()))

    def much(each: Parts) -> str:
        return percent(each.shares[1]) if shares else amount(each.shown(each.excess), each.shown_unit)

    listed = [f"{much(each)} in rows {from_set(name)}" for name, each in others.items()]
    if shares:
        listed[0] = listed[0].replace(" in rows", " of the uncertainty in rows", 1)
    return f"Disagreement {'makes up' if shares else 'is'} {', '.join(listed)}, and {much(known)} in the known rows."


def detected(result: TaskResult, measure: str, name: str = UNNAMED) -> str:
    """How well unfamiliar rows are told from the known ones, for each data set; `name` is that of a single one."""
    parts: Mapping[str, TaskResult] = result.parts or {name: result}
    found: list[str] = []
    for each, part in parts.items():
        ends = part.interval()[measure] if part.has_spread else None
        between = f", 95 % interval {ends[0]:.3f} to {ends[1]:.3f}" if ends and ends[0] < ends[1] else ""
        often = f"{percent(part[measure])} of the time (AUROC {part[measure]:.3f}{between})"
        where = f"{from_set(each)} ({count(int(part.settings['points_out']), 'row')})"
        found.append(f"one {where} {often}" if found else f"A row {where} looks more uncertain than a known row {often}")
    words = measure_in_words(measure)
    verdicts = "".join(
        f" {_unnoticed(from_set(each), part, measure)}" for each, part in parts.items() if part[measure] <= UNNOTICED
    )
    by = f"This is judged by {f'the {words}' if words else measure}; guessing would give 50{SPACE}%."
    return f"{', '.join(found)}. {by}{verdicts}"


def _unnoticed(where: str, result: TaskResult, measure: str) -> str:
    """What an AUROC near or below a half means."""
    if result[measure] < 0.5 and not (result.has_spread and result.interval()[measure][1] >= 0.5):
        return f"So rows {where} look more certain than known rows, which is worse than not being noticed."
    return f"So rows {where} are not noticed."


def missed(found: Sequence[Missed]) -> str:
    """Which unfamiliar rows a threshold against large errors lets through, and which measure would catch them."""
    sentences = []
    for each in found:
        helps = each.caught_instead > 0.5  # a measure that misses most of them is no help
        instead = f"one on {named(each.instead)} does ({percent(each.caught_instead)})" if helps else "no measure here does"
        sentences.append(
            f"A threshold on {named(each.by)} that hands over {HANDED_OVER}{SPACE}% of the known rows catches "
            f"{percent(each.caught)} of the rows {from_set(each.name)}; {instead}."
        )
    return " ".join(sentences)


def left_out(lacking: int, given: int) -> str:
    """How many rows were left out."""
    why = "because of missing or invalid numbers"
    return f"{lacking:,} of {count(given, 'row')} {'is' if lacking == 1 else 'are'} left out, {why}." if lacking else ""


def named(measure: str) -> str:
    """A measure within a sentence, with the comma that ends its rule."""
    words = measure_in_words(measure)
    return f"the {words}," if words else measure

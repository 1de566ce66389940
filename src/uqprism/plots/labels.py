"""What metrics are called on axes and in legends."""

from __future__ import annotations

from uqprism.measures.vocabulary import rule_words, told_unit

SHORT = {
    "prr_paper": "PRR",
    "prr": "PRR",
    "aurc": "AURC",
    "ause": "AUSE",
    "auroc": "AUROC",
    "aupr_out": "AUPR",
    "aupr_in": "AUPR",
}
MEANING = {
    "prr_paper": "prediction rejection ratio, 0: oracle, 1: random",
    "prr": "prediction rejection ratio, 1: oracle, 0: random",
    "aurc": "area under the retention curve",
    "ause": "area between retention curve and oracle, 0: oracle",
    "auroc": "area under the ROC curve, 0.5: chance, 1: all told apart",
    "aupr_out": "average precision of finding points from outside",
    "aupr_in": "average precision of finding known points",
    "fpr95": "share of known points flagged with 95 % of those from outside",
    "fpr95_in": "share of points from outside let through with 95 % of the known ones",
    "nll": "negative log-likelihood",
    "rmse": "root mean squared error",
    "crps": "mean CRPS",
}


ERROR_AT = "error_at_"  # and a percentage


def short(metric: str) -> str:
    """A word for a legend."""
    if metric.startswith(ERROR_AT):
        return f"error at {metric.removeprefix(ERROR_AT)} %"
    return SHORT.get(metric, metric.replace("_", " "))


def meaning(metric: str) -> str:
    """What the word means, or the word itself."""
    if metric.startswith(ERROR_AT):
        return f"mean error of the {metric.removeprefix(ERROR_AT)} % most certain points"
    return MEANING.get(metric, short(metric))


def explained(metric: str) -> str:
    """The word and what it means: `PRR: prediction rejection ratio, 0: oracle, 1: random`."""
    return short(metric) if meaning(metric) == short(metric) else f"{short(metric)}: {meaning(metric)}"


def with_direction(metric: str, *, higher_is_better: bool) -> str:
    """The same for an axis."""
    return f"{explained(metric)} ({'higher' if higher_is_better else 'lower'} is better)"


def origin(name: str) -> str:
    """Where rows are from, by the name of their data set; one without a name is called `outside`."""
    return name if name == "outside" else f"“{name}”"


NOISE, EPISTEMIC = "noise (aleatoric)", "disagreement (epistemic)"


def quantity(rule: str, unit: str = "") -> str:
    """What the risks of a rule are in, for an axis: `CRPS, minutes`."""
    return ", ".join(filter(None, (rule_words(rule).name, told_unit(rule, unit))))

"""Rank correlation between measures: Kendall's tau-b between approximations and between scoring rules.

The paper (Section 5.6) uses "the same datasets and models as for selective prediction" and averages over the data sets. This
experiment has the settings of `selective` and reads its ensembles from the folder beside this one; missing ones are trained. Tau-b is taken over the test images of one ensemble, averaged over seeds, then over data sets.

The paper shows the correlations as pictures without numbers. Words that it gives no number for:

| word | holds if |
|---|---|
| very strongly correlated | tau is 0.9 or more under every rule |
| equivalent | tau is 1 up to rounding, 0.9999 or more, under every rule |
| perfectly correlated | tau prints as 1.00 in the figure, 0.995 or more, for every pair of rules |
| overall very high | tau is 0.9 or more for total and Bayes risks: the mean over approximations of one rule, and the lowest over rules for one approximation |
| substantially vary | between rules, tau falls below 0.8 for some approximation of the excess risk |

The sentence says "among approximations", in a paragraph about rules; so it must hold in both readings.
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from uqprism.measures import RISKS, published
from uqprism.paper.comparison import RULES, column, listed, of_risk, short_label
from uqprism.paper.ensembles import StoredEnsemble
from uqprism.paper.experiment import Claim, Experiment, Picture, Result, first_line, register
from uqprism.paper.experiments import selective
from uqprism.paper.experiments.selective import Config
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Bundle, Store, as_data
from uqprism.plots.style import PAGE_WIDTH, styled
from uqprism.tasks.rank_correlation import RankCorrelation, rank_correlation


def jobs(config: Config) -> list[Job]:
    """One job for each ensemble of `selective`."""
    return [replace(job, artefact=Artefact("bundle", job.key)) for job in selective.jobs(config)]


def work(job: Job, store: Store) -> Bundle:
    """Correlate all measures that have a column in the paper's tables."""
    fitted = StoredEnsemble(job.key.fit, store)
    found = rank_correlation(fitted.measures())
    return Bundle({"names": list(found.names), "record": fitted.record().data}, {"matrix": found.matrix})


def gather(config: Config, store: Store) -> Result:
    """Average over seeds, then over data sets, and compare with the paper's sentences."""
    found: dict[str, list[RankCorrelation]] = {}
    records = {}
    for job in jobs(config):
        value = store.get(job.artefact)
        records[job.name] = value.data["record"]
        found.setdefault(job.key.name, []).append(RankCorrelation(tuple(value.data["names"]), value.arrays["matrix"]))
    by_data = {name: RankCorrelation.average(each) for name, each in found.items()}
    # Of means, so that data sets count alike: they have two or five seeds.
    mean = RankCorrelation.average(by_data.values())
    return Result(
        config=as_data(config),
        seeds={"members": {name: record["member seeds"] for name, record in records.items()}},
        claims=all_claims(mean),
        tables=tables(mean, by_data),
        notes=notes(mean),
        arrays={"measures": np.array(mean.names), "tau": mean.matrix},
        data={name: record["data"] for name, record in records.items()},
    )


STRONG, SAME, PERFECT, VARIED = 0.9, 0.9999, 0.995, 0.8
FILLED = published.table("ood_detection_mean")  # all tables leave the same cells blank


def all_claims(mean: RankCorrelation) -> tuple[Claim, ...]:
    """All claims, in the paper's order."""
    return (
        _pair(mean, "R_Bayes^{1} and R_Bayes^{3b}", "is very strongly correlated to", ("bayes 1", "bayes 3b"), STRONG),
        _pair(mean, "R_Bayes^{2} and R_Bayes^{3a}", "is very strongly correlated to", ("bayes 2", "bayes 3a"), STRONG),
        _pair(mean, "R_tot^{1,1} and R_tot^{2,1}", "is equivalent to", ("total 1,1", "total 2,1"), SAME),
        _pair(mean, "R_exc^{1,1} and R_exc^{2,1}", "is equivalent to", ("excess 1,1", "excess 2,1"), SAME),
        _rules(mean, "R_Bayes^{3a} and R_Bayes^{3b}", ("bayes 3a", "bayes 3b"), blank=True),
        _rules(mean, "R_tot^{3a,2}", ("total 3a,2",), blank=False),  # the paper has none under the log score
        overall(mean),
    )


def taus(correlation: RankCorrelation, names: Sequence[str]) -> np.ndarray:
    """Tau of all pairs of these measures, except where a measure is constant."""
    found = np.array([correlation[pair] for pair in combinations(names, 2)])
    return found[~np.isnan(found)]


def _pair(mean: RankCorrelation, name: str, words: str, pair: tuple[str, str], least: float) -> Claim:
    """A claim on two approximations under every rule."""
    found = {rule: mean[column(rule, pair[0]), column(rule, pair[1])] for rule in RULES}
    one, other = name.split(" and ")
    return Claim(
        name=name,
        paper=f"{one} {words} {other}",
        holds=min(found.values()) >= least,
        measured=", ".join(f"{tau:.4f} ({rule})" for rule, tau in found.items()),
        numbers=found,
    )


def _rules(mean: RankCorrelation, name: str, columns: Iterable[str], *, blank: bool) -> Claim:
    """A claim that all rules correlate, for these approximations; without the log score where its cell is blank."""
    found: dict[str, float] = {}
    for each in columns:
        names = {rule: column(rule, each) for rule in RULES if blank or rule != "log"}
        found |= {f"{each}, {a} and {b}": mean[names[a], names[b]] for a, b in combinations(names, 2)}
    lowest = min(found, key=lambda key: found[key])
    with_log = "" if blank else f"; with the log score, too, by our integrals: {_with_log(mean, next(iter(columns))):.4f}"
    return Claim(
        name=f"{name}, all rules alike",
        paper=f"for {name}, all scoring rules are perfectly correlated"
        + ("" if blank else " (for those scoring rules it is computable for)"),
        holds=found[lowest] >= PERFECT,
        measured=f"the lowest of {len(found)} is {found[lowest]:.4f} ({lowest}){with_log}",
        numbers=found,
    )


def _with_log(mean: RankCorrelation, name: str) -> float:
    """The lowest tau between the log score and another rule."""
    return min(mean[column("log", name), column(rule, name)] for rule in RULES if rule != "log")


def overall(mean: RankCorrelation) -> Claim:
    """Only excess risks vary, between approximations of one rule and between rules for one approximation."""
    between: dict[str, list[float]] = {risk: [] for risk in RISKS}
    for each in published.measures(("crps",)):
        names = [name for rule in RULES if (name := each.name.replace("crps", rule, 1)) in FILLED]
        between[each.risk] += list(taus(mean, names))
    lowest = {risk: float(min(found)) for risk, found in between.items()}
    within = {risk: float(np.mean([taus(mean, of_risk(risk, [rule])).mean() for rule in RULES])) for risk in RISKS}
    return Claim(
        name="only excess risks vary",
        paper=(
            "rank correlations are overall very high among approximations of total and Bayes risks and only substantially vary "
            "across excess risks"
        ),
        holds=min(each[risk] for each in (lowest, within) for risk in ("total", "bayes")) >= STRONG and lowest["excess"] < VARIED,
        measured=(
            f"of the cells that the paper fills, between approximations under one rule: mean tau {listed(within)}; "
            f"between rules: lowest tau {listed(lowest)}"
        ),
        numbers={f"lowest_between_rules_{risk}": tau for risk, tau in lowest.items()}
        | {f"mean_between_approximations_{risk}": tau for risk, tau in within.items()},
    )


def tables(mean: RankCorrelation, by_data: Mapping[str, RankCorrelation]) -> dict[str, list[dict[str, Any]]]:
    """The numbers behind both rows of the figure."""
    found: dict[str, list[dict[str, Any]]] = {
        "Between approximations, by rule and risk": [_summary(mean, by_data, rule, risk) for rule in RULES for risk in RISKS],
        "Between rules, by approximation": [_between(mean, measure.name) for measure in published.measures(("crps",))],
    }
    for rule in RULES:
        names = [measure.name for measure in published.measures((rule,))]
        found[f"Between approximations, {rule}"] = [
            {"": published.label(one), **{published.label(other): _shown(mean[one, other]) for other in names}} for one in names
        ]
    return found


def _summary(mean: RankCorrelation, by_data: Mapping[str, RankCorrelation], rule: str, risk: str) -> dict[str, Any]:
    names = of_risk(risk, [rule], filled=False)
    found = taus(mean, names)
    row = {"rule": rule, "risk": risk, "mean": float(found.mean()), "lowest": float(found.min())}
    return row | {name: float(taus(each, names).mean()) for name, each in by_data.items()}


def _between(mean: RankCorrelation, measure: str) -> dict[str, Any]:
    names = {rule: measure.replace("crps", rule, 1) for rule in RULES}
    pairs = {f"{a}, {b}": _shown(mean[names[a], names[b]]) for a, b in combinations(RULES, 2)}
    return {"approximation": published.label(measure), **pairs}


def _shown(tau: float) -> float | None:
    return None if np.isnan(tau) else tau


def notes(mean: RankCorrelation) -> tuple[str, ...]:
    """Notes on the paper's column 2,1, and on correlations that are exact."""
    slip = mean[column("log", "excess 1,1"), column("log", "excess 2,1")]
    return (
        "R_exc^{2,1} is half of R_exc^{1,1} under CRPS, squared error and the quadratic score, so they are equivalent there. "
        "Under the log score R_exc^{1,1} is the mean divergence between members and R_exc^{2,1} that of the mixture from the "
        f"members: other measures, tau {slip:.3f} here. The paper calls them equivalent for all rules, and its tables print one "
        "for the other.",
        "R_Bayes^{3a} and R_Bayes^{3b} are entropies of one Gaussian: increasing functions of its variance under every rule. So "
        "they rank alike, whatever the data. R_tot^{3a,2} is the score of the mixture against a Gaussian of its mean and "
        "variance: it depends on the shape of the mixture too, and is perfectly correlated only as far as mixtures are nearly "
        "Gaussian.",
        "R_exc^{3a,2} and R_exc^{3b,2} under the squared error are zero for every input and have no order: blank.",
    )


NO_ORDER = "#C0C0C0"
ACROSS = 8
DARK = 0.75  # from here on the colour is too dark for black text


def draw(result: Result) -> dict[str, Picture]:
    """The paper's figure: approximations by rule above, rules by approximation below."""
    correlation = RankCorrelation(tuple(map(str, result.arrays["measures"])), np.asarray(result.arrays["tau"]))
    caption = (
        "Kendall's tau-b between approximations for each scoring rule (top row) and between scoring rules for each approximation "
        "(below; in the order CRPS, log, squared error, quadratic), averaged over data sets. Indices are (truth, prediction). "
        "Grey: a measure that is constant."
    )
    return {"correlation": Picture(_figure(correlation), caption)}


def _figure(correlation: RankCorrelation) -> Any:
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(PAGE_WIDTH * 1.6, PAGE_WIDTH * 0.95), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.35, 1.0))
        above, below = parts
        image = _draw_approximations(above, correlation)
        _draw_rules(below, correlation)
        bar = figure.colorbar(image, ax=above.axes, shrink=0.8)
        bar.set_label("Kendall's tau-b")
    return figure


def _draw_approximations(figure: Any, correlation: RankCorrelation) -> Any:
    for ax, rule in zip(figure.subplots(1, len(RULES)), RULES, strict=True):
        names = [measure.name for measure in published.measures((rule,))]
        image = _heat_map(ax, correlation, names)
        labels = list(map(short_label, names))
        ax.set_xticks(range(len(names)), labels, rotation=90, fontsize=5.5)
        ax.set_yticks(range(len(names)), labels if rule == next(iter(RULES)) else [""] * len(names), fontsize=5.5)
        ax.set_title(RULES[rule])
    return image


def _draw_rules(figure: Any, correlation: RankCorrelation) -> None:
    measures = published.measures(("crps",))
    letters = [name[0] for name in RULES.values()]
    for ax, measure in zip(figure.subplots(-(-len(measures) // ACROSS), ACROSS).flat, measures, strict=True):
        names = [measure.name.replace("crps", rule, 1) for rule in RULES]
        _heat_map(ax, correlation, names)
        for place, row in combinations(range(len(names)), 2):  # below the diagonal
            tau = correlation[names[row], names[place]]
            if not np.isnan(tau):
                colour = "white" if abs(tau) > DARK else "black"
                ax.text(place, row, f"{tau:.2f}", ha="center", va="center", fontsize=4.8, color=colour)
        ax.set_xticks(range(len(names)), letters, fontsize=6)
        ax.set_yticks(range(len(names)), letters, fontsize=6)
        ax.set_title(short_label(measure.name), fontsize=8)


def _heat_map(ax: Any, correlation: RankCorrelation, names: list[str]) -> Any:
    from matplotlib import colormaps

    colours = colormaps["RdBu"].with_extremes(bad=NO_ORDER)
    values = np.ma.masked_invalid(correlation.select(names).matrix)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax.imshow(values, cmap=colours, vmin=-1.0, vmax=1.0, interpolation="nearest")


EXPERIMENT = register(
    Experiment(
        name="correlation",
        summary=first_line(__doc__),
        presets=selective.PRESETS,
        jobs=jobs,
        work=work,
        gather=gather,
        draw=draw,
        wants_gpu=selective.WANTS_GPU,
        needs=selective.needs,
        reads=("selective",),  # the paper takes the same models
    )
)

"""The page of results of audits, from what benchmarks/audit.py has measured."""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.support.storage import write_text
from uqprism.tasks.audit import Promise

STORE = Path(__file__).with_name("audit.json")
RESULTS = Path(__file__).with_name("RESULTS-audit.md")
DOCS = Path(__file__).parent.parent / "docs" / "audit.md"
MARKS = "<!-- audits: written by benchmarks/audit.py -->", "<!-- end of the audits -->"
N, FEW_N, SLOW_N = 1024, 512, 256  # rows of an audit on a set of known truth; of forests; of Gaussian processes
CLOSELY = "networks, resampled rows"  # audited often enough to see how often its intervals hold
MAIN, LOG = "crps.excess.members.members", "log.excess.members.members"
KIND = {  # the kind of member that a model's audits are evidence for
    "networks, resampled rows": "resampled",
    "networks, seeds only": "networks",
    "forest": "forest",
    "boosting": "boosting",
    "Gaussian process": "process",
    "MC dropout": "dropout",
    "evidential": "evidential",
}
FEWEST = 3  # tables, of which the report speaks
DRAWN = 400  # resamples that are drawn anew from their covariance
NEAR = 0.2
GROWTHS = (2, 4)
GRID = [(back, wander) for back in (0.6, 0.65, 0.7, 0.75, 0.8, 0.85) for wander in (0.15, 0.25, 0.35, 0.5)]
FARTHEST = 0.5  # of the distances that choose the constants: a set that no rule foresees shall not choose them

# What was measured ------------------------------------------------------------------------------------------------------


def rows_of(model: str) -> int:
    """The rows of an audit on a set of known truth."""
    return {"forest": FEW_N, "Gaussian process": SLOW_N}.get(model, N)


@cache
def stored() -> dict[str, Any]:
    """All audits, by key."""
    return dict(json.loads(STORE.read_text()))


def of(kind: str, model: str, measure: str) -> dict[str, list[Promise]]:
    """What was measured, by data set: `known audit`, `known other` or `tables`."""
    first, _, what = kind.partition(" ")
    found: dict[str, list[Promise]] = {}
    for key, value in stored().items():
        where, name, of_model, *number = key.split("/")
        if (where, of_model) == (first, model) and measure in value["measures"] and (not number or number[0].startswith(what)):
            found.setdefault(name, []).append(promise(measure, value))
    return found


def promise(measure: str, value: dict[str, Any]) -> Promise:
    """One measure of an audit; its resamples are drawn from their covariance."""
    about = {name: np.array(each) for name, each in value["measures"][measure].items()}
    nothing = np.full(len(value["sizes"]), np.nan)
    return Promise(
        measure=measure,
        sizes=tuple(value["sizes"]),
        excess=about["excess"],
        noise=about["noise"],
        penalty=about["penalty"],
        procedural=about.get("procedural", nothing),
        data=about.get("data", nothing),
        replicates=resampled(about) if "covariance" in about else None,
    )


def resampled(about: dict[str, np.ndarray]) -> np.ndarray:
    """Excess, noise and penalty in resamples, (3, resamples, sizes), with the covariance that was stored; noise is not known."""
    means = np.concatenate([about["excess"], about["penalty"]])
    upper = np.zeros((len(means), len(means)))
    upper[np.triu_indices(len(means))] = about["covariance"]
    values, vectors = np.linalg.eigh(upper + np.triu(upper, 1).T)
    drawn = np.random.default_rng(0).standard_normal((DRAWN, len(means))) * np.sqrt(np.maximum(values, 0.0))  # they are rounded
    excess, penalty = np.split(means + drawn @ vectors.T, 2, axis=1)
    excess = np.maximum(excess, 0.05 * about["excess"])  # a Gaussian has no end at zero
    return np.stack([excess, np.full_like(excess, np.nan), penalty])


def happened(others: list[Promise]) -> np.ndarray:
    """What twice and four times the rows removed on other sets, as shares of the excess there."""
    excess, penalty = (np.mean([getattr(each, name) for each in others], axis=0) for name in ("excess", "penalty"))
    return np.asarray((penalty[0] - penalty[1:3]) / excess[0])


def last(found: Promise, doublings: int) -> float:
    """What the last doublings removed, as a share of the excess before: measured, not expected."""
    return float(found.went(2**doublings)[-1 - doublings])


def evidence() -> dict[str, tuple[int, float, float, float]]:
    """For each kind of member, on how many tables, and the median, smallest and largest share that twice the rows removed."""
    found = {}
    for model, kind in KIND.items():
        shares = [last(each, 1) for (each,) in of("tables", model, MAIN).values()]
        if len(shares) >= FEWEST:
            found[kind] = len(shares), *(round(x, 2) + 0.0 for x in _middle(shares))
    return found


def judged(model: str, measure: str) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, list[Promise]]]:
    """By set of known truth: factors with the ends of their intervals, what happened, the same on each other set, the audits.

    Factors are (audits, growths, 3).
    """
    audits, others = of("known audit", model, measure), of("known other", model, measure)
    found = {}
    for name in sorted(set(audits) & set(others)):
        factors = np.array([[each.after(growth) for growth in GROWTHS] for each in audits[name]])
        single = np.array([happened([each]) for each in others[name]])
        found[name] = factors, happened(others[name]), single, audits[name]
    return found


# The page --------------------------------------------------------------------------------------------------------------

HEAD = """# Results of audits

Written by `python benchmarks/audit.py write` from `benchmarks/audit.json`. [The page on audits](../docs/audit.md) says what the
words mean. Factors are what twice (2x) or four times (4x) the rows remove from the penalty, as a share of the excess before.
"""


def write() -> None:
    """The page of results, the tables of the page on audits, and the numbers that the report quotes."""
    parts = [reached(), closely(MAIN), closely(LOG), coverage(), chosen(), others(), tables(), each_table(), measures()]
    write_text(RESULTS, "\n".join([HEAD, *(line for part in parts for line in part)]) + "\n")
    before, rest = DOCS.read_text().split(MARKS[0])
    write_text(DOCS, "\n".join([f"{before}{MARKS[0]}", "", *for_docs(), f"{MARKS[1]}{rest.split(MARKS[1])[1]}"]))
    for kind, numbers in evidence().items():
        print(f'    "{kind}": Kept{numbers},')


def for_docs() -> list[str]:
    """The tables of the page on audits."""
    return [
        line for part in (tables(), reached(), closely(MAIN), closely(LOG), coverage(), others(), measures()) for line in part
    ]


def reached() -> list[str]:
    """In words: on how many sets of known truth the factors came near, and on which they did not."""
    lines = ["### What is reached on sets of known truth", ""]
    for measure in (MAIN, LOG):
        every = {name: factors[..., 0].mean(axis=0) / truth for name, (factors, truth, _, _) in judged(CLOSELY, measure).items()}
        near = (np.abs(np.array(list(every.values())) - 1.0) <= NEAR).sum(axis=0)
        far = [f"{name} ({ratio[0]:.2f}, {ratio[1]:.2f})" for name, ratio in every.items() if np.abs(ratio - 1.0).max() > NEAR]
        not_on = f" Not on {', '.join(far)}: the ratios of factor and truth." if far else ""
        lines.append(
            f"- `{measure}`, {CLOSELY}: the mean factor is within 20 % of what happened on {near[0]} of {len(every)} sets for "
            f"twice the rows, and on {near[1]} for four times.{not_on}"
        )
    return [*lines, ""]


def closely(measure: str) -> list[str]:
    """Factors and what happened, for the model that was audited often."""
    lines = [
        f"### Sets of known truth, `{measure}`",
        "",
        f"{CLOSELY[0].upper()}{CLOSELY[1:]}: audits of n = {N:,} rows, sizes n/8 to n. *Happened* is the mean over other sets "
        "of the same truth, which are trained on n, 2n and 4n rows, ± its standard error. *Near* counts single audits within "
        "20 % of it, for 2x and 4x; *interval* those whose interval contains it. *By doubling* is what each doubling up to n "
        "removed, as a share of the excess before it (means over the audits).",
        "",
        "| set | audits | factor 2x | happened | ratio | factor 4x | happened | ratio | near | interval | by doubling |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (factors, truth, single, audits) in judged(CLOSELY, measure).items():
        near = (np.abs(factors[..., 0] / truth - 1.0) <= NEAR).sum(axis=0)
        inside = ((factors[..., 1] <= truth) & (truth <= factors[..., 2])).sum(axis=0)
        shares = np.mean([each.went(2)[:-1] for each in audits], axis=0)
        error = single.std(axis=0, ddof=1) / np.sqrt(len(single))
        cells = [
            f"{factors[:, i, 0].mean():.2f} | {truth[i]:.2f} ± {error[i]:.2f} | {factors[:, i, 0].mean() / truth[i]:.2f}"
            for i in (0, 1)
        ]
        counts = f"{near[0]} and {near[1]} | {inside[0]} and {inside[1]}"
        lines.append(f"| {name} | {len(audits)} | {' | '.join(cells)} | {counts} | {', '.join(f'{x:.2f}' for x in shares)} |")
    return [*lines, ""]


def coverage() -> list[str]:
    """How often the interval of the factor contains what happened."""
    lines = [
        "### Does the interval of the factor hold?",
        "",
        f"{CLOSELY[0].upper()}{CLOSELY[1:]} on the sets of known truth, audits of {N:,} rows. How many of the intervals "
        "contain what happened: on the mean of other sets of the same truth, on one such set, and the first without the set "
        "on which they hold least. *From resamples* are intervals that know nothing of other sets. *Half* is half the width "
        "of the interval, as a share of the factor.",
        "",
        "| measure | growth | audits | mean of others | one other | without | from resamples | half |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for measure in (MAIN, LOG):
        every = judged(CLOSELY, measure)
        for i, growth in enumerate(GROWTHS):
            held, one, bare, half = {}, [], [], []
            for name, (factors, truth, single, audits) in every.items():
                value, low, high = factors[:, i].T
                held[name] = (low <= truth[i]) & (truth[i] <= high)
                one.append(np.mean((low[:, None] <= single[:, i]) & (single[:, i] <= high[:, None])))
                ends = np.array([from_resamples(each, growth) for each in audits]).T
                bare += list((ends[0] <= truth[i]) & (truth[i] <= ends[1]))
                half += list((high - low) / (2.0 * value))
            worst = min(held, key=lambda name: held[name].mean())
            rest = np.concatenate([each for name, each in held.items() if name != worst])
            all_of_them = np.concatenate(list(held.values()))
            cells = [f"{np.mean(x):.0%}" for x in (all_of_them, one)] + [f"{rest.mean():.0%} ({worst})"]
            cells += [f"{np.mean(x):.0%}" for x in (bare, half)]
            lines.append(f"| `{measure}` | {growth}x | {len(all_of_them)} | {' | '.join(cells)} |")
    return [*lines, ""]


def from_resamples(found: Promise, growth: int) -> np.ndarray:
    """The ends of the interval before it is widened."""
    rule = importlib.import_module("uqprism.tasks.audit.promise")
    _, drawn = rule.correction(found.excess, found.penalty, (found.replicates[0], found.replicates[2]))
    return np.quantile(rule.removed(*drawn, growth), [0.025, 0.975])


def distances(constants: tuple[float, float]) -> dict[str, np.ndarray]:
    """By set: how far mean factors are from what happened, |log ratio|, for both measures and growths, under these constants."""
    rule = importlib.import_module("uqprism.tasks.audit.promise")
    before = rule.RETURN, rule.WANDER
    rule.RETURN, rule.WANDER = constants
    try:
        every = [judged(CLOSELY, measure) for measure in (MAIN, LOG)]
    finally:
        rule.RETURN, rule.WANDER = before
    return {
        name: np.concatenate(
            [np.abs(np.log(np.maximum(each[name][0][..., 0].mean(axis=0) / each[name][1], 0.01))) for each in every]
        )
        for name in every[0]
    }


def chosen() -> list[str]:
    """The constants of the rule, chosen without each set, and how near the factors then are on it."""
    every = {constants: distances(constants) for constants in GRID}
    kept = distances((1.0, 1e6))  # the last doubling, without return

    def best(left_out: str) -> tuple[float, float]:
        others = [name for name in kept if name != left_out]
        return min(GRID, key=lambda each: np.mean([np.minimum(every[each][name], FARTHEST) for name in others]))

    lines = [
        "### The constants of the rule",
        "",
        "Chosen on the other sets, from a grid, by the mean distance between the logarithms of factors and of what happened "
        "(at most 0.5 for each), under both rules: how much of the share beyond face value a doubling leaves (*return*), and "
        "how far it wanders (*wander*). Then the distance on the set that was left out, for 2x and 4x under the CRPS and "
        "under the log score, and that of the share of the last doubling, taken as it is. 0.18 is 20 %.",
        "",
        "| left out | return | wander | CRPS 2x, 4x | log 2x, 4x | last doubling: CRPS | log |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in kept:
        constants = best(name)
        cells = [
            ", ".join(f"{x:.2f}" for x in pair) for pair in (*every[constants][name].reshape(2, 2), *kept[name].reshape(2, 2))
        ]
        lines.append(f"| {name} | {constants[0]} | {constants[1]} | {' | '.join(cells)} |")
    return [*lines, ""]


def others() -> list[str]:
    """Every other kind of model on the sets of known truth."""
    lines = [
        "### Other kinds of models on known truth",
        "",
        f"One or two audits of {N:,} rows ({FEW_N} for forests, {SLOW_N} for Gaussian processes), CRPS, members in both "
        "roles. *Happened* is what twice the rows removed on other sets, as a share of what the models said could go: what "
        "the raw promise is off by. Medians over the sets, with the smallest and the largest; *near* counts sets on which "
        "the factor is within 20 % of it, or within 0.05.",
        "",
        "| model | sets | happened 2x | happened 4x | factor 2x | factor 4x | near 2x, 4x |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in KIND:
        every = judged(model, MAIN)
        if not every:
            continue
        truth = np.array([each[1] for each in every.values()])
        factors = np.array([each[0][..., 0].mean(axis=0) for each in every.values()])
        near = (np.abs(factors - truth) <= np.maximum(NEAR * np.abs(truth), 0.05)).sum(axis=0)
        cells = [_range(column) for column in (*truth.T, *factors.T)]
        lines.append(f"| {model} | {len(every)} | {' | '.join(cells)} | {near[0]}, {near[1]} |")
    return [*lines, ""]


def tables() -> list[str]:
    """What was found on real tables."""
    lines = [
        "### Real tables",
        "",
        "Up to 1,600 rows of each table (800 for Gaussian processes), a quarter held out, two repeats; CRPS, members in both "
        "roles. *Promised* is the excess as a share of what the models expect to pay, at the largest size; *went* is what "
        "the last doubling, and the last two, removed of the excess before them; *noise gone* is the share of the noise of "
        "the smallest size (an eighth of the rows) that is gone at the largest; *from seeds* is the share of the "
        "disagreement between two training sets that is there within one. Medians over the tables, with the smallest and the "
        "largest.",
        "",
        "| model | tables | promised | went 2x | went 4x | noise gone | from seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in KIND:
        found = [each for (each,) in of("tables", model, MAIN).values()]
        if found:
            cells = [
                _range([each.promised[-1] for each in found], "%"),
                *(_range([last(each, doublings) for each in found]) for doublings in (1, 2)),
                _range([each.noise_gone for each in found], "%"),
                _range([each.procedural[-2] / (each.procedural + each.data)[-2] for each in found], "%"),
            ]
            lines.append(f"| {model} | {len(found)} | {' | '.join(cells)} |")
    return [*lines, ""]


def each_table() -> list[str]:
    """What the last doubling removed, by table."""
    models = [model for model in KIND if of("tables", model, MAIN)]
    lines = [
        "What the last doubling removed, by table (CRPS, members in both roles):",
        "",
        f"| table | {' | '.join(models)} |",
        "|---" * (len(models) + 1) + "|",
    ]
    every = {model: of("tables", model, MAIN) for model in models}
    for name in sorted({name for each in every.values() for name in each}):
        cells = [f"{round(last(each[name][0], 1), 2) + 0.0:.2f}" if name in each else "" for each in every.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def measures() -> list[str]:
    """Every measure of every model: how much of its promise is kept, and how alike."""
    lines = [
        "### Which measure's promise is kept best?",
        "",
        "What four times the rows removed of the excess before, on the tables (the last two doublings) and on the sets of "
        "known truth: medians, and how far apart the middle half is (the larger quarter divided by the smaller). A promise "
        "that is kept at face value and alike everywhere would need no audit. Last, how near the factors of audits come: the "
        "median distance between factor and what happened on the sets of known truth, for 2x and 4x.",
        "",
        "| model | measure | tables 4x | apart | known 4x | apart | factor off, 2x and 4x |",
        "|---|---|---|---|---|---|---|",
    ]
    names = list(next(iter(stored().values()))["measures"])
    for model in KIND:
        for measure in names:
            went = [last(each, 2) for (each,) in of("tables", model, measure).values()]
            every = judged(model, measure)
            if not went or not every:
                continue
            truth = np.array([each[1] for each in every.values()])
            factors = np.array([each[0][..., 0].mean(axis=0) for each in every.values()])
            off = np.median(np.abs(factors / truth - 1.0), axis=0)
            cells = [f"{np.median(x):.2f} | {_apart(x)}" for x in (went, truth[:, 1])]
            lines.append(f"| {model} | `{measure}` | {' | '.join(cells)} | {off[0]:.0%} and {off[1]:.0%} |")
    return [*lines, ""]


def _apart(values: Any) -> str:
    low, high = np.quantile(values, [0.25, 0.75])
    return f"{high / low:.1f}" if low > 0.0 else "sign differs"


def _middle(values: Any) -> tuple[float, float, float]:
    return float(np.median(values)), float(np.min(values)), float(np.max(values))


def _range(values: Any, unit: str = "") -> str:
    middle, low, high = (f"{x:.0%}" if unit else f"{round(x, 2) + 0.0:.2f}" for x in _middle(values))
    return f"{middle} ({low} to {high})"

"""The page of results of audits, from what benchmarks/audit.py has measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from audit_rule import chosen, forms
from audit_store import CLOSELY, FEW_N, GROWTHS, LOG, MAIN, NEAR, SLOW_N, Judged, N, judged, last, of, stored
from truths import FRESH, KNOWN

from uqprism.support.storage import write_text
from uqprism.tasks.audit import Promise

RESULTS = Path(__file__).with_name("RESULTS-audit.md")
DOCS = Path(__file__).parent.parent / "docs" / "audit.md"
MARKS = "<!-- audits: written by benchmarks/audit.py -->", "<!-- end of the audits -->"
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


def evidence() -> dict[str, tuple[int, float, float, float]]:
    """For each kind of member, on how many tables, and the median, smallest and largest share that twice the rows removed."""
    found = {}
    for model, kind in KIND.items():
        shares = [last(each, 1) for (each,) in of("tables", model, MAIN).values()]
        if len(shares) >= FEWEST:
            found[kind] = len(shares), *(round(x, 2) + 0.0 for x in _middle(shares))
    return found


# The page --------------------------------------------------------------------------------------------------------------

HEAD = """# Results of audits

Written by `python benchmarks/audit.py write` from `benchmarks/audit.json`. [The page on audits](../docs/audit.md) says what the
words mean. Factors are what twice (2x) or four times (4x) the rows remove from the penalty, as a share of the excess before.
"""


def write() -> None:
    """The page of results, the tables of the page on audits, and the numbers that the report quotes."""
    parts = [*on_truths(), chosen(), forms(), others(), tables(), each_table(), measures()]
    write_text(RESULTS, "\n".join([HEAD, *(line for part in parts for line in part)]) + "\n")
    before, rest = DOCS.read_text().split(MARKS[0])
    write_text(DOCS, "\n".join([f"{before}{MARKS[0]}", "", *for_docs(), f"{MARKS[1]}{rest.split(MARKS[1])[1]}"]))
    for kind, numbers in evidence().items():
        print(f'    "{kind}": Kept{numbers},')


def for_docs() -> list[str]:
    """The tables of the page on audits."""
    return [line for part in (tables(), *on_truths(), forms(), others(), measures()) for line in part]


def on_truths() -> list[list[str]]:
    """What is reached on sets of known truth."""
    return [reached(), *(closely(measure, fresh=fresh) for measure in (MAIN, LOG) for fresh in (False, True)), coverage()]


def reached() -> list[str]:
    """In words: on how many sets of known truth the factors came near, and on which they did not."""
    lines = ["### What is reached on sets of known truth", ""]
    for measure, sets, which in [
        (measure, sets, which)
        for measure in (MAIN, LOG)
        for sets, which in ((KNOWN, "sets that were in view while the rule was made"), (FRESH, "fresh sets"))
    ]:
        every = judged(CLOSELY, measure, sets)
        ratios = {name: factors[..., 0].mean(axis=0) / truth for name, (factors, truth, _, _) in every.items()}
        near = (np.abs(np.array(list(ratios.values())) - 1.0) <= NEAR).sum(axis=0)
        single = np.mean(
            [(np.abs(factors[..., 0] / truth - 1.0) <= NEAR).mean(axis=0) for factors, truth, _, _ in every.values()], axis=0
        )
        far = [f"{name} ({ratio[0]:.2f}, {ratio[1]:.2f})" for name, ratio in ratios.items() if np.abs(ratio - 1.0).max() > NEAR]
        not_on = f" Not on {', '.join(far)}: the ratios of factor and truth." if far else ""
        lines.append(
            f"- `{measure}`, {len(every)} {which}: the mean factor is within 20 % of what happened on {near[0]} for twice the "
            f"rows, and on {near[1]} for four times; that of one audit in {single[0]:.0%} and {single[1]:.0%}.{not_on}"
        )
    return [*lines, ""]


def closely(measure: str, *, fresh: bool) -> list[str]:
    """Factors and what happened, for the model that was audited often."""
    lines = [
        f"### {'Fresh sets' if fresh else 'Sets'} of known truth, `{measure}`",
        "",
        "These sets are newer than the rule of the factor and its constants. How far the interval reaches upwards follows from "
        "`steps`, and was settled when the results of these sets were known. Columns as above."
        if fresh
        else f"{CLOSELY[0].upper()}{CLOSELY[1:]}: audits of n = {N:,} rows, sizes n/8 to n. *Sets* counts the audits, and the "
        "other sets of the same truth. *Happened* is the mean over these, trained on n, 2n and 4n rows, ± its standard error. "
        "*One audit* is how far single audits are apart: their standard deviation, as a share of their mean. *Near* counts "
        "single audits within 20 % of what happened, for 2x and 4x; *interval* those whose interval contains it; *rising* "
        "those that say that the share still rises. *By doubling* is what each doubling up to n removed, as a share of the "
        "excess before it (means over the audits).",
        "",
        "| set | sets | factor 2x | happened | ratio | factor 4x | happened | ratio | one audit | near | interval | rising "
        "| by doubling |",
        "|---" * 13 + "|",
    ]
    for name, (factors, truth, single, audits) in judged(CLOSELY, measure, FRESH if fresh else KNOWN).items():
        near = (np.abs(factors[..., 0] / truth - 1.0) <= NEAR).sum(axis=0)
        inside = ((factors[..., 1] <= truth) & (truth <= factors[..., 2])).sum(axis=0)
        shares = np.mean([each.went(2)[:-1] for each in audits], axis=0)
        error = single.std(axis=0, ddof=1) / np.sqrt(len(single))
        apart = factors[..., 0].std(axis=0, ddof=1) / factors[..., 0].mean(axis=0)
        cells = [
            f"{factors[:, i, 0].mean():.2f} | {truth[i]:.2f} ± {error[i]:.2f} | {factors[:, i, 0].mean() / truth[i]:.2f}"
            for i in (0, 1)
        ]
        counts = f"{apart[0]:.0%} | {near[0]} and {near[1]} | {inside[0]} and {inside[1]} | {sum(not x.settled for x in audits)}"
        doublings = ", ".join(f"{x:.2f}" for x in shares)
        lines.append(f"| {name} | {len(audits)}, {len(single)} | {' | '.join(cells)} | {counts} | {doublings} |")
    return [*lines, ""]


def coverage() -> list[str]:
    """How often the interval of the factor contains what happened."""
    lines = [
        "### Does the interval of the factor hold?",
        "",
        f"{CLOSELY[0].upper()}{CLOSELY[1:]} on the sets of known truth, audits of {N:,} rows. How many of the intervals "
        "contain what happened: on the mean of other sets of the same truth, on one such set, and the first without the set "
        "on which they hold least. *From resamples* are intervals that know nothing of other sets. *Below* and *above* are how "
        "far the ends are from the factor, as a share of it.",
        "",
        "| measure | growth | sets | audits | mean of others | one other | without | from resamples | below | above |",
        "|---" * 10 + "|",
    ]
    for measure in (MAIN, LOG):
        for which, sets in (("in view", KNOWN), ("fresh", FRESH)):
            every = judged(CLOSELY, measure, sets)
            lines += [f"| `{measure}` | {growth}x | {which} | {_covered(every, i, growth)} |" for i, growth in enumerate(GROWTHS)]
    return [*lines, ""]


def _covered(every: Judged, i: int, growth: int) -> str:
    held, one, bare, below, above = {}, [], [], [], []
    for name, (factors, truth, single, audits) in every.items():
        value, low, high = factors[:, i].T
        held[name] = (low <= truth[i]) & (truth[i] <= high)
        one.append(np.mean((low[:, None] <= single[:, i]) & (single[:, i] <= high[:, None])))
        ends = np.array([from_resamples(each, growth) for each in audits]).T
        bare += list((ends[0] <= truth[i]) & (truth[i] <= ends[1]))
        below += list((value - low) / value)
        above += list((high - value) / value)
    worst = min(held, key=lambda name: held[name].mean())
    rest = np.concatenate([each for name, each in held.items() if name != worst])
    all_of_them = np.concatenate(list(held.values()))
    cells = [f"{np.mean(x):.0%}" for x in (all_of_them, one)] + [f"{rest.mean():.0%} ({worst})"]
    return " | ".join([str(len(all_of_them)), *cells, *(f"{np.mean(x):.0%}" for x in (bare, below, above))])


def from_resamples(found: Promise, growth: int) -> np.ndarray:
    """The ends of the interval before it is widened."""
    rule = importlib.import_module("uqprism.tasks.audit.promise")
    _, drawn = rule.correction(found.excess, found.penalty, (found.replicates[0], found.replicates[2]))
    return np.quantile(rule.removed(*drawn, growth), [0.025, 0.975])


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

"""The paper's sentences on active learning, compared with our ranks; then tables and notes. Cells are those with a number in the paper.

| statement | measured | holds if |
|---|---|---|
| excess risks are best | average ranks of cells by risk; the best cell | the best cell is an excess risk, and their mean is below those of total and Bayes |
| no clear best approximation | excess cells whose average rank is within the best one's spread | they are of at least two approximations |
| most outperform random | cells with a lower average rank than `random` | more than half |
| exceptions: total and Bayes, quadratic | their average ranks | each is higher than that of `random`, and most cells that are no exception are lower |
| exception: Bayes 3b, log | its average rank | the same |
| most settings improve on random | loops on a data set whose NLL, averaged over models and seeds, is below that of `random` | more than half |
| total and Bayes, quadratic, are poor | average rank of total and Bayes cells by rule | the quadratic score's is higher than that of `random`, and than every other rule's by more than the spread of a cell (median) |
"""  # noqa: E501  a table

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.measures import RISKS, Measure, published
from uqprism.paper.comparison import agreement, comparison
from uqprism.paper.experiment import Claim, Result
from uqprism.paper.experiments.active.ranks import (
    ERRORS,
    MAIN,
    RANDOM,
    TABLE,
    Learned,
    LoopRanks,
    loop_of,
    ranked,
    repeatability,
    runs_won,
)
from uqprism.paper.store import Bundle, as_data

if TYPE_CHECKING:
    from uqprism.paper.experiments.active import Config


LOG_POOLED = "log.bayes.pooled"


def all_claims(learned: Learned, ranks: LoopRanks) -> tuple[Claim, ...]:
    """All claims, in the paper's order."""
    found = {name: ranks.mean[loop] for name, loop in learned.cells.items()}
    spread = {name: ranks.spread[loop] for name, loop in learned.cells.items()}
    chance = found.pop(RANDOM)
    claims = [
        excess_is_best(found),
        no_best_approximation(found, spread),
        most_beat_chance(found, chance),
        quadratic_exceptions(found, chance),
    ]
    if LOG_POOLED in found:
        claims.append(log_exception(found, chance))
    return (*claims, most_settings(learned), quadratic_is_poor(found, spread, chance))


def by_risk(cells: Mapping[str, float]) -> dict[str, float]:
    """The mean over the cells of each risk."""
    return {risk: float(np.mean([rank for name, rank in cells.items() if _risk(name) == risk])) for risk in RISKS}


def papers() -> dict[str, float]:
    """The paper's average ranks."""
    return {name: cell.value for name, cell in published.table(TABLE).items()}


def excess_is_best(cells: Mapping[str, float]) -> Claim:
    """Excess risks have the lowest ranks."""
    means, best = by_risk(cells), min(cells, key=lambda name: cells[name])
    theirs = by_risk({name: rank for name, rank in papers().items() if name in cells})
    measured = (
        "mean rank "
        + ", ".join(f"{risk} {rank:.1f} (paper {theirs[risk]:.1f})" for risk, rank in means.items())
        + f"; best is {best} with {cells[best]:.1f}"
    )
    holds = _risk(best) == "excess" and means["excess"] < min(means["total"], means["bayes"])
    sentence = "“As expected, we observe that excess risks are the best performing measures”"
    return Claim("excess risks are best", sentence, holds, measured, {**means, "best": cells[best]})


def no_best_approximation(cells: Mapping[str, float], spread: Mapping[str, float]) -> Claim:
    """Several approximations of the excess risk are about as good as the best."""
    excess = {name: rank for name, rank in cells.items() if _risk(name) == "excess"}
    best = min(excess, key=lambda name: excess[name])
    near = [name for name, rank in excess.items() if name == best or rank <= excess[best] + spread[best]]
    kinds = {published.label(published.printed_as(name)) for name in near}  # columns 1,1 and 2,1 print one measure
    measured = (
        f"within one standard deviation ({spread[best]:.1f}) of the best excess risk, {best} with {excess[best]:.1f}: "
        f"{len(near)} of {len(excess)} cells, of {len(kinds)} approximations"
    )
    numbers = {"cells_near_best": float(len(near)), "approximations_near_best": float(len(kinds))}
    return Claim(
        "no best approximation", "“but there is no clear best approximation strategy”", len(kinds) > 1, measured, numbers
    )


def most_beat_chance(cells: Mapping[str, float], chance: float) -> Claim:
    """Most acquisitions have lower ranks than random picks."""
    better = [name for name, rank in cells.items() if rank < chance]
    worse = [name for name in cells if name not in better]
    named = f": {', '.join(worse)}" if 0 < len(worse) <= 12 else ""
    measured = f"{len(better)} of {len(cells)} cells rank below random's {chance:.1f}; not so {len(worse)}{named}"
    numbers = {"better": float(len(better)), "cells": float(len(cells)), "random": chance}
    return Claim("most outperform random", "“Most outperform random sampling”", 2 * len(better) > len(cells), measured, numbers)


def quadratic_exceptions(cells: Mapping[str, float], chance: float) -> Claim:
    """Total and Bayes risks of the quadratic score do worse than random picks."""
    own = {name: rank for name, rank in cells.items() if name.startswith("quadratic.") and _risk(name) != "excess"}
    worse = sum(rank > chance for rank in own.values())
    measured = (
        f"{worse} of {len(own)} cells rank above random's {chance:.1f}: from {min(own.values()):.1f} to {max(own.values()):.1f}; "
        f"below it {_ordinary_count(cells, chance)}"
    )
    sentence = "“yet there are some exceptions: the total and Bayes risks under the quadratic score”"
    numbers = {"worse": float(worse), "cells": float(len(own)), "mean": float(np.mean(list(own.values()))), "random": chance}
    # An exception needs a rule: where nothing beats random there is none.
    holds = worse == len(own) and _most_beat_random(cells, chance)
    return Claim("exceptions of the quadratic score", sentence, holds, measured, numbers)


def log_exception(cells: Mapping[str, float], chance: float) -> Claim:
    """The pooled Bayes risk of the log score does worse than random picks."""
    rank = cells[LOG_POOLED]
    measured = (
        f"{LOG_POOLED} ranks {rank:.1f}, random {chance:.1f} (paper {papers()[LOG_POOLED]:.1f} and {papers()[RANDOM]:.1f}); "
        f"below random {_ordinary_count(cells, chance)}"
    )
    sentence = "“and R_Bayes^{3b} under the log score”"
    holds = rank > chance and _most_beat_random(cells, chance)
    return Claim("exception of the log score", sentence, holds, measured, {"rank": rank, "random": chance})


def _most_beat_random(cells: Mapping[str, float], chance: float) -> bool:
    """Whether most cells that the paper does not call exceptions beat random picks."""
    return float(np.mean([rank < chance for rank in _ordinary(cells).values()])) > 0.5


def _ordinary_count(cells: Mapping[str, float], chance: float) -> str:
    """The number of cells that are no exceptions and beat random picks, in words."""
    ordinary = _ordinary(cells)
    return f"{sum(rank < chance for rank in ordinary.values())} of the {len(ordinary)} cells that are no exception"


def _ordinary(cells: Mapping[str, float]) -> dict[str, float]:
    def excepted(name: str) -> bool:
        return name == LOG_POOLED or (name.startswith("quadratic.") and _risk(name) != "excess")

    return {name: rank for name, rank in cells.items() if not excepted(name)}


def most_settings(learned: Learned) -> Claim:
    """On most data sets most acquisitions reach a lower NLL than random picks."""
    errors = ERRORS[MAIN](learned)[:, : learned.n_printed].mean(axis=-1)  # (data sets, loops)
    at = learned.at(RANDOM)
    better = np.delete(errors, at, axis=1) < errors[:, [at]]
    each = [f"{name} {int(row.sum())}" for name, row in zip(learned.datasets, better, strict=True)]
    measured = f"{int(better.sum())} of {better.size} loops have a lower mean NLL: of {better.shape[1]} each, {', '.join(each)}"
    sentence = (
        "“We observe that for most settings, using the uncertainty scores as acquisition function improves upon random sampling.”"
    )
    numbers = {"better": float(better.sum()), "settings": float(better.size)}
    return Claim("most settings improve on random", sentence, bool(better.mean() > 0.5), measured, numbers)


def quadratic_is_poor(cells: Mapping[str, float], spread: Mapping[str, float], chance: float) -> Claim:
    """Total and Bayes risks of the quadratic score are the worst group of all."""
    groups: dict[str, list[float]] = {}
    for name, rank in cells.items():
        if _risk(name) != "excess":
            groups.setdefault(name.split(".")[0], []).append(rank)
    means = {rule: float(np.mean(ranks)) for rule, ranks in groups.items()}
    each = ", ".join(f"{rule} {rank:.1f}" for rule, rank in means.items())
    margin = float(np.median([spread[name] for name in cells]))
    measured = f"mean rank of total and Bayes risks: {each}; random {chance:.1f}; the spread of a cell is {margin:.1f}"
    sentence = "“Notable exceptions are total and Bayes risks for the quadratic score, which perform rather poorly.”"
    others = max(rank for rule, rank in means.items() if rule != "quadratic")
    holds = means["quadratic"] > max(chance, others + margin)  # a lead that seeds differ by is none
    return Claim("quadratic total and Bayes are poor", sentence, holds, measured, {**means, "random": chance})


def _risk(measure: str) -> str:
    return Measure.parse(measure).risk


Rows = list[dict[str, Any]]


def gathered(config: Config, found: Mapping[str, Sequence[Bundle]], acquisitions: Sequence[Sequence[str]]) -> Result:
    """The result; `found` has the artefacts of each data set, `acquisitions` the loops of each."""
    learned = _learned(found, acquisitions)
    ranks = ranked(learned)
    facts = {name: jobs[0].data for name, jobs in found.items()}  # all jobs of a data set have the same rows
    return Result(
        config=as_data(config),
        seeds={"split": config.seed, "loops": config.seeds},
        claims=all_claims(learned, ranks),
        tables={
            "Average ranks, ours beside the paper's": _cells(learned, ranks),
            "What the ranks are made from": _variants(learned),
            "Data sets": _datasets(learned, facts),
            "The part of the pool that softmax effectively chooses from": _shares(learned),
        },
        notes=_notes(learned, ranks),
        arrays={
            "datasets": np.array(learned.datasets),
            "loops": np.array(learned.loops),
            "nll": learned.nll,
            "labelled": config.n_initial + config.batch_size * np.arange(config.iterations + 1),
        },
        data={name: each["checksum"] for name, each in facts.items()},
        agreements={"average ranks": agreement(ranks.by_definition, published.table(TABLE))},
    )


def _learned(found: Mapping[str, Sequence[Bundle]], acquisitions: Sequence[Sequence[str]]) -> Learned:
    def joined(name: str) -> Any:
        return np.array([np.concatenate([job.arrays[name] for job in jobs]) for jobs in found.values()])

    loops = tuple(name for group in acquisitions for name in group)
    arrays = {name: joined(name) for name in ("nll", "crps", "rmse", "share")}
    return Learned(tuple(found), loops, len(acquisitions[0]), **arrays)


# Tables ---------------------------------------------------------------------------------------------------------------


def _cells(learned: Learned, ranks: LoopRanks) -> Rows:
    """A row for each measure; compare the paper's number with `ours, as printed`."""
    won = runs_won(learned)
    rows = comparison(ranks.by_definition, published.table(TABLE))
    for row in rows:
        row["paper's spread"] = row.pop("spread")
        row["our spread"] = ranks.spread[loop_of(row["measure"])]
        row["runs better than random"] = won[loop_of(row["measure"])]
        row["same loop as"] = loop_of(row["measure"]) if loop_of(row["measure"]) != row["measure"] else None
    return rows


def _variants(learned: Learned) -> Rows:
    """Agreement with the paper and mean ranks by risk, for each error that loops can be ranked by."""
    rows = []
    for by in ERRORS:
        ranks = ranked(learned, by)
        found = agreement(ranks.by_definition, published.table(TABLE))
        cells = {name: ranks.mean[loop] for name, loop in learned.cells.items() if name != RANDOM}
        rows.append(
            {
                "ranked by": by,
                "Spearman with the paper": found.spearman,
                "mean absolute difference": found.mean_absolute_difference,
                **by_risk(cells),
                "random": ranks.mean[RANDOM],
                "best": min(ranks.mean, key=lambda name: ranks.mean[name]),
                "one seed with the others": repeatability(ranks, learned.loops),
            }
        )
    return rows


def _datasets(learned: Learned, facts: Mapping[str, Mapping[str, Any]]) -> Rows:
    rows = []
    for name, errors, curves in zip(learned.datasets, ERRORS[MAIN](learned), learned.nll, strict=True):
        means, chance = errors.mean(axis=-1), learned.at(RANDOM)
        best = int(means[: learned.n_printed].argmin())
        rows.append(
            {
                "data set": name,
                "pool": facts[name]["sizes"]["pool"],
                "test": facts[name]["sizes"]["test"],
                "features": facts[name]["n_features"],
                "NLL at the start": float(curves[chance, :, 0].mean()),
                "NLL at the end, random": float(curves[chance, :, -1].mean()),
                "mean NLL, random": float(means[chance]),
                "its spread": float(errors[chance].std(ddof=1)) if errors.shape[1] > 1 else None,
                "mean NLL, best": float(means[best]),
                "best": learned.loops[best],
                "mean NLL, worst": float(means[: learned.n_printed].max()),
                "largest NLL of a model": float(curves.max()),
                "NLL in units of the target, add": float(np.log(facts[name]["scale"])),
            }
        )
    return rows


def _shares(learned: Learned) -> Rows:
    """Medians over measures and seeds, by rule and risk, a column for each data set."""
    rows = []
    loops = [Measure.parse(name) if name != RANDOM else None for name in learned.loops[: learned.n_printed]]
    for rule in published.RULES.values():
        for risk in RISKS:
            own = [i for i, each in enumerate(loops) if each is not None and (each.rule, each.risk) == (rule, risk)]
            if own:
                medians = np.median(learned.share[:, own], axis=(1, 2)).tolist()
                rows.append({"rule": rule, "risk": risk, **dict(zip(learned.datasets, medians, strict=True))})
    return rows


# Notes ----------------------------------------------------------------------------------------------------------------


def _notes(learned: Learned, ranks: LoopRanks) -> tuple[str, ...]:
    return (
        _repeatability(learned, ranks),
        _paper_scale(learned),
        _softness(learned),
        _quadratic(learned, ranks),
        _noise(learned, ranks),
    )


def _repeatability(learned: Learned, ranks: LoopRanks) -> str:
    return (
        f"One seed's average ranks have a Spearman correlation of {repeatability(ranks, learned.loops):.2f} with those of the "
        "other seeds: so much is there for the paper's to agree with."
    )


def _paper_scale(learned: Learned) -> str:
    theirs, count = papers(), learned.n_printed
    distinct = {(cell.value, cell.spread) for cell in published.table(TABLE).values()}
    mean = float(np.mean([rank for rank, _ in distinct]))
    return (
        f"The paper's {len(distinct)} different entries average to {mean:.2f}; ranks of so many would average to "
        f"{(len(distinct) + 1) / 2:g}, ours of {count} loops average to {(count + 1) / 2:g}. Its ranks therefore have ties that "
        "take up one place together, and its numbers lie below those of averaged ties. The entries also tell how far "
        "chance moves them: total 3a,1 and 1,1 of the log score are the same number for every ensemble "
        f"({theirs['log.total.members.matched']:.2f} and {theirs['log.total.members.members']:.2f} there), as are total 3b,1 and "
        f"Bayes 3a of the squared error ({theirs['squared_error.total.members.pooled']:.2f} and "
        f"{theirs['squared_error.bayes.matched']:.2f}). Here such measures share a loop; squared-error excesses of a mixture, "
        "which the paper leaves blank, are zero, and their loop is that of `random`."
    )


def _softness(learned: Learned) -> str:
    share = np.median(learned.share[:, : learned.n_printed], axis=(0, 2))
    near, sharp = int((share > 0.9).sum()) - 1, int((share < 0.1).sum())
    return (
        f"Of the {learned.n_printed - 1} acquisitions behind the paper's numbers, softmax makes {near} choose from more "
        f"than nine tenths of the pool, which is nearly `random`, and {sharp} from less than a tenth (medians over data sets and "
        "seeds, for models on as many points as at the start). Where it is that flat, ranks tell the draws and not the measure."
    )


def _quadratic(learned: Learned, ranks: LoopRanks) -> str:
    """How far the softmax of total and Bayes risks is from random, by rule."""
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(learned.loops[: learned.n_printed]):
        if name != RANDOM and ".excess." not in name:
            groups.setdefault(name.split(".")[0], []).append(i)
    parts = [
        f"{rule} {np.median(learned.share[:, own]):.3f} and {np.mean([ranks.mean[learned.loops[i]] for i in own]):.1f}"
        for rule, own in groups.items()
    ]
    return (
        "Total and Bayes risks prefer noisy points. Under the quadratic score they go like minus one over the scale, which is "
        "steep where predictions are sharp; under CRPS like the scale, which is flat there. Median part of the pool that they "
        f"choose from, and mean rank: {'; '.join(parts)}; random 1 and {ranks.mean[RANDOM]:.1f}."
    )


def _noise(learned: Learned, ranks: LoopRanks) -> str:
    """Differences between acquisitions compared with differences between seeds."""
    errors = ERRORS[MAIN](learned)[:, : learned.n_printed]
    parts = []
    for name, each in zip(learned.datasets, errors, strict=True):
        between = float(each.mean(axis=1).std(ddof=1))
        within = float((each - each.mean(axis=0)).std(axis=1, ddof=1).mean()) if each.shape[1] > 1 else float("nan")
        parts.append(f"{name} {between:.3f} and {within:.3f}")
    return (
        "Standard deviation of the mean NLL between acquisitions, and of one acquisition between seeds once what all have in "
        f"common in a seed is taken out: {'; '.join(parts)}. The spread of an average rank is "
        f"{np.median(list(ranks.spread.values())):.1f} at the median."
    )

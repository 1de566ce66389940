"""What the paper says of active learning, as numbers. Cells are those that the paper prints a number in.

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

from collections.abc import Mapping

import numpy as np

from uqprism.measures import RISKS, Measure, published
from uqprism.paper.base import Claim
from uqprism.paper.experiments.active.acquisitions import RANDOM, TABLE
from uqprism.paper.experiments.active.ranks import ERRORS, MAIN, Learned, Ranks

LOG_POOLED = "log.bayes.pooled"


def all_claims(learned: Learned, ranks: Ranks) -> tuple[Claim, ...]:
    """The statements, in the paper's order."""
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
    kinds = {published.label(published.printed_as(name)) for name in near}
    measured = (
        f"within one standard deviation ({spread[best]:.1f}) of the best excess risk, {best} with {excess[best]:.1f}: "
        f"{len(near)} of {len(excess)} cells, of {len(kinds)} approximations"
    )
    numbers = {"cells_near_best": float(len(near)), "approximations_near_best": float(len(kinds))}
    return Claim(
        "no best approximation", "“but there is no clear best approximation strategy”", len(kinds) > 1, measured, numbers
    )


def most_beat_chance(cells: Mapping[str, float], chance: float) -> Claim:
    """Most acquisitions learn faster than random picks."""
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
        f"below it {rule_told(cells, chance)}"
    )
    sentence = "“yet there are some exceptions: the total and Bayes risks under the quadratic score”"
    numbers = {"worse": float(worse), "cells": float(len(own)), "mean": float(np.mean(list(own.values()))), "random": chance}
    holds = worse == len(own) and is_a_rule(cells, chance)
    return Claim("exceptions of the quadratic score", sentence, holds, measured, numbers)


def log_exception(cells: Mapping[str, float], chance: float) -> Claim:
    """The pooled Bayes risk of the log score does worse than random picks."""
    rank = cells[LOG_POOLED]
    measured = (
        f"{LOG_POOLED} ranks {rank:.1f}, random {chance:.1f} (paper {papers()[LOG_POOLED]:.1f} and {papers()[RANDOM]:.1f}); "
        f"below random {rule_told(cells, chance)}"
    )
    sentence = "“and R_Bayes^{3b} under the log score”"
    holds = rank > chance and is_a_rule(cells, chance)
    return Claim("exception of the log score", sentence, holds, measured, {"rank": rank, "random": chance})


def is_a_rule(cells: Mapping[str, float], chance: float) -> bool:
    """True if most cells that the paper does not call exceptions beat random picks: else there is nothing to except."""
    return float(np.mean([rank < chance for rank in _ordinary(cells).values()])) > 0.5


def rule_told(cells: Mapping[str, float], chance: float) -> str:
    """How many cells that are no exception are better than random picks."""
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
    holds = means["quadratic"] > max(chance, others + margin)
    return Claim("quadratic total and Bayes are poor", sentence, holds, measured, {**means, "random": chance})


def _risk(measure: str) -> str:
    return Measure.parse(measure).risk

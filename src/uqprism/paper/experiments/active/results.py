"""From the loops of all jobs to the result: the paper's table beside ours, what else ranks could be made from, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.measures import RISKS, Measure, published
from uqprism.paper.agreement import agreement, comparison
from uqprism.paper.artefacts import Findings, as_data
from uqprism.paper.base import Result
from uqprism.paper.experiments.active.acquisitions import RANDOM, TABLE, loop_of
from uqprism.paper.experiments.active.claims import all_claims, by_risk, papers
from uqprism.paper.experiments.active.ranks import ERRORS, MAIN, Learned, Ranks, ranked, repeatability, runs_won

if TYPE_CHECKING:
    from uqprism.paper.experiments.active import Config

Rows = list[dict[str, Any]]


def gathered(config: Config, found: Mapping[str, Sequence[Findings]], acquisitions: Sequence[Sequence[str]]) -> Result:
    """The result; `found` has the jobs of each data set, `acquisitions` what each of those compares."""
    learned = _learned(found, acquisitions)
    ranks = ranked(learned)
    facts = {name: jobs[0].data for name, jobs in found.items()}
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


def _learned(found: Mapping[str, Sequence[Findings]], acquisitions: Sequence[Sequence[str]]) -> Learned:
    def joined(name: str) -> Any:
        return np.array([np.concatenate([job.arrays[name] for job in jobs]) for jobs in found.values()])

    loops = tuple(name for group in acquisitions for name in group)
    arrays = {name: joined(name) for name in ("nll", "crps", "rmse", "share")}
    return Learned(tuple(found), loops, len(acquisitions[0]), **arrays)


# Tables ---------------------------------------------------------------------------------------------------------------


def _cells(learned: Learned, ranks: Ranks) -> Rows:
    """A row for each measure; `ours, as printed` is what to compare the paper's number with."""
    won = runs_won(learned)
    rows = comparison(ranks.by_definition, published.table(TABLE))
    for row in rows:
        row["paper's spread"] = row.pop("spread")
        row["our spread"] = ranks.spread[loop_of(row["measure"])]
        row["runs better than random"] = won[loop_of(row["measure"])]
        row["same loop as"] = loop_of(row["measure"]) if loop_of(row["measure"]) != row["measure"] else None
    return rows


def _variants(learned: Learned) -> Rows:
    """Whether it matters what loops are ranked by: agreement with the paper, and mean ranks by risk."""
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
    """By rule and risk, a column for each data set: medians over measures and seeds."""
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


def _notes(learned: Learned, ranks: Ranks) -> tuple[str, ...]:
    return (
        _repeatability(learned, ranks),
        _paper_scale(learned),
        _softness(learned),
        _quadratic(learned, ranks),
        _noise(learned, ranks),
    )


def _repeatability(learned: Learned, ranks: Ranks) -> str:
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


def _quadratic(learned: Learned, ranks: Ranks) -> str:
    """Why a rule's total and Bayes risks may stand apart: how far their softmax is from chance."""
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


def _noise(learned: Learned, ranks: Ranks) -> str:
    """How the differences between acquisitions compare with those between seeds."""
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

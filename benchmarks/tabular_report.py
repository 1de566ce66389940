"""What `tabular.py` measured, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import public
from peers import IMPORTED, MODELS, OURS

REPORT = Path(__file__).parent / "RESULTS-tabular.md"
Cell = dict[str, Any]
SCORES = {
    "crps": "CRPS",
    "rmse": "RMSE",
    "width": "width",
    "nll": "NLL",
    "nll_gaussian": "NLL of one Gaussian",
    "coverage": "coverage",
}
TIMED = "friedman, 20 columns"  # of `public.MADE`
RATIOS = ("crps", "rmse", "width")  # the others are differences, the coverage is itself


class Results:
    """The cells by table, model and split."""

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = [cell for cell in cells if "error" not in cell and cell["table"] in public.FILES]
        self.errors = [cell for cell in cells if "error" in cell]
        self.models = [model for model in MODELS if any(cell["model"] == model for cell in self.cells)]
        self.tables = [table for table in public.FILES if any(cell["table"] == table for cell in self.cells)]
        self.splits = len({cell["split"] for cell in self.cells})

    def of(self, table: str, model: str, score: str) -> dict[int, float]:
        """A score on each split that has it."""
        own = (cell for cell in self.cells if (cell["table"], cell["model"]) == (table, model) and score in cell)
        return {cell["split"]: cell[score] for cell in own}

    def pair(self, table: str, model: str, score: str) -> tuple[float, float] | None:
        """The means of a model and of ours over the splits that both have."""
        one, ours = self.of(table, model, score), self.of(table, OURS, score)
        both = sorted(one.keys() & ours.keys())
        return (float(np.mean([one[i] for i in both])), float(np.mean([ours[i] for i in both]))) if both else None

    def relative(self, table: str) -> dict[str, float]:
        """The CRPS of each model that has a table, as a share of ours on the same splits."""
        pairs = {model: self.pair(table, model, "crps") for model in self.models}
        return {model: pair[0] / pair[1] for model, pair in pairs.items() if pair is not None}

    def ranks(self, models: list[str]) -> dict[str, tuple[float, int]]:
        """The mean rank of each of these models over the tables that it has, among those that have the table, and how many."""
        found: dict[str, list[int]] = {model: [] for model in models}
        for table in self.tables:
            own = {model: value for model, value in self.relative(table).items() if model in models}
            for model, value in own.items():
                found[model].append(1 + sum(other < value for other in own.values()))
        return {model: (float(np.mean(each)), len(each)) for model, each in found.items() if each}

    def complete(self) -> list[str]:
        """The models that have every split of every table."""
        return [m for m in self.models if all(len(self.of(t, m, "crps")) == self.splits for t in self.tables)]

    def lower(self, share: float = 1.0) -> list[tuple[str, str, float, int]]:
        """Tables, models, the share of ours that their CRPS is, and the splits, where that is below a share."""
        found = [
            (table, model, value, len(self.of(table, model, "crps")))
            for table in self.tables
            for model, value in self.relative(table).items()
            if value < share
        ]
        return sorted(found, key=lambda one: one[2])

    def lost(self) -> list[tuple[str, str, float, int]]:
        """Where ours is more than 10 % above."""
        return self.lower(1.0 / 1.1)


def write(cells: list[Cell]) -> None:
    """The page."""
    results, timed = Results(cells), [cell for cell in cells if cell["table"] == TIMED]
    parts = [
        ["# Beside what else predicts distributions for tables", "", *PREFACE.splitlines()],
        _measured(results),
        ["## CRPS", "", *CRPS.splitlines(), "", *_crps(results)],
        _verdict(results),
        ["## All scores", "", *ALL.splitlines(), "", *_scores(results)],
        ["## Noise and disagreement", "", *SPLIT.splitlines(), "", *_parts(results)],
        ["## Seconds", "", *SECONDS.splitlines(), "", *_seconds(results), "", _timed(timed)],
    ]
    REPORT.write_text("\n\n".join("\n".join(part) for part in parts) + "\n")


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(one) + " |" for one in (head, ["---"] * len(head), *rows)]


def _measured(results: Results) -> list[str]:
    """Which releases were measured, and how many cells there are."""
    versions = sorted({cell["version"] for cell in results.cells if cell["model"] in IMPORTED})
    most = len(results.tables) * results.splits
    counts = {model: sum(cell["model"] == model for cell in results.cells) for model in results.models}
    missing = ", ".join(f"{model} has {count}" for model, count in counts.items() if count < most)
    failed = ", ".join(f"{one['model']} on {one['table']} ({one['error']})" for one in results.errors)
    return [
        f"{len(results.cells)} cells, of {most} for each model; {missing or 'none is missing'}.",
        f"Failed: {failed or 'none'}.",
        f"Releases: {', '.join(versions)}.",
    ]


def _crps(results: Results) -> list[str]:
    rows = []
    for table in results.tables:
        relative = results.relative(table)
        best = min(relative, key=relative.__getitem__)
        shown = [f"{max(cell['used_rows'] for cell in results.cells if cell['table'] == table):,}"]
        for model in results.models:
            values = list(results.of(table, model, "crps").values())
            text = "" if not values else number(float(np.mean(values)))
            text += f" ± {_error(values):.2g}" if len(values) > 1 and values[0] < 100 else ""
            text += f" ± {_error(values):,.0f}" if len(values) > 1 and values[0] >= 100 else ""
            text += f" ({len(values)})" if 0 < len(values) < results.splits else ""
            shown.append(f"**{text}**" if model == best else text)
        rows.append([table, *shown])
    return _table(["table", "rows", *results.models], rows)


def _verdict(results: Results) -> list[str]:
    def order(found: dict[str, tuple[float, int]], counted: bool) -> str:
        listed = sorted(found.items(), key=lambda one: one[1][0])
        return ", ".join(f"{model} {rank:.2f}" + (f" ({tables})" if counted else "") for model, (rank, tables) in listed)

    def named(found: list[tuple[str, str, float, int]]) -> str:
        return ", ".join(f"{t} ({m}, {100 * (1 - v):.1f}{spread(t, m)} %)" for t, m, v, _ in found) or "none"

    def spread(table: str, model: str) -> str:
        ours = results.of(table, OURS, "crps")
        shares = [100 * value / ours[split] for split, value in results.of(table, model, "crps").items() if split in ours]
        return f" ± {_error(shares):.1f}" if len(shares) > 1 else ""

    complete = results.complete()
    first = sum(min(one, key=one.__getitem__) == OURS for one in map(results.relative, results.tables))
    return [
        f"Mean rank over the {len(results.tables)} tables among the {len(complete)} models with all cells: "
        f"{order(results.ranks(complete), False)}.",
        "",
        f"Mean rank among all that have the table, and on how many tables: {order(results.ranks(results.models), True)}.",
        "",
        f"Ours is first among all that have the table on {first} of {len(results.tables)} tables. Lower than ours, by so "
        f"much of ours (standard errors over splits, where there are several): {named(results.lower())}.",
        "",
        f"Lost to any of them by more than 10 %: {named(results.lost())}.",
    ]


def _scores(results: Results) -> list[str]:
    rows = []
    for model in results.models:
        shown = []
        for score in SCORES:
            pairs = [pair for table in results.tables if (pair := results.pair(table, model, score)) is not None]
            if score in RATIOS:
                logs = [float(np.log(one / ours)) for one, ours in pairs]
                mean = float(np.exp(np.mean(logs))) if logs else 0.0
                error = mean * _error(logs)
            else:
                values = [one - ours if score != "coverage" else one for one, ours in pairs]
                mean, error = (float(np.mean(values)) if values else 0.0), _error(values)
            shown.append(f"{mean:.2f} ± {error:.2f}" if pairs else "")
        rows.append([model, str(sum(model in results.relative(table) for table in results.tables)), *shown])
    return _table(["model", "tables", *SCORES.values()], rows)


def _parts(results: Results) -> list[str]:
    models = [m for m in results.models if any(results.of(table, m, "noise") for table in results.tables)]
    rows = []
    for table in results.tables:
        shown = []
        for model in models:
            noise, disagreement = (list(results.of(table, model, one).values()) for one in ("noise", "disagreement"))
            shown.append(f"{number(float(np.mean(noise)))}, {number(float(np.mean(disagreement)))}" if noise else "")
        rmse = list(results.of(table, OURS, "rmse").values())
        rows.append([table, number(float(np.mean(rmse))), *shown])
    return _table(["table", "RMSE of ours", *models], rows)


def _seconds(results: Results) -> list[str]:
    """Of the machine that has most cells; ratios are of the same splits on it."""
    machines = [cell["machine"] for cell in results.cells]
    main = max(sorted(set(machines)), key=machines.count)
    here = Results([cell for cell in results.cells if cell["machine"] == main])
    rows = []
    for model in here.models:
        pairs = [pair for table in here.tables if (pair := here.pair(table, model, "fit")) is not None]
        own = [cell for cell in here.cells if cell["model"] == model]
        ratio = f"{np.exp(np.mean([np.log(one / ours) for one, ours in pairs])):.2g}" if pairs else ""
        fits, predicts = [cell["fit"] for cell in own], [cell["predict"] for cell in own]
        where = "GPU" if any(cell.get("device") == "cuda" for cell in own) else "one thread"
        rows.append(
            [
                model,
                where,
                str(len(own)),
                number(float(np.median(fits))),
                number(max(fits)),
                ratio,
                number(float(np.median(predicts))),
            ]
        )
    head = ["model", "on", "cells", "median fit", "longest", "share of ours", "median prediction"]
    return [f"{main}, beside an H200.", "", *_table(head, rows)]


def _timed(cells: list[Cell]) -> str:
    """Fits of more rows, in seconds of the processor: that machine had other work."""
    if not cells:
        return f"Fits of {TIMED} were not measured."
    own, rows = {cell["model"]: cell for cell in cells}, cells[0]["used_rows"]
    shown = ", ".join(f"{model} {number(cell['fit_processor'])}" for model, cell in own.items())
    return (
        f"Processor seconds of one thread to fit {rows:,} rows of Friedman's function in 20 columns, on a busy machine: {shown}."
    )


PREFACE = """`python benchmarks/tabular.py run`, then `write`. Every model as its documentation starts it, on three random 90/10
splits with at most 2,000 training rows, drawn at random, and at most 2,000 test rows. All get the same numbers:
categories of at most 12 values as a column each, others by their frequency, missing numbers as the median with a
column that says so. RealMLP and TabM predict numbers: a Gaussian with the variance of their errors on a tenth of the
training rows. LightGBM and XGBoost predict 13 quantiles; where these coincide there is no density, and no NLL. Of the
8,000 draws of bde, 200 are judged. Tables are those of `benchmarks/public.py`; the logarithm of the target is
predicted for sgemm and online_news. An empty cell was not measured: the machine's time ended before the slow ones,
bde, ten CatBoost models and the Gaussian process, had them all."""
CRPS = """Means and standard errors over the splits, whose rows overlap; in brackets the splits, where fewer than three. Ranks
and shares compare a model with ours on the splits that both have; bold is the best of the table by these, and need
not be the smallest mean."""
ALL = """Means over the tables that each model and ours both have, with standard errors over tables. CRPS, RMSE and width of
the 90 % interval are shares of ours (below 1 is less than ours), NLLs what they are above ours, the coverage is that
of 90 %."""
SPLIT = """The mean over the test rows of the standard deviations of each part, noise first, in units of the target; models
without members have no such parts. What a virtual ensemble or one forest's trees call disagreement is not what
networks from different seeds call so: compare the orders of magnitude with the error."""
SECONDS = """One process of one thread on each core, fifteen at a time, the later cells of bde, CatBoost x 10 and the Gaussian
process beside work of low priority; RealMLP and TabM each with a share of one GPU, whose seconds are not those of a
processor. Cells of another machine are left out here."""

"""Independent members beside members that share weights, draws of a posterior and other options, on public tables.

UQPRISM_DATA=... python benchmarks/ensembles.py run       # a line of JSON per fit; goes on where it was stopped
python benchmarks/ensembles.py write                      # RESULTS-ensembles.md from these lines

Rows that `tabular.py prepare` stored serve, too: `run --prepared FOLDER`. All seconds must be those of one machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import snapshots
import tabular

HERE = Path(__file__).parent
CELLS, REPORT = HERE / "ensembles.jsonl", HERE / "RESULTS-ensembles.md"
TABLES = ("airfoil", "abalone", "wine_white", "ccpp", "casp", "california", "bike", "taxis")
SMALL = ("mpg", "diabetes", "insurance", "airfoil", "friedman")
TEST = 1000  # rows
EXCESS, TOTAL = "crps.excess.members.members", "crps.total.members.members"
NARROW: dict[str, Any] = {"hidden": (16, 16), "embedding": None, "head": "mean_variance"}
LOG = ("mixture", {"rule": "log"})
OPTIONS: dict[str, dict[str, Any]] = {
    "independent": {},
    "shared": {"shared": True},
    "tree bins": {"bins": "tree"},
    "bootstrapped rows": {"bootstrap": True},
    "refit": {"refit": True},
    "log score": {"head": LOG},
    "trained, 2 x 16": NARROW,
    "posterior, 2 x 16": {**NARROW, "posterior_samples": 10},
    "posterior of mixtures, 2 x 16": {**NARROW, "head": "mixture", "posterior_samples": 10},
    "independent, 2": {"n_members": 2},
    "independent, 3": {"n_members": 3},
    "independent, 5": {"n_members": 5},
    "independent, 10": {},  # again, on the machine of this section
    "independent, 15": {"n_members": 15},
}
# Networks, cycles of the learning rate, and the shares of a whole training that the first and each further cycle take.
SNAPSHOTS = {
    "snapshots, 1 x 10": (1, 10, 0.2, 0.2),
    "snapshots, 2 x 5": (2, 5, 0.5, 0.5),
    "snapshots, 5 x 2": (5, 2, 1.0, 0.5),
    "snapshots, 10 x 3": (10, 3, 1.0, 0.2),
}
TIMED = "Snapshots of fewer networks, by seconds of training"
SECTIONS = (
    (
        "Sharing weights, and where bins end",
        TABLES,
        ("independent", "shared", "tree bins", "bootstrapped rows"),
        """Ten members of `DeepEnsembleRegressor` as it comes, against members that share the matrices of one network
(`shared=True`), bins that a tree of the targets ends (`bins="tree"`), and rows drawn with replacement (`bootstrap=True`).""",
    ),
    (
        "Draws from the posterior of small tables",
        SMALL,
        ("independent", "trained, 2 x 16", "posterior, 2 x 16", "posterior of mixtures, 2 x 16"),
        """Ten members as they come, ten networks of two layers of 16 units with one Gaussian each
(`hidden=(16, 16), embedding=None, head="mean_variance"`), and ten draws from each of these (`posterior_samples=10`).
Last, the same with the default head, mixtures.""",
    ),
    (
        TIMED,
        TABLES,
        (
            "independent, 10",
            "independent, 2",
            "independent, 3",
            "independent, 5",
            "independent, 15",
            *SNAPSHOTS,
        ),
        """Networks that are kept at the end of every cycle of the learning rate, as many networks x cycles as the name says.
The cycles are a fifth of a whole training each (1 x 10), a half (2 x 5), a whole one and a half (5 x 2), a whole one and
two fifths (10 x 3). Those that take longer than fifteen members are compared with fifteen. On a busy machine.""",
    ),
)


def fitted(option: str, number: int, x: Any, y: Any) -> Any:
    """What predicts, trained as an option says."""
    import uqprism as up
    from uqprism.training import heads

    settings = {"device": "cpu", "progress": False}
    if option in SNAPSHOTS:
        networks, cycles, first, further = SNAPSHOTS[option]
        parts = {"n_members": networks, "cycles": cycles, "first": first, "further": further}
        return snapshots.fit(x, y, head="mixture", seed=number, **parts, **settings)
    settings |= {"random_state": number, **OPTIONS[option]}
    if isinstance(settings.get("head"), tuple):
        head, given = settings["head"]
        settings["head"] = heads.heads.get(head)(**given)
    return up.DeepEnsembleRegressor(**settings).fit(x, y).ensemble_


def measure(table: str, option: str, number: int, most: int, prepared: Path | None) -> dict[str, Any]:
    """One fit on one split."""
    import torch

    import uqprism as up

    torch.set_num_threads(1)  # so that processor seconds are those of the work
    warnings.simplefilter("ignore")
    x, y, x_test, targets = tabular.Sizes(most, TEST, prepared).rows(table, number)
    start = time.process_time()
    model = fitted(option, number, x, y)
    seconds = time.process_time() - start
    ens, scale = model.predict_ensemble(x_test), y.std()
    rng = np.random.default_rng(number)
    unlike = np.column_stack([rng.permutation(column) for column in x_test.T])  # columns that no longer belong together
    tables = [up.evaluate(each, [EXCESS, TOTAL]) for each in (ens, model.predict_ensemble(unlike))]
    log = up.rules.Log()
    return {
        "table": table,
        "option": option,
        "split": number,
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean((ens.matched.mean - targets) ** 2)) / scale),
        "crps": float(np.mean(up.rules.CRPS().score(ens.mixture, targets)) / scale),
        "nll": float(np.mean(log.score(ens.mixture, targets)) - np.log(scale)),
        "nll_gaussian": float(np.mean(log.score(ens.matched, targets)) - np.log(scale)),
        "ood": float(up.ood_detection(*tables)[EXCESS]),
        "prr": float(up.selective_prediction(tables[0], error=up.prediction_error(ens, targets))[TOTAL]),
        "seconds": seconds,
        "r_hat": None if model.posterior is None else model.posterior.r_hat,
        "machine": tabular.machine(),
    }


def run(path: Path, splits: int, most: int, sections: list[int], *, prepared: Path | None, jobs: int) -> None:
    """Measure what is missing."""
    done = {(cell["table"], cell["option"], cell["split"]) for cell in finished(path)}
    tasks = [
        (table, option, number)
        for number in range(splits)
        for _, tables, options, _ in (SECTIONS[i] for i in sections)
        for table in tables
        for option in options
    ]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool, path.open("a") as file:
        running = [pool.submit(measure, *task, most, prepared) for task in dict.fromkeys(tasks) if task not in done]
        for cell in as_completed(running):
            print(cell.result(), flush=True)
            file.write(json.dumps(cell.result()) + "\n")
            file.flush()


def finished(path: Path) -> list[dict[str, Any]]:
    """The fits of earlier runs."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summary(cells: list[dict[str, Any]], tables: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """A row for each option, against the first: ratios, differences and means over the tables that both have."""
    at = {(cell["table"], cell["split"], cell["option"]): cell for cell in cells if cell["table"] in tables}
    lines = [
        "| members | tables | RMSE | CRPS | worst | NLL | NLL of one Gaussian | AUROC | PRR | processor time |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for option in options:
        pairs = [
            (at[table, split, option], at[table, split, options[0]])
            for table, split, name in at
            if name == option and (table, split, options[0]) in at
        ]
        if not pairs:
            continue
        ratio = {score: [np.log(a[score] / b[score]) for a, b in pairs] for score in ("rmse", "crps", "seconds")}
        less = {score: np.mean([a[score] - b[score] for a, b in pairs]) for score in ("nll", "nll_gaussian")}
        mean = {score: np.mean([a[score] for a, _ in pairs]) for score in ("ood", "prr")}
        lines.append(
            f"| {option} | {len({a['table'] for a, _ in pairs})} | {np.exp(np.mean(ratio['rmse'])):.3f} "
            f"| {np.exp(np.mean(ratio['crps'])):.3f} | {np.exp(max(ratio['crps'])):.3f} | {less['nll']:+.3f} "
            f"| {less['nll_gaussian']:+.3f} | {mean['ood']:.3f} | {mean['prr']:.3f} | {np.exp(np.mean(ratio['seconds'])):.2f} |"
        )
    return lines


def each(cells: list[dict[str, Any]], tables: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """CRPS of every table, with what is known of the draws."""
    lines = [f"| table | rows | {' | '.join(options)} |", f"|---|---|{'---|' * len(options)}"]
    for table in tables:
        own = [cell for cell in cells if cell["table"] == table]
        texts = []
        for option in options:
            found = [cell for cell in own if cell["option"] == option]
            text = f"{np.mean([cell['crps'] for cell in found]):.4f}" if found else ""
            judged = [cell["r_hat"] for cell in found if cell["r_hat"]]
            texts.append(f"{text} (R-hat {np.mean(judged):.2f})" if judged else text)
        if own:
            lines.append(f"| {table} | {own[0]['rows']:,} | {' | '.join(texts)} |")
    return lines


def by_seconds(cells: list[dict[str, Any]], options: tuple[str, ...]) -> list[str]:
    """The CRPS of snapshots as a share of that of independent members which train as many seconds, by interpolation."""
    counts = [option for option in options if option.startswith("independent")]
    lines = ["| members | CRPS | worst | best |", "|---|---|---|---|"]
    for option in (option for option in options if option in SNAPSHOTS):
        shares = []
        for own in (cell for cell in cells if cell["option"] == option):
            same = [c for c in cells if (c["table"], c["split"]) == (own["table"], own["split"]) and c["option"] in counts]
            same.sort(key=lambda cell: cell["seconds"])
            seconds, values = ([np.log(cell[name]) for cell in same] for name in ("seconds", "crps"))
            if len(same) == len(counts):
                shares.append(np.log(own["crps"]) - np.interp(np.log(own["seconds"]), seconds, values))
        if shares:
            mean, worst, best = (np.exp(value) for value in (np.mean(shares), max(shares), min(shares)))
            lines.append(f"| {option} | {mean:.3f} | {worst:.3f} | {best:.3f} |")
    return lines


def write(path: Path) -> None:
    """The report."""
    cells = finished(path)
    lines = ["# Kinds of members", "", *PREFACE.splitlines(), ""]
    for title, tables, options, text in SECTIONS:
        own = [cell for cell in cells if cell["option"] in options]
        lines += [f"## {title}", "", *text.splitlines(), "", *summary(own, tables, options), ""]
        if title == TIMED:
            lines += [
                "CRPS as a share of that of independent members that train as many seconds:",
                "",
                *by_seconds(own, options),
                "",
            ]
        lines += ["CRPS by table:", "", *each(own, tables, options), ""]
    REPORT.write_text("\n".join(lines).rstrip() + "\n")


PREFACE = """`python benchmarks/ensembles.py run`, then `write`. A random 90/10 split of each table, two where that is said,
at most 1,000 training and 1,000 test rows. RMSE, CRPS and processor time are ratios to the first row, geometric
means over the tables, the NLLs differences, of standardised targets; the worst CRPS is over tables and splits.
AUROC: how well the CRPS excess tells the test rows from rows whose columns were shuffled, each by itself. PRR:
of the squared error, by the CRPS total. Processor time is that of the fit, with one thread; R-hat that of the
predicted means, which should not exceed 1.1."""


def main() -> None:
    """Run or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "write"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000, help="training rows at most")
    parser.add_argument("--sections", type=int, nargs="*", default=[*range(len(SECTIONS))])
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--prepared", type=Path, help="folder of prepared rows")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.what == "run":
        run(given.cells, given.splits, given.rows, given.sections, prepared=given.prepared, jobs=given.jobs)
    else:
        write(given.cells)


if __name__ == "__main__":
    main()

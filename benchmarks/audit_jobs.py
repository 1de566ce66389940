"""Audits of sets of known truth on many cores at once, and how learning goes on under truths drawn at random, on a GPU.

    python benchmarks/audit_jobs.py known FOLDER SECONDS     # one of several processes: takes jobs that nobody has taken
    python benchmarks/audit_jobs.py drawn FOLDER SECONDS     # learning curves of random truths, in stacks
    python benchmarks/audit_jobs.py pack FOLDER OUT          # what is in the folder, as OUT/known.json.gz and OUT/drawn.npz

Each job is one file in FOLDER, so that the same commands go on where they stopped.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import audit as runs
import numpy as np
from audit_page import CLOSELY, N
from truths import FRESH, KNOWN, drawn

from uqprism.support.storage import write_text

MEASURES = [each for each in runs.MEASURES if each != "log.excess.mixture.members"]  # this needs integrals: see `audit.py known`
SETS = KNOWN | FRESH
AUDIT_TEST, OTHER_TEST = 2000, 6000  # rows to judge by, others for each set of rows
HARD = {"faint": 72, "two_curves": 40, "sine": 32, "tails": 28}  # other sets, where what happened is most uncertain
OTHERS = 20
LEVELS = 6  # sizes of a random truth, from N / 8 on
DRAWN_TEST = 8000
INPUTS = (1, 2, 3, 5, 8, 12)
GROUP = 12  # random truths that are trained in one stack

Job = tuple[str, str, int]  # set, audit or other, number


def jobs() -> Iterator[Job]:
    """What is to be run, the most important first."""
    for first, last in ((0, 4), (4, 8)):
        for name in SETS:
            yield from ((name, "other", number) for number in range(first, last))
            yield from ((name, "audit", number) for number in range(first // 2, last // 2))
    for first in range(8, 72, 8):
        for name in SETS:
            yield from ((name, "other", number) for number in range(first, min(first + 8, HARD.get(name, OTHERS))))
        if first == 8:
            for name in SETS:
                yield from ((name, "audit", number) for number in range(4, 6))


def one(job: Job) -> dict[str, Any]:
    """The numbers of one audit, with those of each training set."""
    name, what, number = job
    make_fit, predict = runs.MODELS[CLOSELY]
    first, rows, test = (number, N, AUDIT_TEST) if what == "audit" else (1000 + number, 4 * N, OTHER_TEST)
    how = {"repeats": 4, "resamples": 500} if what == "audit" else {"parts": 4, "repeats": 1, "resamples": 0}
    with tempfile.TemporaryDirectory() as folder:
        found = runs.audit(
            make_fit(),
            *SETS[name](rows, first),
            test=SETS[name](test, 10**6 + 1 + first),
            predict=predict,
            seed=first,
            measures=MEASURES,
            folder=folder,
            progress=False,
            **how,
        )
        about = runs.numbers(found, known=True)
        parts = {
            f"{size}": [np.load(path)["parts"] for path in sorted(Path(folder).glob(f"rows_{size}_repeat_*.npz"))]
            for size in found.sizes
        }
    for place, measure in enumerate(found):
        about[measure]["parts"] = {size: runs.short([each[place] for each in values], 5) for size, values in parts.items()}
    return {"sizes": found.sizes, "measures": about}


def known(folder: Path, until: float) -> None:
    """Run jobs that no other process has taken, while there is time."""
    took: dict[str, float] = {}
    for job in jobs():
        name, what, number = job
        path = folder / f"{name}-{what}-{number}.json"
        if path.exists() or time.time() + 1.3 * took.get(what, 0.0) > until:
            continue
        try:
            os.close(os.open(path.with_suffix(".taken"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        started = time.time()
        value = one(job)
        took[what] = time.time() - started
        write_text(path, json.dumps({f"known/{name}/{CLOSELY}/{what} {number}": value}))
        print(f"{time.time():.0f} {path.stem}: {took[what]:.1f} s", flush=True)


# Random truths ----------------------------------------------------------------------------------------------------------


def curves(inputs: int, first: int, data: int) -> np.ndarray:
    """Excess, noise and penalty of some random truths, (truths, training sets, 3 rules, 3), all sizes one after the other."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    fit = runs.networks(bootstrap=True, device=device)
    rows = int(os.environ.get("AUDIT_DRAWN_ROWS", N << 2))
    truths = [drawn(inputs, first + number) for number in range(GROUP)]
    given = [truth(rows, 100 + data) for truth in truths]
    x, y = (np.concatenate([each[at] for each in given]) for at in (0, 1))
    tests = [truth(DRAWN_TEST, 200 + data) for truth in truths]
    tests = [tuple(torch.as_tensor(each, dtype=torch.float32, device=device) for each in test) for test in tests]
    found: list[list[np.ndarray]] = [[] for _ in truths]
    for level in reversed(range(LEVELS)):
        started = time.time()
        count = 1 << level
        sets = np.arange(len(y)).reshape(GROUP * count, -1)
        models = fit.many(x, y, sets, list(range(1000 * level, 1000 * level + len(sets))))
        trained = time.time()
        for number, model in enumerate(models):
            found[number // count].append(judged(model, *tests[number // count]))
        print(
            f"{inputs} inputs, {len(models)} x {sets.shape[1]} rows: {trained - started:.1f} + {time.time() - trained:.1f} s",
            flush=True,
        )
    return np.array(found)


def judged(model: Any, x: Any, y: Any) -> np.ndarray:
    """Mean excess, noise and penalty between Gaussian members, under CRPS, log score and squared error, (3 rules, 3)."""
    import torch

    members = model.predict_ensemble(x).members
    mean, variance = (torch.as_tensor(each, dtype=torch.float64) for each in (members.mean, members.variance))
    mean, variance = (each.T if each.shape[0] == len(y) else each for each in (mean, variance))
    y = y.double()

    def gap(shift: Any, spread: Any) -> Any:
        """E|X| of a Gaussian with this mean and variance."""
        scale = spread.sqrt()
        z = shift / scale
        return shift * torch.erf(z / 2**0.5) + scale * (2.0 / torch.pi) ** 0.5 * torch.exp(-0.5 * z**2)

    def means(*each: Any) -> list[float]:
        return [float(value.mean()) for value in each]

    apart, sums = mean[:, None] - mean, variance[:, None] + variance
    own = (variance / torch.pi).sqrt()  # half of E|X - X'|, which is also the noise
    crps = means(gap(apart, sums) - own[:, None] - own, own, gap(mean - y, variance) - own)
    ratio = variance[:, None] / variance
    log = means(
        0.5 * (ratio - 1.0 - ratio.log() + apart**2 / variance),
        0.5 * (2.0 * torch.pi * torch.e * variance).log(),
        0.5 * ((2.0 * torch.pi * variance).log() + (y - mean) ** 2 / variance),
    )
    return np.array([crps, log, means(apart**2, variance, (y - mean) ** 2)])


def drawn_truths(folder: Path, until: float) -> None:
    """Learning curves of random truths, group by group, while there is time."""
    longest = 0.0
    for turn in range(100):
        for inputs in INPUTS:
            path = folder / f"drawn-{inputs}-{turn}.npz"
            if path.exists() or time.time() + 1.2 * longest > until:
                continue
            started = time.time()
            found = [curves(inputs, GROUP * turn, data) for data in range(2)]
            np.savez(path.with_suffix(".part.npz"), np.array(found, np.float32))
            os.replace(path.with_suffix(".part.npz"), path)
            longest = max(longest, time.time() - started)


def pack(folder: Path, out: Path) -> None:
    """Everything that is finished, in two files."""
    out.mkdir(parents=True, exist_ok=True)
    values: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        values |= json.loads(path.read_text())
    with gzip.open(out / "known.json.gz", "wt") as file:
        json.dump(values, file)
    curves_of = {path.stem: np.load(path)["arr_0"] for path in folder.glob("drawn-*.npz") if ".part" not in path.name}
    if curves_of:
        np.savez_compressed(out / "drawn.npz", **curves_of)
    print(f"{len(values)} audits, {len(curves_of)} groups of random truths")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, where, given = sys.argv[1:4]
    Path(where).mkdir(parents=True, exist_ok=True)
    if what == "known":
        known(Path(where), time.time() + float(given))
    elif what == "drawn":
        drawn_truths(Path(where), time.time() + float(given))
    elif what == "pack":
        pack(Path(where), Path(given))

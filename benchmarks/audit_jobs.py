"""Audits of sets of known truth on many cores at once, each with test rows of its own.

    python benchmarks/audit_jobs.py known FOLDER SECONDS  # one of several processes: takes jobs that nobody has taken
    python benchmarks/audit_jobs.py pack FOLDER OUT       # what is in the folder, as OUT/known.json for `audit.py merge`

Each job is one file in FOLDER, so that the same commands go on where they stopped.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import audit as runs
from audit_store import CLOSELY, N
from truths import FRESH, KNOWN

from uqprism.support.storage import write_text

MEASURES = [each for each in runs.MEASURES if each != "log.excess.mixture.members"]  # this needs integrals: see `audit.py known`
SETS = KNOWN | FRESH
AUDIT_TEST, OTHER_TEST = 2000, 6000  # rows to judge by, others for each set of rows
HARD = {"faint": 72, "two_curves": 40, "sine": 32, "tails": 28}  # other sets, where what happened is most uncertain
OTHERS = 20

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
    """The numbers of one audit."""
    name, what, number = job
    make_fit, predict = runs.MODELS[CLOSELY]
    first, rows, test = (number, N, AUDIT_TEST) if what == "audit" else (1000 + number, 4 * N, OTHER_TEST)
    how = {"repeats": 4, "resamples": 500} if what == "audit" else {"parts": 4, "repeats": 1, "resamples": 0}
    found = runs.audit(
        make_fit(),
        *SETS[name](rows, first),
        test=SETS[name](test, 10**6 + 1 + first),
        predict=predict,
        seed=first,
        measures=MEASURES,
        progress=False,
        **how,
    )
    return {"sizes": found.sizes, "measures": runs.numbers(found, known=True)}


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


def pack(folder: Path, out: Path) -> None:
    """Everything that is finished, in one file."""
    out.mkdir(parents=True, exist_ok=True)
    values = {key: value for path in sorted(folder.glob("*.json")) for key, value in json.loads(path.read_text()).items()}
    write_text(out / "known.json", json.dumps(values))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, where, given = sys.argv[1:4]
    Path(where).mkdir(parents=True, exist_ok=True)
    if what == "known":
        known(Path(where), time.time() + float(given))
    elif what == "pack":
        pack(Path(where), Path(given))

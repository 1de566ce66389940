"""Memory and time of `uqprism flag` by the number of rows: a section of RESULTS-recalibration.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import results

import files

ROWS = (250_000, 1_000_000, 4_000_000, 16_000_000)
MEMBERS, MOST_SCORED = 5, 4_000_000  # rows of files of members, which are scored first
PARTS = ("crps.total.members.members", "crps.bayes.members", "crps.excess.members.members")
FLAG = """
import re, sys
import numpy, pyarrow.parquet, uqprism.files.flagging

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
report = uqprism.files.flag(sys.argv[1], sys.argv[2], overwrite=True)
print(report.flagged, report.threshold, report.seconds, peak() - before)
"""


def scored(rows: int) -> Iterator[pa.Table]:
    """A key, and the measures of a scored file."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, files.CHUNK):
        count = min(files.CHUNK, rows - start)
        noise, disagreement = np.exp(rng.normal(size=count)), np.exp(rng.normal(size=count) - 1.0)
        columns = dict(zip(PARTS, (noise + disagreement, noise, disagreement), strict=True))
        yield pa.table({"key": np.arange(start, start + count), **columns})


def measure(folder: Path, kind: str, rows: int) -> str:
    """A row of the table: seconds, and the peak of memory above that of the interpreter with its libraries."""
    source, target = folder / "in.parquet", folder / "out.parquet"
    files.write(source, scored(rows) if kind == "scored" else files.chunks(rows, MEMBERS))
    size = source.stat().st_size
    command = [sys.executable, "-c", FLAG, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (this interpreter)
    flagged, threshold, seconds, memory = done.stdout.split()
    exact = ""
    if kind == "scored":
        values = pq.read_table(source, columns=[PARTS[0]])[PARTS[0]].to_numpy()
        last = np.partition(values, -int(flagged))[-int(flagged)]
        exact = "yes" if last == float(threshold) and int(flagged) == -(-rows // 10) else "no"
    cells = (
        kind,
        f"{rows:,}",
        f"{size / 1e6:,.0f}",
        f"{float(seconds):.1f}",
        f"{int(memory) / 1e3:,.0f}",
        f"{int(flagged):,}",
        exact,
    )
    return f"| {' | '.join(cells)} |"


def report() -> list[str]:
    """The section."""
    lines = [
        "## Flags",
        "",
        f"`uqprism.files.flag(share=0.1)`: files of three measures and a key, and files of {MEMBERS} Gaussian members, which are "
        "scored first. Memory: the peak of the process above what it has after the imports. Exact: whether the threshold is the "
        "one that sorting all rows in memory gives.",
        "",
        "| file | rows | MB | seconds | memory (MB) | flagged | exact |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("scored", "members"):
            for rows in ROWS:
                if kind == "scored" or rows <= MOST_SCORED:
                    lines.append(measure(Path(folder), kind, rows))
                    print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    results.write(results.RECALIBRATION, report(), results.processor(), ("uqprism", "numpy", "pyarrow"))

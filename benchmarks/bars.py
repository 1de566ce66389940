"""Time members given by bars and by quantiles: a block of rows evaluated again and again, and a file of quantiles scored.

The bars: 8 members x 5,000 bars x 100,000 rows under CRPS and log in less than 20 seconds of two cores and 2 GB; a file of five
million rows in bounded memory. Beside the time on the clock is that of the processor, which says more on a busy machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import uqprism as up

USUAL = [
    f"{rule}.{risk}" for rule in ("crps", "log") for risk in ("total.members.members", "bayes.members", "excess.members.members")
]
CHUNK = 1 << 18
LEVELS = ("05", "25", "50", "75", "95")
SCORE = """
import re, resource, sys
import numpy, numba, pyarrow.parquet, uqprism.files
from uqprism.files import manifest, rows, stream

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
report = uqprism.files.score(sys.argv[1], sys.argv[2], overwrite=True)
used = resource.getrusage(resource.RUSAGE_SELF)
print(report.rows, report.seconds, used.ru_utime + used.ru_stime, peak() - before)
"""


def block(members: int, bars: int, rows: int) -> up.EnsemblePrediction:
    """Bars of Gaussians that differ, with shared edges."""
    rng = np.random.default_rng(0)
    edges = np.linspace(-6.0, 6.0, bars + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    mass = np.empty((members, bars, rows))
    for i in range(members):
        density = np.exp(-0.5 * ((middle - rng.normal(size=rows)) / np.exp(0.3 * rng.normal(size=rows))) ** 2)
        mass[i] = density / density.sum(axis=0)
    return up.EnsemblePrediction.histogram(edges=edges, probabilities=mass, outer="half_normal")


def evaluated(ens: up.EnsemblePrediction, names: list[str], times: int) -> tuple[float, float]:
    """Seconds on the clock and of the processor to evaluate these measures so often."""
    up.evaluate(ens[:32], names)
    start, used = time.perf_counter(), time.process_time()
    for _ in range(times):
        up.evaluate(ens, names)
    return time.perf_counter() - start, time.process_time() - used


def write(path: Path, rows: int, members: int) -> None:
    """A Parquet file of a key and quantiles of members that differ."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        columns = {"key": np.arange(start, start + count)}
        for i in range(members):
            values = np.cumsum(np.exp(0.3 * rng.normal(size=(len(LEVELS), count))), axis=0) + 0.5 * rng.normal(size=count)
            columns |= {f"q{level}_{i}": x for level, x in zip(LEVELS, values, strict=True)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def report(rows: int = 5_000_000, times: int = 100, *, folder: Path | None = None) -> list[str]:
    """The section on bars and quantiles."""
    ens = block(8, 5_000, 1_000)
    clock, used = evaluated(ens, USUAL, times)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        source, target = Path(inside) / "in.parquet", Path(inside) / "out.parquet"
        write(source, rows, 3)
        command = [sys.executable, "-c", SCORE, str(source), str(target)]
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603 (this program)
        size = source.stat().st_size / rows
    scored, spent = int(done[0]) / float(done[1]), float(done[2])
    return [
        "## Bars and quantiles",
        "",
        f"8 members x 5,000 bars x 1,000 rows, total, Bayes and excess of CRPS and log, {times} times: {clock:.1f} seconds on "
        f"the clock, {used:.1f} of the processor, {memory:.2f} GB at most with the interpreter.",
        "",
        f"`uqprism score` on {rows:,} rows of a Parquet file of 3 members x {len(LEVELS)} quantiles ({size:.0f} bytes a row), 12 "
        f"measures: {scored:,.0f} rows per second on the clock, {rows / spent:,.0f} per second of the processor, "
        f"{int(done[3]) / 1024:,.0f} MB above the interpreter.",
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the file")
    parser.add_argument("--times", type=int, default=100, help="how often the block is evaluated")
    given = parser.parse_args()
    print("\n".join(report(given.rows, given.times)))


if __name__ == "__main__":
    main()

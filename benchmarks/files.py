"""Time `uqprism score` on a large Parquet file against its parts: reading, evaluating in memory, writing.

The bar: at least half the rows per second of the three one after the other, with less than a gigabyte above the interpreter.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import uqprism as up
from uqprism.measures import select_measures

CHUNK = 1 << 20
SAMPLE = 1 << 20  # rows evaluated in memory
SCORE = """
import re, sys
import numpy, pyarrow.parquet, uqprism.files
from uqprism.files import manifest, rows, stream

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
report = uqprism.files.score(sys.argv[1], sys.argv[2], overwrite=True, threads=int(sys.argv[3]) or None)
print(report.rows, report.seconds, peak() - before)
"""


def chunks(rows: int, members: int) -> Iterator[pa.Table]:
    """A key and the members' means and variances, which spread as those of a trained ensemble do."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        centre, columns = rng.normal(size=count), {"key": np.arange(start, start + count)}
        for i in range(members):
            columns[f"mean_{i}"] = centre + 0.5 * rng.normal(size=count)
        for i in range(members):
            columns[f"variance_{i}"] = np.exp(0.6 * rng.normal(size=count))
        yield pa.table(columns)


def write(path: Path, tables: Iterator[pa.Table]) -> float:
    """Seconds to write these tables, not counting the time to make them."""
    seconds, writer = 0.0, None
    for table in tables:
        start = time.perf_counter()
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
        seconds += time.perf_counter() - start
    start = time.perf_counter()
    if writer is not None:
        writer.close()
    return seconds + time.perf_counter() - start


def read(path: Path) -> float:
    """Seconds to read every batch of the file."""
    start = time.perf_counter()
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=CHUNK) as file:
        for _ in file.iter_batches(batch_size=1 << 17):
            pass
    return time.perf_counter() - start


def evaluate(path: Path, members: int) -> tuple[int, float]:
    """Rows and seconds of the same measures in memory, the best of three."""
    with pq.ParquetFile(path) as file:
        batch = next(file.iter_batches(batch_size=SAMPLE))
    given = {kind: np.stack([batch.column(f"{kind}_{i}").to_numpy() for i in range(members)]) for kind in ("mean", "variance")}
    ens, names = up.EnsemblePrediction.gaussian(**given), [measure.name for measure in select_measures("usual")]
    up.evaluate(ens[:100], names)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        up.evaluate(ens, names)
        times.append(time.perf_counter() - start)
    return batch.num_rows, min(times)


def output_like(rows: int) -> Iterator[pa.Table]:
    """Tables of the size of the output."""
    rng = np.random.default_rng(1)
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        measures = {measure.name: rng.normal(size=count) for measure in select_measures("usual")}
        yield pa.table({"key": np.arange(start, start + count), **measures})


def report(rows: int, members: int = 10, *, threads: int = 0, folder: Path | None = None) -> list[str]:
    """The section on files."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        source, target = Path(inside) / "in.parquet", Path(inside) / "out.parquet"
        write(source, chunks(rows, members))
        speeds = {"raw read": rows / read(source), "raw write": rows / write(target, output_like(rows))}
        count, seconds = evaluate(source, members)
        speeds["evaluate in memory"] = count / seconds
        command = [sys.executable, "-c", SCORE, str(source), str(target), str(threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()  # noqa: S603 (this program)
        sizes = [path.stat().st_size / rows for path in (source, target)]
    together = 1.0 / sum(1.0 / speed for speed in speeds.values())
    scored = int(done[0]) / float(done[1])
    speeds |= {"the three in turn": together, "`uqprism score`": scored}
    return [
        "## Files",
        "",
        f"{rows:,} rows x {members} members of Parquet ({sizes[0]:.0f} bytes a row), 12 measures ({sizes[1]:.0f} bytes a row).",
        "",
        "| what | rows per second |",
        "|---|---|",
        *(f"| {name} | {speed:,.0f} |" for name, speed in speeds.items()),
        "",
        f"`score` runs at {scored / together:.2f} of the three in turn, {int(done[2]) / 1024:,.0f} MB above the interpreter.",
    ]


def main() -> None:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--threads", type=int, default=0, help="of score; by default its own choice")
    parser.add_argument("--folder", type=Path, help="where the files go; by default a temporary folder")
    given = parser.parse_args()
    print("\n".join(report(given.rows, given.members, threads=given.threads, folder=given.folder)))


if __name__ == "__main__":
    main()

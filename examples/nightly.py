"""A nightly job that meets what nights bring: two bad shards of twenty, a machine that goes down, and a late shard.

`python examples/nightly.py` prints what the operator sees. With the name of a page, it writes that into the page's first console
block after the mark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCRIPT = Path(__file__).with_suffix(".sh")
MARK = "<!-- the night: written by examples/nightly.py -->\n"
ROWS = 500
SHOWN = ("exit_code", "inputs", "rows", "resumed_rows", "bad_rows", "bad_files", "removed_parts")  # of the summary
# The process kills itself after eight parts, so that every run of this example shows the same.
POWER_CUT = """
import os, sys
from uqprism.__main__ import main
from uqprism.files.outcome import Run
add = Run.add
Run.add = lambda run, part: (add(run, part), len(run.made) == 8 and os.kill(os.getpid(), 9))
main()
"""


def shard(folder: Path, number: int, *, leave_out: tuple[str, ...] = (), bad_rows: int = 0, apart: float = 1.0) -> None:
    """Deliver one shard: the members' means and variances of so many rows; `apart` moves the members from each other."""
    columns = {"id": np.arange(ROWS) + ROWS * number} | predictions(number, ROWS, apart)
    columns["mean_1"][:bad_rows] = np.nan
    kept = {name: values for name, values in columns.items() if name not in leave_out}
    pq.write_table(pa.table(kept), folder / f"shard-{number:02d}.parquet")


def predictions(seed: int, rows: int, apart: float = 1.0) -> dict[str, np.ndarray]:
    """What three members predict."""
    rng = np.random.default_rng(seed)
    columns = {f"mean_{i}": apart * rng.normal(size=rows) for i in range(3)}
    return columns | {f"variance_{i}": np.exp(rng.normal(size=rows)) for i in range(3)}


def deliver(landing: Path) -> None:
    """Nineteen of the twenty shards, as they come: two are no good, and one has bad rows."""
    for number in range(19):
        shard(landing, number, leave_out=("variance_2",) if number == 13 else (), bad_rows=5 if number == 4 else 0)
    cut_off = landing / "shard-07.parquet"
    cut_off.write_bytes(cut_off.read_bytes()[:10_000])


def job(place: Path, *, power_cut: bool = False) -> Iterator[str]:
    """What the job prints, and its exit code."""
    program = place / "bin" / "uqprism"
    program.parent.mkdir(exist_ok=True)
    what = ["-c", POWER_CUT] if power_cut else ["-m", "uqprism"]
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in (sys.executable, *what)) + ' "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", SCRIPT],
        cwd=place,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    yield "$ sh nightly.sh"
    # Shells tell of a killed process each in their own way, and no two runs take the same time.
    lines = [line for line in done.stdout.splitlines() if "Killed" not in line]
    yield from (re.sub(r"in [\d.]+ s \([\d,]+ rows/s\)", "in ... s (... rows/s)", line) for line in lines)
    yield f"$ echo $?\n{done.returncode}"


def night(place: Path) -> Iterator[str]:
    """The whole session."""
    landing = place / "landing"
    landing.mkdir()
    pq.write_table(pa.table(predictions(1000, 2_000)), place / "reference.parquet")
    deliver(landing)
    yield "# 02:00  Nineteen shards are there. The machine goes down in the middle."
    yield from job(place, power_cut=True)
    yield f"$ ls scored | wc -l\n{sum(path.suffix == '.parquet' for path in (place / 'scored').iterdir())}"
    yield "\n# 03:00  The same command again: finished parts stay, the rest is scored, bad shards are named."
    yield from job(place)
    yield "$ cat night.json"
    about = json.loads((place / "night.json").read_text())
    yield json.dumps({name: about[name] for name in SHOWN}, indent=1)
    yield "\n# 09:00  The late shard has arrived, from a plant that the models do not know, and the bad ones once more."
    for number in (7, 13, 19):
        shard(landing, number, apart=2.0 if number == 19 else 1.0)
    yield from job(place)


def main() -> None:
    """Print the session, or write it into a page."""
    with tempfile.TemporaryDirectory() as folder:
        session = "\n".join(night(Path(folder)))
    if len(sys.argv) < 2:
        print(session)
        return
    page = Path(sys.argv[1])
    before, after = page.read_text().split(MARK, 1)
    rest = after.split("```\n", 2 if after.startswith("```") else 1)[-1]
    page.write_text(f"{before}{MARK}```console\n{session}\n```\n{rest}")


if __name__ == "__main__":
    main()

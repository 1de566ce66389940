"""Memory does not grow with the file, whatever its row groups."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 450_000
PEAK = """
import re, sys
import uqprism.files
from uqprism.files import rows

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])

rows.BATCH_BYTES = 1 << 22  # small, so that a file of a modest size has many batches
measures = "squared_error.bayes.members"
uqprism.files.score(sys.argv[1], sys.argv[3], measures=measures, threads=1)
before = peak()
uqprism.files.score(sys.argv[2], sys.argv[3], measures=measures, threads=1, overwrite=True)
print(peak() - before)
"""


@pytest.mark.parametrize(("suffix", "target"), [("parquet", "parquet"), ("npz", "npz"), ("npz", "parquet")])
def test_the_peak_is_that_of_a_few_batches(tmp_path: Path, suffix: str, target: str) -> None:
    """A file in a single row group of 20 members, three times as long as another, raises the peak by a fraction of itself."""
    rng = np.random.default_rng(0)
    for name, rows in (("short", ROWS // 3), ("long", ROWS)):
        values = {"mean": rng.normal(size=(20, rows)), "variance": np.exp(rng.normal(size=(20, rows)))}
        if suffix == "npz":
            np.savez(tmp_path / f"{name}.npz", **values)
        else:
            columns = {f"{kind}_{i}": row for kind, matrix in values.items() for i, row in enumerate(matrix)}
            pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=rows)
    files = [str(tmp_path / name) for name in (f"short.{suffix}", f"long.{suffix}", f"out.{target}")]
    result = subprocess.run([sys.executable, "-c", PEAK, *files], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    size = (tmp_path / f"long.{suffix}").stat().st_size
    assert int(result.stdout) * 1024 < size / 4

"""Memory does not grow with the file, whatever its row groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import run_python

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


@pytest.mark.slow
def test_the_peak_is_that_of_a_few_batches(tmp_path: Path) -> None:
    """A file in a single row group of 20 members, three times as long as another, raises the peak by a fraction of itself."""
    rng = np.random.default_rng(0)
    for name, rows in (("short", ROWS // 3), ("long", ROWS)):
        columns = {f"mean_{i}": rng.normal(size=rows) for i in range(20)}
        columns |= {f"variance_{i}": np.exp(rng.normal(size=rows)) for i in range(20)}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet", row_group_size=rows)
    peak = run_python(PEAK, *(tmp_path / f"{name}.parquet" for name in ("short", "long", "out")))
    assert int(peak) * 1024 < (tmp_path / "long.parquet").stat().st_size / 4

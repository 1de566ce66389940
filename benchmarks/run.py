"""Run every benchmark side by side and write RESULTS.md: ratios of one run, since absolute times depend on machine and load."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path

import files
import members
import speed

RESULTS, DEVICE = (Path(__file__).parent / name for name in ("RESULTS.md", "RESULTS-gpu.md"))
PACKAGES = ("uqprism", "numpy", "numba", "torch", "scoringrules", "pyarrow")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the Parquet file to score")
    parser.add_argument("--folder", type=Path, help="where that file goes; by default a temporary folder")
    given = parser.parse_args()
    lines = [
        "# Results",
        "",
        f"Written by `make bench` on {_processor()}, {os.cpu_count()} cores.",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in PACKAGES) + ".",
        f"Devices are timed apart: [{DEVICE.name}]({DEVICE.name}).",
    ]
    for section in (speed.report, members.report, lambda: files.report(given.rows, folder=given.folder)):
        found = ["", *section()]
        print("\n".join(found), flush=True)
        lines += found
    RESULTS.write_text("\n".join([*lines, ""]))


def _processor() -> str:
    """The model of the processor, as far as the system tells."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()

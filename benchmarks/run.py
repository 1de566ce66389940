"""Run benchmarks side by side and write their sections of RESULTS.md, all of them or those named."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import results

SECTIONS = ("speed", "families", "shaped", "members", "samples", "files", "bars", "training", "tables", "tasks", "forests")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; by default all that the data is there for")
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the Parquet file to score")
    parser.add_argument("--folder", type=Path, help="where that file goes; by default a temporary folder")
    parser.add_argument(
        "--data", default=os.environ.get("UQPRISM_DATA"), help="folder of the real tables; by default UQPRISM_DATA"
    )
    given = parser.parse_args()
    for name in given.sections or [name for name in SECTIONS if name != "tables" or given.data]:
        section, packages = _section(name, given)
        found = section()
        print("\n".join(["", *found]), flush=True)
        results.write(results.CPU, found, results.processor(), packages)


def _section(name: str, given: argparse.Namespace) -> tuple[Callable[[], list[str]], tuple[str, ...]]:
    """What measures it and the packages that matter."""
    if name not in SECTIONS:
        raise SystemExit(f"unknown section {name!r}; choose from {', '.join(SECTIONS)}")
    if name in ("files", "bars"):
        import bars

        import files

        section = partial(files.report, given.rows) if name == "files" else bars.report
        return partial(section, folder=given.folder), ("uqprism", "numpy", "numba", "pyarrow")
    if name == "tables":
        import tables

        return partial(tables.report, given.data), ("uqprism", "torch", "scikit-learn", "ngboost")
    if name == "forests":
        import forests

        return partial(forests.report, given.data), ("uqprism", "numpy", "scikit-learn")
    if name == "training":
        import training

        return training.report, ("uqprism", "torch")
    if name == "tasks":
        import tasks

        return tasks.report, ("uqprism", "numpy", "scipy", "scikit-learn")
    import members
    import samples
    import shaped
    import speed

    import families

    modules = {"speed": speed, "families": families, "shaped": shaped, "members": members, "samples": samples}
    return modules[name].report, (
        "uqprism",
        "numpy",
        "numba",
        "torch",
        "scoringrules",
    )


if __name__ == "__main__":
    main()

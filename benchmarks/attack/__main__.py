"""`python benchmarks/attack`: see `run.py`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[2])  # so that the modules here are found below `benchmarks`, and nowhere else
    from benchmarks.attack.run import main

    sys.exit(main())

"""The slow toy as a program that can be killed: FOLDER PROCESSES."""

from __future__ import annotations

import sys

from tests.paper.toy import EXPERIMENT
from uqprism.paper.runner import produce

if __name__ == "__main__":
    produce(EXPERIMENT, "slow", out=sys.argv[1], jobs=int(sys.argv[2]), progress=False)

"""The slow toy as a program that can be killed: FOLDER PROCESSES."""

from __future__ import annotations

import sys

from tests.experiments.toy import EXPERIMENT
from uqprism.experiments.runner import produce

if __name__ == "__main__":
    produce(EXPERIMENT, "slow", out=sys.argv[1], jobs=int(sys.argv[2]), progress=False)

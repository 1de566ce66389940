"""Programs that tests kill: `toy FOLDER PROCESSES`, and `selective FOLDER CHECKPOINTS`, which kills itself while it trains."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys

from tests.paper import toy
from uqprism.paper.ensembles import Training
from uqprism.paper.experiments import selective
from uqprism.paper.runner import produce
from uqprism.training.checkpoints import Checkpoints, State

EPOCHS = 12  # a checkpoint after ten of them, and one at the end
TRAINING = Training(channels=(2, 2, 2), hidden=4, n_members=2, max_epochs=EPOCHS, patience=EPOCHS)
TINY = dataclasses.replace(selective.QUICK, generated=("dots",), sizes=(64, 16, 40), n_seeds=3, training=TRAINING)
EXPERIMENT = dataclasses.replace(selective.EXPERIMENT, presets={"tiny": TINY}, draw=lambda _: {})


def kill_after(count: int) -> None:
    """SIGKILL this process as soon as so many checkpoints are written: at the same point however busy the machine is."""
    save, saved = Checkpoints.save, list[State]()

    def deadly(checkpoints: Checkpoints, state: State) -> None:
        save(checkpoints, state)
        saved.append(state)
        if len(saved) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    Checkpoints.save = deadly  # type: ignore[method-assign]


if __name__ == "__main__":
    name, folder, number = sys.argv[1:]
    if name == "toy":
        produce(toy.EXPERIMENT, "slow", out=folder, jobs=int(number), progress=False)
    else:
        kill_after(int(number))
        produce(EXPERIMENT, "tiny", out=folder, progress=False)

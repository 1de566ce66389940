"""The paper's figures and tables, regenerated.

Each module of `uqprism.paper.experiments` registers one experiment. Listing them imports neither PyTorch nor matplotlib.
"""

from __future__ import annotations

import os
from typing import Any

from uqprism.paper.experiment import EXPERIMENTS, Claim, Experiment, Picture, Result, register
from uqprism.paper.jobs import Job, RunPlan
from uqprism.paper.runner import Outcome, Reproduction, produce
from uqprism.paper.store import Artefact, Bundle, Store
from uqprism.registry import unknown

__all__ = [
    "Artefact",
    "Bundle",
    "Claim",
    "Experiment",
    "Job",
    "Outcome",
    "Picture",
    "Result",
    "RunPlan",
    "Store",
    "get",
    "plan",
    "presets",
    "register",
    "reproduce",
    "summaries",
]


def summaries() -> dict[str, str]:
    """The names of the experiments, with a sentence for each."""
    return {name: each.summary for name, each in sorted(EXPERIMENTS.items())}


def get(name: str) -> Experiment[Any]:
    """The experiment called `name`; an unknown name raises and suggests the nearest."""
    return EXPERIMENTS.get(name)


def presets() -> dict[str, tuple[str, ...]]:
    """The names of the presets that each experiment has."""
    return {name: tuple(get(name).presets) for name in summaries()}


def having(preset: str) -> tuple[list[str], list[str]]:
    """The experiments that have this preset, and those that do not; a preset that none has raises."""
    known = presets()
    chosen = [name for name, own in known.items() if preset in own]
    if not chosen:
        raise unknown("preset", preset, {each for own in known.values() for each in own})
    return chosen, [name for name in known if name not in chosen]


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    jobs: int = 1,
    data: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Outcome:
    """Run an experiment and write its results, pictures and report into a folder; a finished folder is read instead.

    Args:
        name: one of `summaries()`.
        preset: `quick`, or `paper` for the size of the paper; `presets()` lists those of each experiment.
        out: the folder; by default `runs/NAME`, and `runs/PRESET/NAME` for presets other than `quick`.
        seed: of data and networks; by default the preset's.
        jobs: number of processes; each takes the next part of the experiment.
        data: the root folder of the data sets; by default where `uqprism.paper.data` looks for them.
        overwrite: run again, even where the folder has results of other settings.
        progress: whether to show a progress bar on standard error; by default on a terminal.
    """
    folder = out or os.path.join(default_folder(preset), name)
    return produce(get(name), preset, out=folder, seed=seed, jobs=jobs, data=data, overwrite=overwrite, progress=progress)


def plan(
    name: str,
    *,
    preset: str = "quick",
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    jobs: int = 1,
    data: str | os.PathLike[str] | None = None,
) -> RunPlan:
    """What `reproduce` would do with the same arguments: its jobs, which of them are done, and how long the rest may take."""
    folder = out or os.path.join(default_folder(preset), name)
    return Reproduction.of(get(name), preset, out=folder, seed=seed, jobs=jobs, data=data).plan()


def default_folder(preset: str) -> str:
    """The parent of the experiments' folders where no other is given: one for each preset."""
    # Presets apart, because a folder with a result of other settings is refused.
    return "runs" if preset == "quick" else os.path.join("runs", preset)

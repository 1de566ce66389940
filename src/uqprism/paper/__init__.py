"""The paper's figures and tables, regenerated. One module each: a module here that sets `EXPERIMENT` is found by itself.

Listing reads the modules' text; only the experiment that is asked for is imported, so that the list needs neither PyTorch nor
matplotlib.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from importlib.util import find_spec
from typing import Any

from uqprism.paper import experiments
from uqprism.paper.artefacts import Artefact, Findings, Store
from uqprism.paper.base import Claim, Experiment, Picture, Result
from uqprism.paper.jobs import Job, Plan
from uqprism.paper.runner import Outcome, Run, produce
from uqprism.registry import unknown

__all__ = [
    "Artefact",
    "Claim",
    "Experiment",
    "Findings",
    "Job",
    "Outcome",
    "Picture",
    "Plan",
    "Result",
    "Store",
    "get",
    "plan",
    "presets",
    "reproduce",
    "summaries",
]

_SETS_EXPERIMENT = re.compile(r"^EXPERIMENT\b.* = ", flags=re.MULTILINE)


def summaries() -> dict[str, str]:
    """What there is to reproduce: names, and a sentence for each."""
    found = {}
    for module in pkgutil.iter_modules(experiments.__path__):
        text = _text(f"{experiments.__name__}.{module.name}")
        if _SETS_EXPERIMENT.search(text):
            found[module.name] = text.split('"""', 2)[1].splitlines()[0]
    return found


def _text(module: str) -> str:
    loader: Any = getattr(find_spec(module), "loader", None)
    return loader.get_source(module)


def get(name: str) -> Experiment[Any]:
    """The experiment called `name`; an unknown name raises and suggests the nearest."""
    if name not in summaries():
        raise unknown("experiment", name, summaries())
    return importlib.import_module(f"{experiments.__name__}.{name}").EXPERIMENT


def presets() -> dict[str, tuple[str, ...]]:
    """The names of the settings that each experiment has; to tell them, all experiments are imported."""
    return {name: tuple(get(name).presets) for name in summaries()}


def having(preset: str) -> tuple[list[str], list[str]]:
    """The experiments that have settings of this name, and those that have not; a name that none has raises."""
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
        preset: `quick`, or `paper` for the size of the paper; `presets()` has those that only some experiments have.
        out: the folder; by default `runs/NAME`, and `runs/PRESET/NAME` for presets other than `quick`.
        seed: of data and networks; by default the preset's.
        jobs: processes to work at a time; each takes the next part of the experiment.
        data: the root of the data sets; by default where `uqprism.paper.data` looks for them.
        overwrite: run again, also over the results of other settings.
        progress: on standard error; by default on a terminal.
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
) -> Plan:
    """What `reproduce` would do with the same arguments: its jobs, which of them are done, and about how long the rest takes."""
    folder = out or os.path.join(default_folder(preset), name)
    return Run.of(get(name), preset, out=folder, seed=seed, jobs=jobs, data=data).plan()


def default_folder(preset: str) -> str:
    """Where the folders of all experiments lie unless another is named: one for each preset, so that none is in another's way."""
    return "runs" if preset == "quick" else os.path.join("runs", preset)

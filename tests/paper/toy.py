"""An experiment whose jobs take no time and write down that they ran; importable, so that other processes can work on it."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from uqprism.errors import InvalidValueError
from uqprism.paper.experiment import Claim, Experiment, Result
from uqprism.paper.jobs import Job
from uqprism.paper.store import Artefact, Bundle, Store, as_data

LOG = "UQPRISM_TEST_LOG"


@dataclass(frozen=True)
class Config:
    n_jobs: int = 6
    pause: float = 0.0
    broken: tuple[int, ...] = ()
    deadly: tuple[int, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Part:
    number: int
    pause: float
    broken: bool
    deadly: bool
    seed: int


def jobs(config: Config) -> list[Job]:
    parts = [Part(i, config.pause, i in config.broken, i in config.deadly, config.seed + i) for i in range(config.n_jobs)]
    return [Job(f"part {part.number}", Artefact("bundle", part), seconds=2.0) for part in parts]


def work(job: Job, store: Store) -> Bundle:
    part = job.key
    note("begun", part.number)
    if part.broken:
        raise InvalidValueError(f"number {part.number} is broken")
    if part.deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    draws = Artefact("bundle", {"seed": part.seed})
    values = store.get(draws, lambda: drawn(part)).arrays["values"]
    time.sleep(part.pause)
    note("ended", part.number)
    return Bundle({"process": os.getpid()}, {"mean": values.mean(keepdims=True)})


def drawn(part: Part) -> Bundle:
    note("drawn", part.number)
    return Bundle(arrays={"values": np.random.default_rng(part.seed).normal(size=100)})


def note(what: str, number: int) -> None:
    """One line, appended at once: several processes write."""
    with Path(os.environ[LOG]).open("ab", buffering=0) as file:
        file.write(f"{what} {number}\n".encode())


def noted(what: str) -> list[int]:
    path = Path(os.environ[LOG])
    lines = path.read_text().splitlines() if path.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(what)]


def gather(config: Config, store: Store) -> Result:
    means = np.concatenate([store.get(job.artefact).arrays["mean"] for job in jobs(config)])
    claim = Claim("mean", "The mean is zero.", bool(abs(means.mean()) < 1), "it is", {"mean": float(means.mean())})
    rows = [{"part": i, "mean": float(mean)} for i, mean in enumerate(means)]
    return Result(as_data(config), {"all": config.seed}, (claim,), tables={"Means, by part": rows}, arrays={"means": means})


PRESETS = {"tiny": Config(), "slow": Config(n_jobs=8, pause=0.1)}
EXPERIMENT = Experiment("toy", "A toy.", PRESETS, work, gather, lambda _: {}, jobs)


def tiny(**settings: object) -> Experiment:
    """The toy with these settings as its preset `tiny`."""
    return dataclasses.replace(EXPERIMENT, presets={"tiny": Config(**settings)})  # type: ignore[arg-type]

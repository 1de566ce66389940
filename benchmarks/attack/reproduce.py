"""Kill training and `uqprism reproduce` with SIGKILL at random moments, run them again, and compare the bits.

Each try starts one of `WORK` in a process of its own, kills it once to three times at random moments after it has loaded its
libraries, lets it end, and compares everything that it wrote with a run that was left alone. Times and memory count
where they exceed those of that run by 5 s and 500 MB: training is allowed to take its time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BEGUN = "begun"  # what a process prints when its libraries are loaded
SLOW, LARGE = 5.0, 500e6
STABLE = ("config", "seeds", "claims", "tables", "notes", "data", "agreements")  # of result.json, which has times, too


class Row(NamedTuple):
    """What came of an attack."""

    attack: str
    tries: int = 0
    clean_errors: int = 0
    right_answers: int = 0
    silently_wrong: int = 0
    tracebacks: int = 0
    over_5_s: int = 0
    over_500_mb: int = 0


# What is killed ------------------------------------------------------------------------------------------------------------


def waves(count: int = 400, features: int = 3) -> tuple[Any, Any]:
    """Rows of a noisy wave."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, features))
    return x, np.sin(2.0 * x[:, 0]) + (0.1 + 0.2 * (x[:, 1] > 0)) * rng.normal(size=count)


def train(out: Path) -> None:
    """A stack of networks with dropout, of which some stop early."""
    from uqprism.training import MLP, train

    network = MLP((32, 32), dropout=0.1)
    settings: Any = {"n_members": 7, "network": network, "max_epochs": 60, "patience": 8, "bootstrap": True, "device": "cpu"}
    ensemble = train(*waves(), **settings, checkpoint=out / "checkpoints", checkpoint_every=3, progress=False)
    ensemble.save(out / "model.safetensors")


def train_many(out: Path) -> None:
    """Ensembles on training sets of their own, in one stack; some members diverge and are restarted."""
    import warnings

    from uqprism.training import MLP, train_many

    warnings.simplefilter("ignore")
    x, y = waves()
    rows = np.random.default_rng(1).permuted(np.tile(np.arange(400), (5, 1)), axis=1)[:, :150]
    settings: Any = {"n_members": 2, "network": MLP((20,)), "max_epochs": 40, "patience": 5, "learning_rate": 0.3}
    found = train_many(x, y, rows, **settings, checkpoint=out / "checkpoints", checkpoint_every=1, progress=False, device="cpu")
    for number, ensemble in enumerate(found):
        ensemble.save(out / f"model_{number}.safetensors")


def images(out: Path) -> None:
    """Convolutions, in a loop over the members."""
    from uqprism.training import SmallCNN, train

    x = np.random.default_rng(2).normal(size=(120, 1, 16, 16)).astype(np.float32)
    settings: Any = {"n_members": 2, "network": SmallCNN(channels=(4, 4, 4), hidden=8), "max_epochs": 15, "device": "cpu"}
    ensemble = train(x, x.mean((1, 2, 3)), **settings, checkpoint=out / "checkpoints", checkpoint_every=2, progress=False)
    ensemble.save(out / "model.safetensors")


def regressor(out: Path) -> None:
    """The scikit-learn estimator."""
    import uqprism as up

    settings: Any = {"n_members": 4, "hidden": (24, 24), "max_epochs": 40, "random_state": 3, "device": "cpu", "progress": False}
    model = up.DeepEnsembleRegressor(**settings, checkpoint=out / "checkpoints", checkpoint_every=4)
    model.fit(*waves()).ensemble_.save(out / "model.safetensors")


def paper(name: str, out: Path, jobs: int = 1, **changed: Any) -> None:
    """A small version of an experiment's quick preset."""
    from uqprism import paper
    from uqprism.paper.runner import produce

    experiment = paper.get(name)
    preset = dataclasses.replace(experiment.presets["quick"], **changed)
    small = dataclasses.replace(experiment, presets={"quick": preset})
    produce(small, "quick", out=out / name, jobs=jobs, progress=False)


def active(out: Path) -> None:
    """Active learning: many loops in one stack."""
    paper("active", out, n_seeds=2, iterations=3, epochs=20, n_pool=120, n_test=60)


def synthetic(out: Path, jobs: int = 1) -> None:
    """Ensembles on data sets of their own."""
    paper("synthetic", out, jobs, n_trials=2, n_training=300, n_test=120, n_members=4, epochs=15, other_rates=(1e-3,))


def parameterization(out: Path) -> None:
    """Many training sets in one stack."""
    paper("parameterization", out, n_sets=3, n_networks=2, n_training=96, n_validation=50, hidden=(16,), epochs=250)


def pictures(out: Path) -> None:
    """Two experiments, the second of which reads what the first has made."""
    from uqprism.paper.ensembles import Training

    training = Training(channels=(2, 2, 2), hidden=4, n_members=2, max_epochs=12, patience=12)
    small: Any = {"generated": ("dots",), "sizes": (96, 32, 40), "n_seeds": 2, "training": training}
    for name in ("selective", "correlation"):
        paper(name, out, **small)


def synthetic_in_processes(out: Path) -> None:
    """In two processes, of which the main one alone is killed: those that it leaves finish their job."""
    synthetic(out, jobs=2)


WORK: dict[str, Callable[[Path], None]] = {
    "kill train": train,
    "kill train_many": train_many,
    "kill training on images": images,
    "kill DeepEnsembleRegressor": regressor,
    "kill reproduce active": active,
    "kill reproduce synthetic": synthetic,
    "kill reproduce synthetic --jobs 2": synthetic_in_processes,
    "kill reproduce parameterization": parameterization,
    "kill reproduce selective, correlation": pictures,
}

# The attack ----------------------------------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    errors: str
    seconds: float
    memory: float


def run(seed: int, rounds: int) -> list[Row]:
    """Attack everything; a quarter of the rounds, since a try starts two to four processes that load PyTorch."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        return [_attack(name, Path(folder), rng, max(1, rounds // 4)) for name in WORK]


def _attack(name: str, folder: Path, rng: np.random.Generator, rounds: int) -> Row:
    whole = folder / f"{name} whole"
    alone = _started(name, whole)
    if alone.code != 0:
        raise RuntimeError(alone.errors)
    wanted, row = contents(whole), Row(name)
    for number in range(rounds):
        out, mixed = folder / f"{name} {number}", False
        for _ in range(rng.integers(1, 4)):
            _started(name, out, kill_after=rng.uniform(0.0, alone.seconds))
            mixed = mixed or bool(_mixed_pages(out, whole))
        ended = _started(name, out)
        right = ended.code == 0 and not mixed and contents(out) == wanted
        traceback = "Traceback" in ended.errors
        row = Row(
            name,
            row.tries + 1,
            row.clean_errors + (ended.code != 0 and not traceback),
            row.right_answers + right,
            row.silently_wrong + (mixed or (ended.code == 0 and not right)),
            row.tracebacks + traceback,
            row.over_5_s + (ended.seconds > alone.seconds + SLOW),
            row.over_500_mb + (ended.memory > alone.memory + LARGE),
        )
        if not right:
            print(f"{name}, try {number}: code {ended.code}, {_differing(out, wanted)}\n{ended.errors[-1000:]}", file=sys.stderr)
    return row


def _started(name: str, out: Path, kill_after: float | None = None) -> Ended:
    """Run this in a process of its own; killed so many seconds after it has begun, if it has not ended before."""
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, __file__, name, str(out)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        output: Any = process.stdout
        output.readline()
        started = time.perf_counter()
        if kill_after is not None:
            try:
                process.wait(kill_after)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0) if process.returncode is None else (0, 0, None)
        code = process.returncode if used is None else os.waitstatus_to_exitcode(status)
        process.returncode = code
        output.close()
        seconds = time.perf_counter() - started
        errors.seek(0)
        return Ended(code, errors.read(), seconds, 0.0 if used is None else 1024.0 * used.ru_maxrss)


def contents(out: Path) -> dict[str, str]:
    """A checksum of each array and of each part of a result that a run has left; times and machines are not among them."""
    return dict(_contents(out))


def _contents(out: Path) -> Iterator[tuple[str, str]]:
    from zipfile import ZipFile

    from safetensors.numpy import load_file

    for path in sorted(out.rglob("*")):
        place = str(path.relative_to(out))
        if path.name == "result.json":
            result = json.loads(path.read_text())
            yield from ((f"{place} {part}", _digest(json.dumps(result[part]).encode())) for part in STABLE)
        elif path.suffix == ".npz":
            with ZipFile(path) as archive:
                yield from ((f"{place} {name}", _digest(archive.read(name))) for name in archive.namelist())
        elif path.suffix == ".safetensors":
            yield from ((f"{place} {name}", _digest(np.ascontiguousarray(x).data)) for name, x in load_file(path).items())


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _differing(out: Path, wanted: dict[str, str]) -> str:
    found = contents(out)
    return f"other contents: {[name for name in {**wanted, **found} if wanted.get(name) != found.get(name)][:5]}"


def _mixed_pages(out: Path, whole: Path) -> list[Path]:
    """Pages of results that are there before their run has ended, and lack a sentence of the whole run's."""
    found = []
    for page in out.rglob("report.md"):
        claims = json.loads((whole / page.parent.name / "result.json").read_text())["claims"]
        if not all(claim["measured"] in page.read_text() for claim in claims):
            found.append(page)
    return found


def main() -> None:
    """With a name and a folder: do this work. Without: attack, and print the counts."""
    if len(sys.argv) > 1:
        import torch  # noqa: F401 - loaded before the clock starts

        import uqprism.paper
        import uqprism.training  # noqa: F401

        print(BEGUN, flush=True)
        WORK[sys.argv[1]](Path(sys.argv[2]))
        return
    for row in run(seed=0, rounds=12):
        print(" | ".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()

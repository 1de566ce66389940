"""A folder is filled from one set of data files: others are refused, whether or not its run was finished."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.errors import FileError, JobError
from uqprism.paper import inputs
from uqprism.paper.ensembles import EnsembleSpec, StoredEnsemble, Training
from uqprism.paper.experiment import Claim, Experiment, Result
from uqprism.paper.experiments.ood import ood_mosaics
from uqprism.paper.jobs import Job
from uqprism.paper.runner import Outcome, Reproduction, produce
from uqprism.paper.store import Artefact, Bundle, Store, as_data

[CASP] = (f"casp/{remote.name}" for remote in files.official("casp"))
REFUSED = "was made from other files of the data set casp than are there now .*give another --out, or --overwrite"


@dataclasses.dataclass(frozen=True)
class Config:
    n_seeds: int = 2


def jobs(config: Config) -> list[Job]:
    return [Job(f"seed {seed}", Artefact("bundle", {"seed": seed})) for seed in range(config.n_seeds)]


def work(job: Job, store: Store) -> Bundle:
    dataset = inputs.load(store, "casp", seed=job.key["seed"])
    return Bundle({"mean": float(np.mean([part.targets.mean() for part in (dataset.train, dataset.test)]))})


def gather(config: Config, store: Store) -> Result:
    means = [store.get(job.artefact).data["mean"] for job in jobs(config)]
    claim = Claim("mean", "It is.", True, "it is", {"mean": float(np.mean(means))})
    return Result(as_data(config), {}, (claim,), tables={"Means": [{"mean": mean} for mean in means]})


PRESETS = {"one": Config(1), "two": Config(2)}
EXPERIMENT = Experiment("means", "Means.", PRESETS, work, gather, lambda _: {}, jobs, needs=lambda _: ("casp", "dots"))


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    """A folder with roots: two with the same table, one with another, one with none."""
    for root, seed in (("first", 0), ("copy", 0), ("other", 1)):
        numbers = np.random.default_rng(seed).normal(size=(30, 3)).round(2)
        table = files.zipped({"CASP.csv": files.csv(numbers, ["RMSD", "F1", "F2"])})
        files.put(tmp_path / root, CASP, table)
    (tmp_path / "empty").mkdir()
    return tmp_path


def run(roots: Path, root: str, preset: str = "two", **options: object) -> Outcome:
    return produce(EXPERIMENT, preset, out=roots / "run", data=roots / root, **options)


def test_a_finished_run_is_not_taken_for_one_on_other_files(roots: Path) -> None:
    first = run(roots, "first")
    assert all(run(roots, root).reused for root in ("first", "copy", "empty"))
    for _ in range(2):
        with pytest.raises(FileError, match=f"{roots / 'run'} {REFUSED}"):
            run(roots, "other")
        assert "It would be refused" in str(Reproduction.of(EXPERIMENT, "two", out=roots / "run", data=roots / "other").plan())
        shutil.rmtree(roots / "run" / "_work", ignore_errors=True)  # which may be done: result.json knows too
    assert run(roots, "other", overwrite=True).result.claims[0].numbers != first.result.claims[0].numbers
    assert run(roots, "other").reused


def test_a_run_does_not_go_on_with_other_files(roots: Path) -> None:
    run(roots, "first", "one")
    (roots / "run" / "result.json").unlink()
    with pytest.raises(FileError, match=REFUSED):
        run(roots, "other")
    assert "would be refused" in str(Reproduction.of(EXPERIMENT, "two", out=roots / "run", data=roots / "other").plan())
    assert run(roots, "copy").record["jobs"]["found done"] == 1
    (roots / "run" / "result.json").unlink()
    assert run(roots, "empty").record["jobs"]["found done"] == 2


def test_a_compact_copy_is_another_file_and_a_damaged_one_may_be_replaced(roots: Path) -> None:
    good = (roots / "first" / CASP).read_bytes()
    (roots / "first" / CASP).write_bytes(good[: len(good) // 2])
    with pytest.raises(JobError, match="fetch it again"):
        run(roots, "first")
    (roots / "first" / CASP).write_bytes(good)
    assert not run(roots, "first").reused
    files.put(roots / "copy", "casp.parquet", b"comes first, whatever is in it")
    with pytest.raises(FileError, match=r"than are there now \(casp\.parquet\)"):
        run(roots, "copy")


def test_files_that_are_exchanged_while_a_run_is_at_work_end_it(roots: Path) -> None:
    store = Store(roots / "run" / "_work", roots / "first")
    inputs.load(store, "casp", seed=0)
    shutil.copy(roots / "other" / CASP, roots / "first" / CASP)
    with pytest.raises(FileError, match=REFUSED):
        inputs.load(store, "casp", seed=1)


def test_what_is_read_from_another_run_must_be_of_the_same_files(roots: Path) -> None:
    produce(EXPERIMENT, "two", out=roots / "means", data=roots / "first")
    reader = dataclasses.replace(EXPERIMENT, name="reader", reads=("means",))
    made = produce(reader, "two", out=roots / "reader", data=roots / "empty")
    assert made.record["files"].keys() == {"casp"}
    with pytest.raises(FileError, match=f"{roots / 'reader'} {REFUSED}"):
        produce(reader, "two", out=roots / "reader", data=roots / "other")
    with pytest.raises(FileError, match=f"{roots / 'means'} {REFUSED}"):
        produce(reader, "two", out=roots / "reader", data=roots / "other", overwrite=True)
    assert produce(reader, "two", out=roots / "reader", data=roots / "copy").reused


def test_experiments_note_which_files_they_read(roots: Path, rng) -> None:
    from uqprism.paper.experiments.active import TableRows, read

    np.savez(roots / "first" / "cifar10.npz", x=rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8), y=np.zeros(4, np.uint8))
    fitted = StoredEnsemble(EnsembleSpec("casp", 0, Training()), Store(roots / "fits", roots / "first"))
    assert len(fitted.data.test) == 6
    ood_mosaics("cifar10", np.zeros((3, 1, 64, 64), np.uint8), fitted.store, seed=0)
    read(TableRows("casp", n_pool=20, n_validation=3, n_test=6, seed=0), Store(roots / "active", roots / "first"))
    noted = {path.relative_to(roots).as_posix(): list(json.loads(path.read_text())) for path in roots.glob("*/data/*.json")}
    assert noted == {"fits/data/casp.json": [CASP], "fits/data/cifar10.json": ["cifar10.npz"], "active/data/casp.json": [CASP]}

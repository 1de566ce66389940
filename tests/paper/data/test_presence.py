"""What is missing of a data set is all that its loader would ask for, and nothing is read to know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tests.paper.data import files
from tests.paper.data.test_tables import csv
from uqprism.paper import data
from uqprism.paper.data import remotes
from uqprism.paper.data.catalogue import datasets
from uqprism.paper.data.outliers import changes
from uqprism.paper.data.presence import presence
from uqprism.paper.data.remotes import Remote
from uqprism.paper.data.root import Root

MNIST = [remotes.MNIST_TRAIN_IMAGES, remotes.MNIST_TRAIN_LABELS, remotes.MNIST_TEST_IMAGES, remotes.MNIST_TEST_LABELS]
OTHERS = [remotes.CIFAR10, remotes.SVHN, remotes.FASHION_MNIST]


def touch(root: Path, remote: Remote) -> Path:
    return files.put(root, f"{remote.folder}/{remote.name}", b"")


@pytest.mark.parametrize(("name", "official"), [("mnist_mosaic", MNIST), ("mixture", OTHERS), ("ccpp", [remotes.CCPP])])
def test_every_file_that_is_not_there_is_named(name: str, official: list[Remote], tmp_path: Path) -> None:
    for count, remote in enumerate(official):
        found = presence(name, tmp_path)
        assert len(found.there) == count
        assert len(found.absent) == len(official) - count
        for sentence, missing in zip(found.absent, official[count:], strict=True):
            assert str(tmp_path / missing.folder / missing.name) in sentence
            assert missing.url in sentence
        assert touch(tmp_path, remote) in presence(name, tmp_path).there
    assert presence(name, tmp_path).absent == ()


def test_a_compact_copy_is_all_that_is_needed(tmp_path: Path) -> None:
    path = files.put(tmp_path, "mnist.npz", b"never read")
    assert presence("mnist_mosaic", tmp_path).there == (path,)
    assert presence("mnist_mosaic", tmp_path).absent == ()


def test_generated_sets_need_no_root(tmp_path: Path) -> None:
    for name in ("dots", "diabetes", "inverted"):
        assert presence(name, tmp_path / "none").absent == ()


def test_what_is_not_downloaded_says_where_it_comes_from(tmp_path: Path) -> None:
    [camvid] = presence("camvid", tmp_path).absent
    assert "camvid_180x240.npz" in camvid
    [cityscapes] = presence("cityscapes", tmp_path).absent
    assert "https://www.cityscapes-dataset.com" in cityscapes
    [nowhere] = presence("camvid", tmp_path / "none").absent
    assert "--data" in nowhere


@dataclass(frozen=True)
class Watched(Root):
    """A root that notes which files it was asked for and had."""

    asked: set[Path] = field(default_factory=set)

    def own(self, name: str) -> Path | None:
        if path := super().own(name):
            self.asked.add(path)
        return path

    def file(self, remote: Remote) -> Path:
        path = super().file(remote)
        self.asked.add(path)
        return path


@pytest.fixture
def root(tmp_path: Path, rng) -> Path:
    """Official files of MNIST, the outliers' sets and one table."""
    images, labels = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10
    small = images[:, 0, :28, :28]
    for i, remote in enumerate(MNIST):
        files.put(tmp_path, f"mnist/{remote.name}", files.idx_gz(labels if i % 2 else small))
    files.put(tmp_path, f"cifar10/{remotes.CIFAR10.name}", files.tarred({"test_batch.bin": files.cifar(images, labels)}))
    savemat(files.put(tmp_path, f"svhn/{remotes.SVHN.name}", b""), {"X": images.transpose(2, 3, 1, 0), "y": labels[:, None]})
    files.put(tmp_path, f"fashion_mnist/{remotes.FASHION_MNIST.name}", files.idx_gz(small))
    letters = {"images-idx3": small, "labels-idx1": labels}
    members = {f"emnist-letters-test-{kind}-ubyte.gz": files.idx_gz(each) for kind, each in letters.items()}
    files.put(tmp_path, f"emnist/{remotes.EMNIST.name}", files.zipped(members))
    table = csv(rng.normal(size=(20, 3)), ["RMSD", "F1", "F2"])
    files.put(tmp_path, f"casp/{remotes.CASP.name}", files.zipped({"CASP.csv": table}))
    return tmp_path


@pytest.mark.parametrize("name", ["mnist_mosaic", "casp", *(name for name in data.outlier_names() if changes.get(name).sources)])
def test_what_is_looked_for_is_what_is_read(name: str, root: Path) -> None:
    watched = Watched(root, downloads=False)
    if name in data.names():
        datasets.get(name).load(root=watched, seed=0, **({"sizes": (2, 2, 2)} if name == "mnist_mosaic" else {}))
    else:
        changes.get(name).apply(np.zeros((3, 1, 64, 64), np.uint8), watched, np.random.default_rng(0))
    assert watched.asked
    assert set(presence(name, root).there) == watched.asked


def test_every_loader_that_takes_a_root_says_what_it_reads() -> None:
    import inspect

    for name in data.names():
        entry = datasets.get(name)
        assert ("root" in inspect.signature(entry.load).parameters) == (entry.files is not None)

"""Missing files are those that the loader would ask for, and a fingerprint tells files apart by their contents."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tests.paper.data import files
from uqprism.paper import data
from uqprism.paper.data.catalogue import datasets
from uqprism.paper.data.inventory import fingerprint, presence
from uqprism.paper.data.ood import kinds
from uqprism.paper.data.root import Remote, Root

[CASP] = (f"casp/{remote.name}" for remote in files.official("casp"))


@pytest.mark.parametrize(
    ("name", "folders"), [("mnist_mosaic", ["mnist"]), ("mixture", ["cifar10", "svhn", "fashion_mnist"]), ("ccpp", ["ccpp"])]
)
def test_every_missing_file_is_named(name: str, folders: list[str], tmp_path: Path) -> None:
    official = [remote for folder in folders for remote in files.official(folder)]
    for count, remote in enumerate(official):
        found = presence(name, tmp_path)
        assert len(found.there) == count
        for sentence, missing in zip(found.absent, official[count:], strict=True):
            assert str(tmp_path / missing.folder / missing.name) in sentence
            assert missing.url in sentence
        assert files.put(tmp_path, f"{remote.folder}/{remote.name}", b"") in presence(name, tmp_path).there
    assert presence(name, tmp_path).absent == ()


def test_a_compact_copy_is_all_that_is_needed(tmp_path: Path) -> None:
    path = files.put(tmp_path, "mnist.npz", b"not read")
    assert presence("mnist_mosaic", tmp_path).there == (path,)
    assert presence("mnist_mosaic", tmp_path).absent == ()


def test_generated_sets_need_no_root(tmp_path: Path) -> None:
    for name in ("dots", "diabetes", "inverted"):
        assert presence(name, tmp_path / "none").absent == ()
        assert fingerprint(name, tmp_path / "none") == {}


def test_the_source_of_files_that_cannot_be_downloaded_is_named(tmp_path: Path) -> None:
    [camvid] = presence("camvid", tmp_path).absent
    assert "camvid_180x240.npz" in camvid
    [cityscapes] = presence("cityscapes", tmp_path).absent
    assert "https://www.cityscapes-dataset.com" in cityscapes
    [nowhere] = presence("camvid", tmp_path / "none").absent
    assert "--data" in nowhere


@dataclass(frozen=True)
class Watched(Root):
    """A root that notes which files were requested and found."""

    asked: set[Path] = field(default_factory=set)

    def compact(self, name: str) -> Path | None:
        if path := super().compact(name):
            self.asked.add(path)
        return path

    def official(self, remote: Remote) -> Path:
        path = super().official(remote)
        self.asked.add(path)
        return path


@pytest.fixture
def root(tmp_path: Path, rng, monkeypatch) -> Path:
    """Official files of MNIST, of the sets for OOD mosaics and of one table."""
    images, labels = rng.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8), np.arange(12, dtype=np.uint8) % 10
    small = images[:, 0, :28, :28]
    files.put_official(tmp_path, "mnist", *[files.idx_gz(small), files.idx_gz(labels)] * 2)
    files.put_ood(tmp_path, monkeypatch, dict.fromkeys(("cifar10", "svhn", "fashion_mnist", "emnist"), images), labels)
    table = files.csv(rng.normal(size=(20, 3)), ["RMSD", "F1", "F2"])
    files.put_official(tmp_path, "casp", files.zipped({"CASP.csv": table}))
    return tmp_path


@pytest.mark.parametrize("name", ["mnist_mosaic", "casp", *(name for name, kind in kinds.items() if kind.sources)])
def test_the_listed_files_are_the_files_read(name: str, root: Path) -> None:
    watched = Watched(root, downloads=False)
    if name in data.names():
        datasets.get(name).load(root=watched, seed=0, **({"sizes": (2, 2, 2)} if name == "mnist_mosaic" else {}))
    else:
        kinds.get(name).make(np.zeros((3, 1, 64, 64), np.uint8), watched, np.random.default_rng(0))
    assert watched.asked
    assert set(presence(name, root).there) == watched.asked


def test_every_loader_that_takes_a_root_lists_its_files() -> None:
    for name in datasets:
        entry = datasets.get(name)
        assert ("root" in inspect.signature(entry.load).parameters) == (entry.files is not None)


def test_a_fingerprint_has_the_size_and_the_checksum_of_each_file_that_is_there(tmp_path: Path) -> None:
    assert fingerprint("mnist_mosaic", tmp_path) == {}
    assert fingerprint("casp", tmp_path / "none") == {}
    files.put(tmp_path, "mnist/train-images-idx3-ubyte.gz", b"images")
    files.put(tmp_path, "mnist/t10k-labels-idx1-ubyte.gz", b"")
    assert fingerprint("mnist_mosaic", tmp_path) == {
        "mnist/train-images-idx3-ubyte.gz": f"6 {hashlib.sha256(b'images').hexdigest()}",
        "mnist/t10k-labels-idx1-ubyte.gz": f"0 {hashlib.sha256().hexdigest()}",
    }
    files.put(tmp_path, "mnist.npz", b"compact copies come first")
    assert list(fingerprint("mnist_mosaic", tmp_path)) == ["mnist.npz"]


def test_the_same_files_under_another_root_have_the_same_fingerprint(tmp_path: Path) -> None:
    for root, content in (("first", b"same"), ("second", b"same"), ("third", b"else")):
        files.put(tmp_path / root, CASP, content)
    first, second, third = (fingerprint("casp", tmp_path / root) for root in ("first", "second", "third"))
    assert first == second != third


def test_of_large_files_only_both_ends_are_hashed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("uqprism.paper.data.inventory.WHOLE", 100)
    monkeypatch.setattr("uqprism.paper.data.inventory.END", 10)
    whole = bytes(range(101))
    path = files.put(tmp_path, CASP, whole)
    found = fingerprint("casp", tmp_path)
    assert found == {CASP: f"101 {hashlib.sha256(whole[:10] + whole[-10:]).hexdigest()}"}
    path.write_bytes(whole[:50] + b"?" + whole[51:])
    assert fingerprint("casp", tmp_path) == found
    path.write_bytes(whole[:-1] + b"?")
    assert fingerprint("casp", tmp_path) != found


def test_a_folder_of_pictures_counts_by_names_and_sizes(tmp_path: Path) -> None:
    for part in ("train", "val"):
        files.put(tmp_path, f"cityscapes/leftImg8bit/{part}/ulm/ulm_000000_000019_leftImg8bit.png", b"picture")
        files.put(tmp_path, f"cityscapes/gtFine/{part}/ulm/ulm_000000_000019_gtFine_labelIds.png", b"labels")
    found = fingerprint("cityscapes", tmp_path)
    assert sorted(found) == [f"cityscapes/{kind}/{part}" for kind in ("gtFine", "leftImg8bit") for part in ("train", "val")]
    files.put(tmp_path, "cityscapes/gtFine/val/ulm/.DS_Store", b"hidden")
    files.put(tmp_path, "cityscapes/leftImg8bit/test/bonn/bonn_000000_000019_leftImg8bit.png", b"not read")
    assert fingerprint("cityscapes", tmp_path) == found
    files.put(tmp_path, "cityscapes/gtFine/val/ulm/ulm_000000_000019_gtFine_labelIds.png", b"other labels")
    changed = fingerprint("cityscapes", tmp_path)
    assert {name for name in found if changed[name] != found[name]} == {"cityscapes/gtFine/val"}

"""A fingerprint tells files apart by what is in them, wherever the root is."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.paper.data import files
from uqprism.paper.data import remotes
from uqprism.paper.data.fingerprint import fingerprint

CASP = f"casp/{remotes.CASP.name}"


def test_it_has_the_size_and_the_checksum_of_each_file_that_is_there(tmp_path: Path) -> None:
    assert fingerprint("mnist_mosaic", tmp_path) == {}
    for remote, content in ((remotes.MNIST_TRAIN_IMAGES, b"images"), (remotes.MNIST_TEST_LABELS, b"")):
        files.put(tmp_path, f"mnist/{remote.name}", content)
    assert fingerprint("mnist_mosaic", tmp_path) == {
        "mnist/train-images-idx3-ubyte.gz": f"6 {hashlib.sha256(b'images').hexdigest()}",
        "mnist/t10k-labels-idx1-ubyte.gz": f"0 {hashlib.sha256().hexdigest()}",
    }
    files.put(tmp_path, "mnist.npz", b"compact copies come first")
    assert list(fingerprint("mnist_mosaic", tmp_path)) == ["mnist.npz"]


def test_the_same_files_under_another_root_have_the_same(tmp_path: Path) -> None:
    for root, content in (("first", b"same"), ("second", b"same"), ("third", b"else")):
        files.put(tmp_path / root, CASP, content)
    first, second, third = (fingerprint("casp", tmp_path / root) for root in ("first", "second", "third"))
    assert first == second != third


def test_of_large_files_only_both_ends_are_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("uqprism.paper.data.fingerprint.WHOLE", 100)
    monkeypatch.setattr("uqprism.paper.data.fingerprint.END", 10)
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
    files.put(tmp_path, "cityscapes/leftImg8bit/test/bonn/bonn_000000_000019_leftImg8bit.png", b"never read")
    assert fingerprint("cityscapes", tmp_path) == found
    files.put(tmp_path, "cityscapes/gtFine/val/ulm/ulm_000000_000019_gtFine_labelIds.png", b"other labels")
    changed = fingerprint("cityscapes", tmp_path)
    assert {name for name in found if changed[name] != found[name]} == {"cityscapes/gtFine/val"}


def test_generated_sets_and_roots_that_are_not_there_have_none(tmp_path: Path) -> None:
    assert fingerprint("dots", tmp_path) == {}
    assert fingerprint("casp", tmp_path / "none") == {}

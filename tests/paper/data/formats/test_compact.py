"""The compact copies are read: arrays in .npz, tables in Parquet, scenes as JPEGs in one array."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from tests.paper.data import files
from uqprism.errors import FileError
from uqprism.paper.data.formats.compact import read_images, read_npz, read_parquet, read_scenes


def test_colours_come_first(tmp_path: Path, rng) -> None:
    images, labels = rng.integers(0, 256, (4, 5, 6, 3), dtype=np.uint8), np.arange(4, dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x=images, y=labels)
    read, numbers = read_images(tmp_path / "a.npz")
    assert read.shape == (4, 3, 5, 6)
    for channel in range(3):
        np.testing.assert_array_equal(read[:, channel], images[..., channel])
    np.testing.assert_array_equal(numbers, labels)


def test_grey_images_stay(tmp_path: Path, rng) -> None:
    images = rng.integers(0, 256, (4, 5, 6), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", x_train=images, y_train=np.zeros(4, np.uint8))
    np.testing.assert_array_equal(read_images(tmp_path / "a.npz", ("x_train", "y_train"))[0], images)


def test_damaged_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(1000), y=np.arange(3))
    whole = path.read_bytes()
    for data in (whole[:-10], whole[: len(whole) // 2], b"PK", whole[:100] + b"\xff" * 200 + whole[300:]):
        with pytest.raises(FileError, match=r"no complete \.npz file"):
            read_npz(files.put(tmp_path, "broken.npz", data), ["x"])
    np.save(tmp_path / "one.npy", np.arange(3))
    with pytest.raises(FileError, match=r"no complete \.npz file"):
        read_npz(tmp_path / "one.npy", ["x"])
    with pytest.raises(FileError, match="must hold the arrays x, z, and lacks z"):
        read_npz(path, ["x", "z"])
    with pytest.raises(FileError, match="an image of uint8 per label"):
        read_images(path)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(FileError, match="no complete"):
        read_npz(tmp_path / "a.npz", ["x"])


def test_tables_of_mixed_numbers_become_doubles(tmp_path: Path) -> None:
    columns = {"a": pyarrow.array([1, 2], "int16"), "b": pyarrow.array([0.5, 1.5], "float32"), "c": pyarrow.array(["x", "y"])}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_parquet(tmp_path / "t.parquet", skipped=("c",))
    assert table.names == ("a", "b")
    assert table.values.dtype == np.float64
    np.testing.assert_array_equal(table.values, [[1, 0.5], [2, 1.5]])
    with pytest.raises(FileError, match="no complete Parquet table of numbers"):
        read_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    for data in (whole[:-10], b"", b"a,b\n1,2\n"):
        with pytest.raises(FileError, match="no complete Parquet table"):
            read_parquet(files.put(tmp_path, "broken.parquet", data))


def scenes(path: Path, pictures: list[np.ndarray], labels: np.ndarray, **changed: np.ndarray) -> None:
    encoded = []
    for picture in pictures:
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, "JPEG", quality=95)
        encoded.append(buffer.getvalue())
    arrays = {
        "val_jpeg": np.frombuffer(b"".join(encoded), np.uint8),
        "val_offsets": np.cumsum([0, *map(len, encoded)]),
        "val_labels": labels,
    }
    np.savez(path, **{**arrays, **changed})


def test_scenes_are_decoded(tmp_path: Path) -> None:
    pictures = [np.full((16, 24, 3), colour, np.uint8) for colour in ((200, 20, 40), (10, 120, 250))]
    labels = np.arange(2 * 16 * 24, dtype=np.uint8).reshape(2, 16, 24)
    scenes(tmp_path / "s.npz", pictures, labels)
    read, numbers = read_scenes(tmp_path / "s.npz", "val")
    assert read.shape == (2, 3, 16, 24)
    assert np.abs(read.transpose(0, 2, 3, 1).astype(int) - np.stack(pictures)).max() <= 4  # what JPEG loses
    np.testing.assert_array_equal(numbers, labels)


def test_damaged_scenes_are_refused(tmp_path: Path) -> None:
    picture, path = np.zeros((16, 24, 3), np.uint8), tmp_path / "s.npz"
    scenes(path, [picture], np.zeros((1, 16, 24), np.uint8))
    jpeg = np.load(path)["val_jpeg"]
    half = jpeg[: len(jpeg) // 2]
    for changed, message in (
        ({"val_offsets": np.array([0, 5])}, "offsets"),
        ({"val_offsets": np.array([0])}, "offsets"),
        ({"val_jpeg": half, "val_offsets": np.array([0, len(half)])}, r"val picture 0 in .* is no complete picture"),
        ({"val_labels": np.zeros((1, 16, 20), np.uint8)}, r"labels' size \(16, 20\), got \(16, 24\)"),
    ):
        scenes(path, [picture], np.zeros((1, 16, 24), np.uint8), **changed)
        with pytest.raises(FileError, match=message):
            read_scenes(path, "val")

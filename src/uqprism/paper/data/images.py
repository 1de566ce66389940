"""Public sets of small pictures as grey images, from compact copies or from official files.

| set | official format |
|---|---|
| MNIST, Fashion-MNIST | gzipped IDX files: a magic number, the length of each axis, then the bytes |
| EMNIST | IDX files in a zip archive, with transposed images |
| CIFAR-10 | a tar archive of records: a label, then 32x32 red, green and blue values (the other version would need pickle) |
| SVHN | a MATLAB file with X (32, 32, 3, n) and y (n, 1) |
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from uqprism.errors import FileError
from uqprism.paper.data.formats import AGAIN, GZIP, read_bytes, read_npz, reading, tar_member, zip_member
from uqprism.paper.data.root import Remote, Root

Array = Any
COMPACT = ".npz"
LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601: how bright red, green and blue look
CIFAR_RECORD = 1 + 3 * 32 * 32
CIFAR_TEST = "test_batch.bin"
EMNIST_TEST = "emnist-letters-test-{}-ubyte.gz"

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"  # the original site no longer serves them
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

# The official files, each in the folder of its set, with the checksums that TensorFlow Datasets publishes.
REMOTES = (
    Remote(
        "mnist",
        _MNIST + "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        9_912_422,
    ),
    Remote(
        "mnist", _MNIST + "train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881
    ),
    Remote(
        "mnist",
        _MNIST + "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        1_648_877,
    ),
    Remote(
        "mnist", _MNIST + "t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542
    ),
    Remote(
        "fashion_mnist",
        _FASHION + "t10k-images-idx3-ubyte.gz",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        4_422_102,
    ),
    Remote(
        "cifar10",
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
    ),
    Remote(
        "svhn",
        "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        64_275_384,
    ),
    Remote(
        "emnist",
        "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
        "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
        561_753_746,
    ),
)
COPIES = {"emnist": "emnist_letters.npz"}  # the compact copies that are not called SET.npz


def files(name: str, root: Root) -> list[Path]:
    """The files that this set is read from; its name is the folder of its official files."""
    return root.files(COPIES.get(name, f"{name}.npz"), *(remote for remote in REMOTES if remote.folder == name))


def mnist(root: Root, part: str) -> tuple[Array, Array]:
    """Digits (n, 28, 28) and their labels (n,), uint8, of part `train` or `test`."""
    paths = files("mnist", root)
    if paths[0].suffix == COMPACT:
        images, labels = read_images(paths[0], (f"x_{part}", f"y_{part}"))
    else:
        image_path, label_path = paths[:2] if part == "train" else paths[2:]
        images, labels = read_idx(image_path, 3), read_idx(label_path, 1)
    if labels.shape != images.shape[:1]:
        raise FileError(f"MNIST in {root.path} must have an image per label, got {images.shape} and {labels.shape}")
    if (labels > 9).any():
        raise FileError(f"MNIST in {root.path} must have labels 0 to 9, got {labels.max()} in its part {part}")
    return images, labels


def fashion_mnist(root: Root) -> Array:
    """Clothes (n, 28, 28), uint8, of the test set."""
    [path] = files("fashion_mnist", root)
    return read_images(path)[0] if path.suffix == COMPACT else read_idx(path, 3)


def cifar10(root: Root) -> Array:
    """Animals and vehicles (n, 32, 32), uint8, of the test set; the compact copy holds training images."""
    [path] = files("cifar10", root)
    return grey((read_images(path) if path.suffix == COMPACT else read_cifar(path))[0])


def svhn(root: Root) -> Array:
    """House numbers (n, 32, 32), uint8, of the test set."""
    [path] = files("svhn", root)
    [sha256] = [remote.sha256 for remote in REMOTES if remote.folder == "svhn"]
    return grey((read_images(path) if path.suffix == COMPACT else read_svhn(path, sha256))[0])


def emnist_letters(root: Root) -> Array:
    """Handwritten letters (n, 28, 28), uint8, upright, of the test set."""
    [path] = files("emnist", root)
    return (read_images(path) if path.suffix == COMPACT else read_emnist(path))[0]


GREY: dict[str, Callable[[Root], Array]] = {"cifar10": cifar10, "svhn": svhn, "fashion_mnist": fashion_mnist}


def grey(images: Array) -> Array:
    """The brightness (n, height, width), uint8, of images (n, 3, height, width)."""
    return np.rint(np.einsum("nchw,c->nhw", images, LUMA, optimize=True)).astype(np.uint8)


def read_images(path: Path, names: tuple[str, str] = ("x", "y")) -> tuple[Array, Array]:
    """Images, (n, height, width) or (n, channels, height, width), and labels (n,), all uint8, of a compact copy."""
    images, labels = read_npz(path, names)
    if images.dtype != np.uint8 or images.ndim not in {3, 4} or labels.shape != images.shape[:1]:
        raise FileError(f"{path} must have an image of uint8 per label, got {images.dtype}, {images.shape} and {labels.shape}")
    return (images if images.ndim == 3 else images.transpose(0, 3, 1, 2)), labels


def read_idx(path: Path, axes: int) -> Array:
    """The uint8 array with this number of axes in an IDX file, gzipped or not."""
    return parse_idx(read_bytes(path), axes, path)


def parse_idx(data: bytes, axes: int, source: object) -> Array:
    """The uint8 array in the bytes of an IDX file; `source` names it in errors."""
    if data[:2] == GZIP:
        with reading(source, "no complete gzip file"):
            data = gzip.decompress(data)
    if data[:4] != bytes([0, 0, 8, axes]):
        raise FileError(f"{source} is no IDX file of uint8 with {axes} axes, it starts with {data[:4].hex(' ')}; {AGAIN}")
    start = 4 + 4 * axes
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    if len(data) != start + math.prod(shape):
        expected = start + math.prod(shape)
        raise FileError(f"{source} must have {expected:,} bytes for an array of shape {shape}, got {len(data):,}; {AGAIN}")
    with reading(source, "no IDX file that NumPy can hold"):
        return np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()


def read_emnist(path: Path) -> tuple[Array, Array]:
    """Images (n, 28, 28), upright, and labels 1 to 26 (n,), uint8, of EMNIST's test letters."""
    members = ((EMNIST_TEST.format("images-idx3"), 3), (EMNIST_TEST.format("labels-idx1"), 1))
    images, labels = (parse_idx(zip_member(path, name), axes, f"{name} in {path}") for name, axes in members)
    if labels.shape != images.shape[:1]:
        raise FileError(f"{path} must have an image per label, got images {images.shape} and labels {labels.shape}")
    return np.ascontiguousarray(images.transpose(0, 2, 1)), labels


def read_cifar(path: Path) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and labels (n,), uint8, of CIFAR-10's test batch."""
    data, source = tar_member(path, CIFAR_TEST), f"{CIFAR_TEST} in {path}"
    if not data or len(data) % CIFAR_RECORD:
        raise FileError(f"{source} must be whole records of {CIFAR_RECORD} bytes, got {len(data):,} bytes")
    records = np.frombuffer(data, np.uint8).reshape(-1, CIFAR_RECORD)
    if (largest := int(records[:, 0].max())) > 9:
        raise FileError(f"{source} must have labels 0 to 9, got {largest}: it is no CIFAR-10 batch")
    return records[:, 1:].reshape(-1, 3, 32, 32).copy(), records[:, 0].copy()  # arrays of `frombuffer` are read-only


def read_svhn(path: Path, sha256: str) -> tuple[Array, Array]:
    """Images (n, 3, 32, 32) and digits 0 to 9 (n,), uint8, of a MATLAB file with this checksum.

    The checksum is compared first, because SciPy's reader can end the process on a damaged file.
    """
    data = read_bytes(path, sha256)
    from scipy.io import loadmat

    with reading(path, "no complete MATLAB file"):
        content = loadmat(io.BytesIO(data), variable_names=["X", "y"])
    if not {"X", "y"} <= set(content):
        raise FileError(f"{path} must hold X and y, got {sorted(name for name in content if not name.startswith('__'))}")
    images, labels = content["X"], content["y"].ravel()
    if images.dtype != np.uint8 or images.shape != (32, 32, 3, len(labels)):
        raise FileError(f"{path} must have X of uint8 and shape (32, 32, 3, {len(labels)}), got {images.dtype}, {images.shape}")
    if not np.isin(labels, np.arange(11)).all():
        raise FileError(f"{path} must have digits y of 0 to 10, got {labels.min()} to {labels.max()}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), (labels % 10).astype(np.uint8)  # the file writes 10 for zero

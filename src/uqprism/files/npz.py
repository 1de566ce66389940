"""Arrays in .npz files, read and written in slices, so that no array is ever whole in memory."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import zipfile
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from uqprism.ensemble.prediction import FORMAT
from uqprism.errors import FileError, InvalidValueError


class SlicedArray:
    """An array inside an .npz file, read from disk as it is asked for.

    An entry that is not compressed is read where it lies; a compressed one is unpacked to a temporary file when first needed.
    """

    def __init__(self, archive: zipfile.ZipFile, entry: str, opened: ExitStack) -> None:
        self.path, self.info, self.opened = Path(str(archive.filename)), archive.getinfo(entry), opened
        with archive.open(entry) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, self.fortran, self.dtype = read(stream)
            self.header = stream.tell()
        if self.dtype.hasobject:
            raise FileError(f"{self.path}: {entry} holds Python objects, which are not read; store plain arrays")

    @cached_property
    def data(self) -> tuple[IO[bytes], int]:
        """A file with the data, and where they begin in it."""
        if self.info.compress_type == zipfile.ZIP_STORED:
            stored = self.opened.enter_context(self.path.open("rb"))
            return stored, _data_offset(stored, self.info.header_offset) + self.header
        unpacked = self.opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (entered)
        with zipfile.ZipFile(self.path) as archive, archive.open(self.info) as stream:
            shutil.copyfileobj(stream, unpacked, 1 << 20)
        return unpacked, self.header

    @property
    def points(self) -> int:
        """How many points, if the first of two or more axes is that of the members."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) if len(self.shape) > 1 else int(np.prod(self.shape, dtype=np.int64))

    def entries(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """A slice of an array with one axis."""
        return self._run(start, stop - start)

    def members(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Points `start` to `stop` of all members, (members, stop - start); further axes of points count as one."""
        count = self.shape[0]
        if self.fortran and len(self.shape) == 2:
            return np.ascontiguousarray(self._run(start * count, (stop - start) * count).reshape(stop - start, count).T)
        return np.stack([self._run(member * self.points + start, stop - start) for member in range(count)])

    def _run(self, first: int, count: int) -> np.ndarray[Any, Any]:
        if not count:
            return np.empty(0, self.dtype.newbyteorder("="))
        file, offset = self.data
        file.seek(offset + first * self.dtype.itemsize)
        data = file.read(count * self.dtype.itemsize)
        if len(data) < count * self.dtype.itemsize:
            raise EOFError("the file ends before its data do")
        return np.frombuffer(data, self.dtype, count).astype(self.dtype.newbyteorder("="), copy=False)


def _data_offset(file: IO[bytes], header: int) -> int:
    """Where the data of a zip entry begin: after a header of 30 bytes, a name and an extra field of stated lengths."""
    file.seek(header + 26)
    name, extra = struct.unpack("<HH", file.read(4))
    return int(header + 30 + name + extra)


class NpzArrays:
    """The arrays of an .npz file: `mean` and `variance` or `scale`, (members, points), and others with an entry per point.

    Files of `EnsemblePrediction.save` are read too, with their weights; points of several axes are taken in C order.
    """

    def __init__(self, path: Path) -> None:
        self.weights: tuple[float, ...] | None = None
        self.opened = ExitStack()
        try:
            self._open(path)
        except BaseException:
            self.opened.close()
            raise

    def _open(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            entries = [name for name in archive.namelist() if name.endswith(".npy")]
            self.others = {name.removesuffix(".npy"): SlicedArray(archive, name, self.opened) for name in entries}
        if "header" in self.others:
            self._unwrap(path)
        self.kind = _kind(path, self.others)
        self.mean, self.spread = self.others.pop("mean"), self.others.pop(self.kind)
        self.points = self.mean.points
        self._check(path)

    def _unwrap(self, path: Path) -> None:
        header = self.others.pop("header")
        about = json.loads(header.entries(0, header.points).tobytes())
        if about.get("format") != FORMAT:
            raise InvalidValueError(f"{path}: was written by {about.get('format')}, not by EnsemblePrediction.save")
        if about["family"] != "gaussian":
            raise InvalidValueError(
                f"{path}: holds {about['family']} members; files of Gaussian members are scored, others by evaluate"
            )
        weights = self.others.pop("member_weights", None)
        if weights is not None:
            self.weights = tuple(weights.entries(0, weights.points).astype(float).tolist())
        if "given_variance" in self.others:
            self.others["variance"] = self.others.pop("given_variance")
            self.others.pop("scale", None)

    def _check(self, path: Path) -> None:
        if len(self.mean.shape) < 2 or self.mean.shape != self.spread.shape:
            raise InvalidValueError(
                f"{path}: mean and {self.kind} must have one shape (members, points), got {self.mean.shape} and "
                f"{self.spread.shape}"
            )
        if any(x.fortran and len(x.shape) > 2 for x in (self.mean, self.spread)):
            raise InvalidValueError(f"{path}: mean and {self.kind} are in Fortran order; store them with np.ascontiguousarray")
        for name, array in self.others.items():
            if array.shape != (self.points,):
                raise InvalidValueError(
                    f"{path}: array {name!r} has shape {array.shape}, but there are {self.points} points; "
                    "arrays beside the members have one entry per point, leave others out"
                )


def _kind(path: Path, arrays: dict[str, SlicedArray]) -> str:
    kinds = [kind for kind in ("variance", "scale") if kind in arrays]
    if "mean" not in arrays or len(kinds) != 1:
        names = ", ".join(sorted(arrays)) or "none"
        raise InvalidValueError(f"{path}: needs an array mean and one of variance and scale, (members, points); it has {names}")
    return kinds[0]


class NpzWriter:
    """Columns that grow by batches, kept in temporary files until their length is known; text is kept in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spools: dict[str, IO[bytes]] = {}
        self.dtypes: dict[str, np.dtype[Any]] = {}
        self.text: dict[str, list[str]] = {}

    def append(self, name: str, values: np.ndarray[Any, Any]) -> None:
        """More entries of this column."""
        if values.dtype.kind in "OU":
            self.text.setdefault(name, []).extend(values.tolist())
            return
        if name not in self.spools:
            self.spools[name] = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115 (closed in close)
            self.dtypes[name] = values.dtype
        self.spools[name].write(np.ascontiguousarray(values).tobytes())

    def finish(self, rows: int, matrices: dict[str, tuple[str, ...]]) -> None:
        """Write the file; `matrices` are arrays (members, points) made of these columns."""
        inside = {column for columns in matrices.values() for column in columns}
        with zipfile.ZipFile(self.path, "w", allowZip64=True) as archive:
            for name, columns in matrices.items():
                self._entry(archive, name, columns, (len(columns), rows))
            for name in self.spools:
                if name not in inside:
                    self._entry(archive, name, (name,), (rows,))
            for name, values in self.text.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, np.array(values, dtype=np.str_), allow_pickle=False)

    def _entry(self, archive: zipfile.ZipFile, name: str, columns: tuple[str, ...], shape: tuple[int, ...]) -> None:
        description = np.lib.format.dtype_to_descr(self.dtypes[columns[0]])
        with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
            header = {"descr": description, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(stream, header)
            for column in columns:
                self.spools[column].seek(0)
                shutil.copyfileobj(self.spools[column], stream, 1 << 20)

    def close(self) -> None:
        """Drop the temporary files."""
        for spool in self.spools.values():
            spool.close()

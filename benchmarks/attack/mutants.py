"""Small files of predictions, damaged copies of them, and what an independent reader finds in a file."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MEMBERS, ROWS = 3, 60
MEASURE = "squared_error.bayes.members"
PREFIXES = ("mean_", "variance_", "scale_")
NAMES = [f"{kind}_{i}" for kind in ("mean", "variance") for i in range(MEMBERS)]
CELLS = ["abc", "", "NaN", "inf", "-1", "1e400", "1,5", '"', '"a\nb"', "\0", "0x10", "9" * 5000, "é", ";", "\n", "nan,nan", "1 2"]
NUMBERS = [0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
REPLACED = [(b"60", b"-1"), (b"60", b"99"), (b"60", b" 0"), (b"<f8", b"<c8"), (b"<f8", b"|O8"), (b"False", b"True ")]
VALUES: list[Any] = [None, {}, [], "", "x", -1, 0, 1e308, True, [[]], {"a": {}}, "9" * 50]


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    """A target, and means and variances of three members."""
    rng = np.random.default_rng(seed)
    mean, variance = rng.normal(size=(MEMBERS, ROWS)), np.exp(rng.normal(size=(MEMBERS, ROWS)))
    return {"y": rng.normal(size=ROWS), **dict(zip(NAMES, [*mean, *variance], strict=True))}


def npz(arrays: dict[str, Any], *, compressed: bool = False) -> bytes:
    """The bytes of an .npz file."""
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def original(kind: str) -> bytes:
    """A whole file of this kind: parquet, parquet plain, csv, npz or npz compressed."""
    found = columns()
    if kind.startswith("npz"):
        mean, variance = (np.stack([found[f"{name}_{i}"] for i in range(MEMBERS)]) for name in ("mean", "variance"))
        return npz({"y": found["y"], "mean": mean, "variance": variance}, compressed=kind != "npz")
    if kind == "csv":
        rows = zip(*(map(repr, values.tolist()) for values in found.values()), strict=True)
        return "\n".join([",".join(found), *map(",".join, rows)]).encode() + b"\n"
    plain = {"compression": "none", "use_dictionary": False} if kind == "parquet plain" else {}
    stream = io.BytesIO()
    pq.write_table(pa.table(found), stream, row_group_size=25, write_page_checksum=True, **plain)
    return stream.getvalue()


def mutants(kind: str, whole: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Damaged copies of a file of this kind."""
    edits = {"csv": edited_cells, "npz": edited_arrays, "npz compressed": edited_arrays}.get(kind, edited_end)
    for _ in range(count):
        yield edits(whole, rng) if rng.random() < 0.3 else damaged(whole, rng)


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """A copy with bits flipped, bytes overwritten, cut out, inserted, swapped, or cut off."""
    data, size = bytearray(whole), len(whole)
    at, other = sorted(rng.integers(0, size, 2).tolist())
    length = int(rng.integers(1, 64))
    match int(rng.integers(7)):
        case 0:
            for place in rng.integers(0, size, int(rng.integers(1, 4))):
                data[place] ^= 1 << int(rng.integers(8))
        case 1:
            data[at : at + length] = rng.bytes(len(data[at : at + length]))
        case 2:
            del data[at:]
        case 3:
            del data[at : at + length]
        case 4:
            data[at:at] = data[other : other + length]
        case 5:
            data[at : at + length], data[other : other + length] = data[other : other + length], data[at : at + length]
        case _:
            number = NUMBERS[int(rng.integers(len(NUMBERS)))].to_bytes(8, "little")[: int(rng.choice([1, 2, 4, 8]))]
            data[at : at + len(number)] = number
    return bytes(data)


def edited_end(whole: bytes, rng: np.random.Generator) -> bytes:
    """A copy with its last part damaged, where a Parquet file says what it holds."""
    cut = len(whole) - int.from_bytes(whole[-8:-4], "little") - 8
    return whole[:cut] + damaged(whole[cut:-8], rng) + whole[-8:]


def edited_cells(whole: bytes, rng: np.random.Generator) -> bytes:
    """A copy with other text in some cells of a CSV file."""
    lines = [line.split(",") for line in whole.decode().splitlines()]
    for _ in range(int(rng.integers(1, 4))):
        line = lines[int(rng.integers(len(lines)))]
        line[int(rng.integers(len(line)))] = CELLS[int(rng.integers(len(CELLS)))]
    return "\n".join(map(",".join, lines)).encode(str(rng.choice(["utf-8", "utf-8", "latin-1", "utf-16"]))) + b"\n"


def edited_arrays(whole: bytes, rng: np.random.Generator) -> bytes:
    """A copy in which the header of an array is damaged, or its bytes, with the right checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(out, "w") as target:
        names = source.namelist()
        chosen = names[int(rng.integers(len(names)))]
        for name in names:
            data = source.read(name)
            target.writestr(name, edited_array(name, data, rng) if name == chosen else data)
    return out.getvalue()


def edited_array(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    """An array with another header: of NumPy, or of a saved object."""
    begin = 10 + int.from_bytes(data[8:10], "little")
    if name == "header.npy":
        about = edited_json(json.loads(data[begin:]), rng)
        stream = io.BytesIO()
        np.save(stream, np.frombuffer(json.dumps(about).encode(), np.uint8))
        return stream.getvalue()
    if rng.random() < 0.5:
        return damaged(data[:begin], rng) + data[begin:]
    old, new = [(b"60", b"-1"), (b"60", b"99"), (b"60", b" 0"), (b"<f8", b"<c8"), (b"<f8", b"|O8"), (b"False", b"True ")][
        rng.integers(6)
    ]
    return data[:begin].replace(old, new) + data[begin:]


def edited_json(about: Any, rng: np.random.Generator) -> Any:
    """A copy in which a value somewhere inside is another one, or gone."""
    if not isinstance(about, dict) or not about:
        return VALUES[int(rng.integers(len(VALUES)))]
    key = str(rng.choice(list(about)))
    if rng.random() < 0.2:
        return {name: value for name, value in about.items() if name != key}
    return {**about, key: edited_json(about[key], rng)}


# What a file holds, read in another way -----------------------------------------------------------------------------


def contents(path: Path) -> dict[str, np.ndarray]:
    """The numbers of a file by the name of the column, NaN where a cell holds none; raises if the file is damaged."""
    if path.suffix == ".npz":
        return _contents_of_npz(path)
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            limit = csv.field_size_limit(1 << 30)
            header, *rows = [row for row in csv.reader(file, strict=True) if row]
            csv.field_size_limit(limit)
        _agree(len(set(header)), *map(len, rows))
        return {name: np.array([_number(row[i]) for row in rows], float) for i, name in enumerate(header)}
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read()
        _agree(table.num_rows, file.metadata.num_rows)
    lists = {name: table.column(name).to_pylist() for name in table.column_names if name.startswith(PREFIXES)}
    return {name: np.array([_number(value) for value in values], float) for name, values in lists.items()}


def _contents_of_npz(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {name} is wrong")
    with np.load(path) as file:
        arrays = {name: file[name].astype(float) for name in file.files if name.startswith(("mean", "variance", "scale"))}
    matrices = {name: array for name, array in arrays.items() if name in {"mean", "variance", "scale"} and array.ndim > 1}
    flat = {f"{name}_{i}": row.ravel() for name, rows in matrices.items() for i, row in enumerate(rows)}
    return flat | {name: array.ravel() for name, array in arrays.items() if name not in matrices}


def _agree(*counts: int) -> None:
    if len(set(counts)) > 1:
        raise ValueError(f"counts differ: {sorted(set(counts))}")


def _number(value: Any) -> float:
    text = str(value).strip(" \t")
    try:
        return float("nan" if value is None or "_" in text or not text.isascii() else text)
    except ValueError:
        return float("nan")


def is_right(path: Path, scored: dict[str, np.ndarray]) -> bool:
    """Whether a scored file agrees with what its input holds; members are kept, and the measure is the mean of the variances."""
    given = contents(path)
    members = {kind: [name for name in scored if name.startswith(f"{kind}_")] for kind in ("mean", "variance", "scale")}
    if not all(np.array_equal(given[name], scored[name], equal_nan=True) for names in members.values() for name in names):
        return False
    mean = np.stack([given[name] for name in members["mean"]])
    spread = np.stack([given[name] for name in [*members["variance"], *members["scale"]]])
    good = ((abs(mean) <= 1e150) & (spread <= (1e150 if members["scale"] else 1e300)) & (spread > 0)).all(axis=0)
    scale = np.where(good, spread if members["scale"] else np.sqrt(abs(spread)), 1.0)
    apart = np.ptp(np.where(good, mean, 0.0), axis=0) + scale.max(axis=0)
    good &= (scale.min(axis=0) >= 1e-150) & (scale.min(axis=0) >= 2e-154 * apart)
    found = np.mean(spread**2 if members["scale"] else spread, axis=0)
    return bool(np.allclose(scored[MEASURE], np.where(good, found, np.nan), rtol=1e-9, equal_nan=True))

"""Damaged and crafted files against every command and function that reads: one error each, within 5 s and 500 MB.

python -m benchmarks.attack.files --rounds 200
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.attack import mutants
from pyarrow import csv

import uqprism as up
from uqprism.errors import UqprismError
from uqprism.files import score

SECONDS, MEGABYTES = 5.0, 500
PATIENCE = 60.0  # seconds on the clock after which a try is ended; the machine may be busy
KINDS = {"parquet": ".parquet", "parquet plain": ".parquet", "csv": ".csv", "npz": ".npz", "npz compressed": ".npz"}
COUNTS = ("tries", "clean errors", "right answers", "silently wrong", "tracebacks", "over 5 s", "over 500 MB")
Row = dict[str, Any]
Files = dict[str, bytes]


# Ways to read a file: each raises an error or returns; False says that what it returned is wrong -----------------------


def command(*arguments: str) -> Callable[[Path], None]:
    """A command of the command line, with FILE, GOOD and OUT for the file, a whole file and a folder for the output."""

    def run(path: Path) -> None:
        from uqprism.cli import app

        places = {"FILE": str(path), "GOOD": str(path.parent / "good.parquet"), "OUT": str(path.parent / "out")}
        given = [each.replace("OUT", places["OUT"]) if "OUT" in each else places.get(each, each) for each in arguments]
        app(given, standalone_mode=False)

    return run


def scored(path: Path) -> bool:
    """Score the file, and compare the result with what an independent reader finds in it."""
    out = path.parent / "out.parquet"
    score(path, out, measures=[mutants.MEASURE], on_bad="null", keep_members=True, overwrite=True)
    table = pq.read_table(out)
    wanted = [name for name in table.column_names if name == mutants.MEASURE or name.startswith(mutants.PREFIXES)]
    found = {name: np.asarray(table.column(name).to_pylist(), float) for name in wanted}
    try:
        return mutants.is_right(path, found)
    except Exception:
        return False  # accepted, although it is damaged


def uploaded(path: Path) -> None:
    """Score the file as the app does."""
    from uqprism.app import inputs
    from uqprism.app import scored as scoring

    scoring.score(inputs.Upload(path.name, path.read_bytes()), inputs.ScoringChoice())


def loaded(path: Path) -> None:
    """Load the file as each kind of object; one at most can succeed."""
    kinds = (up.EnsemblePrediction, up.MeasureTable, up.TaskResult, up.RankCorrelation, up.EvidentialPrediction)
    problems = []
    for kind in kinds:
        try:
            str(kind.load(path))
        except UqprismError as error:
            problems.append(error)
    if len(problems) == len(kinds):
        raise problems[0]


READERS: dict[str, Callable[[Path], Any]] = {
    "score": scored,
    "score to CSV": command("score", "FILE", "-o", "OUT/a.csv", "--on-bad", "drop", "--overwrite", "-q"),
    "report": command("report", "FILE", "--target", "y", "-o", "OUT/a.html"),
    "selective": command("selective", "FILE", "--target", "y", "--on-bad", "drop"),
    "ood": command("ood", "GOOD", "FILE"),
    "correlation": command("correlation", "FILE", "--measures", "usual"),
    "select": command("select", "FILE", "--target", "y"),
    "app": uploaded,
    "load": loaded,
}


# Crafted files --------------------------------------------------------------------------------------------------------


def crafted() -> Files:
    """Files that are made to be misread, by name."""
    return {**_arrays(), **_archives(), **_headers(), **_text(), **_wide(), **_parquet()}


def _npy(shape: str, descr: str = "'<f8'", data: bytes = b"") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def _zip(entries: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _arrays() -> Files:
    ones, found = np.ones((2, 3)), {}
    shapes = {
        "300 million members": ("(300000000, 0)", b""),
        "more than there is": ("(2, 300000000)", bytes(48)),
        "no end of axes": (f"({'1, ' * 200})", bytes(8)),
        "a negative axis": ("(-2, -3)", bytes(48)),
        "a number of 5,000 digits": (f"({'9' * 5000},)", b""),
        "nested brackets": ("(" * 4000, b""),
        "a call": ("exec('1')", b""),
        "nothing": ("(0, 0)", b""),
        "no members": ("(0, 1000000000000)", b""),
        "an overflow": ("(4294967296, 4294967296)", b""),
    }
    for what, (shape, data) in shapes.items():
        found[f"array with {what}.npz"] = _zip({"mean.npy": _npy(shape, data=data), "variance.npy": _npy(shape, data=data)})
    types = {"complex": ones + 1j, "long": ones.astype("longdouble"), "text": ones.astype(str), "bool": ones > 0}
    types |= {"time": ones.astype("M8[s]"), "structured": np.ones((2, 3), [("a", float)]), "bytes": ones.astype("S3")}
    types |= {"half": ones.astype("f2"), "big end": ones.astype(">f8"), "whole": ones.astype("i8"), "one number": np.float64(1)}
    for what, values in types.items():
        found[f"array of {what}.npz"] = mutants.npz({"mean": values, "variance": values})
    stream = io.BytesIO()
    np.savez(stream, mean=np.array([[None, {}]]), variance=ones)
    found["array of objects.npz"] = stream.getvalue()
    nothing = _npy("(1000000000,)", "'<U0'")
    found["array of no bytes.npz"] = _zip({"mean.npy": nothing, "variance.npy": nothing})
    found["array of other shapes.npz"] = mutants.npz({"mean": ones, "variance": np.ones((3, 2))})
    found["array of points only.npz"] = mutants.npz({"mean": ones[0], "variance": ones[0], "y": ones[0]})
    return found


def _archives() -> Files:
    whole = mutants.original("npz")
    encrypted = bytearray(whole)
    for mark, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = -1
        while (at := encrypted.find(mark, at + 1)) >= 0:
            encrypted[at + offset] |= 1
    method = bytearray(whole)
    method[method.find(b"PK\1\2") + 10] = 99
    zeros = bytes(400 << 20)
    return {
        "encrypted.npz": bytes(encrypted),
        "packed in an unknown way.npz": bytes(method),
        "bomb.npz": _zip({"mean.npy": _npy("(1, 52428800)", data=zeros), "variance.npy": _npy("(1, 52428800)", data=zeros)}),
        "many entries.npz": _zip({f"{i}.npy": b"" for i in range(50_000)}, zipfile.ZIP_STORED),
        "no arrays.npz": _zip({"a.txt": b"a"}),
        "only an end.npz": b"PK\5\6" + bytes(18),
        "pickle.npz": b"\x80\x04]\x94.",
        "one array.npz": _npy("(3,)", data=bytes(24)),
        "empty.npz": b"",
    }


def _headers() -> Files:
    found = {}
    ones = np.ones((2, 3))
    texts = {
        "{}": b"{}",
        "a list": b"[]",
        "deep": b"[" * 200_000,
        "digits": b'{"a": ' + b"9" * 5000 + b"}",
        "no text": b"\xff\xfe",
    }
    for kind in ("EnsemblePrediction", "MeasureTable", "TaskResult", "RankCorrelation", "EvidentialPrediction"):
        for i, value in enumerate(({}, [], None, "x", {"parts": {}}, 1e308)):
            keys = ("family", "parameters", "exactness", "result", "names", "networks")
            texts[f"{kind} {i}"] = json.dumps({"format": f"uqprism.{kind}", "version": 1, **dict.fromkeys(keys, value)}).encode()
    for what, text in texts.items():
        arrays = {"mean": ones, "scale": ones, "header": np.frombuffer(text, np.uint8)}
        found[f"header of {what}.npz"] = mutants.npz(arrays)
    for what, scale in (("negative", -ones), ("NaN", ones * np.nan)):
        header = json.dumps({"format": "uqprism.EnsemblePrediction", "version": 1, "family": "gaussian"}).encode()
        found[f"{what} scales.npz"] = mutants.npz({"mean": ones, "scale": scale, "header": np.frombuffer(header, np.uint8)})
    return found


def _text() -> Files:
    head, row = b"y,mean_0,mean_1,variance_0,variance_1\n", b"1,1,2,1,2\n"
    cells = {
        "text": b"abc",
        "comma": b"1,5",
        "huge": b"1e400",
        "large": b"1e308",
        "digits": b"9" * 5000,
        "NUL": b"\0",
        "inf": b"inf",
    }
    cells |= {"digits": b"9" * 5000, "quote": b'"1', "empty": b"", "latin": b"\xe9", "hex": b"0x10", "long": b"1" * (5 << 20)}
    found = {f"cell of {what}.csv": head + row * 9 + row.replace(b"2,1", cell + b",1") + row * 9 for what, cell in cells.items()}
    found |= {f"column of {what}.csv": head + row.replace(b"2,1", cell + b",1") * 9 for what, cell in cells.items()}
    return found | {
        "empty.csv": b"",
        "header only.csv": head,
        "no header.csv": row * 9,
        "one endless line.csv": b"1," * (8 << 20),
        "one endless name.csv": b"a" * (8 << 20),
        "one endless quote.csv": head + row + b'"' + row * 900_000,
        "300,000 columns.csv": ",".join(f"mean_{i}" for i in range(300_000)).encode() + b"\n",
        "one variance of 1e308.csv": head + row * 9 + b"1,1,2,1e308,2\n",
        "one variance of 1e-308.csv": head + row * 9 + b"1,1,2,1e-308,2\n",
        "one mean of 1e308.csv": head + row * 9 + b"1,1e308,2,1,2\n",
        "one target of 1e308.csv": head + row * 9 + b"1e308,1,2,1,2\n",
        "all of 1e308.csv": head + b"1e308,1e308,-1e308,1e308,1e308\n" * 9,
        "all of 1e-300.csv": head + b"1e-300,1e-300,2e-300,1e-300,1e-300\n" * 9,
        "a name of 5,000 digits.csv": head.replace(b"mean_1", b"mean_" + b"1" * 5000) + row,
        "the same name.csv": head.replace(b"mean_1", b"mean_0") + row,
        "two bytes a letter.csv": (head + row).decode().encode("utf-16"),
        "a mark at the start.csv": b"\xef\xbb\xbf" + head + row * 9,
        "semicolons.csv": (head + row).replace(b",", b";"),
        "tabs.csv": (head + row).replace(b",", b"\t"),
        "ragged.csv": head + row + b"1,2\n" + row,
        "returns.csv": (head + row * 9).replace(b"\n", b"\r"),
        "markup.csv": head.replace(b"y", b"<script>") + row * 9,
    }


def _wide() -> Files:
    """Files with nearly as many columns as are read."""
    members = {f"{kind}_{i}": np.arange(1.0, 4.0) for kind in ("mean", "variance") for i in range(4_900)}
    others = {name: members[name] for name in ("mean_0", "mean_1", "variance_0", "variance_1")}
    others |= {f"c{i}": np.arange(3.0) for i in range(9_000)}
    found = {}
    for what, columns in {"members": members, "other columns": others}.items():
        table = pa.table({"y": np.arange(3.0), **columns})
        text, stream = io.BytesIO(), io.BytesIO()
        csv.write_csv(table, text)
        pq.write_table(table, stream)
        found |= {f"thousands of {what}.csv": text.getvalue(), f"thousands of {what}.parquet": stream.getvalue()}
    return found


def _parquet() -> Files:
    def written(table: Any, **options: Any) -> bytes:
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        return stream.getvalue()

    whole, found = mutants.original("parquet"), {}
    given = pa.table(mutants.columns())
    odd = {
        "struct": pa.array([{"a": 1.0}] * 60),
        "list": pa.array([[1.0]] * 60),
        "map": pa.array([[("a", 1.0)]] * 60, pa.map_(pa.string(), pa.float64())),
        "dictionary": pa.array(["a"] * 60).dictionary_encode(),
        "numbers as text": pa.array(["1.5"] * 60),
        "decimal": pa.array([1] * 60).cast(pa.decimal128(30, 4)),
        "timestamp": pa.array([1] * 60, pa.timestamp("ns", "UTC")),
        "binary": pa.array([b"\xff"] * 60),
        "damaged text": pa.array([b"\xff"] * 60).view(pa.string()),
        "null": pa.nulls(60),
        "truth": pa.array([True] * 60),
    }
    for what, values in odd.items():
        found[f"mean of {what}.parquet"] = written(given.set_column(1, "mean_0", values))
        found[f"other of {what}.parquet"] = written(given.append_column("other", values))
    length = int.from_bytes(whole[-8:-4], "little")
    lies = {"0": 0, "all": len(whole), "4 GB": (1 << 32) - 1, "less": length - 7, "more": length + 7}
    for what, size in lies.items():
        found[f"footer of {what}.parquet"] = whole[:-8] + struct.pack("<L", size) + b"PAR1"
    with_header = given.replace_schema_metadata({"uqprism.EnsemblePrediction": '{"weights": {"a": 1}}'})
    deep = given.replace_schema_metadata({"uqprism.EnsemblePrediction": "[" * 100_000, "pandas": "{"})
    return found | {
        "truncated.parquet": whole[: len(whole) // 2],
        "empty.parquet": b"",
        "magic.parquet": b"PAR1PAR1",
        "other magic.parquet": whole[:-4] + b"PARE",
        "names that are no text.parquet": whole.replace(b"mean_1", b"mea\xff\xfe1"),
        "the same name.parquet": whole.replace(b"mean_1", b"mean_0"),
        "wrong weights.parquet": written(with_header),
        "deep metadata.parquet": written(deep),
        "100,000 columns.parquet": written(pa.table({f"mean_{i}": [1.0] for i in range(100_000)})),
        "a billion nulls.parquet": written(pa.table({n: pa.nulls(10**8) for n in ("mean_0", "variance_0")})),
        "a constant.parquet": written(pa.table({n: np.ones(10**7) for n in ("y", "mean_0", "variance_0")}), compression="zstd"),
        "no rows.parquet": written(given[:0]),
        "no columns.parquet": written(given.select([])),
        "feather.parquet": b"ARROW1\0\0" + bytes(100),
    }


# Trying ---------------------------------------------------------------------------------------------------------------


def attempt(read: Callable[[Path], Any], path: Path) -> Counter[str]:
    """What became of reading the file, in a process of its own."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(there)
        _guarded(read, path, here)
    os.close(here)
    ready, _, _ = select.select([there], [], [], PATIENCE)
    text = os.read(there, 1 << 16) if ready else b""
    os.close(there)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = Counter({"tries": 1})
    if not text:  # ended by a signal, or without an end
        found["tracebacks" if ready else "over 5 s"] += 1
        return found
    outcome, seconds, megabytes = json.loads(text)
    found[outcome] += 1
    found["over 5 s"] += seconds > SECONDS
    found["over 500 MB"] += megabytes > MEGABYTES
    return found


def _guarded(read: Callable[[Path], Any], path: Path, pipe: int) -> None:
    """Read the file and tell the outcome, the seconds of the processor and the megabytes; never returns."""
    size = _status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (size + (6 << 30), size + (6 << 30)))
    Path("/proc/self/clear_refs").write_text("5")  # counts the peak from here
    base, start = _status("VmRSS"), time.process_time()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of overflow
            outcome = "silently wrong" if read(path) is False else "right answers"
    except UqprismError as error:
        outcome = "clean errors" if "\n" not in str(error) else "tracebacks"
    except SystemExit:
        outcome = "clean errors"
    except BaseException as error:
        outcome = "tracebacks"
        if os.environ.get("ATTACK_SHOWS"):
            print(f"{path.name}: {type(error).__name__}: {str(error)[:150]}", file=sys.__stderr__)
    found = [outcome, time.process_time() - start, (_status("VmHWM") - base) / 1e6]
    os.write(pipe, json.dumps(found).encode())
    os._exit(0)


def _status(name: str) -> int:
    """A size of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def run(seed: int, rounds: int, readers: Sequence[str] = tuple(READERS)) -> list[Row]:
    """The counts of each attack: crafted files against each of these readers, and `rounds` damaged files of each format."""
    _warm()
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        return [*_crafted_rows(folder, readers), *_random_rows(folder, seed, rounds)]
    finally:
        shutil.rmtree(folder)


def _warm() -> None:
    """Import here what readers import, so that neither its time nor its memory counts."""
    import matplotlib.pyplot  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.dataset  # noqa: F401

    import uqprism.app.scored
    import uqprism.cli
    import uqprism.report.page  # noqa: F401


def _prepared(folder: Path) -> None:
    (folder / "out").mkdir(exist_ok=True)
    (folder / "good.parquet").write_bytes(mutants.original("parquet"))


def _crafted_rows(folder: Path, readers: Sequence[str]) -> Iterator[Row]:
    _prepared(folder)
    files = crafted()
    for name in readers:
        read, total = READERS[name], Counter[str]()
        for file, data in files.items():
            if name == "load" and not file.endswith(".npz"):
                continue
            (folder / file).write_bytes(data)
            total += _noted(attempt(read, folder / file), name, file)
            (folder / file).unlink()
        yield {"attack": f"crafted files, {name}", **{count: total[count] for count in COUNTS}}


def _random_rows(folder: Path, seed: int, rounds: int) -> Iterator[Row]:
    _prepared(folder)
    for kind, suffix in KINDS.items():
        rng, total, whole = np.random.default_rng([seed, len(kind)]), Counter[str](), mutants.original(kind)
        others = [name for name in READERS if name not in {"score", "load"}]
        for i, data in enumerate(mutants.mutants(kind, whole, rng, rounds)):
            path = folder / f"in{suffix}"
            path.write_bytes(data)
            for name in ("score", others[i % len(others)]):
                total += _noted(attempt(READERS[name], path), name, f"{kind} {i}")
        yield {"attack": f"damaged {kind}", **{count: total[count] for count in COUNTS}}


def _noted(found: Counter[str], reader: str, file: str) -> Counter[str]:
    faults = [count for count in COUNTS[3:] if found[count]]
    if faults and os.environ.get("ATTACK_SHOWS"):
        print(f"{reader}: {file}: {', '.join(faults)}", file=sys.stderr)
    return found


def main() -> None:
    """Print the counts as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--readers", nargs="*", default=list(READERS), choices=list(READERS))
    given = parser.parse_args()
    print(f"{'attack':<32}" + "".join(f"{count:>16}" for count in COUNTS))
    for row in run(given.seed, given.rounds, given.readers):
        print(f"{row['attack']:<32}" + "".join(f"{row[count]:>16}" for count in COUNTS))


if __name__ == "__main__":
    main()

"""Upload random, damaged and crafted files to the page of `uqprism app`, give it hostile names, and call it by other hosts.

The page runs as Streamlit's `AppTest` runs it, in a process of its own; its processor time counts. What it shows of a file
that it accepts is compared with numbers that are computed here from the file's bytes. A page that asks to look into the terminal
counts as a traceback.
"""

from __future__ import annotations

import csv
import html
import io
import json
import os
import random
import re
import string
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SLOW, LARGE = 5.0, 500e6  # seconds, bytes
PATIENCE = 600  # seconds on the clock after which a try is ended; the machine may be busy
ROWS, MEMBERS = 30, 3


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


class File(NamedTuple):
    """A file to upload."""

    name: str
    content: bytes


class Seen(NamedTuple):
    """What the page said of a file, how long it took, and how much memory."""

    text: str
    markup: str
    seconds: float
    memory: float
    left: int


# Files ---------------------------------------------------------------------------------------------------------------------


def good(rng: random.Random) -> dict[str, bytes]:
    """The same predictions in each format, by the ending."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draws = np.random.default_rng(rng.getrandbits(32))
    mean, variance = draws.normal(size=(MEMBERS, ROWS)), np.exp(draws.normal(size=(MEMBERS, ROWS)))
    columns = {f"{kind}_{i}": row for kind, rows in (("mean", mean), ("variance", variance)) for i, row in enumerate(rows)}
    columns |= {"y": mean.mean(axis=0) + draws.normal(size=ROWS)}
    table = pa.table(columns)
    parquet, npz, compressed, text = io.BytesIO(), io.BytesIO(), io.BytesIO(), io.StringIO()
    pq.write_table(table, parquet)
    np.savez(npz, mean=mean, variance=variance)
    np.savez_compressed(compressed, mean=mean, variance=variance)
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return {".parquet": parquet.getvalue(), ".npz": rng.choice((npz, compressed)).getvalue(), ".csv": text.getvalue().encode()}


def noise(rng: random.Random) -> File:
    """Random bytes, after the beginning of a good file or not."""
    ending, content = rng.choice([*good(rng).items()])
    return File(f"random{ending}", content[: rng.choice((0, 0, 4, 40, 400))] + rng.randbytes(rng.randint(0, 4_000)))


def mutant(rng: random.Random) -> File:
    """A good file with some bytes changed, left out or doubled."""
    ending, content = rng.choice([*good(rng).items()])
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(max(len(changed), 1))
        match rng.randrange(4):
            case 0:
                changed[place : place + 1] = rng.randbytes(1)
            case 1:
                del changed[place:]
            case 2:
                del changed[place : place + rng.randint(1, 50)]
            case _:
                changed[place:place] = changed[place : place + rng.randint(1, 200)]
    return File(f"mutant{ending}", bytes(changed))


def npy(header: str, data: bytes = b"") -> bytes:
    """An array with any header."""
    text = header.encode("latin-1", "replace")
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text) + 1) + text + b"\n" + data


def zipped(entries: dict[str, bytes], flag: int = 0) -> bytes:
    """A zip file of these entries; `flag` is set in each of their headers."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    content = bytearray(stream.getvalue())
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(sign), bytes(content)):
            content[found.start() + offset] |= flag
    return bytes(content)


def declared(shape: str, kind: str = "<f8", data: bytes = b"") -> bytes:
    """An NPZ file whose arrays declare this shape and type."""
    array = npy(f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}", data)
    return zipped({"mean.npy": array, "variance.npy": array})


def columns_of(*names: str, cell: str = "1") -> bytes:
    """A CSV file with these columns and one row."""
    text = io.StringIO()
    csv.writer(text).writerows([names, [cell] * len(names)])
    return text.getvalue().encode("utf-8", "replace")


def parquet_of(columns: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """A Parquet file of these columns and a member."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = len(next(iter(columns.values())))
    table = pa.table({"mean_0": pa.array([1.0] * count), "variance_0": pa.array([1.0] * count), **columns})
    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), stream)
    return stream.getvalue()


def crafted() -> dict[str, File]:
    """Files that declare what they do not have, or hold what nobody expects."""
    import pyarrow as pa

    cells = {
        "timestamps out of range": pa.array([2**50, 0], pa.timestamp("s")),
        "nested": pa.array([[{"a": [1]}], []], pa.list_(pa.struct([("a", pa.list_(pa.int8()))]))),
        "maps": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int8())),
        "decimals": pa.array([None, 10**30], pa.decimal128(38)),
        "binary": pa.array([b"\xff\xfe", b""]),
        "durations": pa.array([2**62, None], pa.duration("s")),
        "a dictionary of nulls": pa.array([None, None], pa.dictionary(pa.int8(), pa.string())),
        "nothing": pa.nulls(2),
        "a long text": pa.array(["x" * 20_000_000, "y"]),
    }
    found = {f"parquet, {what}": parquet_of({"column": values}) for what, values in cells.items()}
    for metadata in ({"uqprism": "{}"}, {"pandas": "{}"}, {"pandas": "[", "uqprism.members": "{"}):
        found[f"parquet, metadata {metadata}"] = parquet_of({"a": pa.array([1])}, metadata)
    shapes = ("(300000000, 10)", "(3, 300000000)", "(-1, 5)", "(2, -3)", "()", "(0, 5)", "(5, 0)", "(2,)", "(2**70, 1)", "('a',)")
    found |= {f"npz, shape {shape}": declared(shape, data=bytes(64)) for shape in shapes}
    kinds = ("|O", "<c16", "<U5", "<M8[s]", "|V8", "[('a', '<f8')]", ">f8", "<f2", "|b1", "<i1", "nonsense")
    found |= {f"npz, type {kind}": declared("(2, 4)", kind, bytes(256)) for kind in kinds}
    found |= {"npz, a long header": zipped({"mean.npy": npy("{" * 100_000), "variance.npy": b""}), "npz, empty": zipped({})}
    found["npz, encrypted"] = zipped({"mean.npy": npy("{}"), "variance.npy": npy("{}")}, flag=1)
    found["npz, a bomb"] = declared("(1, 40000000)", data=bytes(320_000_000))
    found["npz, names with folders"] = zipped({"../../mean.npy": b"x", "/etc/variance.npy": b"x"})
    digits = "1" * 5_000
    found |= {
        "csv, numbers of 5,000 digits": columns_of(f"mean_{digits}", f"variance_{digits}"),
        "csv, 20,000 columns": columns_of("mean_0", "variance_0", *(f"c{i}" for i in range(20_000))),
        "csv, 4,900 models": columns_of(*(f"mean_{i}" for i in range(4_900)), *(f"variance_{i}" for i in range(4_900))),
        "csv, 9,000 other columns": columns_of("mean_0", "variance_0", *(f"c{i}" for i in range(9_000))),
        "csv, twice the same name": columns_of("mean_0", "variance_0", "a", "a"),
        "csv, NUL": b"mean_0,variance_0\n1\0,1\n",
        "csv, UTF-16": "mean_0,variance_0\n1,1\n".encode("utf-16"),
        "csv, Latin-1": b"mean_0,variance_0,\xe9\n1,1,\xe9\n",
        "csv, a cell of 5 MB": columns_of("mean_0", "variance_0", "a").replace(b"1\r\n", b"x" * 5_000_000 + b"\r\n"),
        "csv, a variance of 1e308": b"mean_0,variance_0,mean_1,variance_1\n1,1e308,-1,1e308\n-1e308,1,1e308,1e-308\n0,1,1,1\n",
        "csv, infinite": b"mean_0,variance_0\ninf,1\n1,inf\nnan,1\n1,nan\n,\n",
        "csv, an open quote": b'mean_0,variance_0\n1,"1\n' + b"1,1\n" * 1_000,
        "csv, ragged": b"mean_0,variance_0\n1,1\n1,1,1\n1\n",
        "csv, line ends only": b"\n\r\n\r" * 1_000,
        "csv, text in a member": b"mean_0,variance_0,mean_1,variance_1\n1,1,2,x\n1,1,3,2\n",
        "csv, names of parts": columns_of(
            "mean_0", "variance_0", "total", "noise", "disagreement", "flagged", "row", "index", "_index"
        ),
    }
    return {what: File(f"{what[:200]}.{what.partition(',')[0]}", content) for what, content in found.items()}


def hostile(rng: random.Random) -> File:
    """A good file with texts in its name, its columns and its cells that some page would format, follow or run."""
    pieces = [
        "![x](http://evil.example/a)",
        "<script>fetch('http://evil.example')</script>",
        "<img src=//evil.example onerror=x>",
    ]
    pieces += [
        "[a](javascript:x)",
        "$\\frac{1}{2}$",
        ":red[a]",
        ":smile:",
        ":material/home:",
        "http://evil.example",
        "**b**",
        "`c`",
    ]
    pieces += ["{0}", "%s", "=cmd()", "\u202e", "\x07", "--on-bad", "a\tb", "'\"", "\\", "&lt;", "\ufeff", "x" * 300]
    texts = ["".join(rng.choices([*pieces, *string.printable[:90]], k=rng.randint(1, 5))) for _ in range(8)]
    draws = np.random.default_rng(rng.getrandbits(32))
    columns: dict[str, list[Any]] = {f"{text}{i}": rng.choices(texts, k=ROWS) for i, text in enumerate(texts)}
    columns |= {f"{texts[0]} id": [f"{rng.choice(texts)}{i}" for i in range(ROWS)]}
    mean = draws.normal(size=(MEMBERS, ROWS))
    columns |= {f"{texts[1]} [{texts[2][:10]}]": list(mean.mean(axis=0))}
    columns |= {f"mean_{i}": list(row) for i, row in enumerate(mean)}
    columns |= {f"variance_{i}": list(np.exp(row)) for i, row in enumerate(draws.normal(size=(MEMBERS, ROWS)))}
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return File(f"{rng.choice(texts)}.csv", text.getvalue().encode())


# What is true of a file ----------------------------------------------------------------------------------------------------


def members(file: File) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances, (members, rows), read without uqprism."""
    if file.name.endswith(".npz"):
        with np.load(io.BytesIO(file.content), allow_pickle=False) as arrays:
            return np.asarray(arrays["mean"], dtype=float), np.asarray(arrays["variance"], dtype=float)
    if file.name.endswith(".parquet"):
        import pyarrow.parquet as pq

        whole = pq.read_table(io.BytesIO(file.content))
        table = whole.select([name for name in whole.column_names if name.startswith(("mean_", "variance_"))]).to_pydict()
    else:
        csv.field_size_limit(1 << 30)
        names, *rows = [row for row in csv.reader(io.StringIO(file.content.decode("utf-8-sig"), newline="")) if row]
        table = dict(zip(names, zip(*rows, strict=True), strict=True))

    def numbers(kind: str) -> np.ndarray:
        found = {
            int(match[1]): values for name, values in table.items() if (match := re.fullmatch(rf"{kind}_(-?\d{{1,9}})", name))
        }
        return np.array([[_number(value) for value in found[i]] for i in sorted(found)])

    return numbers("mean"), numbers("variance")


def _number(value: Any) -> float:
    try:
        return float("nan" if value in {None, ""} else value)
    except (TypeError, ValueError):
        return float("nan")


def truth(file: File) -> tuple[int, list[str]] | None:
    """How many good rows there are, and noise and disagreement as texts; None if the file cannot be read."""
    import uqprism as up
    from uqprism.report.formatting import amounts

    try:
        mean, variance = members(file)
        good_rows = np.all((abs(mean) <= 1e150) & (variance >= 1e-300) & (variance <= 1e300), axis=0)  # not NaN either
        ensemble = up.EnsemblePrediction.gaussian(mean=mean[:, good_rows], variance=variance[:, good_rows], member_axis=0)
        with np.errstate(all="ignore"):
            found = up.decompose(ensemble)
            return int(good_rows.sum()), amounts([float(np.mean(found.bayes)), float(np.mean(found.excess))], "")
    except Exception:
        return None


def is_right(file: File, seen: Seen) -> bool:
    """Whether the page shows what is true of the file; of a file without shares, that it has as many rows."""
    known = truth(file)
    if known is None:
        return False
    shown = re.findall(r"<dd>(.*?)</dd>", seen.markup)
    return f"{known[0]:,} row" in seen.text and all(
        number in text.split() for number, text in zip(known[1], shown, strict=bool(shown))
    )


# The page ------------------------------------------------------------------------------------------------------------------


def uploads(connection: Any) -> None:
    """Receive files and send what the page says of each; runs in a process of its own."""
    import logging

    from streamlit.testing.v1 import AppTest

    import uqprism

    logging.disable()
    sys.argv = ["page.py"]
    page = str(Path(uqprism.__file__).parent / "app" / "page.py")

    def drop(file: File) -> Seen:
        app = AppTest.from_file(page, default_timeout=PATIENCE).run()
        _forget_peak()
        before, start = _memory("VmRSS"), time.process_time()
        app.file_uploader(key="file").set_value((file.name, file.content, "text/plain")).run()
        seconds, memory = time.process_time() - start, _memory("VmHWM") - before
        bodies = [each.proto.body for each in app.get("html")]
        said = [html.unescape(re.sub("<[^>]+>", " ", body)).replace("\xa0", " ") for body in bodies if "<style" not in body]
        formatted = [each.value for kind in ("markdown", "caption", "error", "warning", "info") for each in app.get(kind)]
        raw = " ".join([*formatted, *(f"exception: {each.message}" for each in app.exception)])
        left = len([*Path(tempfile.gettempdir()).glob(f"uqprism-app-{os.getpid()}-*")])
        return Seen(" ".join(said) + raw, " ".join(bodies) + raw, seconds, memory, left)

    drop(
        File("first.csv", b"mean_0,variance_0,mean_1,variance_1,y\n" + b"1,1,2,2,1\n0,1,1,1,0\n" * 9)
    )  # compiles what every file needs
    connection.send("ready")
    while (given := connection.recv()) is not None:
        connection.send(tuple(drop(File(*given))))  # as plain tuples: Streamlit takes the place of the main module


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _memory(kind: str) -> float:
    found = re.search(rf"{kind}:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024.0 * int(found[1]) if found else 0.0


class Page:
    """The page in another process, which is replaced if it dies."""

    def __init__(self) -> None:
        self.process: Any = None

    def see(self, file: File) -> Seen | None:
        """What the page says of a file; None if its process died."""
        if self.process is None:
            self.end, other = get_context("spawn").Pipe()
            self.process = get_context("spawn").Process(target=uploads, args=(other,), daemon=True)
            self.process.start()
            self.end.recv()  # it is ready
        self.end.send(tuple(file))
        while not self.end.poll(1.0):
            if not self.process.is_alive():
                self.process = None
                return None
        try:
            return Seen(*self.end.recv())
        except EOFError:  # the process died instead of answering
            self.process = None
            return None

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.end.send(None)
            self.process.join(30)


def attack(name: str, page: Page, files: list[File], judge: Callable[[File, Seen], bool] = is_right) -> Row:
    """Upload these files, one after the other."""
    counts = dict.fromkeys(Row._fields[1:], 0)
    for file in files:
        seen = page.see(file)
        counts["tries"] += 1
        crashed = seen is None or "exception: " in seen.text or "the terminal that it runs in" in seen.text
        clean = seen is not None and 'role="alert"' in seen.markup
        right = not crashed and not clean and seen is not None and judge(file, seen)
        wrong = (not crashed and not clean and not right) or (seen is not None and seen.left > 0)
        slow, large = seen is not None and seen.seconds > SLOW, seen is None or seen.memory > LARGE
        for field, happened in zip(Row._fields[2:], (clean and not crashed, right, wrong, crashed, slow, large), strict=True):
            counts[field] += happened
        if crashed or wrong or slow or large:
            told = "" if seen is None else f"{seen.seconds:.1f} s, {seen.memory / 1e6:.0f} MB: {seen.text[:400]}"
            print(f"{name}: {file.name!r}: {told}", file=sys.stderr)
            print(json.dumps({"name": file.name, "content": file.content[:200].hex()}), file=sys.stderr)
    return Row(name, **counts)


def is_text(file: File, seen: Seen) -> bool:
    """Whether the page has the right numbers, and no tag, link or formatting that is not ours."""
    foreign = re.search(r"<(?!/?(div|p|b|i|span|h1|h2|ol|li|dl|dt|dd|style)\b)[a-z!/]|<[^>]*(href|src|onerror)=", seen.markup)
    return is_right(file, seen) and foreign is None


def hosts(rng: random.Random, rounds: int) -> Row:
    """Ask a served page for itself by names and from origins that are not its own."""
    import subprocess

    command = [sys.executable, "-m", "uqprism", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            port = int(line.split()[2].rpartition(":")[2])
            answered = [_status(port, *_foreign(rng, port)) for _ in range(rounds)]
            own = _status(port, {"Host": f"localhost:{port}"}, "/")
        finally:
            process.terminate()
            process.wait(30)
    refused = sum(status in {400, 403} for status in answered)
    return Row(
        "app: other hosts and origins", rounds + 1, refused, int(own == 200), rounds - refused, sum(s >= 500 for s in answered)
    )


def _foreign(rng: random.Random, port: int) -> tuple[dict[str, str], str]:
    own = f"localhost:{port}"
    name = "".join(rng.choices(string.ascii_lowercase, k=6))
    others = [f"{name}.example", f"{own}.{name}.example", f"{name}@{own}", f"127.0.0.1.{name}.example:{port}", f"0.0.0.0:{port}"]
    others += [
        f"localhost:{name}",
        f"[::ffff:127.0.0.1]:{port}",
        f"localhost%00.{name}",
        f"localhost,{name}",
        "",
        f"10.0.0.{port % 255}",
    ]
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
    }
    path, headers = rng.choice([("/", {}), ("/_stcore/health", {}), ("/_stcore/stream", upgrade), ("/_stcore/host-config", {})])
    if rng.random() < 0.5:
        return {**headers, "Host": rng.choice(others)}, path
    origin = rng.choice(
        [
            f"http://{rng.choice(others[:4])}",
            "null",
            "http://localhost",
            f"http://localhost:{port + 1}",
            f"https://127.0.0.1:{port}",
        ]
    )
    return {**headers, "Host": own, "Origin": origin}, path


def _status(port: int, headers: dict[str, str], path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def run(seed: int, rounds: int) -> list[Row]:
    """Attack the page in each way so many times; of crafted files, there are as many as there are."""
    rng, page = random.Random(seed), Page()
    try:
        return [
            attack("app: random uploads", page, [noise(rng) for _ in range(rounds)]),
            attack("app: damaged uploads", page, [mutant(rng) for _ in range(rounds)]),
            attack("app: crafted uploads", page, [*crafted().values()]),
            attack("app: hostile names", page, [hostile(rng) for _ in range(rounds)], is_text),
            hosts(rng, rounds),
        ]
    finally:
        page.close()


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else 0, int(sys.argv[2]) if len(sys.argv) > 2 else 20):
        print(row)

"""Disturb runs of `uqprism score` at random moments, and compare what they leave with runs that were left alone.

Runs are killed with SIGKILL and resumed; inputs are truncated, rewritten, replaced, appended to and removed while they are read;
two runs with different options write to one output. An outcome is right if the output holds exactly what an undisturbed run makes
of one version of each input; a clean error if a line and an exit code say which input or output was at fault, and the rest is
right; else silently wrong. Processor time and memory count where they exceed those of the undisturbed run by 5 s and 500 MB.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from benchmarks.attack.disk import has_ended

SLOW, LARGE = 5.0, 500e6
ROWS = 150_000  # of each input: reading takes long enough to be disturbed
FIRST = ["--measures", "usual"]
SECOND = ["--measures", "crps.*", "--keep-members"]
NAMED = {1, 3, 5}  # exit codes that come with the name of what was at fault
FORMATS = ("parquet", "csv", "npz")


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


# Runs ----------------------------------------------------------------------------------------------------------------------


# The peak of this process alone: what the system counts for a child begins with the memory of its parent.
COMMAND = """
import atexit, sys
from uqprism.__main__ import main
peak = open(sys.argv.pop(1), "w")
atexit.register(lambda: peak.write(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))))
sys.argv[0] = "uqprism"
main()
"""


class Ended(NamedTuple):
    """A process that has ended: its exit code, standard error, processor time in seconds and peak memory in bytes."""

    code: int
    errors: str
    seconds: float
    memory: int


class Process:
    """`uqprism score` with these arguments."""

    def __init__(self, place: Path, *words: str) -> None:
        self.about = Path(tempfile.mkdtemp(dir=place, prefix="_about-"))
        command = [sys.executable, "-c", COMMAND, str(self.about / "peak"), "score", "in", *words]
        with (self.about / "errors").open("w") as errors:
            self.process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=errors)

    def end(self) -> Ended:
        """Wait for it."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = code = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        peak = self.about / "peak"
        memory = int(peak.read_text() or 0) if peak.exists() else 0  # a killed process has not told
        return Ended(code, (self.about / "errors").read_text(), seconds, memory * 1024)


def score(place: Path, *words: str) -> Ended:
    """Run the command to its end."""
    return Process(place, *words).end()


def when_writing(place: Path, process: Process, moment: float) -> None:
    """Wait until the run writes its first part, or has ended, and then for some seconds."""
    while not has_ended(process.process.pid) and not any(place.rglob("_uqprism-tmp-*")):
        time.sleep(0.002)
    time.sleep(moment)


# Inputs and results --------------------------------------------------------------------------------------------------------


def table(seed: int, rows: int = ROWS) -> pa.Table:
    """Predictions of three members."""
    rng = np.random.default_rng(seed)
    columns = {"key": np.arange(rows) + seed}
    columns |= {f"mean_{i}": rng.normal(size=rows).round(6) for i in range(3)}
    columns |= {f"variance_{i}": np.exp(rng.normal(size=rows)).round(6) + 1e-6 for i in range(3)}
    return pa.table(columns)


def write(given: pa.Table, path: Path) -> None:
    """Write the table in the format of the suffix."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(given, path)
    elif path.suffix == ".npz":
        arrays = {name: given[name].to_numpy() for name in given.column_names}
        means, variances = ([arrays.pop(f"{kind}_{i}") for i in range(3)] for kind in ("mean", "variance"))
        np.savez(path, mean=np.stack(means), variance=np.stack(variances), **arrays)
    else:
        pq.write_table(given, path, row_group_size=20_000)


def contents(output: Path) -> dict[str, pa.Table]:
    """The tables of all files of an output."""
    paths = [output] if output.is_file() else sorted(path for path in output.rglob("*") if path.is_file())
    return {path.name: pq.read_table(path) for path in paths if not path.name.startswith("_")}


def consistent(output: Path) -> bool:
    """Whether the manifest lists the parts that are there with their rows and nothing is left over."""
    if not output.is_dir():
        return not list(output.parent.glob("_uqprism-*"))
    try:
        about = json.loads((output / "_uqprism.json").read_text())
    except FileNotFoundError:
        return False
    listed = {part["part"]: part["rows"] for part in about["parts"]}
    return listed == {name: len(found) for name, found in contents(output).items()} and {
        path.name for path in output.iterdir()
    } == {*listed, "_uqprism.json"}


class Scene:
    """A place with inputs, and what undisturbed runs make of them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "in").mkdir()
        (place / "other").mkdir()
        for i, suffix in enumerate(FORMATS):
            write(table(i), place / "in" / f"{i}.{suffix}")
            write(table(10 + i), place / "other" / f"{i}.{suffix}")
        self.whole = score(place, "-o", "whole", *FIRST)
        self.first, self.one = contents(place / "whole"), self._result("-o", "whole.parquet", *FIRST)
        self.second = self._result("-o", "second", *SECOND)
        shutil.copytree(place / "in", place / "kept")
        shutil.rmtree(place / "in")
        shutil.copytree(place / "other", place / "in")
        self.changed = self._result("-o", "changed", *FIRST)
        self.reset()

    def _result(self, _: str, name: str, *words: str) -> dict[str, pa.Table]:
        ended = score(self.place, "-o", name, *words)
        assert ended.code == 0, ended.errors  # noqa: S101 (the comparison itself)
        return contents(self.place / name)

    def reset(self) -> None:
        """The inputs as they were, and no output."""
        for name in ("in", "out"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        shutil.copytree(self.place / "kept", self.place / "in")
        (self.place / "out.parquet").unlink(missing_ok=True)


# Attacks: each returns the runs that ended by themselves, and whether all is right --------------------------------------------

Outcome = tuple[list[Ended], bool]


def killed(scene: Scene, rng: random.Random, target: str, wanted: dict[str, pa.Table]) -> Outcome:
    """Kill the run once to three times, then let it end."""
    again = "--resume" if target == "out" else "--overwrite"
    for _ in range(rng.randint(1, 3)):
        process = Process(scene.place, "-o", target, *FIRST, again)
        when_writing(scene.place, process, rng.uniform(0, 0.7))
        os.kill(process.process.pid, signal.SIGKILL)  # `kill` would take what `wait4` returns of a run that has ended
        process.end()
    ended = score(scene.place, "-o", target, *FIRST, again)
    found = contents(scene.place / target)
    renamed = dict(zip(wanted, found.values(), strict=False)) if target != "out" else found
    return [ended], ended.code == 0 and renamed == wanted and consistent(scene.place / target)


def truncate(path: Path, _: Path, rng: random.Random) -> None:
    os.truncate(path, int(path.stat().st_size * rng.uniform(0.1, 0.99)))


def rewrite(path: Path, other: Path, _: random.Random) -> None:
    path.write_bytes(other.read_bytes())


def replace(path: Path, other: Path, _: random.Random) -> None:
    shutil.copy(other, path.with_name("_new"))
    path.with_name("_new").replace(path)


def append(path: Path, _: Path, rng: random.Random) -> None:
    with path.open("ab") as file:
        file.write(b"7,0.5,0.5,0.5,1.0,1.0,1.0\n" * rng.randint(1, 10_000))


def remove(path: Path, _: Path, __: random.Random) -> None:
    path.unlink()


def input_changed(scene: Scene, rng: random.Random, change: Callable[[Path, Path, random.Random], None]) -> Outcome:
    """Change one input at a random moment; then resume."""
    name = f"{(i := rng.randrange(3))}.{FORMATS[i]}"
    process = Process(scene.place, "-o", "out", *FIRST, "--summary", "summary.json")
    when_writing(scene.place, process, rng.uniform(0, 0.7))
    change(scene.place / "in" / name, scene.place / "other" / name, rng)
    ended = process.end()
    part = name if name.endswith(".parquet") else f"{name}.parquet"
    found = contents(scene.place / "out")
    others = all(found.get(each) == self for each, self in scene.first.items() if each != part)
    mine = found.get(part)
    summary = json.loads((scene.place / "summary.json").read_text())
    if ended.code == 0:
        right = mine in (scene.first[part], scene.changed[part]) or mine == scored_now(scene, name)
    else:
        named = [Path(one["path"]).name for one in summary["bad_files"]]
        right = ended.code == 3 and mine is None and named == [name] and name in ended.errors
    right = right and others and summary["exit_code"] == ended.code and consistent(scene.place / "out")
    return [ended], right


def scored_now(scene: Scene, name: str) -> pa.Table | None:
    """What a run makes of this input as it is now."""
    output = scene.place / "now.parquet"
    output.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, "-m", "uqprism", "score", f"in/{name}", "-o", output, "-q", *FIRST], cwd=scene.place, check=False
    )
    return pq.read_table(output) if output.exists() else None


def vanished_and_back(scene: Scene, rng: random.Random) -> Outcome:
    """Inputs go, come in another version and come back between runs with `--resume`."""
    runs, right = [], True
    for _ in range(3):
        present = [name for name in sorted(os.listdir(scene.place / "kept")) if rng.random() < 0.7] or ["0.parquet"]
        wanted = {}
        shutil.rmtree(scene.place / "in")
        (scene.place / "in").mkdir()
        for name in present:
            source, tables = rng.choice([("kept", scene.first), ("other", scene.changed)])
            shutil.copy2(scene.place / source / name, scene.place / "in" / name)
            part = name if name.endswith(".parquet") else f"{name}.parquet"
            wanted[part] = tables[part]
        runs.append(score(scene.place, "-o", "out", *FIRST, "--resume"))
        right = right and runs[-1].code == 0 and contents(scene.place / "out") == wanted and consistent(scene.place / "out")
    return runs, right


def two_writers(scene: Scene, rng: random.Random) -> Outcome:
    """Two runs with different options start at about the same time; one must lose, and the output be that of the other."""
    with ordered(rng, ["-o", "out", *FIRST, "--overwrite"], ["-o", "out", *SECOND, "--overwrite"]) as (first, second):
        one = Process(scene.place, *first)
        time.sleep(rng.uniform(0, 2.0))
        other = Process(scene.place, *second)
        runs = [one.end(), other.end()]
    found = contents(scene.place / "out")
    right = found in (scene.first, scene.second) and {ended.code for ended in runs} <= {0, 5} and consistent(scene.place / "out")
    return runs, right and any(ended.code == 0 for ended in runs)


@contextmanager
def ordered(rng: random.Random, *items: list[str]) -> Iterator[list[list[str]]]:
    """The items in a random order."""
    yield rng.sample(items, len(items))


ATTACKS: dict[str, Callable[[Scene, random.Random], Outcome]] = {
    "score: killed, folder": lambda scene, rng: killed(scene, rng, "out", scene.first),
    "score: killed, one file": lambda scene, rng: killed(scene, rng, "out.parquet", scene.one),
    "score: two writers": two_writers,
    "score: inputs gone and back": vanished_and_back,
    **{
        f"score: input {what}": lambda scene, rng, change=change: input_changed(scene, rng, change)
        for what, change in {
            "truncated": truncate,
            "rewritten": rewrite,
            "replaced": replace,
            "appended to": append,
            "removed": remove,
        }.items()
    },
}


def run(seed: int, rounds: int) -> list[Row]:
    """Every attack so many times, from this seed."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        for name, attack in ATTACKS.items():
            row = Row(name)
            for i in range(rounds):
                scene.reset()
                row = counted(row, scene, *attack(scene, random.Random(f"{seed} {name} {i}")))
            rows.append(row)
    return rows


def counted(row: Row, scene: Scene, runs: list[Ended], right: bool) -> Row:
    """The row with one more try."""
    clean = right and any(ended.code in NAMED for ended in runs)
    return Row(
        row.attack,
        row.tries + 1,
        row.clean_errors + clean,
        row.right_answers + (right and not clean),
        row.silently_wrong + (not right),
        row.tracebacks + any("Traceback" in ended.errors for ended in runs),
        row.over_5_s + any(ended.seconds > scene.whole.seconds + SLOW for ended in runs),
        row.over_500_mb + any(ended.memory > scene.whole.memory + LARGE for ended in runs),
    )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    print("seed and rounds:", *(given or (0, 3)))
    for found in run(*(given or (0, 3))):
        print(*found, sep=" | ")

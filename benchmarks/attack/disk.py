"""Run every command where the system refuses: full disks, closed streams, impossible places, Ctrl-C.

A try is right if the output is what an undisturbed run writes, and a clean error if there is one message, the old output intact
and no other file is left. Time and memory count beyond those of the undisturbed run.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SLOW, LARGE = 5.0, 500e6
CODES = {0, 1, 2, 130, -signal.SIGINT}  # the last while Python itself starts or stops
OLD = b"what was there before\n"
SMALL = "--measures usual --resamples 20"
COMMANDS = {
    "score": "score in.csv -o out.parquet --overwrite -q",
    "report": "report in.csv --target y --resamples 20 -o out.html -q",
    "selective": f"selective in.csv --target y {SMALL} -o out.json",
    "ood": f"ood in.csv far.csv {SMALL} --plot out.png -o other.csv",
    "select": f"select in.csv --target y {SMALL} -o out.csv",
    "correlation": "correlation in.csv --measures usual -o out.txt",
    "active": "active in.csv --target y --initial 20 --batch-size 5 --rounds 1 --seeds 1 -a random -o out.csv -q",
    "recommend": "recommend ood_detection -o out.json",
    "catalogue": "catalogue",
    "cite": "cite",
    "demo deliveries": "demo deliveries",
}
PLACES = ["missing/{}", "in.csv/{}", "x" * 300 + "{}", "folder-{}", "/proc/{}"]


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


@dataclass
class Attack:
    """How one try is disturbed."""

    arguments: list[str]
    limit: int | None = None
    redirect: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    interrupt: float | None = None


@dataclass
class Ended:
    """How a process ended."""

    code: int
    errors: str
    seconds: float
    memory: float


def started(folder: Path, attack: Attack) -> Ended:
    """Run the command in the folder, disturbed in this way."""

    def prepare() -> None:
        if attack.limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (attack.limit, resource.RLIM_INFINITY))

    # The shell redirects streams; `exec` leaves the command as the process that is interrupted.
    shell = ["bash", "-c", f'set -o pipefail; {"" if "|" in attack.redirect else "exec "}"$@" {attack.redirect}', "attack"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **attack.environment}
    with tempfile.TemporaryFile() as errors:
        begun = time.perf_counter()
        command = [*shell, sys.executable, "-m", "uqprism", *attack.arguments]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            preexec_fn=prepare,  # noqa: PLW1509 (this process has one thread)
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        if attack.interrupt is not None:
            while not has_ended(process.pid) and not _begun(process.pid):
                time.sleep(0.002)
            time.sleep(attack.interrupt)
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)  # `send_signal` would take what `wait4` returns
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
        return Ended(process.returncode, text, time.perf_counter() - begun, usage.ru_maxrss * 1024.0)


def has_ended(pid: int) -> bool:
    """Whether this child has ended; `wait4` is still to tell how."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _begun(pid: int) -> bool:
    """Whether this process handles SIGTERM, which every command does from its beginning."""
    caught = next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


class Scene:
    """A folder with inputs, and for each command what it writes undisturbed."""

    def __init__(self, folder: Path) -> None:
        self.folder, rng = folder, np.random.default_rng(0)
        for name, shift in (("in", 0.0), ("far", 3.0)):
            mean, scale = shift + rng.normal(size=(300, 5)), np.exp(rng.normal(size=(300, 5)))
            head = ",".join([*(f"mean_{i}" for i in range(5)), *(f"scale_{i}" for i in range(5)), "y"])
            np.savetxt(folder / f"{name}.csv", np.c_[mean, scale, mean[:, :1]], delimiter=",", header=head, comments="")
        self.inputs = self.contents()
        self.whole: dict[str, tuple[Ended, dict[str, int]]] = {}

    def contents(self) -> dict[str, bytes]:
        """All files by their names."""
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def reset(self, *, old: bool = False) -> dict[str, bytes]:
        """Remove what was written; with `old`, put a file at each output."""
        for path in self.folder.iterdir():
            if path.name not in self.inputs:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if old:
            for ending in ("parquet", "html", "json", "csv", "txt", "png"):
                (self.folder / f"out.{ending}").write_bytes(OLD)
        return self.contents()

    def undisturbed(self, text: str) -> tuple[Ended, dict[str, int]]:
        """How the command ends if left alone, and the sizes of what it writes."""
        if text not in self.whole:
            self.reset()
            started(self.folder, Attack(text.split()))  # compiles kernels
            ended = started(self.folder, Attack(text.split()))
            if ended.code:
                raise RuntimeError(f"{text} fails undisturbed: {ended.errors}")
            sizes = {name: len(data) for name, data in self.contents().items() if name not in self.inputs}
            self.whole[text] = ended, sizes
        return self.whole[text]

    def judge(self, row: Row, text: str, attack: Attack) -> Row:
        """The row with one more try."""
        usual, sizes = self.undisturbed(text)
        before = self.reset(old=attack.interrupt is not None or attack.limit is not None)
        if (place := next((word for word in attack.arguments if word.startswith("folder-")), None)) is not None:
            (self.folder / place).mkdir()
        ended, after = started(self.folder, attack), self.contents()
        traced = "Traceback" in ended.errors or "Exception ignored" in ended.errors or ended.code not in CODES
        kept = all(after.get(name) == data for name, data in before.items())
        made = {name: len(after[name]) for name in after if after[name] != before.get(name)}
        # Pages and Parquet files hold times and paths, so their sizes may differ by a little.
        whole = set(made) == set(sizes) and all(abs(made[name] - size) <= 0.02 * size + 20 for name, size in sizes.items())
        left = any("uqprism-tmp" in name for name in after)
        elsewhere = attack.arguments != text.split()  # the output has another name
        right = ended.code == 0 and not left and (whole or elsewhere)
        # Files that were finished before the error stay.
        clean = ended.code != 0 and not left and (kept or all(name in sizes for name in made)) and not traced
        if not (right or clean or traced):
            print(f"WRONG: {attack} {ended} {made} {sizes}", file=sys.stderr)
        if traced:
            print(f"TRACEBACK: {attack} {ended.code} {ended.errors[-600:]}", file=sys.stderr)
        return Row(
            row.attack,
            row.tries + 1,
            row.clean_errors + (clean and not right),
            row.right_answers + (right and not traced),
            row.silently_wrong + (not (right or clean or traced)),
            row.tracebacks + traced,
            row.over_5_s + (ended.seconds > usual.seconds + SLOW),
            row.over_500_mb + (ended.memory > usual.memory + LARGE),
        )


def full_disk(rng: random.Random, text: str, _: Ended, sizes: dict[str, int]) -> Attack:
    """Files cannot grow beyond a random size below that of the output."""
    return Attack(text.split(), limit=rng.randrange(max([*sizes.values(), 1])))


def bad_stream(rng: random.Random, text: str, *_: Any) -> Attack:
    """Standard output or error is full, closed, or read by nobody."""
    return Attack(text.split(), redirect=rng.choice([">/dev/full", ">&-", "| true", "| head -1", "2>/dev/full", ">&- 2>&- <&-"]))


def bad_place(rng: random.Random, text: str, *_: Any) -> Attack:
    """The output cannot be made where it should be."""
    place = rng.choice(PLACES)
    return Attack([place.format(word) if word.startswith("out.") else word for word in text.split()])


def bad_input(rng: random.Random, text: str, *_: Any) -> Attack:
    """The input is missing, too long a name, below a file, or a device."""
    name = rng.choice(["missing.csv", "x" * 300 + ".csv", "far.csv/in.csv", "/dev/null", "missing/*.csv", "caf\udce9.csv"])
    return Attack([name if word == "in.csv" else word for word in text.split()])


def no_home(rng: random.Random, text: str, *_: Any) -> Attack:
    """Neither the home nor the folders for caches and temporary files can be written."""
    nowhere = rng.choice(["/proc/nowhere", "/dev/null", ""])
    names = ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR", "TMPDIR", "XDG_CONFIG_HOME")
    return Attack(text.split(), environment=dict.fromkeys(names, nowhere))


def interrupted(rng: random.Random, text: str, usual: Ended, _: Any) -> Attack:
    """Ctrl-C at a random moment after the command has begun: before that, Python starts and imports, and answers itself."""
    return Attack(text.split(), interrupt=rng.uniform(0.0, 0.5) * usual.seconds)


ATTACKS: dict[str, tuple[Callable[..., Attack], str]] = {
    "full disk": (full_disk, " -o "),
    "full, closed or unread streams": (bad_stream, ""),
    "impossible places for the output": (bad_place, " out."),
    "impossible inputs": (bad_input, "in.csv"),
    "no home, no cache": (no_home, ""),
    "Ctrl-C": (interrupted, ""),
}


def run(seed: int, rounds: int) -> list[Row]:
    """Each attack on commands in turn, so many times."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        for name, (make, needs) in ATTACKS.items():
            row, texts = Row(f"system: {name}"), [text for text in COMMANDS.values() if needs in text]
            for i in range(rounds):
                rng, text = random.Random(f"{seed} {name} {i}"), texts[i % len(texts)]
                row = scene.judge(row, text, make(rng, text, *scene.undisturbed(text)))
            rows.append(row)
    return rows

"""The watch: false alarms, delay and naming beside alibi-detect, speed, memory, and runs that are killed: RESULTS-watch.md.

    python benchmarks/watch.py FOLDER --alibi PYTHON

FOLDER keeps the trained ensembles and the windows; PYTHON is that of an environment with alibi-detect. Without `--only`, all
parts are measured; each replaces its section.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import results
from watching.worlds import CHANGED, MEMBERS, REFERENCE, SHIFTS, TRAIN, USUAL, trained

import uqprism as up

NOISE, DISAGREEMENT = "crps.bayes.members", "crps.excess.members.members"
PACKAGES = ("uqprism", "numpy", "pyarrow")
LEVEL = 0.05
STREAMS, WINDOWS, ROWS = 1_000, 200, 50  # without a change
SMALL, LARGE = 40, 1_000  # rows of their references
WORLDS, REPEATS, BEFORE, AFTER, WINDOW = 4, 10, 10, 40, 200
TUNED = 10  # streams of each world that the threshold of alibi-detect is tuned on
FILE_ROWS, FEW, MANY = 1_000_000, 2, 10  # files
KILLS, KILLED_ROWS = 20, 200_000


# False alarms --------------------------------------------------------------------------------------------------------


def rows_of(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Scored rows whose noise and disagreement depend on each other."""
    noise = np.exp(0.5 * rng.normal(size=count))
    return {NOISE: noise, DISAGREEMENT: 0.1 * noise * rng.gamma(3.0, size=count)}


def share_of_alarms(level: float, reference: int, streams: int) -> float:
    """The share of streams without a change in which there is an alarm."""
    found = 0
    for seed in range(streams):
        rng = np.random.default_rng([seed, reference])
        watch = up.Watch(rows_of(rng, reference), level=level, window=ROWS, seed=seed)
        found += bool(watch.update(rows_of(rng, WINDOWS * ROWS)))
    return found / streams


def false_alarms(streams: int) -> list[str]:
    """The section on streams without a change."""
    rows = []
    for level, reference in ((LEVEL, SMALL), (LEVEL, LARGE), (0.5, SMALL)):
        share = share_of_alarms(level, reference, streams)
        rows.append(f"| {level:.0%} | {reference:,} | {share:.1%} |")
        print(rows[-1], flush=True)
    return [
        "## False alarms",
        "",
        f"{streams:,} streams of {WINDOWS} windows of {ROWS} rows, all from one distribution, and the share with any alarm.",
        "",
        "| level | rows of the reference | streams with an alarm |",
        "|---|---|---|",
        *rows,
        "",
        "The level is a bound for streams of any length, so that streams of 200 windows stay below it.",
    ]


# Delay and naming ----------------------------------------------------------------------------------------------------


def measured(ensemble: up.EnsemblePrediction) -> dict[str, np.ndarray]:
    """Noise and disagreement of each row."""
    table = up.evaluate(ensemble, [NOISE, DISAGREEMENT])
    return {name: np.asarray(table[name]) for name in (NOISE, DISAGREEMENT)}


def chosen(world: int, repeat: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows a stream has before and after the change, without repetition."""
    rng = np.random.default_rng([world, repeat])
    return rng.permutation(USUAL)[: BEFORE * WINDOW], rng.permutation(CHANGED)[: AFTER * WINDOW]


def ask_alibi(world: int, ensembles: dict[str, up.EnsemblePrediction], folder: Path) -> None:
    """Write the windows that alibi-detect is to test."""
    means = {name: np.asarray(each.members.mean).T for name, each in ensembles.items()}
    rng = np.random.default_rng([world, 99])
    usual = np.stack([_windows(rng) for _ in range(TUNED)])
    asked = {"usual": usual}
    for name in means.keys() - {"usual", "reference"}:
        asked[name] = np.stack([chosen(world, repeat)[1].reshape(AFTER, WINDOW) for repeat in range(REPEATS)])
    for name, windows in asked.items():
        path = folder / f"asked-{world}-{name.replace(' ', '_')}.npz"
        if not path.exists():
            np.savez(path, reference=means["reference"], rows=means[name], windows=windows)


def _windows(rng: np.random.Generator) -> np.ndarray:
    """200 windows of usual rows, each of which comes twice."""
    half = [rng.permutation(USUAL) for _ in range(WINDOWS * WINDOW // USUAL)]
    return np.concatenate(half).reshape(WINDOWS, WINDOW)


def answers(name: str, folder: Path, world: int) -> np.ndarray:
    """The p-values of alibi-detect, (streams, windows)."""
    return np.load(folder / f"answered-{world}-{name.replace(' ', '_')}.npz")["p_values"]


def ours(world: int, name: str, tables: dict[str, dict[str, np.ndarray]]) -> list[up.Watch]:
    """The watches of the streams with one change in one world."""
    found = []
    for repeat in range(REPEATS):
        watch = up.Watch(tables["reference"], level=LEVEL, window=WINDOW, seed=repeat)
        for source, rows in zip(("usual", name), chosen(world, repeat), strict=True):
            watch.update({column: values[rows] for column, values in tables[source].items()})
        found.append(watch)
    return found


def shifts(folder: Path, alibi: str) -> list[str]:
    """The section on delay and naming."""
    place = folder / "alibi"
    place.mkdir(exist_ok=True)
    worlds = {world: trained(world, folder) for world in range(WORLDS)}
    for world, ensembles in worlds.items():
        ask_alibi(world, ensembles, place)
    subprocess.run([alibi, str(Path(__file__).parent / "watching" / "alibi.py"), str(place)], check=True)  # noqa: S603
    lowest = np.concatenate([answers("usual", place, world).min(axis=1) for world in worlds])
    threshold = float(np.quantile(lowest, LEVEL))
    tables = {world: {name: measured(each) for name, each in ensembles.items()} for world, ensembles in worlds.items()}
    rows, early = [], 0
    for name, shift in SHIFTS.items():
        for strong, word in enumerate(("weak", "strong")):
            watches = [watch for world in worlds for watch in ours(world, f"{name} {strong}", tables[world])]
            p_values = np.concatenate([answers(f"{name} {strong}", place, world) for world in worlds])
            early += sum(bool(watch.alarms) and watch.alarms[0].window <= BEFORE for watch in watches)
            rows.append(_row(name, word, shift.kind, watches, _delays(p_values <= threshold)))
            print(rows[-1], flush=True)
    about = [f"- **{name}**: {shift.words}; rightly named `{shift.kind}`." for name, shift in SHIFTS.items()]
    return [
        f"## Delay and naming, {TRAIN:,} rows of training",
        "",
        f"{WORLDS} worlds with six inputs, two functions in turn; {MEMBERS} networks (`DeepEnsembleRegressor`) trained on "
        f"{TRAIN:,} rows each; a reference of {REFERENCE:,} rows; {REPEATS} streams for each world and change, {BEFORE} windows "
        f"of {WINDOW} rows before and {AFTER} after it. The delay is the number of windows from the change to the first alarm, 1 "
        f"for the first changed window; streams without an alarm count as more than {AFTER}.",
        "",
        *about,
        "",
        "alibi-detect's RegressorUncertaintyDrift (Kolmogorov and Smirnov's test of the spread of the ensemble against the "
        f"reference, window by window) alarms at p-values up to {threshold:.2g}, with which {LEVEL:.0%} of {len(lowest)} "
        f"streams of {WINDOWS} windows without a change have one. The watch has level {LEVEL:.0%} for streams of any length; "
        f"{early} of {len(SHIFTS) * 2 * WORLDS * REPEATS} streams had an alarm before the change. Middle and upper quartile of "
        "the delay:",
        "",
        "| change | | watch | no alarm | alibi-detect | no alarm | first alarm named rightly | all alarms |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        "The rule for names was chosen with the first two worlds in view.",
    ]


def _delays(alarms: np.ndarray) -> np.ndarray:
    """The first window with an alarm, from 1; infinite without one."""
    return np.where(alarms.any(axis=1), alarms.argmax(axis=1) + 1.0, np.inf)


def _row(name: str, word: str, kind: str, watches: list[up.Watch], theirs: np.ndarray) -> str:
    late = [[alarm for alarm in watch.alarms if alarm.window > BEFORE] for watch in watches]
    own = np.array([alarms[0].window - BEFORE if alarms else np.inf for alarms in late])
    first = Counter(alarms[0].kind == kind for alarms in late if alarms)
    every = Counter(alarm.kind == kind for alarms in late for alarm in alarms)
    told = [f"{each[True]} of {each.total()}" if each.total() else "" for each in (first, every)]
    return f"| {name} | {word} | {_middle(own)} | {_middle(theirs)} | {told[0]} | {told[1]} |"


def _middle(delays: np.ndarray) -> str:
    def shown(share: float) -> str:
        value = float(np.quantile(delays, share, method="higher"))
        return f"{value:.0f}" if math.isfinite(value) else f"> {AFTER}"

    return f"{shown(0.5)}, {shown(0.75)} | {np.isinf(delays).mean():.0%}"


# Speed, memory, kills ------------------------------------------------------------------------------------------------


def write_files(folder: Path, count: int, rows: int = FILE_ROWS) -> Path:
    """A reference, and so many files of scored rows with four further columns."""
    place = folder / f"files-{count}-{rows}"
    if not place.exists():
        place.mkdir()
        rng = np.random.default_rng(count)
        pq.write_table(pa.table(rows_of(rng, 10_000)), folder / "reference.parquet")
        for i in range(count):
            further = {f"input_{j}": rng.normal(size=rows) for j in range(4)}
            pq.write_table(pa.table({**further, **rows_of(rng, rows)}), place / f"{i:02d}.parquet")
    return place


def command(folder: Path, place: Path, *options: str) -> list[str]:
    """The command on these files."""
    return [sys.executable, "-m", "uqprism", "watch", str(folder / "reference.parquet"), str(place), "--quiet", *options]


def cost(folder: Path, place: Path) -> tuple[float, float, float]:
    """Seconds by the clock, of the processor, and the largest memory in MB of one run with a state and a log."""
    state, log = folder / "state", folder / "log.jsonl"
    _clear(state, log)
    began = time.perf_counter()
    process = subprocess.Popen(command(folder, place, "--state", str(state), "--json", str(log)))  # noqa: S603
    _, code, used = os.wait4(process.pid, 0)
    assert code == 0, code  # noqa: S101
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0


def _clear(state: Path, log: Path) -> None:
    for path in (*state.glob("*"), log):
        path.unlink(missing_ok=True)
    if state.exists():
        state.rmdir()


def speed(folder: Path) -> list[str]:
    """The section on speed and memory."""
    few, many = (write_files(folder, count) for count in (FEW, MANY))
    runs = [(cost(folder, few), cost(folder, many)) for _ in range(3)]
    more = (MANY - FEW) * FILE_ROWS
    clock, used = (min(long[i] - short[i] for short, long in runs) for i in (0, 1))
    memory = [max(run[i][2] for run in runs) for i in (0, 1)]
    start = min(short[1] - FEW * FILE_ROWS * used / more for short, _ in runs)
    return [
        "## Speed and memory",
        "",
        f"`uqprism watch` on scored Parquet (six columns, of which it reads two) with a state and a log, windows of 1,000 rows; "
        f"{MANY} files of {FILE_ROWS:,} rows less {FEW} files, the best of three runs.",
        "",
        "| | |",
        "|---|---|",
        f"| rows a second, by the clock | {more / clock:,.0f} |",
        f"| rows a second of processor time | {more / used:,.0f} |",
        f"| processor time to start and end | {start:.1f} s |",
        f"| memory, {FEW * FILE_ROWS:,} rows | {memory[0]:,.0f} MB |",
        f"| memory, {MANY * FILE_ROWS:,} rows | {memory[1]:,.0f} MB |",
        "",
        f"There were {os.getloadavg()[0]:.0f} waiting processes on {os.cpu_count()} cores at the end. Reading and testing share "
        "the cores: on a quiet machine the clock shows more rows than the processor time.",
    ]


def kills(folder: Path) -> list[str]:
    """The section on runs that are killed at random moments."""
    place, state, log = write_files(folder, FEW, KILLED_ROWS), folder / "state", folder / "log.jsonl"
    _clear(state, log)
    rng = np.random.default_rng(int(time.time()))
    began = time.perf_counter()
    line = command(folder, place, "--state", str(state), "--json", str(log), "--window", "100")
    assert subprocess.run(line, check=False).returncode == 0  # noqa: S101, S603
    whole, seconds = log.read_text(), time.perf_counter() - began
    _clear(state, log)
    killed, done = 0, 0
    while killed < KILLS:
        process = subprocess.Popen(line)  # noqa: S603
        try:
            process.wait(rng.uniform(0.2, 0.9) * seconds)
            _clear(state, log)  # it came to its end: from the beginning
            done += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            print(f"killed {killed} times, {log.stat().st_size if log.exists() else 0:,} bytes of log", flush=True)
    assert subprocess.run(line, check=False).returncode == 0  # noqa: S101, S603
    windows = [json.loads(text)["window"] for text in log.read_text().splitlines()]
    assert log.read_text() == whole, "the log differs"  # noqa: S101
    return [
        "## Killed and continued",
        "",
        f"{len(windows):,} windows of 100 rows in {FEW} files of {KILLED_ROWS:,} rows. The run was killed (SIGKILL) at {KILLS} random moments and "
        f"started again, from the beginning where it had come to its end ({done} times). In the end the log has windows 1 to "
        f"{windows[-1]:,} once each, and equals that of a run that was not killed, byte by byte.",
    ]


def main() -> None:
    """Measure, and write the sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alibi", default="", help="Python of an environment with alibi-detect")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--only", choices=["alarms", "shifts", "speed", "kills"])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Any] = {
        "alarms": lambda: false_alarms(given.streams),
        "shifts": lambda: shifts(given.folder, given.alibi),
        "speed": lambda: speed(given.folder),
        "kills": lambda: kills(given.folder),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            results.write(results.WATCH, part(), results.processor(), PACKAGES)


if __name__ == "__main__":
    main()

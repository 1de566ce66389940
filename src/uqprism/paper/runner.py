"""Run an experiment into a folder, or read the finished result there.

result.json   settings, seeds, data, versions, hardware, time, claims, tables, notes; written last, so it means finished
arrays.npz    what the pictures show
NAME.png/svg  the pictures
tables/       the tables as Parquet
report.md     the report
_work/        the artefacts of all jobs, from which an interrupted run continues; may be deleted when the run is finished
_work/data/   the sizes and checksums of the files of each data set that was used
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError, FileError
from uqprism.paper.engine import carry_out
from uqprism.paper.experiment import Experiment, Result
from uqprism.paper.jobs import RunPlan
from uqprism.paper.results import RECORD, REPORT, WORK, load, read_record, withdraw, write
from uqprism.paper.store import Store, as_data, distinct_versions, hardware
from uqprism.support.optional import require
from uqprism.support.storage import make_folder

GPU = "an H200"  # where the presets of the paper's size were timed
LONGEST = 30  # characters of a setting in a message


@dataclass(frozen=True)
class Outcome:
    """The outcome of `reproduce`.

    Attributes:
        result: the numbers.
        record: the rest of result.json: preset, hardware, time, versions (of the machine that gathered the result; `made with`
            has those of the artefacts).
        folder: the folder of the run.
        reused: True if a finished result was read and nothing was run.
    """

    result: Result
    record: Mapping[str, Any]
    folder: Path
    reused: bool

    def __str__(self) -> str:
        held = sum(claim.holds for claim in self.result.claims)
        how = f"finished on {self.record['finished']} (read, not run again)" if self.reused else f"{self.record['seconds']:.0f} s"
        lines = [f"{self.record['experiment']}: {held} of {len(self.result.claims)} of the paper's statements hold; {how}"]
        lines += [f"  {'holds' if claim.holds else 'FALSE':<7}{claim.name}: {claim.measured}" for claim in self.result.claims]
        if self.record["preset"] == "quick":
            again = f"uqprism reproduce {self.record['experiment']} --preset paper"
            lines.append(f"A quick run shows how it works; for verdicts: {again}")
        return "\n".join([*lines, f"report: {self.folder / REPORT}"])


@dataclass(frozen=True)
class Reproduction:
    """A run of an experiment: its settings, and the folder of its result."""

    experiment: Experiment[Any]
    preset: str
    config: Any
    folder: Path
    store: Store
    processes: int

    @classmethod
    def of(
        cls,
        experiment: Experiment[Any],
        preset: str,
        *,
        out: str | os.PathLike[str],
        seed: int | None = None,
        jobs: int = 1,
        data: str | os.PathLike[str] | None = None,
    ) -> Reproduction:
        """Check the arguments; writes nothing."""
        if jobs < 1:
            raise ArgumentError(f"jobs must be at least 1, got {jobs}")
        folder = Path(out)
        others = tuple(folder.parent / name / WORK for name in experiment.reads)
        # Experiments that are read from lie beside this one, as `reproduce` puts them.
        store = Store(folder / WORK, None if data is None else Path(data), others)
        return cls(experiment, preset, experiment.config(preset, seed), folder, store, jobs)

    def plan(self) -> RunPlan:
        """The jobs of the run; all are done if the folder has a finished result."""
        title = f"{self.experiment.name}, preset {self.preset}"
        plan = RunPlan.of(title, self.experiment.jobs(self.config), self.store, self.processes)
        machine = f" on a GPU such as {GPU}" if self.preset in self.experiment.wants_gpu else ""
        try:
            finished = self.finished() is not None
        except (ArgumentError, FileError) as error:
            notes = (f"It would be refused: {error}", *self._absent(plan))
            return replace(plan, machine=machine, notes=notes, refused=True)
        if finished:  # its artefacts may have been deleted
            return replace(plan, taken={job.name: plan.taken.get(job.name, 0.0) for job in plan.jobs})
        return replace(plan, machine=machine, notes=self._absent(plan))

    def _absent(self, plan: RunPlan) -> tuple[str, ...]:
        """A line for each missing data file that a job still needs."""
        if not plan.left:
            return ()
        from uqprism.paper.data.inventory import presence

        needed = (presence(name, self.store.data) for name in self.experiment.needs(self.config))
        return tuple(f"Missing: {reason}" for reason in dict.fromkeys(reason for each in needed for reason in each.absent))

    def carry_out(self, shown: bool) -> Outcome:
        """Do the remaining jobs, gather the result, draw and write it."""
        for package, extra in (("matplotlib", "report"), ("pyarrow", "cli")):
            require(package, extra=extra)  # before hours of work
        make_folder(self.folder / WORK)
        started = time.perf_counter()
        plan = self.plan()
        carry_out(self.experiment.work, plan, self.store, shown)
        result = self.experiment.gather(self.config, self.store)
        self.store.sweep()  # no process is writing any more
        write(self.experiment, self.preset, result, self.folder, self._account(plan, started))
        return Outcome(*load(self.folder), self.folder, reused=False)  # read back, so that every later call returns the same

    def finished(self) -> Outcome | None:
        """The result in the folder, or None; a result of other settings or other data files raises."""
        if not (self.folder / RECORD).exists():
            self._same_files(self.store.folder, *self.store.others)  # finished jobs of an unfinished run count too
            return None
        there, wanted = read_record(self.folder), as_data(self.config)
        way_out = "choose another folder with --out, or replace it with --overwrite"
        if there["experiment"] != self.experiment.name:  # first: two experiments may have the same settings
            name = self.experiment.name
            raise ArgumentError(f"{self.folder} holds the experiment {there['experiment']!r}, not {name!r}; {way_out}")
        if there["config"] != wanted:
            raise ArgumentError(f"{self.folder} holds a result of other settings ({_differs(there, wanted)}); {way_out}")
        self._same_files(self.store.folder, recorded=there.get("files", {}))  # _work may have been deleted
        return Outcome(*load(self.folder), self.folder, reused=True)

    def _same_files(self, *stores: Path, recorded: Mapping[str, Any] | None = None) -> None:
        """Raise if data files differ from those that these stores, or the recorded result, were made from."""
        from uqprism.paper.inputs import refuse_others

        for store in stores:
            refuse_others({**(recorded or {}), **self._noted(store)}, self.store.data, store.parent)

    def _noted(self, store: Path) -> dict[str, Any]:
        """The recorded files of the data sets that the experiment needs, in this store."""
        from uqprism.paper.inputs import notes

        return dict(notes(store, self.experiment.needs(self.config)))

    def discard(self) -> None:
        """Remove the result and its artefacts; raises if the new run would be refused."""
        # Its own store is removed below; those of other runs will be read.
        self._same_files(*self.store.others)
        withdraw(self.folder)
        shutil.rmtree(self.folder / WORK, ignore_errors=True)

    def _account(self, plan: RunPlan, started: float) -> dict[str, Any]:
        """Durations, jobs that were done before, the machine, and the versions that the artefacts were made with."""
        records = [self.store.record(job.artefact) for job in plan.jobs]
        shared = [self.store.record(job.shared) for job in plan.jobs if job.shared is not None and job.shared in self.store]
        made_with = distinct_versions([*self.store.records(), *records, *shared])
        devices, stores = self.store.devices(), (*self.store.others, self.store.folder)
        return {
            "seconds": round(time.perf_counter() - started, 1),
            "jobs": {
                "count": len(plan.jobs),
                "found done": len(plan.taken),
                "processes": self.processes,
                "seconds of work": round(sum(record["seconds"] for record in records), 1),
            },
            "files": {name: files for store in stores for name, files in self._noted(store).items()},
            "devices": devices,
            "hardware": {**hardware(), "accelerator": ", ".join(sorted(set(devices) - {"none"})) or "none"},
            **({"made with": made_with} if made_with else {}),
        }


def _differs(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first setting that differs, and how many more differ."""
    config = there["config"]
    first, *more = [name for name in {**wanted, **config} if config.get(name) != wanted.get(name)]
    old, new = (textwrap.shorten(str(each.get(first)), LONGEST, placeholder=" ...") for each in (config, wanted))
    values = f"{first} is {old} there and {new} here" if old != new else f"{first} differs"
    return values + (f", and {len(more)} more differ" if len(more) > 1 else ", and one more differs" if more else "")


def produce(
    experiment: Experiment[Any],
    preset: str,
    *,
    out: str | os.PathLike[str],
    seed: int | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    jobs: int = 1,
    data: str | os.PathLike[str] | None = None,
) -> Outcome:
    """Run a preset into a folder, or read the finished result there."""
    run = Reproduction.of(experiment, preset, out=out, seed=seed, jobs=jobs, data=data)
    if overwrite:
        run.discard()
    elif (there := run.finished()) is not None:
        return there
    return run.carry_out(sys.stderr.isatty() if progress is None else progress)

"""Files under watch: what is new is read once, whatever happens between."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

import uqprism as up
from tests.conftest import run_python
from tests.tasks.watch.streams import DISAGREEMENT, NOISE, ensemble, outcomes, scored
from uqprism.errors import ArgumentError, BusyError, UqprismWarning
from uqprism.files import watch
from uqprism.files.claim import claimed
from uqprism.files.watching import logs, place, reading, rows, run

FILES, ROWS = 3, 700


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reference and three files of scored rows, of which the last has changed; they are read in small batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rows, "AT_ONCE", 150)
    rng = np.random.default_rng(0)
    write("reference.parquet", scored(rng, 1_000))
    Path("new").mkdir()
    for i in range(FILES):
        write(f"new/{i}.parquet", scored(rng, ROWS, disagreement=1.0 if i < 2 else 1.4), row_group_size=300)
    return tmp_path


def write(path: str, columns: dict[str, np.ndarray], **options: int) -> None:
    table = pa.table(columns)
    pa.csv.write_csv(table, path) if path.endswith(".csv") else pq.write_table(table, path, **options)


def lines(path: str = "log.jsonl") -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_files_are_one_stream_and_say_what_memory_says(stream: Path) -> None:
    report = watch("reference.parquet", "new", window=100, log="log.jsonl")
    table = pa.concat_tables([pq.read_table(f"new/{i}.parquet") for i in range(FILES)])
    memory = up.Watch(pq.read_table("reference.parquet"), window=100)
    memory.update(table)
    assert report.watch.evidence == memory.evidence
    assert [(each.test, each.window) for each in report.alarms] == [(each.test, each.window) for each in memory.alarms]
    assert report.alarms[0].began.source == "new/2.parquet"
    assert (report.rows, report.windows) == (FILES * ROWS, 21)
    assert [line["window"] for line in lines()] == list(range(1, 22))
    assert lines()[7]["from"] == "new/1.parquet, row 0"


def test_the_next_run_reads_what_is_new(stream: Path) -> None:
    """Files that come, and files that grow, in windows that go on from run to run: as in one run over all."""
    whole = watch("reference.parquet", "new", window=160, log="whole.jsonl").watch
    late = pq.read_table("new/2.parquet")
    os.remove("new/2.parquet")
    watch("reference.parquet", "new", window=160, state="state", log="log.jsonl")
    pq.write_table(late.slice(0, 310), "new/2.parquet", row_group_size=100)
    watch("reference.parquet", "new", window=160, state="state", log="log.jsonl")
    pq.write_table(late, "new/2.parquet", row_group_size=100)
    report = watch("reference.parquet", "new", window=160, state="state", log="log.jsonl")
    again = watch("reference.parquet", "new", window=160, state="state", log="log.jsonl")
    assert (report.rows, again.rows, again.new) == (390, 0, ())
    assert report.watch.evidence == whole.evidence
    assert report.alarms == whole.alarms == again.alarms
    assert lines() == lines("whole.jsonl")


def test_a_csv_file_may_grow(stream: Path) -> None:
    table = pq.read_table("new/0.parquet")
    for count in (333, 700):
        pa.csv.write_csv(table.slice(0, count), "growing.csv")
        report = watch("reference.parquet", "growing.csv", window=100, state="state", log="log.jsonl")
    assert [line["window"] for line in lines()] == [1, 2, 3, 4, 5, 6, 7]
    assert report.watch.evidence == watch("reference.parquet", "new/0.parquet", window=100).watch.evidence


def test_a_run_that_is_killed_at_any_step_is_continued_without_a_lost_or_doubled_window(
    stream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "OFTEN", 0.0)  # a state after each batch
    whole = watch("reference.parquet", "new", window=100, log="whole.jsonl").watch
    save, commit, left = up.Watch.save, logs.Log.commit, 0

    class KilledError(BaseException):
        pass

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KilledError

    def saving(*given: object, **beside: object) -> None:
        step()
        save(*given, **beside)
        step()

    def committing(log: logs.Log) -> tuple[str, int]:
        step()
        if left == 1 and log.waiting:  # half a line arrives
            with log.path.open("ab") as file:
                file.write(log.waiting[0].encode()[:20])
            step()
        return commit(log)

    monkeypatch.setattr(up.Watch, "save", saving)
    monkeypatch.setattr(logs.Log, "commit", committing)
    kills = 0
    for steps in [1, 2, 3, 4, 5, 7, 8, 11, 2, 3, 6, 9, 13, 4, 2, 1000]:
        left = steps
        try:
            report = watch("reference.parquet", "new", window=100, state="state", log="log.jsonl")
            break
        except KilledError:
            kills += 1
    assert kills >= 10
    assert report.watch.evidence == whole.evidence
    assert report.alarms == whole.alarms
    assert lines() == lines("whole.jsonl")


KILLED = """
import os, sys
from uqprism import Watch
from uqprism.files.watching import reading, run
save, done = Watch.save, 0
def saving(*given, **beside):
    global done
    done += 1
    if done == 3:
        os.kill(os.getpid(), 9)
    save(*given, **beside)
Watch.save, reading.OFTEN = saving, 0.0
try:
    pid = os.fork()
    if pid == 0:
        run.watch("reference.parquet", "new", window=100, state="state", log="log.jsonl")
    print(os.WTERMSIG(os.waitpid(pid, 0)[1]))
finally:
    sys.stdout.flush()
    os._exit(0)
"""


def test_a_process_that_is_really_killed_leaves_a_state_to_go_on_from(stream: Path) -> None:
    code = f"import os; os.chdir({str(stream)!r})\n{KILLED}"
    assert run_python(code).strip() == "9"
    report = watch("reference.parquet", "new", window=100, state="state", log="log.jsonl")
    assert [line["window"] for line in lines()] == list(range(1, 22))
    assert report.watch.evidence == watch("reference.parquet", "new", window=100).watch.evidence


def test_members_are_scored_on_the_way_and_bad_rows_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    reference, batch = ensemble(rng, 300), ensemble(rng, 100)
    known, new = reference.to_arrow(), batch.to_pandas()
    known = known.append_column("y", pa.array(outcomes(rng, reference)))
    new["y"] = np.where(np.arange(100) < 40, outcomes(rng, batch), np.nan)
    new.loc[[3, 50], "mean_2"] = np.nan
    pq.write_table(known, tmp_path / "reference.parquet")
    new.to_parquet(tmp_path / "new.parquet")
    report = watch(tmp_path / "reference.parquet", tmp_path / "new.parquet", window=100, target="y")
    good = np.delete(np.arange(100), [3, 50])
    assert report.watch.history["bad"].tolist() == [2]
    assert report.watch.history["labelled"].tolist() == [39]
    assert report.watch.history["bayes"][0] == pytest.approx(up.decompose(batch[good]).bayes.mean(), rel=1e-12)
    assert report.watch.correction.rows == 300


def test_late_outcomes_are_read_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    paths = [tmp_path / name for name in ("reference.parquet", "new.parquet", "late.parquet")]
    for path, stretch in zip(paths, (1.0, 1.0, 2.0), strict=True):
        ens = ensemble(rng, 400)
        y = outcomes(rng, ens, stretch=stretch) * (np.nan if path.stem == "new" else 1.0)
        pq.write_table(ens.to_arrow().append_column("y", pa.array(y)), path)
    options = {"target": "y", "window": 100, "state": tmp_path / "state", "outcomes": paths[2]}
    report = watch(*paths[:2], **options)
    assert [alarm.test for alarm in report.new] == ["penalty", "calibration"]
    assert report.windows == 5
    assert watch(*paths[:2], **options).windows == 0


def test_a_bad_file_is_named_and_read_when_it_is_good(stream: Path) -> None:
    good = Path("new/1.parquet").read_bytes()
    Path("new/1.parquet").write_bytes(good[:500])
    report = watch("reference.parquet", "new", window=100, state="state")
    assert list(report.bad_files) == ["new/1.parquet"]
    assert report.rows == 2 * ROWS
    Path("new/1.parquet").write_bytes(good)
    report = watch("reference.parquet", "new", window=100, state="state")
    assert (report.rows, dict(report.bad_files)) == (ROWS, {})


def test_fewer_rows_than_were_read_are_refused(stream: Path) -> None:
    watch("reference.parquet", "new/0.parquet", state="state")
    pq.write_table(pq.read_table("new/1.parquet").slice(0, 100), "new/0.parquet")
    report = watch("reference.parquet", "new/0.parquet", state="state")
    assert report.bad_files["new/0.parquet"] == "has 100 rows, but 700 were read from it; give other rows another name"


def test_a_state_is_of_one_watch_at_a_time(stream: Path) -> None:
    watch("reference.parquet", "new/0.parquet", state="state")
    with pytest.raises(ArgumentError, match=r"begun with another level: 0\.05, and not 0\.1"):
        watch("reference.parquet", "new", state="state", level=0.1)
    with pytest.raises(ArgumentError, match="begun with another reference; name another folder"):
        watch("new/2.parquet", "new", state="state")
    with claimed(Path("state"), folder=True), pytest.raises(BusyError, match="is writing to it"):
        watch("reference.parquet", "new", state="state")


def test_a_log_that_was_cut_is_told(stream: Path) -> None:
    watch("reference.parquet", "new/0.parquet", window=100, state="state", log="log.jsonl")
    Path("log.jsonl").write_text("")
    with pytest.warns(UqprismWarning, match="lines of earlier runs are missing"):
        watch("reference.parquet", "new/1.parquet", window=100, state="state", log="log.jsonl")
    assert [line["window"] for line in lines()] == list(range(8, 15))


def test_prometheus_reads_evidence_thresholds_and_alarms(stream: Path) -> None:
    region = {"region": np.where(np.arange(1_000) % 2, 'a"b', "c")}
    write("grouped.parquet", {**scored(np.random.default_rng(5), 1_000), **region})
    report = watch("grouped.parquet", "grouped.parquet", window=100, groups="region", prometheus="watch.prom")
    text = Path("watch.prom").read_text()
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(found["uqprism_watch_rows_total"]) == 1_000
    assert float(found[r'uqprism_watch_alarm{test="excess",group="a\"b"}']) == 0.0
    evidence = report.watch.evidence["bayes[c]"]
    assert 10 ** float(found['uqprism_watch_evidence_log10{test="bayes",group="c"}']) == pytest.approx(evidence)
    assert text.count("# TYPE") == text.count("# HELP") == 8


def test_a_watch_in_memory_takes_files_too(stream: Path) -> None:
    memory = up.Watch("reference.parquet", window=100)
    found = memory.update("new/2.parquet")
    assert found.alarms[0].rows[0].source == "new/2.parquet"
    table = {
        name: column.to_numpy()
        for name, column in zip((NOISE, DISAGREEMENT), pq.read_table("new/2.parquet").columns, strict=True)
    }
    other = up.Watch(pq.read_table("reference.parquet"), window=100)
    assert_array_equal(list(other.update(table).evidence.values()), list(found.evidence.values()))


def test_later_rows_of_parquet_are_read_from_their_row_group_on(stream: Path) -> None:
    span = place.after(run.find_files("new/0.parquet")[0], up.ensemble.columns.Columns(), 650)
    assert (span.row_groups, span.first_row) == ((2,), 600)

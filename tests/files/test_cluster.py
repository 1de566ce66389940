"""A cluster writes the same files as one machine, also when a worker is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from tests.files.tables import FEW, assert_scored, table
from uqprism.errors import ArgumentError, BadFilesError, ClusterError, InvalidValueError
from uqprism.files import score, write
from uqprism.support.storage import TEMPORARY

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in range(4):
        (tmp_path / "in" / f"fold={seed}").mkdir(parents=True)
        pq.write_table(table(50, seed=seed), tmp_path / "in" / f"fold={seed}" / "part.parquet", row_group_size=10)
    return tmp_path / "in"


def contents(folder: Path) -> dict[str, pa.Table]:
    return {path.relative_to(folder).as_posix(): pq.read_table(path) for path in sorted(folder.rglob("*.parquet"))}


def test_a_cluster_makes_what_one_machine_makes(
    cluster: LocalCluster, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where paths are relative."""
    score(folder, tmp_path / "one", measures=FEW)
    monkeypatch.chdir(tmp_path)
    report = score("in", "many", measures=FEW, dask=cluster.scheduler_address)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "many")) == 4
    assert (tmp_path / "many" / "_uqprism.json").read_text() == (tmp_path / "one" / "_uqprism.json").read_text()
    assert (report.rows, len(report.parts), report.parts[0]) == (200, 4, Path("many/fold=0/part.parquet"))


def test_one_large_file_is_shared_out(cluster: LocalCluster, tmp_path: Path) -> None:
    pq.write_table(table(100), tmp_path / "in.parquet", row_group_size=10)
    report = score(tmp_path / "in.parquet", tmp_path / "out", measures=FEW, part_rows=30, dask=cluster.scheduler_address)
    assert len(report.parts) == 4
    assert_scored(pyarrow.dataset.dataset(tmp_path / "out").to_table(), table(100), FEW)


def test_bad_rows_end_the_run_with_their_place(cluster: LocalCluster, folder: Path, tmp_path: Path) -> None:
    frame = table(50).to_pydict()
    frame["mean_1"][33] = np.nan
    pq.write_table(pa.table(frame), folder / "fold=2" / "part.parquet", row_group_size=10)
    with pytest.raises(InvalidValueError, match=r"fold=2/part\.parquet: row 33: mean_1 must be finite, got nan"):
        score(folder, tmp_path / "out", measures=FEW, part_rows=10, on_bad_file="fail", dask=cluster.scheduler_address)
    assert not list((tmp_path / "out").rglob(f"{TEMPORARY}*"))
    report = score(
        folder, tmp_path / "out", measures=FEW, part_rows=10, on_bad="null", overwrite=True, dask=cluster.scheduler_address
    )
    assert (report.bad_rows, len(report.parts)) == (1, 20)


def test_a_cluster_that_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"nowhere\.json: no such scheduler file"):
        score(folder, tmp_path / "out", dask=tmp_path / "nowhere.json")
    with pytest.raises(ArgumentError, match="must be an address with its port"):
        score(folder, tmp_path / "out", dask="localhost")


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_an_address_of_something_else_fails_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: bytes | None) -> None:
    """It does not answer, answers with something else, or is a port that nobody listens on; the library waits for a second."""
    monkeypatch.setattr("uqprism.files.cluster.PATIENCE", 0.5)
    pq.write_table(table(5), tmp_path / "in.parquet")
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        if reply is None:
            server.close()
        with ThreadPoolExecutor(1) as stranger:
            accepted = None if reply is None else stranger.submit(server.accept)
            if accepted is not None:
                accepted.add_done_callback(lambda future: future.result()[0].sendall(reply + bytes(100)))
            with pytest.raises(ClusterError, match="no Dask scheduler answers"):
                score(tmp_path / "in.parquet", tmp_path / "out", dask=place)
            if accepted is not None:
                accepted.result()[0].close()
    (tmp_path / "file.json").write_text("{}")
    with pytest.raises(ClusterError, match="no scheduler file"):
        score(tmp_path / "in.parquet", tmp_path / "out", dask=tmp_path / "file.json")
    assert not (tmp_path / "out").exists()


def test_a_bad_file_costs_its_own_parts_alone(cluster: LocalCluster, folder: Path, tmp_path: Path) -> None:
    """Also those parts of it that another task has written."""
    frame = table(50).to_pydict()
    frame["mean_1"][33] = np.nan
    pq.write_table(pa.table(frame), folder / "fold=2" / "part.parquet", row_group_size=10)
    (folder / "fold=0" / "part.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadFilesError, match=r"2 of 4 input files are bad(?s:.)*fold=0/part(?s:.)*fold=2/part.*row 33") as caught:
        score(folder, tmp_path / "out", measures=FEW, part_rows=10, dask=cluster.scheduler_address)
    assert caught.value.report.rows == 100
    assert {path.split("/")[0] for path in contents(tmp_path / "out")} == {"fold=1", "fold=3"}
    manifest = json.loads((tmp_path / "out" / "_uqprism.json").read_text())
    assert [tmp_path / "out" / part["part"] for part in manifest["parts"]] == list(caught.value.report.parts)


def fail(*_: object) -> None:
    raise RuntimeError("a worker is ill")


def test_an_error_on_a_worker_names_the_part(
    cluster: LocalCluster, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uqprism.files.cluster.attempt", fail)
    with pytest.raises(ClusterError, match=r"part\.parquet: could not be written on the cluster: RuntimeError: a worker is ill"):
        score(folder, tmp_path / "out", dask=cluster.scheduler_address)


def delay_parts() -> None:
    """Delay the end of every part on this worker, so that it can be killed during one."""
    finish = write.ParquetOutput.finish

    def late(sink: write.ParquetOutput, record: dict[str, object]) -> None:
        time.sleep(0.3)
        finish(sink, record)

    write.ParquetOutput.finish = late


def kill_one(client: Client, output: Path, killed: list[str]) -> None:
    """Kill a worker process once parts are being written."""
    pids, deadline = client.run(os.getpid), time.monotonic() + 30
    while not killed and time.monotonic() < deadline:
        busy = [worker for worker, tasks in client.processing().items() if tasks]
        if busy and list(output.glob(f"{TEMPORARY}*")) and list(output.glob("in-*")):
            os.kill(pids[busy[0]], signal.SIGKILL)
            killed.append(busy[0])
        time.sleep(0.01)


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    given, killed = table(4000), []
    pq.write_table(given, tmp_path / "in.parquet", row_group_size=500)
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.run(delay_parts)
        killer = threading.Thread(target=kill_one, args=(client, tmp_path / "many", killed))
        killer.start()
        report = score(tmp_path / "in.parquet", tmp_path / "many", part_rows=500, dask=client)
        killer.join()
        assert killed[0] not in client.scheduler_info()["workers"]
    assert report.rows == 4000
    parts = [f"in-{i:05d}.parquet" for i in range(8)]
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == ["_uqprism.json", *parts]
    score(tmp_path / "in.parquet", tmp_path / "one", part_rows=500)
    assert contents(tmp_path / "many") == contents(tmp_path / "one")

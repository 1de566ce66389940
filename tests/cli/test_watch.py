"""`uqprism watch` as a nightly job sees it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import run
from tests.tasks.watch.streams import scored


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, change in (("reference", 1.0), ("usual", 1.0), ("noisy", 1.4)):
        pq.write_table(pa.table(scored(rng, 1_500, noise=change)), f"{name}.parquet")
    return tmp_path


def test_exit_codes_and_files_tell_an_alarm(folder: Path) -> None:
    options = ["--window", 500, "--state", "state", "--json", "log.jsonl", "--prometheus", "watch.prom", "-o", "watch.html"]
    quiet = run("watch", "reference.parquet", "usual.parquet", *options)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert quiet.stdout.endswith("no alarm\n")
    alarm = run("watch", "reference.parquet", "usual.parquet", "noisy.parquet", *options)
    assert alarm.returncode == 6
    assert "ALARM: The world got noisier, since window 4 (noisy.parquet, row 0)." in alarm.stdout
    assert [json.loads(line)["alarms"] != [] for line in Path("log.jsonl").read_text().splitlines()][3:4] == [True]
    assert 'uqprism_watch_alarm{test="bayes",group=""} 1.0' in Path("watch.prom").read_text()
    assert "The world got noisier." in Path("watch.html").read_text()
    again = run("watch", "reference.parquet", "usual.parquet", "noisy.parquet", *options)
    assert (again.returncode, "alarm of before: The world got noisier" in again.stdout) == (6, True)


def test_bad_files_have_their_exit_code_until_there_is_an_alarm(folder: Path) -> None:
    Path("broken.parquet").write_bytes(b"no")
    result = run("watch", "reference.parquet", "broken.parquet", "usual.parquet")
    assert result.returncode == 3
    assert "broken.parquet: cannot be read" in result.stderr
    assert run("watch", "reference.parquet", "broken.parquet", "noisy.parquet").returncode == 6


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["gone.parquet", "usual.parquet"], 1, "gone.parquet: no such file"),
    (["reference.parquet", "usual.parquet", "--rule", "nll"], 2, "did you mean 'log'"),
    (["reference.parquet", "usual.parquet", "--group", "region"], 1, "unknown column 'region'"),
    (["reference.parquet", "usual.parquet", "--level", "5"], 1, "level must be between 0 and 1"),
    (["reference.parquet", "usual.parquet", "-o", "watch.pdf"], 2, "--output must end in .html"),
])  # fmt: skip
def test_what_is_wrong_is_one_line(folder: Path, arguments: list[str], code: int, message: str) -> None:
    result = run("watch", *arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1

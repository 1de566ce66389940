"""What the system refuses: every command says so in one line, exits with a code, and leaves old output and no other file."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import run
from tests.cli.test_reproduce import instant  # noqa: F401 (a fixture)
from tests.tasks.problems import ensemble
from uqprism.cli import demo_trained

OLD = "what was there before"
ACTIVE = "active in.csv --target y --inputs mean_0,mean_1 --initial 20 --batch-size 5 --rounds 1 --seeds 1 --acquisition random"
AUDIT = (
    "audit in.csv --target y --inputs mean_0,mean_1 --model forest --parts 2 --repeats 1 --resamples 5 --test-share 0.4 --quiet"
)
# Each command that writes, with OUT for the file that it writes.
WRITING = {
    "demo": "demo trained -o OUT.html",
    "score csv": "score in.csv -o OUT.csv",
    "score npz": "score in.csv -o OUT.npz",
    "score parquet": "score in.csv -o OUT.parquet --overwrite",
    "flag csv": "flag in.csv --overwrite -o OUT.csv",
    "flag parquet": "flag in.csv --overwrite -o OUT.parquet",
    "recalibrate": "recalibrate in.csv far.csv --target y --overwrite -o OUT.csv",
    "intervals": "intervals in.csv far.csv --target y --overwrite -o OUT.parquet",
    "report": "report in.csv --target y -o OUT.html",
    "selective": "selective in.csv --target y --measures usual --resamples 10 -o OUT.json",
    "selective plot": "selective in.csv --target y --measures usual --resamples 10 --plot OUT.png",
    "ood": "ood in.csv far.csv --measures usual --resamples 10 -o OUT.csv",
    "ood plot": "ood in.csv far.csv --measures usual --resamples 10 --plot OUT.pdf",
    "select": "select in.csv --target y --measures usual --resamples 20 -o OUT.txt",
    "correlation": "correlation in.csv --measures usual -o OUT.csv",
    "correlation plot": "correlation in.csv --measures usual --plot OUT.svg",
    "active": f"{ACTIVE} -o OUT.csv",
    "audit": f"{AUDIT} -o OUT.csv",
    "audit plot": f"{AUDIT} --plot OUT.png",
    "audit save": f"{AUDIT} --save OUT.npz",
    "recommend": "recommend ood_detection -o OUT.json",
}
# Each command that writes into a folder.
FILLING = {
    "score": "score in.csv -o OUT",
    "active": f"{ACTIVE} --folder OUT",
    "audit": f"{AUDIT} --folder OUT",
    "reproduce": "reproduce parameterization -q --out OUT",
}
READING = {
    name: text.replace("in.csv", "IN").replace("OUT", "out")
    for name, text in (WRITING | FILLING).items()
    if "in.csv" in text and "plot" not in name
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None) -> Path:
    """A folder with two files of predictions, in which the commands run."""
    for name, shift in (("in", 0.0), ("far", 3.0)):
        ens, target = ensemble(60, shift=shift)
        members = {
            f"{kind}_{i}": row for kind in ("mean", "scale") for i, row in enumerate(np.asarray(getattr(ens.members, kind)))
        }
        columns = {**members, "y": target}
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    sizes = demo_trained.Sizes(n_training=40, n_test=30, n_ood=20, n_members=2, epochs=1)
    monkeypatch.setattr(demo_trained, "Sizes", lambda: sizes)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond this size, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


NOT_UTF_8 = "caf\udce9"  # as Python reads the name; no parameter of a test, since no worker could report it


def refused(arguments: str, *, output: str | None = None, code: int = 1, **names: str) -> str:
    """The one line with which a command is refused; it must leave all files as they were."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = run(*(names.get(word, word.replace("OUT", output or "out")) for word in arguments.split()))
    assert result.returncode == code, result.stderr
    *progress, line = result.stderr.splitlines()
    assert line.startswith("uqprism: "), result.stderr
    assert all(each.startswith("uqprism: ") and each.endswith("...") for each in progress), result.stderr
    after = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert {path: text for path, text in after.items() if path in before} == before
    assert not [path for path in after if "uqprism-tmp" in path.name]
    return line


@pytest.mark.parametrize("arguments", WRITING.values(), ids=list(WRITING))
def test_a_full_disk_leaves_the_old_output(arguments: str) -> None:
    """Full from the first byte, full after some, and full when the file is forced to the disk."""
    output = Path(next(word for word in arguments.split() if "OUT" in word).replace("OUT", "out"))
    text = f"{arguments} --overwrite" if arguments.startswith("score") and "--over" not in arguments else arguments
    output.write_text(OLD)
    for size in (0, 100):
        with room_for(size):
            assert refused(text).endswith("File too large")
    if "demo" not in text:  # with all measures, which takes some seconds
        assert run(*text.replace("OUT", "out").split()).returncode == 0
        assert output.read_bytes() != OLD.encode()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("missing/out", "(folder that does not exist|No such file or directory)"),
        ("far.csv/out", "(folder that does not exist|Not a directory|File exists|it is a file)"),
        ("x" * 300, "File name too long"),
        ("/proc/out", "(No such file or directory|Permission denied|Operation not permitted|Read-only file system)"),
    ],
    ids=["missing folder", "file for a folder", "long name", "special folder"],
)
@pytest.mark.parametrize("arguments", WRITING.values(), ids=list(WRITING))
def test_a_place_where_no_file_can_be_made(arguments: str, place: str, reason: str) -> None:
    if place.startswith("missing") and arguments.split(maxsplit=1)[0] in {"score", "demo", "flag"}:
        place = "/proc/missing/out"  # they make missing folders
    assert re.search(reason, refused(arguments, output=place))


@pytest.mark.parametrize("arguments", [text for name, text in WRITING.items() if "score" not in name])  # which takes a folder
def test_a_folder_where_the_file_should_be(arguments: str) -> None:
    name = next(word for word in arguments.split() if "OUT" in word).replace("OUT", "out")
    Path(name).mkdir()
    assert "folder" in refused(arguments)


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("arguments", WRITING.values(), ids=list(WRITING))
def test_an_error_when_the_file_gets_its_name(arguments: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    assert refused(arguments).endswith(os.strerror(number))


@pytest.mark.parametrize("arguments", FILLING.values(), ids=list(FILLING))
@pytest.mark.parametrize("place", ["far.csv/out", "x" * 300, "/proc/out"])
@pytest.mark.usefixtures("instant")
def test_a_folder_that_cannot_be_made_or_filled(arguments: str, place: str) -> None:
    refused(arguments, output=place)
    if place == "/proc/out":
        with room_for(0):
            assert refused(arguments, output="new").endswith("File too large")


@pytest.mark.parametrize("arguments", READING.values(), ids=list(READING))
@pytest.mark.parametrize(
    "name",
    ["missing.csv", "missing/in.csv", "far.csv/in.csv", f"{'x' * 300}.csv", "folder.csv", "empty.csv", "not utf-8.csv"],
)
def test_an_input_that_cannot_be_read(arguments: str, name: str) -> None:
    Path("folder.csv").mkdir()
    Path("empty.csv").touch()
    Path(NOT_UTF_8).with_suffix(".csv").write_text("a,b\n1,2\n")
    refused(arguments, IN=name.replace("not utf-8", NOT_UTF_8))


@pytest.mark.parametrize("name", ["missing.csv", "missing/in.csv", "far.csv/in.csv", f"{'x' * 300}.csv", "folder.csv"])
def test_the_app_refuses_a_file_that_is_not_there(name: str) -> None:
    Path("folder.csv").mkdir()
    refused(f"app --no-browser {name}")


@pytest.mark.parametrize(
    ("streams", "code", "message"),
    [
        (">/dev/full", 1, "uqprism: standard output: No space left on device\n"),
        (">&-", 1, "uqprism: standard output: Bad file descriptor\n"),
        ("| true", 1, ""),
        ("2>/dev/full | cat", 0, ""),
        ("<&- 2>&- | cat", 0, ""),
        (">&- 2>&- <&-", 1, ""),
    ],
    ids=["full", "closed", "unread", "errors full", "errors closed", "all closed"],
)
def test_streams_that_are_full_closed_or_unread(streams: str, code: int, message: str) -> None:
    """What cannot be printed is an error, unless nobody reads it."""
    shell = ["bash", "-c", f'set -o pipefail; "$@" {streams}', "run", sys.executable, "-m", "uqprism", "catalogue"]
    result = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (code, message)
    assert len(result.stdout.splitlines()) == (0 if code else 145)


def test_ctrl_c_is_a_line_and_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uqprism.support.citation.citation", interrupt)
    assert "interrupted" in refused("cite", code=130)


@pytest.mark.parametrize("name", ["not utf-8", "caf\u00e9", "\u202e\u2066\x1b[31m", "a b'c\"d"])
@pytest.mark.parametrize("command", ["selective", "report", "score npz"])
def test_outputs_may_have_any_name(command: str, name: str) -> None:
    """Also one that is not UTF-8, which pages and messages show with other characters."""
    words = WRITING[command].replace("--target y ", "--target y --resamples 0 " if command == "report" else "--target y ").split()
    name = name.replace("not utf-8", NOT_UTF_8)
    result = run(*(word.replace("OUT", name) for word in words))
    assert result.returncode == 0, result.stderr
    assert [path for path in Path().iterdir() if path.name.startswith(name) and path.stat().st_size]


def test_messages_hold_no_control_characters() -> None:
    line = refused("score \x1b[31min.csv -o out.csv")
    assert "\x1b" not in line
    assert "\\x1b[31min.csv" in line

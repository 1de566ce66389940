"""Compiled kernels on disk: what is stale, damaged, or cannot be written there is compiled again, without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_python

pytest.importorskip("numba")
SOURCE = """
from uqprism.backends.numba.base import kernel

@kernel
def plus_one(x):
    return x + 1
"""
CODE = """
import sys; sys.path.insert(0, sys.argv[1])
from tiny import plus_one
assert plus_one(1) == 2
assert plus_one(1.5) == 2.5
print(sum(plus_one.stats.cache_hits.values()))
"""


@pytest.fixture
def hits(tmp_path: Path) -> Callable[..., int]:
    """A function that runs a kernel for two types in a new process, and tells for how many it was there already."""
    (tmp_path / "tiny.py").write_text(SOURCE)
    return lambda **environment: int(run_python(CODE, tmp_path, **{"NUMBA_CACHE_DIR": str(tmp_path / "cache")} | environment))


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache").rglob("*.nbc"))


def test_damaged_code_is_compiled_again(tmp_path: Path, hits: Callable[..., int]) -> None:
    assert hits() == 0
    first, second = kept(tmp_path)
    first.write_bytes(first.read_bytes()[:1000])
    second.write_bytes(second.read_bytes()[:-100] + b"\1" * 100)
    assert (hits(), hits()) == (0, 2)


@pytest.mark.parametrize("damaged", [b"", b"\0" * 10, bytes(range(256)) * 10])
def test_files_of_anything_else_are_misses(tmp_path: Path, damaged: bytes) -> None:
    from uqprism.backends.numba.cache import CodeFiles

    files = CodeFiles(tmp_path, "tiny")
    assert files.load("key") is None
    files.save("key", {"some": "code"})
    assert files.load("key") == {"some": "code"}
    (path,) = tmp_path.iterdir()
    path.write_bytes(damaged)
    assert files.load("key") is None


def test_code_of_other_sources_is_never_opened(tmp_path: Path, hits: Callable[..., int]) -> None:
    hits()
    for path in kept(tmp_path):
        digest = path.name.split("-")[-2]
        path.rename(path.with_name(path.name.replace(digest, "0" * 16)))
    assert hits() == 0
    assert not [path for path in kept(tmp_path) if "0" * 16 in path.name]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, hits: Callable[..., int]) -> None:
    (tmp_path / "cache").write_text("a file")
    assert hits(HOME="/proc/nowhere", XDG_CACHE_HOME="/proc/nowhere") == 0


def test_processes_that_start_at_once_compile_everything_once(tmp_path: Path, hits: Callable[..., int]) -> None:
    (tmp_path / "tiny.py").write_text(SOURCE)
    command = [sys.executable, "-c", CODE, tmp_path]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    running = [subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    assert sum(int(process.communicate()[0]) for process in running) == 2  # of four codes, two were waited for and found
    assert hits() == 2

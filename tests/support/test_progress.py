"""Announcements are shown once, on terminals alone, and only of what takes a while."""

from __future__ import annotations

import io
import sys
import time

import pytest

from uqprism.support.progress import Announcement


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "after", "shown"), [(Terminal(), 0.01, 1), (io.StringIO(), 0.01, 0), (Terminal(), 600.0, 0)])
def test_a_line_is_shown_once_on_a_terminal(
    stream: io.StringIO, after: float, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    announcement = Announcement("compiling", after)
    for _ in range(3):
        with announcement():
            time.sleep(0.05)
    assert stream.getvalue() == "uqprism: compiling\n" * shown


def test_steps_that_are_short_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    announcement = Announcement("compiling", 0.5)
    for _ in range(100):
        with announcement():
            time.sleep(0.02)
        if stream.getvalue():
            return
    pytest.fail("nothing was said in two seconds")

"""Files on the page."""

from __future__ import annotations

from tests.app.files import TABLE
from uqprism.app.inputs import Upload


def test_a_file_cannot_leave_its_folder_and_nothing_stays_on_disk() -> None:
    with Upload("../../mine.csv", TABLE.csv()).on_disk() as path:
        assert path.read_bytes() == TABLE.csv()
        assert path.name == "mine.csv"
        assert path.parent.name.startswith("uqprism-app-")
    assert not path.parent.exists()

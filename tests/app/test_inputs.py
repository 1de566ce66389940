"""Files on the page."""

from __future__ import annotations

from tests.app.files import TABLE
from uqprism.app.inputs import Upload


def test_nothing_stays_on_disk() -> None:
    with TABLE.upload().on_disk() as path:
        assert path.read_bytes() == TABLE.csv()
        assert path.name == "mine.csv"
    assert not path.parent.exists()


def test_the_name_of_a_file_cannot_lead_out_of_its_folder() -> None:
    with Upload("../../mine.csv", b"x").on_disk() as path:
        assert path.name == "mine.csv"
        assert path.parent.name.startswith("uqprism-app-")

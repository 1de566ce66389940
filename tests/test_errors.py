"""Errors keep what they say on their way from a worker."""

import copy

from uqprism.errors import BadFileError, FileError, InvalidValueError


def test_a_bad_file_is_named_with_its_fault_and_both_survive_copying():
    error = copy.copy(BadFileError("in/a.parquet", "is empty"))
    assert (error.path, error.reason, str(error)) == ("in/a.parquet", "is empty", "in/a.parquet: is empty")
    assert isinstance(error, FileError)
    assert isinstance(error, InvalidValueError)

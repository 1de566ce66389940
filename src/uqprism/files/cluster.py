"""Parts on a Dask cluster: one task each, tried again when a worker is lost, written by the workers where all can see them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from uqprism.errors import ArgumentError, ClusterError, UqprismError
from uqprism.files.options import Options
from uqprism.files.parts import Made, Tick, make
from uqprism.files.paths import Part
from uqprism.support.optional import require

RETRIES = 3  # of a task that raised, as when a file system hiccups; lost workers have their own count in Dask


def make_all(parts: Sequence[Part], options: Options, dask: Any, *, run: str, tick: Tick) -> list[Made]:
    """Make these parts on the workers of a cluster and wait for all of them.

    A task can be repeated at will, for it writes its part whole or not at all. The first part that cannot be made ends the run.
    """
    distributed = require("distributed", extra="scale")
    made = []
    with connected(distributed, dask) as client:
        futures = [
            client.submit(attempt, _absolute(part), options, run, key=f"uqprism-{run}-{i}", retries=RETRIES)
            for i, part in enumerate(parts)
        ]
        places = {future.key: part for future, part in zip(futures, parts, strict=True)}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                part = places[future.key]
                result = _result(future, part)
                made.append(Made(part, *result))
                tick(result[0], sum(span.path.stat().st_size for span in part.spans))
        finally:
            client.cancel(futures)
    return made


def _result(future: Any, part: Part) -> tuple[int, int]:
    try:
        result = future.result()
    except Exception as error:  # whatever a worker may raise, or Dask when it gives up
        reason = (str(error).splitlines() or [""])[0]
        raise ClusterError(f"{part.target}: could not be made on the cluster: {type(error).__name__}: {reason}") from error
    if isinstance(result, UqprismError):
        raise result
    return result


def attempt(part: Part, options: Options, run: str) -> tuple[int, int] | UqprismError:
    """Make one part on a worker: its rows and bad rows, or the error that trying again would not cure."""
    try:
        made = make(part, options, run=run, threads=1)
    except UqprismError as error:
        return error
    return made.rows, made.bad_rows


def _absolute(part: Part) -> Part:
    """The same with absolute paths: workers have working directories of their own."""
    spans = tuple(replace(span, path=span.path.absolute()) for span in part.spans)
    return Part(part.target.absolute(), spans)


@contextmanager
def connected(distributed: Any, dask: Any) -> Iterator[Any]:
    """A client of this scheduler, closed at the end unless it was given."""
    if isinstance(dask, distributed.Client):
        yield dask
        return
    place = os.fspath(dask)
    if place.endswith(".json") and not os.path.exists(place):  # Dask would wait for it
        raise ClusterError(f"{place}: no such scheduler file")
    if not re.search(r"(\.json|:\d+)$", place):
        raise ArgumentError(
            f"dask (--dask) must be an address with its port, such as tcp://host:8786, or a .json file, got {place!r}"
        )
    given = {"scheduler_file": place} if place.endswith(".json") else {"address": place}
    try:
        client = distributed.Client(**given, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(f"{place}: no Dask scheduler answers: {error}") from None
    with client:
        yield client

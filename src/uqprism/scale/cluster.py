"""Parts on a Dask cluster: one task each, tried again when a worker is lost, written by the workers where all can see them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from uqprism.errors import UqprismError
from uqprism.scale.inputs import Part
from uqprism.scale.options import Options
from uqprism.scale.parts import Made, Tick, make
from uqprism.storage import require

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
            for future, result in distributed.as_completed(futures, loop=client.loop, with_results=True):
                if isinstance(result, UqprismError):
                    raise result
                part = places[future.key]
                made.append(Made(part, *result))
                tick(result[0], sum(span.path.stat().st_size for span in part.spans))
        finally:
            client.cancel(futures)
    return made


def attempt(part: Part, options: Options, run: str) -> tuple[int, int] | UqprismError:
    """Make one part on a worker: its rows and bad rows, or the error that trying again would not cure."""
    try:
        made = make(part, options, run=run, threads=1)
    except UqprismError as error:
        return error
    return made.rows, made.bad_rows


def _absolute(part: Part) -> Part:
    """The same with absolute paths: workers have working directories of their own."""
    from dataclasses import replace

    spans = tuple(replace(span, path=span.path.absolute()) for span in part.spans)
    return Part(part.target.absolute(), spans)


@contextmanager
def connected(distributed: Any, dask: Any) -> Iterator[Any]:
    """A client of this scheduler, closed at the end unless it was given."""
    if isinstance(dask, distributed.Client):
        yield dask
        return
    place = os.fspath(dask)
    given = {"scheduler_file": place} if place.endswith(".json") else {"address": place}
    with distributed.Client(**given, set_as_default=False) as client:
        yield client

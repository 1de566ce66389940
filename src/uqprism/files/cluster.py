"""Scoring on a Dask cluster: one task per part, repeated when a worker is lost. Workers write to a shared file system."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from uqprism.errors import ArgumentError, BadFileError, ClusterError, UqprismError
from uqprism.files.claim import Claim
from uqprism.files.options import ScoreOptions
from uqprism.files.paths import Part
from uqprism.files.stream import FinishedPart, Tick, write_part
from uqprism.support.optional import require

PATIENCE = 4.0  # seconds for a scheduler to answer
RETRIES = 3  # of a task that raised, such as after a failure of the file system; Dask counts lost workers itself


def write_parts(
    parts: Sequence[Part], options: ScoreOptions, claim: Claim, dask: Any, *, tick: Tick
) -> Iterator[FinishedPart | BadFileError]:
    """Write these parts on the workers of a cluster; gives each when it is finished, or the error of its input.

    A task can be repeated, because it writes its part atomically. The first part that cannot be written ends the run.
    """
    distributed = require("distributed", extra="scale")
    with connected(distributed, dask) as client:
        futures = [
            client.submit(attempt, _absolute(part), options, claim, key=f"uqprism-{claim.run}-{i}", retries=RETRIES)
            for i, part in enumerate(parts)
        ]
        places = {future.key: part for future, part in zip(futures, parts, strict=True)}
        try:
            # The client is not the default one, whose loop would be used.
            for future in distributed.as_completed(futures, loop=client.loop):
                result = _result(future, places[future.key])
                if isinstance(result, FinishedPart):
                    tick(result.rows, sum(source["size"] for source in result.record["sources"]))
                yield result
        finally:
            client.cancel(futures)  # after an error the rest need not run


def _result(future: Any, part: Part) -> FinishedPart | BadFileError:
    try:
        result = future.result()
    except Exception as error:  # anything that a worker may raise, or Dask when it stops trying
        reason = (str(error).splitlines() or [""])[0]
        raise ClusterError(f"{part.target}: could not be written on the cluster: {type(error).__name__}: {reason}") from error
    if isinstance(result, BadFileError):
        given = {os.fspath(span.path.absolute()): span.path for span in part.spans}
        return BadFileError(given.get(os.fspath(result.path), result.path), result.reason)
    if isinstance(result, UqprismError):
        raise result
    return FinishedPart(part, result)


def attempt(part: Part, options: ScoreOptions, claim: Claim) -> dict[str, Any] | UqprismError:
    """Write one part on a worker: its record, or an error that would come again."""
    try:
        return write_part(part, options, claim, threads=1).record  # Dask runs a task on each thread of a worker
    except UqprismError as error:
        return error  # returned, because a task that raises is tried again


def _absolute(part: Part) -> Part:
    """The same part with absolute paths, because workers have other working directories."""
    spans = tuple(replace(span, path=span.path.absolute()) for span in part.spans)
    return Part(part.target.absolute(), spans)


@contextmanager
def connected(distributed: Any, dask: Any) -> Iterator[Any]:
    """A client of this scheduler, closed at the end unless the user passed it."""
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
    try:
        address = json.loads(Path(place).read_bytes())["address"] if place.endswith(".json") else place
    except (OSError, ValueError, TypeError, KeyError):
        raise ClusterError(
            f"{place}: is no scheduler file: it has no address; write it with dask scheduler --scheduler-file"
        ) from None
    _check_scheduler(distributed, place, address)
    try:
        client = distributed.Client(address, set_as_default=False)  # the user may have a default client
    except (OSError, ValueError) as error:
        raise ClusterError(f"{place}: no Dask scheduler answers: {error}") from None
    with client:
        yield client


def _check_scheduler(distributed: Any, place: str, address: Any) -> None:
    """Raise if no scheduler answers within a few seconds. `Client` would wait for half a minute, or for ever."""
    answers: list[Any] = []

    async def ask() -> Any:
        given = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, connection_args=given, timeout=PATIENCE) as scheduler:
            return (await asyncio.wait_for(scheduler.identity(), PATIENCE))["type"]

    def run() -> None:
        try:
            answers.append(asyncio.run(ask()))
        except (OSError, ValueError, TypeError) as error:
            answers.append(error)
        except Exception:  # whatever a stranger's bytes lead to
            answers.append(ConnectionError("something else does"))

    # A thread of its own, because the caller may have an event loop, and because a connection may not let itself be cancelled.
    thread = threading.Thread(target=run, daemon=True)
    with _quiet():
        thread.start()
        thread.join(1.25 * PATIENCE)
    answer = answers[0] if answers else TimeoutError()
    if answer == "Scheduler":
        return
    reason = (
        f"a {answer.lower()} does" if isinstance(answer, str) else str(answer).partition("\n")[0] or f"none in {PATIENCE:.0f} s"
    )
    raise ClusterError(f"{place}: no Dask scheduler answers: {reason}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without messages of Dask, which precede the one line of the error."""
    logger = logging.getLogger("distributed")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before

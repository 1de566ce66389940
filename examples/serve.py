"""A small web service that answers with intervals, noise and disagreement, and takes concurrent requests in batches.

    uvicorn --app-dir examples serve:app          # the folder of `Served.save` is SERVED, by default ./served
    curl -d '{"rows": [{"a": 0.5, "b": null, "kind": "x"}]}' -H 'content-type: application/json' localhost:8000/predict

One prediction of a hundred rows takes little longer than one of a single row. Requests that arrive while the model is at work
wait for each other and are answered by one prediction. It needs `pip install fastapi uvicorn`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import uqprism as up

MOST_ROWS = 512  # of one prediction
LONGEST_QUEUE = 2048  # requests that wait; more are turned away at once
Row = dict[str, float | bool | str | None]


class Question(BaseModel):
    """Rows by the names of their columns; null for a missing value."""

    rows: list[Row] = Field(min_length=1, max_length=MOST_ROWS)


@dataclass
class Batches:
    """Concurrent requests as one prediction.

    Attributes:
        predict: from rows to one answer for each.
        most: rows of one prediction.
    """

    predict: Callable[[list[Row]], list[dict[str, Any]]]
    most: int = MOST_ROWS
    waiting: asyncio.Queue[tuple[list[Row], asyncio.Future[list[dict[str, Any]]]]] = field(
        default_factory=lambda: asyncio.Queue(LONGEST_QUEUE)
    )

    def ask(self, rows: list[Row]) -> Awaitable[list[dict[str, Any]]]:
        """The answers for the rows of one request; raises `asyncio.QueueFull` if too many wait."""
        answer: asyncio.Future[list[dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((rows, answer))
        return answer

    async def work(self) -> None:
        """Answer what waits, again and again; while a prediction runs in its thread, further requests gather."""
        while True:
            batch = [await self.waiting.get()]
            while not self.waiting.empty() and sum(len(rows) for rows, _ in batch) < self.most:
                batch.append(self.waiting.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: list[tuple[list[Row], asyncio.Future[list[dict[str, Any]]]]]) -> None:
        together = [row for rows, _ in batch for row in rows]
        try:
            found = await asyncio.to_thread(self.predict, together)
        except Exception as error:  # of one bad request, which is looked for by halves: the others must not suffer for it
            if len(batch) > 1:
                await self._answer(batch[: len(batch) // 2])
                await self._answer(batch[len(batch) // 2 :])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        start = 0
        for rows, answer in batch:
            if not answer.done():  # the client may have gone
                answer.set_result(found[start : start + len(rows)])
            start += len(rows)


def service(served: up.Served, *, most: int = MOST_ROWS) -> FastAPI:
    """The application for a model; with `most=1` every request is a prediction of its own."""

    def check(rows: list[Row]) -> None:
        names = served.features or tuple(rows[0])
        if missing := sorted({name for row in rows for name in names if name not in row}):
            raise ValueError(f"rows must have the columns {', '.join(names)}; missing: {', '.join(missing)}")

    def predict(rows: list[Row]) -> list[dict[str, Any]]:
        names = served.features or tuple(rows[0])
        frame = pd.DataFrame({name: [row[name] for row in rows] for name in names})
        table = frame if served.features else frame.to_numpy(dtype=float)
        return served.predict(table).to_dict("records")

    batches = Batches(predict, most)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        worker = asyncio.create_task(batches.work())
        yield
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker

    app = FastAPI(title="uqprism", lifespan=running)

    @app.post("/predict")
    async def answers(question: Question) -> list[dict[str, Any]]:
        """One answer for each row."""
        try:
            check(question.rows)
            return await batches.ask(question.rows)
        except asyncio.QueueFull:
            raise HTTPException(503, "too many requests are waiting; try again") from None
        except ValueError as error:  # the package's errors about values say what is wrong with the rows
            raise HTTPException(422, str(error)) from None

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """What is served."""
        return {
            "columns": served.columns,
            "features": served.features,
            "rule": str(served.rule),
            "waiting": batches.waiting.qsize(),
        }

    return app


def __getattr__(name: str) -> Any:
    if name == "app":  # so that importing this file loads no model
        return service(up.Served.load(os.environ.get("SERVED", "served")))
    raise AttributeError(name)

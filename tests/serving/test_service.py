"""The web service of `examples/serve.py`: batches of concurrent requests, and what it answers to bad ones."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from numpy.testing import assert_allclose

from .conftest import visits


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("serve", Path(__file__).parents[2] / "examples" / "serve.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    __import__("sys").modules["serve"] = module  # dataclasses and pydantic look their module up
    spec.loader.exec_module(module)
    return module


def with_client(app: Any, talk: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        transport = httpx.ASGITransport(app=app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await talk(client)

    return asyncio.run(session())


def rows_of(n: int, seed: int) -> list[dict[str, Any]]:
    frame = visits(n, seed)[0]
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def test_concurrent_requests_share_predictions_and_get_their_own_answers(example, served, monkeypatch) -> None:
    """Forty requests of one to three rows, one of them bad, in far fewer predictions."""
    calls, predict = [], type(served).predict

    def counted(self: Any, table: Any) -> Any:
        calls.append(len(table))
        time.sleep(0.02)
        return predict(self, table)

    monkeypatch.setattr(type(served), "predict", counted)
    questions = [rows_of(1 + i % 3, i) for i in range(40)]
    bad, worse = [{"a": 1.0}], [{"a": "wide", "b": 0.0, "kind": "x"}]

    async def talk(client: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(client.post("/predict", json={"rows": rows}) for rows in [*questions, bad, worse]))

    *answers, refused, text = with_client(example.service(served), talk)
    assert refused.status_code == 422
    assert "missing: b, kind" in refused.json()["detail"]
    assert text.status_code == 422
    assert "held numbers in training" in text.json()["detail"]
    assert len(calls) < 0.7 * len(questions)
    import pandas as pd

    for rows, answer in zip(questions, answers, strict=True):
        assert answer.status_code == 200, answer.text
        expected = predict(served, pd.DataFrame(rows))
        assert_allclose([each["mean"] for each in answer.json()], expected["mean"], rtol=1e-9)
        assert [each["flag"] for each in answer.json()] == expected["flag"].tolist()


def test_one_prediction_for_each_request_without_batches(example, served) -> None:
    async def talk(client: httpx.AsyncClient) -> list[httpx.Response]:
        return await asyncio.gather(*(client.post("/predict", json={"rows": rows_of(2, i)}) for i in range(5)))

    assert [len(answer.json()) for answer in with_client(example.service(served, most=1), talk)] == [2] * 5


def test_it_says_what_it_serves_and_refuses_what_is_no_question(example, served) -> None:
    async def talk(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.get("/health"), await client.post("/predict", json={"rows": []})]

    health, empty = with_client(example.service(served), talk)
    assert health.json()["features"] == ["a", "b", "kind"]
    assert empty.status_code == 422


def test_too_many_waiting_requests_are_turned_away(example, served, monkeypatch) -> None:
    monkeypatch.setattr(example, "LONGEST_QUEUE", 1)

    async def talk(client: httpx.AsyncClient) -> list[int]:
        posts = (client.post("/predict", json={"rows": rows_of(1, i)}) for i in range(12))
        return [answer.status_code for answer in await asyncio.gather(*posts)]

    codes = with_client(example.service(served), talk)
    assert 503 in codes
    assert 200 in codes


def test_it_loads_the_folder_that_is_named(example, served, tmp_path, monkeypatch) -> None:
    served.save(tmp_path)
    monkeypatch.setenv("SERVED", str(tmp_path))
    assert example.app.title == "uqprism"

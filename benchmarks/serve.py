"""The load that `examples/serve.py` holds on loopback, with and without batches.

`python benchmarks/serve.py` writes serve.json and a section of RESULTS-serving.md. Clients ask one row at a time, each as soon
as it has its answer. Every case ends after a number of requests or of seconds; the two ways take turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import results

import uqprism as up

KEPT, EXAMPLES = Path(__file__).parent / "serve.json", Path(__file__).parents[1] / "examples"
CLIENTS, REQUESTS, SECONDS, TURNS = (1, 8, 64), 1_000, 8.0, 2
WAYS = {"batches": 512, "one by one": 1}
SERVER = """
import socket, sys
sys.path.insert(0, sys.argv[1])
import uvicorn
import uqprism as up
from serve import service
listening = socket.socket(fileno=int(sys.argv[4]))
app = service(up.Served.load(sys.argv[2]), most=int(sys.argv[3]))
uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])
"""


def main() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1_500, 8)), columns=list("abcdefgh"))
    y = np.sin(2.0 * frame["a"].to_numpy()) + 0.3 * rng.normal(size=len(frame))
    settings: dict[str, Any] = {"max_epochs": 5, "random_state": 0, "device": "cpu", "progress": False}
    model = up.DeepEnsembleRegressor(head="natural", **settings).fit(frame[:1_000], y[:1_000])
    served = up.Served.calibrated(model, frame[1_000:], y[1_000:])
    questions = [json.dumps({"rows": [row]}).encode() for row in frame[:200].to_dict("records")]
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        served.save(folder)
        for _ in range(TURNS):
            for way, most in WAYS.items():
                for clients, taken in loaded(folder, most, questions).items():
                    found.setdefault(f"{way}, {clients}", {"rates": [], "times": []})
                    found[f"{way}, {clients}"]["rates"].append(taken["rate"])
                    found[f"{way}, {clients}"]["times"] += taken["times"]
    kept = {name: summary(each) for name, each in found.items()}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    write(kept)


def loaded(folder: str, most: int, questions: list[bytes]) -> dict[int, dict[str, Any]]:
    """Start a server, and ask it with ever more clients."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    port = listening.getsockname()[1]
    command = [sys.executable, "-c", SERVER, str(EXAMPLES), folder, str(most), str(listening.fileno())]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    server = subprocess.Popen(command, pass_fds=[listening.fileno()], env=environment)
    try:
        asyncio.run(ask(port, questions, 4, 20, 120.0))  # until it is up and warm
        return {clients: asyncio.run(ask(port, questions, clients, REQUESTS, SECONDS)) for clients in CLIENTS}
    finally:
        server.terminate()
        server.wait(30)
        listening.close()


async def ask(port: int, questions: list[bytes], clients: int, most: int, seconds: float) -> dict[str, Any]:
    """Requests a second, and the seconds that each took."""
    times: list[float] = []
    start = time.perf_counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while len(times) < most and time.perf_counter() - start < seconds:
                body = questions[(number + len(times)) % len(questions)]
                head = (
                    f"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                )
                asked = time.perf_counter()
                writer.write(head.encode() + body)
                status = await reader.readline()
                length = 0
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                answer = json.loads(await reader.readexactly(length))
                if b" 200 " not in status:
                    raise RuntimeError(f"{status!r}: {answer}")
                times.append(time.perf_counter() - asked)
        finally:
            writer.close()

    await asyncio.gather(*map(client, range(clients)))
    return {"rate": len(times) / (time.perf_counter() - start), "times": times}


def summary(found: dict[str, list[float]]) -> dict[str, float]:
    """Requests a second, and quantiles of the times in milliseconds."""
    middle, late = np.quantile(found["times"], [0.5, 0.99])
    return {"rate": float(np.mean(found["rates"])), "p50": 1e3 * middle, "p99": 1e3 * late, "requests": len(found["times"])}


def write(kept: dict[str, dict[str, float]]) -> None:
    lines = ["## A web service on loopback", ""]
    lines += [
        "`examples/serve.py` with ten members of the default network and the natural head, eight columns, one row per request. "
        f"Clients ask again as soon as they have an answer; each case ends after {REQUESTS:,} requests or {SECONDS:g} seconds, "
        f"{TURNS} turns. Server and clients share the processor.",
        "",
        "| clients | requests/s, batches | one by one | ratio | p50, p99 in ms, batches | one by one |",
        "|---|---|---|---|---|---|",
    ]
    for clients in CLIENTS:
        batches, single = (kept[f"{way}, {clients}"] for way in WAYS)
        times = [f"{each['p50']:,.0f}, {each['p99']:,.0f}" for each in (batches, single)]
        rates = f"{batches['rate']:,.0f} | {single['rate']:,.0f} | {batches['rate'] / single['rate']:.3g}"
        lines.append(f"| {clients} | {rates} | {times[0]} | {times[1]} |")
    results.write(results.SERVING, lines, f"{results.processor()}, shared with other work", ("fastapi", "uvicorn", "torch"))


if __name__ == "__main__":
    main()

"""Exported models in onnxruntime beside `predict_ensemble` and `decompose`: equality and rows a second of processor time.

`OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/export.py` writes
export.json and a section of RESULTS-serving.md. One thread each, in
turns within one run.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import results
import torch

import uqprism as up

KEPT = Path(__file__).parent / "export.json"
CASES = [("natural", "crps"), ("natural", "log"), ("mixture", "crps"), ("laplace", "log")]
ROWS, BATCH, TURNS = 10_000, 1_000, 3
HEADINGS = ("head, rule", "precision", "MB", "rows/s, Python", "rows/s, onnxruntime", "ratio", "error of mean", "error of excess")


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(1_000, 8)), rng.normal(size=(ROWS, 8))
    new[:100] *= 10.0  # far from all training rows
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] + 0.2 * (1.0 + x[:, 2] ** 2) * rng.normal(size=len(x))
    found = []
    for head, rule in CASES:
        model = up.DeepEnsembleRegressor(head=head, max_epochs=5, random_state=0, device="cpu", progress=False).fit(x, y)
        for precision in ("float64", "float32"):
            found.append({"head": head, "rule": rule, **measured(model, rule, precision, new)})
            print(found[-1], flush=True)
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    write(found)


def measured(model: Any, rule: str, precision: Any, new: np.ndarray) -> dict[str, Any]:
    """Both ways of computing the split of these rows."""
    with tempfile.TemporaryDirectory() as folder:
        exported = model.export(Path(folder) / "model.onnx", rule=rule, precision=precision)
        size = exported.path.stat().st_size / 1e6
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(exported.path, options, providers=["CPUExecutionProvider"])
    rows = new.astype(precision)
    parts = [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]

    def ours(part: np.ndarray) -> Any:
        ensemble = model.predict_ensemble(part)
        split = up.decompose(ensemble, rule=rule)
        return ensemble.matched.mean, split.excess

    def theirs(part: np.ndarray) -> Any:
        return session.run(["mean", "excess"], exported.feed(part))

    expected, got = ([np.concatenate(each) for each in zip(*map(way, parts), strict=True)] for way in (ours, theirs))
    seconds: dict[str, float] = {"ours": 0.0, "theirs": 0.0}
    for _ in range(TURNS):
        seconds["ours"] += spent(ours, parts)
        seconds["theirs"] += spent(theirs, parts)
    errors = [float(np.max(np.abs(a - b)) / np.max(np.abs(b[100:]))) for a, b in zip(got, expected, strict=True)]
    rates = {name: TURNS * ROWS / value for name, value in seconds.items()}
    return {"precision": precision, "megabytes": size, "rates": rates, "mean_error": errors[0], "excess_error": errors[1]}


def spent(way: Callable[[np.ndarray], Any], parts: list[np.ndarray]) -> float:
    """Processor time."""
    start = time.process_time()
    for part in parts:
        way(part)
    return time.process_time() - start


def write(found: list[dict[str, Any]]) -> None:
    lines = ["## Exported models in onnxruntime", ""]
    lines += [
        f"Ten members of the default network, eight columns, {ROWS:,} rows in batches of {BATCH:,}, of which a hundred lie far "
        "from the training rows. *Python* is `predict_ensemble` and `decompose`; rates are per second of processor time, one "
        "thread each. Errors are the largest, relative to the largest value among ordinary rows.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
    ]
    for each in found:
        ours, theirs = each["rates"]["ours"], each["rates"]["theirs"]
        cells = [f"{each['head']}, {each['rule']}", each["precision"], f"{each['megabytes']:.1f}"]
        cells += [
            f"{ours:,.0f}",
            f"{theirs:,.0f}",
            f"{theirs / ours:.2f}",
            f"{each['mean_error']:.1g}",
            f"{each['excess_error']:.1g}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    results.write(results.SERVING, lines, f"{results.processor()}, shared with other work", ("torch", "onnx", "onnxruntime"))


if __name__ == "__main__":
    main()

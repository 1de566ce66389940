"""The numbers that the pages give are those of the stored benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def text(page: str) -> str:
    return " ".join((ROOT / "docs" / page).read_text().split())


def test_the_load_that_the_service_held() -> None:
    kept = json.loads((ROOT / "benchmarks" / "serve.json").read_text())
    many, single = kept["batches, 64"], kept["one by one, 64"]
    assert f"with 64 clients that ask for one row each, it answers {many['rate']:.0f} requests per second" in text(
        "production.md"
    )
    assert f"half of them within {many['p50']:.0f} ms and 99 % within {many['p99']:.0f} ms" in text("production.md")
    assert f"it is {single['rate']:.0f} per second, and half of them take more than {single['p50']:,.0f} ms" in text(
        "production.md"
    )
    assert many["rate"] > 5.0 * single["rate"]


def test_the_speed_of_exported_models() -> None:
    kept = json.loads((ROOT / "benchmarks" / "export.json").read_text())
    rates = {each["head"]: each["rates"] for each in kept if (each["rule"], each["precision"]) == ("crps", "float64")}
    for head in ("natural", "mixture"):
        assert f"{rates[head]['theirs']:,.0f}" in text("export.md")
        assert f"{rates[head]['ours']:,.0f}" in text("export.md")
    for precision in ("float64", "float32"):
        worst = max(each["excess_error"] for each in kept if each["precision"] == precision)
        assert f"{worst:.0e}" in text("export.md")
    assert max(each["excess_error"] for each in kept) < 1e-5

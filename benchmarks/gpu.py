"""Time the fused kernels on an NVIDIA device against broadcast PyTorch and write their section of RESULTS-gpu.md."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import results
import torch

import uqprism as up

MEMBERS, POINTS, CHUNK = 10, 10_000_000, 250_000
WANTED = [
    f"{rule}.{risk}"
    for rule in ("crps", "quadratic")
    for risk in ("total.members.members", "bayes.members", "excess.members.members")
]


def milliseconds(call: Callable[[], object], repeats: int = 20) -> float:
    """The best of a few runs, between events on the device."""
    call()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)


def broadcast(mean: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
    """The same six measures by the printed formulas over all pairs, in chunks that fit into memory."""
    return [
        torch.cat(parts)
        for parts in zip(
            *(_formulas(m, s) for m, s in zip(mean.split(CHUNK, 1), scale.split(CHUNK, 1), strict=True)), strict=True
        )
    ]


def _formulas(mean: torch.Tensor, scale: torch.Tensor) -> list[torch.Tensor]:
    gap, joint = mean[:, None] - mean[None], torch.hypot(scale[:, None], scale[None])
    z = gap / joint
    bell = torch.exp(-0.5 * z * z)
    distance = (joint * math.sqrt(2 / math.pi) * bell + gap * torch.erf(z / math.sqrt(2))).mean((0, 1))
    overlap = (bell / (math.sqrt(2 * math.pi) * joint)).mean((0, 1))
    crps, quadratic = (scale / math.sqrt(math.pi)).mean(0), -(0.5 / (math.sqrt(math.pi) * scale)).mean(0)
    return [distance - crps, crps, distance - 2 * crps, -2 * overlap - quadratic, quadratic, -2 * overlap - 2 * quadratic]


def compare(dtype: torch.dtype) -> list[str]:
    """Rows of the table for one precision."""
    mean = torch.randn(MEMBERS, POINTS, device="cuda", dtype=dtype)
    scale = torch.exp(0.3 * torch.randn(MEMBERS, POINTS, device="cuda", dtype=dtype))
    ensemble = up.EnsemblePrediction.gaussian(mean=mean, scale=scale)
    compiled = torch.compile(_formulas)
    everything = [m.name for m in up.catalogue(["crps", "quadratic"])]
    times = {
        "broadcast, eager": milliseconds(lambda: broadcast(mean, scale), 3),
        "broadcast, torch.compile": milliseconds(lambda: compiled(mean, scale)),
        "uqprism, the same six measures": milliseconds(lambda: up.evaluate(ensemble, WANTED)),
        "uqprism, all 72 of the two rules": milliseconds(lambda: up.evaluate(ensemble, everything), 2),
        "uqprism, all closed forms of the four rules": milliseconds(lambda: up.evaluate(ensemble, CLOSED)),
    }
    eager = times["broadcast, eager"]
    return [f"| {name} | {str(dtype)[6:]} | {time:.2f} | {eager / time:.1f} |" for name, time in times.items()]


def families() -> list[str]:
    """The section on all measures of each family."""
    lines = [
        "## Families",
        "",
        f"{POINTS // 10:,} points x {MEMBERS} members, all 144 measures by the default call; best of 5 after one to warm up.",
        "",
        "| members | precision | milliseconds |",
        "|---|---|---|",
    ]
    for family, dtype in [
        ("gaussian", torch.float32),
        *((f, torch.float64) for f in ("gaussian", "laplace", "logistic", "student_t")),
    ]:
        ours = _ensemble(family, dtype)
        lines.append(f"| {family} | {str(dtype)[6:]} | {_wall(lambda e=ours: up.evaluate(e)):.0f} |")
    return lines


def shaped() -> list[str]:
    """The section on bars, quantiles, mixtures, and members with bounds or of counts."""
    lines = [
        "## Bars, quantiles, mixtures, bounds and counts",
        "",
        f"{POINTS // 10:,} points x {MEMBERS} members in float64, all measures that they have by the default call, and the 36 of",
        "CRPS; best of 3 after one to warm up. Times Gaussians: of all measures of as many Gaussian members in float64.",
        "",
        "| members | measures | milliseconds | times Gaussians | CRPS, milliseconds |",
        "|---|---|---|---|---|",
    ]
    first = 0.0
    for name, build in SHAPED.items():
        ours = build()
        measures = _measures(ours)
        taken = _wall(lambda e=ours, m=measures: up.evaluate(e, m), 3)
        first = first or taken
        crps = _wall(lambda e=ours: up.evaluate(e, ["crps.*"]), 3)
        lines.append(f"| {name} | {len(measures)} | {taken:.0f} | {taken / first:.1f} | {crps:.0f} |")
        print(lines[-1], flush=True)
        del ours
        torch.cuda.empty_cache()
    return lines


def _measures(ensemble: up.EnsemblePrediction) -> list[str]:
    """All that these members have."""
    return list(up.evaluate(ensemble[:300]))


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.float64)


def _bars(count: int, outer: str | None = None, *, own: bool = False) -> up.EnsemblePrediction:
    points = POINTS // 10
    edges = torch.linspace(-3.0, 3.0, count + 1, device="cuda", dtype=torch.float64)
    if own:
        edges = edges[:, None] * torch.exp(0.1 * _normal(MEMBERS, 1, points)) + 0.3 * _normal(MEMBERS, 1, points)
    return up.EnsemblePrediction.histogram(
        edges=edges, probabilities=torch.softmax(_normal(MEMBERS, count, points), 1), outer=outer
    )


def _quantiles(count: int, tails: str) -> up.EnsemblePrediction:
    levels = torch.linspace(0.0, 1.0, count + 2, dtype=torch.float64)[1:-1]
    values = torch.sort(_normal(MEMBERS, count, POINTS // 10), 1).values
    return up.EnsemblePrediction.quantiles(levels=levels.tolist(), values=values, tails=tails)


def _mixtures(components: int) -> up.EnsemblePrediction:
    shape = MEMBERS, components, POINTS // 10
    return up.EnsemblePrediction.gaussian_mixture(
        mean=2.0 * _normal(*shape), scale=torch.exp(0.3 * _normal(*shape)), shares=torch.softmax(_normal(*shape), 1)
    )


def _shape(typical: float) -> torch.Tensor:
    return typical * torch.exp(0.3 * _normal(MEMBERS, POINTS // 10))


def _bounded(kind: str) -> up.EnsemblePrediction:
    make = getattr(up.EnsemblePrediction, kind)
    return make(location=_normal(MEMBERS, POINTS // 10), scale=_shape(1.0), low=-1.0, high=3.0)


SHAPED: dict[str, Callable[[], up.EnsemblePrediction]] = {
    "Gaussian": lambda: _ensemble("gaussian", torch.float64),
    "100 bars, shared edges": lambda: _bars(100),
    "100 bars, shared edges, half-normal tails": lambda: _bars(100, "half_normal"),
    "20 bars, own edges": lambda: _bars(20, own=True),
    "9 quantiles, exponential tails": lambda: _quantiles(9, "exponential"),
    "9 quantiles, Gaussian tails": lambda: _quantiles(9, "gaussian"),
    "9 quantiles, no tails": lambda: _quantiles(9, "none"),
    "mixtures of 3 Gaussians": lambda: _mixtures(3),
    "mixtures of 10 Gaussians": lambda: _mixtures(10),
    "beta, shapes about 3 and 5": lambda: up.EnsemblePrediction.beta(a=_shape(3.0), b=_shape(5.0)),
    "truncated Gaussian": lambda: _bounded("truncated_gaussian"),
    "censored Gaussian": lambda: _bounded("censored_gaussian"),
    "Poisson, rates about 10": lambda: up.EnsemblePrediction.poisson(rate=_shape(10.0)),
    "Poisson, rates about 1,000": lambda: up.EnsemblePrediction.poisson(rate=_shape(1e3)),
    "negative binomial, rates about 10": lambda: up.EnsemblePrediction.negative_binomial(rate=_shape(10.0), size=_shape(3.0)),
    "beta with poles, shapes about 0.3 and 0.7": lambda: up.EnsemblePrediction.beta(a=_shape(0.3), b=_shape(0.7)),
}


def _ensemble(family: str, dtype: torch.dtype) -> up.EnsemblePrediction:
    shape = MEMBERS, POINTS // 10
    location = torch.randn(shape, device="cuda", dtype=dtype)
    scale = torch.exp(0.3 * torch.randn(shape, device="cuda", dtype=dtype))
    if family == "gaussian":
        return up.EnsemblePrediction.gaussian(mean=location, scale=scale)
    more = {"df": torch.exp(1.0 + 3.0 * torch.rand(shape, device="cuda", dtype=dtype))} if family == "student_t" else {}
    return getattr(up.EnsemblePrediction, family)(location=location, scale=scale, **more)


def _wall(call: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(1 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times[1:])


def main() -> None:
    """Measure, print and write."""
    torch.manual_seed(0)
    lines = [
        "## Measures",
        "",
        f"{POINTS:,} points x {MEMBERS} Gaussian members, broadcast {CHUNK:,} points at a time; best of many.",
        "",
        "| what | precision | milliseconds | times faster than eager |",
        "|---|---|---|---|",
    ]
    for dtype in (torch.float32, torch.float64):
        lines += compare(dtype)
    print("\n".join(lines))
    results.write(results.DEVICE, lines, torch.cuda.get_device_name(), ("torch",))
    for section in (families, shaped):
        lines = section()
        print("\n".join(lines))
        results.write(results.DEVICE, lines, torch.cuda.get_device_name(), ("torch",))


SMALL = up.EnsemblePrediction.gaussian(mean=[[0.0], [1.0]], scale=[[1.0], [1.0]])
CLOSED = [name for name, how in up.evaluate(SMALL).exactness.items() if how.method == "closed form"]

if __name__ == "__main__":
    main()

"""How much faster a stack trains than a Python loop over its members; with a GPU, writes its section of RESULTS-gpu.md."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import results
import torch

from uqprism.paper.data.synthetic import two_curves
from uqprism.support.parallel import threads
from uqprism.training import MLP, ResNet18, SmallCNN, TabularMLP, TrainingOptions, heads, train
from uqprism.training.data import TrainingData
from uqprism.training.device import full_precision, torch_threads
from uqprism.training.randomness import member_seeds
from uqprism.training.recorded import RecordedStepper
from uqprism.training.stack import Stack
from uqprism.training.step import Moments, Stepper

MEMBERS, BATCH, ROWS, ROUNDS, FITS = 10, 64, 2000, 5, 2
CASES: dict[str, list[tuple[str, Any, str, tuple[int, ...], int]]] = {  # name, network, head, input shape, steps in a round
    "cpu": [
        ("MLP 3x100", MLP(), "natural", (9,), 100),
        ("TabularMLP", TabularMLP(), "mixture", (9,), 100),
        ("small CNN, 32x32", SmallCNN(), "natural", (1, 32, 32), 10),
    ],
    "cuda": [
        ("MLP 3x100", MLP(), "natural", (9,), 300),
        ("TabularMLP", TabularMLP(), "mixture", (9,), 300),
        ("small CNN, 32x32", SmallCNN(), "natural", (1, 32, 32), 200),
        ("ResNet-18, 90x120", ResNet18(), "natural", (3, 90, 120), 10),
    ],
}

Step = Callable[[int], None]


def looped(modules: list[Any], head: Any, data: tuple[Any, Any, Any], fused: bool) -> Step:
    """One step of every member, one after the other, each with its own Adam."""
    inputs, targets, rows = data
    age = torch.zeros(1, device=inputs.device)
    optimisers = [torch.optim.Adam(module.parameters(), 1e-3, fused=fused) for module in modules]

    def step(k: int) -> None:
        for i, (module, optimiser) in enumerate(zip(modules, optimisers, strict=True)):
            at = rows[i, k]
            optimiser.zero_grad()
            head.loss(module(inputs[at]), targets[at], age).mean().backward()
            optimiser.step()

    return step


def stacked(stack: Stack, head: Any, inputs: Any, targets: Any, rows: Any) -> Step:
    """One step of every member by the trainer's own stepper."""
    data = TrainingData(inputs, targets, rows.flatten(1), None, None, [], sets=rows.flatten(1))
    seeds, members = member_seeds(0, len(stack)).to(inputs.device), torch.arange(len(stack), device=inputs.device)
    options, encoded = TrainingOptions(schedule="constant"), data.encode(stack)
    kind = RecordedStepper if RecordedStepper.suits(stack, encoded, head, options) else Stepper
    moments = Moments.zeros(stack.rows)
    stepper = kind(stack, moments, members=members, seeds=seeds, data=encoded, head=head, options=options)
    return lambda k: stepper(rows[:, k])


def round_of(step: Step, count: int, device: str) -> float:
    """Milliseconds per step, on a CPU of processor time, which does not count what else the machine does."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    start = clock()
    for k in range(count):
        step(k)
    if device == "cuda":
        torch.cuda.synchronize()
    return 1e3 * (clock() - start) / count


def compare(case: tuple[str, Any, str, tuple[int, ...], int], device: str) -> list[str]:
    """Rows of the table: rounds of all contestants in turn, the median of each."""
    name, network, head_name, shape, count = case
    head = heads.resolve(head_name)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(ROWS, *shape, generator=generator).to(device)
    targets = torch.randn(ROWS, generator=generator).to(device)
    rows = torch.randint(0, ROWS, (MEMBERS, count, BATCH), generator=generator).to(device)
    contestants: dict[str, Step] = {}
    for fused in (False, True):
        modules = [network(shape, head.n_outputs).to(device) for _ in range(MEMBERS)]
        contestants[f"loop over modules, {'fused ' if fused else ''}Adam"] = looped(modules, head, (inputs, targets, rows), fused)
    for technique in ("matmul", "vmap", "loop") if isinstance(network, MLP | TabularMLP) else ("vmap", "loop"):
        stack = Stack.build(network, inputs[:2], head.n_outputs, list(range(MEMBERS)), technique)
        chosen = Stack.build(network, inputs[:2], head.n_outputs, [0]).technique == technique
        contestants[f"uqprism, {technique}{' (its choice)' if chosen else ''}"] = stacked(stack, head, inputs, targets, rows)
    times: dict[str, list[float]] = {key: [] for key in contestants}
    for step in contestants.values():
        round_of(step, 3, device)
    for _ in range(ROUNDS):
        for key, step in contestants.items():
            times[key].append(round_of(step, max(count // (5 if key.startswith("loop") else 1), 3), device))
    found = {key: statistics.median(values) for key, values in times.items()}
    first = next(iter(found.values()))
    return [f"| {name} | {key} | {value:.3g} | {first / value:.1f} |" for key, value in found.items()]


def synthetic_seconds() -> float:
    """The paper's one-dimensional set: 1200 rows, two hidden layers of 8, ten members, 100 epochs."""
    x, y = two_curves(1200, seed=0)
    start = time.process_time()
    train(x, y, network=MLP((8, 8), "silu"), head="natural", max_epochs=100, batch_size=64, patience=None, device="cpu")
    return time.process_time() - start


def plain(network: Any, x: Any, y: Any, epochs: int, members: int, *, head: Any) -> None:
    """What one writes without this package: a member at a time, with a cosine and the best epoch's weights.

    The network and the loss are this package's own, as one module each.
    """
    inputs = torch.tensor((x - x.mean(0)) / x.std(0)).float()
    targets = torch.tensor((y - y.mean()) / y.std()).float()
    age = torch.zeros(1)
    for seed in range(members):
        torch.manual_seed(seed)
        module = network((x.shape[1],), head.n_outputs)
        for layer in module.modules():
            if hasattr(layer, "observe"):
                for name, value in layer.observe(inputs, targets).items():
                    getattr(layer, name).copy_(value)
        kept, rows = torch.randperm(len(y)).split([len(y) // 10, len(y) - len(y) // 10])
        optimiser = torch.optim.Adam(module.parameters(), 3e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * -(-len(rows) // BATCH))
        best = float("inf")
        for _ in range(epochs):
            for at in rows[torch.randperm(len(rows))].split(BATCH):
                optimiser.zero_grad()
                head.loss(module(inputs[at]), targets[at], age).mean().backward()
                optimiser.step()
                schedule.step()
            with torch.no_grad():
                loss = float(head.loss(module(inputs[kept]), targets[kept], age).mean())
            if loss < best:
                best, weights = loss, {name: value.clone() for name, value in module.state_dict().items()}
        module.load_state_dict(weights)


WHOLE = (("MLP 3x100", "natural", MLP()), ("TabularMLP", "natural", TabularMLP()), ("TabularMLP", "mixture", TabularMLP()))


def end_to_end(rows: int, columns: int = 10) -> list[str]:
    """A row of the table of whole fits for each network and head: ten members together, against ten times a plain loop's one."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, columns))
    y = np.sin(x[:, 0]) + 0.1 * generator.normal(size=rows)
    epochs, lines = max(40_000 // rows, 2), []
    for name, head, network in WHOLE:
        settings = {"network": network, "head": head, "n_members": MEMBERS, "batch_size": BATCH, "patience": None}
        settings |= {"max_epochs": epochs, "device": "cpu", "progress": False}
        contestants = partial(train, x, y, **settings), partial(plain, network, x, y, epochs, 1, head=heads.resolve(head))
        cells = [name + ", " + head, f"{rows:,}"]
        for clock, count in ((time.perf_counter, threads()), (time.process_time, 1)):
            with torch_threads(count):
                ours, theirs = whole_fits(*contestants, clock)
            cells += [f"{ours:.2f}", f"{MEMBERS * theirs:.2f}", f"{MEMBERS * theirs / ours:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def whole_fits(ours: Callable[[], Any], theirs: Callable[[], Any], clock: Callable[[], float]) -> list[float]:
    """The median seconds of either, in turn."""
    times: list[tuple[float, float]] = []
    for _ in range(1 + FITS):  # the first also loads what is loaded on demand
        start = clock()
        ours()
        middle = clock()
        theirs()
        times.append((middle - start, clock() - middle))
    return [statistics.median(each) for each in zip(*times[1:], strict=True)]


def report(device: str = "cpu") -> list[str]:
    """The section on training; on a CPU with one thread, so that processor time is that of the work."""
    with torch_threads(1 if device == "cpu" else None):
        return _report(device)


def _report(device: str) -> list[str]:
    lines = [
        "## Training",
        "",
        f"One step of {MEMBERS} members with batches of {BATCH}, float32 without TF32; TabularMLP with the mixture head,",
        "others with the natural one.",
        f"Medians of {ROUNDS} rounds in turn{', by processor time of one thread' if device == 'cpu' else ''}.",
        "",
        "| network | how | milliseconds | times faster than the loop |",
        "|---|---|---|---|",
    ]
    with full_precision(device):
        for case in CASES[device]:
            lines += compare(case, device)
    if device == "cpu":
        seconds = synthetic_seconds()
        lines += [
            "",
            "Whole fits with validation, ten members in seconds, against ten times a plain loop's one member: by the clock with",
            f"{threads()} threads, as PyTorch and `fit` use by default here, and by processor time of one thread.",
            "",
        ]
        lines += [
            "| network and head | rows | clock | plain loop | times faster | processor | plain loop | times faster |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [line for rows in (1000, 8000) for line in end_to_end(rows)]
        lines += ["", f"The paper's synthetic set (1200 rows, MLP 2x8 SiLU, ten members, 100 epochs) trains in {seconds:.1f} s."]
    return lines


if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device; on a CPU run: python benchmarks/run.py training")
    section = report("cuda")
    print("\n".join(section))
    results.write(results.DEVICE, section, torch.cuda.get_device_name(), ("torch",))

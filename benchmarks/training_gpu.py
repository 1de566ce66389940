"""How fast a GPU trains ten small networks together, against a Python loop over them: `python benchmarks/training_gpu.py`."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from uqprism.training.heads import Natural
from uqprism.training.networks import MLP, ResNet18, SmallCNN
from uqprism.training.optimiser import Moments
from uqprism.training.options import TrainingOptions
from uqprism.training.plan import Plan
from uqprism.training.problem import Problem
from uqprism.training.randomness import member_seeds
from uqprism.training.stack import Stack
from uqprism.training.step import Stepper, full_precision

CASES = {
    "small_cnn 32x32": (SmallCNN(), (1, 32, 32), 200),
    "mlp 3x100": (MLP(), (9,), 300),
    "resnet18 90x120": (ResNet18(), (3, 90, 120), 10),
}


def looped(modules: list[Any], inputs: Any, targets: Any, rows: Any, fused: bool) -> Callable[[int], None]:
    """One step of every member, one after the other, each with its own Adam."""
    head = Natural()
    optimisers = [torch.optim.Adam(module.parameters(), 1e-3, fused=fused) for module in modules]
    age = torch.zeros(1, device=inputs.device)

    def step(k: int) -> None:
        for i, (module, optimiser) in enumerate(zip(modules, optimisers, strict=True)):
            at = rows[i, k]
            optimiser.zero_grad()
            head.loss(module(inputs[at]), targets[at], age).mean().backward()
            optimiser.step()

    return step


def stacked(stack: Stack, inputs: Any, targets: Any, rows: Any) -> Callable[[int], None]:
    """One step of every member by the trainer's own stepper."""
    device = inputs.device
    problem = Problem(inputs, targets, rows.flatten(1), None, None, [])
    seeds = member_seeds(0, len(stack)).to(device)
    models = torch.arange(len(stack), device=device)
    stepper = Stepper(stack, Moments.zeros(stack.rows), models, seeds, Plan(problem, MLP(), Natural(), TrainingOptions()))
    return lambda k: stepper(rows[:, k])


def seconds(step: Callable[[int], None], count: int) -> float:
    """Median over five rounds of the seconds per step."""
    for k in range(5):
        step(k)
    torch.cuda.synchronize()
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for k in range(count):
            step(k)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / count)
    return statistics.median(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    options = parser.parse_args()
    device = torch.device("cuda")
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with full_precision():
        for name in options.cases:
            network, shape, count = CASES[name]
            torch.manual_seed(0)
            inputs, targets = torch.randn(2000, *shape, device=device), torch.randn(2000, device=device)
            rows = torch.randint(0, 2000, (options.members, count, options.batch), device=device)
            found = {}
            for technique in ("auto", "vmap", "loop"):
                stack = Stack.build(network, inputs[:2], 2, list(range(options.members)), technique)
                found[f"{technique} ({stack.technique})"] = seconds(stacked(stack, inputs, targets, rows), count)
            for fused in (False, True):
                modules: list[nn.Module] = [network(shape, 2).to(device) for _ in range(options.members)]
                few = max(count // 10, 5)
                found["python loop, fused Adam" if fused else "python loop"] = seconds(
                    looped(modules, inputs, targets, rows, fused), few
                )
            print(name, json.dumps({key: f"{1e3 * value:.3f} ms" for key, value in found.items()}))


if __name__ == "__main__":
    main()

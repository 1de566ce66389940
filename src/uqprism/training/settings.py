"""Everything that `train` and `train_many` can be told, by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypedDict

from uqprism.training.heads import Head
from uqprism.training.networks.base import Factory


class Settings(TypedDict, total=False):
    """Keyword arguments of `train` and `train_many`.

    Those from `max_epochs` on are the fields of `TrainingOptions`, which describes them.

    Attributes:
        n_members: networks per ensemble, 10 by default.
        network: `mlp` (default), `small_cnn`, `resnet18`, a specification such as `MLP(hidden=(50,))`, or a function
            (input_shape, n_outputs) or () -> `torch.nn.Module`.
        head: what the outputs mean, and the loss; `natural` by default.
        validation: (inputs, targets) to stop on; by default each member keeps `validation_fraction` of its rows.
        seed: of the members' seeds: an integer, or one for each experiment. Experiments with the same seed start from the same
            weights.
        member_seeds: those seeds themselves, (n_members,) or (experiments, n_members).
        device: by default CUDA where there is one, else the CPU.
        dtype: `float32` (default) or `float64`, the precision of the networks.
        technique: `auto` (default), or `matmul`, `vmap`, `loop`.
        checkpoint: a folder; a run that finds its own checkpoint there goes on from it.
        checkpoint_every: epochs, 10 by default.
        progress: True or False; by default on a terminal.
    """

    n_members: int
    network: str | Factory
    head: str | Head
    validation: tuple[Any, Any] | None
    seed: int | Sequence[int]
    member_seeds: Any
    device: Any
    dtype: str
    technique: str
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int
    progress: bool | None
    max_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    patience: int | None
    validation_fraction: float
    bootstrap: bool
    max_gradient: float | None

"""The loops of one data set, all together, on a GPU where there is one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqprism.arrays import to_numpy
from uqprism.evaluation import evaluate
from uqprism.paper import inputs
from uqprism.paper.artefacts import Findings, Store, checksum
from uqprism.paper.experiments.active.acquisitions import RANDOM
from uqprism.tasks.active_learning import compare_acquisitions, scaled

if TYPE_CHECKING:
    from uqprism.paper.experiments.active import Comparison, Rows
    from uqprism.training import StackedFit

Data = dict[str, Any]
PARTS = {"pool": "train", "validation": "validation", "test": "test"}


def read(key: Rows, store: Store) -> Findings:
    """The rows of a data set: inputs in single precision, targets in standard deviations of the pool's."""
    dataset = inputs.load(store, key.dataset, seed=key.seed)
    most = {"pool": key.n_pool, "validation": key.n_validation, "test": key.n_test}
    parts = {part: getattr(dataset, name).take(slice(most[part])) for part, name in PARTS.items()}
    mean, scale = parts["pool"].targets.mean(), parts["pool"].targets.std()
    arrays = {f"{part}_inputs": samples.inputs.astype(np.float32) for part, samples in parts.items()}
    arrays |= {f"{part}_targets": (samples.targets - mean) / scale for part, samples in parts.items()}
    return Findings(data={"mean": float(mean), "scale": float(scale)}, arrays=arrays)


def compare(rows: Findings, key: Comparison, folder: Path) -> Findings:
    """Test errors of every loop: `nll` (acquisitions, seeds, models), means over models of `rmse` and `crps`, and `share`.

    That is how many points of the pool a softmax of the scores effectively chooses from, as a part of the pool, for a model on
    as many points as at the start, (acquisitions, seeds).
    """
    from uqprism.training import TrainingWarning

    config, data = key.config, _on_device(rows.arrays)
    fit = _fit(key, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # a member that diverges is started again
        result = compare_acquisitions(
            fit,
            data["pool_inputs"],
            data["pool_targets"],
            acquisitions=key.acquisitions,
            seeds=config.seeds,
            initial=config.n_initial,
            batch_size=config.batch_size,
            rounds=config.iterations + 1,
            test=(data["test_inputs"], data["test_targets"]),
            scores=config.scores,
            folder=folder,
            keep="picks",
            progress=False,
        )
        share = _shares(fit, key, data)
    runs = list(result.parts.values())
    arrays = {"nll": np.array([[run.curves[name] for run in runs] for name in key.acquisitions])}
    for metric in ("rmse", "crps"):
        arrays[metric] = np.array([[run.metrics[metric][name] for run in runs] for name in key.acquisitions])
    facts = {
        "sizes": {part: len(rows.arrays[f"{part}_targets"]) for part in PARTS},
        "n_features": rows.arrays["pool_inputs"].shape[1],
        "checksum": checksum(*(rows.arrays[name] for name in sorted(rows.arrays))),
    }
    return Findings(data={**rows.data, **facts}, arrays={**arrays, "share": share})


def _on_device(arrays: Any) -> Data:
    """On a GPU as tensors there, so that predictions and scores never leave it; else as they are."""
    import torch

    if not torch.cuda.is_available():
        return dict(arrays)
    return {name: torch.as_tensor(values, device="cuda") for name, values in arrays.items()}


def _fit(key: Comparison, data: Data) -> StackedFit:
    from uqprism.training import MLP, StackedFit

    return StackedFit(
        n_members=key.config.n_members,
        network=MLP(hidden=key.config.hidden),
        validation=(data["validation_inputs"], data["validation_targets"]),
        max_epochs=key.config.epochs,
        patience=key.config.patience,
        progress=False,
    )


def _shares(fit: StackedFit, key: Comparison, data: Data) -> np.ndarray:
    """For one model per seed, on points drawn at random: 1 / (points * sum of squared chances), (acquisitions, seeds)."""
    config, count = key.config, len(data["pool_targets"])
    rng = np.random.default_rng(config.seed)
    rows = np.array([rng.choice(count, size=config.n_initial, replace=False) for _ in config.seeds])
    measures = [name for name in key.acquisitions if name != RANDOM]
    found = []
    for model in fit.many(data["pool_inputs"], data["pool_targets"], rows, config.seeds):
        table = evaluate(model.predict_ensemble(data["pool_inputs"]), measures)
        scores = [to_numpy(table[name]) if name != RANDOM else np.zeros(count) for name in key.acquisitions]
        found.append([_share(scaled(each, config.scores)) for each in scores])
    return np.array(found).T


def _share(scores: np.ndarray) -> float:
    weights = np.exp(scores - scores.max())
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))

"""The example: five models predict how many minutes each of 600 deliveries takes.

Its first four rows are the trips that `uqprism demo deliveries` prints; the others are like them, but shorter or longer.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from uqprism.app.inputs import Upload
from uqprism.ensemble import EnsemblePrediction

NAME, TARGET = "deliveries.csv", "duration [min]"
ROWS, SEED = 600, 7
ABOUT = (
    "five models predict how many minutes a delivery takes. In a storm all of them expect a wide range of times: noise. In the "
    "district “new”, where nobody has ever driven, the models disagree."
)
TRIPS = ("a road driven daily", "the same in a storm", "a district never visited", "that district in a storm")
DISTRICTS, WEATHERS = ("known", "known", "new", "new"), ("calm", "storm", "calm", "storm")
SHARES = (0.65, 0.15, 0.14, 0.06)
KILOMETRES = 8.0  # of the four trips
MEAN = np.array(
    [
        [21.0, 34.0, 22.0, 31.0],
        [21.3, 35.1, 35.5, 52.0],
        [20.8, 33.2, 28.0, 40.5],
        [21.1, 34.6, 41.0, 61.0],
        [20.9, 34.3, 30.5, 44.0],
    ]
)
SCALE = np.array(
    [
        [1.9, 9.5, 2.5, 10.0],
        [2.1, 10.5, 3.2, 12.5],
        [2.0, 9.8, 2.0, 9.0],
        [1.8, 10.1, 3.8, 13.0],
        [2.2, 10.0, 2.7, 11.0],
    ]
)


def trips() -> EnsemblePrediction:
    """Five Gaussian members, four trips."""
    return EnsemblePrediction.gaussian(mean=MEAN, scale=SCALE)


@cache
def deliveries() -> Upload:
    """The example as a CSV file, the same each time."""
    from uqprism.files.read import arrow_csv, pa

    rng = np.random.default_rng(SEED)
    kind = np.concatenate([range(4), rng.choice(4, p=SHARES, size=ROWS - 4)])
    kilometres = np.round(1.0 + rng.gamma(2.0, 3.5, size=ROWS), 1)
    kilometres[:4] = KILOMETRES
    mean, scale = _members(rng, kind, kilometres / KILOMETRES)
    expected = mean.mean(axis=0) + mean.std(axis=0) * rng.normal(size=ROWS)  # the average is as far off as the models are apart
    columns = {
        "delivery_id": [f"D{i:04d}" for i in range(ROWS)],
        "kilometres": kilometres,
        "weather": [WEATHERS[i] for i in kind],
        "district": [DISTRICTS[i] for i in kind],
        TARGET: np.round(expected + scale.mean(axis=0) * rng.normal(size=ROWS), 1),
        **{f"mean_{i}": np.round(row, 3) for i, row in enumerate(mean)},
        **{f"variance_{i}": np.round(row**2, 3) for i, row in enumerate(scale)},
    }
    stream = pa.BufferOutputStream()
    arrow_csv.write_csv(pa.table(columns), stream, arrow_csv.WriteOptions(quoting_style="none"))
    return Upload(NAME, stream.getvalue().to_pybytes())


def _members(rng: np.random.Generator, kind: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and scales, (members, rows): of the four trips as they are, of the others stretched and varied."""
    centre = MEAN.mean(axis=0)
    apart = rng.permuted((MEAN - centre)[:, kind], axis=0) * np.exp(0.4 * rng.normal(size=len(kind)))
    mean = length * (centre[kind] + apart)
    scale = length * SCALE[:, kind] * np.exp(0.2 * rng.normal(size=len(kind)))
    mean[:, :4], scale[:, :4] = MEAN, SCALE
    return mean, scale

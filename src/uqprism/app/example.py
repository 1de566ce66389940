"""The embedded example: ten models predict how many minutes each of 600 deliveries takes."""

from __future__ import annotations

from functools import cache

import numpy as np

from uqprism.app.uploads import Upload
from uqprism.files.read import arrow_csv, pa

NAME = "deliveries.csv"
ROWS, MEMBERS, SEED = 600, 10, 7
ABOUT = (
    f"Ten models predict how many minutes each of {ROWS} deliveries takes; `y` is how long it took. In a storm all models are "
    "unsure together: noise. In the district `new`, where nobody has ever driven, they disagree: more data would help."
)
WEATHER = {"calm": (0.62, 1.0), "rain": (0.28, 1.8), "storm": (0.10, 4.0)}  # how often, and how much noisier
DISTRICTS = {"centre": (0.55, 0.4), "suburb": (0.35, 0.8), "new": (0.10, 5.0)}  # how often, and how far models are from the truth


@cache
def deliveries() -> Upload:
    """The example as a file, the same each time."""
    rng = np.random.default_rng(SEED)
    kilometres = np.round(1.0 + rng.gamma(2.0, 2.5, size=ROWS), 1)
    weather, noisier = _drawn(rng, WEATHER)
    district, ignorance = _drawn(rng, DISTRICTS)
    truth = 6.0 + 2.4 * kilometres + 5.0 * (noisier > 3.0)
    scale = (1.0 + 0.12 * kilometres) * noisier
    shared = ignorance * rng.normal(size=ROWS)  # models trained on the same data are wrong together, too
    mean = truth + shared + ignorance * rng.normal(size=(MEMBERS, ROWS))
    variance = (scale * np.exp(0.12 * rng.normal(size=(MEMBERS, ROWS)))) ** 2
    columns = {
        "delivery": [f"D{i:04d}" for i in range(ROWS)],
        "kilometres": kilometres,
        "weather": weather,
        "district": district,
        "y": np.round(truth + scale * rng.normal(size=ROWS), 1),
        **{f"mean_{i}": np.round(row, 3) for i, row in enumerate(mean)},
        **{f"variance_{i}": np.round(row, 3) for i, row in enumerate(variance)},
    }
    stream = pa.BufferOutputStream()
    arrow_csv.write_csv(pa.table(columns), stream, arrow_csv.WriteOptions(quoting_style="none"))
    return Upload(NAME, stream.getvalue().to_pybytes())


def _drawn(rng: np.random.Generator, kinds: dict[str, tuple[float, float]]) -> tuple[list[str], np.ndarray]:
    """A kind for each row, and its number."""
    names, shares = list(kinds), [share for share, _ in kinds.values()]
    picked = [names[i] for i in rng.choice(len(names), p=shares, size=ROWS)]
    return picked, np.array([kinds[name][1] for name in picked])

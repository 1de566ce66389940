"""Many models at once: one for each site, scored and watched in parallel by Dask, every night.

`python examples/many_models.py` makes five sites in a temporary folder and plays two nights; in the second, one of them has
changed. Each site is a folder with `served` (of `Served.save`), `watch.npz` (of `Watch.save`) and the night's `landing.parquet`.
With a cluster, start `dask.distributed.Client("tcp://scheduler:8786")` before, and `tonight` runs there; the sites must lie where
all workers see them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd

import uqprism as up

NEW, ANSWERS, MODEL, WATCH = "landing.parquet", "answers.parquet", "served", "watch.npz"


def one_site(site: Path, night: str) -> dict[str, Any]:
    """Answer the rows that have landed at a site, and look whether they are as usual."""
    served, watch = up.Served.load(site / MODEL), up.Watch.load(site / WATCH)
    rows = pd.read_parquet(site / NEW)
    ensemble = served.ensemble(rows)
    answers = served.answers(ensemble, rows.index)
    rows.join(answers).to_parquet(site / ANSWERS)
    found = watch.update(ensemble, source=night)
    watch.save(site / WATCH)  # last: a night that was cut off before is done again
    return {
        "site": site.name,
        "rows": len(rows),
        "flagged": int(answers["flag"].sum()),
        "alarm": ", ".join(sorted({each.kind for each in found.new})) or "none",
    }


def tonight(folder: str | Path, night: str, **how: Any) -> pd.DataFrame:
    """All sites, a task each; `how` are arguments of `dask.compute`, such as `scheduler="threads"` and `num_workers=4`."""
    sites = sorted(path for path in Path(folder).iterdir() if (path / NEW).exists())
    return pd.DataFrame(dask.compute(*[dask.delayed(one_site)(site, night) for site in sites], **how))


# Sites to try it on ---------------------------------------------------------------------------------------------------------


def measured(n: int, seed: int, slope: float, furthest: float = 2.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a site, and their outcomes."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-furthest, furthest, n)
    return pd.DataFrame({"x": x}), slope * np.abs(x) + 0.3 * rng.normal(size=n)


def deploy(site: Path, number: int) -> None:
    """Train the model of a site, and begin to watch it."""
    slope = 1.0 + number
    settings: dict[str, Any] = {"hidden": (16,), "max_epochs": 30, "learning_rate": 0.01, "device": "cpu", "progress": False}
    model = up.DeepEnsembleRegressor(n_members=4, head="crps", random_state=number, **settings).fit(*measured(200, number, slope))
    served = up.Served.calibrated(model, *measured(200, 100 + number, slope))
    served.save(site / MODEL)
    up.Watch(served.ensemble(measured(300, 200 + number, slope)[0]), level=0.01).save(site / WATCH)


def main() -> None:
    """Two nights at five sites."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(5):
            deploy(Path(folder) / f"site-{number}", number)
        for night, changed in (("monday", ()), ("tuesday", (3,))):
            for number in range(5):
                rows, _ = measured(100, 300 + number, 1.0 + number, furthest=6.0 if number in changed else 2.0)
                rows.to_parquet(Path(folder) / f"site-{number}" / NEW)
            print(f"{night}\n{tonight(folder, night, scheduler='threads', num_workers=2).to_string(index=False)}")


if __name__ == "__main__":
    main()

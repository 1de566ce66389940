"""Which of many measures are as good as the best, given that the best was picked among many."""

from __future__ import annotations

import numpy as np

SAME = 1e-9  # differences below this share of the usual noise are rounding


def not_worse(values: np.ndarray, replicates: np.ndarray, higher_is_better: bool, level: float = 0.95) -> np.ndarray:
    """Whether each measure is not significantly worse than the best, (measures,).

    A measure leaves when some other is better by more than chance explains, where chance is the largest of all its studentised
    differences in the resamples: the best of many noisy values is too good to be true, and a test of each measure against it
    alone would throw out nearly all of them on pure noise (Hsu 1981, multiple comparisons with the best; Hansen, Lunde and
    Nason 2011, the model confidence set). The best itself always stays.

    Args:
        values: (measures,).
        replicates: the same in paired resamples, (resamples, measures).
        higher_is_better: the direction.
        level: how often the truly best measure stays.
    """
    sign = 1.0 if higher_is_better else -1.0
    noise = sign * (replicates - replicates.mean(axis=0))
    rounding = SAME * noise.std(axis=0).max(initial=0.0)
    stays = np.ones(len(values), dtype=bool)
    for i in range(len(values)):
        apart = noise - noise[:, [i]]
        scale = apart.std(axis=0)
        rivals = scale > rounding
        if not rivals.any():
            continue
        lead = np.max(sign * (values[rivals] - values[i]) / scale[rivals])
        by_chance = np.quantile(np.max(apart[:, rivals] / scale[rivals], axis=1), level)
        stays[i] = lead <= max(by_chance, 0.0)
    stays[np.argmax(sign * values)] = True
    return stays

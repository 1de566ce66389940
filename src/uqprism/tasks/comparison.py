"""Which of many measures are as good as the best, given that the best was picked among many."""

from __future__ import annotations

import numpy as np

from uqprism.errors import InvalidValueError

SAME = 1e-9  # differences below this share of the usual noise are rounding


def not_worse(
    values: np.ndarray,
    replicates: np.ndarray,
    higher_is_better: bool,
    *,
    level: float = 0.95,
    margin: float = 0.0,
    degrees: int | None = None,
) -> np.ndarray:
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
        margin: leads up to this do not count, however certain.
        degrees: of freedom of the noise, where it was estimated from a few runs: two runs that agree may do so by chance.
    """
    if not 0.0 < level < 1.0:
        raise InvalidValueError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    if margin < 0.0:
        raise InvalidValueError(f"margin must not be negative, got {margin}")
    sign = 1.0 if higher_is_better else -1.0
    noise = sign * (replicates - replicates.mean(axis=0))
    rounding = SAME * noise.std(axis=0).max(initial=0.0)
    doubt = few_runs(degrees, noise.shape)
    stays = np.ones(len(values), dtype=bool)
    for i in range(len(values)):
        apart = noise - noise[:, [i]]
        scale = apart.std(axis=0)
        rivals = scale > rounding
        lead = sign * (values - values[i]) - margin
        if (lead[~rivals] > SAME * np.ptp(values)).any():  # a lead without any noise is certain
            stays[i] = False
            continue
        if not rivals.any():
            continue
        by_chance = np.quantile(np.max(doubt[:, rivals] * apart[:, rivals] / scale[rivals], axis=1), level)
        stays[i] = np.max(lead[rivals] / scale[rivals]) <= max(by_chance, 0.0)
    stays[np.argmax(sign * values)] = True
    return stays


def few_runs(degrees: int | None, shape: tuple[int, ...]) -> np.ndarray:
    """What turns normal noise into that of a t distribution, as factors: how wrong a spread from few runs may be."""
    if degrees is None:
        return np.ones(shape)
    return np.sqrt(degrees / np.random.default_rng(0).chisquare(degrees, shape))

"""Which rows train and which rows judge: parts of the data that double in size, repeated with other rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uqprism.errors import ArgumentError, InvalidValueError
from uqprism.tasks.active_learning.settings import integer

FEWEST = 8  # rows of the smallest training set
FEWEST_TEST = 20  # rows to judge by


@dataclass(frozen=True)
class Plan:
    """The training sets of an audit.

    The rows of a repeat are divided into `parts` parts, then into half as many of twice the size, down to one that has them all:
    parts of a size share no row, and each is the union of two of the size below. What a doubling removes is therefore
    measured on the same rows.

    Attributes:
        training: the rows to train on by repeat, (repeats, rows), in the order in which they are divided.
        test: the rows to judge by, (repeats, test rows), or None where a test set was given.
        parts: into how many parts the rows are divided at first, a power of two.
    """

    training: np.ndarray
    test: np.ndarray | None
    parts: int

    @classmethod
    def of(cls, n_rows: int, *, has_test: bool, parts: Any, repeats: Any, test_share: float, seed: Any) -> Plan:
        """Divide so many rows; without a test set each repeat holds out other rows of them."""
        parts, repeats, seed = integer("parts", parts, 2), integer("repeats", repeats, 1), integer("seed", seed, 0)
        if parts & (parts - 1):
            raise ArgumentError(f"parts must be a power of two, such as 8, so that training sets double; got {parts}")
        if not 0.0 < test_share < 1.0:
            raise InvalidValueError(f"test_share must be between 0 and 1, got {test_share}; 0.25 is usual")
        held = 0 if has_test else round(test_share * n_rows)
        each = (n_rows - held) // parts
        if each < FEWEST or (not has_test and held < FEWEST_TEST):
            raise InvalidValueError(
                f"{n_rows} rows are too few for {parts} parts{'' if has_test else f' and {held} rows to judge by'}: a part needs "
                f"{FEWEST} rows{'' if has_test else f', and {FEWEST_TEST} rows must be held out'}; take fewer parts"
            )
        rng = np.random.default_rng([seed, 0])
        order = rng.permutation(n_rows)
        rolled = [np.roll(order, -repeat * held) for repeat in range(repeats)]  # folds, which only many repeats share
        training = np.stack([rng.permutation(rows[held:])[: each * parts] for rows in rolled])
        return cls(training, None if has_test else np.stack([rows[:held] for rows in rolled]), parts)

    @property
    def repeats(self) -> int:
        """How often the rows are divided anew."""
        return len(self.training)

    @property
    def counts(self) -> list[int]:
        """Into how many parts the rows are divided, at each size."""
        return [self.parts >> level for level in range(self.parts.bit_length())]

    @property
    def sizes(self) -> list[int]:
        """Rows of a training set, from the smallest to the largest; each is twice the one before."""
        return [self.training.shape[1] // count for count in self.counts]

    def rows(self, level: int, repeat: int) -> np.ndarray:
        """The training sets of a size, (parts, rows of each)."""
        return self.training[repeat].reshape(self.counts[level], -1)

    @staticmethod
    def seeds(seed: int, level: int, repeat: int, count: int) -> list[int]:
        """A seed for each training set of a size."""
        state = np.random.SeedSequence([seed, 1, level, repeat]).generate_state(count)
        return [int(each) for each in state >> 1]  # half the range: some libraries take 31 bits

"""Enumeration: every mask is asked, so that the effect is known and not estimated. The ceiling, at 2**N calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...backends.estimation.effects import Effects
from ...backends.estimation.values import banzhaf, shapley
from ...backends.interventions.sets import bit_codes, reading_sets
from .interface import CountedReader, Pool, TrainingPool


@dataclass(frozen=True)
class ExactBanzhaf:
    """A candidate's mean effect over all sets of the others, each equally likely."""

    estimand: ClassVar[str] = "banzhaf"

    def fit(self, training: Sequence[TrainingPool]) -> "ExactBanzhaf":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns exact values, whose intervals are points."""
        exact = banzhaf(_enumerate(reader))
        return Effects(exact, exact, exact)


@dataclass(frozen=True)
class ExactShapley:
    """A candidate's mean effect over all orders in which the pool could be filled."""

    estimand: ClassVar[str] = "shapley"

    def fit(self, training: Sequence[TrainingPool]) -> "ExactShapley":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns exact values, whose intervals are points."""
        exact = shapley(_enumerate(reader))
        return Effects(exact, exact, exact)


def _enumerate(reader: CountedReader) -> np.ndarray:
    masks = reading_sets(reader.pool, reader.pool)
    return reader(masks)[np.argsort(bit_codes(masks))]  # (2**N,) by bit code

"""One candidate at a time: taken from the whole pool, or shown alone. The commonest ablations of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...backends.estimation.effects import Effects
from .interface import CountedReader, Pool, TrainingPool


@dataclass(frozen=True)
class LeaveOneOut:
    """f(all) - f(all but i), N + 1 calls. Two passages that say the same have an effect near 0 each.

    With fewer calls, candidates drawn at random are left out; the others' effects are 0, without a claim to be.
    """

    estimand: ClassVar[str] = "leave_one_out"

    def fit(self, training: Sequence[TrainingPool]) -> "LeaveOneOut":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns exact differences: the reader is deterministic, so each interval is a point."""
        return _differences(pool, reader, rng, start=True)


@dataclass(frozen=True)
class AddOneIn:
    """f(i alone) - f(nothing), N + 1 calls; with fewer as in :class:`LeaveOneOut`."""

    estimand: ClassVar[str] = "add_one_in"

    def fit(self, training: Sequence[TrainingPool]) -> "AddOneIn":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns exact differences: the reader is deterministic, so each interval is a point."""
        return _differences(pool, reader, rng, start=False)


def _differences(pool: Pool, reader: CountedReader, rng: np.random.Generator, *, start: bool) -> Effects:
    """Flips the bit of as many candidates as the budget allows, from all kept or from none kept."""
    flipped = rng.permutation(pool.size)[: max(reader.budget - 1, 0)]
    masks = np.full((len(flipped) + 1, pool.size), start)
    masks[np.arange(len(flipped)), flipped] = not start
    outcomes = reader(masks)
    change = outcomes[-1] - outcomes[:-1]
    values = np.zeros(pool.size)
    values[flipped] = change if start else -change
    bounds = np.full(pool.size, np.nan)
    bounds[flipped] = values[flipped]
    return Effects(values, bounds, bounds)

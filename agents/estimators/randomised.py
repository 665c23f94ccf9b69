"""Randomised reading sets: the reader is shown sets drawn at random, and effects are read off the outcomes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...backends.estimation import designs
from ...backends.estimation.effects import Effects
from ...backends.estimation.propensity import doubly_robust, ips, snips
from ...backends.estimation.regression import lasso, least_squares, paired_least_squares
from ...backends.estimation.sampling import sampled_shapley
from .interface import CountedReader, Pool, TrainingPool

DESIGNS: dict[str, designs.Design] = {
    "uniform": designs.uniform,
    "antithetic": designs.antithetic,
    "orthogonal": designs.orthogonal,
}
HALF = 0.5  # the propensity of every bit of every design

Fit = Callable[[NDArray[np.bool_], NDArray[np.float64], int], Effects]
METHODS: dict[str, Fit] = {
    "lasso": lambda masks, y, population: lasso(masks, y),
    "ips": lambda masks, y, population: ips(masks, y, HALF, population=population),
    "snips": lambda masks, y, population: snips(masks, y, HALF, population=population),
    "least_squares": lambda masks, y, population: least_squares(masks, y, population=population),
    "paired_least_squares": lambda masks, y, population: paired_least_squares(masks, y, population=population),
    "doubly_robust": lambda masks, y, population: doubly_robust(masks, y, HALF, population=population),
}
"""From masks, their outcomes and the number of all masks to effects."""


@dataclass(frozen=True)
class RandomisedMasks:
    """Spends the whole budget on random masks and estimates Banzhaf values from their outcomes.

    Attributes:
        method: ``lasso`` (ContextCite), ``ips``, ``snips``, ``least_squares``, ``paired_least_squares`` (needs the
            antithetic design) or ``doubly_robust``.
        design: ``uniform``, ``antithetic`` or ``orthogonal``.
    """

    estimand: ClassVar[str] = "banzhaf"
    method: str
    design: str = "uniform"

    def __post_init__(self) -> None:
        for option, value, known in (("method", self.method, METHODS), ("design", self.design, DESIGNS)):
            if value not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}, got {value!r}")

    def fit(self, training: Sequence[TrainingPool]) -> "RandomisedMasks":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns effects; with intervals, but for the lasso."""
        masks = DESIGNS[self.design](pool.size, reader.budget, rng)
        return METHODS[self.method](masks, reader(masks), 1 << pool.size)


@dataclass(frozen=True)
class SampledShapley:
    """Shapley values from random orders of the candidates."""

    estimand: ClassVar[str] = "shapley"

    def fit(self, training: Sequence[TrainingPool]) -> "SampledShapley":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns means over orders, with intervals over pairs of them."""
        return sampled_shapley(reader, pool.size, reader.budget, rng)

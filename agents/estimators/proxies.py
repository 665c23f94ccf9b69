"""Proxies: what is cheap to look at and is often taken for utility. They order candidates and measure no effect.

So that their errors can be put beside those of estimators, a proxy is scaled to nats by a straight line that is fitted
on pools of other families; the line changes no order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...backends.estimation.effects import Effects
from ...backends.estimation.values import banzhaf
from .interface import CountedReader, Pool, TrainingPool


@dataclass(frozen=True)
class Attention:
    """The share of attention that a candidate gets while the reader answers with all in sight: one reader call.

    Attributes:
        line: Slope (nats a token) and intercept that scale a share; set by :meth:`fit`.
    """

    estimand: ClassVar[str] = "order"
    line: tuple[float, float] = (1.0, 0.0)

    def fit(self, training: Sequence[TrainingPool]) -> "Attention":
        """Fits the line."""
        return replace(self, line=_line([known.attention for known in training], training))

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns scaled shares, without intervals."""
        return _scaled(reader.attention(), self.line)


@dataclass(frozen=True)
class Similarity:
    """The dense retriever's score: no reader call.

    Attributes:
        line: Slope (nats a token) and intercept that scale a score; set by :meth:`fit`.
    """

    estimand: ClassVar[str] = "order"
    line: tuple[float, float] = (1.0, 0.0)

    def fit(self, training: Sequence[TrainingPool]) -> "Similarity":
        """Fits the line."""
        return replace(self, line=_line([known.pool.scores[:, 0] for known in training], training))

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns scaled scores, without intervals."""
        return _scaled(pool.scores[:, 0], self.line)


@dataclass(frozen=True)
class Chance:
    """A random order of the candidates: the floor."""

    estimand: ClassVar[str] = "order"

    def fit(self, training: Sequence[TrainingPool]) -> "Chance":
        """Learns nothing."""
        return self

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns effects that order the candidates at random and are all but zero, without intervals."""
        return _scaled(rng.permutation(pool.size), (1e-9, 0.0))


def _line(proxies: Sequence[NDArray[np.float32]], training: Sequence[TrainingPool]) -> tuple[float, float]:
    effects = np.concatenate([banzhaf(known.outcomes) for known in training])
    x = np.concatenate(proxies).astype(np.float64)
    slope, intercept = np.polyfit(x, effects, 1)
    # A proxy that falls as utility rises still claims that more is better: its order is not turned round by the data.
    return (float(slope), float(intercept)) if slope > 0 else (1e-9, float(effects.mean()))


def _scaled(values: NDArray, line: tuple[float, float]) -> Effects:
    scaled = line[0] * np.asarray(values, dtype=np.float64) + line[1]
    nothing = np.full(len(scaled), np.nan)
    return Effects(scaled, nothing, nothing)

"""Estimators that learn from other queries: what kinds of candidates help, and how strongly candidates interact.

They learn from pools of other package families, whose outcomes are known in full, and never from the query they judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...backends.estimation import designs
from ...backends.estimation.effects import Effects, without_interval
from ...backends.estimation.kernel import mean_spectrum, posterior
from ...backends.estimation.values import banzhaf
from ...backends.interventions.sets import bit_codes, reading_sets
from .interface import CountedReader, Pool, TrainingPool

Floats = NDArray[np.float64]
KERNEL_DESIGNS = ("uniform", "orthogonal", "greedy")


@dataclass(frozen=True, eq=False)
class UtilityHead:
    """Predicts each candidate's effect from its ranks, scores and content: no reader call.

    Ridge regression on features that say how a candidate compares with its pool; effects of the training pools are
    exact Banzhaf values.

    Attributes:
        penalty: Of the squared weights of standardised features.
        weights: (3, 1 + features): means, scales and weights (the intercept in the first place); set by :meth:`fit`.
    """

    estimand: ClassVar[str] = "banzhaf"
    penalty: float = 30.0
    weights: Floats | None = None

    def fit(self, training: Sequence[TrainingPool]) -> "UtilityHead":
        """Learns the weights."""
        x = np.concatenate([_features(known.pool) for known in training])  # (P N, F)
        y = np.concatenate([banzhaf(known.outcomes) for known in training])
        mean, scale = x.mean(0), np.maximum(x.std(0), 1e-6)
        z = (x - mean) / scale
        slopes = np.linalg.solve(z.T @ z + self.penalty * np.eye(z.shape[1]), z.T @ (y - y.mean()))
        return replace(self, weights=np.column_stack([[0.0, 1.0, y.mean()], np.stack([mean, scale, slopes])]))

    def predict(self, pool: Pool) -> Floats:
        """Returns (N,) predicted effects in nats a token.

        Raises:
            ValueError: It was not fitted.
        """
        if self.weights is None:
            raise ValueError("the utility head was not fitted; call fit with pools of other families first")
        mean, scale, slopes = self.weights[:, 1:]
        return self.weights[2, 0] + (_features(pool) - mean) / scale @ slopes

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns predicted effects, without intervals."""
        return without_interval(self.predict(pool))


@dataclass(frozen=True, eq=False)
class WalshKernel:
    """Bayesian regression whose prior knows how much of the variance interactions of each order hold elsewhere.

    Attributes:
        design: ``uniform``; ``orthogonal``; or ``greedy``, the masks after which least is left to know under the prior.
        head: Predicts the effects beforehand, so that masks only have to tell what differs; none where None.
        energy: (N + 1,) prior variance of a coefficient by order; set by :meth:`fit`.
        plan: (2**N, N) masks in the order of the greedy design; set by :meth:`fit`.
    """

    estimand: ClassVar[str] = "banzhaf"
    design: str = "greedy"
    head: UtilityHead | None = None
    energy: Floats | None = None
    plan: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.design not in KERNEL_DESIGNS:
            raise ValueError(f"design must be one of {', '.join(KERNEL_DESIGNS)}, got {self.design!r}")

    def fit(self, training: Sequence[TrainingPool]) -> "WalshKernel":
        """Measures the prior; with a head, of what the head leaves over on pools that it was not fitted on."""
        games = np.stack([known.outcomes for known in training])  # (P, S)
        size = training[0].pool.size
        head = self.head
        if head is not None:
            for part in (0, 1):
                other = head.fit(training[1 - part :: 2])
                games[part::2] -= np.stack([_additive(other.predict(known.pool)) for known in training[part::2]])
            head = head.fit(training)
        energy = mean_spectrum(games)
        plan = designs.greedy(size, 1 << size, energy) if self.design == "greedy" else None
        return replace(self, head=head, energy=energy, plan=plan)

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Returns posterior means with credible intervals."""
        if self.energy is None:
            raise ValueError("the kernel was not fitted; call fit with pools of other families first")
        if self.plan is not None:
            masks = designs.moved(self.plan[: reader.budget], rng)
        elif self.design == "orthogonal":
            masks = designs.orthogonal(pool.size, reader.budget, rng)
        else:
            masks = designs.uniform(pool.size, reader.budget, rng)
        prior = None if self.head is None else self.head.predict(pool)
        return posterior(masks, reader(masks), self.energy, prior)


def _features(pool: Pool) -> Floats:
    """(N, F): 1 / (1 + rank), 0 where a retriever did not return it; scores and content, also relative to the pool."""
    found = pool.ranks >= 0
    ranks = np.where(found, 1 / (1.0 + np.maximum(pool.ranks, 0)), 0.0)  # (N, 2)
    own = np.concatenate([pool.scores, pool.content], axis=1).astype(np.float64)
    return np.concatenate([ranks, own, own - own.mean(0)], axis=1)


def _additive(effects: Floats) -> Floats:
    """Outcomes (2**N,) by bit code of a pool in which every candidate has its effect and nothing interacts."""
    masks = reading_sets(len(effects), len(effects))
    outcomes = np.empty(len(masks))
    outcomes[bit_codes(masks)] = masks @ effects
    return outcomes

"""What an estimator of utility is given and what it returns. Axes: N candidates, M masks, F features."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...backends.estimation.effects import Effects
from ...backends.interventions.sets import bit_codes

ESTIMANDS = ("banzhaf", "shapley", "leave_one_out", "add_one_in", "order")
"""What an estimator's effects are of. ``order`` names proxies: they rank candidates, and have no unit of their own."""


class BudgetError(ValueError):
    """An estimator asked for more distinct reader calls than it was given."""


class Pool(NamedTuple):
    """What is known of a query and its pool before the reader is called. No outcome and no label is here.

    Attributes:
        query: (d,) float32, embedding of the question.
        scores: (N, 2) float32, by the dense and the sparse retriever.
        ranks: (N, 2) int16, from 0; -1 where a retriever did not return the candidate.
        content: (N, F) float32, query-passage features of each candidate.
    """

    query: NDArray[np.float32]
    scores: NDArray[np.float32]
    ranks: NDArray[np.int16]
    content: NDArray[np.float32]

    @property
    def size(self) -> int:
        """Number of candidates N."""
        return len(self.scores)


class TrainingPool(NamedTuple):
    """A pool of another family whose outcomes are known in full: what pooled estimators learn from.

    Attributes:
        pool: What was known of it beforehand.
        outcomes: (2**N,) float64, nats a token, indexed by the bit code of the mask.
        attention: (N,) float32, shares of attention over the whole pool.
    """

    pool: Pool
    outcomes: NDArray[np.float64]
    attention: NDArray[np.float32]


class CountedReader:
    """A reader that answers masks and counts distinct ones: asking twice costs once.

    Args:
        outcome: Maps masks (M, N) bool to outcomes (M,) in nats a token: U_self in production; U_ref where an
            estimator is scored.
        attention: Returns the shares of attention (N,) that the candidates get when all are shown.
        pool: Number of candidates N.
        budget: Most distinct masks.
    """

    def __init__(
        self,
        outcome: Callable[[NDArray[np.bool_]], NDArray[np.float64]],
        attention: Callable[[], NDArray[np.float32]],
        *,
        pool: int,
        budget: int,
    ) -> None:
        if budget < 1:
            raise ValueError(f"budget must be at least 1 reader call, got {budget}")
        self.pool = pool
        self.budget = budget
        self._outcome = outcome
        self._attention = attention
        self._known: dict[int, float] = {}

    @property
    def calls(self) -> int:
        """Distinct reader calls so far."""
        return len(self._known)

    @property
    def asked(self) -> frozenset[int]:
        """Bit codes of the masks that were asked."""
        return frozenset(self._known)

    def __call__(self, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns the outcomes (M,) of masks (M, N).

        Raises:
            BudgetError: They would cost more calls than are left.
            ValueError: An outcome is NaN.
        """
        masks = np.asarray(masks, dtype=bool)
        codes = bit_codes(masks).tolist()
        new = [i for i, code in enumerate(codes) if code not in self._known and code not in codes[:i]]
        if self.calls + len(new) > self.budget:
            raise BudgetError(f"{len(new)} more reader calls were asked for after {self.calls}, of {self.budget}")
        if new:
            found = np.asarray(self._outcome(masks[new]), dtype=np.float64)
            if np.isnan(found).any():
                raise ValueError(f"the reader returned NaN for {int(np.isnan(found).sum())} of {len(new)} masks")
            self._known.update(zip((codes[i] for i in new), found.tolist(), strict=True))
        return np.array([self._known[code] for code in codes])

    def attention(self) -> NDArray[np.float32]:
        """Returns the shares of attention (N,) over the whole pool, which costs the call that shows all of it."""
        self(np.ones((1, self.pool), dtype=bool))
        return self._attention()


class Estimator(Protocol):
    """Says how much each candidate of a pool matters to the reader's answer."""

    estimand: ClassVar[str]

    def fit(self, training: Sequence[TrainingPool]) -> "Estimator":
        """Returns the estimator with what it learns from other families' pools; itself where it learns nothing."""

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        """Spends at most the reader's budget.

        Args:
            pool: What is known beforehand.
            reader: Answers masks, and counts.
            rng: Draws the masks.

        Returns:
            Effects of the N candidates in nats a token, with 95% intervals; NaN intervals where it has none.
        """

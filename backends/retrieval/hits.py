"""What every retriever returns, and the one rule by which documents of equal score are ordered."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Hits:
    """The k best documents of each of Q queries, best first; documents of equal score by ascending id.

    Attributes:
        ids: (Q, k) int64, positions in the corpus; no row repeats one, and none is a padding id.
        scores: (Q, k) float32, higher is better; the unit is the retriever's (cosine in [-1, 1], BM25 >= 0, or MaxSim
            in [-t, t] for a query of t tokens).
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Rank of each hit, (Q, k), from 0."""
        return np.broadcast_to(np.arange(self.ids.shape[1]), self.ids.shape)

    def rank_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the rank of each given document (Q, N) among its query's hits; k where it is not among them."""
        found = ids[:, :, None] == self.ids[:, None, :]  # (Q, N, k)
        return np.where(found.any(-1), found.argmax(-1), self.ids.shape[1])


def top_ids(scores: NDArray, k: int) -> NDArray[np.int64]:
    """Returns the ids (k,) of the k highest of the scores (D,), best first, equal scores by ascending id."""
    worst = np.partition(scores, len(scores) - k)[len(scores) - k]
    within = np.flatnonzero(scores >= worst)
    return within[np.argsort(-scores[within], kind="stable")][:k]


def check_k(k: int, documents: int) -> int:
    """Returns k, at most the number of documents; raises ValueError where it is below 1."""
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return min(k, documents)


def check_ids(ids: NDArray, queries: int, documents: int) -> NDArray[np.int64]:
    """Returns ids as int64 of shape (Q, N); raises ValueError for another shape or an id outside 0..D-1."""
    ids = np.asarray(ids)
    if ids.ndim != 2 or len(ids) != queries or ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers of shape ({queries}, N), got {ids.dtype} of shape {ids.shape}")
    if ids.size and not (ids.min() >= 0 and ids.max() < documents):
        raise ValueError(f"ids must lie in 0..{documents - 1}, got {ids.min()}..{ids.max()}")
    return ids.astype(np.int64)

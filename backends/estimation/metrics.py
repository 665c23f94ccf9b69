"""How good estimated effects are, against outcomes that are known."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .effects import Floats


def rmse(estimated: ArrayLike, exact: ArrayLike) -> float:
    """Root of the mean squared error over the N candidates, in the unit of the effects."""
    return float(np.sqrt(np.mean((np.asarray(estimated) - np.asarray(exact)) ** 2)))


def rank_correlation(estimated: ArrayLike, exact: ArrayLike) -> float:
    """Spearman's correlation, ties at their average rank; 0 where one side is constant, since that orders nothing."""
    x, y = (_ranks(np.asarray(side, dtype=np.float64)) for side in (estimated, exact))
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / scale) if scale > 0 else 0.0


def lds(predicted: ArrayLike, actual: ArrayLike) -> float:
    """Linear datamodelling score: rank correlation of predicted and actual outcomes over held-out masks (M,).

    Source: Park et al. 2023 (TRAK); for contexts Cohen-Wang et al. 2024 (ContextCite, arXiv:2409.00729).
    """
    return rank_correlation(predicted, actual)


def top_k_drop(values: ArrayLike, effects: ArrayLike, k: int) -> float:
    """How far the outcome falls when the k candidates of the greatest effects are taken from the whole pool.

    Args:
        values: (2**N,) outcomes by bit code.
        effects: (N,) estimated effects; ties go to pool order.
        k: Number of candidates taken away, 0 to N.
    """
    f = np.asarray(values, dtype=np.float64)
    top = np.argsort(-np.asarray(effects), kind="stable")[:k]
    everything = len(f) - 1
    return float(f[everything] - f[everything - int((1 << top).sum())])


def _ranks(values: Floats) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[place]

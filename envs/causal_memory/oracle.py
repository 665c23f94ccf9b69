"""What the best readings would have earned: for a single step, and for a session under its token budget.

For evaluation only: an oracle sees outcomes, which no policy may.
"""

import numpy as np
from numpy.typing import NDArray

from .core import UNLIMITED, Dynamics

_CELLS = 2**20
"""Entries (sessions x budgets) of the dynamic programme held at once."""


class Oracle:
    """The optimum over *all* reading sets, whatever intervention mode could reach them, so that arms share a yardstick.

    Args:
        dynamics: An environment's ``dynamics``, with tabular outcomes.

    Raises:
        ValueError: Outcomes are live, so that not every reading set is known.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        if dynamics.net is None or dynamics.context is None:
            raise ValueError("the oracle needs an enumerated table; with live outcomes most reading sets are unknown")
        self._net, self._context = dynamics.net, dynamics.context  # (R, S)
        self._limit = dynamics.limit
        self._sets = dynamics.table.sets
        self._best = self._net.argmax(axis=1)  # (R,); the first, and so smallest, of equals
        self._frontier = _frontier(self._net, self._context)  # (R, K)

    def best(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the best reading set of each row and its net utility, with no regard to the session's budget.

        Args:
            rows: Rows, any shape.

        Returns:
            Columns and net utilities in the shape of ``rows``.
        """
        columns = self._best[rows]
        return columns, self._net[rows, columns]

    def sessions(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the best readings of whole sessions under their token budget, all rows known beforehand.

        A multiple-choice knapsack, solved exactly by dynamic programming over the tokens left. An over-budget
        reading, which the environment cuts down to a smaller set, never beats asking for that set.

        Args:
            rows: Rows (B, T), as from :meth:`~recallgym.envs.causal_memory.core.Dynamics.session_rows`.

        Returns:
            Columns (B, T) and their net utilities (B, T).
        """
        columns = self._best[rows]  # (B, T)
        tight = np.flatnonzero(self._context[rows, columns].sum(axis=1) > self._limit)
        if self._limit < UNLIMITED:
            size = max(1, _CELLS // (self._limit + 1))
            for start in range(0, len(tight), size):
                part = tight[start : start + size]
                columns[part] = self._knapsack(rows[part])
        return columns, self._net[rows, columns]

    def actions(self, columns: NDArray[np.integer]) -> NDArray[np.int8]:
        """Returns the bit actions (..., N+1) that ask for exactly these sets in hard mode with early exit."""
        bits = self._sets[columns]
        return np.concatenate([bits, bits.any(axis=-1, keepdims=True)], axis=-1).astype(np.int8)

    def _knapsack(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        sessions, steps = rows.shape
        options = self._frontier[rows]  # (B, T, K)
        net = np.take_along_axis(self._net[rows], options, axis=2)  # (B, T, K)
        tokens = np.take_along_axis(self._context[rows], options, axis=2)  # (B, T, K)
        left = np.arange(self._limit + 1)  # (L+1,)
        value = np.zeros((sessions, len(left)))  # (B, L+1): the best of the steps still to come
        chosen = np.zeros((steps, sessions, len(left)), dtype=np.int16)  # (T, B, L+1)
        for t in reversed(range(steps)):
            future, value = value, np.full_like(value, -np.inf)
            for option in range(options.shape[2]):
                after = left - tokens[:, t, option, None]  # (B, L+1)
                total = np.take_along_axis(future, np.maximum(after, 0), axis=1) + net[:, t, option, None]
                better = (after >= 0) & (total > value)
                np.copyto(value, total, where=better)
                np.copyto(chosen[t], option, where=better)
        columns = np.empty((sessions, steps), dtype=np.int64)
        budget, everyone = np.full(sessions, self._limit), np.arange(sessions)
        for t in range(steps):
            option = chosen[t, everyone, budget]  # (B,)
            columns[:, t] = options[everyone, t, option]
            budget = budget - tokens[everyone, t, option]
        return columns


def _frontier(net: NDArray[np.float64], context: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns each row's undominated sets (R, K): none is both cheaper and better. Padded with the empty set."""
    order = np.lexsort((-net, context), axis=1)  # (R, S): by tokens, the better first
    ordered = np.take_along_axis(net, order, axis=1)
    before = np.maximum.accumulate(ordered, axis=1)[:, :-1]
    keep = np.concatenate([np.ones((len(net), 1), dtype=bool), ordered[:, 1:] > before], axis=1)  # (R, S)
    width = int(keep.sum(axis=1).max())
    first = np.argsort(~keep, axis=1, kind="stable")[:, :width]  # the kept ones, in order, then others
    frontier = np.take_along_axis(order, first, axis=1)
    return np.where(np.take_along_axis(keep, first, axis=1), frontier, 0)

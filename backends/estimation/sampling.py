"""Shapley values by sampled permutations, under a budget of distinct reader calls."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..interventions.sets import bit_codes
from .effects import Effects, Floats, with_interval

Ask = Callable[[NDArray[np.bool_]], Floats]
MOST_PAIRS = 10_000  # once all masks are known, permutations cost nothing: stop here


def sampled_shapley(ask: Ask, candidates: int, budget: int, rng: np.random.Generator) -> Effects:
    """Fills the pool in random orders, each also backwards, until the next would cost more calls than are left.

    Args:
        ask: Maps masks (M, N) to outcomes (M,).
        candidates: Number of candidates N.
        budget: Most distinct masks that are asked.
        rng: Draws the orders.

    Returns:
        Means over pairs of orders, with 95% intervals over pairs from two on. Where not even one order is affordable
        (N + 1 calls), the first candidates of one have its gains, and the others 0.

    Source: Castro et al. 2009; antithetic pairs after Mitchell et al. 2022.
    """
    known: set[int] = set()
    gains: list[Floats] = []  # of each pair
    while len(gains) < MOST_PAIRS:
        order = rng.permutation(candidates)
        pair = [_growing(order), _growing(order[::-1])]
        if not gains and len(_new(np.concatenate(pair), known)) > budget:
            pair = [pair[0][:budget]]
        new = _new(np.concatenate(pair), known)
        if len(known) + len(new) > budget:
            break
        known |= new
        gains.append(np.mean([_gains(ask(masks), masks) for masks in pair], axis=0))
        if len(known) == 1 << candidates and len(gains) >= 1 << candidates:
            break
    found = np.array(gains)  # (P, N)
    error = found.std(0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.full(candidates, np.nan)
    return with_interval(found.mean(0), error, max(len(found) - 1, 1))


def _growing(order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N + 1, N): nothing, then one candidate more at a time."""
    masks = np.zeros((len(order) + 1, len(order)), dtype=bool)
    for size in range(1, len(order) + 1):
        masks[size:, order[size - 1]] = True
    return masks


def _gains(outcomes: Floats, masks: NDArray[np.bool_]) -> Floats:
    """What each candidate added when it came; 0 where it never came."""
    added = masks[1:] & ~masks[:-1]  # (len - 1, N), one bit a row
    return np.asarray((np.diff(outcomes)[:, None] * added).sum(0))


def _new(masks: NDArray[np.bool_], known: set[int]) -> set[int]:
    return set(bit_codes(masks).tolist()) - known

"""Reading sets: which candidates of a pool a reader is shown, as bit rows in one fixed order."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def reading_sets(pool: int, budget: int) -> NDArray[np.bool_]:
    """Enumerates every set of at most ``budget`` candidates: by size, then lexicographically.

    Args:
        pool: Number of candidates N.
        budget: Most candidates that a reader is shown, k <= N.

    Returns:
        Bits of shape (S, N); row 0 is the empty set. S is 42 for N = 6, k = 3.
    """
    if not 0 < budget <= pool:
        raise ValueError(f"budget must lie in 1..pool, got budget={budget} with pool={pool}")
    rows = [c for size in range(budget + 1) for c in combinations(range(pool), size)]
    bits = np.zeros((len(rows), pool), dtype=bool)  # (S, N)
    for i, chosen in enumerate(rows):
        bits[i, list(chosen)] = True
    return bits


def bit_codes(bits: NDArray) -> NDArray[np.int64]:
    """Packs bits (..., N) into integers (...,): candidate i is worth 2**i."""
    return np.asarray(bits).astype(np.int64) @ (1 << np.arange(np.shape(bits)[-1], dtype=np.int64))


def set_lookup(pool: int, budget: int) -> NDArray[np.int16]:
    """Maps a bit code in [0, 2**N) to its row in :func:`reading_sets`; -1 where it holds more than k."""
    lookup = np.full(1 << pool, -1, dtype=np.int16)  # (2**N,)
    sets = reading_sets(pool, budget)
    lookup[bit_codes(sets)] = np.arange(len(sets), dtype=np.int16)
    return lookup

"""Exact effects of each candidate, from the outcomes of all masks. Four estimands, which differ: name the one you mean.

Of two passages that say the same, leave-one-out gives each near 0, add-one-in gives each the whole, Shapley and Banzhaf
give each a part.
"""

from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from .effects import Floats
from .walsh import orders


def banzhaf(values: ArrayLike) -> Floats:
    """Mean effect over all sets of the others, equally likely: what least squares on uniform masks targets.

    Args:
        values: (..., 2**N) outcomes by bit code.

    Returns:
        (..., N) float64.
    """
    return differences(values).mean(-1)


def average_effect(values: ArrayLike, propensity: ArrayLike) -> Floats:
    """Mean effect when the others are kept independently.

    Args:
        values: (..., 2**N) outcomes by bit code.
        propensity: (N,) or scalar in [0, 1]: keep probability of each candidate; 1/2 gives Banzhaf values.

    Returns:
        (..., N) float64.
    """
    gains = differences(values)  # (..., N, S / 2)
    candidates = gains.shape[-2]
    p = np.broadcast_to(np.asarray(propensity, dtype=np.float64), (candidates,))
    bits = (np.arange(gains.shape[-1])[:, None] >> np.arange(candidates - 1)) & 1  # (S / 2, N - 1)
    weights = np.stack([np.where(bits, q, 1 - q).prod(1) for q in (np.delete(p, i) for i in range(candidates))])
    return (gains * weights).sum(-1)


def shapley(values: ArrayLike) -> Floats:
    """Mean effect over all orders in which the pool could be filled (Shapley 1953); sums to f(all) - f(nothing).

    Args:
        values: (..., 2**N) outcomes by bit code.

    Returns:
        (..., N) float64.
    """
    gains = differences(values)  # (..., N, S / 2)
    n = gains.shape[-2]
    weight = np.array([factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)])
    return gains @ weight[orders(n - 1)]


def leave_one_out(values: ArrayLike) -> Floats:
    """f(all) - f(all but i), (..., N)."""
    return differences(values)[..., -1]


def add_one_in(values: ArrayLike) -> Floats:
    """f(i alone) - f(nothing), (..., N)."""
    return differences(values)[..., 0]


def differences(values: ArrayLike) -> Floats:
    """Returns (..., N, 2**(N - 1)): what each candidate adds to each set of the others, by the bit code of that set."""
    f = np.asarray(values, dtype=np.float64)
    size = f.shape[-1]
    if size & (size - 1) or size < 2:
        raise ValueError(f"expected outcomes of all 2**N masks with N >= 1, got {size}")
    found = []
    for i in range(size.bit_length() - 1):
        halves = f.reshape(*f.shape[:-1], -1, 2, 1 << i)  # bit i on the axis before the last
        found.append((halves[..., 1, :] - halves[..., 0, :]).reshape(*f.shape[:-1], -1))
    return np.stack(found, axis=-2)

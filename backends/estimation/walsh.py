"""The Walsh spectrum of a pool: how much of the outcome's variance single candidates explain, and interactions.

With s_i = +1 where candidate i is kept and -1 where not, every f is the sum over subsets T of c_T times the product of
s_i over T. Masks being equally likely, the terms are orthogonal, so that the squares c_T**2 add up to the variance.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .effects import Floats


def walsh(values: ArrayLike) -> Floats:
    """Transforms outcomes into coefficients.

    Args:
        values: (..., 2**N) outcomes, indexed by the bit code of the mask.

    Returns:
        (..., 2**N) float64 coefficients c_T, indexed by the bit code of T. That of {i} is half of i's Banzhaf value.
    """
    return _butterflies(values, lambda dropped, kept: ((dropped + kept) / 2, (kept - dropped) / 2))


def inverse(coefficients: ArrayLike) -> Floats:
    """Transforms coefficients (..., 2**N) back into outcomes."""
    return _butterflies(coefficients, lambda constant, slope: (constant - slope, constant + slope))


def orders(candidates: int) -> NDArray[np.int64]:
    """Returns (2**N,) int64: how many candidates each subset holds."""
    codes = np.arange(1 << candidates)
    return np.asarray((codes[:, None] >> np.arange(candidates) & 1).sum(1), dtype=np.int64)


def spectrum(values: ArrayLike) -> Floats:
    """Returns (..., N + 1) float64: the energy of each order; those from 1 on add up to the variance over masks."""
    energy = walsh(values) ** 2  # (..., S)
    candidates = energy.shape[-1].bit_length() - 1
    member = orders(candidates)[:, None] == np.arange(candidates + 1)  # (S, N + 1)
    return energy @ member


def main_effect_share(values: ArrayLike) -> Floats:
    """Returns (...,) the share of the variance over masks that main effects explain; NaN where nothing varies."""
    energy = spectrum(values)[..., 1:]
    total = energy.sum(-1)
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, energy[..., 0] / total, np.nan)


def _butterflies(values: ArrayLike, combine) -> Floats:  # type: ignore[no-untyped-def]
    """Combines the two halves of every candidate's axis in turn."""
    result = np.array(values, dtype=np.float64)
    size = result.shape[-1]
    if size & (size - 1) or not size:
        raise ValueError(f"expected outcomes of all 2**N masks, got {size}")
    for i in range(size.bit_length() - 1):
        halves = result.reshape(*result.shape[:-1], -1, 2, 1 << i)  # (..., S / 2**(i + 1), 2, 2**i): bit i
        result = np.stack(combine(halves[..., 0, :], halves[..., 1, :]), axis=-2).reshape(result.shape)
    return result

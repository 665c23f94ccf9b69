"""What every estimator of utility returns."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 0.95  # of every interval


class Effects(NamedTuple):
    """Effects of the N candidates of a pool, in the unit of the outcome; positive means that it helps.

    Attributes:
        values: (N,) float64.
        low: (N,) float64, lower end of the 95% interval; NaN where there is none.
        high: (N,) float64, upper end.
    """

    values: Floats
    low: Floats
    high: Floats


def with_interval(values: Floats, error: Floats, freedom: float) -> Effects:
    """Returns effects (N,) with Student's t intervals; NaN where there is no degree of freedom.

    Args:
        values: (N,) effects.
        error: (N,) standard errors.
        freedom: Degrees of freedom.
    """
    if freedom < 1:
        return without_interval(values)
    half = t_quantile(freedom) * error
    return Effects(values, values - half, values + half)


def without_interval(values: Floats) -> Effects:
    """Returns effects (N,) that come without intervals."""
    return Effects(values, np.full_like(values, np.nan), np.full_like(values, np.nan))


def checked(bits: NDArray[np.bool_], outcomes: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Returns masks (M, N) bool and outcomes (M,) float64.

    Raises:
        ValueError: They do not match, there are none, or an outcome is not finite.
    """
    masks, y = np.asarray(bits, dtype=bool), np.asarray(outcomes, dtype=np.float64)
    if masks.ndim != 2 or y.shape != masks.shape[:1] or not len(y):
        raise ValueError(f"expected masks (M, N) and outcomes (M,) with M >= 1, got {masks.shape} and {y.shape}")
    if not np.isfinite(y).all():
        lost = int((~np.isfinite(y)).sum())
        raise ValueError(f"{lost} of {len(y)} outcomes are not finite; ask those masks again, or leave them out")
    return masks, y


def correction(asked: int, population: int | None) -> float:
    """Factor on the standard error when masks are drawn without repetition from ``population``; 1 where None.

    Source: the finite population correction, sqrt((S - M) / (S - 1)).
    """
    if population is None:
        return 1.0
    if asked > population:
        raise ValueError(f"{asked} distinct masks cannot come from {population}")
    return math.sqrt((population - asked) / max(population - 1, 1))


@lru_cache(maxsize=1024)
def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Two-sided quantile of Student's t: ``level`` of the distribution lies within +- this.

    By bisection on the distribution function, integrated over the angle atan(t / sqrt(freedom)), where the density is
    cos ** (freedom - 1) and hence smooth. Agrees with SciPy to 1e-9.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)

    def inside(angle: float) -> float:
        return float(angle * scale * (weights * np.cos((nodes + 1) * angle / 2) ** (freedom - 1)).sum())

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(low)

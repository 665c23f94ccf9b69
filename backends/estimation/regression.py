"""Effects by regression of the outcome on the bits of the mask."""

import numpy as np
from numpy.typing import NDArray

from .effects import Effects, Floats, checked, correction, with_interval, without_interval

Masks = NDArray[np.bool_]
MOST_SWEEPS = 20_000  # of coordinate descent; few masks and a small penalty take thousands


def least_squares(bits: Masks, outcomes: Floats, *, population: int | None = None) -> Effects:
    """Fits an intercept and one slope a candidate; on uniform masks the slopes estimate Banzhaf values.

    Intervals rest on the HC3 covariance (MacKinnon & White 1985), since what interactions leave over is no noise of
    equal size. With fewer than N + 2 masks, or a candidate that was never kept or never dropped, the slopes are those
    of least norm and there are no intervals.

    Args:
        bits: (M, N) bool.
        outcomes: (M,) float64.
        population: Of how many masks these were drawn without repetition.

    Returns:
        Slopes with 95% intervals.
    """
    masks, y = checked(bits, outcomes)
    return _robust(np.column_stack([masks, np.ones(len(y))]), y, masks.shape[1], correction(len(y), population))


def paired_least_squares(bits: Masks, outcomes: Floats, *, population: int | None = None) -> Effects:
    """The same from masks and their complements in turn: differences of a pair hold no interaction of even order.

    Args:
        bits: (2P, N) bool; rows 2j and 2j + 1 are complements.
        outcomes: (2P,) float64.
        population: Of how many masks these were drawn without repetition.

    Raises:
        ValueError: Two neighbours are no complements.
    """
    masks, y = checked(bits, outcomes)
    if len(y) % 2 or (masks[::2] == masks[1::2]).any():
        raise ValueError("expected masks and their complements in turn; ask an even number of an antithetic design")
    signs = np.where(masks[::2], 1.0, -1.0)  # (P, N)
    return _robust(signs, y[::2] - y[1::2], masks.shape[1], correction(len(y), population))


def lasso(bits: Masks, outcomes: Floats, *, penalty: float = 0.01) -> Effects:
    """ContextCite's surrogate: L1-penalised least squares on standardised bits, with an intercept.

    Minimises (1 / 2M) |y - a - Z w|^2 + penalty |w|_1 by coordinate descent, Z the bits with mean 0 and variance 1;
    slopes are returned per bit. No intervals: a penalised slope is biased towards 0.

    Args:
        bits: (M, N) bool.
        outcomes: (M,) float64.
        penalty: 0.01 in ContextCite, there on the logit of the answer's probability.

    Source: Cohen-Wang et al. 2024 (arXiv:2409.00729), section 3, and its code (``LassoRegression``).
    """
    masks, y = checked(bits, outcomes)
    spread = masks.std(0)
    z = (masks - masks.mean(0)) / np.where(spread > 0, spread, 1.0)  # (M, N)
    target = y - y.mean()
    slopes = np.zeros(masks.shape[1])
    left = target.copy()
    for _ in range(MOST_SWEEPS):
        before = slopes.copy()
        for i in np.flatnonzero(spread > 0):
            pull = z[:, i] @ left / len(y) + slopes[i]
            new = np.sign(pull) * max(abs(pull) - penalty, 0.0)
            left += z[:, i] * (slopes[i] - new)
            slopes[i] = new
        if np.abs(slopes - before).max() <= 1e-10 * max(1.0, np.abs(slopes).max()):
            break
    return without_interval(slopes / np.where(spread > 0, spread, 1.0))


def logit(log_probability: NDArray) -> Floats:
    """Log-odds of a probability that is given by its logarithm, ContextCite's outcome; in float64 throughout.

    Finite for any log-probability below 0 that float64 holds; where a reader is certain (0), the odds of 1 - 2**-53.
    """
    p = np.minimum(np.asarray(log_probability, dtype=np.float64), -(2.0**-53))
    return p - np.log(-np.expm1(p))


def _robust(design: Floats, y: Floats, candidates: int, factor: float) -> Effects:
    """The first N slopes of a regression, with HC3 intervals where the design has full rank and a row to spare."""
    design = design.astype(np.float64)
    rows, columns = design.shape
    solved, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    slopes: Floats = solved.astype(np.float64)
    if rank < columns or rows <= columns:
        return without_interval(slopes[:candidates])
    inverse = np.linalg.inv(design.T @ design)
    hat = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual = (y - design @ slopes) / np.maximum(1 - hat, 1e-6)
    meat = (design * residual[:, None] ** 2).T @ design
    error = np.sqrt(np.diag(inverse @ meat @ inverse)[:candidates])
    return with_interval(slopes[:candidates], factor * error, rows - columns)

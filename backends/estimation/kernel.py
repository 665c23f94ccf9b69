"""Bayesian regression over masks: what is known of interactions decides how far an outcome speaks for other masks.

The prior takes Walsh coefficients to be independent, with a variance that depends on their order alone. Between two
masks at Hamming distance d the covariance is then the sum over orders o of variance[o] x K_o(d), K_o the Krawtchouk
polynomial. The variances are measured on other queries (empirical Bayes); a query has its own overall scale.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray

from .effects import Effects, Floats, checked, with_interval
from .walsh import orders, walsh

Masks = NDArray[np.bool_]
JITTER = 1e-9  # share of the prior variance: the frozen reader is deterministic, so this is for the arithmetic alone
FLAT = 1e4  # times the variance: what is known of a query's mean outcome beforehand is next to nothing


def mean_spectrum(values: Floats) -> Floats:
    """Measures the prior variance of a coefficient by order on enumerated queries.

    Each query counts alike, whatever its scale: its variances are divided by their sum before they are averaged.

    Args:
        values: (Q, 2**N) outcomes by bit code of Q queries; those that never vary are left out.

    Returns:
        (N + 1,) float64: of order 0 a large one, then the mean variance of a coefficient of each order.

    Raises:
        ValueError: No query varies.
    """
    energy = walsh(values) ** 2  # (Q, S)
    order = orders(energy.shape[-1].bit_length() - 1)
    total = energy[:, order > 0].sum(1)
    if not (total > 0).any():
        raise ValueError("expected queries whose outcome depends on the mask, got none")
    shares = energy[total > 0] / total[total > 0, None]
    prior = np.array([shares[:, order == o].mean() for o in range(order.max() + 1)])
    prior[0] = FLAT
    return prior


def posterior(bits: Masks, outcomes: Floats, energy: Floats, prior: Floats | None = None) -> Effects:
    """Estimates the Banzhaf values of a query.

    Args:
        bits: (M, N) bool, distinct masks.
        outcomes: (M,) float64.
        energy: (N + 1,) prior variance of a coefficient by order, up to the query's own scale.
        prior: (N,) prior means of the effects; 0 where None.

    Returns:
        Posterior means with 95% credible intervals. The query's scale is estimated from its outcomes, whence Student's
        t with M - 1 degrees of freedom (the mean costs one).
    """
    masks, y = checked(bits, outcomes)
    mean = np.zeros(masks.shape[1]) if prior is None else np.asarray(prior, dtype=np.float64)
    gram = covariance(masks, masks, energy)
    gram[np.diag_indices_from(gram)] += JITTER * energy[1:].sum()
    shared = effect_covariance(masks, energy)  # (N, M)
    residual = y - _signs(masks) @ mean / 2
    # The flat prior of the mean makes the matrix ill-conditioned only along ones, which Cholesky bears.
    lower = np.linalg.cholesky(gram)
    white = np.linalg.solve(lower, np.column_stack([residual, shared.T]))  # (M, 1 + N)
    freedom = len(y) - 1
    scale = float((white[:, 0] ** 2).sum()) / max(freedom, 1)
    variance = np.maximum(4 * energy[1] - (white[:, 1:] ** 2).sum(0), 0)
    return with_interval(mean + white[:, 1:].T @ white[:, 0], np.sqrt(scale * variance), freedom)


def covariance(one: Masks, other: Masks, energy: Floats) -> Floats:
    """Prior covariance of the outcomes of masks (M, N) and (L, N), shape (M, L)."""
    candidates = one.shape[1]
    distance = (one[:, None, :] ^ other[None, :, :]).sum(-1)  # (M, L)
    return (_krawtchouk(candidates) @ energy)[distance]


def effect_covariance(masks: Masks, energy: Floats) -> Floats:
    """Prior covariance of the N effects with the outcomes of masks (M, N), shape (N, M): an effect is 2 c_{i}."""
    return 2 * energy[1] * _signs(masks).T


def _signs(masks: Masks) -> Floats:
    return np.where(masks, 1.0, -1.0)


def _krawtchouk(candidates: int) -> Floats:
    """(N + 1, N + 1): by distance and order, the sum over subsets of that order of (-1) ** (members that differ)."""
    return np.array(
        [
            [
                sum((-1) ** j * comb(d, j) * comb(candidates - d, o - j) for j in range(min(o, d) + 1))
                for o in range(candidates + 1)
            ]
            for d in range(candidates + 1)
        ],
        dtype=np.float64,
    )

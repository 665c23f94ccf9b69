"""From a mask to a ranking: how a gate's weights change retrieval scores. Pure functions, batch first."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mode = Literal["hard", "soft", "multiply"]
MODES: tuple[str, ...] = get_args(Mode)

ThresholdKind = Literal["fixed", "norm_scaled", "norm_scaled_inverse"]
THRESHOLD_KINDS: tuple[str, ...] = get_args(ThresholdKind)

SOFT_FACTOR = 0.1
"""What a rejected candidate's score is multiplied by in soft mode, as published."""


def shift_nonnegative(scores: NDArray) -> NDArray:
    """Subtracts each pool's minimum from its scores (B, N).

    Scaling presumes scores of one sign: a factor of 0.1 would *raise* a negative score.
    """
    return scores - scores.min(axis=-1, keepdims=True)


def adjust(
    scores: NDArray, mask: NDArray, mode: Mode, *, alpha: float = 0.5, threshold: ArrayLike = 0.01
) -> NDArray[np.float64]:
    """Applies a mask to retrieval scores.

    With s the score shifted to be non-negative within its pool, and a candidate *rejected* when its mask is below
    the threshold: ``hard`` gives s (1 + alpha m), and minus infinity to the rejected; ``soft`` gives s (1 + alpha m),
    and 0.1 s to the rejected; ``multiply`` gives s m to all.

    Args:
        scores: Retrieval scores (B, N), any finite values, higher is better.
        mask: Weights (B, N) >= 0; bits are weights of 0 and 1.
        mode: ``hard``, ``soft`` or ``multiply``.
        alpha: Boost of a kept candidate; 0.5 is the published initial value.
        threshold: Rejection threshold, a number or one for each row (B,); 0.01 is published.

    Returns:
        Adjusted scores (B, N); minus infinity marks what must not be read.

    Raises:
        ValueError: The mode is unknown.
    """
    shifted = shift_nonnegative(np.asarray(scores, dtype=np.float64))  # (B, N)
    if mode == "multiply":
        return shifted * mask
    kept = shifted * (1 + alpha * mask)
    if mode == "hard":
        return np.where(rejected(mask, threshold), -np.inf, kept)
    if mode == "soft":
        return np.where(rejected(mask, threshold), SOFT_FACTOR * shifted, kept)
    raise ValueError(f"mode must be one of {', '.join(MODES)}, got {mode!r}")


def rejected(mask: NDArray, threshold: ArrayLike) -> NDArray[np.bool_]:
    """Returns which candidates (B, N) have a mask below the threshold, a number or one for each row (B,)."""
    return mask < np.asarray(threshold)[..., None]


def top_k(adjusted: NDArray, k: int) -> NDArray[np.bool_]:
    """Marks the at most k highest scores of each row (B, N), never minus infinity; ties go to pool order."""
    order = np.argsort(-adjusted, axis=-1, kind="stable")[..., :k]  # (B, k)
    bits = np.zeros(adjusted.shape, dtype=bool)
    np.put_along_axis(bits, order, True, axis=-1)
    return bits & (adjusted > -np.inf)


def rejection_threshold(
    base: float, norm: NDArray[np.floating], kind: ThresholdKind, reference_norm: float
) -> NDArray[np.floating]:
    """Returns the rejection threshold of each query.

    ``norm_scaled`` is as published: the larger the query embedding's norm, the smaller the threshold. A smaller
    threshold rejects fewer, against the published intent ("more aggressive"), hence ``norm_scaled_inverse``.

    Args:
        base: Threshold of a query of the reference norm.
        norm: Norms of the query embeddings, (B,).
        kind: ``fixed``, ``norm_scaled`` or ``norm_scaled_inverse``.
        reference_norm: A norm fixed beforehand, such as the mean over training queries.

    Returns:
        Thresholds (B,).

    Raises:
        ValueError: The kind is unknown.
    """
    norm = np.asarray(norm, dtype=np.float64)
    if kind == "fixed":
        return np.full(norm.shape, base, dtype=np.float64)
    if kind == "norm_scaled":
        return base * reference_norm / np.maximum(norm, 1e-12)
    if kind == "norm_scaled_inverse":
        return base * norm / reference_norm
    raise ValueError(f"threshold kind must be one of {', '.join(THRESHOLD_KINDS)}, got {kind!r}")

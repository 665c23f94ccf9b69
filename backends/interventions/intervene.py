"""do(show exactly S): from retrieval scores and a mask to the set of candidates that is read."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .scores import Mode, adjust, rejected, top_k

Fallback = Literal["none", "same", "heterogeneous"]
FALLBACKS: tuple[str, ...] = get_args(Fallback)


class Reading(NamedTuple):
    """What an intervention lets the reader see.

    Attributes:
        bits: (B, N) bool: candidates in the reading set.
        fell_back: (B,) bool: the intervention left nothing and the fallback chose the set.
        rejected: (B, N) bool: candidates whose mask is below the threshold.
        leaked: (B, N) bool: rejected candidates that are nevertheless in the reading set.
    """

    bits: NDArray[np.bool_]
    fell_back: NDArray[np.bool_]
    rejected: NDArray[np.bool_]
    leaked: NDArray[np.bool_]


def intervene(
    scores: NDArray,
    mask: NDArray,
    *,
    mode: Mode,
    k: int,
    alpha: float = 0.5,
    threshold: ArrayLike = 0.01,
    fallback: Fallback = "heterogeneous",
    backfill: bool = True,
    primary: int = 0,
) -> Reading:
    """Chooses the reading set of each pool under a mask.

    Args:
        scores: Scores by two retrievers, (B, N, 2), finite.
        mask: Weights (B, N) >= 0, or bits.
        mode: How the mask acts on scores; see :func:`~recallgym.backends.interventions.scores.adjust`.
        k: Most candidates read.
        alpha: Boost of a kept candidate.
        threshold: Rejection threshold, a number or (B,).
        fallback: What is read when nothing is left: ``none`` nothing; ``same`` the unmasked top k of the primary
            retriever, which brings the rejected back; ``heterogeneous`` the unmasked top k of the other retriever.
        backfill: Whether a rejected candidate's place is taken by the next in rank. Without, the set is what the
            mask leaves *of the unmasked top k*. The two are different estimands.
        primary: Which retriever's scores are masked, 0 or 1.

    Raises:
        ValueError: The mode or fallback is unknown.
    """
    if fallback not in FALLBACKS:
        raise ValueError(f"fallback must be one of {', '.join(FALLBACKS)}, got {fallback!r}")
    bits = top_k(adjust(scores[..., primary], mask, mode, alpha=alpha, threshold=threshold), k)  # (B, N)
    if not backfill:
        bits &= top_k(scores[..., primary], k)
    fell_back = np.zeros(len(bits), dtype=bool)
    if fallback != "none":
        fell_back[~bits.any(axis=-1)] = True
        source = primary if fallback == "same" else 1 - primary
        bits[fell_back] = top_k(scores[fell_back, :, source], k)
    out = rejected(mask, threshold)
    return Reading(bits, fell_back, out, bits & out)

"""Which masks to ask. Every design keeps each candidate with probability one half, and asks no mask twice.

The later designs are fixed sets of masks that are moved at random: a uniform mask is XORed onto all of them, and the
candidates are permuted. Each mask is then uniform by itself, so that contrasts are unbiased for Banzhaf values, while
the masks stay as far apart as they were built to be.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..interventions.sets import bit_codes
from .kernel import covariance, effect_covariance

Masks = NDArray[np.bool_]
Design = Callable[[int, int, np.random.Generator], Masks]
LARGEST_CODE = 8  # candidates of the orthogonal design


def uniform(candidates: int, budget: int, rng: np.random.Generator) -> Masks:
    """Draws masks uniformly without repetition: ContextCite's design, but for its drawing with repetition.

    Args:
        candidates: Number of candidates N.
        budget: Number of masks; at most 2**N are returned.
        rng: Draws them.

    Returns:
        (M, N) bool.
    """
    return _bits(_distinct(1 << candidates, budget, rng), candidates)


def antithetic(candidates: int, budget: int, rng: np.random.Generator) -> Masks:
    """Draws masks and their complements, next to each other: interactions of even order cancel in the difference.

    An odd budget leaves the last mask without its complement.
    """
    half = 1 << max(candidates - 1, 0)  # one of each pair: those without the last candidate
    first = _distinct(half, (budget + 1) // 2, rng)
    flip = rng.integers(2, size=len(first)) * ((1 << candidates) - 1)
    pairs = np.stack([first ^ flip, first ^ flip ^ ((1 << candidates) - 1)], axis=1)  # (M / 2, 2)
    return _bits(pairs.ravel()[:budget], candidates)


def orthogonal(candidates: int, budget: int, rng: np.random.Generator) -> Masks:
    """Takes the words of nested linear codes of length 8, moved at random; complements lie next to each other.

    The first 16 are the extended Hamming code, an orthogonal array of strength 3: over them the main effects are
    orthogonal to one another and to every interaction of two. So are the first 32 and 64; the first 128 have strength
    7.

    Raises:
        ValueError: There are more than 8 candidates.

    Source: Hedayat, Sloane & Stufken 1999, Orthogonal Arrays, chapter 4.
    """
    if candidates > LARGEST_CODE:
        raise ValueError(f"the orthogonal design is for at most {LARGEST_CODE} candidates, got {candidates}")
    words = _nested_words()[:, rng.permutation(LARGEST_CODE)[:candidates]]
    codes = bit_codes(words) ^ int(rng.integers(1 << candidates))
    _, first = np.unique(codes, return_index=True)  # shortened words repeat
    return _bits(codes[np.sort(first)][:budget], candidates)


def greedy(candidates: int, budget: int, energy: NDArray[np.float64]) -> Masks:
    """Chooses masks one by one so that the variance of the main effects that is left falls fastest. Not yet moved.

    Args:
        candidates: Number of candidates N.
        budget: Number of masks; at most 2**N are returned.
        energy: (N + 1,) prior variance of a Walsh coefficient by order, as :func:`.kernel.mean_spectrum` returns.

    Returns:
        (M, N) bool. The first m of them are the choice for a budget of m. Move them with :func:`moved`.
    """
    masks = _bits(np.arange(1 << candidates), candidates)
    spread = covariance(masks, masks, energy)  # (S, S): of the outcomes
    shared = effect_covariance(masks, energy)  # (N, S): of effects with outcomes
    left = np.ones(len(masks), dtype=bool)
    chosen = []
    for _ in range(min(budget, len(masks))):
        variance = np.where(left, spread.diagonal(), np.inf)
        best = int(np.argmax((shared**2).sum(0) / np.maximum(variance, 1e-12 * energy.sum())))
        chosen.append(best)
        left[best] = False
        column = spread[:, best] / spread[best, best]
        shared = shared - np.outer(shared[:, best], column)
        spread = spread - np.outer(spread[:, best], column)
    return masks[chosen]


def moved(masks: Masks, rng: np.random.Generator) -> Masks:
    """Permutes the candidates of a set of masks (M, N) and XORs one uniform mask onto all."""
    permuted = masks[:, rng.permutation(masks.shape[1])]
    return permuted ^ (rng.random(masks.shape[1]) < 0.5)


def _distinct(population: int, budget: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.choice(population, size=min(budget, population), replace=False)


def _bits(codes: NDArray[np.int64], candidates: int) -> Masks:
    return (codes[:, None] >> np.arange(candidates) & 1).astype(bool)


def _nested_words() -> Masks:
    """All 256 words of length 8, such that the first 16, 32, 64 and 128 are linear codes, each in the next."""
    words = _bits(np.arange(1 << LARGEST_CODE), LARGEST_CODE)
    coordinates = _bits(np.arange(LARGEST_CODE), 3).T  # (3, 8): with the word of ones they generate the Hamming code
    parities = (words.astype(int) @ np.vstack([np.ones((1, LARGEST_CODE), bool), coordinates]).T) % 2  # (256, 4)
    broken = np.where(parities.any(1), 4 - parities.argmax(1), 0)  # how many checks must be dropped to admit the word
    pair = np.minimum(np.arange(256), 255 - np.arange(256))  # a word and its complement
    return words[np.lexsort((np.arange(256), pair, broken))]

"""Counter-based random draws: a hash of (seed, episode, step, stream), with no generator to carry along.

Sub-environment i of a vector environment and a single environment of the same seed draw the same numbers in whatever
order they run, and a restored environment needs only its counters.
"""

import numpy as np
from numpy.typing import NDArray

Counter = int | NDArray[np.integer]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def uniform(seed: Counter, episode: Counter, step: Counter, stream: Counter) -> NDArray[np.float64]:
    """Draws uniform numbers in [0, 1), one for each broadcast element of the counters.

    Each counter c in turn replaces the state, at first 0, by the (c+1)-th output of SplitMix64 (Steele, Lea and
    Flood, 2014) started from it. The top 53 bits make the number.

    Args:
        seed: Seeds; any integers, taken modulo 2**64.
        episode: Episode numbers.
        step: Steps within the episode.
        stream: What the draw is for, so that the draws of one step are independent.

    Returns:
        float64 array of the counters' broadcast shape, at least one-dimensional.
    """
    state = np.zeros(1, dtype=np.uint64)
    for counter in (seed, episode, step, stream):
        state = _finalise(state + (as_uint64(counter) + np.uint64(1)) * _GAMMA)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def index(u: NDArray[np.float64], size: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Turns uniform numbers into indices in [0, size); the bias, below size / 2**53, is immaterial."""
    return (u * size).astype(np.int64)


def as_uint64(counter: Counter) -> NDArray[np.uint64]:
    """Returns integers modulo 2**64, at least one-dimensional, so that wrapping arithmetic does not warn."""
    array = np.uint64(counter & _MASK) if isinstance(counter, int) else counter
    return np.atleast_1d(array).astype(np.uint64)


def _finalise(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))

"""Counter-based draws: one definition, for numbers and arrays, uniform and independent."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.envs.draws import index, uniform

MASK = (1 << 64) - 1
counters = st.integers(0, 2**63 - 1)


def reference(*values: int) -> float:
    """The documented algorithm in plain integers: SplitMix64, entered anew for each counter."""
    state = 0
    for value in values:
        z = (state + (value + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        state = z ^ (z >> 31)
    return (state >> 11) * 2.0**-53


@given(st.integers(-(2**70), 2**70), counters, counters, counters)
def test_numbers_match_a_plain_python_reference(seed: int, episode: int, step: int, stream: int) -> None:
    assert uniform(seed, episode, step, stream).tolist() == [reference(seed & MASK, episode, step, stream)]


@given(st.lists(st.tuples(counters, counters, counters, counters), min_size=1, max_size=20))
def test_a_batch_draws_what_its_elements_draw_alone(values: list[tuple[int, int, int, int]]) -> None:
    batch = uniform(*np.array(values, dtype=np.int64).T)
    assert batch.tolist() == [uniform(*value).item() for value in values]


def test_counters_broadcast() -> None:
    drawn = uniform(np.arange(3)[:, None], 0, np.arange(4), np.arange(2)[:, None, None])
    assert drawn.shape == (2, 3, 4)
    assert drawn[1, 2, 3] == uniform(2, 0, 3, 1).item()


@pytest.mark.parametrize("axis", range(4))
def test_draws_are_uniform_and_uncorrelated_along_each_counter(axis: int) -> None:
    counters = [np.full(1, 7)] * 4
    counters[axis] = np.arange(20_000)
    u = uniform(*counters)
    assert u.min() >= 0
    assert u.max() < 1
    share = np.histogram(u, bins=20, range=(0, 1))[0] / len(u)
    assert np.abs(share - 0.05).max() < 5 * np.sqrt(0.05 * 0.95 / len(u))
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5 / np.sqrt(len(u))


def test_counters_are_not_interchangeable() -> None:
    u = uniform(np.arange(50)[:, None], np.arange(50), 0, 0)
    assert len(np.unique(u)) == u.size


def test_indices_cover_their_range_evenly_with_sizes_of_their_own() -> None:
    u = uniform(np.arange(30_000), 0, 0, 0)
    assert np.abs(np.bincount(index(u, 3)) / len(u) - 1 / 3).max() < 0.02
    assert index(np.array([0.0, 0.999999]), np.array([5, 7])).tolist() == [0, 6]

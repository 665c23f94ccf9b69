"""What an intervention lets the reader see: leaks, fallbacks and the two estimands."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from recallgym.backends.interventions.intervene import intervene
from recallgym.backends.interventions.scores import top_k

ROWS, POOL, K = 5, 6, 3
scores = arrays(np.float64, (ROWS, POOL, 2), elements=st.integers(-20_000, 20_000).map(lambda i: i / 1000))
bits = arrays(np.float64, (ROWS, POOL), elements=st.sampled_from([0.0, 1.0]))
modes = st.sampled_from(["hard", "soft", "multiply"])
fallbacks = st.sampled_from(["none", "same", "heterogeneous"])

DENSE, SPARSE = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
POOL_SCORES = np.stack([DENSE, SPARSE], axis=-1)[None]  # (1, N, 2)


def read(mask: list[float], **settings: Any) -> tuple[list[int], bool, list[int]]:
    settings = {"mode": "hard", "k": K} | settings
    reading = intervene(POOL_SCORES, np.array([mask]), **settings)
    return (
        np.flatnonzero(reading.bits[0]).tolist(),
        bool(reading.fell_back[0]),
        np.flatnonzero(reading.leaked[0]).tolist(),
    )


@given(scores, bits, modes, fallbacks, st.booleans())
def test_leaked_is_what_is_read_although_rejected(
    s: np.ndarray, mask: np.ndarray, mode: Any, fallback: Any, backfill: bool
) -> None:
    reading = intervene(s, mask, mode=mode, k=K, fallback=fallback, backfill=backfill)
    np.testing.assert_array_equal(reading.rejected, mask == 0)
    np.testing.assert_array_equal(reading.leaked, reading.bits & (mask == 0))
    assert (reading.bits.sum(axis=1) <= K).all()


@given(scores, bits, fallbacks, st.booleans())
def test_hard_mode_leaks_only_through_the_fallback(
    s: np.ndarray, mask: np.ndarray, fallback: Any, backfill: bool
) -> None:
    reading = intervene(s, mask, mode="hard", k=K, fallback=fallback, backfill=backfill)
    assert not reading.leaked[~reading.fell_back].any()


@given(scores, bits, modes, st.booleans())
def test_without_a_fallback_none_is_reported_and_with_one_nothing_stays_empty(
    s: np.ndarray, mask: np.ndarray, mode: Any, backfill: bool
) -> None:
    bare = intervene(s, mask, mode=mode, k=K, fallback="none", backfill=backfill)
    assert not bare.fell_back.any()
    for fallback in ("same", "heterogeneous"):
        reading = intervene(s, mask, mode=mode, k=K, fallback=fallback, backfill=backfill)
        np.testing.assert_array_equal(reading.fell_back, ~bare.bits.any(axis=1))
        assert reading.bits.any(axis=1).all()


@given(scores, modes, st.booleans())
def test_keeping_everything_is_the_unmasked_reading(s: np.ndarray, mode: Any, backfill: bool) -> None:
    reading = intervene(s, np.ones((ROWS, POOL)), mode=mode, k=K, backfill=backfill)
    np.testing.assert_array_equal(reading.bits, top_k(s[..., 0], K))


@given(scores, bits, modes)
def test_without_backfill_the_set_is_a_part_of_the_unmasked_one(s: np.ndarray, mask: np.ndarray, mode: Any) -> None:
    reading = intervene(s, mask, mode=mode, k=K, fallback="none", backfill=False)
    assert not (reading.bits & ~top_k(s[..., 0], K)).any()


def test_backfill_takes_the_next_in_rank_and_its_absence_leaves_the_place_empty() -> None:
    assert read([0, 1, 1, 1, 1, 1]) == ([1, 2, 3], False, [])
    assert read([0, 1, 1, 1, 1, 1], backfill=False) == ([1, 2], False, [])


def test_the_same_fallback_brings_back_what_was_rejected_and_the_other_asks_the_other_retriever() -> None:
    assert read([0] * 6, fallback="none") == ([], False, [])
    assert read([0] * 6, fallback="same") == ([0, 1, 2], True, [0, 1, 2])
    assert read([0] * 6, fallback="heterogeneous") == ([3, 4, 5], True, [3, 4, 5])


def test_without_backfill_a_mask_outside_the_top_k_falls_back() -> None:
    assert read([0, 0, 0, 0, 0, 1], backfill=False, fallback="heterogeneous") == ([3, 4, 5], True, [3, 4])


def test_soft_mode_leaks_where_too_few_are_kept() -> None:
    assert read([0, 0, 0, 1, 0, 0], mode="soft") == ([0, 1, 3], False, [0, 1])


def test_the_primary_retriever_may_be_the_second() -> None:
    assert read([1] * 6, primary=1) == ([3, 4, 5], False, [])
    assert read([0] * 6, primary=1, fallback="heterogeneous") == ([0, 1, 2], True, [0, 1, 2])


def test_an_unknown_fallback_is_answered_with_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="none, same, heterogeneous, got 'luck'"):
        read([1] * 6, fallback="luck")

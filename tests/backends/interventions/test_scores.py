"""Masks on scores: shifts, modes, thresholds and rankings."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from recallgym.backends.interventions.scores import (
    SOFT_FACTOR,
    adjust,
    rejected,
    rejection_threshold,
    shift_nonnegative,
    top_k,
)

SHAPE = (4, 6)
scores = arrays(np.float64, SHAPE, elements=st.floats(-50, 50))
bits = arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 1.0]))
weights = arrays(np.float64, SHAPE, elements=st.floats(0, 1))


@given(scores)
def test_shifting_makes_the_lowest_score_of_a_pool_zero_and_keeps_the_differences(s: np.ndarray) -> None:
    shifted = shift_nonnegative(s)
    assert (shifted.min(axis=1) == 0).all()
    np.testing.assert_allclose(np.diff(shifted), np.diff(s), atol=1e-9)


def test_soft_scaling_lowers_a_negative_score_only_because_scores_are_shifted_first() -> None:
    s = np.array([[-1.0, -2.0, -3.0]])
    adjusted = adjust(s, np.array([[0.0, 1.0, 1.0]]), "soft")
    assert s[0, 0] * SOFT_FACTOR > s[0, 0]  # the trap
    assert adjusted[0].tolist() == pytest.approx([0.2, 1.5, 0.0])


@given(scores, bits)
def test_hard_mode_never_ranks_a_rejected_candidate(s: np.ndarray, mask: np.ndarray) -> None:
    chosen = top_k(adjust(s, mask, "hard"), 3)
    assert not (chosen & (mask == 0)).any()
    assert (chosen.sum(axis=1) == np.minimum(mask.sum(axis=1), 3)).all()


@given(scores, bits, st.floats(0, 2))
def test_among_kept_bits_the_order_is_that_of_the_scores_whatever_alpha_is(
    s: np.ndarray, mask: np.ndarray, alpha: float
) -> None:
    shifted = shift_nonnegative(s)
    for mode in ("hard", "soft"):
        adjusted = adjust(s, mask, mode, alpha=alpha)
        for row in range(len(s)):
            kept = mask[row] == 1
            np.testing.assert_allclose(adjusted[row, kept], shifted[row, kept] * (1 + alpha))


@given(scores, weights)
def test_multiply_scales_every_shifted_score_by_its_weight(s: np.ndarray, mask: np.ndarray) -> None:
    np.testing.assert_array_equal(adjust(s, mask, "multiply"), shift_nonnegative(s) * mask)


def test_weights_reorder_the_kept_candidates() -> None:
    adjusted = adjust(np.array([[2.0, 1.8, 0.0]]), np.array([[0.1, 0.9, 0.9]]), "hard", alpha=1.0)
    assert top_k(adjusted, 1).tolist() == [[False, True, False]]


def test_ties_go_to_pool_order() -> None:
    assert top_k(np.array([[1.0, 2.0, 2.0, 2.0]]), 2).tolist() == [[False, True, True, False]]


@given(scores, st.integers(1, 6))
def test_top_k_takes_the_k_largest(s: np.ndarray, k: int) -> None:
    chosen = top_k(s, k)
    assert (chosen.sum(axis=1) == k).all()
    for row in range(len(s)):
        if k < s.shape[1]:
            assert s[row][chosen[row]].min() >= s[row][~chosen[row]].max()


def test_minus_infinity_is_never_read_even_where_places_remain() -> None:
    assert top_k(np.array([[-np.inf, 1.0, -np.inf]]), 3).tolist() == [[False, True, False]]


def test_a_mask_at_the_threshold_is_kept_and_one_below_is_rejected() -> None:
    mask = np.array([[0.009, 0.01, 0.5]])
    assert rejected(mask, 0.01).tolist() == [[True, False, False]]
    assert rejected(np.repeat(mask, 2, axis=0), np.array([0.01, 0.6])).tolist() == [[True, False, False], [True] * 3]


def test_thresholds_scale_with_the_norm_either_way_and_agree_at_the_reference() -> None:
    norm = np.array([1.0, 2.0, 4.0])
    assert rejection_threshold(0.01, norm, "fixed", 2.0).tolist() == [0.01] * 3
    assert rejection_threshold(0.01, norm, "norm_scaled", 2.0).tolist() == [0.02, 0.01, 0.005]
    assert rejection_threshold(0.01, norm, "norm_scaled_inverse", 2.0).tolist() == [0.005, 0.01, 0.02]


def test_a_constant_norm_makes_scaled_thresholds_fixed() -> None:
    norm = np.full(3, 0.7)
    for kind in ("norm_scaled", "norm_scaled_inverse"):
        np.testing.assert_allclose(rejection_threshold(0.01, norm, kind, 0.7), 0.01)


def test_unknown_names_are_answered_with_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="hard, soft, multiply, got 'firm'"):
        adjust(np.zeros((1, 2)), np.ones((1, 2)), "firm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fixed, norm_scaled, norm_scaled_inverse, got 'loose'"):
        rejection_threshold(0.01, np.ones(1), "loose", 1.0)  # type: ignore[arg-type]

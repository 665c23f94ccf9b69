"""Propensity-weighted effects: unbiased by exact enumeration, honest intervals, refusals."""

import numpy as np
import pytest

from recallgym.backends.estimation.propensity import doubly_robust, ips, snips
from recallgym.backends.estimation.values import average_effect
from recallgym.backends.interventions.sets import bit_codes

ESTIMATORS = {"ips": ips, "snips": snips, "doubly_robust": doubly_robust}
P = np.array([0.3, 0.5, 0.8])
GAME = np.random.default_rng(0).normal(size=8) - 5
ALL = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(bool)


def logged(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masks, outcomes and propensities of an adaptive log: each row has propensities of its own."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.2, 0.8, size=(count, 3))
    masks = rng.random((count, 3)) < p
    return masks, GAME[bit_codes(masks)], p


def test_inverse_propensity_weighting_is_unbiased_over_all_masks() -> None:
    probability = np.where(ALL, P, 1 - P).prod(1)
    mean = sum(q * ips(ALL[[m]], GAME[[m]], P).values for m, q in enumerate(probability))
    np.testing.assert_allclose(mean, average_effect(GAME, P), atol=1e-12)


@pytest.mark.parametrize("name", ["snips", "doubly_robust"])
def test_with_many_masks_the_estimate_nears_the_average_effect(name: str) -> None:
    rng = np.random.default_rng(1)
    masks = rng.random((40_000, 3)) < P
    found = ESTIMATORS[name](masks, GAME[bit_codes(masks)], P)
    np.testing.assert_allclose(found.values, average_effect(GAME, P), atol=0.05)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_intervals_cover_the_average_effect_about_as_often_as_they_say(name: str) -> None:
    exact = average_effect(GAME, 0.5)
    covered = []
    for seed in range(400):
        masks = np.random.default_rng(seed).random((60, 3)) < 0.5
        found = ESTIMATORS[name](masks, GAME[bit_codes(masks)], 0.5)
        covered.append((found.low <= exact) & (exact <= found.high))
    assert 0.92 <= np.mean(covered) <= 0.98


def test_adaptive_propensities_keep_inverse_weighting_right() -> None:
    """The estimand is then a mean over the rows' own propensities: one candidate without interactions shows it."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, size=(50_000, 1))
    masks = rng.random(p.shape) < p
    y = np.where(masks[:, 0], 1.0, -1.0)
    assert ips(masks, y, p).values[0] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("name", ["snips", "doubly_robust"])
def test_adding_a_constant_to_every_outcome_changes_nothing(name: str) -> None:
    masks, y, p = logged(3, 80)
    one, other = ESTIMATORS[name](masks, y, p), ESTIMATORS[name](masks, y + 100, p)
    np.testing.assert_allclose(one.values, other.values, atol=1e-6)
    np.testing.assert_allclose(one.low, other.low, atol=1e-6)


def test_weighting_raw_log_probabilities_spreads_wider_than_the_others() -> None:
    spread = {name: [] for name in ESTIMATORS}
    for seed in range(100):
        masks = np.random.default_rng(seed).random((64, 3)) < 0.5
        for name, estimate in ESTIMATORS.items():
            spread[name].append(estimate(masks, GAME[bit_codes(masks)] - 5, 0.5).values)
    sd = {name: np.std(values, axis=0).mean() for name, values in spread.items()}
    assert sd["ips"] > 3 * sd["snips"]
    assert sd["snips"] > sd["doubly_robust"]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("lost", [np.nan, 0.0, 1.0, -0.2, 1.5])
def test_a_logged_decision_without_a_usable_propensity_is_refused(name: str, lost: float) -> None:
    masks, y, p = logged(4, 20)
    p[7, 1] = lost
    with pytest.raises(ValueError, match="1 of 20 logged decisions have no usable propensity, the first at row 7 for"):
        ESTIMATORS[name](masks, y, p)


def test_a_candidate_that_was_never_kept_has_effect_zero_and_no_interval() -> None:
    masks = np.random.default_rng(5).random((30, 3)) < 0.5
    masks[:, 1] = False
    found = snips(masks, GAME[bit_codes(masks)], 0.5)
    assert found.values[1] == 0
    assert np.isnan(found.low[1])
    assert np.isfinite(found.low[[0, 2]]).all()


def test_drawing_without_repetition_narrows_intervals_to_nothing_at_the_whole() -> None:
    found = ips(ALL, GAME, 0.5, population=8)
    np.testing.assert_allclose(found.values, average_effect(GAME, 0.5), atol=1e-12)
    np.testing.assert_allclose(found.low, found.high, atol=1e-12)
    with pytest.raises(ValueError, match="8 distinct masks cannot come from 7"):
        ips(ALL, GAME, 0.5, population=7)


def test_one_mask_cannot_be_cross_fitted() -> None:
    with pytest.raises(ValueError, match="at least 2 masks, got 1"):
        doubly_robust(ALL[:1], GAME[:1], 0.5)

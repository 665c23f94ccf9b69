"""Regression estimators: exact on additive pools, right intervals, ContextCite's lasso."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import t
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

from recallgym.backends.estimation.designs import antithetic, orthogonal, uniform
from recallgym.backends.estimation.effects import t_quantile
from recallgym.backends.estimation.regression import lasso, least_squares, logit, paired_least_squares
from recallgym.backends.estimation.values import banzhaf
from recallgym.backends.estimation.walsh import inverse, orders
from recallgym.backends.interventions.sets import bit_codes


def interacting(seed: int, candidates: int = 8, decay: float = 0.15) -> np.ndarray:
    """Outcomes by bit code whose Walsh coefficients shrink with their order."""
    rng = np.random.default_rng(seed)
    order = orders(candidates)
    return inverse(rng.normal(size=1 << candidates) * np.where(order > 0, decay ** (order - 1.0), 0)) - 4


@pytest.mark.parametrize("freedom", [1, 2, 3.5, 7, 30, 246, 5000])
def test_quantiles_of_students_t_agree_with_scipy(freedom: float) -> None:
    assert t_quantile(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-8)


@given(st.integers(0, 2**31), st.integers(18, 200))
def test_without_interactions_least_squares_is_exact(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    masks, effects = uniform(8, count, rng), rng.normal(size=8)
    found = least_squares(masks, masks @ effects - 3)
    np.testing.assert_allclose(found.values, effects, atol=1e-8)
    assert (found.high - found.low < 1e-6).all()


def test_from_all_masks_least_squares_gives_the_banzhaf_values() -> None:
    game, masks = interacting(0), uniform(8, 256, np.random.default_rng(0))
    found = least_squares(masks, game[bit_codes(masks)], population=256)
    np.testing.assert_allclose(found.values, banzhaf(game), atol=1e-9)
    np.testing.assert_allclose(found.low, found.high, atol=1e-12)  # nothing is left to chance


def test_sixteen_orthogonal_masks_bear_any_interactions_of_two() -> None:
    rng = np.random.default_rng(0)
    order = orders(8)
    game = inverse(rng.normal(size=256) * (order <= 2))
    masks = orthogonal(8, 16, rng)
    np.testing.assert_allclose(least_squares(masks, game[bit_codes(masks)]).values, banzhaf(game), atol=1e-9)


def test_pairs_of_complements_bear_any_interactions_of_even_order() -> None:
    rng = np.random.default_rng(0)
    order = orders(6)
    game = inverse(rng.normal(size=64) * ((order == 1) | (order % 2 == 0)))
    masks = antithetic(6, 24, rng)
    np.testing.assert_allclose(paired_least_squares(masks, game[bit_codes(masks)]).values, banzhaf(game), atol=1e-9)


def test_masks_without_their_complements_are_refused() -> None:
    masks = uniform(4, 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="complements"):
        paired_least_squares(np.repeat(masks, 2, axis=0), np.zeros(8))
    with pytest.raises(ValueError, match="even number"):
        paired_least_squares(masks[:3], np.zeros(3))


def test_intervals_cover_the_banzhaf_values_about_as_often_as_they_say() -> None:
    covered = []
    for seed in range(150):
        game, masks = interacting(seed), uniform(8, 40, np.random.default_rng([seed, 1]))
        found = least_squares(masks, game[bit_codes(masks)], population=256)
        covered.append((found.low <= banzhaf(game)) & (banzhaf(game) <= found.high))
    assert 0.92 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize("case", ["few masks", "never dropped"])
def test_what_masks_do_not_identify_has_no_interval(case: str) -> None:
    masks = uniform(8, 9 if case == "few masks" else 60, np.random.default_rng(0))
    if case == "never dropped":
        masks[:, 2] = True
    found = least_squares(masks, np.arange(len(masks), dtype=float))
    assert np.isfinite(found.values).all()
    assert np.isnan(found.low).all()


@given(st.integers(0, 2**31), st.integers(8, 64), st.sampled_from([0.001, 0.01, 0.3]))
def test_the_lasso_is_that_of_contextcite(seed: int, count: int, penalty: float) -> None:
    rng = np.random.default_rng(seed)
    masks = rng.random((count, 6)) < 0.5
    y = rng.normal(size=count) + masks @ rng.normal(size=6)
    scaler = StandardScaler().fit(masks.astype(float))
    z = scaler.transform(masks.astype(float))
    fitted = Lasso(alpha=penalty, tol=1e-12, max_iter=100_000).fit(z, y)
    own = lasso(masks, y, penalty=penalty).values * scaler.scale_

    def objective(weights: np.ndarray) -> float:
        return ((y - y.mean() - z @ weights) ** 2).mean() / 2 + penalty * np.abs(weights).sum()

    assert objective(own) <= objective(fitted.coef_) + 1e-6  # few masks have several minima
    if count >= 24:
        np.testing.assert_allclose(own, fitted.coef_, atol=1e-6)


@pytest.mark.parametrize("log_p", [-1e-9, -1e-3, -0.5, -50.0, -700.0])
def test_log_odds_are_those_of_the_probability(log_p: float) -> None:
    assert logit(np.array(log_p)) == pytest.approx(log_p - math.log(-math.expm1(log_p)), rel=1e-12)


def test_log_odds_of_a_certain_answer_are_finite_even_from_float32() -> None:
    assert np.isfinite(logit(np.zeros(3, dtype=np.float32))).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_outcome_that_is_no_number_is_refused_with_the_count(bad: float) -> None:
    masks = uniform(4, 8, np.random.default_rng(0))
    y = np.zeros(8)
    y[[1, 3]] = bad
    for estimate in (least_squares, lasso):
        with pytest.raises(ValueError, match="2 of 8 outcomes are not finite"):
            estimate(masks, y)


def test_masks_and_outcomes_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(4, 3\) and \(5,\)"):
        least_squares(np.zeros((4, 3), bool), np.zeros(5))

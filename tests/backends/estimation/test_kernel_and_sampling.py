"""The kernel is an ordinary Gaussian posterior and calibrated under its prior; sampled Shapley values add up."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.estimation.designs import uniform
from recallgym.backends.estimation.kernel import covariance, mean_spectrum, posterior
from recallgym.backends.estimation.sampling import sampled_shapley
from recallgym.backends.estimation.values import banzhaf, shapley
from recallgym.backends.estimation.walsh import inverse, orders
from recallgym.backends.interventions.sets import bit_codes

ENERGY = np.array([1e4, 0.1, 0.01, 0.002, 0.0005, 1e-4, 1e-5, 1e-6, 1e-7])


def drawn(seed: int, candidates: int = 8) -> np.ndarray:
    """Outcomes by bit code drawn from the prior, around -5."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=1 << candidates) * np.sqrt(ENERGY[orders(candidates)])
    coefficients[0] = -5
    return inverse(coefficients)


def test_covariances_are_those_of_the_coefficients() -> None:
    masks = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)
    signs = np.where(masks, 1.0, -1.0)
    products = np.stack([signs[:, [i for i in range(4) if t >> i & 1]].prod(1) for t in range(16)], axis=1)
    expected = (products * ENERGY[orders(4)]) @ products.T
    np.testing.assert_allclose(covariance(masks, masks, ENERGY[:5]), expected, rtol=1e-12)


def test_from_all_masks_the_posterior_is_the_banzhaf_value_without_doubt() -> None:
    masks, game = uniform(8, 256, np.random.default_rng(0)), drawn(0)
    found = posterior(masks, game[bit_codes(masks)], ENERGY)
    np.testing.assert_allclose(found.values, banzhaf(game), atol=1e-4)
    assert (found.high - found.low < 1e-3).all()


@pytest.mark.parametrize("count", [10, 16, 40])
def test_credible_intervals_are_calibrated_under_the_prior(count: int) -> None:
    covered = []
    for seed in range(250):
        game, masks = drawn(seed), uniform(8, count, np.random.default_rng([seed, 1]))
        found = posterior(masks, 3 * game[bit_codes(masks)], ENERGY)  # the query's own scale is not known beforehand
        covered.append((found.low <= 3 * banzhaf(game)) & (3 * banzhaf(game) <= found.high))
    assert 0.93 <= np.mean(covered) <= 0.97


def test_a_prior_mean_that_is_right_needs_few_masks() -> None:
    errors = []
    for seed in range(30):
        game, masks = drawn(seed), uniform(8, 6, np.random.default_rng([seed, 1]))
        y = game[bit_codes(masks)]
        found = [posterior(masks, y, ENERGY, prior).values for prior in (None, banzhaf(game))]
        errors.append([np.abs(values - banzhaf(game)).mean() for values in found])
    blind, told = np.mean(errors, axis=0)
    assert told < 0.5 * blind


def test_the_spectrum_of_queries_drawn_from_a_prior_is_that_prior() -> None:
    found = mean_spectrum(np.stack([drawn(s) for s in range(300)]))
    share = ENERGY[1:] / (ENERGY[1:] * np.bincount(orders(8))[1:]).sum()
    np.testing.assert_allclose(found[1:], share, rtol=0.15)


def test_queries_that_never_vary_teach_no_spectrum() -> None:
    with pytest.raises(ValueError, match="got none"):
        mean_spectrum(np.full((3, 16), -2.0))
    with_constant = np.stack([drawn(0), np.full(256, -1.0)])
    np.testing.assert_allclose(mean_spectrum(with_constant), mean_spectrum(with_constant[:1]))


class Asked:
    """A game that counts the distinct masks it was asked."""

    def __init__(self, game: np.ndarray) -> None:
        self.game, self.codes = game, set()

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        self.codes |= set(bit_codes(masks).tolist())
        return self.game[bit_codes(masks)]


@given(st.integers(1, 200), st.integers(0, 2**31))
def test_sampled_shapley_keeps_to_its_budget(budget: int, seed: int) -> None:
    ask = Asked(drawn(0))
    found = sampled_shapley(ask, 8, budget, np.random.default_rng(seed))
    assert len(ask.codes) <= budget
    assert np.isfinite(found.values).all()
    if budget >= 9:  # every whole order shares out the whole
        assert found.values.sum() == pytest.approx(ask.game[-1] - ask.game[0])


def test_once_all_masks_are_known_sampled_shapley_ends_near_the_exact_values() -> None:
    game = drawn(2, candidates=4)
    found = sampled_shapley(Asked(game), 4, 16, np.random.default_rng(0))
    np.testing.assert_allclose(found.values, shapley(game), atol=0.05)


def test_intervals_of_sampled_shapley_cover_about_as_often_as_they_say() -> None:
    covered = []
    for seed in range(150):
        game = drawn(seed)
        found = sampled_shapley(Asked(game), 8, 128, np.random.default_rng([seed, 1]))
        covered.append((found.low <= shapley(game)) & (shapley(game) <= found.high))
    assert 0.91 <= np.mean(covered) <= 0.98

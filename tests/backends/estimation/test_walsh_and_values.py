"""Walsh spectra and exact effects, against their definitions on small pools."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from recallgym.backends.estimation.values import (
    add_one_in,
    average_effect,
    banzhaf,
    differences,
    leave_one_out,
    shapley,
)
from recallgym.backends.estimation.walsh import inverse, main_effect_share, orders, spectrum, walsh

GAMES = st.integers(1, 5).flatmap(lambda n: arrays(np.float64, 1 << n, elements=st.floats(-10, 10)))


def additive(effects: np.ndarray) -> np.ndarray:
    """Outcomes by bit code of a pool without interactions."""
    codes = np.arange(1 << len(effects))
    return (codes[:, None] >> np.arange(len(effects)) & 1) @ effects


def code(members: tuple[int, ...]) -> int:
    return sum(1 << i for i in members)


@given(GAMES)
def test_the_transform_is_undone_by_its_inverse_and_keeps_the_energy(game: np.ndarray) -> None:
    np.testing.assert_allclose(inverse(walsh(game)), game, atol=1e-9)
    np.testing.assert_allclose((walsh(game) ** 2).sum(), (game**2).mean(), atol=1e-9)
    np.testing.assert_allclose(spectrum(game)[1:].sum(), game.var(), atol=1e-9)


@given(GAMES)
def test_coefficients_are_means_of_signed_outcomes(game: np.ndarray) -> None:
    n = len(game).bit_length() - 1
    signs = np.where(np.arange(len(game))[:, None] >> np.arange(n) & 1, 1.0, -1.0)
    expected = [(game * signs[:, [i for i in range(n) if t >> i & 1]].prod(1)).mean() for t in range(len(game))]
    np.testing.assert_allclose(walsh(game), expected, atol=1e-9)


@given(GAMES)
def test_a_banzhaf_value_is_twice_the_coefficient_of_its_candidate(game: np.ndarray) -> None:
    n = len(game).bit_length() - 1
    np.testing.assert_allclose(banzhaf(game), 2 * walsh(game)[1 << np.arange(n)], atol=1e-9)


def test_without_interactions_all_energy_is_of_order_one_and_all_estimands_agree() -> None:
    effects = np.array([0.5, -2.0, 0.0, 1.0])
    game = additive(effects) - 3
    np.testing.assert_allclose(spectrum(game), [(game.mean()) ** 2, game.var(), 0, 0, 0], atol=1e-12)
    assert main_effect_share(game) == pytest.approx(1.0)
    for exact in (banzhaf, shapley, leave_one_out, add_one_in, lambda f: average_effect(f, 0.2)):
        np.testing.assert_allclose(exact(game), effects, atol=1e-12)


def test_where_nothing_varies_there_is_no_share_of_it() -> None:
    assert np.isnan(main_effect_share(np.full(8, 2.0)))


def test_a_pure_interaction_of_two_has_its_energy_in_order_two() -> None:
    game = np.array([1.0, -1.0, -1.0, 1.0])
    np.testing.assert_allclose(spectrum(game), [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(banzhaf(game), 0, atol=1e-12)


@given(arrays(np.float64, 16, elements=st.floats(-10, 10)))
def test_shapley_values_are_mean_gains_over_all_orders_and_share_out_the_whole(game: np.ndarray) -> None:
    gains = np.zeros(4)
    for order in permutations(range(4)):
        for place, i in enumerate(order):
            gains[i] += game[code(order[: place + 1])] - game[code(order[:place])]
    np.testing.assert_allclose(shapley(game), gains / 24, atol=1e-9)
    np.testing.assert_allclose(shapley(game).sum(), game[-1] - game[0], atol=1e-9)


@given(arrays(np.float64, 8, elements=st.floats(-10, 10)), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_an_average_effect_weights_the_sets_of_the_others_by_their_probability(game: np.ndarray, p: list) -> None:
    expected = np.zeros(3)
    for i in range(3):
        for kept in range(8):
            if not kept >> i & 1:
                weight = np.prod([p[j] if kept >> j & 1 else 1 - p[j] for j in range(3) if j != i])
                expected[i] += weight * (game[kept | 1 << i] - game[kept])
    np.testing.assert_allclose(average_effect(game, p), expected, atol=1e-9)


def test_two_passages_that_say_the_same_have_no_leave_one_out_effect_but_share_the_shapley_value() -> None:
    duplicated = np.array([0.0, 1.0, 1.0, 1.0])  # either or both: the answer is known
    np.testing.assert_allclose(leave_one_out(duplicated), 0)
    np.testing.assert_allclose(add_one_in(duplicated), 1)
    np.testing.assert_allclose(shapley(duplicated), 0.5)
    np.testing.assert_allclose(banzhaf(duplicated), 0.5)


@given(GAMES)
def test_a_candidate_that_does_nothing_has_effect_zero_under_every_estimand(game: np.ndarray) -> None:
    with_dummy = np.concatenate([game, game])  # the last candidate changes nothing
    for exact in (banzhaf, shapley, leave_one_out, add_one_in):
        assert exact(with_dummy)[-1] == pytest.approx(0, abs=1e-12)


def test_leading_axes_are_kept() -> None:
    games = np.random.default_rng(0).normal(size=(2, 3, 16))
    assert spectrum(games).shape == (2, 3, 5)
    for exact in (banzhaf, shapley, leave_one_out, add_one_in):
        assert exact(games).shape == (2, 3, 4)
        np.testing.assert_allclose(exact(games)[1, 2], exact(games[1, 2]))


def test_orders_count_members() -> None:
    assert orders(3).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]


@pytest.mark.parametrize("size", [0, 3, 12])
def test_outcomes_of_some_masks_only_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"all 2\\*\\*N masks.*got {size}"):
        walsh(np.zeros(size))
    with pytest.raises(ValueError, match=f"got {size}"):
        differences(np.zeros(size))

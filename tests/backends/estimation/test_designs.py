"""Designs of masks: distinct, uniform by themselves, and as far apart as they claim."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.estimation.designs import antithetic, greedy, moved, orthogonal, uniform
from recallgym.backends.estimation.kernel import covariance, effect_covariance
from recallgym.backends.estimation.walsh import orders
from recallgym.backends.interventions.sets import bit_codes

DESIGNS = {"uniform": uniform, "antithetic": antithetic, "orthogonal": orthogonal}
ENERGY = np.array([1e4, 0.1, 0.01, 0.002, 0.0005, 1e-4, 1e-5, 1e-6, 1e-7])


@pytest.mark.parametrize("name", DESIGNS)
@given(candidates=st.integers(1, 8), budget=st.integers(1, 300), seed=st.integers(0, 2**31))
def test_no_mask_is_asked_twice_and_the_budget_is_spent(name: str, candidates: int, budget: int, seed: int) -> None:
    masks = DESIGNS[name](candidates, budget, np.random.default_rng(seed))
    assert masks.shape == (min(budget, 1 << candidates), candidates)
    assert len(set(bit_codes(masks).tolist())) == len(masks)
    again = DESIGNS[name](candidates, budget, np.random.default_rng(seed))
    np.testing.assert_array_equal(masks, again)


@pytest.mark.parametrize("name", ["antithetic", "orthogonal"])
@pytest.mark.parametrize("budget", [8, 16, 64])
def test_complements_lie_next_to_each_other(name: str, budget: int) -> None:
    masks = DESIGNS[name](8, budget, np.random.default_rng(1))
    np.testing.assert_array_equal(masks[::2], ~masks[1::2])


@pytest.mark.parametrize(("runs", "strength"), [(16, 3), (32, 3), (64, 3), (128, 7), (256, 8)])
def test_any_columns_up_to_the_strength_hold_every_pattern_equally_often(runs: int, strength: int) -> None:
    masks = orthogonal(8, runs, np.random.default_rng(2))
    for columns in combinations(range(8), strength):
        patterns = np.bincount(bit_codes(masks[:, columns]), minlength=1 << strength)
        assert (patterns == runs >> strength).all()


def test_over_sixteen_orthogonal_masks_main_effects_are_free_of_interactions_of_two() -> None:
    signs = np.where(orthogonal(8, 16, np.random.default_rng(3)), 1, -1)
    for i, (j, k) in product(range(8), combinations(range(8), 2)):
        assert i in (j, k) or (signs[:, i] * signs[:, j] * signs[:, k]).sum() == 0


@pytest.mark.parametrize("name", [*DESIGNS, "moved"])
def test_every_mask_of_a_design_is_uniform_by_itself(name: str) -> None:
    design = DESIGNS.get(name, lambda n, m, rng: moved(orthogonal(n, m, np.random.default_rng(0)), rng))
    draws = np.stack([bit_codes(design(3, 4, np.random.default_rng(s))) for s in range(4000)])  # (4000, 4)
    for place in range(4):
        counts = np.bincount(draws[:, place], minlength=8)
        assert abs(counts - 500).max() < 5 * np.sqrt(500)  # five standard deviations


def test_the_greedy_design_leaves_less_to_know_than_uniform_masks() -> None:
    def left(masks: np.ndarray) -> float:
        shared = effect_covariance(masks, ENERGY)
        gram = covariance(masks, masks, ENERGY) + 1e-9 * np.eye(len(masks))
        return float((4 * ENERGY[1] - (shared * np.linalg.solve(gram, shared.T).T).sum(1)).sum())

    drawn = [left(uniform(8, 16, np.random.default_rng(s))) for s in range(20)]
    assert left(greedy(8, 16, ENERGY)) < 0.6 * min(drawn)
    assert left(moved(greedy(8, 16, ENERGY), np.random.default_rng(0))) == pytest.approx(left(greedy(8, 16, ENERGY)))


def test_the_greedy_design_is_nested_and_reaches_every_mask() -> None:
    whole = greedy(4, 99, ENERGY[:5])
    assert len(set(bit_codes(whole).tolist())) == 16
    np.testing.assert_array_equal(greedy(4, 5, ENERGY[:5]), whole[:5])
    assert set(orders(4)) == {0, 1, 2, 3, 4}


def test_more_candidates_than_the_code_is_long_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 8 candidates, got 9"):
        orthogonal(9, 16, np.random.default_rng(0))

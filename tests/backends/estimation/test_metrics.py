"""Agreement of estimates with what is known."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from recallgym.backends.estimation.metrics import lds, rank_correlation, rmse, top_k_drop

VALUES = arrays(np.float64, 7, elements=st.integers(-3, 3).map(float))


@given(VALUES, VALUES)
def test_rank_correlation_is_spearmans_with_ties(x: np.ndarray, y: np.ndarray) -> None:
    if np.ptp(x) and np.ptp(y):
        assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    else:
        assert rank_correlation(x, y) == 0


def test_errors_are_root_mean_squares() -> None:
    assert rmse([1.0, 3.0], [0.0, 1.0]) == pytest.approx(np.sqrt(2.5))


def test_held_out_predictions_are_scored_by_their_order_alone() -> None:
    assert lds([1.0, 2.0, 3.0], [10.0, 20.0, 1000.0]) == pytest.approx(1)
    assert lds([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1)


def test_the_drop_takes_the_candidates_of_the_greatest_effects_from_the_whole() -> None:
    effects = np.array([0.0, 3.0, 1.0])
    game = (np.arange(8)[:, None] >> np.arange(3) & 1) @ effects
    assert top_k_drop(game, effects, 0) == 0
    assert top_k_drop(game, effects, 1) == pytest.approx(3)
    assert top_k_drop(game, effects, 2) == pytest.approx(4)
    assert top_k_drop(game, -effects, 1) == pytest.approx(0)

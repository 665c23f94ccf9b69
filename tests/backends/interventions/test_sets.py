"""Reading sets and their bit codes."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.interventions.sets import bit_codes, reading_sets, set_lookup

pools = st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


def test_six_candidates_three_shown_give_42_sets_of_which_the_first_is_empty() -> None:
    sets = reading_sets(6, 3)
    assert sets.shape == (42, 6)
    assert not sets[0].any()


@given(pools)
def test_every_set_within_the_budget_appears_once(size: tuple[int, int]) -> None:
    pool, budget = size
    sets = reading_sets(pool, budget)
    assert len(sets) == sum(math.comb(pool, i) for i in range(budget + 1))
    assert len(np.unique(bit_codes(sets))) == len(sets)
    assert sets.sum(axis=1).max() == budget


@given(pools)
def test_lookup_inverts_the_codes_and_marks_sets_over_the_budget(size: tuple[int, int]) -> None:
    pool, budget = size
    lookup = set_lookup(pool, budget)
    assert lookup[bit_codes(reading_sets(pool, budget))].tolist() == list(range(len(reading_sets(pool, budget))))
    for code, column in enumerate(lookup):
        assert (column == -1) == (code.bit_count() > budget)


@pytest.mark.parametrize("budget", [0, 4])
def test_a_budget_outside_the_pool_is_refused(budget: int) -> None:
    with pytest.raises(ValueError, match=r"budget must lie in 1\.\.pool"):
        reading_sets(3, budget)

"""What order alone does, on outcomes whose answer is known; the real reader's are in test_build.py."""

import numpy as np
import pytest

from recallgym.envs.outcomes.orders import Orders, summarise

EMPTY, FIRST, SECOND, BOTH = range(4)  # columns of a table with two candidates


def orders(both: list[float], right: list[int], first: float = -2.0) -> Orders:
    """Outcomes under the empty set, each candidate alone, and both in two orders."""
    u_ref = {EMPTY: [-3.0], FIRST: [first], SECOND: [-2.5], BOTH: both}
    exact = {EMPTY: [0], FIRST: [1], SECOND: [0], BOTH: right}
    return Orders(
        {column: np.array(values) for column, values in u_ref.items()},
        {column: np.array(values, dtype=np.uint8) for column, values in exact.items()},
    )


def test_a_reader_that_ignores_order_shows_none():
    audit = summarise([orders([-1.0, -1.0], [1, 1])], np.array([BOTH]))
    assert (audit.order_sd, audit.keep_all_range, audit.lost, audit.flipped) == (0, 0, 0, 0)
    assert audit.same_best == 1


def test_order_moves_what_it_moves():
    audit = summarise([orders([-1.0, -2.0], [1, 0]), orders([-1.0, -1.0], [1, 1])], np.array([BOTH, BOTH]))
    assert audit.order_sd == pytest.approx(np.sqrt((0.25 + 0) / 2))
    assert audit.keep_all_range == pytest.approx(0.5)
    assert audit.flipped == pytest.approx(0.5)
    assert audit.same_best == 1  # -1.5 on average is still the best


def test_choosing_by_the_tables_order_loses_where_that_order_flatters():
    audit = summarise([orders([-1.0, -4.0], [1, 0], first=-1.5)], np.array([BOTH]))
    assert audit.same_best == 0
    assert audit.lost == pytest.approx(2.5 - 1.5)

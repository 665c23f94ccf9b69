"""The oracle against brute force, and against the environment that it bounds."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.causal_memory.core import Dynamics
from recallgym.envs.causal_memory.live import LiveOutcomes
from recallgym.envs.causal_memory.oracle import Oracle
from recallgym.envs.causal_memory.vector import step_infos
from recallgym.envs.outcomes.table import OutcomeTable
from recallgym.envs.outcomes.toy import toy_table


def random_table(seed: int, pool: int, budget: int) -> OutcomeTable:
    """A table without structure: any utility, and passages of different lengths."""
    rng = np.random.default_rng(seed)
    table = toy_table(seed, questions=24, pool=pool, budget=budget)
    lengths = rng.integers(0, 15, (table.rows, pool))
    tokens = 20 + lengths @ table.sets.T.astype(int)
    return replace(
        table, u_ref=rng.normal(-2, 1, table.u_ref.shape).astype(np.float32), tokens=tokens.astype(np.uint16)
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_a_sessions_optimum_is_that_of_enumeration(seed: int, budget: int, early_exit: bool) -> None:
    table = random_table(seed, pool=3, budget=2)
    config = CausalMemoryConfig(table=table, steps=3, token_budget=budget, token_price=0.5, early_exit=early_exit)
    dynamics = Dynamics(config)
    rows = dynamics.session_rows(np.arange(6), np.zeros(6, dtype=int))
    columns, net = Oracle(dynamics).sessions(rows)
    spent = dynamics.context[rows, columns].sum(axis=1)
    assert (spent <= budget).all()
    np.testing.assert_array_equal(net, dynamics.net[rows, columns])
    for i, session in enumerate(rows):
        plans = np.array(list(product(range(len(table.sets)), repeat=3)))  # (S**3, 3)
        fits = dynamics.context[session, plans].sum(axis=1) <= budget
        assert net[i].sum() == pytest.approx(dynamics.net[session, plans].sum(axis=1)[fits].max())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, 30, 90, 250]))
def test_the_oracles_actions_earn_what_it_says_and_no_other_actions_earn_more(seed: int, budget: int | None) -> None:
    table = random_table(seed, pool=5, budget=3)
    config = CausalMemoryConfig(table=table, steps=4, token_budget=budget)
    env = config.make_vector(32)
    oracle = Oracle(env.dynamics)
    rows = env.dynamics.session_rows(np.arange(32), np.zeros(32, dtype=int))
    columns, net = oracle.sessions(rows)
    env.reset(seed=0)
    earned = np.zeros((32, 4))
    for t in range(4):
        _, earned[:, t], _, _, infos = env.step(oracle.actions(columns[:, t]))
        np.testing.assert_array_equal(step_infos(infos)["row"], rows[:, t])
    np.testing.assert_allclose(earned, net)
    env.reset(seed=0)
    rng = np.random.default_rng(seed)
    others = sum(env.step(rng.integers(0, 2, (32, 6)))[1] for _ in range(4))
    assert (others <= net.sum(axis=1) + 1e-9).all()


def test_without_a_binding_budget_the_session_oracle_is_the_myopic_one() -> None:
    for budget in (None, 10**9):
        dynamics = Dynamics(CausalMemoryConfig(table=random_table(0, 6, 3), token_budget=budget))
        rows = dynamics.session_rows(np.arange(50), np.zeros(50, dtype=int))
        oracle = Oracle(dynamics)
        for left, right in zip(oracle.sessions(rows), oracle.best(rows), strict=True):
            np.testing.assert_array_equal(left, right)


def test_on_the_toy_table_the_best_set_is_the_helpful_candidates() -> None:
    table = toy_table()
    oracle = Oracle(Dynamics(CausalMemoryConfig(table=table, token_price=0.0)))
    columns, _ = oracle.best(np.arange(table.rows))
    healthy, degraded = columns[::2], columns[1::2]
    effects = table.u_ref[::2, 1:7] - table.u_ref[::2, :1]
    np.testing.assert_array_equal(table.sets[healthy], effects > 0)
    assert (degraded == 0).all()


def test_prices_make_the_best_set_smaller() -> None:
    table = random_table(0, 6, 3)
    sizes = []
    for price in (0.0, 10.0, 100.0):
        dynamics = Dynamics(CausalMemoryConfig(table=table, token_price=price))
        columns, _ = Oracle(dynamics).best(np.arange(table.rows))
        sizes.append(dynamics.sizes[columns].mean())
    assert sizes[0] > sizes[1] > sizes[2]


def test_live_outcomes_have_no_oracle() -> None:
    table = toy_table()
    live = LiveOutcomes(table, lambda row, bits: {})
    with pytest.raises(ValueError, match="the oracle needs an enumerated table"):
        Oracle(Dynamics(CausalMemoryConfig(table=table), live))

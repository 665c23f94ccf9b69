"""Sessions are paired across policies, and regret is measured against the exact optimum."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from recallgym.agents.evaluation import evaluate
from recallgym.agents.reinforce import returns_to_go
from recallgym.agents.rollout import roll
from recallgym.envs.causal_memory.oracle import Oracle
from recallgym.policies import KeepAll, KeepNone, RandomGate


def rule(kind, env_config):
    table = env_config.load_table()
    return kind(blocks=env_config.layout().blocks, pool=table.pool, budget=table.budget)


def test_all_policies_meet_the_same_questions_for_the_same_seed(hidden_env):
    first = evaluate(rule(KeepAll, hidden_env), hidden_env, sessions=32, seed=7)
    second = evaluate(rule(KeepNone, hidden_env), hidden_env, sessions=32, seed=7)
    other = evaluate(rule(KeepNone, hidden_env), hidden_env, sessions=32, seed=8)
    assert np.array_equal(first["row"], second["row"])
    assert np.array_equal(first["oracle"], second["oracle"])
    assert np.array_equal(second["row"][1:], other["row"][:-1])  # session i is that of seed + i
    assert first["row"].shape == (32, hidden_env.steps)


def test_evaluation_asks_questions_of_the_held_out_split_only(hidden_env):
    records = evaluate(rule(KeepAll, hidden_env), hidden_env, sessions=32)
    table = hidden_env.load_table()
    assert (table.split[records["row"] // table.conditions] == 2).all()
    assert np.array_equal(records["family"], table.family[records["row"] // table.conditions])


def test_no_policy_beats_the_session_oracle_and_the_oracle_has_no_regret(hidden_env):
    for kind in (KeepAll, KeepNone, RandomGate):
        assert (evaluate(rule(kind, hidden_env), hidden_env, sessions=32)["session_regret"].sum(1) > -1e-5).all()
    env = replace(hidden_env, split="test").make_vector(32)
    oracle = Oracle(env.dynamics)
    rows = env.dynamics.session_rows(np.arange(1000, 1032), np.zeros(32, int))
    columns, net = oracle.sessions(rows)
    best = iter(torch.from_numpy(oracle.actions(columns)).float().unbind(1))
    played = roll(env, lambda _: next(best), seed=1000)
    assert np.allclose(played.rewards.T, net, atol=1e-6)


def test_a_random_gate_is_drawn_reproducibly_even_where_nothing_asks_for_draws(hidden_env):
    first, again = (evaluate(rule(RandomGate, hidden_env), hidden_env, sessions=64) for _ in range(2))
    assert np.array_equal(first["set"], again["set"])
    assert 0.4 < first["rejected"].mean() / 4 < 0.6


def test_stochastic_evaluation_draws_from_the_gate(hidden_env, make_gate):
    gate = make_gate(hidden_env)
    decided = evaluate(gate, hidden_env, sessions=64)
    drawn = evaluate(gate, hidden_env, sessions=64, stochastic=True)
    assert (decided["rejected"] == 0).all()
    assert drawn["rejected"].mean() / 4 == pytest.approx(0.45, abs=0.05)


def test_returns_to_go_discount_to_the_end_of_the_session():
    rewards = torch.tensor([[1.0, 0.0], [2.0, 4.0], [3.0, 8.0]])
    expected = torch.tensor([[1 + 1 + 0.75, 2 + 2], [2 + 1.5, 4 + 4], [3, 8]])
    assert torch.equal(returns_to_go(rewards, 0.5), expected)

"""The best constant is the best of all constants."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from recallgym.agents.baselines import BestConstantSearch, NoTraining
from recallgym.agents.evaluation import evaluate
from recallgym.envs.outcomes.toy import toy_table
from recallgym.policies import BestConstant, KeepAll


def arguments(env_config):
    table = env_config.load_table()
    return {"blocks": env_config.layout().blocks, "pool": table.pool, "budget": table.budget}


def test_without_a_budget_the_search_finds_the_action_of_greatest_expected_utility(open_env):
    policy = BestConstant(**arguments(open_env))
    result = BestConstantSearch(sessions=512).fit(open_env, policy, seed=0)
    env = open_env.make_vector(1)
    dynamics, table = env.dynamics, env.dynamics.table
    questions = table.question_ids("train")
    weight = 1 / np.bincount(table.family[questions])[table.family[questions]]  # families are drawn uniformly
    rows = (questions[:, None] * 2 + np.arange(2)).ravel()
    codes = np.arange(2 ** (table.pool + 1))
    step = dynamics.step(rows[:, None], dynamics.choose_bits(rows[:, None], codes), np.full((len(rows), 1), 2**40))
    expected = np.average(step.reward, axis=0, weights=np.repeat(weight, 2))  # (A,)
    found = int(policy.decide(torch.zeros(1, policy.observation_size))[0] @ 2.0 ** torch.arange(table.pool + 1))
    assert expected[found] >= expected.max() - 0.02
    assert result.steps == len(codes) * 512 * open_env.steps


def test_no_constant_does_better_in_sessions_with_a_budget_and_on_weights(hidden_env):
    for env_config in (hidden_env, replace(hidden_env, action="weights")):
        policy = BestConstant(**arguments(env_config))
        shares = []
        BestConstantSearch(sessions=64).fit(env_config, policy, seed=0, progress=lambda s, _, to=shares: to.append(s))
        best = evaluate(policy, env_config, split="train", sessions=64, seed=0)["reward"].mean()
        for code in range(32):
            bits = [code >> i & 1 for i in range(5)]
            other = BestConstant(bits, **arguments(env_config))
            assert evaluate(other, env_config, split="train", sessions=64, seed=0)["reward"].mean() <= best + 1e-6
        assert shares[-1] == 1


def test_the_search_refuses_other_policies_and_no_training_leaves_them_alone(hidden_env):
    rule = KeepAll(**arguments(hidden_env))
    with pytest.raises(ValueError, match="expected policy=best_constant for agent=best_constant, got KeepAll"):
        BestConstantSearch().fit(hidden_env, rule, seed=0)
    result = NoTraining().fit(hidden_env, rule, seed=0)
    assert result.policy is rule
    assert result.steps == 0
    assert toy_table().pool == 6

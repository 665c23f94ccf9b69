"""The exact gradient is the expectation that sampled gradients estimate."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from recallgym.agents.exact_gradient import ExactGradient, all_actions, code_probabilities
from recallgym.agents.rollout import acting, roll
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.toy import toy_table
from recallgym.policies.base import bernoulli_log_prob


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_code_probabilities_are_the_product_of_the_bits(p):
    p = torch.tensor([p], dtype=torch.float64)
    codes = torch.arange(2 ** p.shape[1])
    bits = (codes[:, None] >> torch.arange(p.shape[1])) & 1
    expected = torch.where(bits == 1, p, 1 - p).prod(-1)
    torch.testing.assert_close(code_probabilities(p)[0], expected)


def test_the_gradient_equals_the_score_function_gradient_summed_over_all_actions():
    logits = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    worth = torch.randn(3, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    probabilities = code_probabilities(torch.sigmoid(logits))
    (exact,) = torch.autograd.grad((probabilities * worth).sum(), logits, retain_graph=True)
    bits = ((torch.arange(16)[:, None] >> torch.arange(4)) & 1).double()  # (A, K)
    log_prob = bernoulli_log_prob(logits[:, None], bits)  # (M, A)
    (score,) = torch.autograd.grad((probabilities.detach() * worth * log_prob).sum(), logits)
    torch.testing.assert_close(exact, score)


def test_all_actions_hold_what_the_environment_gave_for_the_actions_that_were_taken(hidden_env, make_gate):
    env = hidden_env.make_vector(32)
    gate = make_gate(hidden_env)
    sessions = roll(env, acting(gate, "bits", generator=torch.Generator().manual_seed(0)), seed=0)
    rewards, following = all_actions(env.dynamics, sessions)
    taken = (sessions.actions @ 2.0 ** torch.arange(sessions.actions.shape[-1])).long()  # (T, B)
    everything = torch.arange(taken.numel())
    torch.testing.assert_close(rewards[everything, taken.flatten()].reshape(taken.shape), sessions.rewards)
    reached = following[everything, taken.flatten()].reshape(*taken.shape, 4)
    layout = env.dynamics.layout
    torch.testing.assert_close(reached[:-1, :, :2], sessions.observations[1:, :, layout.slice("feedback")])
    torch.testing.assert_close(reached[:-1, :, 2:], sessions.observations[1:, :, layout.slice("budget")])
    assert (reached[-1, :, 3] == 0).all()


def test_all_actions_know_what_a_spent_budget_drops():
    config = CausalMemoryConfig(table=toy_table(), token_budget=50, token_price=0, search_price=0)
    env = config.make_vector(16)
    sessions = roll(env, lambda x: torch.ones(len(x), 7), seed=0)
    rewards, _ = all_actions(env.dynamics, sessions)
    spent = rewards.reshape(8, 16, -1)[-1]  # one passage costs 40 tokens: the budget went in the first step
    assert torch.equal(spent, spent[:, :1].expand_as(spent))


def test_a_pool_too_large_to_sum_over_is_refused_with_the_way_out(make_gate):
    config = CausalMemoryConfig(table=toy_table(questions=12, pool=13, budget=1))
    with pytest.raises(ValueError, match=r"N <= 12; this pool has N = 13: use agent=ppo"):
        ExactGradient(steps=1, envs=2).fit(config, make_gate(config), seed=0)
    assert np.prod(config.load_table().u_ref.shape) > 0

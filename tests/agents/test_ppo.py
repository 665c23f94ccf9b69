"""The actor-critic is the gate, with the distributions that PPO's mathematics needs."""

import pytest
import torch
from gymnasium import spaces
from torch import distributions

from recallgym.agents.ppo import GateActorCritic
from recallgym.policies import CausalGate

POOL = 4


def make(action_space) -> GateActorCritic:
    gate = CausalGate(blocks=(("query", 8), ("budget", 2)), pool=POOL, budget=2, hidden=16)
    with torch.no_grad():
        gate.output.weight.mul_(100)
    observation_space = spaces.Box(-5, 5, (10,))
    return GateActorCritic(
        observation_space,
        action_space,
        lambda _: 1e-3,
        gate=gate,
        critic=(16,),
        log_std=-1.0,
        generator=torch.Generator().manual_seed(0),
    )


X = torch.randn(64, 10, generator=torch.Generator().manual_seed(1))


def test_bits_have_the_probability_and_entropy_of_independent_bernoullis():
    policy = make(spaces.MultiBinary(POOL + 1))
    actions, values, log_prob = policy(X)
    expected = distributions.Bernoulli(logits=policy.gate(X))
    torch.testing.assert_close(log_prob, expected.log_prob(actions).sum(-1))
    again, log_prob_again, entropy = policy.evaluate_actions(X, actions)
    torch.testing.assert_close((values, log_prob), (again, log_prob_again))
    torch.testing.assert_close(entropy, expected.entropy().sum(-1))
    assert torch.equal(policy(X, deterministic=True)[0], policy.gate.decide(X))


def test_doses_have_the_probability_and_entropy_of_gaussians_around_the_gates_doses():
    policy = make(spaces.Box(-1, 1, (POOL + 1,)))
    actions, _, log_prob = policy(X)
    expected = distributions.Normal(2 * policy.gate.mean_dose(X) - 1, policy.log_std.exp())
    torch.testing.assert_close(log_prob, expected.log_prob(actions).sum(-1))
    torch.testing.assert_close(policy.evaluate_actions(X, actions)[2], expected.entropy().sum(-1))
    deterministic = policy(X, deterministic=True)[0]
    torch.testing.assert_close(((deterministic + 1) / 2).clamp(0, 1), policy.gate.dose(X))


def test_the_actor_is_the_gate_itself_and_no_default_network_is_left():
    policy = make(spaces.MultiBinary(POOL + 1))
    names = {name.split(".")[0] for name, _ in policy.named_parameters()}
    assert names == {"gate", "critic"}
    optimised = {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert {id(p) for p in policy.gate.parameters()} < optimised


@pytest.mark.parametrize("action_space", [spaces.MultiBinary(POOL + 1), spaces.Box(-1, 1, (POOL + 1,))])
def test_stable_baselines_predict_works_on_it(action_space):
    action, _ = make(action_space).predict(X.numpy(), deterministic=True)
    assert action.shape == (64, POOL + 1)
    assert action_space.contains(action[0].astype(action_space.dtype))

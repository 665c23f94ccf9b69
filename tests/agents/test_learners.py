"""Every learner finds the optimum of a table whose optimum is known, the same one for the same seed."""

from dataclasses import replace

import hydra.utils
import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from recallgym.agents.evaluation import evaluate
from recallgym.agents.exact_gradient import ExactGradient
from recallgym.agents.ppo import PPO
from recallgym.agents.reinforce import Reinforce
from recallgym.policies import KeepAll

LEARNERS = {
    "ppo": PPO(steps=98_304, envs=256),
    "reinforce": Reinforce(steps=245_760, envs=256),
    "exact": ExactGradient(steps=16_384, envs=128, batch=256),
}
SHORT = {
    "ppo": PPO(steps=3 * 512, envs=64, batch=128, validate_every=2, validation_sessions=16),
    "reinforce": Reinforce(steps=3 * 512, envs=64, validate_every=2, validation_sessions=16),
    "exact": ExactGradient(steps=3 * 512, envs=64, batch=128, validate_every=2, validation_sessions=16),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_reach_95_percent_of_the_known_optimum(name, open_env, make_gate):
    result = LEARNERS[name].fit(open_env, make_gate(open_env), seed=0)
    records = evaluate(result.policy, open_env, sessions=128)
    assert records["reward"].sum() >= 0.95 * records["oracle"].sum()
    assert result.steps >= LEARNERS[name].steps


@pytest.mark.parametrize("name", SHORT)
def test_equal_seeds_give_equal_parameters_and_other_seeds_give_others(name, hidden_env, make_gate):
    fits = [SHORT[name].fit(hidden_env, make_gate(hidden_env), seed=seed).policy.state_dict() for seed in (3, 3, 4)]
    assert all(torch.equal(fits[0][key], fits[1][key]) for key in fits[0])
    assert not torch.equal(fits[0]["hidden.weight"], fits[2]["hidden.weight"])


@pytest.mark.parametrize("name", SHORT)
def test_training_leaves_the_global_generators_as_they_were(name, hidden_env, make_gate):
    gate = make_gate(hidden_env)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    SHORT[name].fit(hidden_env, gate, seed=0)
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


@pytest.mark.parametrize("name", SHORT)
def test_the_snapshot_that_validates_best_is_returned_with_its_normaliser(name, hidden_env, make_gate):
    result = SHORT[name].fit(hidden_env, make_gate(hidden_env), seed=0)
    assert [point["steps"] for point in result.curve] == [1024, 1536]
    best = max(point["validation"] for point in result.curve)
    records = evaluate(result.policy, hidden_env, split="validation", sessions=16, seed=0)
    assert records["reward"].mean() == pytest.approx(best, abs=1e-6)
    assert result.policy.normaliser.fitted


def test_a_trained_gate_keeps_its_normaliser_when_it_is_trained_further(hidden_env, make_gate):
    gate = SHORT["exact"].fit(hidden_env, make_gate(hidden_env), seed=0).policy
    mean = gate.normaliser.mean.clone()
    SHORT["exact"].fit(replace(hidden_env, split="test"), gate, seed=1)
    assert torch.equal(gate.normaliser.mean, mean)


def test_ppo_learns_doses_and_alpha_where_the_environment_takes_weights(open_env, make_gate):
    weights = replace(open_env, action="weights")
    gate = make_gate(weights)
    before = evaluate(gate, weights, sessions=128)["reward"].mean()
    learner = replace(LEARNERS["ppo"], steps=65_536)
    result = learner.fit(weights, gate, seed=0)
    assert evaluate(result.policy, weights, sessions=128)["reward"].mean() > before + 0.1
    assert result.policy.alpha != 0.5


@pytest.mark.parametrize("name", ["reinforce", "exact"])
def test_learners_of_bits_refuse_weights_and_callbacks(name, hidden_env, make_gate):
    gate = make_gate(hidden_env)
    with pytest.raises(ValueError, match="takes weights; use agent=ppo"):
        SHORT[name].fit(replace(hidden_env, action="weights"), gate, seed=0)
    with pytest.raises(ValueError, match="need agent=ppo"):
        SHORT[name].fit(hidden_env, gate, seed=0, callbacks=[object()])


def test_a_rule_cannot_be_trained(hidden_env):
    table = hidden_env.load_table()
    rule = KeepAll(blocks=hidden_env.layout().blocks, pool=table.pool, budget=table.budget)
    with pytest.raises(ValueError, match="KeepAll has no parameters to train; use agent=none"):
        SHORT["exact"].fit(hidden_env, rule, seed=0)


class CountRollouts(BaseCallback):
    """Counts rollouts, as a user's callback might."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.count = start

    def _on_rollout_end(self) -> None:
        self.count += 1

    def _on_step(self) -> bool:
        return True


def test_ppo_takes_callbacks_from_configuration_and_reports_progress(hidden_env, make_gate):
    (callback,) = hydra.utils.instantiate([{"_target_": f"{__name__}.CountRollouts", "start": 10}])
    shares = []
    SHORT["ppo"].fit(
        hidden_env,
        make_gate(hidden_env),
        seed=0,
        callbacks=[callback],
        progress=lambda share, _: shares.append(share),
    )
    assert callback.count == 13
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])

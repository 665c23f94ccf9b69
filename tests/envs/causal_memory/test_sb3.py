"""The adapter against SB3's own vector environment, and under SB3's own learner."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.causal_memory.sb3 import BatchedVecEnv
from recallgym.envs.outcomes.toy import toy_table

TABLE = toy_table(questions=36)


def make(num_envs: int = 4, **settings: Any) -> BatchedVecEnv:
    return BatchedVecEnv(CausalMemoryConfig(table=TABLE, **settings).make_vector(num_envs))


def test_it_steps_as_dummy_vec_env_over_single_environments_does() -> None:
    config = CausalMemoryConfig(table=TABLE, steps=3)
    batched, dummy = BatchedVecEnv(config.make_vector(4)), DummyVecEnv([config.make] * 4)
    for env in (batched, dummy):
        env.seed(5)
    np.testing.assert_array_equal(batched.reset(), dummy.reset())
    for _ in range(8):
        actions = np.stack([dummy.action_space.sample() for _ in range(4)])
        (observations, rewards, dones, infos), expected = batched.step(actions), dummy.step(actions)
        for array, other in zip((observations, rewards, dones), expected[:3], strict=True):
            np.testing.assert_array_equal(array, other)
            assert array.dtype == other.dtype
        for info, other in zip(infos, expected[3], strict=True):
            assert ("terminal_observation" in info) == ("terminal_observation" in other) == dones[0]
            if dones[0]:
                np.testing.assert_array_equal(info["terminal_observation"], other["terminal_observation"])
                assert info["TimeLimit.truncated"] is other["TimeLimit.truncated"] is False


def test_continuous_masks_are_presented_as_minus_one_to_one_and_mapped_back() -> None:
    config = CausalMemoryConfig(table=TABLE, action="weights")
    batched, vector = BatchedVecEnv(config.make_vector(16)), config.make_vector(16)
    assert (batched.action_space.low == -1).all()
    assert (batched.action_space.high == 1).all()
    batched.seed(0)
    np.testing.assert_array_equal(batched.reset(), vector.reset(seed=0)[0])
    weights = np.random.default_rng(0).uniform(0, 1, (16, 7)).astype(np.float32).round(2)
    np.testing.assert_array_equal(batched.step(2 * weights - 1)[1], vector.step(weights)[1].astype(np.float32))
    batched.step(np.full((16, 7), 3.0, np.float32))  # what a Gaussian draws outside its bounds is clipped


@pytest.mark.parametrize("action", ["bits", "weights"])
def test_ppo_learns_over_it_and_evaluates(action: Any) -> None:
    torch.set_num_threads(1)
    env = VecMonitor(make(8, action=action))
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(256)
    assert len(model.ep_info_buffer) > 0
    mean, _ = evaluate_policy(model, make(4, action=action), n_eval_episodes=4, warn=False)
    assert np.isfinite(mean)


def test_the_info_arrays_of_the_last_step_are_at_hand() -> None:
    env = make()
    env.reset()
    assert env.infos["episode"].tolist() == [0] * 4
    env.step(np.ones((4, 7)))
    assert env.infos["utility"].tolist() == [0.0] * 4


def test_attributes_and_methods_are_those_of_the_whole_vector() -> None:
    env = make(3)
    env.reset()
    assert env.get_attr("num_envs") == [3, 3, 3]
    assert env.get_attr("num_envs", indices=1) == [3]
    env.set_attr("note", "kept")
    assert env.get_attr("note")[0] == "kept"
    assert len(env.env_method("observe")) == 3
    assert env.env_is_wrapped(gymnasium.Wrapper) == [False] * 3
    with pytest.raises(ValueError, match="indices must be None, got 1"):
        env.env_method("observe", indices=1)
    with pytest.raises(ValueError, match="indices must be None"):
        env.set_attr("note", "lost", indices=[0])


def test_another_autoreset_mode_is_refused() -> None:
    other = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
    with pytest.raises(ValueError, match=r"SAME_STEP autoreset, as SB3 presumes; got AutoresetMode\.NEXT_STEP"):
        BatchedVecEnv(other)

"""What holds for every registered environment of this package, with its default arguments."""

import inspect
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.env_checker import check_env as check_env_sb3

import recallgym.envs  # noqa: F401 - registers

IDS = sorted(name for name in gymnasium.registry if name.startswith("recallgym/"))


@pytest.fixture(params=IDS)
def env_id(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def env(env_id: str) -> Iterator[gymnasium.Env]:
    env = gymnasium.make(env_id, disable_env_checker=True)
    yield env.unwrapped
    env.close()


@pytest.fixture
def vector(env_id: str) -> Iterator[VectorEnv]:
    vector = gymnasium.make_vec(env_id, num_envs=5)
    yield vector
    vector.close()


def rollout(env: Any, steps: int, seed: int) -> list[Any]:
    """Steps with sampled actions, resetting single environments at the end of a session; returns all that came."""
    env.action_space.seed(seed)
    seen = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        seen += [observation, reward, terminated, truncated]
        if not isinstance(env, VectorEnv) and (terminated or truncated):
            seen.append(env.reset()[0])
    return seen


def assert_equal(left: list[Any], right: list[Any]) -> None:
    for a, b in zip(left, right, strict=True):
        np.testing.assert_array_equal(a, b)


def test_importing_the_package_registers_and_an_identifier_alone_imports_it() -> None:
    assert IDS
    code = f"import gymnasium; gymnasium.make('recallgym.envs:{IDS[0]}').reset(seed=0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_loads_gymnasium_and_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'ray', 'stable_baselines3'}"
    code = f"import recallgym.envs, sys; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_gymnasium_finds_nothing_to_warn_about(env: gymnasium.Env) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)


def test_stable_baselines3_finds_nothing_to_warn_about(env: gymnasium.Env) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env_sb3(env)


def test_observations_and_actions_lie_in_their_spaces(env: gymnasium.Env, vector: VectorEnv) -> None:
    for each in (env, vector):
        observation, _ = each.reset(seed=0)
        for _ in range(30):
            assert observation in each.observation_space
            observation, _, terminated, truncated, _ = each.step(each.action_space.sample())
            if each is env and (terminated or truncated):
                observation, _ = each.reset()


def test_equal_seeds_and_actions_give_equal_runs_and_other_seeds_give_others(
    env: gymnasium.Env, vector: VectorEnv
) -> None:
    for each in (env, vector):
        first = rollout(each, 20, seed=3)
        assert_equal(first, rollout(each, 20, seed=3))
        other = rollout(each, 20, seed=4)
        assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=False))


def test_sub_environments_differ_and_sub_environment_i_has_seed_plus_i(env: gymnasium.Env, vector: VectorEnv) -> None:
    observations, _ = vector.reset(seed=7)
    assert len(np.unique(observations, axis=0)) > 1
    for i in range(vector.num_envs):
        np.testing.assert_array_equal(observations[i], env.reset(seed=7 + i)[0])


@pytest.mark.parametrize("steps", [0, 3, 11])
def test_a_restored_state_continues_bit_identically(env_id: str, steps: int) -> None:
    for make in (lambda: gymnasium.make(env_id).unwrapped, lambda: gymnasium.make_vec(env_id, num_envs=3).unwrapped):
        first, second = make(), make()
        rollout(first, steps, seed=5)
        second.set_state(first.get_state())
        np.testing.assert_array_equal(first.observe(), second.observe())
        for _ in range(12):
            actions = first.action_space.sample()
            *arrays, _ = first.step(actions)
            *others, _ = second.step(actions)
            assert_equal(arrays, others)
            if not isinstance(first, VectorEnv) and (arrays[2] or arrays[3]):
                np.testing.assert_array_equal(first.reset()[0], second.reset()[0])


def test_the_vector_environment_is_native_and_resets_in_the_step_that_ends_a_session(vector: VectorEnv) -> None:
    assert type(vector.unwrapped).__module__.startswith("recallgym.")
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    vector.reset(seed=0)
    for _ in range(1000):
        observations, _, terminated, truncated, infos = vector.step(vector.action_space.sample())
        ended = terminated | truncated
        if ended.any():
            i = int(np.flatnonzero(ended)[0])
            assert infos["_final_obs"][i]
            assert infos["final_obs"][i] in vector.single_observation_space
            assert not np.array_equal(infos["final_obs"][i], observations[i])
            return
    pytest.fail("no session ended within 1,000 steps")


def test_ansi_rendering_gives_text(env_id: str) -> None:
    env = gymnasium.make(env_id, render_mode="ansi")
    env.reset(seed=0)
    assert isinstance(env.render(), str)
    env.step(env.action_space.sample())
    assert isinstance(env.render(), str)


def test_the_documentation_has_gymnasiums_sections(env: gymnasium.Env) -> None:
    documentation = inspect.getdoc(type(env)) or ""
    sections = ("Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End")
    for section in (*sections, "Arguments", "Version History"):
        assert f"## {section}" in documentation

"""The vector environment: errors, infos and resets that are its own."""

from typing import Any

import numpy as np
import pytest

from recallgym.envs.causal_memory.core import INFO_KEYS
from recallgym.envs.causal_memory.vector import CausalMemoryVectorEnv, step_infos
from recallgym.envs.outcomes.toy import toy_table

TABLE = toy_table(questions=36)


def make(num_envs: int = 4, **settings: Any) -> CausalMemoryVectorEnv:
    env = CausalMemoryVectorEnv(num_envs, table=TABLE, **settings)
    env.reset(seed=0)
    return env


def test_bad_actions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(4, 7\), got \(7,\)"):
        make().step(np.ones(7))
    weights = np.ones((4, 7), dtype=np.float32)
    weights[2, 3] = np.nan
    with pytest.raises(ValueError, match="got NaN in 1 rows"):
        make(action="weights").step(weights)


def test_stepping_before_a_reset_is_refused() -> None:
    env = CausalMemoryVectorEnv(2, table=TABLE)
    for method in (lambda: env.step(np.ones((2, 7))), env.observe, env.get_state):
        with pytest.raises(RuntimeError, match="reset"):
            method()


def test_seeds_may_be_given_one_by_one() -> None:
    env = make(3)
    observations, infos = env.reset(seed=[8, 1, 8])
    assert infos["seed"].tolist() == [8, 1, 8]
    np.testing.assert_array_equal(observations[0], observations[2])
    np.testing.assert_array_equal(observations[1], make(3).reset(seed=1)[0][0])
    with pytest.raises(ValueError, match="one integer or 3 of them, got 2"):
        env.reset(seed=[1, 2])


def test_step_infos_finds_the_steps_own_infos_at_the_end_of_a_session_too() -> None:
    env = make(steps=2)
    for _ in range(4):
        *_, infos = env.step(env.action_space.sample())
        assert set(INFO_KEYS) <= set(step_infos(infos))
        assert all(step_infos(infos)[key].shape == (4,) for key in INFO_KEYS)


def test_what_is_returned_stays_as_it_was() -> None:
    env = make(steps=3)
    kept = [env.step(env.action_space.sample()) for _ in range(7)]
    copies = [[np.copy(array) for array in step[:4]] for step in kept]
    for _ in range(7):
        env.step(env.action_space.sample())
    for step, copy in zip(kept, copies, strict=True):
        for array, expected in zip(step[:4], copy, strict=True):
            np.testing.assert_array_equal(array, expected)


def test_a_state_is_not_changed_by_later_steps_and_fits_only_as_many_environments() -> None:
    env = make()
    env.step(env.action_space.sample())
    state = env.get_state()
    copies = {key: np.copy(value) for key, value in state.items()}
    for _ in range(10):
        env.step(env.action_space.sample())
    for key, value in copies.items():
        np.testing.assert_array_equal(state[key], value)
    with pytest.raises(ValueError, match=r"the state is of \(4,\) environments, this vector has 5"):
        make(5).set_state(state)


def test_at_least_one_environment_is_needed() -> None:
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        CausalMemoryVectorEnv(0, table=TABLE)

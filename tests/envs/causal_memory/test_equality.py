"""Single and vector environments are one environment."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings, strategies as st

from recallgym.backends.interventions.observation import BLOCKS
from recallgym.envs.causal_memory import CausalMemoryConfig, Threshold
from recallgym.envs.outcomes.toy import toy_table

TABLE = toy_table(questions=36)

configs = st.builds(
    CausalMemoryConfig,
    table=st.just(TABLE),
    split=st.sampled_from(["train", "validation", "test"]),
    observe=st.permutations(BLOCKS).flatmap(lambda names: st.integers(1, len(names)).map(lambda n: names[:n])),
    noise=st.sampled_from([None, "typos", "prefix"]),
    mode=st.sampled_from(["hard", "soft", "multiply"]),
    alpha=st.sampled_from([0.0, 0.5]),
    threshold=st.builds(
        Threshold,
        kind=st.sampled_from(["fixed", "norm_scaled", "norm_scaled_inverse"]),
        base=st.sampled_from([0.01, 0.5]),
    ),
    fallback=st.sampled_from(["none", "same", "heterogeneous"]),
    backfill=st.booleans(),
    early_exit=st.booleans(),
    steps=st.integers(1, 5),
    token_budget=st.sampled_from([None, 1, 100, 250, 800]),
    token_price=st.sampled_from([0.0, 0.02]),
    search_price=st.sampled_from([0.0, 0.01]),
    switch=st.sampled_from([0.0, 0.3, 1.0]),
    action=st.sampled_from(["bits", "weights"]),
)


def assert_same_infos(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for key, value in left.items():
        if isinstance(value, dict):
            assert_same_infos(value, right[key])
        elif key == "final_obs":
            np.testing.assert_array_equal(np.stack(value), np.stack(right[key]))
        else:
            np.testing.assert_array_equal(value, right[key], err_msg=key)


@settings(max_examples=60, deadline=None)
@given(configs, st.integers(1, 4), st.integers(0, 2**40), st.integers(0, 2**32 - 1))
def test_the_vector_environment_is_the_single_one_step_by_step_across_sessions(
    config: CausalMemoryConfig, num_envs: int, seed: int, action_seed: int
) -> None:
    singles = SyncVectorEnv([config.make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    vector = config.make_vector(num_envs)
    assert vector.single_observation_space == singles.single_observation_space
    assert vector.action_space == singles.action_space
    vector.action_space.seed(action_seed)
    (expected, expected_infos), (observations, infos) = singles.reset(seed=seed), vector.reset(seed=seed)
    np.testing.assert_array_equal(observations, expected)
    assert_same_infos(infos, expected_infos)
    for _ in range(2 * config.steps + 1):
        actions = vector.action_space.sample()
        *expected_arrays, expected_infos = singles.step(actions)
        *arrays, infos = vector.step(actions)
        for array, other in zip(arrays, expected_arrays, strict=True):
            np.testing.assert_array_equal(array, other)
            assert array.dtype == other.dtype
        assert arrays[0] in vector.observation_space
        assert_same_infos(infos, expected_infos)


@settings(max_examples=20, deadline=None)
@given(configs, st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_a_state_restored_in_a_fresh_environment_continues_bit_identically(
    config: CausalMemoryConfig, steps: int, action_seed: int
) -> None:
    first, second = config.make_vector(3), config.make_vector(3)
    first.action_space.seed(action_seed)
    first.reset(seed=11)
    for _ in range(steps):
        first.step(first.action_space.sample())
    second.set_state(first.get_state())
    np.testing.assert_array_equal(first.observe(), second.observe())
    for _ in range(config.steps + 1):
        actions = first.action_space.sample()
        *arrays, infos = first.step(actions)
        *others, other_infos = second.step(actions)
        for array, other in zip(arrays, others, strict=True):
            np.testing.assert_array_equal(array, other)
        assert_same_infos(infos, other_infos)


@pytest.mark.parametrize("action", ["bits", "weights"])
def test_the_action_dtype_does_not_matter(action: Any) -> None:
    config = CausalMemoryConfig(table=TABLE, action=action)
    results = []
    for dtype in (np.int8, np.int64, np.float32, np.float64):
        vector = config.make_vector(8)
        vector.reset(seed=0)
        actions = np.random.default_rng(0).integers(0, 2, vector.action_space.shape).astype(dtype)
        results.append(vector.step(actions))
    for result in results[1:]:
        np.testing.assert_array_equal(result[0], results[0][0])
        np.testing.assert_array_equal(result[1], results[0][1])


def test_bits_and_weights_agree_where_every_weight_is_zero_or_one() -> None:
    config = CausalMemoryConfig(table=TABLE, alpha=1.0)
    bits, weights = config.make_vector(64), replace(config, action="weights").make_vector(64)
    bits.reset(seed=0), weights.reset(seed=0)
    actions = bits.action_space.sample()
    np.testing.assert_array_equal(bits.step(actions)[1], weights.step(actions)[1])

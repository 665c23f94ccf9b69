"""The single environment: errors, episodes, rendering."""

import json
from typing import Any

import numpy as np
import pytest

from recallgym.envs.causal_memory.single import CausalMemoryEnv
from recallgym.envs.outcomes.toy import toy_table

TABLE = toy_table(questions=36)


def make(**settings: Any) -> CausalMemoryEnv:
    env = CausalMemoryEnv(table=TABLE, **settings)
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(
    ("settings", "action", "message"),
    [
        ({}, np.ones(6), r"must have shape \(7,\), got \(6,\)"),
        ({}, np.full(7, 0.5), "must hold bits, 0 or 1"),
        ({}, np.full(7, np.nan), "must hold bits, 0 or 1"),
        ({"action": "weights"}, np.ones((1, 7)), r"must have shape \(7,\), got \(1, 7\)"),
        ({"action": "weights"}, np.full(7, np.nan), r"weights in \[0, 1\], got \[nan"),
        ({"action": "weights"}, np.full(7, 1.5), r"weights in \[0, 1\], got \[1.5"),
    ],
)
def test_a_bad_action_is_refused_and_changes_nothing(
    settings: dict[str, Any], action: np.ndarray, message: str
) -> None:
    env = make(**settings)
    before = env.get_state()
    with pytest.raises(ValueError, match=message):
        env.step(action)
    assert env.get_state() == before


def test_stepping_before_a_reset_or_after_the_end_is_refused() -> None:
    env = CausalMemoryEnv(table=TABLE, steps=1)
    for method in (lambda: env.step(np.ones(7)), env.observe, env.get_state):
        with pytest.raises(RuntimeError, match="reset"):
            method()
    env.reset()
    assert env.step(np.ones(7))[2] is True
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(np.ones(7))


def test_sessions_end_after_the_stated_steps_by_termination_never_truncation() -> None:
    env = make(steps=5)
    ends = [env.step(np.ones(7))[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(True, False)]


def test_a_reset_without_seed_is_the_next_episode_and_with_seed_the_first() -> None:
    env = CausalMemoryEnv(table=TABLE, seed=9)
    identities = [env.reset()[1], env.reset()[1], env.reset(seed=4)[1], env.reset()[1], env.reset(seed=4)[1]]
    assert [(i["seed"], i["episode"]) for i in identities] == [(9, 0), (9, 1), (4, 0), (4, 1), (4, 0)]


def test_episodes_far_ahead_match_the_dynamics() -> None:
    env = make(steps=3)
    for episode in range(1, 140):
        env.reset()
        rows = [env.step(np.ones(7))[4]["row"] for _ in range(3)]
        assert rows == env.dynamics.session_rows(0, episode)[0].tolist()


def test_a_state_is_plain_json_and_continues_in_a_fresh_environment() -> None:
    env, other = make(), CausalMemoryEnv(table=TABLE)
    for _ in range(3):
        env.step(env.action_space.sample())
    other.set_state(json.loads(json.dumps(env.get_state())))
    np.testing.assert_array_equal(env.observe(), other.observe())
    for _ in range(5):
        action = env.action_space.sample()
        (observation, *rest), (other_observation, *other_rest) = env.step(action), other.step(action)
        np.testing.assert_array_equal(observation, other_observation)
        assert rest == other_rest
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])


def test_a_foreign_state_is_refused() -> None:
    env, foreign = make(), CausalMemoryEnv(table=toy_table(seed=1))
    foreign.reset()
    with pytest.raises(ValueError, match="the state is of table toy-1-"):
        env.set_state(foreign.get_state())
    with pytest.raises(ValueError, match="at step 7, sessions here have 4 steps"):
        make(steps=4).set_state(env.get_state() | {"step": 7})


def test_what_is_returned_is_the_callers_to_change() -> None:
    env, twin = make(), make()
    for _ in range(4):
        observation, *_, info = env.step(np.ones(7))
        expected = twin.step(np.ones(7))[0]
        np.testing.assert_array_equal(observation, expected)
        observation[:] = 0
        info.clear()


def test_rendering_tells_the_last_step() -> None:
    env = make(render_mode="ansi", early_exit=False, fallback="same")
    assert env.render() == "step 0/8: nothing read yet in this session\n"
    env.step(np.zeros(7))
    text = env.render()
    assert text is not None
    assert text.startswith("step 1/8: toy/")
    assert "read [0, 1, 2] by fallback, 120 tokens; utility +0.000" in text
    assert make().render() is None
    with pytest.raises(ValueError, match="render_mode must be 'ansi' or None, got 'human'"):
        CausalMemoryEnv(table=TABLE, render_mode="human")

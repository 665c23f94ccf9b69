"""Live outcomes from a reader equal those of the table that the same reader fills."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.causal_memory.core import INFO_KEYS
from recallgym.envs.causal_memory.live import LiveOutcomes
from recallgym.envs.outcomes.toy import toy_table

POOL = toy_table(questions=24)
TEXTS = [f"passage {i} " * (1 + i % 4) for i in range(POOL.rows * POOL.pool)]


def read(row: int, bits: np.ndarray) -> dict[str, float]:
    """A toy reader: a deterministic function of the question and of the texts shown, in pool order."""
    shown = " ".join(TEXTS[i] for i in POOL.passage[row][bits])
    digest = sum((i + 1) * ord(c) for i, c in enumerate(f"{row}:{shown}"))
    return {
        "u_ref": -(digest % 997) / 331,
        "u_self": -(digest % 89) / 3,  # some below the observation's bound
        "entropy": (digest % 101) / 37,
        "tokens": 15 + len(shown.split()),
        "exact_match": digest % 2,
        "f1": (digest % 5) / 4,
    }


def filled() -> Any:
    results = [[read(row, bits) for bits in POOL.sets] for row in range(POOL.rows)]
    arrays = {
        name: np.array([[r[name] for r in row] for row in results]).astype(getattr(POOL, name).dtype)
        for name in ("u_ref", "u_self", "entropy", "tokens", "exact_match", "f1")
    }
    return replace(POOL, **arrays)


@pytest.mark.parametrize("action", ["bits", "weights"])
@pytest.mark.parametrize("token_budget", [None, 40])
def test_live_and_tabular_runs_are_equal(action: Any, token_budget: int | None) -> None:
    config = CausalMemoryConfig(table=filled(), action=action, token_budget=token_budget, early_exit=False)
    live = LiveOutcomes(POOL, read)
    pairs = [
        (config.make_vector(3), replace(config, table=POOL).make_vector(3, outcomes=live)),
        (config.make(), replace(config, table=POOL).make(outcomes=live)),
    ]
    for tabular, alive in pairs:
        np.testing.assert_array_equal(tabular.reset(seed=0)[0], alive.reset(seed=0)[0])
        for _ in range(config.steps - 1):
            action_ = tabular.action_space.sample()
            *expected, expected_infos = tabular.step(action_)
            *arrays, infos = alive.step(action_)
            for array, other in zip(arrays, expected, strict=True):
                np.testing.assert_array_equal(array, other)
            for key in set(INFO_KEYS) - {"regret"}:
                np.testing.assert_array_equal(infos[key], expected_infos[key])
            assert np.isnan(infos["regret"]).all()


def test_the_reader_runs_once_for_each_set_and_never_for_sets_not_asked_for() -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def score(row: int, bits: np.ndarray) -> dict[str, float]:
        asked.append((row, tuple(np.flatnonzero(bits))))
        return read(row, bits)

    live = LiveOutcomes(POOL, score)
    env = CausalMemoryConfig(table=POOL, token_budget=None).make(outcomes=live)
    env.reset(seed=0)
    env.step(np.array([0, 1, 0, 0, 0, 0, 1]))
    assert sorted(sets for _, sets in asked) == [(), (0, 1, 2), (1,)]  # the empty prompt, keep-all, the reading
    assert len(asked) == len(set(asked)) == live.calls == 3

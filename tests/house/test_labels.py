"""Nothing that decides can see what it is judged by.

Labels are exchanged for others of the same kind, and what decides must do bit for bit the same: observations under any
labels at all; training and selection under any labels of the test families; learning while serving, flags, fallbacks
and estimators under any reference outcome.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hydra.utils import get_object

from recallgym.agents.estimators.interface import CountedReader, TrainingPool
from recallgym.agents.online import Online
from recallgym.backends.interventions.observation import BLOCKS
from recallgym.backends.interventions.sets import bit_codes, reading_sets
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import RELATIONS, SPLITS, OutcomeTable
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.ablation import load_ablation
from recallgym.experiments.compose import build, compose_config, option_files, resolved
from recallgym.experiments.fallbacks import fallback_columns
from recallgym.experiments.flagging import ConflictFlags
from recallgym.experiments.identification import pool_of
from recallgym.experiments.stream import Phase, Stream
from recallgym.policies.causal_gate import CausalGate

TABLE = toy_table(questions=48, types=3, pool=4, budget=2)
JUDGED_BY = ("u_ref", "exact_match", "f1", "answer", "relation", "strata")
"""Arrays of a table that come from the reference answer or from what a passage is known to state."""


def relabelled(table: OutcomeTable, rows: np.ndarray, names: tuple[str, ...] = JUDGED_BY) -> OutcomeTable:
    """Labels of these rows drawn anew."""
    rng = np.random.default_rng(7)
    drawn = {
        "u_ref": -rng.exponential(2, table.u_ref.shape),
        "exact_match": rng.integers(0, 2, table.exact_match.shape),
        "f1": rng.random(table.f1.shape),
        "answer": np.zeros(table.answer.shape),
        "relation": rng.integers(0, len(RELATIONS), table.relation.shape),
        "strata": rng.random(table.strata.shape) < 0.5,
    }
    changed = {}
    for name in names:
        values = getattr(table, name).copy()
        values[rows] = drawn[name].astype(values.dtype)[rows]
        changed[name] = values
    return replace(table, **changed)


def rows_of(table: OutcomeTable, split: str) -> np.ndarray:
    return np.flatnonzero(table.split[np.arange(table.rows) // table.conditions] == SPLITS.index(split))


@pytest.mark.parametrize("block", BLOCKS)
def test_no_observation_holds_a_label(block: str) -> None:
    everything = relabelled(TABLE, np.arange(TABLE.rows))
    configs = [CausalMemoryConfig(table=table, observe=(block,)) for table in (TABLE, everything)]
    seen = [config.make_vector(2).dynamics.static for config in configs]
    np.testing.assert_array_equal(*seen)


def test_feedback_is_the_readers_own_opinion() -> None:
    seen = []
    for table in (TABLE, relabelled(TABLE, np.arange(TABLE.rows))):
        env = CausalMemoryConfig(table=table, observe=("feedback", "budget")).make_vector(8)
        env.reset(seed=0)
        seen.append(np.stack([env.step(np.ones((8, TABLE.pool + 1), np.int8))[0] for _ in range(5)]))
    np.testing.assert_array_equal(*seen)


SMALL = {
    "exact_gradient": {"steps": 2048, "envs": 64, "validate_every": 4, "validation_sessions": 16},
    "reinforce": {"steps": 2048, "envs": 64, "validate_every": 2, "validation_sessions": 16},
    "ppo": {"steps": 2048, "envs": 32, "rollout": 32, "validate_every": 1, "validation_sessions": 16},
    "best_constant": {},
}


@pytest.mark.parametrize("name", [file.stem for file in option_files("agent") if file.stem != "none"])
def test_training_and_selection_do_not_depend_on_labels_of_the_test_families(name: str) -> None:
    config = resolved(compose_config([f"agent={name}"]))["agent"]
    settings = {key: value for key, value in SMALL[name].items() if key in config}
    policies = []
    for table in (TABLE, relabelled(TABLE, rows_of(TABLE, "test"))):
        env = CausalMemoryConfig(table=table)
        policy = build(
            resolved(compose_config([f"policy={'best_constant' if name == 'best_constant' else 'gate'}"]))["policy"],
            blocks=env.layout().blocks,
            pool=table.pool,
            budget=table.budget,
            bank_size=8,
        )
        policies.append(build({**config, **settings}).fit(env, policy, seed=0).policy.state_dict())
    for key, value in policies[0].items():
        assert torch.equal(value, policies[1][key]), key


def test_training_does_depend_on_labels_of_the_training_families() -> None:
    """So that the test above could fail."""
    policies = []
    for table in (TABLE, relabelled(TABLE, rows_of(TABLE, "train"))):
        env = CausalMemoryConfig(table=table)
        policy = CausalGate(blocks=env.layout().blocks, pool=table.pool, budget=table.budget, hidden=32)
        agent = get_object("recallgym.agents.exact_gradient.ExactGradient")(**SMALL["exact_gradient"])
        policies.append(agent.fit(env, policy, seed=0).policy.output.weight)
    assert not torch.equal(*policies)


def test_a_gate_that_learns_while_it_serves_does_not_depend_on_the_reference_outcome() -> None:
    phases = (Phase(1, "train", 40, 0.0), Phase(1, "test", 40, 1.0))
    done = []
    for table in (TABLE, relabelled(TABLE, np.arange(TABLE.rows), ("u_ref", "f1", "strata"))):
        env = CausalMemoryConfig(table=table, early_exit=False, token_budget=None, steps=4)
        gate = CausalGate(blocks=env.layout().blocks, pool=table.pool, budget=table.budget, hidden=16, keep=0.5)
        found = Stream(phases, learner=Online(1e-2, label_rate=1e-3))(gate, env, None, 0)
        done.append(np.stack([found[name] for name in ("calls", "uniform", "asked", "reset")]))
    np.testing.assert_array_equal(*done)


@pytest.mark.parametrize("signal", ["u_self", "entropy"])
def test_flags_do_not_depend_on_what_they_are_judged_by(signal: str) -> None:
    labels = relabelled(TABLE, np.arange(TABLE.rows))
    flagged = [
        ConflictFlags(signal=signal)(None, CausalMemoryConfig(table=table), None, 0)["flagged"]  # type: ignore[arg-type]
        for table in (TABLE, labels)
    ]
    np.testing.assert_array_equal(*flagged)


@pytest.mark.parametrize("fallback", ["none", "same", "heterogeneous"])
def test_fallbacks_do_not_depend_on_labels(fallback: str) -> None:
    labels = relabelled(TABLE, np.arange(TABLE.rows))
    np.testing.assert_array_equal(fallback_columns(TABLE, fallback), fallback_columns(labels, fallback))


ESTIMATORS = load_ablation("identification").arms


@pytest.mark.parametrize("arm", [arm for arm, entry in ESTIMATORS.items() if "estimator" in entry.evaluation])
def test_estimators_learn_of_a_query_only_what_they_ask_the_reader(arm: str) -> None:
    """Outcomes that were not asked for are exchanged: the estimate stays the same."""
    whole = toy_table(questions=24, pool=4, budget=4)
    games = whole.u_ref[:, whole.lookup].astype(float)  # (R, S) by bit code
    looked = np.random.default_rng(2).dirichlet(np.ones(4), whole.rows).astype(np.float32)  # (R, N)
    training = [TrainingPool(pool_of(whole, row), games[row], looked[row]) for row in range(1, whole.rows)]
    evaluation = ESTIMATORS[arm].evaluation
    estimator = build({**evaluation["estimator"]}).fit(training)
    budget = min(int(evaluation.get("budget", 8)), 16)
    masks = reading_sets(4, 4)

    def estimate(game: np.ndarray) -> tuple[np.ndarray, set[int]]:
        reader = CountedReader(lambda asked: game[bit_codes(asked)], lambda: looked[0], pool=4, budget=budget)
        effects = estimator.estimate(pool_of(whole, 0), reader, np.random.default_rng(0))
        return effects.values, set(reader.asked)

    values, asked = estimate(games[0])
    other = games[0].copy()
    hidden = [code for code in bit_codes(masks).tolist() if code not in asked]
    other[hidden] = np.random.default_rng(1).normal(size=len(hidden))
    np.testing.assert_array_equal(estimate(other)[0], values)

"""A stream on a computable table: what it asks, what it shows the gate, and what it counts."""

from dataclasses import replace

import numpy as np
import pytest

from recallgym.agents.online import Online, OnlineGate
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import SPLITS
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.stream import Phase, Stream
from recallgym.policies.causal_gate import CausalGate
from recallgym.policies.rules import KeepAll

TABLE = toy_table()
ENV = CausalMemoryConfig(table=TABLE, early_exit=False, token_budget=None, steps=4)
SHAPE = {"blocks": ENV.layout().blocks, "pool": TABLE.pool, "budget": TABLE.budget}
PHASES = (Phase(2, "train", 10, 0.0), {"days": 3, "split": "test", "requests": 20, "degraded": 1.0})


def gate() -> CausalGate:
    return CausalGate(**SHAPE, hidden=16, keep=0.5)


def test_the_schedule_says_whose_questions_come_when_and_under_which_condition() -> None:
    rows, days, phase = Stream(PHASES).requests(ENV)
    assert len(rows) == 2 * 10 + 3 * 20
    assert (np.diff(days) > 0).all()
    assert days.max() < 5
    split = TABLE.split[rows // TABLE.conditions]
    assert (split[phase == 0] == SPLITS.index("train")).all()
    assert (split[phase == 1] == SPLITS.index("test")).all()
    np.testing.assert_array_equal(rows % TABLE.conditions, phase)  # healthy first, then degraded


def test_all_arms_meet_the_same_requests_whatever_their_seed() -> None:
    one, other = (Stream(PHASES, learner=Online(1e-2))(gate(), ENV, None, seed) for seed in (0, 1))
    np.testing.assert_array_equal(one["row"], other["row"])
    assert (one["regret"] != other["regret"]).any()


def test_equal_seeds_serve_and_learn_alike() -> None:
    one, again = (Stream(PHASES, learner=Online(1e-2, label_rate=1e-3))(gate(), ENV, None, 3) for _ in range(2))
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])


def test_the_oracle_has_no_regret_and_a_rule_has_that_of_its_sets() -> None:
    free = replace(ENV, fallback="none")
    np.testing.assert_allclose(Stream(PHASES, oracle=True)(KeepAll(**SHAPE), free, None, 0)["regret"], 0, atol=1e-6)
    found = Stream(PHASES)(KeepAll(**SHAPE), ENV, None, 0)
    np.testing.assert_array_equal(found["regret"], found["greedy_regret"])
    np.testing.assert_allclose(found["utility"], 0, atol=1e-6)  # it reads the unmasked set
    assert (found["calls"] == 1).all()


def test_what_is_learned_does_not_depend_on_the_reference_outcome() -> None:
    """The whole of U_ref is exchanged: what the gate does at every step stays the same, only its worth changes."""
    other = replace(TABLE, u_ref=np.random.default_rng(1).permuted(TABLE.u_ref, axis=1))
    settings = Online(1e-2, label_rate=1e-3)
    done = []
    for table in (TABLE, other):
        found = Stream(PHASES, learner=settings)(gate(), replace(ENV, table=table), None, 0)
        done.append(found)
    for name in ("calls", "uniform", "asked", "exact_match"):
        np.testing.assert_array_equal(done[0][name], done[1][name])
    assert (done[0]["regret"] != done[1]["regret"]).any()


def test_labels_arrive_after_their_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    taught = []
    monkeypatch.setattr(OnlineGate, "teach", lambda self, observation, keep: taught.append(keep))
    wrong = replace(TABLE, exact_match=np.zeros_like(TABLE.exact_match), u_self=TABLE.u_self * 4)
    settings = Online(1e-3, label_rate=1e-3)
    late = Stream(PHASES, learner=settings, delay=100)(gate(), replace(ENV, table=wrong), None, 0)
    assert late["asked"].sum() > 0
    assert not taught
    found = Stream(PHASES, learner=settings, delay=0.0)(gate(), replace(ENV, table=wrong), None, 0)
    assert len(taught) >= found["asked"].sum() - 1 > 0


def test_a_control_that_learns_from_the_reference_improves() -> None:
    long = (Phase(1, "train", 10, 0.0), Phase(10, "test", 150, 0.0))
    learned = Stream(long, learner=Online(3e-3), signal="u_ref")(gate(), ENV, None, 0)
    half = len(learned["row"]) // 2
    assert learned["greedy_regret"][half:].mean() < 0.9 * learned["greedy_regret"][:half].mean()


def test_an_environment_that_a_stream_cannot_serve_is_refused() -> None:
    with pytest.raises(ValueError, match=r"needs env\.early_exit=false, env\.token_budget=null and env\.action=bits"):
        Stream(PHASES)(gate(), replace(ENV, early_exit=True), None, 0)


def test_schedules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one phase"):
        Stream(())
    with pytest.raises(ValueError, match=r"degraded in \[0, 1\], got Phase\(days=1"):
        Phase(1, "test", 1, 2.0)
    with pytest.raises(ValueError, match="signal must be one of u_self, u_ref; got 'mood'"):
        Stream(PHASES, signal="mood")

"""What is read after everything was rejected, held against the environment's own fallback."""

from dataclasses import replace

import numpy as np
import pytest

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.evaluators import PlayedSessions
from recallgym.experiments.fallbacks import CHOICES, EmptiedSteps, fallback_columns
from recallgym.experiments.metrics import measure
from recallgym.policies.rules import KeepAll, KeepNone, RandomGate

TABLE = toy_table()
ENV = CausalMemoryConfig(table=TABLE, token_budget=None)
SHAPE = {"blocks": ENV.layout().blocks, "pool": TABLE.pool, "budget": TABLE.budget}


@pytest.mark.parametrize("fallback", ["none", "same", "heterogeneous"])
def test_it_reads_what_the_environment_reads_when_everything_is_rejected(fallback: str) -> None:
    found = EmptiedSteps(fallback=fallback, sessions=16)(KeepNone(**SHAPE), ENV, None, 0)
    assert found["emptied"].all()
    live = replace(ENV, fallback=fallback, early_exit=False)  # type: ignore[arg-type]
    played = PlayedSessions(sessions=16)(KeepNone(**SHAPE), live, None, 0)
    np.testing.assert_array_equal(found["row"], played["row"])
    np.testing.assert_array_equal(fallback_columns(TABLE, fallback)[found["row"]], played["set"])
    np.testing.assert_allclose(found["fallback_gain"], played["u_ref"] - TABLE.u_ref[found["row"], 0], atol=1e-6)
    np.testing.assert_array_equal(found["fallback_harmful"], played["harmful"])


def test_reading_nothing_is_never_wrong_and_the_bounds_hold_the_two_retrievers() -> None:
    found = {name: EmptiedSteps(fallback=name, sessions=32)(KeepNone(**SHAPE), ENV, None, 0) for name in CHOICES}
    assert not found["none"]["wrong_fallback"].any()
    gains = {name: records["fallback_gain"] for name, records in found.items()}
    for name in ("same", "heterogeneous"):
        assert (gains["worse"] <= gains[name]).all()
        assert (gains[name] <= gains["better"]).all()
    assert found["worse"]["wrong_fallback"].sum() >= found["better"]["wrong_fallback"].sum() > 0


def test_a_gate_that_keeps_everything_never_falls_back() -> None:
    found = EmptiedSteps(sessions=8)(KeepAll(**SHAPE), ENV, None, 0)
    assert not found["emptied"].any()
    assert not found["fallback_read"].any()


def test_only_emptied_steps_count_and_the_same_ones_whatever_the_fallback() -> None:
    gate = RandomGate(**SHAPE)
    same, other = (EmptiedSteps(fallback=f, sessions=64)(gate, ENV, None, 3) for f in ("same", "heterogeneous"))
    np.testing.assert_array_equal(same["emptied"], other["emptied"])
    assert 0 < same["emptied"].mean() < 1
    assert not same["fallback_gain"][~same["emptied"]].any()
    numerator, denominator = measure("wrong_fallback", same)
    assert (numerator <= denominator).all()


def test_where_the_retrievers_disagree_a_person_is_asked_and_nothing_is_read() -> None:
    found = EmptiedSteps(review=True, sessions=32)(KeepNone(**SHAPE), ENV, None, 0)
    first = TABLE.scores.argmax(1)[found["row"]]  # (B, T, 2)
    np.testing.assert_array_equal(found["reviewed"], first[..., 0] != first[..., 1])
    assert not found["fallback_read"][found["reviewed"]].any()
    assert found["fallback_read"][~found["reviewed"]].all()


def test_an_unknown_fallback_is_refused() -> None:
    with pytest.raises(ValueError, match="fallback must be one of none, same, heterogeneous, better, worse; got 'web'"):
        EmptiedSteps(fallback="web")

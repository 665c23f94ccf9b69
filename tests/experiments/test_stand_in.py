"""Signals that stand in for the reference outcome, on a table where it is known how well they do."""

from dataclasses import replace

import numpy as np
import pytest

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.check import keep_all_columns
from recallgym.envs.outcomes.table import OutcomeTable
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.metrics import measure
from recallgym.experiments.stand_in import StandIn

TABLE = toy_table()


def run(table: OutcomeTable, signal: str, seed: int = 0) -> dict[str, np.ndarray]:
    return StandIn(signal=signal)(None, CausalMemoryConfig(table=table), None, seed)  # type: ignore[arg-type]


def mean(name: str, records: dict[str, np.ndarray]) -> float:
    numerator, denominator = measure(name, records)
    return float(numerator.sum() / denominator.sum())


def test_the_reference_itself_is_without_fault() -> None:
    found = run(TABLE, "u_ref")
    np.testing.assert_allclose(found["signal_correlation"], 1)
    assert mean("sign_agreement", found) == mean("harm_seen", found) == 1
    rows = found["row"]
    gain = TABLE.u_ref[rows].max(1) - TABLE.u_ref[rows, keep_all_columns(TABLE)[rows]]
    np.testing.assert_allclose(found["chosen_utility"], gain, atol=1e-5)


def test_an_opinion_that_follows_the_reference_chooses_well_and_one_turned_round_does_not() -> None:
    assert mean("chosen_utility", run(TABLE, "u_self")) > 0.9 * mean("chosen_utility", run(TABLE, "u_ref"))
    turned = run(replace(TABLE, u_self=-10 - TABLE.u_ref), "u_self")
    np.testing.assert_allclose(turned["signal_correlation"], -1, atol=1e-6)
    assert mean("sign_agreement", turned) == 0
    assert mean("chosen_utility", turned) < mean("chosen_utility", run(TABLE, "chance"))


def test_the_unmasked_reading_gains_nothing_over_itself() -> None:
    assert not run(TABLE, "unmasked")["chosen_utility"].any()


def test_chance_orders_nothing_and_differs_from_seed_to_seed() -> None:
    found = [run(TABLE, "chance", seed)["signal_correlation"].mean() for seed in range(10)]
    assert abs(np.mean(found)) < 0.05
    assert len(set(found)) == 10


def test_low_entropy_is_liked() -> None:
    assert run(TABLE, "entropy")["signal_correlation"].mean() > 0.9  # the toy's entropy falls as U_ref rises


def test_an_unknown_signal_is_refused() -> None:
    with pytest.raises(ValueError, match=r"signal must be one of u_self, .*; got 'mood'"):
        StandIn(signal="mood")  # type: ignore[arg-type]

"""Flags of low utility, held against readings of which it is known whether they did harm."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import OutcomeTable
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.flagging import ConflictFlags, best_threshold, informedness, misled


@pytest.fixture(scope="module")
def table() -> OutcomeTable:
    """A toy table whose degraded rows do harm; the reader's opinion follows the truth in every row."""
    toy = toy_table()
    return replace(toy, u_self=np.minimum(toy.u_ref, 0))


def run(table: OutcomeTable, flags: ConflictFlags, seed: int = 0) -> dict[str, np.ndarray]:
    return flags(None, CausalMemoryConfig(table=table), None, seed)  # type: ignore[arg-type]


def test_an_opinion_that_follows_the_truth_flags_what_did_harm(table: OutcomeTable) -> None:
    found = run(table, ConflictFlags())
    assert 0 < found["harmed"].mean() < 1
    assert found["informedness"].mean() > 0.9
    assert (found["true_flags"] == (found["flagged"] & found["harmed"])).all()


def test_an_opinion_that_is_turned_round_does_worse_than_no_flag(table: OutcomeTable) -> None:
    turned = replace(table, u_self=-10 - table.u_ref)
    assert run(turned, ConflictFlags())["informedness"].mean() < 0


def test_a_calibrated_threshold_finds_harm_where_the_published_one_lies_too_low(table: OutcomeTable) -> None:
    faint = replace(table, u_self=table.u_self * np.float32(0.05))
    assert run(faint, ConflictFlags())["informedness"].mean() < 0.5
    assert run(faint, ConflictFlags(calibrated=True))["informedness"].mean() > 0.9


def test_no_threshold_is_calibrated_on_the_family_that_it_is_used_on(
    table: OutcomeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[set[int]] = []

    def spy(utility: np.ndarray, label: np.ndarray) -> float:
        learned.append({round(value) for value in utility.tolist()})
        return -0.2

    monkeypatch.setattr("recallgym.experiments.flagging.best_threshold", spy)
    own = table.family[np.arange(table.rows) // table.conditions].astype(np.float32)  # each family its own utility
    marked = replace(table, u_self=np.where(np.arange(table.u_self.shape[1]) > 0, own[:, None], 0).astype(np.float32))
    run(marked, ConflictFlags(calibrated=True))
    everything = set(np.unique(own).astype(int).tolist())
    held_out = [everything - seen for seen in learned]
    assert all(held_out)
    assert set().union(*held_out) == everything
    assert sum(len(families) for families in held_out) == len(everything)


def test_flags_that_do_not_look_are_worth_nothing(table: OutcomeTable) -> None:
    assert run(table, ConflictFlags(signal="never"))["informedness"].sum() == 0
    assert abs(run(table, ConflictFlags(signal="always"))["informedness"].sum()) < 1e-9
    drawn = [run(table, ConflictFlags(signal="chance", rate=0.3), seed)["informedness"].mean() for seed in range(40)]
    assert abs(np.mean(drawn)) < 0.05


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_informedness_is_recall_minus_false_alarm_rate(pairs: list[tuple[bool, bool]]) -> None:
    flagged, label = np.array(pairs).T
    if label.all() or not label.any():
        assert not informedness(flagged, label).any()
    else:
        expected = flagged[label].mean() - flagged[~label].mean()
        assert informedness(flagged, label).mean() == pytest.approx(expected)


def test_the_best_threshold_separates_what_can_be_separated() -> None:
    utility = np.array([-0.5, -0.3, 0.0, 0.2])
    threshold = best_threshold(utility, np.array([True, True, False, False]))
    assert -0.3 < threshold <= 0.0


def test_misled_means_something_wrong_was_read_and_nothing_right() -> None:
    table = toy_table()  # helpful candidates are gold, the others contradict
    rows = np.arange(4)
    gold = table.relation[rows] == 0
    whole = np.where(gold.any(1), table.lookup[1 << gold.argmax(1)], 0)
    assert not misled(table, rows, whole).any()
    wrong = table.lookup[1 << (~gold).argmax(1)]
    assert misled(table, rows, wrong).all()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"signal must be one of u_self, .*; got 'mood'"):
        ConflictFlags(signal="mood")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a threshold of at most 0 and a rate in \[0, 1\], got 0.1 and 0.5"):
        ConflictFlags(threshold=0.1)

"""Flags at their thresholds, a queue against sorting, and precision and recall with honest intervals."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest
from sklearn.metrics import precision_score, recall_score

from recallgym.backends.estimation.flags import (
    ReviewQueue,
    conflicts,
    flag_quality,
    needs_review,
    top_1_disagreement,
    wilson,
)

STEPS = st.lists(st.sampled_from([-np.inf, -2.0, -0.5, -0.31]), max_size=30)  # few values, so that there are ties
BITS = st.integers(0, 40).flatmap(lambda m: arrays(np.bool_, (2, m)))


def test_flags_look_strictly_below_the_published_thresholds() -> None:
    utility = [-np.inf, -0.31, -0.3, -0.21, -0.2, 0.0, 5.0]
    assert conflicts(utility).tolist() == [True] * 4 + [False] * 3
    assert needs_review(utility, True).tolist() == [True] * 2 + [False] * 5
    assert conflicts(utility, 1.0).sum() == 6


def test_only_wrong_answers_are_reviewed() -> None:
    assert needs_review([-1.0, -1.0, 1.0], [True, False, True]).tolist() == [True, False, False]


@given(arrays(np.float64, st.integers(0, 20), elements=st.floats(allow_nan=True)))
def test_what_is_reviewed_is_a_conflict_too(utility: np.ndarray) -> None:
    assert not (needs_review(utility, True) & ~conflicts(utility)).any()


def test_a_step_without_an_outcome_is_not_flagged_and_counts_as_missed_where_it_did_harm() -> None:
    flags = conflicts([np.nan, -1.0])
    assert flags.tolist() == [False, True]
    assert not needs_review([np.nan], True).any()
    assert flag_quality(flags, np.array([True, True])).recall == 0.5


@given(BITS)
def test_precision_and_recall_are_their_definitions_and_lie_in_their_intervals(bits: np.ndarray) -> None:
    flags, labels = bits
    found = flag_quality(flags, labels)
    assert (found.flagged, found.labelled, found.both) == (flags.sum(), labels.sum(), (flags & labels).sum())
    for value, interval, count, score in (
        (found.precision, found.precision_interval, found.flagged, precision_score),
        (found.recall, found.recall_interval, found.labelled, recall_score),
    ):
        if count:
            assert value == pytest.approx(score(labels, flags))
            assert interval[0] - 1e-12 <= value <= interval[1] + 1e-12
        else:
            assert np.isnan(value)
            assert interval == (0.0, 1.0)


@given(BITS)
def test_exchanging_flags_and_labels_exchanges_precision_and_recall(bits: np.ndarray) -> None:
    one, other = flag_quality(*bits), flag_quality(*bits[::-1])
    assert one.precision_interval == other.recall_interval


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_wilsons_interval_is_scipys(counts: tuple[int, int], level: float) -> None:
    expected = binomtest(*counts).proportion_ci(level, method="wilson")
    assert wilson(*counts, level) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilsons_interval_covers_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).binomial(30, 0.1, size=2000)
    ends = np.array([wilson(int(draw), 30) for draw in draws])
    assert 0.93 <= np.mean((ends[:, 0] <= 0.1) & (ends[:, 1] >= 0.1)) <= 0.99


@given(STEPS, st.integers(1, 8))
def test_the_queue_keeps_the_lowest_in_order_and_ties_by_arrival(utilities: list[float], capacity: int) -> None:
    queue = ReviewQueue(capacity)
    fallen = [queue.push(str(i), utility) for i, utility in enumerate(utilities)]
    expected = [str(i) for i in np.argsort(utilities, kind="stable")]
    assert queue.waiting == expected[:capacity]
    assert len(queue) == min(capacity, len(utilities))
    assert {name for name in fallen if name is not None} == set(expected[capacity:])  # nothing is lost unseen
    assert [queue.pop() for _ in range(len(queue))] == expected[:capacity]


@given(STEPS, STEPS)
def test_a_queue_goes_on_from_a_state_that_was_written_as_text(before: list[float], after: list[float]) -> None:
    first, second = ReviewQueue(5), ReviewQueue(5)
    for i, utility in enumerate(before):
        first.push(f"before {i}", utility)
    second.set_state(json.loads(json.dumps(first.get_state())))
    for i, utility in enumerate(after):
        assert first.push(f"after {i}", utility) == second.push(f"after {i}", utility)
    assert first.get_state() == second.get_state()


@given(arrays(np.int64, (6, 3), elements=st.integers(-1, 3)), arrays(np.int64, (6, 2), elements=st.integers(-1, 3)))
def test_retrievers_disagree_where_their_first_documents_differ(one: np.ndarray, other: np.ndarray) -> None:
    found = top_1_disagreement(one, other)
    assert found.tolist() == [a[0] != b[0] for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    np.testing.assert_array_equal(found, top_1_disagreement(other[:, 0], one))
    assert not top_1_disagreement(one, one).any()


def test_a_retriever_that_found_nothing_disagrees_with_one_that_did_alone() -> None:
    assert top_1_disagreement([-1, -1, 4], [-1, 3, -1]).tolist() == [False, True, True]


def test_wrong_shapes_types_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match="compare with a threshold first"):
        flag_quality(np.array([-0.5, 0.1]), np.array([True, False]))
    with pytest.raises(ValueError, match=r"\(2,\) and bool \(1,\)"):
        flag_quality(np.array([True, False]), np.array([True]))
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="same queries, got 2 and 3"):
        top_1_disagreement([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="integer ids"):
        top_1_disagreement([0.5, 0.7], [1, 2])
    with pytest.raises(ValueError, match=r"k >= 1, got int64 \(2, 0\)"):
        top_1_disagreement(np.zeros((2, 0), dtype=np.int64), [1, 2])
    with pytest.raises(ValueError, match="capacity of at least 1"):
        ReviewQueue(0)
    with pytest.raises(ValueError, match="'q7' has utility NaN"):
        ReviewQueue(1).push("q7", np.nan)
    with pytest.raises(ValueError, match="a queue of 2, this one holds 3"):
        ReviewQueue(3).set_state(ReviewQueue(2).get_state())
    with pytest.raises(IndexError):
        ReviewQueue(1).pop()

"""Information of discrete variables against its definition, and a guard that alarms on leaks and on nothing else."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from recallgym.backends.estimation.information import (
    conditional_mutual_information,
    leakage,
    mutual_information,
    quantile_bins,
)

TABLES = st.integers(1, 40).flatmap(lambda m: arrays(np.int64, (3, m), elements=st.integers(0, 3)))


def strata_of(count: int, size: int) -> np.ndarray:
    return np.repeat(np.arange(count), size)


@given(TABLES)
def test_the_plug_in_is_the_definition(table: np.ndarray) -> None:
    x, y, z = table
    assert mutual_information(x, y, corrected=False) == pytest.approx(mutual_info_score(x, y), abs=1e-9)
    by_stratum = sum((z == k).mean() * mutual_info_score(x[z == k], y[z == k]) for k in np.unique(z))
    assert conditional_mutual_information(x, y, z, corrected=False) == pytest.approx(by_stratum, abs=1e-9)


@given(TABLES)
def test_information_is_symmetric_bounded_by_entropy_and_obeys_the_chain_rule(table: np.ndarray) -> None:
    x, y, z = table
    joint = np.stack([y, z], axis=1)
    found = mutual_information(x, y, corrected=False)
    assert found == pytest.approx(mutual_information(y, x, corrected=False), abs=1e-9)
    assert 0 <= found <= min(mutual_information(v, v, corrected=False) for v in (x, y)) + 1e-9
    chain = mutual_information(x, z, corrected=False) + conditional_mutual_information(x, y, z, corrected=False)
    assert mutual_information(x, joint, corrected=False) == pytest.approx(chain, abs=1e-9)
    assert conditional_mutual_information(x, y, z) >= 0


@given(TABLES, st.permutations([0, 1, 2, 3]))
def test_names_of_labels_do_not_matter(table: np.ndarray, names: list[int]) -> None:
    x, y, z = table
    renamed = np.array(names)[x]
    words = np.array(["dense", "sparse", "late", "none"], dtype=object)[z]
    assert conditional_mutual_information(renamed, y, words) == pytest.approx(
        conditional_mutual_information(x, y, z), abs=1e-9
    )


@given(TABLES)
def test_a_coarser_memory_tells_no_more(table: np.ndarray) -> None:
    x, y, _ = table
    assert mutual_information(x, y // 2, corrected=False) <= mutual_information(x, y, corrected=False) + 1e-9


def test_the_correction_takes_away_the_bias_of_independent_variables() -> None:
    rng = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(400):
        x, y = rng.integers(4, size=(2, 300))
        plain.append(mutual_information(x, y, corrected=False))
        corrected.append(mutual_information(x, y))
    assert np.mean(plain) == pytest.approx(9 / 600, rel=0.1)  # (4 - 1)(4 - 1) / 2M
    assert np.mean(corrected) < np.mean(plain) / 2  # not 0, as it is cut off there


def test_a_noisy_copy_shares_what_the_channel_lets_through() -> None:
    rng = np.random.default_rng(1)
    x = rng.random(20_000) < 0.5
    y = x ^ (rng.random(x.size) < 0.1)
    capacity = np.log(2) + 0.1 * np.log(0.1) + 0.9 * np.log(0.9)
    assert mutual_information(x, y) == pytest.approx(capacity, abs=0.01)


def test_a_mask_that_the_stratum_decides_is_informative_and_never_alarms() -> None:
    rng = np.random.default_rng(2)
    strata = strata_of(40, 12)
    memory = strata % 4 * 3 + rng.integers(3, size=strata.size)  # the query brings its own memories
    found = leakage(strata % 2, memory, strata, rng, permutations=99)
    assert found.unconditional == pytest.approx(np.log(2), abs=0.02)
    assert found.information == pytest.approx(0, abs=1e-9)
    assert found.null_mean == pytest.approx(0, abs=1e-9)
    assert found.p == 1
    assert not found.alarm


def test_draws_that_the_stratum_governs_seldom_alarm() -> None:
    """Few rows and many labels: the plug-in is far over 0.05 nats by itself. Nothing is allowed, so p alone decides."""
    alarms, loud = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        strata = strata_of(12, 8)
        memory = rng.integers(4, size=strata.size)
        mask = rng.random(strata.size) < (0.2 + 0.6 * rng.random(12))[strata]
        found = leakage(mask, memory, strata, rng, permutations=59, allowed=0.0)
        alarms.append(found.alarm)
        loud.append(found.information > 0.05)
    assert np.mean(loud) == 1
    assert np.mean(alarms) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("fidelity", [0.9, 1.0])
def test_a_mask_that_follows_the_memory_alarms(fidelity: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        strata = strata_of(20, 10)
        memory = rng.integers(2, size=strata.size)
        mask = np.where(rng.random(strata.size) < fidelity, memory, 1 - memory)
        found = leakage(mask, memory, strata, rng, permutations=99)
        assert found.alarm
        assert found.excess > 0.05
        assert found.information > found.null_quantile


def test_a_certain_but_small_leak_is_significant_and_raises_no_alarm() -> None:
    rng = np.random.default_rng(3)
    strata = strata_of(4, 2000)
    memory = rng.integers(2, size=strata.size)
    mask = rng.random(strata.size) < 0.5 + 0.1 * (memory - 0.5)
    found = leakage(mask, memory, strata, rng, permutations=99)
    assert found.p == 0.01
    assert 0 < found.excess < 0.05
    assert not found.alarm


def test_bits_of_a_whole_pool_are_one_label() -> None:
    rng = np.random.default_rng(4)
    strata = strata_of(20, 12)
    pools = rng.integers(2, size=(strata.size, 3))
    assert leakage(pools, pools, strata, rng, permutations=39).alarm
    assert not leakage(pools[:, :1], pools[:, 1:], strata, rng, permutations=39).alarm


@given(st.integers(2, 6), st.integers(1, 5))
def test_labels_that_are_all_different_could_not_show_a_leak_and_are_refused(size: int, count: int) -> None:
    strata = strata_of(count, size)
    identity, kind = np.arange(strata.size), np.arange(strata.size) % size % 2
    for mask, memory in ((kind, identity), (identity, kind), (kind, strata)):
        with pytest.raises(ValueError, match="several pools"):
            leakage(mask, memory, strata, np.random.default_rng(0))


def test_the_share_of_rows_that_can_show_a_leak_is_told() -> None:
    strata = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    memory = np.array([0, 1, 0, 1, 5, 5, 6, 6])
    assert leakage(memory, memory, strata, np.random.default_rng(0), permutations=19).testable == 0.5


def test_the_same_generator_finds_the_same() -> None:
    table = np.random.default_rng(6).integers(3, size=(3, 60))
    assert leakage(*table, np.random.default_rng(0)) == leakage(*table, np.random.default_rng(0))


def test_too_few_permutations_and_unequal_lengths_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="9 permutations cannot reach p"):
        leakage([0, 1], [0, 1], [0, 0], rng, permutations=9)
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\)"):
        mutual_information([0, 1], [0, 1, 2])


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-5, 5)), st.integers(1, 5))
def test_bins_keep_the_order_and_equal_values_together(values: np.ndarray, bins: int) -> None:
    labels = quantile_bins(values, bins)
    assert labels.min() >= 0
    assert labels.max() < bins
    order = np.argsort(values)
    assert (np.diff(labels[order]) >= 0).all()
    assert all(len(set(labels[values == value])) == 1 for value in values)


def test_bins_are_of_equal_size_and_no_feedback_is_a_bin_of_its_own() -> None:
    values = np.append(np.random.default_rng(0).normal(size=40), [np.nan, np.nan])
    assert np.unique(quantile_bins(values, 4), return_counts=True)[1].tolist() == [2, 10, 10, 10, 10]

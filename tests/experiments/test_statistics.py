import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import false_discovery_control, kstest, permutation_test as scipy_permutation_test

from recallgym.experiments import statistics as s


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def scores(values, weights=None, seeds=None, clusters=None) -> s.Scores:
    """Scores whose ratio in each (seed, cluster) is ``values``, with ``weights`` units each."""
    values = np.asarray(values, float)
    weights = np.ones_like(values) if weights is None else np.broadcast_to(np.asarray(weights, float), values.shape)
    n, c = values.shape
    return s.Scores(
        values * weights, weights.copy(), tuple(seeds or range(n)), tuple(clusters or (f"c{i}" for i in range(c)))
    )


def crossed(generator, seeds, clusters, truth, seed_sd=0.5, cluster_sd=0.5, noise=0.2) -> np.ndarray:
    return (
        truth
        + generator.normal(0, seed_sd, (seeds, 1))
        + generator.normal(0, cluster_sd, (1, clusters))
        + generator.normal(0, noise, (seeds, clusters))
    )


def test_interquartile_mean_of_fewer_than_four_scores_is_the_mean():
    assert s.interquartile_mean([1.0, 2.0, 9.0]) == pytest.approx(4.0)
    assert s.interquartile_mean([0.0, 1.0, 2.0, 100.0]) == pytest.approx(1.5)


def test_interquartile_mean_never_trims_a_nan_away():
    assert np.isnan(s.interquartile_mean([1.0, 1.0, 1.0, np.nan]))


def test_interquartile_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one score"):
        s.interquartile_mean([])


def test_scores_refuse_swapped_axes():
    with pytest.raises(ValueError, match=r"\(seeds, clusters\) = \(2, 3\), got \(3, 2\)"):
        s.Scores(np.ones((3, 2)), np.ones((3, 2)), (0, 1), ("a", "b", "c"))


def test_scores_refuse_nan_and_duplicates():
    with pytest.raises(ValueError, match="finite"):
        scores([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="distinct"):
        scores(np.ones((2, 2)), seeds=(3, 3))


def test_units_are_summed_by_cluster_and_a_seed_scores_the_ratio_of_sums():
    got = s.scores_from_units(
        [[1, 2, 3, 4], [0, 0, 1, 1]], np.ones((2, 4)), [2, 0, 2, 2], seeds=(7, 8), names=["a", "unused", "c"]
    )
    assert got.clusters == ("a", "c")
    np.testing.assert_array_equal(got.numerator, [[2, 8], [0, 2]])
    np.testing.assert_allclose(got.per_seed, [2.5, 0.5])


def test_units_of_another_length_are_an_error():
    with pytest.raises(ValueError, match="seeds, units"):
        s.scores_from_units(np.ones((2, 3)), np.ones((2, 3)), [0, 1], seeds=(0, 1), names=["a", "b"])


@pytest.mark.parametrize("other", [{"seeds": (1, 2)}, {"clusters": ("x", "y", "z")}])
def test_a_length_or_name_mismatch_is_an_error_never_no_difference(other):
    a, b = scores(np.ones((2, 3))), scores(np.ones((2, 3)), **other)
    for compare in (s.paired_interval, s.paired_test):
        with pytest.raises(ValueError, match="paired comparison needs the same"):
            compare(a, b, rng())


@pytest.mark.parametrize(("seeds", "clusters"), [(10, 8), (5, 12)])
def test_the_crossed_interval_covers_the_truth_about_as_often_as_it_says(seeds, clusters):
    generator, repeats, hits = rng(1), 200, 0
    for _ in range(repeats):
        interval = s.arm_interval(scores(crossed(generator, seeds, clusters, truth=1.0)), generator)
        hits += interval.low <= 1.0 <= interval.high
    assert 0.91 <= hits / repeats <= 1.0


def test_resampling_seeds_alone_would_be_too_narrow():
    """The same simulation, with each cluster taken as given: the reason for crossing the axes."""
    generator, repeats, hits = rng(2), 100, 0
    for _ in range(repeats):
        values = crossed(generator, 10, 8, truth=1.0)
        one_column = scores(values.mean(1, keepdims=True))
        interval = s.arm_interval(one_column, generator)
        hits += interval.low <= 1.0 <= interval.high
    assert hits / repeats < 0.9


def test_pairing_removes_what_the_arms_share():
    shared = crossed(rng(3), 10, 8, truth=0.0, seed_sd=5, cluster_sd=5)
    a, b = scores(shared + 0.3), scores(shared)
    paired = s.paired_interval(a, b, rng())
    assert paired.estimate == pytest.approx(0.3)
    assert paired.high - paired.low < 0.2 < s.arm_interval(a, rng()).high - s.arm_interval(a, rng()).low


def test_intervals_are_the_same_for_the_same_generator_seed():
    a = scores(crossed(rng(4), 6, 5, truth=0.0))
    assert s.arm_interval(a, rng(9)) == s.arm_interval(a, rng(9))


def test_one_seed_and_one_cluster_give_no_spread_to_estimate():
    assert s.arm_interval(scores([[2.0]]), rng()) == (2.0, 2.0, 2.0)


def test_the_exact_test_over_seeds_agrees_with_scipy():
    generator = rng(5)
    a, b = generator.normal(0.4, 1, (7, 1)), generator.normal(0, 1, (7, 1))
    ours = s.paired_test(scores(a), scores(b), rng())

    def statistic(x, y, axis):
        return x.mean(axis) - y.mean(axis)

    theirs = scipy_permutation_test(
        (a[:, 0], b[:, 0]), statistic, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert ours.over_clusters is None
    assert ours.p == ours.over_seeds == pytest.approx(theirs.pvalue)


def test_p_is_uniform_when_the_arms_are_exchangeable():
    generator = rng(6)
    ps = []
    for _ in range(150):
        test = s.paired_test(scores(generator.normal(size=(9, 1))), scores(generator.normal(size=(9, 1))), generator)
        ps.append(test.p)
    assert kstest(ps, "uniform").pvalue > 0.01
    assert np.mean(np.array(ps) <= 0.05) <= 0.1


def test_p_is_the_larger_of_both_axes():
    values = np.zeros((6, 4))
    test = s.paired_test(scores(values + 1), scores(values), rng())
    assert (test.over_seeds, test.over_clusters) == (2 / 2**6, 2 / 2**4)
    assert test.p == test.over_clusters


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 16), st.integers(1, 16), st.floats(-3, 3), st.integers(0, 2**31))
def test_p_is_never_zero_nor_below_what_the_axes_allow(seeds, clusters, shift, seed):
    generator = rng(seed)
    base = generator.normal(size=(seeds, clusters))
    test = s.paired_test(scores(base + shift), scores(base), generator)
    assert 0 < test.p <= 1
    for p, levels in ((test.over_seeds, seeds), (test.over_clusters, clusters)):
        assert p is None or p >= s.smallest_p(levels) - 1e-12


def test_identical_arms_have_p_one():
    a = scores(rng(7).normal(size=(5, 5)))
    assert s.paired_test(a, a, rng()).p == 1.0


def test_five_seeds_cannot_reach_five_percent_and_six_can():
    assert s.smallest_p(5) == pytest.approx(0.0625)
    assert s.smallest_p(6) == pytest.approx(0.03125)
    assert s.smallest_p(1) == 1.0
    assert s.smallest_p(40) == pytest.approx(1e-4)


def test_holm_by_hand():
    # smallest x3 = .03; next x2 = .08; largest x1 = .03, raised to .08
    assert s.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert s.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert s.holm([]) == []


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=12))
def test_benjamini_hochberg_agrees_with_scipy_and_holm_is_never_smaller(ps):
    adjusted = s.benjamini_hochberg(ps)
    np.testing.assert_allclose(adjusted, false_discovery_control(ps))
    assert all(h >= b - 1e-12 for h, b in zip(s.holm(ps), adjusted, strict=True))


def test_a_p_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        s.holm([0.0, 0.2])


def test_units_needed_finds_the_axis_that_carries_the_noise():
    noise = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    a, b = scores(np.repeat(0.2 + noise[:, None], 20, 1)), scores(np.zeros((6, 20)))
    needed = s.units_needed(a, b, delta=0.05, rng=rng())
    assert needed.seeds is not None
    assert 50 < needed.seeds < 300
    assert needed.clusters is None


def test_units_needed_shrinks_the_interval_as_predicted():
    """With as many seeds as asked for and the same difference, the interval no longer holds 0."""
    values = 0.35 + np.array([-2.0, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 2.0])
    a, b = scores(values[:, None]), scores(np.zeros((8, 1)))
    few = s.paired_interval(a, b, rng())
    assert few.low < 0 < few.high
    needed = s.units_needed(a, b, delta=0.0, rng=rng()).seeds
    repeats = -(-needed // 8)
    many = scores(np.tile(values, repeats)[:, None])
    more = s.paired_interval(many, scores(np.zeros((8 * repeats, 1))), rng())
    assert more.low > 0

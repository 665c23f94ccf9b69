"""Every estimator on pools whose effects are known: budgets, exactness, refusals, what may be seen."""

from collections.abc import Callable

import numpy as np
import pytest

from recallgym.agents.estimators.enumeration import ExactBanzhaf, ExactShapley
from recallgym.agents.estimators.interface import ESTIMANDS, BudgetError, CountedReader, Pool, TrainingPool
from recallgym.agents.estimators.one_at_a_time import AddOneIn, LeaveOneOut
from recallgym.agents.estimators.pooled import UtilityHead, WalshKernel
from recallgym.agents.estimators.proxies import Attention, Chance, Similarity
from recallgym.agents.estimators.randomised import METHODS, RandomisedMasks, SampledShapley
from recallgym.backends.estimation.metrics import rank_correlation
from recallgym.backends.estimation.values import add_one_in, banzhaf, leave_one_out, shapley
from recallgym.backends.estimation.walsh import inverse, orders
from recallgym.backends.interventions.sets import bit_codes

N = 6
SAMPLED = {
    **{
        f"{method} {design}": RandomisedMasks(method, design)
        for method in METHODS
        for design in ("uniform", "antithetic", "orthogonal")
        if method != "paired_least_squares"
    },
    "paired antithetic": RandomisedMasks("paired_least_squares", "antithetic"),
    "shapley": SampledShapley(),
    **{f"kernel {design}": WalshKernel(design) for design in ("uniform", "orthogonal", "greedy")},
    "kernel head": WalshKernel("orthogonal", UtilityHead()),
}
CHEAP = {
    "attention": Attention(),
    "similarity": Similarity(),
    "chance": Chance(),
    "head": UtilityHead(),
    "leave one out": LeaveOneOut(),
    "add one in": AddOneIn(),
}


def known(seed: int, n: int = N) -> TrainingPool:
    """A pool whose effects follow its first content feature and its attention, with decaying interactions."""
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, 3)).astype(np.float32)
    order = orders(n)
    coefficients = rng.normal(size=1 << n) * np.where(order > 1, 0.2 * 0.3 ** (order - 2.0), 0)
    coefficients[0] = -4
    coefficients[1 << np.arange(n)] = content[:, 0] + 0.1 * rng.normal(size=n)
    scores = np.column_stack([content[:, 0] + rng.normal(size=n), rng.normal(size=n)]).astype(np.float32)
    ranks = np.column_stack([np.argsort(np.argsort(-scores[:, 0])), np.full(n, -1)]).astype(np.int16)
    attention = np.exp(content[:, 0]) / np.exp(content[:, 0]).sum()
    return TrainingPool(Pool(np.zeros(4, np.float32), scores, ranks, content), inverse(coefficients), attention)


TRAINING = [known(s) for s in range(100, 130)]


def reader_of(pool: TrainingPool, budget: int, spy: Callable[[np.ndarray], None] = lambda masks: None) -> CountedReader:
    def outcome(masks: np.ndarray) -> np.ndarray:
        spy(masks)
        return pool.outcomes[bit_codes(masks)]

    return CountedReader(outcome, lambda: pool.attention, pool=pool.pool.size, budget=budget)


@pytest.mark.parametrize("name", [*SAMPLED, *CHEAP])
@pytest.mark.parametrize("budget", [2, 7, 16, 33, 64])
def test_estimators_keep_to_their_budget_and_say_what_they_estimate(name: str, budget: int) -> None:
    estimator = (SAMPLED | CHEAP)[name].fit(TRAINING)
    pool = known(0)
    reader = reader_of(pool, budget)
    if name == "paired antithetic" and budget % 2:
        with pytest.raises(ValueError, match="even number"):
            estimator.estimate(pool.pool, reader, np.random.default_rng(0))
        return
    effects = estimator.estimate(pool.pool, reader, np.random.default_rng(0))
    assert reader.calls <= budget
    assert effects.values.shape == effects.low.shape == effects.high.shape == (N,)
    assert np.isfinite(effects.values).all()
    assert estimator.estimand in ESTIMANDS
    inside = (effects.low <= effects.values) & (effects.values <= effects.high)
    assert (inside | np.isnan(effects.low)).all()


@pytest.mark.parametrize("name", SAMPLED)
def test_the_whole_budget_goes_to_distinct_masks_and_equal_seeds_ask_alike(name: str) -> None:
    pool, asked = known(1), []
    for _ in range(2):
        seen: list[int] = []
        reader = reader_of(pool, 16, lambda masks, seen=seen: seen.extend(bit_codes(masks).tolist()))
        SAMPLED[name].fit(TRAINING).estimate(pool.pool, reader, np.random.default_rng(3))
        assert len(seen) == len(set(seen)) == reader.calls
        asked.append(seen)
    assert asked[0] == asked[1]
    assert len(asked[0]) == 16 or name == "shapley"


EXACT_AT_WHOLE = [
    "least_squares uniform",
    "ips uniform",
    "snips uniform",
    "kernel uniform",
    "kernel greedy",
    "kernel head",
]


@pytest.mark.parametrize("name", EXACT_AT_WHOLE)
def test_once_every_mask_is_asked_the_estimate_is_the_banzhaf_value(name: str) -> None:
    pool = known(2)
    found = SAMPLED[name].fit(TRAINING).estimate(pool.pool, reader_of(pool, 1 << N), np.random.default_rng(0))
    np.testing.assert_allclose(found.values, banzhaf(pool.outcomes), atol=1e-3)


def test_enumeration_and_single_changes_are_exact() -> None:
    pool, rng = known(3), np.random.default_rng(0)
    for estimator, budget, exact in (
        (ExactBanzhaf(), 64, banzhaf),
        (ExactShapley(), 64, shapley),
        (LeaveOneOut(), N + 1, leave_one_out),
        (AddOneIn(), N + 1, add_one_in),
    ):
        found = estimator.fit(TRAINING).estimate(pool.pool, reader_of(pool, budget), rng)
        np.testing.assert_allclose(found.values, exact(pool.outcomes), atol=1e-12)
        np.testing.assert_array_equal(found.low, found.high)


def test_enumeration_beyond_the_budget_is_refused() -> None:
    pool = known(3)
    with pytest.raises(BudgetError, match="64 more reader calls were asked for after 0, of 63"):
        ExactBanzhaf().estimate(pool.pool, reader_of(pool, 63), np.random.default_rng(0))


def test_what_leave_one_out_could_not_afford_has_no_interval() -> None:
    pool = known(4)
    found = LeaveOneOut().estimate(pool.pool, reader_of(pool, 4), np.random.default_rng(0))
    assert np.isfinite(found.low).sum() == 3
    assert (found.values[np.isnan(found.low)] == 0).all()


@pytest.mark.parametrize("name", ["attention", "head", "similarity"])
def test_what_is_cheap_orders_candidates_better_than_chance_where_it_knows_something(name: str) -> None:
    estimator = CHEAP[name].fit(TRAINING)
    pools = [known(s) for s in range(40)]
    agreement = [
        rank_correlation(
            estimator.estimate(pool.pool, reader_of(pool, 1), np.random.default_rng(0)).values, banzhaf(pool.outcomes)
        )
        for pool in pools
    ]
    assert np.mean(agreement) > (0.4 if name == "similarity" else 0.9)


def test_an_orthogonal_design_with_sixteen_calls_beats_contextcite_with_thirty_two() -> None:
    kernel = SAMPLED["kernel orthogonal"].fit(TRAINING)
    errors = {"kernel": [], "contextcite": []}
    for seed in range(40):
        pool = known(seed)
        for name, estimator, budget in (
            ("kernel", kernel, 16),
            ("contextcite", SAMPLED["lasso uniform"], 32),
        ):
            found = estimator.estimate(pool.pool, reader_of(pool, budget), np.random.default_rng(seed))
            errors[name].append(np.abs(found.values - banzhaf(pool.outcomes)).mean())
    assert np.mean(errors["kernel"]) < np.mean(errors["contextcite"])


@pytest.mark.parametrize("estimator", [UtilityHead(), WalshKernel()])
def test_what_learns_from_other_queries_must_be_fitted_first(estimator: UtilityHead | WalshKernel) -> None:
    pool = known(0)
    with pytest.raises(ValueError, match="not fitted"):
        estimator.estimate(pool.pool, reader_of(pool, 16), np.random.default_rng(0))


def test_unknown_methods_and_designs_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"method must be one of .*doubly_robust, got 'dr'"):
        RandomisedMasks("dr")
    with pytest.raises(ValueError, match="design must be one of uniform, antithetic, orthogonal, got 'sobol'"):
        RandomisedMasks("ips", "sobol")
    with pytest.raises(ValueError, match="design must be one of uniform, orthogonal, greedy, got 'sobol'"):
        WalshKernel("sobol")


def test_asking_a_mask_twice_costs_one_call() -> None:
    pool = known(0)
    calls: list[int] = []
    reader = reader_of(pool, 3, lambda masks: calls.append(len(masks)))
    masks = np.eye(N, dtype=bool)[[0, 1, 0]]
    first, again = reader(masks), reader(masks)
    np.testing.assert_array_equal(first, again)
    assert first[0] == first[2]
    assert (reader.calls, calls) == (2, [2])
    with pytest.raises(BudgetError, match="2 more reader calls were asked for after 2, of 3"):
        reader(np.eye(N, dtype=bool)[[2, 3]])


def test_attention_costs_the_call_that_shows_everything() -> None:
    reader = reader_of(known(0), 1)
    reader.attention()
    assert reader.asked == {(1 << N) - 1}


def test_a_reader_that_returns_nan_is_refused_with_the_count() -> None:
    reader = CountedReader(lambda masks: np.full(len(masks), np.nan), lambda: np.zeros(N), pool=N, budget=8)
    with pytest.raises(ValueError, match="NaN for 2 of 2 masks"):
        reader(np.eye(N, dtype=bool)[:2])


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 reader call, got 0"):
        reader_of(known(0), 0)


def test_pools_hold_no_outcome_and_no_label() -> None:
    assert set(Pool._fields) == {"query", "scores", "ranks", "content"}

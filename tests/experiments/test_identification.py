"""The benchmark of estimators on a table whose outcomes follow a known game."""

from dataclasses import replace

import numpy as np
import pytest

from recallgym.agents.estimators.enumeration import ExactBanzhaf
from recallgym.agents.estimators.interface import CountedReader, Pool, TrainingPool
from recallgym.agents.estimators.one_at_a_time import LeaveOneOut
from recallgym.agents.estimators.proxies import Attention, Chance
from recallgym.agents.estimators.randomised import RandomisedMasks
from recallgym.backends.estimation.effects import Effects, without_interval
from recallgym.backends.interventions.sets import bit_codes, reading_sets
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import OutcomeTable
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.identification import Identification, family_folds, outcomes_by_code


@pytest.fixture(scope="module")
def table() -> OutcomeTable:
    """A toy table with every subset of six candidates; effects are drawn, and interact in pairs."""
    small = toy_table(questions=24)
    sets = reading_sets(6, 6)
    rng = np.random.default_rng(0)
    signs = np.where(sets, 1.0, -1.0)
    outcomes = np.stack(
        [signs @ rng.normal(size=6) + 0.3 * rng.normal() * signs[:, 0] * signs[:, 1] - 4 for _ in range(small.rows)]
    ).astype(np.float32)
    wide = {name: np.zeros((small.rows, len(sets)), getattr(small, name).dtype) for name in WIDE}
    attention = np.full((small.rows, 6), 1 / 6, dtype=np.float32)
    meta = {**small.meta, "budget": 6}
    return replace(small, **{**wide, "u_ref": outcomes, "u_self": outcomes, "attention": attention, "meta": meta})


WIDE = ("entropy", "exact_match", "f1", "answer", "tokens")


def run(table: OutcomeTable, benchmark: Identification, seed: int = 0) -> dict[str, np.ndarray]:
    return benchmark(None, CausalMemoryConfig(table=table), None, seed)  # type: ignore[arg-type]


def test_the_exact_estimator_is_without_error_and_covers_itself(table: OutcomeTable) -> None:
    found = run(table, Identification(ExactBanzhaf(), budget=64))
    np.testing.assert_allclose(found["error"], 0, atol=1e-6)
    np.testing.assert_allclose(found["rank_correlation"], 1)
    assert (found["covered"] == found["intervals"]).all()
    assert (found["calls"] == 64).all()
    assert not found["predicted"].any()  # no mask is left that was not asked


def test_least_squares_beats_a_random_order_and_needs_no_more_than_its_budget(table: OutcomeTable) -> None:
    squares = run(table, Identification(RandomisedMasks("least_squares"), budget=24))
    chance = run(table, Identification(Chance(), budget=24))
    assert squares["rank_correlation"].mean() > 0.9 > 0.3 > chance["rank_correlation"].mean()
    assert squares["lds"].mean() > 0.9
    assert squares["drop"].mean() > chance["drop"].mean()
    assert (squares["calls"] == 24).all()
    assert (chance["calls"] == 0).all()


def test_intervals_cover_a_severed_candidate_and_a_placebo_about_as_often_as_they_say(table: OutcomeTable) -> None:
    for control, numerator, denominator in (
        ({"sever": True}, "null_covered", "null_intervals"),
        ({"placebo": True}, "covered", "intervals"),
    ):
        sums = np.zeros(2)
        for seed in range(10):
            found = run(table, Identification(RandomisedMasks("least_squares"), budget=24, **control), seed)
            sums += found[numerator].sum(), found[denominator].sum()
        assert 0.9 <= sums[0] / sums[1] <= 0.99


def test_a_severed_candidate_has_no_effect_whatever_it_was(table: OutcomeTable) -> None:
    found = run(table, Identification(LeaveOneOut(), budget=7, sever=True))
    assert (found["null_covered"] == found["null_intervals"]).all()
    assert found["null_intervals"].all()


def test_equal_seeds_give_equal_records_and_others_do_not(table: OutcomeTable) -> None:
    benchmark = Identification(RandomisedMasks("lasso"), budget=16)
    one, again, other = run(table, benchmark), run(table, benchmark), run(table, benchmark, seed=1)
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])
    assert (one["error"] != other["error"]).any()


class Learner:
    """Records what it was fitted on and asked about: by family, told apart through the outcomes."""

    estimand = "order"

    def __init__(self) -> None:
        self.fitted: list[set[bytes]] = []
        self.learned: set[bytes] = set()

    def fit(self, training: list[TrainingPool]) -> "Learner":
        fitted = Learner()
        fitted.learned = {known.outcomes.tobytes() for known in training}
        self.fitted.append(fitted.learned)
        return fitted

    def estimate(self, pool: Pool, reader: CountedReader, rng: np.random.Generator) -> Effects:
        masks = reading_sets(6, 6)
        whole = reader(masks)[np.argsort(bit_codes(masks))]
        assert whole.tobytes() not in self.learned, "an estimator was judged on what it had learned from"
        return without_interval(np.arange(6.0))


def test_no_estimator_learns_from_the_family_that_it_is_judged_on(table: OutcomeTable) -> None:
    learner = Learner()
    run(table, Identification(learner, budget=64))
    assert len(learner.fitted) == 3
    everything = {game.tobytes() for game in outcomes_by_code(table, np.arange(table.rows), "u_ref")}
    assert set().union(*learner.fitted) == everything
    folds = family_folds(table.family, 3)
    assert all(len(set(folds[table.family == f])) == 1 for f in np.unique(table.family))


def test_a_table_without_every_subset_or_without_attention_is_refused_with_the_way_out(table: OutcomeTable) -> None:
    with pytest.raises(ValueError, match=r"shows at most 3 of 6 candidates.*env\.table=apidocs_attribution"):
        run(toy_table(), Identification(Chance()))
    with pytest.raises(ValueError, match="has no attention; build it again"):
        run(replace(table, attention=None), Identification(Attention()))


def test_settings_that_make_no_sense_are_refused(table: OutcomeTable) -> None:
    with pytest.raises(ValueError, match="outcome must be one of u_ref, u_self, got 'u'"):
        Identification(Chance(), outcome="u")
    with pytest.raises(ValueError, match="folds must be at least 2"):
        Identification(Chance(), folds=1)
    with pytest.raises(ValueError, match="9 folds need as many families"):
        family_folds(np.array([0, 1, 1], dtype=np.uint8), 9)

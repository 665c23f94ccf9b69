from dataclasses import replace

import numpy as np
import pytest
import torch

from recallgym.agents.evaluation import evaluate
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import RELATIONS
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.evaluators import NoisedDecisions, OracleSessions, PlayedSessions, main_effects, split_rows
from recallgym.experiments.metrics import measure
from recallgym.policies.causal_gate import CausalGate
from recallgym.policies.rules import KeepAll, KeepNone, RandomGate

TABLE = toy_table()
ENV = CausalMemoryConfig(table=TABLE)
SHAPE = {"blocks": ENV.layout().blocks, "pool": TABLE.pool, "budget": TABLE.budget}


def mean(name: str, records) -> float:
    numerator, denominator = measure(name, records)
    return float(numerator.sum() / denominator.sum())


def unsure_gate(**settings) -> CausalGate:
    """A gate that keeps about half of the candidates, each query its own half."""
    gate = CausalGate(**SHAPE, hidden=16, keep=0.5, **settings)
    with torch.no_grad():
        gate.output.weight.mul_(100)
    return gate


def test_every_policy_is_asked_the_same_questions():
    play = PlayedSessions(sessions=10)
    rows = [play(policy(**SHAPE), ENV, None, 0)["row"] for policy in (KeepAll, KeepNone, RandomGate)]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])
    assert rows[0].shape == (10, ENV.steps)
    assert set(np.unique(TABLE.split[rows[0] // TABLE.conditions])) == {2}


def test_sessions_are_those_of_the_learners_own_evaluation():
    policy = unsure_gate()
    ours, theirs = PlayedSessions(sessions=10)(policy, ENV, None, 0), evaluate(policy, ENV, sessions=10)
    for name in ("row", "set", "reward", "regret", "family"):
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_a_stochastic_rule_draws_with_the_trials_seed():
    play, policy = PlayedSessions(sessions=10), RandomGate(**SHAPE)
    first, again, other = (play(policy, ENV, None, seed)["set"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_keep_all_has_no_utility_and_rejects_nothing():
    records = PlayedSessions(sessions=10)(KeepAll(**SHAPE), replace(ENV, token_budget=None), None, 0)
    assert mean("utility", records) == 0
    assert records["rejected"].sum() == 0
    assert mean("empty_set", records) == 0


def test_the_oracle_earns_at_least_what_any_policy_does_and_asks_the_same_questions():
    oracle = OracleSessions(sessions=20)(KeepAll(**SHAPE), ENV, None, 0)
    for policy in (KeepAll(**SHAPE), KeepNone(**SHAPE), unsure_gate()):
        played = PlayedSessions(sessions=20)(policy, ENV, None, 0)
        np.testing.assert_array_equal(oracle["row"], played["row"])
        assert (oracle["reward"].sum(1) >= played["reward"].sum(1) - 1e-5).all()


def test_main_effects_of_an_additive_table_are_its_effects():
    rows = np.arange(TABLE.rows)
    gold = TABLE.relation == RELATIONS.index("gold")
    effects = main_effects(TABLE, rows)
    np.testing.assert_allclose(effects[gold], 0.6, atol=1e-5)
    np.testing.assert_allclose(effects[~gold & (rows % 2 == 0)[:, None]], -0.5, atol=1e-5)
    np.testing.assert_allclose(effects[(rows % 2 == 1)], -0.4, atol=1e-5)


def test_the_truth_misjudges_nothing_and_constants_misjudge_their_share():
    effects = main_effects(TABLE, split_rows(TABLE, "test"))
    truth = NoisedDecisions(rule="truth")(KeepAll(**SHAPE), ENV, None, 0)
    assert mean("misjudgement", truth) == mean("flipped", truth) == 0
    keep = NoisedDecisions()(KeepAll(**SHAPE), ENV, None, 0)
    assert mean("misjudgement", keep) == pytest.approx((effects < 0).mean())
    none = NoisedDecisions()(KeepNone(**SHAPE), ENV, None, 0)
    assert mean("misjudgement", none) == pytest.approx((effects > 0).mean())
    assert mean("clean_auroc", keep) == 0.5


def test_small_effects_are_not_judged():
    records = NoisedDecisions(margin=0.55)(KeepNone(**SHAPE), ENV, None, 0)
    effects = main_effects(TABLE, split_rows(TABLE, "test"))
    assert records["judged"][0].sum() == (np.abs(effects) >= 0.55).sum()
    assert mean("misjudgement", records) == 1.0  # only the helpful ones are left, and all are rejected


@pytest.mark.parametrize("activation", ["softplus", "sigmoid"])
def test_calibrated_gates_reject_the_share_that_should_be_rejected(activation):
    policy = unsure_gate(activation=activation)
    on_validation = NoisedDecisions(split="validation", rule="calibrated")(policy, ENV, None, 0)
    wanted = (main_effects(TABLE, split_rows(TABLE, "validation")) < 0).mean()
    # the noised queries of validation are rejected about as often as its clean ones, which set the threshold
    assert mean("noised_rejection", on_validation) == pytest.approx(wanted, abs=0.1)


def test_without_softmax_calibrated_softplus_and_sigmoid_gates_decide_alike():
    records = [
        NoisedDecisions(rule="calibrated")(unsure_gate(activation=activation), ENV, None, 0)
        for activation in ("softplus", "sigmoid")
    ]
    for name in ("misjudged", "flipped", "rejected_noised"):
        np.testing.assert_array_equal(records[0][name], records[1][name])


def test_a_sigmoid_under_softmax_never_rejects_at_the_published_threshold():
    policy = unsure_gate(activation="sigmoid", normalise="softmax")
    records = NoisedDecisions(rule="threshold", threshold=0.01)(policy, ENV, None, 0)
    assert mean("noised_rejection", records) == 0


def test_noise_changes_the_decisions_of_a_gate_that_sees_the_query_and_only_the_query_is_noised():
    policy = unsure_gate()
    assert mean("flipped", NoisedDecisions()(policy, ENV, None, 0)) > 0
    same = replace_noised(TABLE)
    assert mean("flipped", NoisedDecisions()(policy, replace(ENV, table=same), None, 0)) == 0


def replace_noised(table):
    """The table with its clean queries as the noised ones; float32, so that they are equal."""
    return replace(table, noised=np.stack([table.query] * 4))


def test_thresholds_need_a_gate_and_noise_needs_the_query():
    with pytest.raises(ValueError, match="only a gate has masks"):
        NoisedDecisions(rule="threshold")(KeepAll(**SHAPE), ENV, None, 0)
    blind = replace(ENV, observe=("feedback", "budget"))
    with pytest.raises(ValueError, match="observes the query"):
        NoisedDecisions()(KeepAll(**SHAPE), blind, None, 0)
    with pytest.raises(ValueError, match="rule must be one of"):
        NoisedDecisions(rule="guess")


def test_measures_name_what_is_missing():
    records = PlayedSessions(sessions=4)(KeepAll(**SHAPE), ENV, None, 0)
    with pytest.raises(KeyError, match="unknown measure 'happiness'"):
        measure("happiness", records)
    with pytest.raises(KeyError, match="recorded no 'misjudged'"):
        measure("misjudgement", records)
    for name in PLAYED:
        numerator, denominator = measure(name, records)
        assert numerator.shape == denominator.shape == (4 * ENV.steps,)


PLAYED = (
    "utility",
    "net_utility",
    "regret",
    "exact_match",
    "leakage",
    "harmful_exposure",
    "empty_set",
    "fallback",
    "rejection",
    "search",
    "tokens",
)

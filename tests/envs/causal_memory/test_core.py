"""Sessions, readings and prices: what the rules say, checked on tables with known effects."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recallgym.backends.interventions.sets import bit_codes
from recallgym.envs.causal_memory import CausalMemoryConfig, Threshold
from recallgym.envs.causal_memory.core import Dynamics, net_utility
from recallgym.envs.outcomes.table import RELATIONS
from recallgym.envs.outcomes.toy import toy_table

TABLE = toy_table(questions=36)
KEEP_ALL = [1] * 7


def dynamics(**settings: Any) -> Dynamics:
    return Dynamics(CausalMemoryConfig(**{"table": TABLE, "token_budget": None} | settings))


def act(env: Dynamics, bits: list[int], row: int = 0, left: int = 10**6) -> Any:
    return env.step(row, env.choose_bits(row, int(bit_codes(np.array(bits)))), left)


def read(env: Dynamics, bits: list[int], row: int = 0, left: int = 10**6) -> list[int]:
    return np.flatnonzero(TABLE.sets[act(env, bits, row, left).set]).tolist()


def test_keep_all_has_no_utility_and_pays_for_its_tokens_and_search() -> None:
    env = dynamics(token_price=0.05, search_price=0.01)
    step = act(env, KEEP_ALL)
    assert step.utility == 0
    assert step.tokens == 120  # three candidates of 40 tokens, above the empty prompt
    assert step.reward == pytest.approx(-0.05 * 1.2 - 0.01)


@pytest.mark.parametrize("row", range(12))
def test_utility_is_the_sum_of_effects_against_the_keep_all_reading(row: int) -> None:
    step = act(dynamics(), [0, 1, 0, 0, 1, 0, 1], row)
    effects = TABLE.u_ref[row, 1:7] - TABLE.u_ref[row, 0]  # of single candidates
    assert step.utility == pytest.approx(effects[[1, 4]].sum() - effects[[0, 1, 2]].sum(), abs=1e-5)
    assert step.u_ref == TABLE.u_ref[row, step.set]


def test_early_exit_reads_nothing_and_pays_no_search() -> None:
    env = dynamics(search_price=0.01)
    for bits in ([1, 1, 1, 1, 1, 1, 0], [0] * 7, [0, 0, 0, 0, 0, 0, 1]):
        step = act(env, bits)
        assert (step.set, step.searched, step.tokens, step.fell_back, step.leaked) == (0, False, 0, False, 0)
        assert step.reward == step.utility


def test_without_early_exit_every_step_searches_and_an_empty_mask_falls_back() -> None:
    env = dynamics(early_exit=False, fallback="same", search_price=0.01)
    assert act(env, [1, 0, 0, 0, 0, 0, 0]).searched
    step = act(env, [0] * 7)
    assert (step.searched, step.fell_back, step.rejected, step.leaked) == (True, True, 6, 3)
    assert read(env, [0] * 7) == [0, 1, 2]
    assert act(env, [0] * 6 + [1]).reward == act(env, [0] * 7).reward


def test_without_early_exit_or_fallback_an_empty_mask_pays_the_search_for_nothing() -> None:
    env = dynamics(early_exit=False, fallback="none", search_price=0.01)
    step = act(env, [0] * 7)
    assert (step.set, step.fell_back) == (0, False)
    assert step.reward == pytest.approx(step.utility - 0.01)


def test_a_reading_over_the_budget_loses_its_last_candidates() -> None:
    env, bits = dynamics(), [0, 1, 0, 1, 0, 1, 1]
    assert [read(env, bits, left=left) for left in (120, 119, 80, 40, 39, 0)] == [
        [1, 3, 5], [1, 3], [1, 3], [1], [], [],
    ]  # fmt: skip
    cut = act(env, bits, left=0)
    assert cut.searched  # the retriever ran before anything was cut


def test_soft_mode_leaks_and_hard_mode_does_not() -> None:
    only_last = [0, 0, 0, 0, 0, 1, 1]
    assert (act(dynamics(mode="hard"), only_last).leaked, act(dynamics(mode="soft"), only_last).leaked) == (0, 3)


def test_harmful_exposure_counts_contradicting_and_stale_candidates_that_are_read() -> None:
    relation = np.tile(
        [RELATIONS.index(r) for r in ("gold", "stale", "contradicting", "silent", "equivalent", "stale")], 1
    )
    env = dynamics(table=replace(TABLE, relation=np.tile(relation, (TABLE.rows, 1)).astype(np.uint8)))
    assert [act(env, [*bits, 1]).harmful for bits in ([1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1])] == [
        2,
        0,
        3,
    ]


def test_regret_is_zero_exactly_for_the_best_reading_and_never_negative() -> None:
    env = dynamics()
    rows, codes = np.arange(TABLE.rows)[:, None], np.arange(2**7)
    steps = env.step(rows, env.choose_bits(rows, codes), 10**6)
    assert steps.regret.min(axis=1).max() == 0
    assert steps.regret.min() >= 0
    np.testing.assert_allclose(steps.reward + steps.regret, env.net.max(axis=1, keepdims=True).repeat(2**7, axis=1))


def test_net_utility_subtracts_the_price_of_a_hundred_tokens_and_of_a_search() -> None:
    config = CausalMemoryConfig(token_price=0.2, search_price=0.03)
    assert net_utility(1.0, 50, True, config) == pytest.approx(1 - 0.1 - 0.03)
    assert net_utility(1.0, 0, False, config) == 1.0


def test_a_norm_scaled_threshold_rejects_by_the_norm_of_the_query() -> None:
    scale = np.where(np.arange(TABLE.questions) % 2 == 0, 1.0, 3.0)[:, None]
    table = replace(
        TABLE, query=(TABLE.query / np.linalg.norm(TABLE.query, axis=1, keepdims=True) * scale).astype("f4")
    )
    weights = np.array([[0.12] * 6 + [1.0]] * 2, dtype=np.float32)
    rows = np.array([0, 2])  # questions 0 and 1, of norms 1 and 3; the mean is 2
    searched = {}
    for kind in ("norm_scaled", "norm_scaled_inverse"):
        env = dynamics(table=table, action="weights", threshold=Threshold(kind, 0.1))
        searched[kind] = env.choose_weights(rows, weights).searched.tolist()
    assert searched == {"norm_scaled": [False, True], "norm_scaled_inverse": [True, False]}


def test_sessions_stay_in_one_family_of_the_split_and_repeat_questions() -> None:
    env = dynamics(split="test", steps=40)
    rows = env.session_rows(np.arange(200), np.zeros(200, dtype=int))
    families = TABLE.family[rows // TABLE.conditions]
    assert (families == families[:, :1]).all()
    assert set(np.unique(families)) == {4, 5}
    assert set(np.unique(rows // TABLE.conditions)) == set(TABLE.question_ids("test").tolist())


@pytest.mark.parametrize("switch", [0.0, 0.05, 0.5, 1.0])
def test_the_latent_condition_changes_with_the_stated_probability(switch: float) -> None:
    rows = dynamics(switch=switch, steps=20).session_rows(np.arange(2000), np.zeros(2000, dtype=int))
    conditions = rows % TABLE.conditions
    assert abs(conditions[:, 0].mean() - 0.5) < 0.05
    assert abs((np.diff(conditions, axis=1) != 0).mean() - switch) < 0.01


def test_a_switch_among_three_conditions_always_leaves_and_reaches_both_others() -> None:
    repeated = {
        name: np.repeat(getattr(TABLE, name)[::2], 3, axis=0)
        for name in ("u_ref", "u_self", "entropy", "exact_match", "f1", "answer", "tokens", "seconds")
    } | {
        name: np.repeat(getattr(TABLE, name)[::2], 3, axis=0)
        for name in ("passage", "ranks", "scores", "content", "relation", "strata")
    }
    table = replace(TABLE, **repeated, meta=TABLE.meta | {"conditions": ["a", "b", "c"]})
    rows = dynamics(table=table, switch=1.0, steps=50).session_rows(np.arange(100), np.zeros(100, dtype=int))
    moves = np.diff(rows % 3, axis=1) % 3
    assert (np.bincount(moves.ravel(), minlength=3) / moves.size).tolist() == pytest.approx([0, 0.5, 0.5], abs=0.03)


def test_sessions_depend_on_nothing_but_seed_and_episode() -> None:
    env = dynamics()
    together = env.session_rows(np.arange(10), np.arange(10))
    for i in range(10):
        np.testing.assert_array_equal(env.session_rows(i, i)[0], together[i])
    assert len(np.unique(env.session_rows(np.zeros(100, dtype=int), np.arange(100)), axis=0)) > 90


def test_a_content_free_observation_is_the_same_whatever_the_pool_is() -> None:
    swapped = replace(
        TABLE, scores=TABLE.scores[::-1].copy(), passage=TABLE.passage[::-1].copy(), content=-TABLE.content
    )
    arguments = (np.arange(TABLE.rows), (-1.0, 0.5), 100, 2)
    np.testing.assert_array_equal(
        dynamics(token_budget=200).observe(*arguments), dynamics(table=swapped, token_budget=200).observe(*arguments)
    )


def test_feedback_and_budget_are_what_the_last_step_left() -> None:
    config = CausalMemoryConfig(table=TABLE, observe=("budget", "feedback"), token_budget=300, steps=4)
    env = config.make()
    assert env.reset(seed=0)[0].tolist() == [1, 1, 0, 0]
    observation, *_, info = env.step(np.array(KEEP_ALL))
    row, column = info["row"], info["set"]
    assert observation.tolist() == pytest.approx(
        [180 / 300, 3 / 4, TABLE.u_self[row, column], TABLE.entropy[row, column]]
    )


def test_noise_changes_the_query_block_only() -> None:
    clean, noised = dynamics(observe=("query", "ranks")), dynamics(observe=("query", "ranks"), noise="typos")
    differs = (clean.static != noised.static).any(axis=0)
    assert differs[clean.layout.slice("query")].all()
    assert not differs[clean.layout.slice("ranks")].any()


def test_scores_that_are_not_finite_are_refused() -> None:
    scores = TABLE.scores.copy()
    scores[3, 2, 1] = -np.inf
    with pytest.raises(ValueError, match="scores must be finite"):
        dynamics(table=replace(TABLE, scores=scores))

"""The shipped table: its size, its strata, its splits and what it must not carry."""

from dataclasses import replace

import numpy as np
import pytest

from recallgym.backends.estimation.walsh import spectrum
from recallgym.envs.outcomes import OutcomeTable, load_table, shipped_table_path
from recallgym.envs.outcomes.check import describe, keep_all_columns
from recallgym.envs.outcomes.table import RELATIONS, SPLITS
from recallgym.envs.outcomes.toy import toy_table


@pytest.fixture(scope="module")
def table() -> OutcomeTable:
    return load_table(shipped_table_path("apidocs"))


def test_it_holds_every_reading_set_of_two_conditions(table: OutcomeTable) -> None:
    assert table.conditions == 2
    assert (table.pool, table.budget, len(table.sets)) == (6, 3, 42)
    assert table.u_ref.shape == (table.rows, 42)


def test_every_outcome_is_finite_and_in_range(table: OutcomeTable) -> None:
    for name in ("u_ref", "u_self", "entropy"):
        assert np.isfinite(getattr(table, name)).all()
    assert table.u_ref.max() <= 0
    assert table.u_self.max() <= 0
    assert table.entropy.min() >= 0
    assert ((table.f1 >= 0) & (table.f1 <= 1)).all()
    assert ((table.f1 == 1) >= (table.exact_match == 1)).all()


def test_splits_divide_no_family_and_test_has_enough_of_them(table: OutcomeTable) -> None:
    families = [set(table.family[table.question_ids(split)].tolist()) for split in SPLITS]
    assert all(not a & b for i, a in enumerate(families) for b in families[i + 1 :])
    assert len(families[2]) >= 5


def test_no_passage_text_is_carried(table: OutcomeTable) -> None:
    assert all(
        set(p) <= {"id", "package", "version", "object", "section", "sha256", "former"} for p in table.meta["passages"]
    )


def test_prompts_grow_with_the_set(table: OutcomeTable) -> None:
    sizes = table.sets.sum(1)
    tokens = table.tokens.astype(int)
    assert (tokens[:, sizes == 1] > tokens[:, :1]).all()
    assert (tokens.argmin(1) == 0).all()


def test_pools_hold_no_passage_twice(table: OutcomeTable) -> None:
    assert all(len(set(pool)) == table.pool for pool in table.passage.tolist())


def test_the_reader_is_a_useful_instrument(table: OutcomeTable) -> None:
    gold = table.relation == RELATIONS.index("gold")
    rows = np.flatnonzero(gold.any(1))
    alone = table.lookup[1 << gold[rows].argmax(1)]
    gain = table.u_ref[rows, alone] - table.u_ref[rows, 0]
    assert gain.mean() > 1
    assert table.exact_match[rows, alone].mean() > 0.4


def test_healthy_retrieval_finds_gold_and_degraded_retrieval_misleads(table: OutcomeTable) -> None:
    relation = table.relation.reshape(table.questions, 2, table.pool)
    healthy, degraded = relation[:, 0], relation[:, 1]
    assert (healthy == RELATIONS.index("gold")).any(1).mean() > 0.9
    assert (degraded == RELATIONS.index("stale")).any(1).mean() > 0.3
    assert (degraded == RELATIONS.index("gold")).any(1).mean() < 0.3


def test_keep_all_is_the_first_retrievers_top_three(table: OutcomeTable) -> None:
    bits = table.sets[keep_all_columns(table)]
    scores = table.scores[:, :, 0]
    assert (bits.sum(1) == 3).all()
    assert (np.where(bits, scores, np.inf).min(1) >= np.where(bits, -np.inf, scores).max(1)).all()


def test_the_description_names_size_reader_and_strata(table: OutcomeTable) -> None:
    text = "\n".join(describe(table))
    assert f"{table.questions} questions x 2 conditions" in text
    assert "smollm2" in text
    assert "gold present" in text


def test_only_a_table_of_every_subset_is_described_by_its_interactions(table: OutcomeTable) -> None:
    assert not any("order of interaction" in line for line in describe(table))
    whole = toy_table(pool=4, budget=4)
    told = [line for line in describe(replace(whole, meta=table.meta | whole.meta)) if "order of interaction" in line]
    assert [line.split(":")[0] for line in told] == ["u_ref", "u_self"]
    assert "1 100.0%, 2 0.0%" in told[0]  # the toy's effects add up


@pytest.fixture(scope="module")
def attribution() -> OutcomeTable:
    return load_table(shipped_table_path("apidocs_attribution"))


def test_the_attribution_table_holds_every_subset_of_eight(attribution: OutcomeTable) -> None:
    assert (attribution.pool, attribution.budget, len(attribution.sets)) == (8, 8, 256)
    assert (attribution.questions, attribution.conditions) == (120, 1)
    assert sorted(attribution.lookup.tolist()) == list(range(256))
    for name in ("u_ref", "u_self", "entropy"):
        assert np.isfinite(getattr(attribution, name)).all()


def test_the_attribution_table_says_where_the_reader_looked(attribution: OutcomeTable) -> None:
    assert attribution.attention is not None
    np.testing.assert_allclose(attribution.attention.sum(1), 1, atol=1e-5)
    assert attribution.attention.min() >= 0


def test_single_passages_hold_most_of_the_variance_in_the_attribution_table(attribution: OutcomeTable) -> None:
    energy = spectrum(attribution.u_ref[:, attribution.lookup].astype(float))[:, 1:]
    shares = (energy / energy.sum(1, keepdims=True)).mean(0)
    assert 0.6 < shares[0] < 0.95
    assert shares[0] > shares[1] > shares[2]
    assert any("u_ref: standard deviation over subsets" in line for line in describe(attribution))


def test_the_attribution_table_carries_no_passage_text(attribution: OutcomeTable) -> None:
    test_no_passage_text_is_carried(attribution)

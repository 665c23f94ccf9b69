"""The configuration says what is wrong with it, and takes what Hydra gives."""

from dataclasses import replace
from typing import Any

import pytest
from omegaconf import OmegaConf

from recallgym.envs.causal_memory import CausalMemoryConfig, Threshold
from recallgym.envs.outcomes.table import TableError
from recallgym.envs.outcomes.toy import toy_table


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "firm"}, "mode must be one of hard, soft, multiply; got 'firm'"),
        ({"fallback": "luck"}, "fallback must be one of none, same, heterogeneous; got 'luck'"),
        ({"action": "words"}, "action must be one of bits, weights; got 'words'"),
        ({"split": "dev"}, "split must be one of train, validation, test; got 'dev'"),
        ({"observe": ["query", "gold"]}, "observe must be one of query, domain, .*; got 'gold'"),
        ({"observe": []}, "observe must name different blocks"),
        ({"observe": ["query", "query"]}, "observe must name different blocks"),
        ({"threshold": {"kind": "loose"}}, "threshold.kind must be one of fixed, norm_scaled, norm_scaled_inverse"),
        ({"threshold": {"base": 2}}, r"threshold.base must lie in \[0, 1\]; got 2"),
        ({"steps": 0}, r"steps must lie in \[1, 100000\]; got 0"),
        ({"token_budget": 0}, r"token_budget must lie in \[1, .*\]; got 0"),
        ({"token_price": -1}, r"token_price must lie in \[0, 100\]; got -1"),
        ({"search_price": float("nan")}, "search_price must lie in .*; got nan"),
        ({"switch": 1.5}, r"switch must lie in \[0, 1\]; got 1.5"),
        ({"alpha": -0.1}, "alpha must lie in"),
    ],
)
def test_a_value_out_of_its_domain_is_named_with_what_is_valid(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CausalMemoryConfig(**settings)


def test_plain_data_makes_the_same_configuration() -> None:
    plain = OmegaConf.create({"table": "toy", "observe": ["query", "ranks"], "threshold": {"kind": "norm_scaled"}})
    expected = CausalMemoryConfig(table="toy", observe=("query", "ranks"), threshold=Threshold("norm_scaled"))
    assert CausalMemoryConfig(**plain) == expected
    assert replace(expected, steps=3).threshold == expected.threshold


def test_a_table_is_an_object_a_path_or_a_name(tmp_path: Any) -> None:
    table = toy_table(questions=24)
    assert CausalMemoryConfig(table=table).load_table() is table
    saved = table.save(tmp_path / "mine")
    assert CausalMemoryConfig(table=saved).load_table().questions == 24
    assert CausalMemoryConfig(table=str(saved)).load_table().questions == 24
    assert CausalMemoryConfig(table="toy").load_table().meta["name"] == "toy"


def test_a_path_without_a_table_is_refused(tmp_path: Any) -> None:
    with pytest.raises(TableError, match="no outcome table here"):
        CausalMemoryConfig(table=tmp_path / "nothing").load_table()


def test_the_layout_follows_the_table() -> None:
    layout = CausalMemoryConfig(
        table="toy", observe=("query", "domain", "ranks", "content", "memory", "latent")
    ).layout()
    assert dict(layout.blocks) == {"query": 8, "domain": 3, "ranks": 24, "content": 12, "memory": 6, "latent": 2}
    assert CausalMemoryConfig(table="toy").layout().content_free


def test_what_the_table_lacks_is_said() -> None:
    with pytest.raises(
        ValueError, match="noise must be one of typos, paraphrase, truncation, prefix, or None; got 'echo'"
    ):
        CausalMemoryConfig(table="toy", noise="echo").make()
    table = toy_table(questions=4)  # one family, in training
    with pytest.raises(ValueError, match="'toy' has no questions in the split 'test'"):
        CausalMemoryConfig(table=table, split="test").make()

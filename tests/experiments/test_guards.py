"""The guard on gates whose knowledge of the pool is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.table import RELATIONS
from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.guards import GuardedDecisions
from recallgym.policies.causal_gate import CausalGate
from recallgym.policies.rules import KeepAll, RandomGate

TABLE = toy_table()
ENV = CausalMemoryConfig(table=TABLE)
SEEING = replace(ENV, observe=("query", "content"))


def gate(env: CausalMemoryConfig) -> CausalGate:
    """An untrained gate that keeps about half of the candidates."""
    layout = env.layout()
    made = CausalGate(blocks=layout.blocks, pool=TABLE.pool, budget=TABLE.budget, hidden=16, keep=0.5)
    with torch.no_grad():
        made.output.weight.mul_(100)
    return made


def shape(env: CausalMemoryConfig) -> dict:
    return {"blocks": env.layout().blocks, "pool": TABLE.pool, "budget": TABLE.budget}


def test_a_content_free_gate_passes_whatever_its_masks() -> None:
    found = GuardedDecisions()(gate(ENV), ENV, None, 0)
    assert not found["alarm"].any()
    assert abs(found["conditional_information"][0]) < 0.01
    assert not found["swapped"].any()


class Reader(KeepAll):
    """Keeps what its first content feature says is good: in the toy table, the effect itself."""

    def propensity(self, observation: torch.Tensor) -> torch.Tensor:
        layout = SEEING.layout()
        content = observation[:, layout.slice("content")].reshape(len(observation), TABLE.pool, -1)
        keep = (content[..., 0] > 0).float()
        return torch.cat([keep, torch.ones(len(keep), 1)], dim=1)

    decide = propensity


def test_a_gate_that_reads_the_memory_alarms() -> None:
    found = GuardedDecisions()(Reader(**shape(SEEING)), SEEING, None, 0)
    assert found["alarm"].all()
    assert found["conditional_information"][0] > 0.05
    assert found["swapped"].mean() > 0.9
    assert found["kept_harmful"].sum() < 0.1 * found["harmful_candidates"].sum()


def test_chance_changes_with_every_pool_and_tells_nothing() -> None:
    found = GuardedDecisions()(RandomGate(**shape(ENV)), ENV, None, 0)
    assert found["swapped"].all()
    assert not found["alarm"].any()


def test_a_constant_tells_nothing_and_keeps_all_that_harms() -> None:
    found = GuardedDecisions()(KeepAll(**shape(ENV)), ENV, None, 0)
    assert not found["unconditional_information"].any()
    np.testing.assert_array_equal(found["kept_harmful"], found["harmful_candidates"])
    assert found["harmful_candidates"].sum() > 0
    np.testing.assert_array_equal(found["judged"], found["harmful_candidates"] + found["helpful_candidates"])


def test_the_truth_makes_no_mistake() -> None:
    found = GuardedDecisions(truth=True)(KeepAll(**shape(ENV)), ENV, None, 0)
    assert not found["misjudged"].any()


def test_equal_seeds_draw_equal_pools() -> None:
    one, again = (GuardedDecisions()(Reader(**shape(SEEING)), SEEING, None, 5) for _ in range(2))
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])


@pytest.mark.parametrize("pools", [1, 2])
def test_too_few_pools_to_tell_are_refused(pools: int) -> None:
    alike = replace(TABLE, relation=np.full_like(TABLE.relation, RELATIONS.index("silent")))
    env = replace(SEEING, table=alike)
    with pytest.raises(ValueError, match="a leak could show in none of"):
        GuardedDecisions(pools=pools)(Reader(**shape(SEEING)), env, None, 0)

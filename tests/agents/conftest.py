"""A toy table whose optimum is known, and gates for it."""

import pytest
import torch

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.toy import toy_table
from recallgym.policies import CausalGate


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # nets this small lose by threads, and tests may run beside each other
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def open_env() -> CausalMemoryConfig:
    """The latent is observed and tokens are free of limit, so the best reading of every row can be decided."""
    table = toy_table(questions=48, types=3, pool=4, budget=2)
    return CausalMemoryConfig(table=table, observe=("query", "latent", "budget"), token_budget=None)


@pytest.fixture(scope="session")
def hidden_env() -> CausalMemoryConfig:
    """The default environment, in which only feedback tells of the latent, with a token budget that binds."""
    return CausalMemoryConfig(table=toy_table(questions=48, types=3, pool=4, budget=2), token_budget=300)


@pytest.fixture(scope="session")
def make_gate():
    """Builds an untrained gate for an environment."""

    def make(env_config: CausalMemoryConfig, **options) -> CausalGate:
        table = env_config.load_table()
        options = {"hidden": 64} | options
        return CausalGate(blocks=env_config.layout().blocks, pool=table.pool, budget=table.budget, **options)

    return make

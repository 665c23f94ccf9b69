"""A small gate, its layout, and a bundle of it that tests copy and damage."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from recallgym.backends.interventions.observation import make_layout
from recallgym.policies import CausalGate
from recallgym.policies.base import Policy
from recallgym.serving.bundle import Bundle
from recallgym.serving.export import export_bundle

POOL, BUDGET, BANK = 6, 3, 20
CONTENT_FREE = ("query", "feedback", "budget")
FALLBACK = [0, 1, 0, 0, 1, 0, 0]
CARD = {
    "intervention": {
        "mode": "hard",
        "k": BUDGET,
        "alpha": 0.5,
        "threshold": 0.5,
        "fallback": "heterogeneous",
        "backfill": True,
        "early_exit": True,
    },
    "identity": {
        "embedder": "sha256:embedder",
        "tokenizer": "sha256:tokenizer",
        "reader": "sha256:reader",
        "index": None,
        "corpus": "sha256:corpus",
        "table": "toy-0-60-4-6-3",
    },
    "configuration": {"seed": 0, "policy": {"head": "rank"}},
    "metrics": [
        {"name": "regret", "value": 0.2, "ci_low": 0.1, "ci_high": 0.3, "unit": "nats", "seeds": [0, 1, 2]},
    ],
}


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def layout_of() -> Callable:
    """Returns a layout of the named blocks at toy sizes."""

    def layout(*observe: str):
        return make_layout(observe, query=8, domain=3, pool=POOL, content=2, conditions=2)

    return layout


@pytest.fixture(scope="session")
def observations_of() -> Callable:
    """Returns (rows, D) observations as an environment would give them."""

    def observations(layout, rows: int = 80, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        values = rng.normal(0, 0.7, (rows, layout.size))
        if "memory" in layout.names:
            values[:, layout.slice("memory")] = rng.integers(0, BANK, (rows, POOL))
        return np.clip(values.astype(np.float32), layout.low, layout.high)

    return observations


@pytest.fixture(scope="session")
def gate_of(observations_of) -> Callable:
    """Returns a gate whose decisions vary: fitted normaliser, weights well away from their initial values."""

    def gate(layout, **options) -> CausalGate:
        policy = CausalGate(blocks=layout.blocks, pool=POOL, budget=BUDGET, bank_size=BANK, hidden=16, **options)
        seen = torch.from_numpy(observations_of(layout, 200, seed=1)) * 1.5 + 0.1
        policy.fit_normaliser(seen, torch.tensor(layout.low), torch.tensor(layout.high))
        generator = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.4)
        return policy

    return gate


@pytest.fixture(scope="session")
def export(observations_of) -> Callable[..., Bundle]:
    """Exports a policy with a complete card; keywords replace parts of it."""

    def run(policy: Policy, path: Path, layout, **changes) -> Bundle:
        return export_bundle(policy, path, layout=layout, **({"recorded": observations_of(layout)} | CARD | changes))

    return run


@pytest.fixture(scope="session")
def original(tmp_path_factory, layout_of, gate_of, export) -> Bundle:
    """An intact bundle of a content-free gate with a fallback action of its own; do not change it."""
    layout = layout_of(*CONTENT_FREE)
    return export(gate_of(layout), tmp_path_factory.mktemp("bundles") / "gate", layout, fallback=FALLBACK)


@pytest.fixture(scope="session")
def seeing(tmp_path_factory, layout_of, gate_of, export) -> Bundle:
    """An intact bundle of a gate that observes ranks and scores, without recorded inputs and metrics."""
    layout = layout_of("query", "ranks")
    path = tmp_path_factory.mktemp("bundles") / "seeing"
    return export(gate_of(layout), path, layout, recorded=None, metrics=())


@pytest.fixture
def damaged(original, tmp_path) -> Path:
    """A copy of the intact bundle, to be damaged."""
    return Path(shutil.copytree(original.path, tmp_path / "damaged"))

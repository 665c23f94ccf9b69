"""The swap test catches a pool that reaches a content-free gate, by whatever way."""

import numpy as np
import pytest
import torch

from recallgym.backends.interventions.observation import encode
from recallgym.policies import KeepAll
from recallgym.serving.bundle import write_bundle
from recallgym.serving.export import ExportError
from recallgym.serving.runtime import runtime_of
from recallgym.serving.swap import swap_test
from recallgym.serving.verify import verify

POOL = 6
CONTENT_FREE = ("query", "feedback", "budget")


def leaking_encode(layout, parts):
    """Lets the best score into the last place of the query block, and otherwise encodes honestly."""
    query = parts["query"].copy()
    query[:, -1] += 1e-3 * parts["ranks"].reshape(len(query), -1)[:, 0]
    return encode(layout, {**parts, "query": query})


def test_a_content_free_gate_does_not_see_the_pool(original, layout_of, observations_of):
    layout = layout_of(*CONTENT_FREE)
    contexts = observations_of(layout)
    test = swap_test(runtime_of(original), layout, contexts, pool=POOL, encode=encode, rng=np.random.default_rng(0))
    assert test.identical
    assert (test.queries, test.pools) == (len(contexts), 8)


def test_a_leaking_encoder_is_caught(original, layout_of, observations_of):
    layout = layout_of(*CONTENT_FREE)
    contexts = observations_of(layout)
    test = swap_test(
        runtime_of(original), layout, contexts, pool=POOL, encode=leaking_encode, rng=np.random.default_rng(0)
    )
    assert test.changed.mean() > 0.9


def test_export_with_a_leaking_encoder_is_refused(tmp_path, layout_of, gate_of, export):
    layout = layout_of(*CONTENT_FREE)
    with pytest.raises(ExportError, match="CausalGate is declared content-free, but exchanging the pool"):
        export(gate_of(layout), tmp_path / "bundle", layout, encode=leaking_encode)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("block", ["ranks", "content"])
def test_a_gate_that_looks_at_the_pool_may_not_be_declared_content_free(tmp_path, layout_of, gate_of, export, block):
    layout = layout_of(*CONTENT_FREE, block)
    with pytest.raises(ExportError, match=f"declared content-free.*{block}.*content_free=False"):
        export(gate_of(layout), tmp_path / "bundle", layout, content_free=True)
    assert not list(tmp_path.iterdir())


class PeekingGate(KeepAll):
    """Claims to keep all, and lets the least bit of one score decide about one candidate."""

    def forward(self, observation):
        peek = observation[:, -1:] * 1e-6
        return super().forward(observation) * 0.001 + torch.cat([peek, peek.new_zeros(len(observation), self.pool)], -1)


def test_a_cheating_policy_is_caught_by_its_propensity_alone(tmp_path, layout_of, export):
    layout = layout_of(*CONTENT_FREE, "content")
    policy = PeekingGate(blocks=layout.blocks, pool=POOL, budget=3)
    with pytest.raises(ExportError, match="PeekingGate is declared content-free"):
        export(policy, tmp_path / "bundle", layout, content_free=True)


def test_a_gate_that_looks_at_the_pool_exports_and_says_so(seeing):
    policy = seeing.manifest["policy"]
    assert policy["content_free"] is False
    assert policy["swap_test"]["identical"] is False
    assert any("may look at what was retrieved" in line for line in verify(seeing.path).lines())


def test_verify_repeats_the_swap_test_on_the_served_graph(tmp_path, seeing):
    manifest = {k: v for k, v in seeing.manifest.items() if k != "digest"}
    manifest["policy"] = {**manifest["policy"], "content_free": True}  # a claim added afterwards, digests and all
    write_bundle(tmp_path, manifest, seeing.files)
    report = verify(tmp_path)
    assert not report.ok
    assert any(line.startswith("FAILED") and "claims to be content-free" in line for line in report.lines())

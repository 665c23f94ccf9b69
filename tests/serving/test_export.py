"""What is served decides as the policy does, for every policy, in every runtime."""

import io
import stat
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from recallgym.policies import BestConstant, CausalGate, KeepAll, KeepNone, RandomGate, TopOne
from recallgym.serving.bundle import ONNX, BundleError
from recallgym.serving.export import ExportError
from recallgym.serving.parity import edge_rows, random_rows
from recallgym.serving.runtime import load

POOL, BUDGET = 6, 3
CONTENT_FREE = ("query", "feedback", "budget")
WITH_MEMORY = ("query", "memory", "budget")
GATES = {
    "rank softplus": (CONTENT_FREE, {}),
    "rank sigmoid threshold": (CONTENT_FREE, {"activation": "sigmoid", "threshold": 0.3}),
    "rank softplus softmax": (CONTENT_FREE, {"normalise": "softmax"}),
    "bank softplus softmax threshold": (WITH_MEMORY, {"head": "bank", "normalise": "softmax", "threshold": 0.01}),
    "bank sigmoid": (WITH_MEMORY, {"head": "bank", "activation": "sigmoid"}),
    "rank with ranks and content": (("domain", "query", "ranks", "content"), {}),
}
RULES = {
    "keep all": KeepAll,
    "keep none": KeepNone,
    "top one": TopOne,
    "random": RandomGate,
    "best constant": lambda **kw: BestConstant([1, 0, 1, 0, 0, 1, 1], **kw),
}


@pytest.fixture(scope="module", params=[*GATES, *RULES, "weights"])
def exported(request, tmp_path_factory, layout_of, gate_of, export):
    """A policy, its layout, its bundle, the action that it takes, and its state before it was exported."""
    action = "weights" if request.param == "weights" else "bits"
    if request.param in RULES:
        layout = layout_of("query", "ranks")
        policy = RULES[request.param](blocks=layout.blocks, pool=POOL, budget=BUDGET)
    else:
        observe, options = GATES.get(request.param, (CONTENT_FREE, {}))
        layout = layout_of(*observe)
        policy = gate_of(layout, **options)
    policy.train()
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    path = tmp_path_factory.mktemp("exported") / "bundle"
    declared = True if request.param in RULES else None
    bundle = export(policy, path, layout, action=action, content_free=declared)
    return policy, layout, bundle, action, before


def inputs_of(layout, observations_of) -> dict[str, np.ndarray]:
    """Fresh inputs of each kind, none of them in the bundle."""
    edge = edge_rows(layout.low, layout.high)
    return {
        "random": random_rows(layout.low, layout.high, 64, np.random.default_rng(99)),
        "edge": np.resize(edge, (64, layout.size)),
        "recorded": observations_of(layout, 64, seed=98),
    }


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_policy_and_bundle_agree(exported, observations_of, backend):
    policy, layout, bundle, action, _ = exported
    runtime = load(bundle.path, backend=backend)
    for kind, rows in inputs_of(layout, observations_of).items():
        valid = ((rows >= layout.low) & (rows <= layout.high)).all(axis=1)
        safe = torch.from_numpy(np.where(valid[:, None], rows, np.clip(0, layout.low, layout.high)).astype(np.float32))
        with torch.inference_mode():
            bits = policy.decide(safe).numpy()
            weights = policy.dose(safe).numpy() if action == "weights" else bits
            propensity = policy.propensity(safe).numpy()
        bits[~valid], weights[~valid], propensity[~valid] = 1, 1, 1  # the declared fallback: search, keep all
        for size in (1, 3, 64):
            for start in range(0, 64, size):
                part = slice(start, start + size)
                got = runtime.decide(rows[part])
                name = f"{kind} inputs from {start} in batches of {size}"
                np.testing.assert_array_equal(got.keep, bits[part, :-1] > 0.5, name)
                np.testing.assert_array_equal(got.search, bits[part, -1] > 0.5, name)
                np.testing.assert_array_equal(got.fell_back, ~valid[part], name)
                np.testing.assert_allclose(got.mask, weights[part, :-1], rtol=0, atol=1e-5, err_msg=name)
                np.testing.assert_allclose(got.propensity, propensity[part], rtol=0, atol=1e-5, err_msg=name)


def test_graph_has_the_declared_ports_and_no_other_input(exported):
    policy, layout, bundle, *_ = exported
    session = onnxruntime.InferenceSession(bundle.files[ONNX])
    assert [(port.name, port.shape) for port in session.get_inputs()] == [("observation", ["batch", layout.size])]
    assert [port.name for port in policy.inputs] == ["observation"]
    assert [(p.name, p.shape) for p in session.get_outputs()] == [
        (p["name"], p["shape"]) for p in bundle.manifest["outputs"]
    ]
    program = torch.export.load(io.BytesIO(bundle.files["policy.pt2"]))
    assert list(program.graph_signature.user_inputs) == ["observation"]


def test_graph_is_one_file_that_old_runtimes_read(exported):
    model = onnx.load_from_string(exported[2].files[ONNX])
    assert all(tensor.data_location == onnx.TensorProto.DEFAULT for tensor in model.graph.initializer)
    assert model.ir_version <= 10
    assert model.opset_import[0].version <= 21


def test_whether_it_is_content_free_is_stated(exported):
    policy, layout, bundle, *_ = exported
    rule = not isinstance(policy, CausalGate)  # shown the ranks, declared to ignore them, and found to
    assert bundle.manifest["policy"]["content_free"] == (rule or layout.content_free)
    assert bundle.manifest["policy"]["swap_test"]["identical"] == (rule or layout.content_free)


def test_all_bits_are_exported_and_vary(layout_of, original):
    layout = layout_of(*CONTENT_FREE)
    decision = load(original.path).decide(random_rows(layout.low, layout.high, 500, np.random.default_rng(5)))
    bits = np.column_stack([decision.keep, decision.search])
    assert bits.shape == (500, POOL + 1)
    assert (bits.any(axis=0) & ~bits.all(axis=0)).all()


def test_normaliser_is_inside_the_graph(layout_of, gate_of, observations_of, original):
    layout = layout_of(*CONTENT_FREE)
    rows = observations_of(layout, seed=6)
    policy = gate_of(layout)
    served = load(original.path).decide(rows)
    np.testing.assert_allclose(served.propensity, policy.propensity(torch.from_numpy(rows)).detach(), atol=1e-5)
    policy.normaliser.mean.zero_()
    policy.normaliser.std.fill_(1)
    assert np.abs(served.propensity - policy.propensity(torch.from_numpy(rows)).detach().numpy()).max() > 0.01


def test_a_gate_is_computed_once_for_all_outputs(original):
    operators = [node.op_type for node in onnx.load_from_string(original.files[ONNX]).graph.node]
    assert operators.count("Gemm") == 2


def test_policy_is_left_as_it_was(exported):
    policy, _, _, _, before = exported
    assert policy.training
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state_dict().items())


class BatchCentred(KeepAll):
    """Decides by the difference from its batch-mates, as a batch norm left in training mode would."""

    def forward(self, observation):
        return (observation - observation.mean(0))[:, : self.pool + 1]


def test_a_decision_that_depends_on_its_batch_mates_is_refused_and_leaves_nothing(tmp_path, layout_of, export):
    layout = layout_of(*CONTENT_FREE)
    with pytest.raises(ExportError, match=r"(?s)does not decide as the policy does.*FAILED +parity.*in batches of 1"):
        export(BatchCentred(blocks=layout.blocks, pool=POOL, budget=BUDGET), tmp_path / "bundle", layout)
    assert not list(tmp_path.iterdir())


class NoisyGate(KeepAll):
    """Decides with dropout: not a function of the observation in training mode, and harmless in evaluation."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, observation):
        return self.dropout(super().forward(observation) + observation.sum(-1, keepdim=True) * 0)


def test_latent_is_refused(tmp_path, layout_of, gate_of, export):
    layout = layout_of(*CONTENT_FREE, "latent")
    with pytest.raises(ExportError, match="latent, which only training knows"):
        export(gate_of(layout), tmp_path / "bundle", layout)


def test_layout_of_another_policy_is_refused(tmp_path, layout_of, gate_of, export):
    with pytest.raises(ExportError, match="the policy observes the blocks"):
        export(gate_of(layout_of("query", "budget")), tmp_path / "bundle", layout_of(*CONTENT_FREE))


@pytest.mark.parametrize("fallback", [[1, 1], [2] * 7, [0.5] * 7])
def test_fallback_must_be_bits(tmp_path, layout_of, gate_of, export, fallback):
    layout = layout_of(*CONTENT_FREE)
    with pytest.raises(ExportError, match="fallback must be 7 bits"):
        export(gate_of(layout), tmp_path / "bundle", layout, fallback=fallback)


def test_unknown_action_is_refused(tmp_path, layout_of, gate_of, export):
    layout = layout_of(*CONTENT_FREE)
    with pytest.raises(ExportError, match="action must be one of bits, weights"):
        export(gate_of(layout), tmp_path / "bundle", layout, action="mask")


def test_incomplete_identity_leaves_nothing_behind(tmp_path, layout_of, gate_of, export):
    layout = layout_of(*CONTENT_FREE)
    with pytest.raises(BundleError, match=r"identity\.table is missing"):
        export(
            gate_of(layout),
            tmp_path / "bundle",
            layout,
            identity=dict.fromkeys(("embedder", "tokenizer", "reader", "index", "corpus")),
        )
    assert not list(tmp_path.iterdir())


def test_existing_path_is_replaced_only_on_demand_and_only_if_a_bundle(damaged, tmp_path, layout_of, export):
    layout = layout_of(*CONTENT_FREE)
    policy = NoisyGate(blocks=layout.blocks, pool=POOL, budget=BUDGET)
    with pytest.raises(FileExistsError, match="replace=True"):
        export(policy, damaged, layout)
    (tmp_path / "notes").mkdir()
    with pytest.raises(FileExistsError, match="notes exists"):
        export(policy, tmp_path / "notes", layout, replace=True)
    bundle = export(policy, damaged, layout, replace=True)
    assert bundle.manifest["policy"]["class"].endswith("NoisyGate")
    assert "Dropout" not in {node.op_type for node in onnx.load_from_string(bundle.files[ONNX]).graph.node}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["damaged", "notes"]


def test_others_may_read_what_was_exported(original):
    usual = Path(original.path.parent / "usual")
    usual.mkdir()
    assert stat.S_IMODE(original.path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
